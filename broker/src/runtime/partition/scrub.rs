//! The scrub: reads what lies on the disk, slowly, and checks it, so that damage is known before the records are needed. A
//! task with a rate; the reading is done on threads that may wait, never on those that own logs. One round goes through all
//! closed and synced segments of the node, partition by partition in the order of their names, and the next begins a week
//! after it. Where it is stands in a file of the first log directory, so that a restart goes on from there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, TopicPartition};
use partition_log::formats::offset_checkpoint::{self, Offsets};
use partition_log::{Disk, ScrubDamage, ScrubPlace};

use super::live::Partition;
use super::registry::Partitions;
use crate::observe::ScrubCounts;
use crate::tasks::Tasks;

/// Where the round is: one line with a partition and the offset of a segment; no line once it is done.
const PROGRESS_FILE: &str = "monedula-scrub-checkpoint";
/// Time between the begin of a node and of its first round, in milliseconds: a start has better things to read.
const FIRST_ROUND_DELAY_MS: i64 = 5_000;
/// Time between the ends of two rounds, in milliseconds.
const ROUND_INTERVAL_MS: i64 = 7 * 24 * 3_600_000;
/// Bytes that are read in one go.
const PIECE_BYTES_MAX: u64 = 256 * 1024;
/// Bytes between two notes of where the round is.
const PROGRESS_EVERY_BYTES: u64 = 64 * 1024 * 1024;

/// See the head of this file.
pub struct Scrub {
    /// What to look through.
    pub partitions: Arc<Partitions>,
    /// Where the progress is noted.
    pub disk: Arc<dyn Disk>,
    /// The first log directory.
    pub log_dir: PathBuf,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What it counts into.
    pub counts: Arc<ScrubCounts>,
    /// `monedula.scrub.bytes.per.second`, above 0.
    pub bytes_per_second: u64,
}

impl Scrub {
    /// Goes round until the node stops.
    pub async fn run(self, tasks: Tasks) {
        let mut stop = tasks.stop_signal();
        tokio::select! {
            () = stop.stopped() => {}
            () = self.go_round() => {}
        }
    }

    async fn go_round(&self) {
        let path = self.log_dir.join(PROGRESS_FILE);
        let (progress, noted_ms) = match offset_checkpoint::read(self.disk.as_ref(), &path) {
            Ok(progress) => (progress, self.disk.metadata(&path).ok().flatten().map(|found| found.modified_ms)),
            Err(error) => {
                tracing::warn!(%error, "the scrub begins a new round");
                (Offsets::new(), None)
            }
        };
        let mut from = progress.into_iter().next();
        let rest_ms =
            noted_ms.filter(|_| from.is_none()).map_or(0, |ended| ended + ROUND_INTERVAL_MS - self.clock.wall_ms());
        sleep_ms(rest_ms.clamp(FIRST_ROUND_DELAY_MS, ROUND_INTERVAL_MS)).await;
        loop {
            self.look_through(from.take()).await;
            self.counts.add_round();
            self.note(Offsets::new()).await;
            sleep_ms(ROUND_INTERVAL_MS).await;
        }
    }

    /// Looks through all partitions, from the one named on and from that segment of it.
    async fn look_through(&self, from: Option<(TopicPartition, i64)>) {
        let mut all: Vec<(TopicPartition, Arc<Partition>)> =
            self.partitions.all().into_iter().map(|partition| (name_of(&partition), partition)).collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        let (first, base_offset) = from.unzip();
        let mut since_note = 0;
        for (name, partition) in all.iter().filter(|(name, _)| first.as_ref().is_none_or(|first| name >= first)) {
            let begin = if Some(name) == first.as_ref() { base_offset.unwrap_or(0) } else { 0 };
            let mut place = ScrubPlace::at(begin);
            while let Some(part) = partition.reader().scrub_part(&place) {
                let Some(outcome) = Tasks::run_aside(move || part.run(PIECE_BYTES_MAX)).await else { return };
                let found = match outcome {
                    Ok(found) => found,
                    Err(error) => {
                        tracing::warn!(partition = %name, %error, "the scrub leaves out the rest of this partition");
                        break;
                    }
                };
                self.counts.add(found.bytes, found.damage.len());
                found.damage.iter().for_each(|damage| report(name, damage));
                place = found.next;
                since_note += found.bytes;
                if since_note >= PROGRESS_EVERY_BYTES {
                    since_note = 0;
                    self.note(Offsets::from([(name.clone(), place.base_offset)])).await;
                }
                tokio::time::sleep(self.time_for(found.bytes)).await;
            }
        }
    }

    fn time_for(&self, bytes: u64) -> Duration {
        // A piece without bytes costs a little too, and must not become a busy loop.
        Duration::from_micros(bytes.max(1024).saturating_mul(1_000_000) / self.bytes_per_second.max(1))
    }

    async fn note(&self, progress: Offsets) {
        let (disk, path) = (self.disk.clone(), self.log_dir.join(PROGRESS_FILE));
        let written = Tasks::run_aside(move || offset_checkpoint::write(disk.as_ref(), &path, &progress)).await;
        if let Some(Err(error)) = written {
            tracing::warn!(%error, "the scrub cannot note where it is; a restart begins its round again");
        }
    }
}

fn name_of(partition: &Partition) -> TopicPartition {
    TopicPartition::new(partition.topic().name.clone(), partition.index())
}

fn report(partition: &TopicPartition, damage: &ScrubDamage) {
    tracing::error!(
        %partition, file = %damage.path.display(), offset = damage.offset, position = damage.position,
        reason = damage.reason,
        "the scrub found a damaged batch; consumers fail when they come to it. Look at the disk, put back a good copy of \
         the file while the node is stopped, or let consumers seek past it"
    );
}

async fn sleep_ms(ms: i64) {
    tokio::time::sleep(Duration::from_millis(u64::try_from(ms).unwrap_or(0))).await;
}
