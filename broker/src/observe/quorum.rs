//! Series of the metadata quorum as this node's member sees it (Kafka: KafkaRaftMetrics). A quorum of one exchanges no
//! messages, so that there are none of channels and of fetched records.

use std::sync::Arc;

use base::{Clock, LeaderEpoch, NodeId, Offset};

use super::family::{Families, Source};
use super::window::Window;

/// What a scrape reads of the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuorumView {
    /// What it is, in Kafka's words: leader, candidate, follower or observer.
    pub state: &'static str,
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// The leader, if the member knows one.
    pub leader: Option<NodeId>,
    /// Whom it voted for in this epoch.
    pub vote: Option<NodeId>,
    /// Offset before which everything is agreed on and applied here.
    pub high_watermark: Offset,
    /// Offset of the next record.
    pub log_end_offset: Offset,
    /// Proposals that were agreed on since the start.
    pub commits: u64,
    /// Time from proposal to agreement, of all of them, in microseconds.
    pub commit_micros: u64,
    /// True when the metadata cannot be applied any more.
    pub failed: bool,
}

/// The series of the quorum.
pub struct QuorumSource {
    read: Box<dyn Fn() -> QuorumView + Send + Sync>,
    clock: Arc<dyn Clock>,
    /// Records, commits, their time.
    window: Window<3>,
}

impl QuorumSource {
    /// Reads the member with `read`.
    pub fn new(clock: Arc<dyn Clock>, read: impl Fn() -> QuorumView + Send + Sync + 'static) -> QuorumSource {
        let window = Window::new(clock.monotonic(), totals(&read()));
        QuorumSource { read: Box::new(read), clock, window }
    }
}

fn totals(view: &QuorumView) -> [f64; 3] {
    [view.log_end_offset as f64, view.commits as f64, view.commit_micros as f64]
}

impl Source for QuorumSource {
    fn collect(&self, families: &mut Families) {
        let view = (self.read)();
        let growth = self.window.growth(self.clock.monotonic(), totals(&view));
        let id = |node: Option<NodeId>| f64::from(node.map_or(-1, |node| node.0));
        families
            .gauge("kafka_server_raftmetrics_current_state", "1 at what the quorum's member is")
            .row(&[("current_state", view.state)], 1.0);
        for (name, help, value) in [
            ("kafka_server_raftmetrics_current_leader", "Node id of the leader, or -1", id(view.leader)),
            ("kafka_server_raftmetrics_current_epoch", "Epoch of the quorum", f64::from(view.epoch)),
            ("kafka_server_raftmetrics_current_vote", "Node id that got the vote of this epoch, or -1", id(view.vote)),
            (
                "kafka_server_raftmetrics_high_watermark",
                "Offset before which the metadata log is agreed on",
                view.high_watermark as f64,
            ),
            (
                "kafka_server_raftmetrics_log_end_offset",
                "Offset of the metadata log's next record",
                view.log_end_offset as f64,
            ),
            (
                "kafka_server_raftmetrics_append_records_rate",
                "Records appended to the metadata log, a second",
                growth.per_second(0).max(0.0),
            ),
            (
                "kafka_server_raftmetrics_commit_latency_avg",
                "Milliseconds from proposal to agreement, on average",
                growth.mean(2, 1) / 1e3,
            ),
            (
                "kafka_controller_kafkacontroller_metadataerrorcount",
                "Errors in applying the metadata; the first ends the node",
                f64::from(u8::from(view.failed)),
            ),
        ] {
            families.gauge(name, help).row(&[], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use base::ManualClock;
    use parking_lot::Mutex;

    use super::super::Metrics;
    use super::*;

    #[test]
    fn rates_and_latency_are_those_of_the_last_minutes() {
        let clock = Arc::new(ManualClock::at(0));
        let view = QuorumView {
            state: "leader",
            epoch: 4,
            leader: Some(NodeId(1)),
            vote: None,
            high_watermark: 90,
            log_end_offset: 100,
            commits: 10,
            commit_micros: 1_000_000,
            failed: false,
        };
        let shown = Arc::new(Mutex::new(view));
        let read = shown.clone();
        let metrics = Metrics::new(clock.clone());
        metrics.add_source(QuorumSource::new(clock.clone(), move || *read.lock()));
        clock.advance_ms(10_000);
        *shown.lock() = QuorumView { log_end_offset: 120, commits: 14, commit_micros: 1_008_000, ..view };
        let text = metrics.scrape().unwrap();
        for line in [
            "kafka_server_raftmetrics_current_state{current_state=\"leader\"} 1",
            "kafka_server_raftmetrics_current_leader 1",
            "kafka_server_raftmetrics_current_vote -1",
            "kafka_server_raftmetrics_append_records_rate 2\n",
            "kafka_server_raftmetrics_commit_latency_avg 2\n",
            "kafka_controller_kafkacontroller_metadataerrorcount 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
