//! DeleteGroups (42): the answer, whose version 3 says why a group could not be deleted.

use kafka_protocol::protocol::StrBytes;

message! {
    /// The answer to DeleteGroups.
    DeleteGroupsResponse: response, versions 0..=3, flexible 2 {
        /// Milliseconds for which the client is held back.
        throttle_time_ms: i32 [0..] = 0,
        /// One for each group of the request.
        results: Vec<DeletableGroupResult> [0..] = Vec::new(),
    }

    /// What became of one group.
    struct DeletableGroupResult {
        /// The group.
        group_id: StrBytes [0..] = StrBytes::default(),
        /// 0, or why it was not deleted.
        error_code: i16 [0..] = 0,
        /// Null if it was deleted.
        error_message: Option<StrBytes> [3..] = None,
    }
}
