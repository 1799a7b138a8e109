//! A Fetch answer and its frame, with the records in it shared instead of copied, or left in their files. All else is
//! written by kafka-protocol: a partition is encoded without records, and as they are its last field before the tagged
//! ones, they go in there.

use bytes::{BufMut, Bytes};
use kafka_protocol::messages::FetchResponse;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::protocol::{Encodable, HeaderVersion};
use partition_log::Records;

use super::error_codes::ErrorCodes;
use super::reply_frame::ReplyFrame;
use super::{Reply, WireError};

/// Records below this size are copied: a part of its own in the write would cost more.
const SHARED_BYTES_MIN: usize = 4096;
/// First version with compact lengths and tagged fields.
const FLEXIBLE_VERSION: i16 = 12;

/// A Fetch answer.
#[derive(Debug, Default)]
pub struct FetchAnswer {
    /// All of it but the records.
    pub response: FetchResponse,
    /// The records of each partition, in the order of the partitions.
    pub records: Vec<Records>,
}

impl ErrorCodes for FetchAnswer {
    fn error_codes(&self, found: &mut dyn FnMut(i16)) {
        self.response.error_codes(found);
    }
}

impl Reply for FetchAnswer {
    fn into_frame(mut self, correlation_id: i32, version: i16) -> Result<ReplyFrame, WireError> {
        let records = std::mem::take(&mut self.records);
        write(correlation_id, version, self.response, &mut records.into_iter())
            .map_err(|error| WireError::Unencodable { version, reason: error.to_string() })
    }
}

fn write(
    correlation_id: i32,
    version: i16,
    mut response: FetchResponse,
    records: &mut dyn Iterator<Item = Records>,
) -> anyhow::Result<ReplyFrame> {
    let topics = std::mem::take(&mut response.responses);
    let mut frame = ReplyFrame::default();
    let own = frame.own();
    own.put_i32(0);
    own.put_i32(correlation_id);
    if FetchResponse::header_version(version) >= 1 {
        own.put_u8(0);
    }
    // Without topics the answer ends with their count, one byte or four, and the tagged fields behind it.
    response.encode(own, version)?;
    let flexible = version >= FLEXIBLE_VERSION;
    let end = if flexible { tail_of(&response, version)? } else { Vec::new() };
    own.truncate(own.len() - end.len() - count_len(flexible));
    put_count(&mut frame, flexible, topics.len())?;
    for topic in topics {
        write_topic(&mut frame, version, topic, records)?;
    }
    frame.own().extend_from_slice(&end);
    let length = i32::try_from(frame.len() - 4)?;
    frame.own()[..4].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}

/// The tagged fields of an answer without topics.
fn tail_of(response: &FetchResponse, version: i16) -> anyhow::Result<Vec<u8>> {
    let mut whole = bytes::BytesMut::new();
    response.encode(&mut whole, version)?;
    // Throttle time, error and session id come before the count: 4, 2 and 4 bytes.
    Ok(whole[10 + count_len(true)..].to_vec())
}

fn count_len(flexible: bool) -> usize {
    if flexible { 1 } else { 4 }
}

fn put_count(frame: &mut ReplyFrame, flexible: bool, count: usize) -> anyhow::Result<()> {
    if !flexible {
        frame.own().put_i32(i32::try_from(count)?);
        return Ok(());
    }
    // Compact lengths are counted from 1, because 0 stands for null, and written seven bits a byte, lowest first.
    let mut left = u32::try_from(count + 1)?;
    while left >= 0x80 {
        frame.own().put_u8((left & 0x7f) as u8 | 0x80);
        left >>= 7;
    }
    frame.own().put_u8(left as u8);
    Ok(())
}

fn write_topic(
    frame: &mut ReplyFrame,
    version: i16,
    mut topic: FetchableTopicResponse,
    records: &mut dyn Iterator<Item = Records>,
) -> anyhow::Result<()> {
    let flexible = version >= FLEXIBLE_VERSION;
    let partitions = std::mem::take(&mut topic.partitions);
    topic.encode(frame.own(), version)?;
    // Without partitions it ends with their count and, from the flexible versions on, an empty tagged section.
    let name_end = frame.own().len() - count_len(flexible) - usize::from(flexible);
    frame.own().truncate(name_end);
    put_count(frame, flexible, partitions.len())?;
    for partition in partitions {
        write_partition(frame, version, partition, records.next().unwrap_or_default())?;
    }
    if flexible {
        frame.own().put_u8(0);
    }
    Ok(())
}

fn write_partition(
    frame: &mut ReplyFrame,
    version: i16,
    mut partition: PartitionData,
    records: Records,
) -> anyhow::Result<()> {
    let flexible = version >= FLEXIBLE_VERSION;
    if let Records::Memory(small) = &records
        && small.len() < SHARED_BYTES_MIN
    {
        // Never null: librdkafka refuses a length of -1.
        partition.records = Some(small.clone());
        return partition.encode(frame.own(), version);
    }
    partition.records = Some(Bytes::new());
    let before = frame.own().len();
    partition.encode(frame.own(), version)?;
    let written = frame.own().len();
    // The same without tagged fields tells where these begin.
    let tail = if flexible {
        let mut plain = PartitionData::default();
        std::mem::swap(&mut plain.records, &mut partition.records);
        plain.partition_index = partition.partition_index;
        plain.aborted_transactions = partition.aborted_transactions.take();
        let untagged = plain.compute_size(version)? - 1;
        frame.own().split_off(before + untagged)
    } else {
        frame.own().split_off(written)
    };
    let kept = frame.own().len() - count_len(flexible);
    frame.own().truncate(kept);
    put_count(frame, flexible, records.len())?;
    frame.share(records);
    frame.own().extend_from_slice(&tail);
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::super::reply_frame::Part;
    use kafka_protocol::messages::fetch_response::{AbortedTransaction, EpochEndOffset};
    use kafka_protocol::protocol::StrBytes;

    use super::*;

    fn partition(version: i16, index: i32, records: usize, tagged: bool) -> PartitionData {
        let aborted = AbortedTransaction::default().with_producer_id(7.into()).with_first_offset(9);
        let mut data = PartitionData::default()
            .with_partition_index(index)
            .with_high_watermark(1000)
            .with_records(Some(vec![index as u8; records].into()))
            .with_aborted_transactions((index % 2 == 0).then(|| vec![aborted; index as usize]));
        if version >= 5 {
            data = data.with_log_start_offset(3);
        }
        if version >= 11 {
            data = data.with_preferred_read_replica((-1).into());
        }
        if version >= 12 && tagged {
            data = data.with_diverging_epoch(EpochEndOffset::default().with_epoch(4).with_end_offset(5));
        }
        data
    }

    fn topic(version: i16, partitions: Vec<PartitionData>) -> FetchableTopicResponse {
        let topic = FetchableTopicResponse::default().with_partitions(partitions);
        match version {
            13.. => topic.with_topic_id(uuid::Uuid::from_u128(77)),
            _ => topic.with_topic(StrBytes::from_static_str("topic").into()),
        }
    }

    #[test]
    fn the_frame_is_the_one_that_copies_would_make() {
        for version in 4..=18 {
            for many in [1, 200] {
                let partitions =
                    (0..many).map(|i| partition(version, i, [0, 4095, 4096, 70_000][i as usize % 4], i % 5 == 0));
                let large = partition(version, 5, 10_000, true);
                let topics = vec![topic(version, partitions.collect()), topic(version, vec![large])];
                let mut response = FetchResponse::default().with_throttle_time_ms(12).with_responses(topics);
                if version >= 7 {
                    response = response.with_session_id(99);
                }
                let copied = super::super::encode_reply(41, version, &response).unwrap();
                let partitions = response.responses.iter_mut().flat_map(|topic| &mut topic.partitions);
                let records = partitions.map(|one| Records::Memory(one.records.take().unwrap())).collect();
                let shared = FetchAnswer { response, records }.into_frame(41, version).unwrap();
                assert!(shared.len() > 10_000);
                let Some(Part::Memory(mut buf)) = shared.into_parts().pop_front() else { panic!("no memory") };
                assert!(buf.copy_to_bytes(buf.remaining()) == copied.freeze(), "version {version}");
            }
        }
    }
}
