//! A session remembers what its client wants and was told.

use super::*;

fn wanted(partition: i32) -> Wanted {
    Wanted {
        topic: TopicKey::Name("t".into()),
        known_as: None,
        partition,
        fetch_offset: 0,
        max_bytes: 1,
        current_leader_epoch: -1,
        last_fetched_epoch: -1,
    }
}

const TOLD: Told = Told { error_code: 0, high_watermark: 5, last_stable_offset: 5, log_start_offset: 0 };

fn begun(sessions: &FetchSessions) -> i32 {
    sessions.begin_session(false, vec![(wanted(0), TOLD), (wanted(1), TOLD)], || 7, Duration::ZERO)
}

fn go_on(sessions: &FetchSessions, id: i32, epoch: i32, forgotten: &[Key]) -> Result<Begun, SessionError> {
    sessions.begin_request((id, epoch), false, Vec::new(), forgotten, Duration::ZERO)
}

fn session(sessions: &FetchSessions, id: i32, epoch: i32, forgotten: &[Key]) -> Arc<Session> {
    match go_on(sessions, id, epoch, forgotten).unwrap() {
        Begun::Incremental(session) => session,
        Begun::Full { .. } => panic!("a full request"),
    }
}

fn looked_at(session: &Arc<Session>) -> Vec<(u32, i32)> {
    let mut taken = session.take();
    let looked_at =
        std::iter::from_fn(|| taken.next_slot()).map(|(number, wanted)| (number, wanted.partition)).collect();
    taken.settled();
    looked_at
}

#[test]
fn bl_040_a_request_must_have_the_next_epoch_of_a_known_session() {
    let sessions = FetchSessions::new(10);
    let id = begun(&sessions);
    let refusal = |epoch, id| go_on(&sessions, id, epoch, &[]).err();
    assert_eq!(refusal(7, id), Some(SessionError::InvalidEpoch));
    assert_eq!(refusal(1, id + 1), Some(SessionError::NotFound));
    assert_eq!(looked_at(&session(&sessions, id, 1, &[])), [(0, 0), (1, 1)]);
    assert_eq!(refusal(1, id), Some(SessionError::InvalidEpoch));
    assert!(matches!(go_on(&sessions, id, -1, &[]), Ok(Begun::Full { begins_session: false, .. })));
    assert_eq!(refusal(2, id), Some(SessionError::NotFound));
}

#[test]
fn bl_041_a_forgotten_partition_does_not_come_back() {
    let sessions = FetchSessions::new(10);
    let id = begun(&sessions);
    let session = session(&sessions, id, 1, &[(TopicKey::Name("t".into()), 1)]);
    assert_eq!(looked_at(&session), [(0, 0)]);
    assert!(!session.settle(1, &TOLD, true, true));
}

#[test]
fn bl_074_a_session_remembers_the_name_that_an_id_had_first() {
    let sessions = FetchSessions::new(10);
    let named = |known_as: Option<&str>, fetch_offset| Wanted {
        topic: TopicKey::Id(TopicId(uuid::Uuid::from_u128(7))),
        known_as: known_as.map(Into::into),
        fetch_offset,
        ..wanted(0)
    };
    let id = sessions.begin_session(true, vec![(named(Some("t"), 0), TOLD)], || 7, Duration::ZERO);
    let again = sessions.begin_request((id, 1), true, vec![named(None, 5)], &[], Duration::ZERO);
    let Ok(Begun::Incremental(session)) = again else { panic!("refused") };
    assert_eq!(session.take().next_slot(), Some((0, named(Some("t"), 5))));
}

#[test]
fn only_what_changed_is_news() {
    let sessions = FetchSessions::new(10);
    let id = begun(&sessions);
    let session = session(&sessions, id, 1, &[]);
    let moved = Told { high_watermark: 6, ..TOLD };
    assert_eq!(looked_at(&session).len(), 2);
    assert!(!session.settle(0, &TOLD, false, false));
    assert!(session.settle(1, &moved, false, false));
    assert!(!session.settle(1, &moved, false, false));
    assert!(session.settle(0, &TOLD, true, true));
    let failed = Told { error_code: 3, ..moved };
    assert!(session.settle(1, &failed, false, true) && session.settle(1, &failed, false, true));
    assert!(session.settle(1, &moved, false, false));
    assert_eq!(looked_at(&session), [(0, 0), (1, 1)]);
}

#[test]
fn slots_that_a_request_has_not_settled_are_looked_at_by_the_next() {
    let sessions = FetchSessions::new(10);
    let id = sessions.begin_session(false, (0..4).map(|i| (wanted(i), TOLD)).collect(), || 7, Duration::ZERO);
    let session = session(&sessions, id, 1, &[]);
    let mut taken = session.take();
    let first: Vec<u32> = std::iter::from_fn(|| taken.next_slot()).take(2).map(|(number, _)| number).collect();
    assert_eq!(first, [0, 1]);
    drop(taken);
    let mut taken = session.take();
    let next = std::iter::from_fn(|| taken.next_slot()).take(2).map(|(number, _)| number);
    assert_eq!(next.collect::<Vec<u32>>(), [2, 3]);
    taken.settled();
    assert_eq!(looked_at(&session), [(0, 0), (1, 1)]);
    assert_eq!(looked_at(&session), []);
}

#[test]
fn a_full_cache_begins_no_session_until_one_was_idle_for_two_minutes() {
    let sessions = FetchSessions::new(1);
    begun(&sessions);
    let begin = |at| sessions.begin_session(false, Vec::new(), || 9, Duration::from_secs(at));
    assert_eq!(begin(119), 0);
    assert_eq!(begin(120), 9);
}
