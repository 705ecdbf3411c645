//! Cache marks of dicts: where they are, and a view with others. The input is never changed.

use super::dicts::Dicts;
use super::values::{Any, Dict};
use crate::marks::{FIELD, Marked, Marks, Pins};
use crate::outline::Outline;
use crate::plan::{Plan, marks_in_view, pins};
use crate::policy::Policy;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// The view with the marks of its pins.
pub fn with_marks<'py>(
    view: Bound<'py, PyList>,
    dicts: &Dicts<'py>,
    outline: &Outline,
    policy: &Policy,
    plan: &Plan,
) -> PyResult<Bound<'py, PyList>> {
    if !policy.pins_boundary || !plan.changes() {
        return Ok(view);
    }
    let mut marks = Marks { elsewhere: policy.marks_elsewhere, ..Marks::default() };
    for message in 0..dicts.list.len() {
        marks.blocks.extend(marked_blocks(&dicts.message(message)?, message)?);
    }
    let marks = marks_in_view(outline, &plan.masked, marks);
    if let Some(pins) = pins(outline, policy, plan, &marks) {
        write_pins(&view, &marks, pins, |message| dicts.message(message))?;
    }
    Ok(view)
}

/// Writes pins into a view of these messages, whose marks they are.
pub fn write_pins<'py>(
    view: &Bound<'py, PyList>,
    marks: &Marks,
    pins: Pins,
    message_at: impl Fn(usize) -> PyResult<Dict<'py>>,
) -> PyResult<()> {
    for (message, block, source) in pins.added {
        let Marked { message: other, block: place, .. } = marks.blocks[source];
        let mark = match blocks_of(&message_at(other)?)? {
            Some(blocks) => marks_in(blocks.get_item(place)?.cast()?)?.pop(),
            None => None,
        };
        if let Some(mark) = mark {
            change_block(view, message, block, |block| block.set_item(FIELD, mark))?;
        }
    }
    for Marked { message, block, .. } in pins.removed.into_iter().map(|one| marks.blocks[one]) {
        change_block(view, message, block, clear)?;
    }
    Ok(())
}

/// The blocks of a message that have marks.
pub fn marked_blocks(message: &Dict, index: usize) -> PyResult<Vec<Marked>> {
    let mut marked = vec![];
    for (block, value) in blocks_of(message)?.iter().flatten().enumerate() {
        let count = value.cast::<PyDict>().map_or(Ok(0), |block| marks_in(block).map(|marks| marks.len()))?;
        if count > 0 {
            marked.push(Marked { message: index, block, count, stays: false });
        }
    }
    Ok(marked)
}

fn blocks_of<'py>(message: &Dict<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
    Ok(message.get_item(intern!(message.py(), "content"))?.and_then(|content| content.cast_into().ok()))
}

fn mark_of<'py>(object: &Bound<'py, PyDict>) -> PyResult<Option<Any<'py>>> {
    Ok(object.get_item(intern!(object.py(), "cache_control"))?.filter(|mark| !mark.is_none()))
}

/// All marks of a block, the newest last: those of its parts, then its own.
fn marks_in<'py>(block: &Bound<'py, PyDict>) -> PyResult<Vec<Any<'py>>> {
    let mut marks = vec![];
    for part in parts_of(block)?.iter().flatten() {
        if let Ok(part) = part.cast::<PyDict>() {
            marks.extend(mark_of(part)?);
        }
    }
    marks.extend(mark_of(block)?);
    Ok(marks)
}

/// The content of a block that is a result.
fn parts_of<'py>(block: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyList>>> {
    let content = block.get_item(intern!(block.py(), "content"))?;
    let Some(Ok(parts)) = content.map(Bound::cast_into::<PyList>) else { return Ok(None) }; // mostly a text, or nothing
    let kind = block.get_item(intern!(block.py(), "type"))?;
    let is_result = kind.is_some_and(|kind| kind.cast::<PyString>().is_ok_and(|kind| kind == "tool_result"));
    Ok(is_result.then_some(parts))
}

/// Removes the marks of a block that is ours.
fn clear(block: &Bound<'_, PyDict>) -> PyResult<()> {
    if block.contains(FIELD)? {
        block.del_item(FIELD)?;
    }
    let Some(parts) = parts_of(block)? else { return Ok(()) };
    let cleared = PyList::empty(block.py());
    for part in parts.iter() {
        match part.cast::<PyDict>() {
            Ok(part) if mark_of(part)?.is_some() => {
                let part = part.copy()?;
                part.del_item(FIELD)?;
                cleared.append(part)?;
            }
            _ => cleared.append(part)?,
        }
    }
    block.set_item("content", cleared)
}

/// Replaces a block of a view by a changed copy.
fn change_block<'py>(
    view: &Bound<'py, PyList>,
    index: usize,
    block: usize,
    change: impl FnOnce(&Dict<'py>) -> PyResult<()>,
) -> PyResult<()> {
    let message = view.get_item(index)?.cast::<PyDict>()?.copy()?;
    let Some(blocks) = blocks_of(&message)? else { return Ok(()) };
    let blocks = blocks.get_slice(0, blocks.len());
    let copy = blocks.get_item(block)?.cast::<PyDict>()?.copy()?;
    change(&copy)?;
    blocks.set_item(block, copy)?;
    message.set_item("content", blocks)?;
    view.set_item(index, message)
}
