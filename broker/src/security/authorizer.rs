//! Decides whether a session may do an operation on a resource. As in Kafka without `authorizer.class.name`, everybody
//! may do everything.

use std::sync::Arc;

use super::Session;

/// Proof that the authorizer allowed an operation on `T`. Only the authorizer can make one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Authorized<T>(T);

impl<T> Authorized<T> {
    /// What was allowed.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// What was allowed, by value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// Name of a topic, whether or not it exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopicName(pub Arc<str>);

/// Name of a group, whether or not it exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupId(pub Arc<str>);

/// A producer's transactional id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TransactionalId(pub Arc<str>);

/// The cluster as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cluster;

/// A kind of thing that permission is asked for.
pub trait Resource {
    /// Operations that exist on this kind (Kafka: AclEntry.supportedOperations).
    const OPERATIONS: &'static [Operation];
}

impl Resource for TopicName {
    const OPERATIONS: &'static [Operation] = &[
        Operation::Read,
        Operation::Write,
        Operation::Create,
        Operation::Describe,
        Operation::Delete,
        Operation::Alter,
        Operation::DescribeConfigs,
        Operation::AlterConfigs,
    ];
}

impl Resource for GroupId {
    const OPERATIONS: &'static [Operation] =
        &[Operation::Read, Operation::Describe, Operation::Delete, Operation::DescribeConfigs, Operation::AlterConfigs];
}

impl Resource for TransactionalId {
    const OPERATIONS: &'static [Operation] = &[Operation::Describe, Operation::Write, Operation::TwoPhaseCommit];
}

impl Resource for Cluster {
    const OPERATIONS: &'static [Operation] = &[
        Operation::Create,
        Operation::ClusterAction,
        Operation::DescribeConfigs,
        Operation::AlterConfigs,
        Operation::IdempotentWrite,
        Operation::Alter,
        Operation::Describe,
    ];
}

/// What can be done to a resource, with Kafka's codes (Kafka: AclOperation).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
#[allow(missing_docs, reason = "the names are Kafka's and say all")]
pub enum Operation {
    Read = 3,
    Write = 4,
    Create = 5,
    Delete = 6,
    Alter = 7,
    Describe = 8,
    ClusterAction = 9,
    DescribeConfigs = 10,
    AlterConfigs = 11,
    IdempotentWrite = 12,
    TwoPhaseCommit = 15,
}

/// The operation is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not authorized")]
pub struct Denied;

/// Decides what sessions may do.
#[derive(Debug, Default)]
pub struct Authorizer;

impl Authorizer {
    /// Asks whether `session` may do `operation` on `resource`.
    ///
    /// # Errors
    /// It may not.
    pub fn may<R: Resource>(
        &self,
        _session: &Session,
        _operation: Operation,
        resource: R,
    ) -> Result<Authorized<R>, Denied> {
        Ok(Authorized(resource))
    }

    /// Bit field of the operations that `session` may do on `resource`, as answers carry it (KIP-430).
    pub fn allowed_operations<R: Resource>(&self, _session: &Session, _resource: &R) -> i32 {
        R::OPERATIONS.iter().fold(0, |bits, operation| bits | 1 << (*operation as i8))
    }
}
