//! ApiVersions (18): the request, whose version 5 says which node the client believes to speak to (KIP-1242).

use kafka_protocol::protocol::StrBytes;

message! {
    /// Asks which APIs are served.
    ApiVersionsRequest: request, versions 0..=5, flexible 3 {
        /// Name of the client's software (KIP-511).
        client_software_name: StrBytes [3..] = StrBytes::default(),
        /// Its version.
        client_software_version: StrBytes [3..] = StrBytes::default(),
        /// The cluster that the client expects, if it knows one.
        cluster_id: Option<StrBytes> [5..] = None,
        /// The node that the client expects, -1 if it knows none.
        node_id: i32 [5..] = -1,
    }
}
