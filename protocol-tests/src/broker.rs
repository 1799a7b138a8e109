//! Starts, kills and restarts the broker under test. Uses std's processes and a shell as watchdog.
//!
//! The watchdog waits on a pipe from this process. When the pipe closes, also because the test run was killed, it ends the
//! broker and removes its directory, so that no run leaves a process or files behind.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use crate::client::Client;
use crate::{eventually, ops, settings};

/// How long a broker may take to answer its first request: a JVM on a busy machine needs most of it.
const START_LIMIT: Duration = Duration::from_secs(240);
/// Ports that one run may use, from `PROTOCOL_TESTS_PORT` (default 22000) upwards; below the ephemeral range.
const PORTS: u16 = 500;

/// Runs "$@" with its output in $0/server.log, prints its process id, and ends it when standard input says so or closes.
const WATCHDOG: &str = r#"
"$@" >>"$0/server.log" 2>&1 </dev/null &
broker=$!
echo $broker
exec 2>/dev/null
read -r word
kill -9 $broker
wait $broker
[ "$word" = keep ] || [ -n "$PROTOCOL_TESTS_KEEP" ] || rm -rf "$0"
"#;

/// Which broker the tests are run against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The binary of this workspace.
    Ours,
    /// Apache Kafka 4.4, the judge.
    Kafka,
}

impl Target {
    /// The target that the environment names: `TARGET=ours` (default) or `TARGET=kafka`.
    pub fn current() -> Self {
        match std::env::var("TARGET").as_deref() {
            Ok("kafka") => Self::Kafka,
            Ok("ours") | Err(_) => Self::Ours,
            Ok(other) => panic!("TARGET is {other:?}; it must be ours or kafka"),
        }
    }

    /// True when the tests run against the binary of this workspace.
    pub fn is_ours() -> bool {
        Self::current() == Self::Ours
    }

    fn command(self, settings_file: &Path) -> Vec<String> {
        let file = settings_file.display().to_string();
        match self {
            Self::Ours => vec![our_binary().display().to_string(), "start".into(), "-c".into(), file],
            Self::Kafka => vec![workspace().join("compat/peer/peer").display().to_string(), "serve".into(), file],
        }
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace").to_owned()
}

/// `MONEDULA_BIN`, or the newest build in the target directory that this test binary was built in.
fn our_binary() -> PathBuf {
    if let Ok(path) = std::env::var("MONEDULA_BIN") {
        return PathBuf::from(path);
    }
    let this = std::env::current_exe().expect("the test binary has a path");
    let built = this.ancestors().nth(2).expect("target/<profile>/deps").join("monedula");
    assert!(
        built.exists(),
        "no broker to test: run `make test`, or `cargo build -p monedula`, or set MONEDULA_BIN to a binary, \
         or TARGET=kafka to test the tests on Apache Kafka ({} is missing)",
        built.display()
    );
    built
}

/// One broker process with its directory. Dropping it kills the process and removes the directory.
pub struct Broker {
    /// What runs.
    pub target: Target,
    /// Where clients connect.
    pub address: SocketAddr,
    /// The directory with `server.properties`, `server.log` and `data/`.
    pub dir: PathBuf,
    watchdog: Child,
    /// The process id of the broker itself.
    pub pid: u32,
}

static SHARED: OnceLock<Broker> = OnceLock::new();

impl Broker {
    /// The broker that most tests of a run share; the first caller starts it.
    pub fn shared() -> &'static Self {
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A broker of its own, with settings on top of the common ones.
    pub fn start(own: &[(&str, &str)]) -> Self {
        let target = Target::current();
        let port = free_port();
        let dir = std::env::temp_dir().join(format!("protocol-tests-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("the temporary directory is writable");
        std::fs::write(dir.join("server.properties"), settings::properties(target, port, &dir, own)).unwrap();
        let (watchdog, pid) = launch(target, &dir);
        let broker = Self { target, address: SocketAddr::from(([127, 0, 0, 1], port)), dir, watchdog, pid };
        broker.wait_ready();
        broker
    }

    /// A new connection.
    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Where the HTTP listener of ours is (metrics and health).
    pub fn http_address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.address.port() + 1))
    }

    /// The directory that the broker keeps partition `partition` of `topic` in.
    pub fn partition_dir(&self, topic: &str, partition: i32) -> PathBuf {
        self.dir.join("data").join(format!("{topic}-{partition}"))
    }

    /// Ends the process as a crash does (SIGKILL) and waits until it is gone; its files stay.
    pub fn kill(&mut self) {
        let stdin = self.watchdog.stdin.as_mut().expect("the pipe to the watchdog is open");
        stdin.write_all(b"keep\n").expect("the watchdog reads");
        self.watchdog.wait().expect("the watchdog ends");
    }

    /// Ends the process in order (SIGTERM) and waits until it is gone; its files stay.
    pub fn stop(&mut self) {
        let done = Command::new("kill").arg(self.pid.to_string()).status().expect("kill runs");
        assert!(done.success(), "the broker had ended before it was stopped");
        eventually("an orderly stop", Duration::from_secs(60), || (!is_running(self.pid)).then_some(()));
        self.kill();
    }

    /// Starts the process again on the files it left.
    pub fn restart(&mut self) {
        (self.watchdog, self.pid) = launch(self.target, &self.dir);
        self.wait_ready();
    }

    /// Resident memory of the process in KiB (`VmRSS` of /proc).
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("the broker runs");
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("Linux tells VmRSS");
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("VmRSS is a number")
    }

    /// The end of what the broker printed, for messages of failed tests.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(self.dir.join("server.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Waits until the port answers, a broker is listed and the group coordinator has loaded its partitions.
    fn wait_ready(&self) {
        eventually("the broker's port opens", START_LIMIT, || {
            assert!(is_running(self.pid), "the broker ended at start:\n{}", self.log_tail());
            TcpStream::connect(self.address).ok()
        });
        let mut client = self.client();
        eventually("the broker lists itself", START_LIMIT, || {
            let answer = ops::metadata(&mut client, &[]);
            (!answer.brokers.is_empty() && answer.controller_id.0 >= 0).then_some(())
        });
        ops::await_coordinator(&mut client);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // Nothing is lost when the wait fails: the watchdog ends by itself.
        let _ = self.watchdog.wait();
    }
}

fn launch(target: Target, dir: &Path) -> (Child, u32) {
    let mut watchdog = Command::new("sh")
        .arg("-c")
        .arg(WATCHDOG)
        .arg(dir)
        .args(target.command(&dir.join("server.properties")))
        .env("KAFKA_HEAP_OPTS", "-Xmx512m")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell starts");
    let mut line = String::new();
    let stdout = watchdog.stdout.take().expect("the output is piped");
    BufReader::new(stdout).read_line(&mut line).expect("the watchdog prints the process id");
    (watchdog, line.trim().parse().expect("a process id"))
}

/// A process that has ended and was not waited for yet (state Z) does not run.
fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
}

/// A port whose successor is free too.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first: u16 = std::env::var("PROTOCOL_TESTS_PORT").ok().map_or(22000, |p| p.parse().expect("a port"));
    loop {
        let step = NEXT.fetch_add(2, Ordering::Relaxed);
        assert!(step < PORTS, "no free port from {first} on");
        let port = first + step;
        let free = |p: u16| TcpListener::bind(("127.0.0.1", p)).is_ok();
        if free(port) && free(port + 1) {
            return port;
        }
    }
}
