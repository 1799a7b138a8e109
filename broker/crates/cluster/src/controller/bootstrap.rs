//! What a new cluster begins with: the features and their levels (Kafka: Feature, ActivationRecordsGenerator).

use super::{Command, Controller, Decision};
use crate::ResourceKind;
use crate::image::METADATA_VERSION;
use crate::records::{
    BeginTransactionRecord, ConfigRecord, EndTransactionRecord, FeatureLevelRecord, Record, SupportedFeature,
};

/// A feature and the levels that this program works at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureRange {
    /// Kafka's name.
    pub name: &'static str,
    /// Lowest level.
    pub min: i16,
    /// Highest level, which is also the level that a new cluster begins with.
    pub max: i16,
}

/// Name of the feature by which voters are kept in the log; its level lives in the raft log, not in metadata records.
pub const KRAFT_VERSION: &str = "kraft.version";

pub(super) const ELR_VERSION: &str = "eligible.leader.replicas.version";

/// The features of Kafka 4.4 in the order of its bootstrap records; metadata.version 7 is 3.3-IV3, 33 is 4.4-IV2.
pub const SUPPORTED_FEATURES: &[FeatureRange] = &[
    FeatureRange { name: METADATA_VERSION, min: 7, max: 33 },
    FeatureRange { name: ELR_VERSION, min: 0, max: 1 },
    FeatureRange { name: "group.version", min: 0, max: 1 },
    FeatureRange { name: KRAFT_VERSION, min: 0, max: 1 },
    FeatureRange { name: "share.version", min: 0, max: 2 },
    FeatureRange { name: "streams.version", min: 0, max: 1 },
    FeatureRange { name: "transaction.version", min: 0, max: 2 },
];

impl FeatureRange {
    /// As a node's registration carries it.
    pub fn to_supported(self) -> SupportedFeature {
        SupportedFeature {
            name: self.name.to_owned(),
            min_supported_version: self.min,
            max_supported_version: self.max,
        }
    }
}

/// The records that formatting writes for a new cluster.
pub fn bootstrap_records() -> Vec<Record> {
    let in_records = SUPPORTED_FEATURES.iter().filter(|feature| feature.name != KRAFT_VERSION);
    in_records
        .map(|feature| FeatureLevelRecord { name: feature.name.to_owned(), feature_level: feature.max }.into())
        .collect()
}

/// The first decision of a controller. On an empty log it writes the bootstrap records, in one transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Activate {
    /// Contents of the bootstrap snapshot.
    pub bootstrap: Vec<Record>,
}

impl Command for Activate {
    type Answer = ();

    fn decide(&self, on: &Controller<'_>) -> Decision<()> {
        if on.image.feature(METADATA_VERSION).is_some() {
            return Decision::unchanged(());
        }
        let begin = BeginTransactionRecord { name: Some("Bootstrap records".to_owned()) };
        let mut records: Vec<Record> = vec![begin.into()];
        records.extend(self.bootstrap.iter().cloned());
        let elr = |record: &Record| matches!(record, Record::FeatureLevel(level) if level.name == ELR_VERSION);
        if self.bootstrap.iter().any(elr) {
            // With eligible leader replicas the minimum must be one value for the whole cluster (KIP-966).
            let minimum = on.with_layers(|layers| layers.number("min.insync.replicas")).unwrap_or(1);
            let record = ConfigRecord {
                resource_type: ResourceKind::Broker as i8,
                resource_name: String::new(),
                name: "min.insync.replicas".to_owned(),
                value: Some(minimum.to_string()),
            };
            records.push(record.into());
        }
        records.push(EndTransactionRecord {}.into());
        Decision { records, answer: () }
    }
}
