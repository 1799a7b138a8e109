//! The state of the node as probes and dashboards ask for it (Kafka: BrokerState, and the HTTP agent of Strimzi).

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::family::{Families, Source};

/// What the node is doing, with Kafka's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BrokerState {
    /// The process has begun.
    NotRunning = 0,
    /// It reads its directories.
    Starting = 1,
    /// It recovers logs and catches up with the metadata; it is fenced.
    Recovery = 2,
    /// Listeners are open and the controller has unfenced it.
    Running = 3,
    /// It has asked the controller to move leaderships away.
    PendingControlledShutdown = 6,
    /// It closes its logs.
    ShuttingDown = 7,
}

impl BrokerState {
    const ALL: [BrokerState; 6] = [
        BrokerState::NotRunning,
        BrokerState::Starting,
        BrokerState::Recovery,
        BrokerState::Running,
        BrokerState::PendingControlledShutdown,
        BrokerState::ShuttingDown,
    ];

    /// Why a node in this state takes no traffic; `None` if it does.
    pub fn reason_not_ready(self) -> Option<&'static str> {
        match self {
            BrokerState::NotRunning | BrokerState::Starting => Some("the node starts"),
            BrokerState::Recovery => Some("the node recovers its logs and is not yet unfenced"),
            BrokerState::Running => None,
            BrokerState::PendingControlledShutdown => Some("the node hands its leaderships over before it stops"),
            BrokerState::ShuttingDown => Some("the node stops"),
        }
    }
}

/// Published state of the node: written by the server, read by probes.
#[derive(Debug, Default)]
pub struct Health {
    state: AtomicU8,
    logs_to_recover: AtomicU64,
    segments_to_recover: AtomicU64,
}

impl Health {
    /// The node entered `state`.
    pub fn set(&self, state: BrokerState) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// What the node is doing.
    pub fn state(&self) -> BrokerState {
        let number = self.state.load(Ordering::Acquire);
        BrokerState::ALL.into_iter().find(|state| *state as u8 == number).unwrap_or(BrokerState::NotRunning)
    }

    /// Logs and segments that recovery has still to read.
    pub fn set_recovery_left(&self, logs: u64, segments: u64) {
        self.logs_to_recover.store(logs, Ordering::Relaxed);
        self.segments_to_recover.store(segments, Ordering::Relaxed);
    }

    /// The answer of `/v1/broker-state`, as Strimzi's agent gives it.
    pub fn broker_state_json(&self) -> String {
        let state = self.state();
        let number = state as u8;
        if state != BrokerState::Recovery {
            return format!("{{\"brokerState\":{number}}}");
        }
        let logs = self.logs_to_recover.load(Ordering::Relaxed);
        let segments = self.segments_to_recover.load(Ordering::Relaxed);
        format!(
            "{{\"brokerState\":{number},\"recoveryState\":{{\"remainingLogsToRecover\":{logs},\"remainingSegmentsToRecover\":{segments}}}}}"
        )
    }
}

impl Source for std::sync::Arc<Health> {
    fn collect(&self, families: &mut Families) {
        families
            .gauge("kafka_server_kafkaserver_brokerstate", "State of the node: 3 is running")
            .row(&[], f64::from(self.state() as u8));
        families
            .gauge("monedula_log_dir_recovery_segments_remaining", "Segments that recovery has still to read")
            .row(&[], self.segments_to_recover.load(Ordering::Relaxed) as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_kafkas_numbers() {
        let numbers = BrokerState::ALL.map(|state| state as u8);
        assert_eq!(numbers, [0, 1, 2, 3, 6, 7]);
    }

    #[test]
    fn only_a_running_node_is_ready() {
        for state in BrokerState::ALL {
            assert_eq!(state.reason_not_ready().is_none(), state == BrokerState::Running);
        }
    }

    #[test]
    fn recovery_tells_what_is_left() {
        let health = Health::default();
        health.set(BrokerState::Recovery);
        health.set_recovery_left(3, 14);
        let expected =
            r#"{"brokerState":2,"recoveryState":{"remainingLogsToRecover":3,"remainingSegmentsToRecover":14}}"#;
        assert_eq!(health.broker_state_json(), expected);
        health.set(BrokerState::Running);
        assert_eq!(health.broker_state_json(), r#"{"brokerState":3}"#);
    }
}
