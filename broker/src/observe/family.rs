//! Metric families as they are put together at a scrape, and the seam through which other parts add theirs.

use std::collections::BTreeMap;

use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

/// Something that has series to show. It is asked at every scrape, on a thread that may take its time but must not wait
/// for an owner of state: it reads published views.
pub trait Source: Send + Sync + 'static {
    /// Appends the families as they are now. A family without rows is left out of the answer.
    fn collect(&self, families: &mut Families);
}

/// The families of one scrape, by their names.
#[derive(Default)]
pub struct Families(BTreeMap<&'static str, Family>);

/// One metric name with its rows.
pub struct Family {
    help: &'static str,
    kind: MetricType,
    rows: Vec<Metric>,
}

impl Families {
    /// The family of that name, whose values only grow (and start at zero again with the process).
    pub fn counter(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.named(name, help, MetricType::COUNTER)
    }

    /// The family of that name, whose values rise and fall.
    pub fn gauge(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.named(name, help, MetricType::GAUGE)
    }

    /// Sources may meet in one name; their rows then stand together, as the text format demands.
    fn named(&mut self, name: &'static str, help: &'static str, kind: MetricType) -> &mut Family {
        self.0.entry(name).or_insert_with(|| Family { help, kind, rows: Vec::new() })
    }

    /// In the form of crate prometheus.
    pub(super) fn into_proto(self) -> Vec<MetricFamily> {
        self.0.into_iter().filter(|(_, family)| !family.rows.is_empty()).map(|(name, f)| f.into_proto(name)).collect()
    }
}

impl Family {
    /// Adds the value of one set of labels. The labels of all rows of a family have the same names and order.
    pub fn row(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        let pairs = labels.iter().map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).to_owned());
            pair.set_value((*value).to_owned());
            pair
        });
        let mut metric = Metric::from_label(pairs.collect());
        if self.kind == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        self.rows.push(metric);
        self
    }

    fn into_proto(self, name: &str) -> MetricFamily {
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(self.help.to_owned());
        family.set_field_type(self.kind);
        family.set_metric(self.rows);
        family
    }
}
