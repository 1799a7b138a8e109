//! Between the strings of messages, which are parts of a frame, and those that the node keeps.

use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;

/// A copy to keep: what stays in memory shall not keep the frame that it came in.
pub fn kept(text: &StrBytes) -> Arc<str> {
    Arc::from(&**text)
}

/// A copy to keep of what may be null.
pub fn kept_option(text: Option<&StrBytes>) -> Option<Arc<str>> {
    text.map(kept)
}

/// A string for a message.
pub fn message_text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// A string for a message that may be null.
pub fn message_text_option(text: Option<&str>) -> Option<StrBytes> {
    text.map(message_text)
}
