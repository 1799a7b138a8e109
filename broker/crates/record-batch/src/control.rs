//! Keys and values of the control records that end transactions. Other control records (KRaft's) only need their type.

/// Type of a control record: the second 16-bit number of its key (Kafka: ControlRecordType).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControlRecordType {
    /// The transaction's records do not count.
    Abort,
    /// The transaction's records count.
    Commit,
    /// A raft leader's first record.
    LeaderChange,
    /// First record of a snapshot.
    SnapshotHeader,
    /// Last record of a snapshot.
    SnapshotFooter,
    /// Version of the raft protocol.
    KraftVersion,
    /// The set of raft voters.
    KraftVoters,
}

impl ControlRecordType {
    /// The number that stands in the key.
    pub fn id(self) -> i16 {
        match self {
            ControlRecordType::Abort => 0,
            ControlRecordType::Commit => 1,
            ControlRecordType::LeaderChange => 2,
            ControlRecordType::SnapshotHeader => 3,
            ControlRecordType::SnapshotFooter => 4,
            ControlRecordType::KraftVersion => 5,
            ControlRecordType::KraftVoters => 6,
        }
    }

    /// The type of a number; `None` for one that is not known here.
    pub fn from_id(id: i16) -> Option<ControlRecordType> {
        match id {
            0 => Some(ControlRecordType::Abort),
            1 => Some(ControlRecordType::Commit),
            2 => Some(ControlRecordType::LeaderChange),
            3 => Some(ControlRecordType::SnapshotHeader),
            4 => Some(ControlRecordType::SnapshotFooter),
            5 => Some(ControlRecordType::KraftVersion),
            6 => Some(ControlRecordType::KraftVoters),
            _ => None,
        }
    }

    /// The record key: version 0 and the type.
    pub fn key(self) -> [u8; 4] {
        let [high, low] = self.id().to_be_bytes();
        [0, 0, high, low]
    }

    /// Reads a record key. Later versions only append, so any version from 0 on is read (Kafka: ControlRecordType.parse).
    pub fn parse_key(key: &[u8]) -> Option<ControlRecordType> {
        let head = key.first_chunk::<4>()?;
        let version = i16::from_be_bytes([head[0], head[1]]);
        if version < 0 {
            return None;
        }
        ControlRecordType::from_id(i16::from_be_bytes([head[2], head[3]]))
    }
}

/// Value of a commit or abort marker, version 0: the epoch of the transaction coordinator (Kafka: EndTransactionMarker).
pub fn end_txn_marker_value(coordinator_epoch: i32) -> [u8; 6] {
    let [a, b, c, d] = coordinator_epoch.to_be_bytes();
    [0, 0, a, b, c, d]
}

/// The coordinator epoch in the value of a commit or abort marker; `None` if the value is no such thing.
pub fn parse_end_txn_marker(value: &[u8]) -> Option<i32> {
    let head = value.first_chunk::<6>()?;
    let version = i16::from_be_bytes([head[0], head[1]]);
    (version >= 0).then(|| i32::from_be_bytes([head[2], head[3], head[4], head[5]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_survive_their_bytes() {
        for id in 0..7 {
            let kind = ControlRecordType::from_id(id).unwrap();
            assert_eq!(ControlRecordType::parse_key(&kind.key()), Some(kind));
        }
        assert_eq!(ControlRecordType::Commit.key(), [0, 0, 0, 1]);
        assert_eq!(ControlRecordType::from_id(7), None);
        assert_eq!(ControlRecordType::parse_key(&[0xff, 0xff, 0, 0]), None);
        assert_eq!(parse_end_txn_marker(&end_txn_marker_value(77)), Some(77));
        assert_eq!(parse_end_txn_marker(&[0; 5]), None);
    }
}
