//! The one part of the embedded consumer protocol that the coordinator reads: the topics of a subscription. Only the
//! prefix that every version shares is read (Kafka: ConsumerProtocol, version 0).

use std::collections::BTreeSet;

/// Protocol type of consumer groups.
pub const CONSUMER: &str = "consumer";

/// Topics that the subscription names, or `None` when the bytes are not a subscription.
pub fn subscribed_topics(subscription: &[u8]) -> Option<BTreeSet<&str>> {
    let (_version, rest) = subscription.split_first_chunk::<2>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let mut topics = BTreeSet::new();
    for _ in 0..i32::from_be_bytes(*count) {
        let (len, after_len) = rest.split_first_chunk::<2>()?;
        let len = usize::try_from(i16::from_be_bytes(*len)).ok()?;
        let (topic, after_topic) = after_len.split_at_checked(len)?;
        topics.insert(std::str::from_utf8(topic).ok()?);
        rest = after_topic;
    }
    Some(topics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topics_of_a_subscription_are_read_whatever_follows_them() {
        let mut subscription = vec![0, 3, 0, 0, 0, 2, 0, 1, b'a', 0, 2, b'b', b'c'];
        assert_eq!(subscribed_topics(&subscription), Some(BTreeSet::from(["a", "bc"])));
        subscription.extend_from_slice(&[0xff; 40]);
        assert_eq!(subscribed_topics(&subscription), Some(BTreeSet::from(["a", "bc"])));
        assert_eq!(subscribed_topics(&[0, 0, 0, 0, 0, 0]), Some(BTreeSet::new()));
    }

    #[test]
    fn what_is_not_a_subscription_names_no_topics() {
        for bytes in [&[][..], &[0], &[0, 0, 0, 0, 0, 1], &[0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 1, b'a'], b"opaque"] {
            assert_eq!(subscribed_topics(bytes), None);
        }
    }
}
