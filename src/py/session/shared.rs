//! Code that the classes share: a session after its lock, its errors, and a few values.

use crate::py::convert::{bytes_of, to_str, transcript_error};
use crate::py::store::PyStore;
use crate::py::values::{Any, number};
use crate::session::{Failure, Mask, Result, Session};
use crate::store::Store;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// A session and its store.
pub(super) struct Shared {
    session: Arc<Mutex<Session>>,
    store: Option<Py<PyStore>>,
}

impl Drop for Shared {
    /// In the child of a fork, never frees what a thread of the parent was changing.
    fn drop(&mut self) {
        if matches!(self.session.try_lock(), Err(TryLockError::WouldBlock)) {
            std::mem::forget(self.session.clone());
        }
    }
}

impl Shared {
    pub(super) fn of(session: Session, store: Option<Py<PyStore>>) -> Self {
        Shared { session: Arc::new(Mutex::new(session)), store }
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn look<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Session) -> T + Send) -> T {
        py.detach(|| work(&self.held()))
    }

    /// Changes the session and its store; see [`Session::change`].
    pub(super) fn change<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Session, Option<&mut Store>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let done = match &self.store {
            None => py.detach(|| self.held().change(|session| work(session, None))),
            Some(store) => store.get().with_any(py, |store| self.held().change(|session| work(session, store))),
        };
        done.map_err(|failure| self.raised(py, failure))
    }

    /// The same for what cannot fail, and uses no store.
    pub(super) fn edit<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Session) -> T + Send) -> PyResult<T> {
        self.change(py, |session, _| Ok(work(session)))
    }

    pub(super) fn raised(&self, py: Python<'_>, failure: Failure) -> PyErr {
        match (failure, &self.store) {
            (Failure::Message(error), _) => transcript_error(py, &error),
            (Failure::Store(error), Some(store)) => store.get().raised(py, &error),
            (Failure::Store(error), None) => PyRuntimeError::new_err(error.to_string()),
            (Failure::Closed, Some(store)) => store.get().closed(py),
            (Failure::Closed, None) => PyRuntimeError::new_err("the session has no store"),
            (Failure::Interrupted, _) => PyRuntimeError::new_err(
                "this session is read-only because recede crashed while changing it: create a new one from its messages or \
                 its store, and please report the earlier error",
            ),
            (Failure::OtherWriter, store) => {
                let path = store.as_ref().map_or(String::new(), |store| store.get().path().display().to_string());
                let words = "has messages that this history did not append: make the history again";
                PyRuntimeError::new_err(format!("{path} {words}"))
            }
        }
    }
}

/// How an observation is named: by its number, or by the id of its call.
pub(super) enum Observation {
    Number(usize),
    Id(Vec<u8>),
}

impl Observation {
    pub(super) fn of(value: &Any<'_>) -> PyResult<Self> {
        Ok(match value.cast::<PyString>() {
            Ok(id) => Observation::Id(bytes_of(id)),
            Err(_) => Observation::Number(usize::try_from(number(value)?).unwrap_or(usize::MAX)),
        })
    }
}

/// The texts of masks; placeholders repeat, so there is one object for equal ones.
pub(super) fn texts_of<'py>(py: Python<'py>, masks: &[Mask]) -> PyResult<Vec<Bound<'py, PyString>>> {
    let mut texts: HashMap<&[u8], Bound<'_, PyString>> = HashMap::new();
    masks
        .iter()
        .map(|(_, text)| {
            Ok(match texts.entry(text) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => new.insert(to_str(py, text)?).clone(),
            })
        })
        .collect()
}
