//! Records about users, permissions, quotas and delegation tokens.

use base::{TimestampMs, TopicId};
use bytes::Bytes;

use crate::schema::messages;

messages! {
    /// One part of the name of a quota's entity.
    QuotaEntity {
        /// `user`, `client-id` or `ip`.
        [0] entity_type: String,
        /// Its name, or none for the default of the type.
        [0] entity_name: Option<String>,
    }

    /// A quota was set or taken away.
    ClientQuotaRecord {
        /// Whom it holds for.
        [0] entity: Vec<QuotaEntity>,
        /// Name of the quota.
        [0] key: String,
        /// Its value.
        [0] value: f64,
        /// True to take it away.
        [0] remove: bool,
    }

    /// A SCRAM credential of a user was set.
    UserScramCredentialRecord {
        /// The user.
        [0] name: String,
        /// 1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.
        [0] mechanism: i8,
        /// Salt of the password.
        [0] salt: Bytes,
        /// Hash of the client key.
        [0] stored_key: Bytes,
        /// The server key.
        [0] server_key: Bytes,
        /// Rounds of the derivation.
        [0] iterations: i32,
    }

    /// A SCRAM credential of a user was taken away.
    RemoveUserScramCredentialRecord {
        /// The user.
        [0] name: String,
        /// 1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.
        [0] mechanism: i8,
    }

    /// A permission was granted or denied.
    AccessControlEntryRecord {
        /// Id of the entry.
        [0] id: TopicId,
        /// Kafka's code of the resource type.
        [0] resource_type: i8,
        /// Name of the resource.
        [0] resource_name: String,
        /// Kafka's code of the pattern type: 3 literal, 4 prefixed.
        [0] pattern_type: i8,
        /// The principal, as `User:name`.
        [0] principal: String,
        /// The client's host, or `*`.
        [0] host: String,
        /// Kafka's code of the operation.
        [0] operation: i8,
        /// 2 deny, 3 allow.
        [0] permission_type: i8,
    }

    /// An entry was taken away.
    RemoveAccessControlEntryRecord {
        /// Id of the entry.
        [0] id: TopicId,
    }

    /// A delegation token was made or changed.
    DelegationTokenRecord {
        /// Whom it stands for.
        [0] owner: String,
        /// Who asked for it.
        [0] requester: String,
        /// Who may renew it.
        [0] renewers: Vec<String>,
        /// When it was made.
        [0] issue_timestamp: TimestampMs,
        /// When it ends for good.
        [0] max_timestamp: TimestampMs,
        /// When it ends unless renewed.
        [0] expiration_timestamp: TimestampMs,
        /// Its id.
        [0] token_id: String,
    }

    /// A delegation token was taken away.
    RemoveDelegationTokenRecord {
        /// Its id.
        [0] token_id: String,
    }
}
