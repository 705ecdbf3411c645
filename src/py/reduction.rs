//! Results of reductions: the view, with the counters of the plan.

use super::convert::to_str;
use super::named::{NamedField, NamedTuple, field_of, named};
use super::new_bytes;
use super::unread;
use crate::outline::Outline;
use crate::plan::{Move, Plan, Unmasked};
use crate::policy::Policy;
use crate::report::{self, Figure};
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
    let figures = report::figures(outline, plan, &tools, &dropped, &policy.terms.provider);
    // The caller of the summarizer adds its error, that of a whole request the request.
    let none = || py.None().into_bound(py);
    let other = if view.0 == "json" { "messages" } else { "json" };
    let mut fields = vec![view, (other, none()), ("request", none()), ("summarizer_error", none())];
    for (name, figure) in figures {
        fields.push((name, figure_of(py, outline, figure)?));
    }
    class.make(py, &fields)
}

fn figure_of<'py>(py: Python<'py>, outline: &Outline, figure: Figure<'_>) -> PyResult<Bound<'py, PyAny>> {
    match figure {
        Figure::Flag(flag) => field_of(py, flag),
        Figure::MaybeFlag(flag) => field_of(py, flag),
        Figure::Count(count) => field_of(py, count),
        Figure::Place(place) => field_of(py, place),
        Figure::Word(word) => field_of(py, word),
        Figure::Results(places) => Ok(PyBytes::new(py, &places).into_any()),
        Figure::Unmasked(unmasked) => unmasked_of(py, unmasked),
        Figure::Messages(messages) => Ok(PyTuple::new(py, messages)?.into_any()),
        Figure::Tools(tools) => {
            let reports = PyDict::new(py);
            for (name, count) in tools {
                let name = to_str(py, name.map_or(b"", |name| outline.name(name)))?;
                reports.set_item(
                    name,
                    named!(
                        "recede._report.ToolReport",
                        py,
                        observations = count.observations,
                        masked = count.masked,
                        chars = count.chars,
                        removed_chars = count.removed_chars
                    )?,
                )?;
            }
            Ok(reports.into_any())
        }
        Figure::Moves(moves) => {
            let made: PyResult<Vec<_>> = moves.iter().map(|step| boundary_move(py, step)).collect();
            Ok(PyTuple::new(py, made?)?.into_any())
        }
    }
}

pub(super) fn unmasked_of(py: Python<'_>, unmasked: Unmasked) -> PyResult<Bound<'_, PyAny>> {
    let Unmasked { outside_window, maskable, is_below_trigger, is_below_step } = unmasked;
    named!("recede._report.Unmasked", py, outside_window, maskable, is_below_trigger, is_below_step)
}

pub(super) fn boundary_move<'py>(py: Python<'py>, step: &Move) -> PyResult<Bound<'py, PyAny>> {
    named!(
        "recede._report.BoundaryMove",
        py,
        request = step.request,
        masked_count = step.masked,
        removed_chars = step.removed,
        written_chars = step.written_again
    )
}
