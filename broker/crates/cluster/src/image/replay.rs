//! What each record does to the image. Replay is the only way in which an image changes.

use std::sync::Arc;

use base::{NodeId, PartitionIndex, TopicId};

use super::nodes::{BrokerRegistration, ControllerRegistration};
use super::{
    ConfigResource, MetadataDelta, MetadataImage, PartitionImage, ResourceKind, TopicImage, collision_form, quota_key,
};
use crate::records::{
    BrokerRegistrationChangeRecord, ClearElrRecord, ClientQuotaRecord, ConfigRecord, PartitionChangeRecord,
    PartitionRecord, Record, TopicRecord,
};

/// A record that contradicts what came before it. The log is damaged, or this program is wrong: nothing can go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The topic of a partition or a removal does not exist.
    #[error("a record names the topic {0}, which does not exist")]
    UnknownTopic(TopicId),
    /// A topic is created twice.
    #[error("a record creates the topic {name} with the id {id}, which exists")]
    DuplicateTopic {
        /// Name in the record.
        name: String,
        /// Id in the record.
        id: TopicId,
    },
    /// A partition is created out of order, or changed without being there.
    #[error("a record names partition {partition} of the topic {topic}, which has {count} partitions")]
    UnknownPartition {
        /// The topic.
        topic: TopicId,
        /// Index in the record.
        partition: PartitionIndex,
        /// Partitions that the topic has.
        count: usize,
    },
    /// A change names a broker that is not registered, or another registration of it.
    #[error("a record names broker {id} with epoch {epoch}, which is not its registration")]
    UnknownBroker {
        /// The broker.
        id: NodeId,
        /// Epoch in the record.
        epoch: i64,
    },
    /// A setting of a kind of resource that does not exist.
    #[error("a record sets {name} on a resource of the unknown type {code}")]
    UnknownResourceKind {
        /// The type's code.
        code: i8,
        /// The setting.
        name: String,
    },
    /// The end or the abort of a transaction that was not begun, or a begin inside of one.
    #[error("a record begins a transaction inside of one, or ends one that was not begun")]
    UnbalancedTransaction,
}

impl MetadataImage {
    /// Takes one record in and notes in `delta` what it changed. The marks of transactions do nothing here; the `Loader`
    /// knows them.
    pub fn replay(&mut self, record: &Record, delta: &mut MetadataDelta) -> Result<(), ReplayError> {
        match record {
            Record::Topic(record) => self.replay_topic(record, delta)?,
            Record::Partition(record) => self.replay_partition(record, delta)?,
            Record::PartitionChange(record) => self.replay_partition_change(record, delta)?,
            Record::RemoveTopic(record) => self.replay_remove_topic(record.topic_id, delta)?,
            Record::ClearElr(record) => self.replay_clear_elr(record, delta)?,
            Record::Config(record) => self.replay_config(record, delta)?,
            Record::RegisterBroker(record) => {
                self.brokers.insert(record.broker_id, Arc::new(BrokerRegistration::from_record(record)));
                delta.brokers_changed.insert(record.broker_id);
            }
            Record::UnregisterBroker(record) => {
                self.registered(record.broker_id, record.broker_epoch)?;
                self.brokers.remove(&record.broker_id);
                delta.brokers_changed.insert(record.broker_id);
            }
            Record::BrokerRegistrationChange(record) => self.replay_broker_change(record, delta)?,
            Record::FenceBroker(record) => self.replay_fencing(record.id, record.epoch, true, delta)?,
            Record::UnfenceBroker(record) => self.replay_fencing(record.id, record.epoch, false, delta)?,
            Record::RegisterController(record) => {
                self.controllers.insert(record.controller_id, Arc::new(ControllerRegistration::from_record(record)));
            }
            Record::UnregisterController(record) => {
                self.controllers.remove(&record.controller_id);
            }
            Record::FeatureLevel(record) => {
                match record.feature_level {
                    0 => self.features.remove(record.name.as_str()),
                    level => self.features.insert(record.name.as_str().into(), level),
                };
                delta.features_changed = true;
            }
            Record::ProducerIds(record) => self.next_producer_id = record.next_producer_id,
            Record::ClientQuota(record) => self.replay_quota(record, delta),
            Record::UserScramCredential(_)
            | Record::RemoveUserScramCredential(_)
            | Record::AccessControlEntry(_)
            | Record::RemoveAccessControlEntry(_)
            | Record::DelegationToken(_)
            | Record::RemoveDelegationToken(_) => self.replay_security(record, delta),
            Record::NoOp(_)
            | Record::ZkMigrationState(_)
            | Record::BeginTransaction(_)
            | Record::EndTransaction(_)
            | Record::AbortTransaction(_) => {}
        }
        Ok(())
    }

    fn replay_topic(&mut self, record: &TopicRecord, delta: &mut MetadataDelta) -> Result<(), ReplayError> {
        let id = record.topic_id;
        if self.topics.contains_key(&id) || self.topic_ids.contains_key(record.name.as_str()) {
            return Err(ReplayError::DuplicateTopic { name: record.name.clone(), id });
        }
        let name: Arc<str> = record.name.as_str().into();
        if let Some(form) = collision_form(&name) {
            self.collisions.insert(form.into(), Arc::clone(&name));
        }
        self.topic_ids.insert(Arc::clone(&name), id);
        self.topics.insert(id, Arc::new(TopicImage { name, id, partitions: Vec::new() }));
        delta.topics_created.insert(id);
        Ok(())
    }

    fn topic_mut(&mut self, id: TopicId) -> Result<&mut TopicImage, ReplayError> {
        self.topics.get_mut(&id).map(Arc::make_mut).ok_or(ReplayError::UnknownTopic(id))
    }

    fn replay_partition(&mut self, record: &PartitionRecord, delta: &mut MetadataDelta) -> Result<(), ReplayError> {
        let (id, index) = (record.topic_id, record.partition_id);
        let topic = self.topic_mut(id)?;
        let count = topic.partitions.len();
        let unknown = || ReplayError::UnknownPartition { topic: id, partition: index, count };
        let place = usize::try_from(index).map_err(|_| unknown())?;
        let before = place.checked_sub(1).and_then(|place| topic.partitions.get(place));
        let partition = PartitionImage::from_record(record, before);
        match place {
            place if place < count => topic.partitions[place] = partition,
            place if place == count => topic.partitions.push(partition),
            _ => return Err(unknown()),
        }
        delta.partitions_changed.insert((id, index));
        Ok(())
    }

    fn replay_partition_change(
        &mut self,
        record: &PartitionChangeRecord,
        delta: &mut MetadataDelta,
    ) -> Result<(), ReplayError> {
        let (id, index) = (record.topic_id, record.partition_id);
        let topic = self.topic_mut(id)?;
        let count = topic.partitions.len();
        let partition = usize::try_from(index).ok().and_then(|place| topic.partitions.get_mut(place));
        partition.ok_or(ReplayError::UnknownPartition { topic: id, partition: index, count })?.apply(record);
        delta.partitions_changed.insert((id, index));
        Ok(())
    }

    fn replay_remove_topic(&mut self, id: TopicId, delta: &mut MetadataDelta) -> Result<(), ReplayError> {
        let topic = self.topics.remove(&id).ok_or(ReplayError::UnknownTopic(id))?;
        self.topic_ids.remove(&topic.name);
        if let Some(form) = collision_form(&topic.name) {
            self.collisions.remove(form.as_str());
        }
        self.configs.remove(&ConfigResource::topic(Arc::clone(&topic.name)));
        delta.topic_deleted(topic);
        Ok(())
    }

    fn replay_clear_elr(&mut self, record: &ClearElrRecord, delta: &mut MetadataDelta) -> Result<(), ReplayError> {
        let ids: Vec<TopicId> = match record.topic_name.as_str() {
            "" => self.topics.keys().copied().collect(),
            name => self.topic_ids.get(name).copied().into_iter().collect(),
        };
        for id in ids {
            for (index, partition) in self.topic_mut(id)?.partitions.iter_mut().enumerate() {
                if partition.clear_elr() {
                    delta.partitions_changed.insert((id, index as PartitionIndex));
                }
            }
        }
        Ok(())
    }

    fn replay_config(&mut self, record: &ConfigRecord, delta: &mut MetadataDelta) -> Result<(), ReplayError> {
        let unknown = || ReplayError::UnknownResourceKind { code: record.resource_type, name: record.name.clone() };
        let kind = ResourceKind::from_code(record.resource_type).ok_or_else(unknown)?;
        let resource = ConfigResource { kind, name: record.resource_name.as_str().into() };
        let configs = self.configs.entry(resource.clone()).or_default();
        match &record.value {
            Some(value) => configs.insert(record.name.as_str().into(), value.as_str().into()),
            None => configs.remove(record.name.as_str()),
        };
        if configs.is_empty() {
            self.configs.remove(&resource);
        }
        delta.configs_changed.insert(resource);
        Ok(())
    }

    fn registered(&mut self, id: NodeId, epoch: i64) -> Result<&mut BrokerRegistration, ReplayError> {
        let broker = self.brokers.get_mut(&id).filter(|broker| broker.epoch == epoch);
        broker.map(Arc::make_mut).ok_or(ReplayError::UnknownBroker { id, epoch })
    }

    fn replay_fencing(
        &mut self,
        id: NodeId,
        epoch: i64,
        fenced: bool,
        delta: &mut MetadataDelta,
    ) -> Result<(), ReplayError> {
        self.registered(id, epoch)?.fenced = fenced;
        delta.brokers_changed.insert(id);
        Ok(())
    }

    fn replay_broker_change(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
        delta: &mut MetadataDelta,
    ) -> Result<(), ReplayError> {
        let broker = self.registered(record.broker_id, record.broker_epoch)?;
        match record.fenced {
            0 => {}
            code => broker.fenced = code > 0,
        }
        if record.in_controlled_shutdown > 0 {
            broker.in_controlled_shutdown = true;
        }
        if !record.log_dirs.is_empty() {
            broker.log_dirs.clone_from(&record.log_dirs);
        }
        if record.cordoned_log_dirs.is_some() {
            broker.cordoned_log_dirs.clone_from(&record.cordoned_log_dirs);
        }
        delta.brokers_changed.insert(record.broker_id);
        Ok(())
    }

    fn replay_quota(&mut self, record: &ClientQuotaRecord, delta: &mut MetadataDelta) {
        let key = quota_key(&record.entity);
        let quotas = self.client_quotas.entry(key.clone()).or_default();
        if record.remove {
            quotas.remove(record.key.as_str());
        } else {
            quotas.insert(record.key.as_str().into(), record.value);
        }
        if quotas.is_empty() {
            self.client_quotas.remove(&key);
        }
        delta.security_changed = true;
    }

    fn replay_security(&mut self, record: &Record, delta: &mut MetadataDelta) {
        match record {
            Record::UserScramCredential(record) => {
                self.scram.insert((record.name.as_str().into(), record.mechanism), Arc::new(record.clone()));
            }
            Record::RemoveUserScramCredential(record) => {
                self.scram.remove(&(record.name.as_str().into(), record.mechanism));
            }
            Record::AccessControlEntry(record) => {
                self.acls.insert(record.id, Arc::new(record.clone()));
            }
            Record::RemoveAccessControlEntry(record) => {
                self.acls.remove(&record.id);
            }
            Record::DelegationToken(record) => {
                self.delegation_tokens.insert(record.token_id.as_str().into(), Arc::new(record.clone()));
            }
            Record::RemoveDelegationToken(record) => {
                self.delegation_tokens.remove(record.token_id.as_str());
            }
            _ => return,
        }
        delta.security_changed = true;
    }
}
