//! Who may do what. The authorizer is the only maker of [`Authorized`], and owners of state give out their handles only
//! against one, so a handler that forgot to ask does not compile.

mod authorizer;
mod session;

pub use authorizer::{
    Authorized, Authorizer, Cluster, Denied, GroupId, Operation, Resource, TopicName, TransactionalId,
};
pub use session::Session;
