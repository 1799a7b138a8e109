//! The handle of a shard, and how its owner is started.

use std::sync::Arc;
use std::time::Duration;

use base::Clock;
use coordinator::Machine;
use tokio::sync::{mpsc, oneshot, watch};

use super::error::CoordinatorError;
use super::log::ShardLog;
use super::owner::{Message, Owner};
use crate::tasks::Tasks;

/// Commands that may wait for the owner of a shard; whoever comes then waits on its own connection.
const COMMANDS_QUEUED_MAX: usize = 1024;

/// How far a shard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardStatus {
    /// Its log is being read.
    Loading,
    /// It answers.
    Active,
    /// Its log cannot be read; an operator has to look at it.
    Failed,
}

/// The way to a shard. Callers who wait hold one and do not keep the shard loaded by that.
pub struct Shard<M: Machine> {
    messages: mpsc::Sender<Message<M>>,
    status: watch::Receiver<ShardStatus>,
}

impl<M: Machine> Clone for Shard<M> {
    fn clone(&self) -> Self {
        Shard { messages: self.messages.clone(), status: self.status.clone() }
    }
}

/// Keeps a shard loaded; dropping it unloads the shard and lets everybody go who waits for an answer.
pub struct ShardOwnership {
    _released: oneshot::Sender<()>,
}

/// Starts the owner of a shard, which loads the log and then answers. `machine` makes an empty machine; it is called again
/// when the shard has to be loaded anew.
pub fn start_shard<M: Machine, L: ShardLog>(
    tasks: &Tasks,
    name: String,
    log: Arc<L>,
    machine: impl Fn() -> M + Send + 'static,
    clock: Arc<dyn Clock>,
) -> (Shard<M>, ShardOwnership) {
    let (messages, received) = mpsc::channel(COMMANDS_QUEUED_MAX);
    let (status_sender, status) = watch::channel(ShardStatus::Loading);
    let (owned, released) = oneshot::channel();
    let owner = Owner::new(name, log, machine, clock, received, status_sender);
    let mut stop = tasks.stop_signal();
    tasks.spawn_owner("coordinator shard", async move {
        tokio::select! {
            () = owner.run() => {}
            _ = released => {}
            () = stop.stopped() => {}
        }
    });
    (Shard { messages, status }, ShardOwnership { _released: owned })
}

/// A command that the owner has, whose answer is not here yet.
pub struct Asked<M: Machine>(oneshot::Receiver<Result<M::Answer, CoordinatorError>>);

impl<M: Machine> Asked<M> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// The shard was unloaded, or could not store what it decided.
    pub async fn answer(self) -> Result<M::Answer, CoordinatorError> {
        self.0.await.map_err(|_| CoordinatorError::NotCoordinator)?
    }
}

impl<M: Machine> Shard<M> {
    /// How far the shard is.
    pub fn status(&self) -> ShardStatus {
        *self.status.borrow()
    }

    /// Waits until the shard answers or has failed to load.
    pub async fn loaded(&self) -> ShardStatus {
        let mut status = self.status.clone();
        match status.wait_for(|status| *status != ShardStatus::Loading).await {
            Ok(status) => *status,
            Err(_) => ShardStatus::Failed,
        }
    }

    /// Gives a command and waits for its answer, however long the machine parks it.
    ///
    /// # Errors
    /// The shard is not loaded, was unloaded, or could not store what it decided.
    pub async fn call(&self, command: M::Command) -> Result<M::Answer, CoordinatorError> {
        self.begin(command).await?.answer().await
    }

    /// Gives a command; the answer is waited for apart, so that several shards can be asked at once.
    ///
    /// # Errors
    /// The shard is not loaded or was unloaded.
    pub async fn begin(&self, command: M::Command) -> Result<Asked<M>, CoordinatorError> {
        self.check()?;
        let (reply, answer) = oneshot::channel();
        let message = Message::Command { command, reply };
        self.messages.send(message).await.map_err(|_| CoordinatorError::NotCoordinator)?;
        Ok(Asked(answer))
    }

    /// Gives a command whose answer nobody needs. Also a shard that is still loading takes it, and carries it out before
    /// anything that is asked later.
    pub async fn post(&self, command: M::Command) {
        let (reply, _) = oneshot::channel();
        // A shard that is gone takes nothing with it that a later load would not find again.
        let _ = self.messages.send(Message::Command { command, reply }).await;
    }

    /// As `call`, for commands that the machine answers at once: gives up when the records are not committed in time
    /// (`offsets.commit.timeout.ms`).
    ///
    /// # Errors
    /// As for `call`, and when the time is over; the command may take effect all the same.
    pub async fn call_within(&self, command: M::Command, limit: Duration) -> Result<M::Answer, CoordinatorError> {
        tokio::time::timeout(limit, self.call(command)).await.unwrap_or(Err(CoordinatorError::NotAvailable))
    }

    /// Looks at the machine as it is now, committed or not; for metrics. Blocks the thread, which must not be one that
    /// answers requests. `None` when the shard is not loaded or too busy to answer within `limit`.
    pub fn inspect_blocking<T: Send + 'static>(
        &self,
        limit: Duration,
        look: impl FnOnce(&M) -> T + Send + 'static,
    ) -> Option<T> {
        self.check().ok()?;
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        let look = Box::new(move |machine: &M| {
            // Whoever asked may have gone.
            let _ = reply.send(look(machine));
        });
        self.messages.try_send(Message::Inspect(look)).ok()?;
        answer.recv_timeout(limit).ok()
    }

    fn check(&self) -> Result<(), CoordinatorError> {
        match self.status() {
            ShardStatus::Active => Ok(()),
            ShardStatus::Loading => Err(CoordinatorError::LoadInProgress),
            ShardStatus::Failed => Err(CoordinatorError::NotCoordinator),
        }
    }
}
