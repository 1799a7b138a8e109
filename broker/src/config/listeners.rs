//! Listeners: where a node accepts connections and what it tells clients to connect to
//! (Kafka: AbstractKafkaConfig.listenerListToEndPoints, KafkaConfig.validateValues).

use std::fmt;

use cluster::configs::rule::host_port;

use super::ConfigError;
use super::settings::Settings;

/// How a listener is secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecurityProtocol {
    /// Nothing.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL without encryption.
    SaslPlaintext,
    /// SASL over TLS.
    SaslSsl,
}

impl SecurityProtocol {
    fn from_name(name: &str) -> Option<SecurityProtocol> {
        Some(match name {
            "PLAINTEXT" => SecurityProtocol::Plaintext,
            "SSL" => SecurityProtocol::Ssl,
            "SASL_PLAINTEXT" => SecurityProtocol::SaslPlaintext,
            "SASL_SSL" => SecurityProtocol::SaslSsl,
            _ => return None,
        })
    }

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            SecurityProtocol::Plaintext => "PLAINTEXT",
            SecurityProtocol::Ssl => "SSL",
            SecurityProtocol::SaslPlaintext => "SASL_PLAINTEXT",
            SecurityProtocol::SaslSsl => "SASL_SSL",
        }
    }

    /// Number in a broker's registration (Kafka: SecurityProtocol.id).
    pub fn id(self) -> i16 {
        match self {
            SecurityProtocol::Plaintext => 0,
            SecurityProtocol::Ssl => 1,
            SecurityProtocol::SaslPlaintext => 2,
            SecurityProtocol::SaslSsl => 3,
        }
    }
}

/// Protocols that this node serves; a listener with another one stops the start, because serving it without its
/// protection would be worse than not at all.
pub const SERVED_PROTOCOLS: [SecurityProtocol; 1] = [SecurityProtocol::Plaintext];

/// One listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Name, in capitals.
    pub name: String,
    /// Host as written, without brackets; empty for all interfaces.
    pub host: String,
    /// Port; 0 lets the system choose.
    pub port: u16,
    /// How it is secured.
    pub protocol: SecurityProtocol,
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brackets = self.host.contains(':');
        let (open, close) = if brackets { ("[", "]") } else { ("", "") };
        write!(f, "{}://{open}{}{close}:{}", self.name, self.host, self.port)
    }
}

/// The listeners of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listeners {
    /// For clients and brokers, in the order of `listeners`.
    pub broker: Vec<Listener>,
    /// For controllers; empty when the node is the only voter and names none.
    pub controller: Vec<Listener>,
    /// What clients are told, one for each broker listener that is advertised.
    pub advertised: Vec<Listener>,
    /// Name of the listener on which brokers speak to each other.
    pub inter_broker: String,
}

fn broken(reason: String) -> ConfigError {
    ConfigError::Rule { reason }
}

/// Reads the listeners. `hostname` stands in where a broker listener names no host and nothing is advertised.
pub fn read(settings: &Settings, is_broker: bool, hostname: &str) -> Result<Listeners, ConfigError> {
    let controller_names: Vec<String> =
        settings.list("controller.listener.names").iter().map(|name| name.to_uppercase()).collect();
    let map = ProtocolMap::read(settings, &controller_names)?;
    let texts = settings.list("listeners");
    let all = parse_list(&texts, &map)?;
    check_distinct_ports(&all, &texts)?;
    let (controller, broker): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|listener| controller_names.contains(&listener.name));
    if !is_broker && !broker.is_empty() {
        return Err(broken(
            "The listeners config must only contain KRaft controller listeners from controller.listener.names when \
             process.roles=controller"
                .to_owned(),
        ));
    }
    let advertised = advertised(settings, &broker, &controller_names, &map, hostname)?;
    let inter_broker = inter_broker_name(settings, &map)?;
    if is_broker {
        check_broker(&broker, &advertised, &inter_broker)?;
    }
    for listener in broker.iter().chain(&controller) {
        if !SERVED_PROTOCOLS.contains(&listener.protocol) {
            return Err(broken(format!(
                "listener {}: security protocol {} is not served yet; use PLAINTEXT",
                listener.name,
                listener.protocol.name()
            )));
        }
    }
    Ok(Listeners { broker, controller, advertised, inter_broker })
}

fn advertised(
    settings: &Settings,
    broker: &[Listener],
    controller_names: &[String],
    map: &ProtocolMap,
    hostname: &str,
) -> Result<Vec<Listener>, ConfigError> {
    let mut advertised = match settings.get("advertised.listeners") {
        Some(_) => parse_list(&settings.list("advertised.listeners"), map)?,
        None => broker.to_vec(),
    };
    advertised.retain(|listener| !controller_names.contains(&listener.name));
    if advertised.iter().any(|listener| listener.host == "0.0.0.0") {
        return Err(broken(
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."
                .to_owned(),
        ));
    }
    for listener in &mut advertised {
        if listener.host.is_empty() {
            listener.host = hostname.to_owned();
        }
    }
    Ok(advertised)
}

fn inter_broker_name(settings: &Settings, map: &ProtocolMap) -> Result<String, ConfigError> {
    let by_protocol =
        settings.get("security.inter.broker.protocol").filter(|_| settings.is_set("security.inter.broker.protocol"));
    match (settings.get("inter.broker.listener.name"), by_protocol) {
        (Some(_), Some(_)) => Err(broken(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.".to_owned(),
        )),
        (Some(name), None) => {
            let name = name.trim().to_uppercase();
            match map.protocol(&name) {
                Some(_) => Ok(name),
                None => Err(broken(format!(
                    "Listener with name {name} defined in inter.broker.listener.name not found in \
                     listener.security.protocol.map."
                ))),
            }
        }
        (None, protocol) => Ok(protocol.unwrap_or("PLAINTEXT").trim().to_owned()),
    }
}

fn check_broker(broker: &[Listener], advertised: &[Listener], inter_broker: &str) -> Result<(), ConfigError> {
    let names =
        |listeners: &[Listener]| listeners.iter().map(|listener| listener.name.clone()).collect::<Vec<_>>().join(",");
    if broker.is_empty() {
        return Err(broken("listeners must name at least one listener that is not a controller's".to_owned()));
    }
    if !advertised.iter().any(|listener| listener.name == inter_broker) {
        return Err(broken(format!(
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based \
             on currently configured listeners are {}",
            names(advertised)
        )));
    }
    match advertised.iter().find(|told| !broker.iter().any(|served| served.name == told.name)) {
        Some(_) => Err(broken(format!(
            "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found {}. \
             The valid options based on the current configuration are {}",
            names(advertised),
            names(broker)
        ))),
        None => Ok(()),
    }
}

/// `listener.security.protocol.map`, or the names of the protocols themselves.
struct ProtocolMap {
    entries: Vec<(String, SecurityProtocol)>,
}

impl ProtocolMap {
    fn read(settings: &Settings, controller_names: &[String]) -> Result<ProtocolMap, ConfigError> {
        let key = "listener.security.protocol.map";
        let mut entries = Vec::new();
        for entry in settings.list(key) {
            let (name, protocol) = entry
                .rsplit_once(':')
                .ok_or_else(|| broken(format!("{key}: '{entry}' is not of the form NAME:PROTOCOL")))?;
            let protocol = SecurityProtocol::from_name(&protocol.trim().to_uppercase())
                .ok_or_else(|| broken(format!("Invalid security protocol `{}` defined in {key}", protocol.trim())))?;
            entries.push((name.trim().to_uppercase(), protocol));
        }
        let map = ProtocolMap { entries };
        Ok(if settings.is_set(key) { map } else { map.with_controllers(settings, controller_names) })
    }

    /// Without a map of their own, controller listeners are plain unless another listener asks for security.
    fn with_controllers(mut self, settings: &Settings, controller_names: &[String]) -> ProtocolMap {
        let secured = settings.list("listeners").iter().any(|text| {
            let name = text.split("://").next().unwrap_or_default().to_uppercase();
            self.protocol(&name).is_some_and(|protocol| protocol != SecurityProtocol::Plaintext)
        });
        for name in controller_names {
            if !secured && self.protocol(name).is_none() {
                self.entries.push((name.clone(), SecurityProtocol::Plaintext));
            }
        }
        self
    }

    fn protocol(&self, name: &str) -> Option<SecurityProtocol> {
        self.entries.iter().find(|(known, _)| known == name).map(|(_, protocol)| *protocol)
    }
}

fn parse_list(texts: &[String], map: &ProtocolMap) -> Result<Vec<Listener>, ConfigError> {
    let shown = texts.join(", ");
    let refused = |reason: String| broken(format!("Error creating broker listeners from '[{shown}]': {reason}"));
    let mut listeners: Vec<Listener> = Vec::with_capacity(texts.len());
    for text in texts {
        let listener = parse(text, map).map_err(&refused)?;
        if listeners.iter().any(|other| other.name == listener.name) {
            return Err(refused(format!("Each listener must have a different name, listeners: [{shown}]")));
        }
        listeners.push(listener);
    }
    Ok(listeners)
}

fn parse(text: &str, map: &ProtocolMap) -> Result<Listener, String> {
    let unreadable = || format!("Unable to parse {text} to a broker endpoint");
    let (name, address) = text.split_once("://").ok_or_else(unreadable)?;
    let (host, port) = match address.strip_prefix(':') {
        Some(port) => ("", port.parse::<u16>().map_err(|_| unreadable())?),
        None => host_port(address).ok_or_else(unreadable)?,
    };
    let name = name.to_uppercase();
    let protocol = map.protocol(&name).ok_or_else(|| format!("No security protocol defined for listener {name}"))?;
    Ok(Listener { name, host: host.to_owned(), port, protocol })
}

/// Two listeners may share a port only when one is bound to an IPv4 and the other to an IPv6 address.
fn check_distinct_ports(listeners: &[Listener], texts: &[String]) -> Result<(), ConfigError> {
    let family = |listener: &Listener| listener.host.parse::<std::net::IpAddr>().ok().map(|address| address.is_ipv4());
    for (at, one) in listeners.iter().enumerate().filter(|(_, listener)| listener.port != 0) {
        for other in listeners[at + 1..].iter().filter(|other| other.port == one.port) {
            let apart = matches!((family(one), family(other)), (Some(a), Some(b)) if a != b);
            if !apart {
                let shown = texts.join(", ");
                return Err(broken(format!(
                    "Error creating broker listeners from '[{shown}]': Each listener must have a different port, \
                     listeners: [{shown}]"
                )));
            }
        }
    }
    Ok(())
}
