//! DescribeLogDirs (35): the answer, whose version 5 tells which directories take no new partitions (KIP-1066).

use kafka_protocol::messages::TopicName;
use kafka_protocol::protocol::StrBytes;

message! {
    /// The answer to DescribeLogDirs.
    DescribeLogDirsResponse: response, versions 1..=5, flexible 2 {
        /// Milliseconds for which the client is held back.
        throttle_time_ms: i32 [0..] = 0,
        /// 0, or why nothing is described.
        error_code: i16 [3..] = 0,
        /// One for each log directory.
        results: Vec<DescribeLogDirsResult> [0..] = Vec::new(),
    }

    /// One log directory.
    struct DescribeLogDirsResult {
        /// 0, or what is wrong with the directory.
        error_code: i16 [0..] = 0,
        /// Its absolute path.
        log_dir: StrBytes [0..] = StrBytes::default(),
        /// What lies in it.
        topics: Vec<DescribeLogDirsTopic> [0..] = Vec::new(),
        /// Bytes of its volume, -1 if not known.
        total_bytes: i64 [4..] = -1,
        /// Bytes of its volume that are free for us, -1 if not known.
        usable_bytes: i64 [4..] = -1,
        /// True if it takes no new partitions.
        is_cordoned: bool [5..] = false,
    }

    /// One topic in a log directory.
    struct DescribeLogDirsTopic {
        /// Its name.
        name: TopicName [0..] = TopicName::default(),
        /// Its partitions in this directory.
        partitions: Vec<DescribeLogDirsPartition> [0..] = Vec::new(),
    }

    /// One partition in a log directory.
    struct DescribeLogDirsPartition {
        /// Its index.
        partition_index: i32 [0..] = 0,
        /// Bytes of its segments.
        partition_size: i64 [0..] = 0,
        /// Records by which its end lies behind: the high watermark, or the current log if this is the future one.
        offset_lag: i64 [0..] = 0,
        /// True if it is being moved to this directory.
        is_future_key: bool [0..] = false,
    }
}
