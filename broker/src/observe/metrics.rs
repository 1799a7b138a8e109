//! The counters of a node: the registry, and what the way of a request counts into.

use std::sync::Arc;
use std::time::Duration;

use base::Clock;
use parking_lot::RwLock;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Registry, TextEncoder};

use super::cluster::Granularity;
use super::connections::{Connections, OpenConnection};
use super::family::{Families, Source};
use super::histogram::{DurationHistogram, FlushSource};
use super::process;
use super::requests::{Requests, Span};
use super::scrub::ScrubCounts;
use super::topics::{TopicMetrics, Topics};
use super::waits::{QueuedRequests, Wait, Waiting, Waits};

/// The scrape could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the metrics cannot be written as text: {0}")]
pub struct ScrapeError(#[from] prometheus::Error);

/// Counters of the node.
pub struct Metrics {
    clock: Arc<dyn Clock>,
    requests: Requests,
    topics: Arc<Topics>,
    connections: Arc<Connections>,
    waits: Arc<Waits>,
    flushes: Arc<DurationHistogram>,
    scrub: Arc<ScrubCounts>,
    sources: RwLock<Vec<Box<dyn Source>>>,
}

impl Metrics {
    /// All counters at zero.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let topics = Arc::new(Topics::default());
        let connections = Arc::new(Connections::default());
        let waits = Arc::new(Waits::default());
        let flushes = Arc::new(DurationHistogram::default());
        let scrub = Arc::new(ScrubCounts::default());
        let sources: Vec<Box<dyn Source>> = vec![
            Box::new(topics.clone()),
            Box::new(connections.clone()),
            Box::new(waits.clone()),
            Box::new(process::IoSource),
            Box::new(scrub.clone()),
            Box::new(FlushSource { times: flushes.clone(), clock: clock.clone() }),
        ];
        let sources = RwLock::new(sources);
        Arc::new(Metrics { clock, requests: Requests::new(), topics, connections, waits, flushes, scrub, sources })
    }

    /// Counters of the named topic, made at the first call. To be called when a partition is opened and kept by it; not
    /// with names that a client made up, for those there is [`Metrics::unknown_topic`].
    pub fn topic(&self, name: &str) -> Arc<TopicMetrics> {
        self.topics.topic(name)
    }

    /// Counters for what happens to topics that this broker does not have. They appear in the sum over all topics only,
    /// so that clients cannot fill the memory with names.
    pub fn unknown_topic(&self) -> &Arc<TopicMetrics> {
        self.topics.others()
    }

    /// The topic was deleted: its series end; the sum over all topics keeps its counts.
    pub fn forget_topic(&self, name: &str) {
        self.topics.forget(name);
    }

    /// A connection of the listener was opened.
    pub fn connection_opened(&self, listener: &Arc<str>) -> OpenConnection {
        self.connections.opened(listener)
    }

    /// Counts the requests of a connection whose turn has not come.
    pub fn queued_requests(&self) -> QueuedRequests {
        self.waits.queued()
    }

    /// A request waits in its handler until what is returned is dropped.
    pub fn wait(&self, wait: Wait) -> Waiting<'_> {
        self.waits.begin(wait)
    }

    /// Times of syncing logs, for those who sync them.
    pub fn flushes(&self) -> &Arc<DurationHistogram> {
        &self.flushes
    }

    /// What the scrub counts into.
    pub fn scrub(&self) -> &Arc<ScrubCounts> {
        &self.scrub
    }

    /// Whether single topics have series of their own (`monedula.metrics.topic.granularity`).
    pub fn set_granularity(&self, granularity: Granularity) {
        self.topics.show_sum_only(granularity < Granularity::Topic);
    }

    /// Adds series that are read at every scrape from now on.
    pub fn add_source(&self, source: impl Source) {
        self.sources.write().push(Box::new(source));
    }

    /// A request of the API at `index` of the table begins; `bytes` is the size of its frame, and `arrived` the monotonic
    /// time of its last byte.
    pub fn request_began(
        self: &Arc<Self>,
        index: usize,
        version: i16,
        bytes: usize,
        arrived: Duration,
    ) -> RequestTimer {
        self.requests.began(index, version, bytes);
        let began = self.clock.monotonic();
        RequestTimer { metrics: self.clone(), index, arrived, began, handled: began, waited: Duration::ZERO }
    }

    /// An answer of the API at `index` of the table carries `code`; 0 is counted too.
    pub fn answered_with(&self, index: usize, code: i16) {
        self.requests.answered_with(index, code);
    }

    /// Everything, in the text format of Prometheus. Walks all partitions and groups: not for a thread that answers
    /// requests.
    ///
    /// # Errors
    /// A source gave a family that the format cannot express.
    pub fn scrape(self: &Arc<Self>) -> Result<String, ScrapeError> {
        let registry = Registry::new();
        registry.register(Box::new(Everything::new(self.clone())?))?;
        registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        let mut families = registry.gather();
        process::refine(&mut families);
        Ok(TextEncoder::new().encode_to_string(&families)?)
    }
}

/// Lets crate prometheus gather what the sources have.
struct Everything {
    metrics: Arc<Metrics>,
    desc: Desc,
}

impl Everything {
    fn new(metrics: Arc<Metrics>) -> Result<Self, prometheus::Error> {
        // A collector must describe something; what it collects may have any names.
        let help = "Version of the running program".to_owned();
        let desc = Desc::new("monedula_build_info".to_owned(), help, Vec::new(), Default::default())?;
        Ok(Everything { metrics, desc })
    }
}

impl Collector for Everything {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = Families::default();
        families
            .gauge("monedula_build_info", "Version of the running program")
            .row(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        self.metrics.requests.collect(&*self.metrics.clock, &mut families);
        for source in self.metrics.sources.read().iter() {
            source.collect(&mut families);
        }
        families.into_proto()
    }
}

/// Measures one request from its last byte read to its answer written.
pub struct RequestTimer {
    metrics: Arc<Metrics>,
    index: usize,
    arrived: Duration,
    began: Duration,
    handled: Duration,
    waited: Duration,
}

impl RequestTimer {
    /// The answer is ready and has `bytes`; in its handler the request has waited so long for other clients.
    pub fn handled(&mut self, bytes: usize, waited: Duration) {
        self.handled = self.metrics.clock.monotonic();
        self.waited = waited;
        self.metrics.requests.answered(self.index, bytes);
    }

    /// The answer was handed to the socket at `sent`, where its turn came at `turn`, both in monotonic time.
    pub fn sent(self, turn: Duration, sent: Duration) {
        let requests = &self.metrics.requests;
        requests.took(self.index, Span::Total, sent.saturating_sub(self.arrived));
        requests.took(self.index, Span::Queue, self.began.saturating_sub(self.arrived));
        let in_handler = self.handled.saturating_sub(self.began);
        requests.took(self.index, Span::Local, in_handler.saturating_sub(self.waited));
        requests.took(self.index, Span::Remote, self.waited);
        requests.took(self.index, Span::ResponseQueue, turn.saturating_sub(self.handled));
        requests.took(self.index, Span::Send, sent.saturating_sub(turn));
    }
}

#[cfg(test)]
mod tests {
    use base::ManualClock;

    use super::*;
    use crate::api::{self, TABLE};
    use crate::observe::TopicCounter;

    fn metrics() -> (Arc<ManualClock>, Arc<Metrics>) {
        let clock = Arc::new(ManualClock::at(0));
        (clock.clone(), Metrics::new(clock))
    }

    fn api_versions() -> usize {
        api::entry(18).unwrap().0
    }

    #[test]
    fn a_request_is_counted_by_version_and_timed() {
        let (clock, metrics) = metrics();
        clock.advance_ms(8);
        let mut timer = metrics.request_began(api_versions(), 4, 100, Duration::ZERO);
        clock.advance_ms(40);
        timer.handled(300, Duration::from_millis(30));
        let turn = clock.monotonic() + Duration::from_millis(1);
        clock.advance_ms(2);
        timer.sent(turn, clock.monotonic());
        metrics.answered_with(api_versions(), 0);
        metrics.request_began(api_versions(), 99, 10, Duration::ZERO);
        let text = metrics.scrape().unwrap();
        for line in [
            "kafka_network_requestmetrics_requests_total{request=\"ApiVersions\",version=\"4\"} 1",
            "kafka_network_requestmetrics_requests_total{request=\"ApiVersions\",version=\"unserved\"} 1",
            "kafka_network_requestmetrics_errors_total{request=\"ApiVersions\",error=\"NONE\"} 1",
            "kafka_network_requestmetrics_requestbytes_total{request=\"ApiVersions\"} 110",
            "kafka_network_requestmetrics_responsebytes_total{request=\"ApiVersions\"} 300",
            "kafka_network_requestmetrics_totaltimems_count{request=\"ApiVersions\"} 1",
            "monedula_request_seconds_sum{api=\"ApiVersions\"} 0.05",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        for (span, milliseconds) in [
            ("total", 50),
            ("requestqueue", 8),
            ("local", 10),
            ("remote", 30),
            ("responsequeue", 1),
            ("responsesend", 1),
        ] {
            let series =
                format!("kafka_network_requestmetrics_{span}timems{{request=\"ApiVersions\",quantile=\"0.99\"}} ");
            let value = text.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse::<f64>().unwrap();
            // Quantiles are off by less than an eighth.
            assert!((value / f64::from(milliseconds) - 1.0).abs() < 0.125, "{span}: {value}");
        }
    }

    #[test]
    fn an_api_that_nobody_called_has_no_series() {
        let (_, metrics) = metrics();
        let text = metrics.scrape().unwrap();
        for entry in TABLE {
            assert!(!text.contains(&format!("request=\"{}\"", entry.name)));
        }
    }

    #[test]
    fn topics_and_their_sum_share_one_name() {
        let (_, metrics) = metrics();
        metrics.topic("orders").add(TopicCounter::MessagesIn, 3);
        metrics.topic("bills").add(TopicCounter::MessagesIn, 4);
        metrics.unknown_topic().add(TopicCounter::FailedProduceRequests, 1);
        metrics.forget_topic("bills");
        let text = metrics.scrape().unwrap();
        for line in [
            "kafka_server_brokertopicmetrics_messagesin_total{topic=\"orders\"} 3",
            "kafka_server_brokertopicmetrics_messagesin_total{topic=\"\"} 7",
            "kafka_server_brokertopicmetrics_failedproducerequests_total{topic=\"\"} 1",
            "kafka_server_brokertopicmetrics_invalidmessagecrcrecords_total{topic=\"\"} 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("bills"));
    }

    #[test]
    fn the_process_shows_its_memory_and_its_files() {
        let (_, metrics) = metrics();
        let text = metrics.scrape().unwrap();
        for name in
            ["process_cpu_seconds_total", "process_open_fds", "process_max_fds", "process_resident_memory_bytes"]
        {
            assert!(text.contains(&format!("\n{name} ")), "{name}");
        }
        assert!(text.contains(&format!("monedula_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))));
    }

    #[test]
    fn sources_that_share_a_name_stand_together() {
        struct One(&'static str);
        impl Source for One {
            fn collect(&self, families: &mut Families) {
                families.gauge("kafka_brokers", "Brokers").row(&[("from", self.0)], 1.0);
            }
        }
        let (_, metrics) = metrics();
        metrics.add_source(One("a"));
        metrics.add_source(One("b"));
        let text = metrics.scrape().unwrap();
        assert_eq!(text.matches("# TYPE kafka_brokers gauge").count(), 1);
        assert!(text.contains("kafka_brokers{from=\"a\"} 1") && text.contains("kafka_brokers{from=\"b\"} 1"));
    }
}
