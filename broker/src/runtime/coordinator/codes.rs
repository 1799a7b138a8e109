//! Refusals of coordinators as Kafka's error codes. Every variant is named, so that a new one cannot be forgotten.

use coordinator::group::GroupError;
use kafka_protocol::ResponseError;

use super::error::CoordinatorError;

/// The code of a refusal of the host (Kafka: CoordinatorOperationExceptionHelper).
pub fn coordinator_code(error: &CoordinatorError) -> i16 {
    let code = match error {
        CoordinatorError::NotCoordinator => ResponseError::NotCoordinator,
        CoordinatorError::LoadInProgress => ResponseError::CoordinatorLoadInProgress,
        CoordinatorError::NotAvailable => ResponseError::CoordinatorNotAvailable,
        CoordinatorError::RecordTooLarge { .. } | CoordinatorError::OtherAnswer => ResponseError::UnknownServerError,
    };
    code.code()
}

/// The code of a refusal of the group machine.
pub fn group_code(error: &GroupError) -> i16 {
    let code = match error {
        GroupError::InvalidGroupId => ResponseError::InvalidGroupId,
        GroupError::InvalidSessionTimeout { .. } => ResponseError::InvalidSessionTimeout,
        GroupError::MemberIdRequired { .. } => ResponseError::MemberIdRequired,
        // A member of another protocol's group is none of the classic protocol.
        GroupError::UnknownMember { .. } | GroupError::NotClassic { .. } => ResponseError::UnknownMemberId,
        GroupError::FencedInstance { .. } => ResponseError::FencedInstanceId,
        GroupError::IllegalGeneration { .. } => ResponseError::IllegalGeneration,
        GroupError::InconsistentProtocol { .. } => ResponseError::InconsistentGroupProtocol,
        GroupError::MaxSizeReached { .. } => ResponseError::GroupMaxSizeReached,
        GroupError::RebalanceInProgress { .. } => ResponseError::RebalanceInProgress,
        GroupError::GroupNotFound { .. } => ResponseError::GroupIdNotFound,
        GroupError::NonEmptyGroup { .. } => ResponseError::NonEmptyGroup,
        GroupError::SubscribedToTopic { .. } => ResponseError::GroupSubscribedToTopic,
        GroupError::MetadataTooLarge { .. } => ResponseError::OffsetMetadataTooLarge,
        GroupError::UnstableOffset => ResponseError::UnstableOffsetCommit,
    };
    code.code()
}

/// The code of an outcome for one element: 0 when nothing is wrong.
pub fn group_code_or_none(error: Option<&GroupError>) -> i16 {
    error.map_or(0, group_code)
}
