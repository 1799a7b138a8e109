//! What is known of the peer of a connection.

use std::net::SocketAddr;
use std::sync::Arc;

/// A connection's peer, as requests see it.
#[derive(Debug, Clone)]
pub struct Session {
    /// Name of the listener that the peer came in by.
    pub listener: Arc<str>,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Who the peer has proven to be; `User:ANONYMOUS` without authentication.
    pub principal: Arc<str>,
    /// `client.id` of the request at hand.
    pub client_id: Arc<str>,
}

impl Session {
    /// A peer that has not proven who it is.
    pub fn anonymous(listener: Arc<str>, peer: SocketAddr) -> Self {
        Session { listener, peer, principal: "User:ANONYMOUS".into(), client_id: "".into() }
    }

    /// The peer's address as Kafka writes it in group members: a slash, then the address without the port.
    pub fn client_host(&self) -> String {
        format!("/{}", self.peer.ip())
    }
}
