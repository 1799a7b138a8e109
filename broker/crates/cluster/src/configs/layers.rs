//! Where the value of a broker setting comes from: set for this broker at run time, set for all brokers at run time, set
//! at start, or the default; the first that has one wins (Kafka: DynamicBrokerConfig).

use std::borrow::Borrow;
use std::collections::BTreeMap;

use super::setting::{ConfigKind, find, without_listener_prefix};
use super::value::Value;

/// Names and their values as text, whatever holds them.
pub trait Lookup {
    /// The value set under this name.
    fn lookup(&self, name: &str) -> Option<&str>;
    /// Calls `visit` with every name and value.
    fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a str));
}

impl<K: Borrow<str> + Ord, V: AsRef<str>> Lookup for BTreeMap<K, V> {
    fn lookup(&self, name: &str) -> Option<&str> {
        self.get(name).map(AsRef::as_ref)
    }

    fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a str)) {
        self.iter().for_each(|(name, value)| visit(name.borrow(), value.as_ref()));
    }
}

impl<K: Borrow<str> + Ord + Clone, V: AsRef<str> + Clone> Lookup for imbl::OrdMap<K, V> {
    fn lookup(&self, name: &str) -> Option<&str> {
        self.get(name).map(AsRef::as_ref)
    }

    fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a str)) {
        self.iter().for_each(|(name, value)| visit(name.borrow(), value.as_ref()));
    }
}

/// Nothing is set.
impl Lookup for () {
    fn lookup(&self, _name: &str) -> Option<&str> {
        None
    }

    fn each<'a>(&'a self, _visit: &mut dyn FnMut(&'a str, &'a str)) {}
}

/// The layers of one broker's settings.
#[derive(Clone, Copy)]
pub struct BrokerLayers<'a> {
    /// Set at start: file, environment, arguments. Checked when it was read.
    pub at_start: &'a dyn Lookup,
    /// Set at run time for all brokers.
    pub all_brokers: &'a dyn Lookup,
    /// Set at run time for this broker.
    pub this_broker: &'a dyn Lookup,
}

impl<'a> BrokerLayers<'a> {
    /// Only what was set at start.
    pub fn at_start(settings: &'a dyn Lookup) -> BrokerLayers<'a> {
        BrokerLayers { at_start: settings, all_brokers: &(), this_broker: &() }
    }

    /// The effective value. A value that was stored at run time and is not valid is passed over, as Kafka does, so that a
    /// bad record cannot stop a broker. `None` when nothing is set and there is no default, or the name is unknown.
    pub fn value(&self, name: &str) -> Option<Value> {
        let setting = find(ConfigKind::Broker, without_listener_prefix(name).unwrap_or(name))?;
        let set = [self.this_broker, self.all_brokers, self.at_start]
            .iter()
            .filter_map(|layer| layer.lookup(name))
            .find_map(|text| setting.parse(text).ok());
        set.or_else(|| setting.default_text().and_then(|text| setting.parse(text).ok()))
    }

    /// The effective value as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(|value| value.to_string())
    }

    /// The effective value of a setting of type INT, SHORT or LONG.
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.value(name)? {
            Value::Number(number) => Some(number),
            Value::Boolean(_) | Value::Double(_) | Value::Text(_) | Value::List(_) => None,
        }
    }

    /// The effective value of a setting of type DOUBLE.
    pub fn double(&self, name: &str) -> Option<f64> {
        match self.value(name)? {
            Value::Double(number) => Some(number),
            Value::Boolean(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => None,
        }
    }

    /// The effective value of a setting of type BOOLEAN; false when there is none.
    pub fn boolean(&self, name: &str) -> bool {
        self.value(name) == Some(Value::Boolean(true))
    }

    /// The effective entries of a setting of type LIST, or of one of type STRING that Kafka splits itself; empty when
    /// there are none.
    pub fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::List(entries)) => entries,
            Some(Value::Text(text)) => {
                text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
            }
            Some(Value::Boolean(_) | Value::Number(_) | Value::Double(_)) | None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn this_broker_beats_all_brokers_beats_the_start_beats_the_default() {
        let name = "num.io.threads";
        let (start, all, this) = (set(name, "9"), set(name, "10"), set(name, "11"));
        let mut layers = BrokerLayers { at_start: &start, all_brokers: &all, this_broker: &this };
        assert_eq!(layers.number(name), Some(11));
        layers.this_broker = &();
        assert_eq!(layers.number(name), Some(10));
        layers.all_brokers = &();
        assert_eq!(layers.number(name), Some(9));
        layers.at_start = &();
        assert_eq!(layers.number(name), Some(8));
    }

    #[test]
    fn a_stored_value_that_is_not_valid_is_passed_over() {
        let (start, all) = (set("num.io.threads", "9"), set("num.io.threads", "many"));
        let layers = BrokerLayers { at_start: &start, all_brokers: &all, this_broker: &() };
        assert_eq!(layers.number("num.io.threads"), Some(9));
    }

    #[test]
    fn a_setting_of_one_listener_has_the_type_of_its_base() {
        let start = set("listener.name.outside.ssl.client.auth", "required");
        let layers = BrokerLayers::at_start(&start);
        assert_eq!(layers.text("listener.name.outside.ssl.client.auth").as_deref(), Some("required"));
    }
}
