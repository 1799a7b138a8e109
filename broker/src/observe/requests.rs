//! Counters and times of requests, one set for each row of the table of APIs (Kafka: RequestMetrics). A set is made
//! when its API is first used, so that the APIs that nobody calls cost a pointer each.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::Clock;

use super::family::Families;
use super::histogram::{DurationHistogram, Snapshot};
use crate::api::{Entry, TABLE};

/// Names of Kafka's error codes, one a line, from code -1 on (Kafka: Errors).
const ERROR_NAMES: &str = include_str!("data/errors.txt");
/// Codes told apart: -1 to 254. Kafka 4.4 knows them up to 136.
const ERROR_CODES: usize = 256;
/// Quantiles shown, with their label as the rules of the JMX exporter write it.
pub(super) const QUANTILES: [(f64, &str); 6] =
    [(0.50, "0.50"), (0.75, "0.75"), (0.95, "0.95"), (0.98, "0.98"), (0.99, "0.99"), (0.999, "0.999")];

/// Where the time of a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// From its last byte read to its answer handed to the socket.
    Total,
    /// From its last byte read to its turn on its connection.
    Queue,
    /// In the handler, waits for the log included, those of `Remote` not.
    Local,
    /// In the handler, waiting for what other clients do: records to fetch, members of a group.
    Remote,
    /// From the answer ready, waiting for earlier answers of the connection, to its turn on the socket.
    ResponseQueue,
    /// From its turn on the socket to handed to it.
    Send,
}

/// Names of the quantiles and of their count, and help.
const SPANS: [(Span, &str, &str, &str); 6] = [
    (
        Span::Total,
        "kafka_network_requestmetrics_totaltimems",
        "kafka_network_requestmetrics_totaltimems_count",
        "Milliseconds from request read to answer sent",
    ),
    (
        Span::Queue,
        "kafka_network_requestmetrics_requestqueuetimems",
        "kafka_network_requestmetrics_requestqueuetimems_count",
        "Milliseconds from request read to its turn on its connection",
    ),
    (
        Span::Local,
        "kafka_network_requestmetrics_localtimems",
        "kafka_network_requestmetrics_localtimems_count",
        "Milliseconds in the handler, waits for other clients not included",
    ),
    (
        Span::Remote,
        "kafka_network_requestmetrics_remotetimems",
        "kafka_network_requestmetrics_remotetimems_count",
        "Milliseconds of waiting for what other clients do",
    ),
    (
        Span::ResponseQueue,
        "kafka_network_requestmetrics_responsequeuetimems",
        "kafka_network_requestmetrics_responsequeuetimems_count",
        "Milliseconds from answer ready to its turn on the socket",
    ),
    (
        Span::Send,
        "kafka_network_requestmetrics_responsesendtimems",
        "kafka_network_requestmetrics_responsesendtimems_count",
        "Milliseconds from its turn on the socket to answer sent",
    ),
];

/// Counters of one API.
struct ApiMetrics {
    /// By version; the last place is for versions that are not served.
    requests: Box<[AtomicU64]>,
    errors: Box<[AtomicU64]>,
    request_bytes: AtomicU64,
    response_bytes: AtomicU64,
    spans: [DurationHistogram; SPANS.len()],
}

impl ApiMetrics {
    fn new(entry: &Entry) -> Box<Self> {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect::<Box<[AtomicU64]>>();
        let versions = usize::try_from(entry.versions_served.1).unwrap_or(0) + 2;
        Box::new(ApiMetrics {
            requests: zeros(versions),
            errors: zeros(ERROR_CODES),
            request_bytes: AtomicU64::new(0),
            response_bytes: AtomicU64::new(0),
            spans: Default::default(),
        })
    }
}

/// Counters of all APIs, in the order of the table.
pub(super) struct Requests(Box<[OnceLock<Box<ApiMetrics>>]>);

impl Requests {
    pub(super) fn new() -> Self {
        Requests(TABLE.iter().map(|_| OnceLock::new()).collect())
    }

    fn of(&self, index: usize) -> &ApiMetrics {
        self.0[index].get_or_init(|| ApiMetrics::new(&TABLE[index]))
    }

    pub(super) fn began(&self, index: usize, version: i16, bytes: usize) {
        let api = self.of(index);
        let unserved = api.requests.len() - 1;
        let place = usize::try_from(version).map_or(unserved, |version| version.min(unserved));
        api.requests[place].fetch_add(1, Ordering::Relaxed);
        api.request_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn answered_with(&self, index: usize, code: i16) {
        let place = usize::try_from(i32::from(code) + 1).unwrap_or(0).min(ERROR_CODES - 1);
        self.of(index).errors[place].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, index: usize, bytes: usize) {
        self.of(index).response_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn took(&self, index: usize, span: Span, time: Duration) {
        self.of(index).spans[span as usize].record(time);
    }

    pub(super) fn collect(&self, clock: &dyn Clock, families: &mut Families) {
        let now = clock.monotonic();
        for (entry, metrics) in TABLE.iter().zip(&self.0) {
            let Some(metrics) = metrics.get() else { continue };
            collect_counts(entry, metrics, families);
            for (span, name, count_name, help) in SPANS {
                let snapshot = metrics.spans[span as usize].snapshot(now);
                for label in labels_of(entry) {
                    let family = families.gauge(name, help);
                    for (quantile, text) in QUANTILES {
                        family.row(&[("request", label), ("quantile", text)], snapshot.quantile_ms(quantile));
                    }
                    let help = "Requests measured since the start";
                    families.counter(count_name, help).row(&[("request", label)], snapshot.count as f64);
                }
                if span == Span::Total {
                    collect_native(entry, &snapshot, families);
                }
            }
        }
    }
}

/// Kafka shows fetches in all, and those of consumers apart from those of followers. A node without followers has the
/// first two alike.
fn labels_of(entry: &Entry) -> &[&'static str] {
    if entry.name == "Fetch" { &["Fetch", "FetchConsumer"] } else { std::slice::from_ref(&entry.name) }
}

fn collect_counts(entry: &Entry, metrics: &ApiMetrics, families: &mut Families) {
    let unserved = metrics.requests.len() - 1;
    for (version, count) in metrics.requests.iter().enumerate() {
        let count = count.load(Ordering::Relaxed);
        if count > 0 {
            let version = if version == unserved { "unserved".to_owned() } else { version.to_string() };
            families
                .counter("kafka_network_requestmetrics_requests_total", "Requests read")
                .row(&[("request", entry.name), ("version", &version)], count as f64);
        }
    }
    for (place, count) in metrics.errors.iter().enumerate() {
        let count = count.load(Ordering::Relaxed);
        if count > 0 {
            families
                .counter("kafka_network_requestmetrics_errors_total", "Error codes in answers, NONE included")
                .row(&[("request", entry.name), ("error", error_name(place))], count as f64);
        }
    }
    for (name, help, bytes) in [
        ("kafka_network_requestmetrics_requestbytes_total", "Bytes of requests read", &metrics.request_bytes),
        ("kafka_network_requestmetrics_responsebytes_total", "Bytes of answers sent", &metrics.response_bytes),
    ] {
        families.counter(name, help).row(&[("request", entry.name)], bytes.load(Ordering::Relaxed) as f64);
    }
}

/// Without quantiles: count and sum, from which any mean follows.
fn collect_native(entry: &Entry, snapshot: &Snapshot, families: &mut Families) {
    let labels = [("api", entry.name)];
    families
        .counter("monedula_request_seconds_sum", "Seconds from request read to answer sent, summed")
        .row(&labels, snapshot.sum_micros as f64 / 1e6);
    families.counter("monedula_request_seconds_count", "Requests answered").row(&labels, snapshot.count as f64);
}

fn error_name(place: usize) -> &'static str {
    ERROR_NAMES.lines().nth(place).unwrap_or("UNKNOWN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_have_kafkas_names() {
        for (code, name) in [
            (-1, "UNKNOWN_SERVER_ERROR"),
            (0, "NONE"),
            (35, "UNSUPPORTED_VERSION"),
            (136, "CONTROLLER_ID_NOT_REGISTERED"),
            (137, "UNKNOWN"),
        ] {
            assert_eq!(error_name((code + 1) as usize), name);
        }
    }

    #[test]
    fn a_span_is_recorded_under_its_own_name() {
        for (index, (span, ..)) in SPANS.iter().enumerate() {
            assert_eq!(*span as usize, index);
        }
    }
}
