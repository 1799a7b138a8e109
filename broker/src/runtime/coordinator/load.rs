//! Loading: the records of a shard's log, from its start to what is committed, go through the machine.

use base::Offset;
use coordinator::Machine;
use coordinator::machine::RecordError;
use record_batch::control::ControlRecordType;
use record_batch::{BatchError, BatchRef, ReadError, RecordReader, RecordRef, whole_batches};

use super::log::{ShardLog, ShardLogError};

/// Bytes read at a time (Kafka: offsets.load.buffer.size, which is a cap there too and not a promise).
const CHUNK_BYTES_MAX: usize = 1024 * 1024;

/// Most bytes that a batch may decompress to: far beyond what a batch of this topic holds.
const BATCH_DECOMPRESSED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The log of a shard cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] ShardLogError),
    /// Bytes that are no batch.
    #[error("after offset {after}: {source}")]
    Batch {
        /// Offset up to which the log is loaded.
        after: Offset,
        /// What is wrong with the bytes.
        source: BatchError,
    },
    /// Records that cannot be walked.
    #[error("in the batch at offset {offset}: {source}")]
    Records {
        /// First offset of the batch.
        offset: Offset,
        /// What is wrong with the batch.
        source: ReadError,
    },
    /// A record that the machine cannot read.
    #[error("at offset {offset}: {source}")]
    Record {
        /// Offset of the record.
        offset: Offset,
        /// What is wrong with the record.
        source: RecordError,
    },
}

/// Reads the whole log into `machine`. Returns the number of records.
pub(super) async fn load<M: Machine, L: ShardLog>(machine: &mut M, log: &L) -> Result<u64, LoadError> {
    let mut next_offset = log.log_start_offset();
    let mut count = 0;
    loop {
        let chunk = log.read(next_offset, CHUNK_BYTES_MAX).await?;
        let before = next_offset;
        for batch in whole_batches(&chunk) {
            let batch = batch.map_err(|source| LoadError::Batch { after: next_offset, source })?;
            if batch.header().next_offset() > next_offset {
                count += load_batch(machine, &batch, next_offset)?;
                next_offset = batch.header().next_offset();
            }
        }
        if next_offset == before {
            return Ok(count);
        }
        // A long log shall not keep this thread from the connections.
        tokio::task::yield_now().await;
    }
}

fn load_batch<M: Machine>(machine: &mut M, batch: &BatchRef<'_>, from: Offset) -> Result<u64, LoadError> {
    let header = batch.header();
    let offset = header.base_offset;
    let wrong = |source| LoadError::Records { offset, source };
    // Ours are never compressed; those that Kafka wrote may be (offsets.topic.compression.codec).
    let mut records = RecordReader::open(batch, BATCH_DECOMPRESSED_BYTES_MAX).map_err(wrong)?;
    let producer_id = if header.is_transactional() { header.producer_id } else { -1 };
    let mut count = 0;
    while let Some(record) = records.next_record().map_err(wrong)? {
        if record.offset < from {
            continue;
        }
        if header.is_control() {
            load_marker(machine, &record, header.producer_id);
            continue;
        }
        // A record without key says nothing in a compacted topic.
        let Some(key) = record.key else { continue };
        machine
            .load(key, record.value, producer_id)
            .map_err(|source| LoadError::Record { offset: record.offset, source })?;
        count += 1;
    }
    Ok(count)
}

fn load_marker<M: Machine>(machine: &mut M, record: &RecordRef<'_>, producer_id: base::ProducerId) {
    match record.key.and_then(ControlRecordType::parse_key) {
        Some(ControlRecordType::Commit) => machine.load_marker(producer_id, true),
        Some(ControlRecordType::Abort) => machine.load_marker(producer_id, false),
        Some(_) | None => {}
    }
}
