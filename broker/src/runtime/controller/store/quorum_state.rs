//! `quorum-state`: whom this node voted for, or follows, in which epoch. Kafka's JSON at data version 1 (Kafka:
//! FileQuorumStateStore, QuorumStateData.json); data version 0, of clusters with static voters, is read too.

use std::io;
use std::path::Path;

use base::{LeaderEpoch, NodeId};
use cluster::DirectoryId;
use partition_log::disk::{Disk, read_file, replace_file};
use serde::{Deserialize, Serialize};

/// Name of the file.
pub const FILE: &str = "quorum-state";
/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Value of the ids when there is none.
const NOBODY: i32 = -1;

/// The vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuorumState {
    /// The epoch: the raft term.
    pub epoch: LeaderEpoch,
    /// The leader of the epoch, when it is known.
    pub leader: Option<NodeId>,
    /// Whom this node voted for, when it voted.
    pub voted: Option<(NodeId, DirectoryId)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileForm {
    leader_id: i32,
    leader_epoch: i32,
    voted_id: i32,
    #[serde(default = "no_directory")]
    voted_directory_id: String,
    #[serde(rename = "data_version")]
    data_version: i16,
}

fn no_directory() -> String {
    DirectoryId::ZERO.to_string()
}

/// Writes the file; it is on disk when this returns.
pub fn write(disk: &dyn Disk, directory: &Path, state: &QuorumState) -> io::Result<()> {
    let (voted_id, voted_directory) = state.voted.unwrap_or((NodeId(NOBODY), DirectoryId::ZERO));
    let form = FileForm {
        leader_id: state.leader.map_or(NOBODY, |leader| leader.0),
        leader_epoch: state.epoch,
        voted_id: voted_id.0,
        voted_directory_id: voted_directory.to_string(),
        data_version: 1,
    };
    replace_file(disk, &directory.join(FILE), &serde_json::to_vec(&form)?)
}

/// Reads the file; none when the node never took part in an election.
pub fn read(disk: &dyn Disk, directory: &Path) -> io::Result<Option<QuorumState>> {
    let path = directory.join(FILE);
    if disk.metadata(&path)?.is_none() {
        return Ok(None);
    }
    let form: FileForm = serde_json::from_slice(&read_file(disk, &path, FILE_BYTES_MAX)?)?;
    let node = |id: i32| (id != NOBODY).then_some(NodeId(id));
    let directory: DirectoryId = form
        .voted_directory_id
        .parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display())))?;
    Ok(Some(QuorumState {
        epoch: form.leader_epoch,
        leader: node(form.leader_id),
        voted: node(form.voted_id).map(|id| (id, directory)),
    }))
}

#[cfg(test)]
mod tests {
    use partition_log::SimDisk;

    use super::*;

    #[test]
    fn the_vote_survives_and_has_kafkas_fields() {
        let disk = SimDisk::new();
        let directory = Path::new("/log");
        disk.create_dir(directory).unwrap();
        assert_eq!(read(&disk, directory).unwrap(), None);
        let voted = QuorumState { epoch: 7, leader: None, voted: Some((NodeId(2), DirectoryId::ZERO)) };
        write(&disk, directory, &voted).unwrap();
        assert_eq!(read(&disk, directory).unwrap(), Some(voted));
        let leads = QuorumState { epoch: 7, leader: Some(NodeId(1)), voted: None };
        write(&disk, directory, &leads).unwrap();
        let text = read_file(&disk, &directory.join(FILE), 1000).unwrap();
        let expected = r#"{"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#;
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn the_file_of_a_cluster_with_static_voters_is_read() {
        let disk = SimDisk::new();
        let directory = Path::new("/log");
        disk.create_dir(directory).unwrap();
        let kafka = r#"{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}"#;
        replace_file(&disk, &directory.join(FILE), kafka.as_bytes()).unwrap();
        let leads = QuorumState { epoch: 3, leader: Some(NodeId(1)), voted: None };
        assert_eq!(read(&disk, directory).unwrap(), Some(leads));
    }
}
