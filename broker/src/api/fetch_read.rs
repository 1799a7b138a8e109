//! Reading the partitions of one Fetch within its limits. Data in memory is read at once; what has to come from the disk
//! is read on a thread that may wait.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::ResponseError;
use partition_log::{
    AbortedTxn, Access, Bound, EpochEnd, Fetched, LogOffsets, LogPosition, ReadError, ReadRequest, Records,
};

use super::epochs::check_leader_epoch;
use super::{Context, errors};
use crate::observe::TopicCounter;
use crate::runtime::fetch_sessions::{Told, TopicKey, Wanted};
use crate::runtime::partition::{LookupError, Partition};
use crate::security::{Operation, TopicName};
use crate::tasks::Tasks;

/// From this size on records are not read: they go from the file to the socket. Below it, one copy costs less than the
/// two small reads that find where they end.
const FILE_BYTES_MIN: usize = 64 << 10;

/// What bounds a Fetch.
pub struct Limits {
    /// Least bytes before it is answered.
    pub min_bytes: u64,
    /// Most bytes of records in the answer.
    pub max_bytes: usize,
    /// Longest wait for the least bytes.
    pub max_wait: Duration,
    /// How far records may be read.
    pub bound: Bound,
}

/// What came of one partition.
pub struct Read {
    /// What was asked.
    pub wanted: Wanted,
    /// The partition, if it is here.
    pub partition: Option<Arc<Partition>>,
    /// Why there are no records.
    pub error: Option<ResponseError>,
    /// Whole batches.
    pub records: Records,
    /// The log's offsets.
    pub offsets: Option<LogOffsets>,
    /// Where the log and the client's part ways.
    pub diverging: Option<EpochEnd>,
    /// Aborted transactions among the records; `None` for readers of everything.
    pub aborted: Option<Vec<AbortedTxn>>,
    position: Option<LogPosition>,
}

impl Read {
    fn empty(wanted: Wanted) -> Read {
        Read {
            wanted,
            partition: None,
            error: None,
            records: Records::default(),
            offsets: None,
            diverging: None,
            aborted: None,
            position: None,
        }
    }

    fn failed(wanted: Wanted, error: ResponseError) -> Read {
        Read { error: Some(error), ..Read::empty(wanted) }
    }

    /// What the answer says of the partition beside the records.
    pub fn told(&self) -> Told {
        let of = |offset: fn(&LogOffsets) -> i64| self.offsets.as_ref().map_or(-1, offset);
        Told {
            error_code: self.error.map_or(0, |error| error.code()),
            high_watermark: of(|offsets| offsets.high_watermark),
            last_stable_offset: of(|offsets| offsets.last_stable_offset),
            log_start_offset: of(|offsets| offsets.log_start_offset),
        }
    }

    /// Bytes that could be read now.
    pub fn available(&self, bound: Bound) -> u64 {
        match (&self.partition, &self.position) {
            (Some(partition), Some(position)) => partition.reader().bytes_from(position, bound),
            (Some(partition), None) => u64::from(partition.reader().bound(bound) > self.wanted.fetch_offset),
            (None, _) => 0,
        }
    }

    /// True if the partition is not one that this client can read here.
    pub fn is_unknown(&self) -> bool {
        use ResponseError::{TopicAuthorizationFailed, UnknownTopicId, UnknownTopicOrPartition};
        matches!(self.error, Some(UnknownTopicOrPartition | UnknownTopicId | TopicAuthorizationFailed))
    }

    /// True when the client has to hear of it at once. A partition that is not here does not hurry the others, or a
    /// client that has not heard of its deletion yet would ask again without a pause (Kafka: KafkaApis.handleFetchRequest
    /// sets them apart).
    pub fn is_urgent(&self) -> bool {
        (self.error.is_some() && !self.is_unknown()) || self.diverging.is_some()
    }

    /// True when the partition was deleted meanwhile.
    pub fn is_closed(&self) -> bool {
        self.partition.as_ref().is_some_and(|partition| partition.reader().is_closed())
    }
}

/// Reads all partitions in turn. The first that has records gives at least one batch, however large (KIP-74).
pub async fn read_all(ctx: &Context, wanted: &[Wanted], limits: &Limits) -> Vec<Read> {
    let mut left = limits.max_bytes;
    let mut min_one_batch = true;
    let mut reads = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let read = read_partition(ctx, wanted, limits, left, min_one_batch, |_| ()).await;
        left = left.saturating_sub(read.records.len());
        min_one_batch &= read.records.is_empty();
        reads.push(read);
    }
    reads
}

fn resolve(ctx: &Context, wanted: &Wanted) -> Result<Arc<Partition>, ResponseError> {
    let (name, is_gone) = match &wanted.topic {
        TopicKey::Name(name) => (name.clone(), false),
        TopicKey::Id(id) => match (ctx.node.partitions.name_of(*id), &wanted.known_as) {
            (Some(name), _) => (name, false),
            (None, Some(name)) => (name.clone(), true),
            (None, None) => return Err(errors::lookup(LookupError::UnknownId)),
        },
    };
    let name = ctx.may(Operation::Read, TopicName(name)).map_err(|_| ResponseError::TopicAuthorizationFailed)?;
    let partition = ctx.node.partitions.get(&name, wanted.partition).map_err(errors::lookup)?;
    if is_gone {
        // There is a topic of this name again, and it is not the one that the session reads.
        return Err(ResponseError::InconsistentTopicId);
    }
    check_leader_epoch(wanted.current_leader_epoch, &partition)?;
    Ok(partition)
}

/// Reads one partition; `found` is told which it is before it is looked at.
pub async fn read_partition(
    ctx: &Context,
    wanted: &Wanted,
    limits: &Limits,
    left: usize,
    min_one_batch: bool,
    found: impl FnOnce(&Arc<Partition>),
) -> Read {
    let partition = match resolve(ctx, wanted) {
        Ok(partition) => partition,
        Err(error) => return Read::failed(wanted.clone(), error),
    };
    found(&partition);
    let metrics = partition.topic().metrics.clone();
    metrics.add(TopicCounter::TotalFetchRequests, 1);
    if let Some(end) = diverging(&partition, wanted) {
        let offsets = Some(partition.reader().offsets());
        return Read { diverging: Some(end), offsets, partition: Some(partition), ..Read::empty(wanted.clone()) };
    }
    let max_bytes = usize::try_from(wanted.max_bytes).unwrap_or(0).min(left);
    let in_memory = max_bytes.min(FILE_BYTES_MIN);
    let held = ctx.node.answer_bytes.take(in_memory);
    // While other answers hold all the memory that there is for them, this one does without.
    let file_bytes_min = if held.bytes() < in_memory { 1 } else { FILE_BYTES_MIN };
    let request = ReadRequest { offset: wanted.fetch_offset, max_bytes, min_one_batch, bound: limits.bound };
    let read = match read_records(&partition, request, file_bytes_min).await {
        Ok((result, aborted)) => Read {
            records: match result.records {
                Records::Memory(bytes) => Records::Memory(held.by(bytes)),
                in_file @ Records::File(_) => in_file,
            },
            offsets: Some(result.offsets),
            position: result.position,
            aborted,
            ..Read::empty(wanted.clone())
        },
        Err(error) => {
            metrics.add(TopicCounter::FailedFetchRequests, 1);
            Read::failed(wanted.clone(), error)
        }
    };
    Read { partition: Some(partition), ..read }
}

/// Compares the epoch of the last record that the client has with the log (KIP-595).
fn diverging(partition: &Partition, wanted: &Wanted) -> Option<EpochEnd> {
    if wanted.last_fetched_epoch < 0 {
        return None;
    }
    let end = partition.reader().epoch_end_offset(wanted.last_fetched_epoch)?;
    (end.epoch < wanted.last_fetched_epoch || end.end_offset < wanted.fetch_offset).then_some(end)
}

type WithAborted = (Fetched, Option<Vec<AbortedTxn>>);

async fn read_records(
    partition: &Partition,
    request: ReadRequest,
    file_bytes_min: usize,
) -> Result<WithAborted, ResponseError> {
    let outcome = match partition.reader().fetch(&request, Access::NoWait, file_bytes_min) {
        Err(ReadError::WouldBlock) => {
            let reader = partition.reader().clone();
            let waited = Tasks::run_aside(move || reader.fetch(&request, Access::Wait, file_bytes_min)).await;
            waited.ok_or(ResponseError::KafkaStorageError)?
        }
        outcome => outcome,
    };
    let fetched = outcome.map_err(|error| errors::read(&error))?;
    if request.bound != Bound::LastStableOffset {
        return Ok((fetched, None));
    }
    let aborted = partition.reader().aborted_transactions(request.offset, fetched.next_offset);
    Ok((fetched, Some(aborted.map_err(|error| errors::read(&error))?)))
}
