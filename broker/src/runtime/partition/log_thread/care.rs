//! What a log thread does for all its logs from time to time.

use super::failures::report_failure;
use super::owner::{Owner, timed};

/// Work that is done for all logs from time to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runtime::partition) enum Care {
    /// Retention by time and size, and files whose delay has passed.
    Retention,
    /// Producers that were idle too long.
    ExpiredProducers,
    /// `flush.ms`.
    Flush,
}

impl Owner {
    pub(super) fn care(&mut self, care: Care, now_ms: i64) {
        for owned in self.logs.values_mut() {
            let outcome = match care {
                // It would take away what is being read, and the cleaning would begin again and again.
                Care::Retention if owned.log.is_cleaning() => owned.log.remove_expired_files(now_ms).map(|_| ()),
                Care::Retention => owned.log.apply_retention(now_ms).and_then(|report| {
                    if report.segments > 0 {
                        tracing::info!(partition = %owned.log.partition(), segments = report.segments, bytes = report.bytes, "retention removed segments");
                        owned.partition.wake_waiters();
                    }
                    owned.log.remove_expired_files(now_ms)?;
                    // What has not grown since the last run is idle and gives its memory and files back.
                    let end = owned.log.log_end_offset();
                    let idle = std::mem::replace(&mut owned.end_at_retention, end) == end;
                    if idle { owned.log.release_idle() } else { Ok(()) }
                }),
                Care::ExpiredProducers => {
                    owned.log.remove_expired_producers(now_ms);
                    owned.partition.set_producer_count(owned.log.producer_count());
                    Ok(())
                }
                Care::Flush => {
                    let flush_ms = owned.partition.topic().config.load().flush_ms;
                    if owned.log.unflushed_records() > 0 && now_ms.saturating_sub(owned.flushed_at_ms) >= flush_ms {
                        owned.flushed_at_ms = now_ms;
                        timed(&*self.clock, &self.flushes, || owned.log.flush()).map(|_| ())
                    } else {
                        Ok(())
                    }
                }
            };
            if let Err(error) = outcome {
                report_failure(&owned.partition, &error);
            }
        }
    }
}
