//! The owner of one shard: a loop that holds the machine, the callers who wait, and the way to the log.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base::Clock;
use coordinator::machine::RawRecord;
use coordinator::{Decision, Event, Machine, Now, Ticket};
use tokio::sync::{mpsc, oneshot, watch};

use super::append::{Answers, Appends};
use super::error::CoordinatorError;
use super::load::{LoadError, load};
use super::log::{ShardLog, ShardLogError};
use super::shard::ShardStatus;

/// Commands taken in one turn before the log gets what they decided.
const COMMANDS_PER_TURN_MAX: usize = 256;
/// Pause before a shard whose append failed is loaded anew.
const RELOAD_DELAY: Duration = Duration::from_secs(1);

type Reply<A> = oneshot::Sender<Result<A, CoordinatorError>>;
type AppendUnderWay = Pin<Box<dyn Future<Output = Result<(), ShardLogError>> + Send>>;

/// What the owner is sent.
pub(super) enum Message<M: Machine> {
    Command { command: M::Command, reply: Reply<M::Answer> },
    Inspect(Box<dyn FnOnce(&M) + Send>),
}

pub(super) struct Owner<M: Machine, L, F> {
    name: String,
    log: Arc<L>,
    fresh: F,
    clock: Arc<dyn Clock>,
    messages: mpsc::Receiver<Message<M>>,
    status: watch::Sender<ShardStatus>,
    machine: M,
    waiters: HashMap<Ticket, Reply<M::Answer>>,
    tickets: u64,
    appends: Appends<M::Answer>,
    under_way: Option<AppendUnderWay>,
}

/// What the loop woke up for.
enum Woken<M: Machine> {
    Appended(Result<(), ShardLogError>),
    Message(Option<Message<M>>),
    Deadline,
}

impl<M: Machine, L: ShardLog, F: Fn() -> M> Owner<M, L, F> {
    pub fn new(
        name: String,
        log: Arc<L>,
        fresh: F,
        clock: Arc<dyn Clock>,
        messages: mpsc::Receiver<Message<M>>,
        status: watch::Sender<ShardStatus>,
    ) -> Self {
        let (machine, appends) = (fresh(), Appends::new(log.batch_bytes_max()));
        let (waiters, under_way) = (HashMap::new(), None);
        Owner { name, log, fresh, clock, messages, status, machine, waiters, tickets: 0, appends, under_way }
    }

    /// Loads and serves until every handle is gone.
    pub async fn run(mut self) {
        loop {
            let error = match self.load().await {
                Ok(()) => match self.serve().await {
                    Ok(()) => return,
                    Err(error) => error,
                },
                Err(LoadError::Log(error)) => error,
                Err(error) => {
                    tracing::error!(shard = %self.name, %error, "the shard cannot be loaded and stays closed");
                    self.status.send_replace(ShardStatus::Failed);
                    return;
                }
            };
            // What was decided after the last committed record is void, so the state is read anew.
            tracing::warn!(shard = %self.name, %error, "the log refused: the shard is loaded anew");
            self.status.send_replace(ShardStatus::Loading);
            self.drop_all(&error);
            tokio::time::sleep(RELOAD_DELAY).await;
        }
    }

    fn now(&self) -> Now {
        Now { wall_ms: self.clock.wall_ms(), monotonic_ms: self.clock.monotonic().as_millis() as i64 }
    }

    async fn load(&mut self) -> Result<(), LoadError> {
        self.machine = (self.fresh)();
        let records = load(&mut self.machine, &*self.log).await?;
        tracing::debug!(shard = %self.name, records, "shard loaded");
        let decision = self.machine.loaded(self.now());
        self.carry_out(decision).map_err(storage_error)?;
        self.begin_append();
        self.status.send_replace(ShardStatus::Active);
        Ok(())
    }

    /// Answers until the handles are gone, or an append fails.
    async fn serve(&mut self) -> Result<(), ShardLogError> {
        loop {
            match self.wake().await {
                Woken::Appended(outcome) => {
                    self.under_way = None;
                    outcome?;
                    let answers = self.appends.committed();
                    self.answer(answers);
                }
                Woken::Message(None) => return Ok(()),
                Woken::Message(Some(message)) => self.take(message),
                Woken::Deadline => {
                    let decision = self.machine.expire(self.now());
                    self.carry_out(decision).map_err(storage_error)?;
                }
            }
            self.begin_append();
        }
    }

    async fn wake(&mut self) -> Woken<M> {
        let room = self.appends.has_room();
        let deadline_ms = self.machine.next_deadline_ms();
        let now_ms = self.now().monotonic_ms;
        let pause_ms = deadline_ms.map_or(0, |deadline_ms| deadline_ms.saturating_sub(now_ms).max(0));
        tokio::select! {
            biased;
            outcome = appended(&mut self.under_way) => Woken::Appended(outcome),
            // A deadline that has passed comes before further commands, or a busy shard would never see it.
            () = std::future::ready(()), if room && deadline_ms.is_some() && pause_ms == 0 => Woken::Deadline,
            message = self.messages.recv(), if room => Woken::Message(message),
            () = tokio::time::sleep(Duration::from_millis(pause_ms as u64)), if room && pause_ms > 0 => Woken::Deadline,
        }
    }

    fn take(&mut self, first: Message<M>) {
        let mut message = Some(first);
        for _ in 0..COMMANDS_PER_TURN_MAX {
            match message {
                Some(Message::Command { command, reply }) => self.decide(command, reply),
                Some(Message::Inspect(look)) => look(&self.machine),
                None => return,
            }
            if !self.appends.has_room() {
                return;
            }
            message = self.messages.try_recv().ok();
        }
        if let Some(message) = message {
            // The turn is over, but what was taken out of the queue has to be served.
            match message {
                Message::Command { command, reply } => self.decide(command, reply),
                Message::Inspect(look) => look(&self.machine),
            }
        }
    }

    fn decide(&mut self, command: M::Command, reply: Reply<M::Answer>) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.waiters.insert(ticket, reply);
        let decision = self.machine.decide(ticket, command, self.now());
        if let Err(error) = self.carry_out(decision)
            && let Some(reply) = self.waiters.remove(&ticket)
        {
            // Whoever asked may have gone.
            let _ = reply.send(Err(error));
        }
    }

    /// Applies a decision and queues its records and answers. A decision that cannot be stored is not applied.
    fn carry_out(&mut self, decision: Decision<M>) -> Result<(), CoordinatorError> {
        let Decision { events, answers } = decision;
        let records: Vec<RawRecord> = events
            .iter()
            .filter_map(|event| match event {
                Event::Record(record) => Some(M::encode(record)),
                Event::Soft(_) => None,
            })
            .collect();
        if let Some(bytes) = self.appends.too_large(records.iter()) {
            let bytes_max = self.log.batch_bytes_max();
            tracing::error!(shard = %self.name, bytes, bytes_max, "a record is larger than max.message.bytes allows");
            return Err(CoordinatorError::RecordTooLarge { bytes, bytes_max });
        }
        for event in events {
            match event {
                Event::Record(record) => self.machine.replay(record),
                Event::Soft(change) => self.machine.soft(change),
            }
        }
        let due = self.appends.push(&records, answers, self.clock.wall_ms());
        self.answer(due);
        Ok(())
    }

    fn answer(&mut self, answers: Answers<M::Answer>) {
        for (ticket, answer) in answers {
            if let Some(reply) = self.waiters.remove(&ticket) {
                // Whoever asked may have gone.
                let _ = reply.send(Ok(answer));
            }
        }
    }

    fn begin_append(&mut self) {
        match self.appends.next() {
            None => {}
            Some(Ok(batch)) => {
                let log = self.log.clone();
                self.under_way = Some(Box::pin(async move { log.append(batch).await }));
            }
            Some(Err(error)) => {
                let error = ShardLogError::Unavailable(error.to_string());
                self.under_way = Some(Box::pin(std::future::ready(Err(error))));
            }
        }
    }

    /// Nobody who waits can be answered any more.
    fn drop_all(&mut self, error: &ShardLogError) {
        self.appends = Appends::new(self.log.batch_bytes_max());
        self.under_way = None;
        for (_, reply) in self.waiters.drain() {
            let error = match error {
                ShardLogError::NotLeader => CoordinatorError::NotCoordinator,
                ShardLogError::Unavailable(_) => CoordinatorError::NotAvailable,
            };
            // Whoever asked may have gone.
            let _ = reply.send(Err(error));
        }
    }
}

/// Nobody asked for this decision, so that nobody can be told that it cannot be stored.
fn storage_error(error: CoordinatorError) -> ShardLogError {
    ShardLogError::Unavailable(error.to_string())
}

/// The outcome of the append under way; never, when there is none.
async fn appended(under_way: &mut Option<AppendUnderWay>) -> Result<(), ShardLogError> {
    match under_way {
        Some(append) => append.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use coordinator::group::command::{Join, Protocol};
    use coordinator::group::{Answer, Command, GroupError};

    use super::super::testing::*;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_comes_when_its_records_are_committed() {
        let bed = Bed::loaded().await;
        bed.log.hold();
        let mut commit = bed.begin(commit("g", 5));
        assert!(is_pending(&mut commit).await);
        assert_eq!(bed.log.batch_count(), 1);
        let mut fetch = bed.begin(fetch("g"));
        assert!(is_pending(&mut fetch).await, "it would tell what is not committed");
        bed.log.release();
        assert_eq!(commit.await.unwrap(), Ok(Answer::Commit(Ok(vec![None]))));
        assert_eq!(fetched(fetch.await.unwrap()), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn commands_that_come_during_an_append_share_the_next() {
        let bed = Bed::loaded().await;
        bed.log.hold();
        let mut calls = Vec::new();
        for index in 0..50 {
            let mut call = bed.begin(commit(&format!("g{index}"), index));
            assert!(is_pending(&mut call).await);
            calls.push(call);
        }
        bed.log.release();
        for call in calls {
            assert_eq!(call.await.unwrap(), Ok(Answer::Commit(Ok(vec![None]))));
        }
        assert_eq!(bed.log.batch_count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_append_voids_what_was_decided_and_loads_what_is_committed() {
        let bed = Bed::loaded().await;
        bed.call(commit("g", 1)).await.unwrap();
        bed.log.fail_next();
        assert_eq!(bed.call(commit("g", 2)).await, Err(CoordinatorError::NotAvailable));
        assert_eq!(bed.call(fetch("g")).await, Err(CoordinatorError::LoadInProgress));
        bed.shard.loaded().await;
        assert_eq!(fetched(bed.call(fetch("g")).await), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loading_shard_says_so_and_then_knows_its_log() {
        let bed = Bed::loaded().await;
        bed.call(commit("g", 7)).await.unwrap();
        let again = Bed::over(bed.log.clone());
        assert_eq!(again.call(fetch("g")).await, Err(CoordinatorError::LoadInProgress));
        assert_eq!(again.shard.loaded().await, ShardStatus::Active);
        assert_eq!(fetched(again.call(fetch("g")).await), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_cannot_be_read_closes_the_shard() {
        let log = Arc::new(MemoryLog::default());
        log.put_garbage();
        let bed = Bed::over(log);
        assert_eq!(bed.shard.loaded().await, ShardStatus::Failed);
        assert_eq!(bed.call(fetch("g")).await, Err(CoordinatorError::NotCoordinator));
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_fire_without_a_command() {
        let bed = Bed::loaded().await;
        let join = Join {
            group_id: "g".into(),
            member_id: "".into(),
            instance_id: None,
            client_id: "c".into(),
            client_host: "/127.0.0.1".into(),
            protocol_type: "connect".into(),
            protocols: vec![Protocol { name: "p".into(), metadata: bytes::Bytes::new() }],
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 60_000,
            member_id_required: false,
            may_skip_assignment: true,
            unique: uuid::Uuid::nil(),
        };
        let Ok(Answer::Join(Ok(joined))) = bed.call(Command::Join(join)).await else { panic!("not joined") };
        assert_eq!(joined.generation, 1);
        tokio::time::sleep(Duration::from_secs(11)).await;
        let described = bed.call(Command::Describe(vec!["g".into()])).await;
        let Ok(Answer::Describe(groups)) = described else { panic!("not described") };
        assert_eq!(groups[0].state, "Empty");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unloaded_shard_lets_everybody_go() {
        let mut bed = Bed::loaded().await;
        bed.log.hold();
        let mut call = bed.begin(commit("g", 1));
        assert!(is_pending(&mut call).await);
        bed.unload();
        assert_eq!(call.await.unwrap(), Err(CoordinatorError::NotCoordinator));
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_that_fits_no_batch_is_refused_and_changes_nothing() {
        let bed = Bed::loaded().await;
        let large = commit(&"g".repeat(20_000), 1);
        assert!(matches!(bed.call(large).await, Err(CoordinatorError::RecordTooLarge { .. })));
        assert_eq!(bed.call(commit("g", 1)).await, Ok(Answer::Commit(Ok(vec![None]))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_whose_time_is_over_is_answered() {
        let bed = Bed::loaded().await;
        bed.log.hold();
        let late = bed.shard.call_within(commit("g", 1), Duration::from_secs(5)).await;
        assert_eq!(late, Err(CoordinatorError::NotAvailable));
        assert!(matches!(
            bed.shard.call_within(unknown_delete(), Duration::from_secs(5)).await,
            Err(CoordinatorError::NotAvailable)
        ));
        bed.log.release();
        let deleted = bed.call(unknown_delete()).await;
        let expected = GroupError::GroupNotFound { group_id: "none".into() };
        assert_eq!(deleted, Ok(Answer::DeleteGroups(vec![("none".into(), Some(expected))])));
    }
}
