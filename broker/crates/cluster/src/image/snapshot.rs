//! The records that a snapshot holds for an image, in Kafka's order (Kafka: MetadataImage.write): features first, so
//! that a reader knows the metadata.version before anything else.

use base::{NodeId, PartitionIndex};

use super::{METADATA_VERSION, MetadataImage};
use crate::records::{
    ClientQuotaRecord, ConfigRecord, FeatureLevelRecord, ProducerIdsRecord, QuotaEntity, Record, TopicRecord,
};

impl MetadataImage {
    /// Records that make this image out of an empty one.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.feature_records()
            .chain(self.brokers.values().map(|broker| broker.to_record().into()))
            .chain(self.controllers.values().map(|controller| controller.to_record().into()))
            .chain(self.topic_records())
            .chain(self.config_records())
            .chain(self.quota_records())
            .chain(self.producer_id_record())
            .chain(self.acls.values().map(|acl| Record::AccessControlEntry((**acl).clone())))
            .chain(self.scram.values().map(|credential| Record::UserScramCredential((**credential).clone())))
            .chain(self.delegation_tokens.values().map(|token| Record::DelegationToken((**token).clone())))
    }

    fn feature_records(&self) -> impl Iterator<Item = Record> {
        let first = self.features.get_key_value(METADATA_VERSION);
        let rest = self.features.iter().filter(|(name, _)| &***name != METADATA_VERSION);
        first
            .into_iter()
            .chain(rest)
            .map(|(name, level)| FeatureLevelRecord { name: name.to_string(), feature_level: *level }.into())
    }

    fn topic_records(&self) -> impl Iterator<Item = Record> {
        self.topics.values().flat_map(|topic| {
            let head = TopicRecord { name: topic.name.to_string(), topic_id: topic.id };
            let partitions = topic.partitions().iter().enumerate();
            std::iter::once(head.into())
                .chain(partitions.map(|(i, partition)| partition.to_record(topic.id, i as PartitionIndex).into()))
        })
    }

    fn config_records(&self) -> impl Iterator<Item = Record> {
        self.configs.iter().flat_map(|(resource, configs)| {
            configs.iter().map(|(name, value)| {
                let record = ConfigRecord {
                    resource_type: resource.kind as i8,
                    resource_name: resource.name.to_string(),
                    name: name.to_string(),
                    value: Some(value.to_string()),
                };
                record.into()
            })
        })
    }

    fn quota_records(&self) -> impl Iterator<Item = Record> {
        self.client_quotas.iter().flat_map(|(key, quotas)| {
            let part = |(entity_type, name): &(std::sync::Arc<str>, Option<std::sync::Arc<str>>)| QuotaEntity {
                entity_type: entity_type.to_string(),
                entity_name: name.as_deref().map(str::to_owned),
            };
            let entity: Vec<QuotaEntity> = key.iter().map(part).collect();
            quotas.iter().map(move |(name, value)| {
                let record =
                    ClientQuotaRecord { entity: entity.clone(), key: name.to_string(), value: *value, remove: false };
                record.into()
            })
        })
    }

    fn producer_id_record(&self) -> Option<Record> {
        // Kafka writes the block's owner as unknown: a snapshot remembers only where the next block begins.
        let record =
            ProducerIdsRecord { broker_id: NodeId(-1), broker_epoch: -1, next_producer_id: self.next_producer_id };
        (self.next_producer_id > 0).then(|| record.into())
    }
}
