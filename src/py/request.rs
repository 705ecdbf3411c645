//! Masks request bodies, for a proxy.

use super::convert::{PyPolicy, transcript_error};
use super::guard::guarded;
use super::reduction::json_reduction;
use crate::plan::SummaryInput;
use crate::points::request_points;
use crate::policy::Policy;
use crate::reduce::{Reduced, reduce_scanned};
use crate::scan::{field, has_field, scan};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// Masks a request body; see `recede.RequestMasker`. `policy` is given the JSON of its model, if it has one. `cold_requests` is given the messages before each request that the body implies,
/// with their key, and returns those of them that found the cache cold. None if the body has one of the fields of a history that the
/// provider keeps.
#[pyfunction]
pub fn mask_request<'py>(
    data: &Bound<'py, PyBytes>,
    policy: &Bound<'py, PyAny>,
    kept_by_provider: Vec<String>,
    cold_requests: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    guarded(|| {
        let py = data.py();
        let bytes = data.as_bytes();
        let outline = py.detach(|| scan(bytes, false)).map_err(|error| transcript_error(py, &error))?;
        if kept_by_provider.into_iter().any(|field| has_field(bytes, &outline, &field)) {
            outline.recycle();
            return Ok(None);
        }
        let model = field(bytes, &outline, "model").map(|model| PyBytes::new(py, model));
        let policy = policy.call1((model,))?.extract::<PyRef<'py, PyPolicy>>()?;
        let points = request_points(&outline);
        let points = points.into_iter().map(|(messages, key)| (messages, PyBytes::new(py, &key.to_le_bytes())));
        let mut cache_cold: Vec<usize> =
            cold_requests.call1((PyList::new(py, points.collect::<Vec<_>>())?,))?.extract()?;
        cache_cold.sort_unstable();
        let rules = Policy { cache_cold, ..policy.policy.clone() };
        match py.detach(|| reduce_scanned(bytes, outline, &rules, None, &SummaryInput::NotAsked)) {
            Reduced::View(view, outline, plan) => json_reduction(data, view.as_ref(), outline, &plan, &rules).map(Some),
            _ => Err(PyTypeError::new_err("the policy of a request masks, and asks for nothing")),
        }
    })
}
