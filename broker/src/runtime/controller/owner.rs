//! The controller's owner: one task that takes commands in turn, decides each on the metadata that all decisions before
//! it will make, hands the records to the quorum, and lets the answer out when they are applied. It does not wait for one
//! command's records before it decides the next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::{Clock, NodeId, Offset};
use cluster::controller::{Activate, Command, Controller, Decision};
use cluster::image::MetadataDelta;
use cluster::{MetadataImage, Record};
use tokio::sync::{mpsc, oneshot};

use super::ControllerError;
use super::consensus::{Consensus, Leadership, Proposed, QuorumCounters};
use super::snapshots::{SinceSnapshot, SnapshotRule};
use crate::tasks::{StopSignal, Tasks};

/// Commands that may wait for the owner.
pub const COMMAND_QUEUE_LEN: usize = 1_024;
/// Decided commands that may wait for their records to be applied.
const UNDER_WAY_MAX: usize = 1_024;

/// Tells a caller how its command ended.
type Finish = Box<dyn FnOnce(Result<(), ControllerError>) + Send>;
/// A command, ready to be decided.
type Job = Box<dyn FnOnce(&Controller<'_>) -> (Vec<Record>, Finish) + Send>;

/// What the owner is asked.
pub enum Message {
    /// Decide a command.
    Run {
        /// Decides it.
        job: Job,
        /// Hears of a refusal before the decision.
        refuse: Finish,
    },
    /// Leave the quorum.
    Shutdown(oneshot::Sender<()>),
}

/// A message that runs `command`, and where its answer comes out.
pub fn message<C>(command: C) -> (Message, oneshot::Receiver<Result<C::Answer, ControllerError>>)
where
    C: Command + Send + 'static,
    C::Answer: Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    let reply = Arc::new(parking_lot::Mutex::new(Some(reply)));
    let refused = reply.clone();
    let job: Job = Box::new(move |controller| {
        let Decision { records, answer } = command.decide(controller);
        let finish: Finish = Box::new(move |outcome| {
            if let Some(reply) = reply.lock().take() {
                // A caller that gave up is told nothing.
                let _ = reply.send(outcome.map(|()| answer));
            }
        });
        (records, finish)
    });
    let refuse: Finish = Box::new(move |outcome| {
        if let (Some(reply), Err(error)) = (refused.lock().take(), outcome) {
            let _ = reply.send(Err(error));
        }
    });
    (Message::Run { job, refuse }, answer)
}

/// What the owner works with.
pub struct OwnerSettings {
    /// The node.
    pub node_id: NodeId,
    /// What the node was started with; defaults for topics come from here.
    pub settings: Arc<BTreeMap<String, String>>,
    /// What a new cluster begins with.
    pub bootstrap: Vec<Record>,
    /// When snapshots are made.
    pub snapshots: SnapshotRule,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// A decided command whose records are under way.
struct UnderWay {
    proposed: Option<Proposed>,
    finish: Finish,
}

/// The metadata that decisions are made on: what is applied, and what is under way on top of it.
struct Ahead {
    image: MetadataImage,
    next_offset: Offset,
}

struct Owner<Q> {
    settings: OwnerSettings,
    quorum: Arc<Q>,
    counters: Arc<QuorumCounters>,
    under_way: mpsc::Sender<UnderWay>,
    /// None while this node does not lead, and after a failure until what is under way has ended.
    ahead: Option<Ahead>,
    /// Monotonic time at which the last snapshot was begun.
    snapshot_at: Duration,
}

/// Starts the owner.
pub fn start<Q: Consensus>(settings: OwnerSettings, quorum: Arc<Q>, tasks: &Tasks) -> mpsc::Sender<Message> {
    let (messages, inbox) = mpsc::channel(COMMAND_QUEUE_LEN);
    let (under_way, ending) = mpsc::channel(UNDER_WAY_MAX);
    let (failures, failed) = mpsc::channel(1);
    tasks.spawn_owner("controller-answers", finish_in_order(ending, failures));
    let snapshot_at = settings.clock.monotonic();
    let counters = quorum.counters();
    let owner = Owner { settings, quorum, counters, under_way, ahead: None, snapshot_at };
    tasks.spawn_owner("controller", owner.run(inbox, failed, tasks.stop_signal()));
    messages
}

/// Lets answers out in the order in which their commands were decided, so that an answer that changes nothing cannot
/// tell of records that never come.
async fn finish_in_order(mut ending: mpsc::Receiver<UnderWay>, failures: mpsc::Sender<()>) {
    let mut last = Ok(());
    while let Some(UnderWay { proposed, finish }) = ending.recv().await {
        last = match proposed {
            Some(proposed) => proposed.await.map(|_| ()),
            None => last,
        };
        if last.is_err() {
            // One notice is enough: the owner begins again with what is applied.
            let _ = failures.try_send(());
        }
        finish(last.clone());
    }
}

impl<Q: Consensus> Owner<Q> {
    async fn run(mut self, mut inbox: mpsc::Receiver<Message>, mut failed: mpsc::Receiver<()>, mut stop: StopSignal) {
        let mut leadership = self.quorum.leadership();
        let mut now = *leadership.borrow_and_update();
        let mut images = self.quorum.image();
        let mut applies = true;
        while !now.failed {
            self.follow(now).await;
            let tick = tokio::time::sleep(self.snapshot_check());
            tokio::select! {
                biased;
                () = stop.stopped() => break,
                changed = leadership.changed() => match changed {
                    Ok(()) => now = *leadership.borrow_and_update(),
                    Err(_) => break,
                },
                _ = failed.recv() => self.ahead = None,
                message = inbox.recv() => match message {
                    Some(Message::Run { job, refuse }) => self.decide(job, refuse).await,
                    Some(Message::Shutdown(done)) => {
                        self.quorum.shutdown().await;
                        let _ = done.send(());
                        return;
                    }
                    None => break,
                },
                changed = images.changed(), if applies => applies = changed.is_ok(),
                () = tick => {}
            }
            self.snapshot_when_due().await;
        }
        if now.failed {
            tracing::error!("the metadata log failed; the node must be started again to know what is on disk");
        }
        self.quorum.shutdown().await;
    }

    /// Takes up or lays down the office as the quorum says.
    async fn follow(&mut self, now: Leadership) {
        if !now.ready_here {
            self.ahead = None;
            return;
        }
        let idle = self.under_way.capacity() == UNDER_WAY_MAX;
        if self.ahead.is_none() && idle {
            let image = MetadataImage::clone(&self.quorum.image().borrow());
            let next_offset = image.offset + 1;
            self.ahead = Some(Ahead { image, next_offset });
            tracing::info!(epoch = now.epoch, "this node is the active controller");
            let (Message::Run { job, refuse }, _) = message(Activate { bootstrap: self.settings.bootstrap.clone() })
            else {
                return;
            };
            self.decide(job, refuse).await;
        }
    }

    async fn decide(&mut self, job: Job, refuse: Finish) {
        let Some(ahead) = &mut self.ahead else {
            refuse(Err(ControllerError::NotController));
            return;
        };
        let (records, finish) = job(&Controller {
            image: &ahead.image,
            settings: &*self.settings.settings,
            node_id: self.settings.node_id,
            next_offset: ahead.next_offset,
        });
        let proposed = if records.is_empty() {
            None
        } else {
            let mut delta = MetadataDelta::default();
            for record in &records {
                if let Err(error) = ahead.image.replay(record, &mut delta) {
                    panic_on_contradiction(&error);
                }
            }
            ahead.next_offset += records.len() as Offset;
            ahead.image.offset = ahead.next_offset - 1;
            match self.quorum.propose(records.into()).await {
                Ok(proposed) => Some(proposed),
                Err(error) => {
                    self.ahead = None;
                    finish(Err(error));
                    return;
                }
            }
        };
        // The queue ends only with this task.
        let _ = self.under_way.send(UnderWay { proposed, finish }).await;
    }

    /// Every node makes snapshots of what it has applied, whoever leads.
    async fn snapshot_when_due(&mut self) {
        let now = self.settings.clock.monotonic();
        let since = SinceSnapshot {
            bytes: self.counters.bytes_since_snapshot.load(Ordering::Relaxed),
            time: now.saturating_sub(self.snapshot_at),
        };
        if self.settings.snapshots.is_due(since) {
            self.snapshot_at = now;
            self.quorum.snapshot().await;
        }
    }

    /// How long an idle controller may wait until it looks whether a snapshot is due.
    fn snapshot_check(&self) -> Duration {
        match self.settings.snapshots.interval_ms {
            0 => SNAPSHOT_CHECK_MAX,
            interval_ms => SNAPSHOT_CHECK_MAX.min(Duration::from_millis(interval_ms)),
        }
    }
}

/// Longest time between two looks of an idle controller whether a snapshot is due.
const SNAPSHOT_CHECK_MAX: Duration = Duration::from_secs(10);

/// A decision that contradicts its own metadata must not reach the log, where every node would fail on it for ever.
#[allow(clippy::panic, reason = "a broken invariant ends the process before it is written down")]
fn panic_on_contradiction(error: &cluster::image::ReplayError) -> ! {
    panic!("the controller decided something that contradicts its metadata: {error}")
}
