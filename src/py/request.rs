//! Masks request bodies, for a proxy.

use super::convert::{PyPolicy, RawCostsAndTexts, costs_and_texts_of, transcript_error};
use super::guard::guarded;
use super::reduction::json_reduction;
use crate::marks::newest_in_body;
use crate::outline::Span;
use crate::plan::SummaryInput;
use crate::points::request_points;
use crate::policy::Policy;
use crate::reduce::{Reduced, reduce_scanned};
use crate::scan::{field, has_field, member, scan, text};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// Masks a request body; see `recede.proxy.RequestMasker`. `rules` is given what the body says of its model, of the time to live of its
/// newest cache mark and of `prompt_cache_retention`, each None if that is no text; and the messages before each request that it
/// implies, with their key. It returns the policy, and those of the requests that found the cache cold. None if the body has one of
/// the fields of a history that the provider keeps.
#[pyfunction]
#[pyo3(signature = (data, kept_by_provider, rules, costs=None))]
pub fn mask_request<'py>(
    data: &Bound<'py, PyBytes>,
    kept_by_provider: Vec<String>,
    rules: &Bound<'py, PyAny>,
    costs: Option<RawCostsAndTexts>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    guarded(|| {
        let py = data.py();
        let bytes = data.as_bytes();
        let outline = py.detach(|| scan(bytes, false)).map_err(|error| transcript_error(py, &error))?;
        if kept_by_provider.into_iter().any(|field| has_field(bytes, &outline, &field)) {
            outline.recycle();
            return Ok(None);
        }
        let said = |value: Option<Span>| Some(String::from_utf8_lossy(&text(value?.of(bytes))?).into_owned());
        let model = said(field(bytes, &outline, "model"));
        let ttl = said(newest_in_body(bytes, &outline).and_then(|mark| member(bytes, mark, b"ttl")));
        let retention = said(field(bytes, &outline, "prompt_cache_retention"));
        let points = request_points(&outline);
        let points = points.into_iter().map(|(messages, key)| (messages, PyBytes::new(py, &key.to_le_bytes())));
        let points = PyList::new(py, points.collect::<Vec<_>>())?;
        let (policy, mut cold): (PyRef<'py, PyPolicy>, Vec<usize>) =
            rules.call1((model, ttl, retention, points))?.extract()?;
        cold.extend(&policy.policy.cold);
        cold.sort_unstable();
        cold.dedup();
        let rules = Policy { cold, ..policy.policy.clone() };
        let costs = costs_and_texts_of(costs)?;
        let counted = costs.as_ref();
        match py.detach(|| reduce_scanned(bytes, outline, &rules, counted, &SummaryInput::NotAsked, &mut |_| None)) {
            Reduced::View(view, outline, plan) => json_reduction(data, view.as_ref(), outline, &plan, &rules).map(Some),
            _ => Err(PyTypeError::new_err("the policy of a request masks, and asks for nothing")),
        }
    })
}
