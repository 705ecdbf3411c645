//! Sessions for Python: frozen classes of messages and of facts, their state guarded by a lock. No Python code runs while
//! the lock is held.

mod facts;
mod messages;
mod shared;

pub(super) use facts::PyFactsSession;
pub(super) use messages::PySession;

use super::guard::guarded;
use super::store::PyStore;
use crate::session::{Failure, Session};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The options of the session in a store.
#[pyfunction]
pub(crate) fn stored_options<'py>(py: Python<'py>, store: &PyStore) -> PyResult<Option<Bound<'py, PyBytes>>> {
    guarded(|| {
        let options = store.with_any(py, |store| Session::stored_options(store.ok_or(Failure::Closed)?));
        let options = options.map_err(|failure| match failure {
            Failure::Store(error) => store.raised(py, &error),
            _ => store.closed(py),
        })?;
        Ok(options.map(|options| PyBytes::new(py, &options)))
    })
}
