//! Results of reductions: the view, with the counters of the plan.

use super::convert::to_str;
use super::named::{NamedField, NamedTuple, fields, named};
use super::new_bytes;
use super::unread;
use crate::outline::Outline;
use crate::plan::{Masked, Move, Plan, Unmasked};
use crate::policy::Policy;
use crate::report::{self, ToolCount};
use crate::splice::Spliced;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

static REDUCTION: NamedTuple = NamedTuple::new("recede._report.Reduction");
static JSON_REDUCTION: NamedTuple = NamedTuple::new("recede._report.JsonReduction");

pub(super) fn reduction<'py>(
    view: Bound<'py, PyList>,
    outline: &Outline,
    plan: &Plan,
    policy: &Policy,
) -> PyResult<Bound<'py, PyAny>> {
    answer(&REDUCTION, ("messages", view.into_any()), outline, plan, policy)
}

/// The reduction of serialized input, which is the view if there is none.
pub(super) fn json_reduction<'py>(
    data: &Bound<'py, PyBytes>,
    view: Option<&Spliced>,
    outline: Outline,
    plan: &Plan,
    policy: &Policy,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, bytes) = (data.py(), data.as_bytes());
    unread::warn_json(data, &outline, policy)?;
    let view = match view {
        None => data.clone(),
        Some(view) => new_bytes::bytes(py, view.length(), |out| view.write(bytes, out))?,
    };
    let answer = answer(&JSON_REDUCTION, ("json", view.into_any()), &outline, plan, policy);
    outline.recycle();
    answer
}

/// The view under its name, with the counters of the plan.
fn answer<'py>(
    class: &NamedTuple,
    view: NamedField<'py>,
    outline: &Outline,
    plan: &Plan,
    policy: &Policy,
) -> PyResult<Bound<'py, PyAny>> {
    let py = view.1.py();
    let tools = report::by_tool(outline, plan, policy.text.image_chars);
    let policy = policy.of(outline);
    let dropped = report::dropped(plan);
    let (clipped_count, clipped_chars) = report::clipped(outline, plan);
    let (reduction_stage, invariant_status) = report::stage(plan);
    // The caller of the summarizer adds its error, that of a whole request the request.
    let none = || py.None().into_bound(py);
    let other = if view.0 == "json" { "messages" } else { "json" };
    let mut fields = vec![view, (other, none()), ("request", none()), ("summarizer_error", none())];
    fields.extend(fields!(
        py,
        reduced = plan.changes(),
        dropped_count = dropped.len(),
        dropped = PyTuple::new(py, &dropped)?,
        mask_places = PyBytes::new(py, &report::places(outline, plan, Masked::is_masked)),
        cut_places = PyBytes::new(py, &report::places(outline, plan, Masked::is_clipped)),
        unmasked = unmasked_of(py, plan.unmasked)?,
        invariant_status,
        reduction_stage,
        masked_count = tools.iter().map(|(_, count)| count.masked).sum::<usize>(),
        masked_chars = tools.iter().map(|(_, count)| count.removed_chars).sum::<usize>(),
        clipped_count,
        clipped_chars,
        tools = tools_of(py, outline, &tools)?,
        chars_before = plan.chars.0,
        chars_after = plan.chars.1,
        within_limit = plan.within_limit,
        orphans = PyTuple::new(py, &plan.orphans)?,
        reasoning_dropped = plan.layout.reasoning_dropped(),
        first_changed = report::first_changed(outline, plan),
        boundary = plan.boundary,
        boundary_message = report::boundary_message(outline, plan),
        turns = plan.turns.count(),
        boundary_moves = moves_of(py, &plan.moves)?,
        provider = &policy.terms.provider
    ));
    class.make(py, &fields)
}

fn tools_of<'py>(
    py: Python<'py>,
    outline: &Outline,
    tools: &[(Option<u32>, ToolCount)],
) -> PyResult<Bound<'py, PyDict>> {
    let reports = PyDict::new(py);
    for (name, ToolCount { observations, masked, chars, removed_chars }) in tools.iter().copied() {
        let report = named!("recede._report.ToolReport", py, observations, masked, chars, removed_chars)?;
        reports.set_item(to_str(py, name.map_or(b"", |name| outline.name(name)))?, report)?;
    }
    Ok(reports)
}

/// Moves of the boundary.
pub(super) fn moves_of<'py>(py: Python<'py>, moves: &[Move]) -> PyResult<Bound<'py, PyTuple>> {
    let moves: PyResult<Vec<_>> = moves.iter().map(|step| boundary_move(py, step)).collect();
    PyTuple::new(py, moves?)
}

pub(super) fn unmasked_of(py: Python<'_>, unmasked: Unmasked) -> PyResult<Bound<'_, PyAny>> {
    let Unmasked { outside_window, maskable, is_below_trigger, is_below_step } = unmasked;
    named!("recede._report.Unmasked", py, outside_window, maskable, is_below_trigger, is_below_step)
}

fn boundary_move<'py>(py: Python<'py>, step: &Move) -> PyResult<Bound<'py, PyAny>> {
    named!(
        "recede._report.BoundaryMove",
        py,
        request = step.request,
        masked_count = step.masked,
        removed_chars = step.removed,
        written_chars = step.written_again,
        reasoning_dropped = step.reasoning
    )
}
