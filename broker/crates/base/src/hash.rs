//! Hashes that Kafka's clients and files depend on.

/// `String.hashCode` of Java over UTF-16 units; places groups and transactional ids on internal partitions.
pub fn java_string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// Partition of an internal topic that owns `key` (Kafka: Utils.abs(key.hashCode()) % partitions; abs of MIN is 0).
pub fn coordinator_partition(key: &str, partitions: i32) -> i32 {
    java_string_hash(key).checked_abs().unwrap_or(0) % partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_javas() {
        assert_eq!(java_string_hash(""), 0);
        assert_eq!(java_string_hash("console-consumer-1"), 35_782_224);
        assert_eq!(java_string_hash("polygenelubricants"), i32::MIN);
        assert_eq!(coordinator_partition("polygenelubricants", 50), 0);
    }
}
