//! (dicts, Plan) -> dicts. The input is never changed; messages that are not are the caller's own objects.

use super::convert::to_str;
use super::dicts::Dicts;
use super::values::get;
use crate::outline::{Outline, Shape};
use crate::placeholder::Placeholder;
use crate::plan::{Masked, Plan, facts};
use crate::policy::Policy;
use crate::source::Source;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The view; the caller's own list where nothing changed.
pub fn apply<'py>(dicts: &Dicts<'py>, outline: &Outline, policy: &Policy, plan: &Plan) -> PyResult<Bound<'py, PyList>> {
    if !plan.changes() {
        return Ok(dicts.list.clone());
    }
    let py = dicts.list.py();
    let placeholder = Placeholder::of(policy);
    let view = dicts.list.get_slice(0, dicts.list.len());
    let result_message = |masked: &Masked| outline.results[masked.result as usize].message;
    for masked in plan.masked.chunk_by(|one, next| result_message(one) == result_message(next)) {
        let index = result_message(&masked[0]) as usize;
        if plan.keeps(index) {
            view.set_item(index, mask_message(dicts, outline, plan, &placeholder, index, masked)?)?;
        }
    }
    let Some(kept) = &plan.kept else { return Ok(view) };
    let summary = match &plan.summary {
        None => None,
        Some(summary) => {
            let message = PyDict::new(py);
            message.set_item(intern!(py, "role"), &summary.role)?;
            message.set_item(intern!(py, "content"), to_str(py, &summary.text)?)?;
            Some((summary.before, message))
        }
    };
    let shorter = PyList::empty(py);
    let mut summary = summary;
    for (index, _) in kept.iter().enumerate().filter(|(_, is_kept)| **is_kept) {
        if let Some((_, message)) = summary.take_if(|(before, _)| index >= *before) {
            shorter.append(message)?;
        }
        shorter.append(view.get_item(index)?)?;
    }
    if let Some((_, message)) = summary {
        shorter.append(message)?;
    }
    Ok(shorter)
}

/// A copy of a message with some of its observations masked.
fn mask_message<'py>(
    dicts: &Dicts<'py>,
    outline: &Outline,
    plan: &Plan,
    placeholder: &Placeholder,
    index: usize,
    masked: &[Masked],
) -> PyResult<Bound<'py, PyDict>> {
    let py = dicts.list.py();
    let turns = placeholder.names_turn().then_some(&plan.turns);
    let text = |masked: &Masked| {
        let result = masked.result as usize;
        let facts = facts(outline, &plan.pairs, turns, result);
        let text = placeholder.render(&masked.form, &facts, || dicts.observation(outline, result));
        to_str(py, &text.unwrap_or_default())
    };
    let message = dicts.message(index)?.copy()?;
    match outline.messages[index].shape {
        Shape::Responses => message.set_item(intern!(py, "output"), text(&masked[0])?)?,
        Shape::Anthropic => {
            let content = get!(message, "content")?;
            let Some(Ok(content)) = content.map(Bound::cast_into::<PyList>) else { return Ok(message) };
            let content = content.get_slice(0, content.len());
            for masked in masked {
                let block = outline.results[masked.result as usize].block as usize;
                let copy = content.get_item(block)?.cast::<PyDict>()?.copy()?;
                copy.set_item(intern!(py, "content"), text(masked)?)?;
                content.set_item(block, copy)?;
            }
            message.set_item(intern!(py, "content"), content)?;
        }
        _ => message.set_item(intern!(py, "content"), text(&masked[0])?)?,
    }
    Ok(message)
}
