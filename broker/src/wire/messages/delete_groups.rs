//! DeleteGroups up to version 3, which adds a message to each error (KIP-1043).

use kafka_protocol::messages::DeleteGroupsResponse as Known;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult as KnownResult;
use kafka_protocol::protocol::buf::ByteBufMut;
use kafka_protocol::protocol::{Encodable, HeaderVersion, StrBytes};

use super::parts::{
    put_compact_count, put_compact_nullable_string, put_compact_string, put_no_tagged_fields, written_size,
};

/// Newest version that crate kafka-protocol writes.
const KNOWN_MAX: i16 = 2;

/// The answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeleteGroupsResponse {
    /// One for each group.
    pub results: Vec<DeletableGroupResult>,
}

/// What became of one group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeletableGroupResult {
    /// The group.
    pub group_id: StrBytes,
    /// 0 when it is deleted.
    pub error_code: i16,
    /// Why not; from version 3 on.
    pub error_message: Option<StrBytes>,
}

impl DeleteGroupsResponse {
    fn known(&self) -> Known {
        let result = |result: &DeletableGroupResult| {
            KnownResult::default().with_group_id(result.group_id.clone().into()).with_error_code(result.error_code)
        };
        Known::default().with_results(self.results.iter().map(result).collect())
    }

    fn write(&self, buf: &mut impl ByteBufMut) -> anyhow::Result<()> {
        buf.put_i32(0);
        put_compact_count(buf, self.results.len())?;
        for result in &self.results {
            put_compact_string(buf, &result.group_id)?;
            buf.put_i16(result.error_code);
            put_compact_nullable_string(buf, result.error_message.as_deref())?;
            put_no_tagged_fields(buf);
        }
        put_no_tagged_fields(buf);
        Ok(())
    }
}

impl Encodable for DeleteGroupsResponse {
    fn encode<B: ByteBufMut>(&self, buf: &mut B, version: i16) -> anyhow::Result<()> {
        if version <= KNOWN_MAX { self.known().encode(buf, version) } else { self.write(buf) }
    }

    fn compute_size(&self, version: i16) -> anyhow::Result<usize> {
        if version <= KNOWN_MAX { self.known().compute_size(version) } else { written_size(|buf| self.write(buf)) }
    }
}

impl HeaderVersion for DeleteGroupsResponse {
    fn header_version(version: i16) -> i16 {
        Known::header_version(version.min(KNOWN_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::testing::assert_written;
    use super::*;

    #[test]
    fn version_3_is_written_as_kafka_writes_it_and_older_ones_leave_the_message_out() {
        let text = StrBytes::from_static_str;
        let result = DeletableGroupResult { group_id: text("g"), error_code: 69, error_message: Some(text("gone")) };
        let response = DeleteGroupsResponse { results: vec![result] };
        assert_written(&response, 3, "00000000020267004505676f6e650000");
        assert_written(&response, 2, "0000000002026700450000");
    }
}
