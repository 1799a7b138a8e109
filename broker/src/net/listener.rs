//! A listening socket: accepts connections within their limits and hands each to a task of its own.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};

use super::budget::ByteBudget;
use super::connection::{Connection, ConnectionSettings};
use crate::node::Node;
use crate::security::Session;
use crate::tasks::Tasks;

/// Connections that may wait to be accepted. Kafka's default (`socket.listen.backlog.size`) is 50, which drops
/// connections when many clients start at once; the kernel caps it at `net.core.somaxconn`.
const BACKLOG: i32 = 1024;
/// Pause after a failed accept, which is nearly always a lack of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The host of the listener has no address.
    #[error("listener {name}: the host '{host}' cannot be resolved: {source}")]
    Resolve {
        /// Name of the listener.
        name: String,
        /// Host that was to be resolved.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The address is taken or not of this machine.
    #[error("listener {name}: cannot listen on {address}: {source}{}", bind_hint(source))]
    Bind {
        /// Name of the listener.
        name: String,
        /// Address that was to be opened.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

fn bind_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => " (is another node running on this port?)",
        io::ErrorKind::AddrNotAvailable => " (this machine does not have the address)",
        io::ErrorKind::PermissionDenied => " (ports below 1024 need a privilege)",
        _ => "",
    }
}

/// Counts connections against `max.connections`, `max.connections.per.ip` and the files that the process may open.
pub struct ConnectionCount {
    open_max: usize,
    by_ip: Mutex<HashMap<IpAddr, usize>>,
}

/// One counted connection.
struct Counted {
    count: Arc<ConnectionCount>,
    ip: IpAddr,
}

impl ConnectionCount {
    /// No connection yet, and never more than `open_max`.
    pub fn new(open_max: usize) -> Self {
        ConnectionCount { open_max, by_ip: Mutex::default() }
    }

    fn try_add(self: &Arc<Self>, ip: IpAddr, node: &Node) -> Option<Counted> {
        let (max, max_per_ip) = node.connection_limits(ip);
        let mut by_ip = self.by_ip.lock();
        if by_ip.values().sum::<usize>() >= max.min(self.open_max) || by_ip.get(&ip).copied().unwrap_or(0) >= max_per_ip
        {
            return None;
        }
        *by_ip.entry(ip).or_default() += 1;
        Some(Counted { count: self.clone(), ip })
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.by_ip.lock().values().sum()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut by_ip = self.count.by_ip.lock();
        if let Some(open) = by_ip.get_mut(&self.ip) {
            *open -= 1;
            if *open == 0 {
                by_ip.remove(&self.ip);
            }
        }
    }
}

/// Opens the socket of listener `name`. An empty host means every address of the machine.
///
/// # Errors
/// See [`ListenError`].
pub async fn listen(name: &str, host: &str, port: u16) -> Result<Vec<TcpListener>, ListenError> {
    let resolve_error = |source| ListenError::Resolve { name: name.to_owned(), host: host.to_owned(), source };
    let addresses: Vec<SocketAddr> = if host.is_empty() {
        vec![(std::net::Ipv6Addr::UNSPECIFIED, port).into()]
    } else {
        tokio::net::lookup_host((host, port)).await.map_err(resolve_error)?.collect()
    };
    if addresses.is_empty() {
        return Err(resolve_error(io::Error::new(io::ErrorKind::NotFound, "it has no address")));
    }
    let mut listeners = Vec::new();
    for mut address in addresses {
        // With port 0 the first address picks the port, and a name's other addresses follow it.
        if let (0, Some(first)) = (port, listeners.first()) {
            address.set_port(TcpListener::local_addr(first).map_or(0, |a| a.port()));
        }
        let bound = bind(address).or_else(|error| match address {
            // A machine without IPv6 still serves every IPv4 address.
            SocketAddr::V6(v6) if v6.ip().is_unspecified() => bind((std::net::Ipv4Addr::UNSPECIFIED, port).into()),
            _ => Err(error),
        });
        match bound {
            Ok(listener) => listeners.push(listener),
            // `localhost` may name ::1 on a machine whose loopback has only IPv4.
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable && !listeners.is_empty() => {}
            Err(source) => return Err(ListenError::Bind { name: name.to_owned(), address, source }),
        }
    }
    Ok(listeners)
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// What every connection of a listener shares.
#[derive(Clone)]
pub struct Shared {
    /// The node.
    pub node: Arc<Node>,
    /// Starts the connections' tasks.
    pub tasks: Tasks,
    /// Byte budget of all requests.
    pub budget: ByteBudget,
    /// Count of open connections.
    pub count: Arc<ConnectionCount>,
    /// Settings of each connection.
    pub settings: ConnectionSettings,
}

/// Accepts connections until the node stops.
pub async fn accept_loop(name: Arc<str>, listener: TcpListener, shared: Shared) {
    let mut stop = shared.tasks.stop_signal();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.stopped() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => accept(&name, stream, peer, &shared),
            Err(error) => {
                tracing::warn!(listener = %name, %error, "cannot accept a connection; trying again (raise the limit of open files if this goes on)");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

fn accept(name: &Arc<str>, stream: TcpStream, peer: SocketAddr, shared: &Shared) {
    let Some(counted) = shared.count.try_add(peer.ip(), &shared.node) else {
        tracing::info!(listener = %name, %peer, "connection closed: max.connections, max.connections.per.ip or what the limit of open files allows is reached");
        return;
    };
    // Answers are written whole, so that waiting to fill a packet would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "connection lost before its first request");
        return;
    }
    let session = Session::anonymous(name.clone(), peer);
    let connection =
        Connection::new(stream, shared.node.clone(), session, shared.settings.clone(), shared.budget.clone());
    let stop = shared.tasks.stop_signal();
    let shown = shared.node.metrics.connection_opened(name);
    shared.tasks.spawn(async move {
        connection.serve(stop).await;
        drop((counted, shown));
    });
}
