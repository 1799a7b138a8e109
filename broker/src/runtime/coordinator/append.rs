//! Decided records on their way to the log. While one batch is under way, what is decided meanwhile gathers in the next:
//! the busier the shard, the larger the batches. Each answer stands behind the last record that was decided before it,
//! so nobody is told what a crash could undo.

use std::collections::VecDeque;

use base::TimestampMs;
use coordinator::Ticket;
use coordinator::machine::RawRecord;
use record_batch::{BatchBuilder, BuildError, HEADER_LEN, RecordData};

/// Batches that may wait behind the one under way before the owner takes no more commands.
const BATCHES_WAITING_MAX: usize = 4;
/// Most bytes that a record takes in a batch beside its key and value: length, attributes, deltas, lengths, headers.
const RECORD_OVERHEAD_BYTES_MAX: usize = 5 + 1 + 10 + 5 + 5 + 5 + 1;

/// Answers that are due together.
pub(super) type Answers<A> = Vec<(Ticket, A)>;

struct Gathered<A> {
    batch: BatchBuilder,
    answers: Answers<A>,
}

/// The queue between decisions and the log.
pub(super) struct Appends<A> {
    batch_bytes_max: usize,
    /// Answers behind the batch under way; `None` when none is.
    under_way: Option<Answers<A>>,
    waiting: VecDeque<Gathered<A>>,
}

impl<A> Appends<A> {
    pub fn new(batch_bytes_max: usize) -> Self {
        Appends { batch_bytes_max, under_way: None, waiting: VecDeque::new() }
    }

    /// False when the log is so far behind that commands have to wait.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < BATCHES_WAITING_MAX
    }

    /// Size of the first record that fits no batch.
    pub fn too_large<'a>(&self, mut records: impl Iterator<Item = &'a RawRecord>) -> Option<usize> {
        records.find(|record| HEADER_LEN + size(record) > self.batch_bytes_max).map(size)
    }

    /// Queues records and the answers that follow them. Returns the answers that are due at once, because nothing is
    /// on its way to the log.
    pub fn push(&mut self, records: &[RawRecord], answers: Answers<A>, timestamp_ms: TimestampMs) -> Answers<A> {
        for record in records {
            let fits =
                |gathered: &Gathered<A>| gathered.batch.uncompressed_len() + size(record) <= self.batch_bytes_max;
            if !self.waiting.back().is_some_and(fits) {
                self.waiting.push_back(Gathered { batch: BatchBuilder::new(0), answers: Vec::new() });
            }
            if let Some(gathered) = self.waiting.back_mut() {
                let data = RecordData::new(timestamp_ms).key(&record.key);
                gathered.batch.append(&match &record.value {
                    Some(value) => data.value(value),
                    None => data,
                });
            }
        }
        match (self.waiting.back_mut(), &mut self.under_way) {
            (Some(gathered), _) => gathered.answers.extend(answers),
            (None, Some(under_way)) => under_way.extend(answers),
            (None, None) => return answers,
        }
        Vec::new()
    }

    /// The next batch to append, if none is under way.
    pub fn next(&mut self) -> Option<Result<Vec<u8>, BuildError>> {
        if self.under_way.is_some() {
            return None;
        }
        let Gathered { batch, answers } = self.waiting.pop_front()?;
        self.under_way = Some(answers);
        Some(batch.build())
    }

    /// The batch under way is committed: its answers are due.
    pub fn committed(&mut self) -> Answers<A> {
        self.under_way.take().unwrap_or_default()
    }
}

fn size(record: &RawRecord) -> usize {
    RECORD_OVERHEAD_BYTES_MAX + record.key.len() + record.value.as_ref().map_or(0, |value| value.len())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use record_batch::BatchRef;

    use super::*;

    fn record(len: usize) -> RawRecord {
        RawRecord { key: Bytes::from_static(b"k"), value: Some(vec![0; len].into()) }
    }

    fn count(batch: Option<Result<Vec<u8>, BuildError>>) -> i32 {
        BatchRef::parse(&batch.unwrap().unwrap()).unwrap().header().record_count
    }

    #[test]
    fn what_is_decided_while_a_batch_is_under_way_goes_out_in_one_batch() {
        let mut appends = Appends::new(10_000);
        assert_eq!(appends.push(&[record(1)], vec![(Ticket(1), 'a')], 0), []);
        assert_eq!(count(appends.next()), 1);
        for ticket in 2..5 {
            assert_eq!(appends.push(&[record(1)], vec![(Ticket(ticket), 'b')], 0), []);
            assert!(appends.next().is_none());
        }
        assert_eq!(appends.committed(), [(Ticket(1), 'a')]);
        assert_eq!(count(appends.next()), 3);
        assert_eq!(appends.committed().len(), 3);
        assert!(appends.next().is_none());
    }

    #[test]
    fn an_answer_without_records_waits_for_those_decided_before_it_and_for_no_others() {
        let mut appends = Appends::new(10_000);
        assert_eq!(appends.push(&[], vec![(Ticket(1), 'a')], 0), [(Ticket(1), 'a')]);
        appends.push(&[record(1)], vec![(Ticket(2), 'b')], 0);
        appends.next();
        assert_eq!(appends.push(&[], vec![(Ticket(3), 'c')], 0), []);
        appends.push(&[record(1)], vec![(Ticket(4), 'd')], 0);
        assert_eq!(appends.push(&[], vec![(Ticket(5), 'e')], 0), []);
        assert_eq!(appends.committed(), [(Ticket(2), 'b'), (Ticket(3), 'c')]);
        appends.next();
        assert_eq!(appends.committed(), [(Ticket(4), 'd'), (Ticket(5), 'e')]);
    }

    #[test]
    fn a_decision_larger_than_a_batch_is_split_and_its_answer_stands_behind_the_last_part() {
        let mut appends = Appends::new(1_000);
        let records: Vec<RawRecord> = (0..5).map(|_| record(400)).collect();
        appends.push(&records, vec![(Ticket(1), 'a')], 0);
        assert_eq!((count(appends.next()), appends.committed().len()), (2, 0));
        assert_eq!((count(appends.next()), appends.committed().len()), (2, 0));
        assert_eq!((count(appends.next()), appends.committed().len()), (1, 1));
    }

    #[test]
    fn a_record_that_fits_no_batch_is_found() {
        let appends = Appends::<()>::new(1_000);
        assert_eq!(appends.too_large([record(100)].iter()), None);
        assert!(appends.too_large([record(100), record(1_000)].iter()).is_some());
    }
}
