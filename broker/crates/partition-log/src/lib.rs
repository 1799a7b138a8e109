//! A partition's log in Kafka's directory and file formats: segments and their indexes, checkpoints, producer state,
//! recovery, retention. One owner writes through `Log`; readers see what it publishes through `LogReader`. Reaches
//! files through the trait `Disk` only; time and ids come in as arguments.

mod active;
mod cleaner;
mod config;
pub mod disk;
mod epochs;
mod errors;
mod file_cache;
pub mod formats;
mod log;
pub mod names;
mod offset_index;
mod producers;
mod read_buffers;
mod reader;
mod scan;
mod scrub;
mod segment;
mod shared;
mod time_index;
mod txn_index;

pub use cleaner::{CleanError, CleanedGroup, CleaningJob, CleaningOptions, CleaningReport, Throttle};
pub use config::LogConfig;
pub use disk::{Disk, DiskFile, DiskLock, OpenMode, RealDisk, SimDisk};
pub use epochs::{EpochEnd, Epochs};
pub use errors::{AppendError, LogError, OpenError, ReadError, StorageError};
pub use file_cache::FileCache;
pub use log::{
    AppendItem, AppendScratch, Appended, Cleanable, CleaningProgress, ClosedLog, DeletedLog, ExpiredFile, FlushDone,
    FlushJob, HeldBack, Log, LogOptions, Opened, RecoveryReport, RetentionReport,
};
pub use producers::{AppendOrigin, AppendedBatch, ProducerEntry, ProducerError, SnapshotError};
pub use reader::{
    Access, Bound, Fetched, FileRange, LogOffsets, LogReader, ReadRequest, ReadResult, Records, TimestampOffset,
};
pub use scrub::{ScrubDamage, ScrubPart, ScrubPlace, Scrubbed};
pub use shared::LogPosition;
pub use txn_index::AbortedTxn;
