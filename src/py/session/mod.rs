//! Sessions for Python: frozen classes of messages and of facts, their state guarded by a lock. No Python code runs while
//! the lock is held.

mod facts;
mod messages;
mod shared;

pub(super) use facts::PyFactsSession;
pub(super) use messages::{PySession, stored_options};
