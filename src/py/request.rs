//! Request bodies, for a proxy.

use super::convert::{PyPolicy, RawCostsAndTexts, costs_and_texts_of, transcript_error};
use super::guard::guarded;
use super::reduction::json_reduction;
use crate::marks::{caches_messages, newest_in_body};
use crate::outline::{Outline, Span};
use crate::plan::SummaryInput;
use crate::points::request_points;
use crate::policy::Policy;
use crate::reduce::{Reduced, reduce_scanned};
use crate::scan::{field, has_field, member, scan_bounded, text};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::{Mutex, PoisonError};

/// A request body that was scanned, to be masked once; see `recede.proxy.RequestMasker`.
#[pyclass(frozen, name = "Request", module = "recede._core")]
pub struct PyRequest {
    data: Py<PyBytes>,
    /// The facts of the body; None once it is masked.
    outline: Mutex<Option<Outline>>,
    /// Whether it has one of the fields of a history that the provider keeps.
    #[pyo3(get)]
    is_kept_by_provider: bool,
    /// The model; None if the body names none.
    #[pyo3(get)]
    model: Option<String>,
    /// The time to live of the newest cache mark; None if that has none.
    #[pyo3(get)]
    ttl: Option<String>,
    /// Whether a message has a cache mark, or the body has one for its end.
    #[pyo3(get)]
    caches_messages: bool,
    /// `prompt_cache_retention`.
    #[pyo3(get)]
    retention: Option<String>,
}

#[pymethods]
impl PyRequest {
    #[new]
    fn new(data: &Bound<'_, PyBytes>, kept_by_provider: Vec<String>) -> PyResult<Self> {
        guarded(|| {
            let (py, bytes) = (data.py(), data.as_bytes());
            let outline = py.detach(|| scan_bounded(bytes)).map_err(|error| transcript_error(py, &error))?;
            let text_of = |value: Option<Span>| Some(String::from_utf8_lossy(&text(value?.of(bytes))?).into_owned());
            Ok(PyRequest {
                data: data.clone().unbind(),
                is_kept_by_provider: kept_by_provider.into_iter().any(|name| has_field(bytes, &outline, &name)),
                model: text_of(field(bytes, &outline, "model")),
                ttl: text_of(newest_in_body(bytes, &outline).and_then(|mark| member(bytes, mark, b"ttl"))),
                caches_messages: caches_messages(bytes, &outline),
                retention: text_of(field(bytes, &outline, "prompt_cache_retention")),
                outline: Mutex::new(Some(outline)),
            })
        })
    }

    /// The messages before each request that it implies, with the key of these.
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let points = self.held().as_ref().map(request_points).unwrap_or_default();
            let points = points.into_iter().map(|(messages, key)| (messages, PyBytes::new(py, &key.to_le_bytes())));
            PyList::new(py, points.collect::<Vec<_>>())
        })
    }

    /// Masks it, where the cache was cold at these requests besides those of the policy.
    #[pyo3(signature = (policy, cold, costs=None))]
    fn mask<'py>(
        &self,
        py: Python<'py>,
        policy: &PyPolicy,
        mut cold: Vec<usize>,
        costs: Option<RawCostsAndTexts>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let data = self.data.bind(py);
            let bytes = data.as_bytes();
            let outline = self.held().take().ok_or_else(|| PyTypeError::new_err("a request is masked once"))?;
            cold.extend(&policy.policy.cold);
            cold.sort_unstable();
            cold.dedup();
            let policy = Policy { cold, ..policy.policy.clone() };
            let costs = costs_and_texts_of(costs)?;
            let reduced =
                py.detach(|| reduce_scanned(bytes, outline, &policy, costs.as_ref(), &SummaryInput::NotAsked));
            match reduced {
                Reduced::View(view, outline, plan) => json_reduction(data, view.as_ref(), outline, &plan, &policy),
                _ => Err(PyTypeError::new_err("the policy of a request masks, and asks for nothing")),
            }
        })
    }
}

impl PyRequest {
    fn held(&self) -> std::sync::MutexGuard<'_, Option<Outline>> {
        self.outline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
