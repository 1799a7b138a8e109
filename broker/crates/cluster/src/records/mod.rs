//! The records of the cluster metadata log in Kafka's schemas (Kafka: metadata/src/main/resources/common/metadata) and
//! the frame that carries them (Kafka: MetadataRecordSerde): frame version 1, record kind, version, body.

pub mod control;
pub mod nodes;
pub mod security;
pub mod topics;

pub use nodes::*;
pub use security::*;
pub use topics::*;

use crate::wire::{DecodeError, Field, put_uvarint, take_uvarint};

/// The only frame version there is.
const FRAME_VERSION: u32 = 1;

macro_rules! record_kinds {
    ($( $kind:literal $variant:ident($body:ident) $highest:literal )*) => {
        /// A record of the metadata log.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Record {
            $(
                #[doc = concat!("Kind ", $kind, ", versions 0 to ", $highest, ".")]
                $variant($body),
            )*
        }

        impl Record {
            /// Kafka's api key of the record.
            pub fn kind(&self) -> u32 {
                match self { $( Record::$variant(_) => $kind, )* }
            }

            /// The highest version of the record's kind.
            pub fn highest_version(&self) -> u16 {
                match self { $( Record::$variant(_) => $highest, )* }
            }

            fn put_body(&self, version: u16, out: &mut Vec<u8>) {
                match self { $( Record::$variant(body) => body.put(version, out), )* }
            }

            fn take_body(kind: u32, version: u32, buf: &mut &[u8]) -> Result<Self, DecodeError> {
                match kind {
                    $( $kind => {
                        let known = u16::try_from(version).ok().filter(|version| *version <= $highest);
                        let version = known.ok_or(DecodeError::UnknownVersion { kind, version, highest: $highest })?;
                        Ok(Record::$variant(Field::take(version, buf)?))
                    } )*
                    unknown => Err(DecodeError::UnknownKind(unknown)),
                }
            }
        }

        $( impl From<$body> for Record {
            fn from(body: $body) -> Self { Record::$variant(body) }
        } )*
    };
}

record_kinds! {
    0 RegisterBroker(RegisterBrokerRecord) 4
    1 UnregisterBroker(UnregisterBrokerRecord) 0
    2 Topic(TopicRecord) 0
    3 Partition(PartitionRecord) 2
    4 Config(ConfigRecord) 0
    5 PartitionChange(PartitionChangeRecord) 2
    7 FenceBroker(FenceBrokerRecord) 0
    8 UnfenceBroker(UnfenceBrokerRecord) 0
    9 RemoveTopic(RemoveTopicRecord) 0
    10 DelegationToken(DelegationTokenRecord) 0
    11 UserScramCredential(UserScramCredentialRecord) 0
    12 FeatureLevel(FeatureLevelRecord) 0
    14 ClientQuota(ClientQuotaRecord) 0
    15 ProducerIds(ProducerIdsRecord) 0
    17 BrokerRegistrationChange(BrokerRegistrationChangeRecord) 3
    18 AccessControlEntry(AccessControlEntryRecord) 0
    19 RemoveAccessControlEntry(RemoveAccessControlEntryRecord) 0
    20 NoOp(NoOpRecord) 0
    21 ZkMigrationState(ZkMigrationStateRecord) 0
    22 RemoveUserScramCredential(RemoveUserScramCredentialRecord) 0
    23 BeginTransaction(BeginTransactionRecord) 0
    24 EndTransaction(EndTransactionRecord) 0
    25 AbortTransaction(AbortTransactionRecord) 0
    26 RemoveDelegationToken(RemoveDelegationTokenRecord) 0
    27 RegisterController(RegisterControllerRecord) 0
    28 ClearElr(ClearElrRecord) 0
    29 UnregisterController(UnregisterControllerRecord) 0
}

impl Record {
    /// The version at which this node writes the record: the highest, as at metadata.version 4.4, but for a change of a
    /// registration, where Kafka writes the lowest that holds the change.
    pub fn version(&self) -> u16 {
        match self {
            Record::BrokerRegistrationChange(change) => change.lowest_version(),
            record => record.highest_version(),
        }
    }

    /// Appends the record's frame, which is the value of a record of the log.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_at(self.version(), out);
    }

    /// Appends the record's frame at a version that need not be the one that this node writes.
    pub fn encode_at(&self, version: u16, out: &mut Vec<u8>) {
        put_uvarint(FRAME_VERSION, out);
        put_uvarint(self.kind(), out);
        put_uvarint(u32::from(version), out);
        self.put_body(version, out);
    }

    /// Reads a frame.
    pub fn decode(frame: &[u8]) -> Result<Self, DecodeError> {
        let mut rest = frame;
        let frame_version = take_uvarint(&mut rest)?;
        if frame_version != FRAME_VERSION {
            return Err(DecodeError::UnknownFrame(frame_version));
        }
        let kind = take_uvarint(&mut rest)?;
        let version = take_uvarint(&mut rest)?;
        let record = Record::take_body(kind, version, &mut rest)?;
        if rest.is_empty() { Ok(record) } else { Err(DecodeError::TrailingBytes(rest.len())) }
    }
}
