//! What can be asked of one group.

use std::sync::Arc;
use std::time::Duration;

use coordinator::group::command::{
    CommitOffsets, DeleteOffsets, DeletedOffsets, FetchOffsets, FetchedTopic, Heartbeat, Join, JoinRefused, Joined,
    Leave, Left, Sync, Synced,
};
use coordinator::group::{Answer, Command, GroupError, GroupMachine};

use crate::runtime::coordinator::error::CoordinatorError;
use crate::runtime::coordinator::shard::Shard;

/// A group that the session may use. Commands concern this group, whatever group they name.
pub struct GroupHandle {
    shard: Shard<GroupMachine>,
    group_id: Arc<str>,
    commit_timeout: Duration,
}

impl GroupHandle {
    pub(super) fn new(shard: Shard<GroupMachine>, group_id: Arc<str>, commit_timeout: Duration) -> Self {
        GroupHandle { shard, group_id, commit_timeout }
    }

    async fn call(&self, command: Command) -> Result<Answer, CoordinatorError> {
        self.shard.call_within(command, self.commit_timeout).await
    }

    /// JoinGroup; waits until the round is complete.
    ///
    /// # Errors
    /// The shard does not answer.
    pub async fn join(&self, join: Join) -> Result<Result<Joined, JoinRefused>, CoordinatorError> {
        match self.shard.call(Command::Join(Join { group_id: self.group_id.clone(), ..join })).await? {
            Answer::Join(answer) => Ok(answer),
            _ => Err(CoordinatorError::OtherAnswer),
        }
    }

    /// SyncGroup; waits until the leader has brought the assignments.
    ///
    /// # Errors
    /// The shard does not answer.
    pub async fn sync(&self, sync: Sync) -> Result<Result<Synced, GroupError>, CoordinatorError> {
        match self.shard.call(Command::Sync(Sync { group_id: self.group_id.clone(), ..sync })).await? {
            Answer::Sync(answer) => Ok(answer),
            _ => Err(CoordinatorError::OtherAnswer),
        }
    }

    /// Heartbeat.
    ///
    /// # Errors
    /// The shard does not answer.
    pub async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Result<(), GroupError>, CoordinatorError> {
        let heartbeat = Heartbeat { group_id: self.group_id.clone(), ..heartbeat };
        match self.call(Command::Heartbeat(heartbeat)).await? {
            Answer::Heartbeat(answer) => Ok(answer),
            _ => Err(CoordinatorError::OtherAnswer),
        }
    }

    /// LeaveGroup.
    ///
    /// # Errors
    /// The shard does not answer.
    pub async fn leave(&self, leave: Leave) -> Result<Result<Vec<Left>, GroupError>, CoordinatorError> {
        match self.call(Command::Leave(Leave { group_id: self.group_id.clone(), ..leave })).await? {
            Answer::Leave(answer) => Ok(answer),
            _ => Err(CoordinatorError::OtherAnswer),
        }
    }

    /// OffsetCommit.
    ///
    /// # Errors
    /// The shard does not answer.
    pub async fn commit(
        &self,
        commit: CommitOffsets,
    ) -> Result<Result<Vec<Option<GroupError>>, GroupError>, CoordinatorError> {
        let commit = CommitOffsets { group_id: self.group_id.clone(), ..commit };
        match self.call(Command::CommitOffsets(commit)).await? {
            Answer::Commit(answer) => Ok(answer),
            _ => Err(CoordinatorError::OtherAnswer),
        }
    }

    /// OffsetFetch.
    ///
    /// # Errors
    /// The shard does not answer.
    pub async fn fetch(&self, fetch: FetchOffsets) -> Result<Vec<FetchedTopic>, CoordinatorError> {
        let fetch = FetchOffsets { group_id: self.group_id.clone(), ..fetch };
        match self.call(Command::FetchOffsets(fetch)).await? {
            Answer::Fetch(topics) => Ok(topics),
            _ => Err(CoordinatorError::OtherAnswer),
        }
    }

    /// OffsetDelete.
    ///
    /// # Errors
    /// The shard does not answer.
    pub async fn delete_offsets(
        &self,
        delete: DeleteOffsets,
    ) -> Result<Result<Vec<DeletedOffsets>, GroupError>, CoordinatorError> {
        let delete = DeleteOffsets { group_id: self.group_id.clone(), ..delete };
        match self.call(Command::DeleteOffsets(delete)).await? {
            Answer::DeleteOffsets(answer) => Ok(answer),
            _ => Err(CoordinatorError::OtherAnswer),
        }
    }
}
