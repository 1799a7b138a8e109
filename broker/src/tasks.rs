//! The only place that starts tasks and threads. Each gets a name, hears of the stop, and is waited for at the end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Starts tasks, tells them to stop, and waits until they have. Cheap to clone.
#[derive(Clone)]
pub struct Tasks {
    inner: Arc<Inner>,
}

struct Inner {
    running: Mutex<JoinSet<()>>,
    stop: watch::Sender<bool>,
    runtime: tokio::runtime::Handle,
}

/// Tells a task that the node stops.
#[derive(Clone)]
pub struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    /// Returns when the node begins to stop.
    pub async fn stopped(&mut self) {
        // An error means that every `Tasks` is gone, which is a stop too.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

impl Tasks {
    /// No task yet; they will run on the runtime that this is called in.
    pub fn new() -> Self {
        let (stop, _) = watch::channel(false);
        let runtime = tokio::runtime::Handle::current();
        Tasks { inner: Arc::new(Inner { running: Mutex::new(JoinSet::new()), stop, runtime }) }
    }

    /// The signal that tasks started here listen to.
    pub fn stop_signal(&self) -> StopSignal {
        StopSignal(self.inner.stop.subscribe())
    }

    /// Starts a task that may fail alone: a panic inside ends this task (a connection, a scrape) and nothing else.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut running = self.inner.running.lock();
        // Ended tasks are collected here, so that the set stays as small as the number of living ones.
        while running.try_join_next().is_some() {}
        running.spawn_on(task, &self.inner.runtime);
    }

    /// Starts a task that owns state which the node cannot do without: a panic inside ends the process, because
    /// going on after a broken invariant could lose or invent data.
    pub fn spawn_owner(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(async move {
            let guard = AbortOnPanic(name);
            task.await;
            std::mem::forget(guard);
        });
    }

    /// Starts a thread that owns state and may wait for a disk. A panic inside ends the process.
    ///
    /// # Errors
    /// The system refused to start a thread.
    pub fn spawn_owner_thread(
        name: &'static str,
        run: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<std::thread::JoinHandle<()>> {
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let guard = AbortOnPanic(name);
            run();
            std::mem::forget(guard);
        })
    }

    /// Runs work that may take long, such as walking all partitions for a scrape, away from the threads that answer
    /// requests. `None` if it panicked.
    pub async fn run_aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// Runs work that waits for a disk, away from the async threads. It is not waited for at the stop.
    pub fn spawn_blocking(&self, work: impl FnOnce() + Send + 'static) {
        self.inner.runtime.spawn_blocking(work);
    }

    /// How long the threads that run tasks have worked, all together, and how many they are.
    pub fn worker_times(&self) -> (Duration, usize) {
        let metrics = self.inner.runtime.metrics();
        let workers = metrics.num_workers();
        ((0..workers).map(|worker| metrics.worker_total_busy_duration(worker)).sum(), workers)
    }

    /// Tells every task to stop.
    pub fn stop(&self) {
        self.inner.stop.send_replace(true);
    }

    /// Waits until all tasks have ended.
    pub async fn wait(&self) {
        let mut running = std::mem::take(&mut *self.inner.running.lock());
        while running.join_next().await.is_some() {}
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

/// Ends the process when it is dropped by a panic; forgotten on the ordinary way out.
struct AbortOnPanic(&'static str);

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(task = self.0, "an invariant is broken: the node ends now and recovers at the next start");
            std::process::abort();
        }
    }
}
