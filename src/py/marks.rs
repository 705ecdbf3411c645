//! Cache marks of dicts: where they are, and a view with others. The input is never changed.

use super::values::{Any, Dict, cast};
use crate::marks::{FIELD, Marked, Marks, Pins};
use crate::outline::Outline;
use crate::plan::{Plan, marks_in_view, pins};
use crate::policy::Policy;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// The marks of a list of dicts.
#[derive(Default)]
pub struct DictMarks<'py> {
    blocks: Vec<Marked>,
    /// The oldest mark of each of these blocks, which is copied.
    values: Vec<Any<'py>>,
}

impl<'py> DictMarks<'py> {
    /// Adds those of the next message.
    pub fn add(&mut self, index: usize, message: &Dict<'py>) -> PyResult<()> {
        let Some(blocks) = blocks_of(message)? else { return Ok(()) };
        for (place, block) in blocks.iter().enumerate() {
            let marks = cast::<PyDict>(&block).map_or(Ok(vec![]), marks_in)?;
            let count = marks.len();
            if let Some(oldest) = marks.into_iter().next() {
                self.blocks.push(Marked { message: index, block: place, count, stays: false });
                self.values.push(oldest);
            }
        }
        Ok(())
    }

    /// The messages that have some.
    pub fn messages(&self) -> Vec<usize> {
        let mut messages: Vec<usize> = self.blocks.iter().map(|one| one.message).collect();
        messages.dedup();
        messages
    }

    /// Where they are, besides this many elsewhere in a request.
    pub fn places(&self, elsewhere: usize) -> Marks {
        Marks { blocks: self.blocks.clone(), elsewhere, ..Marks::default() }
    }

    /// Writes pins into a view, for which its marks were asked.
    pub fn write(&self, view: &Bound<'py, PyList>, marks: &Marks, pins: Pins) -> PyResult<()> {
        for (message, block, source) in pins.added {
            if let Some(mark) = self.at(&marks.blocks[source]) {
                change_block(view, message, block, |block| block.set_item(FIELD, mark))?;
            }
        }
        for Marked { message, block, .. } in pins.removed.into_iter().map(|one| marks.blocks[one]) {
            change_block(view, message, block, clear)?;
        }
        Ok(())
    }

    fn at(&self, one: &Marked) -> Option<Any<'py>> {
        let place = self.blocks.iter().position(|block| (block.message, block.block) == (one.message, one.block));
        Some(self.values[place?].clone())
    }
}

/// The view with the marks of its pins.
pub fn with_marks<'py>(
    view: Bound<'py, PyList>,
    found: Option<&DictMarks<'py>>,
    outline: &Outline,
    policy: &Policy,
    plan: &Plan,
) -> PyResult<Bound<'py, PyList>> {
    let Some(found) = found.filter(|_| plan.changes()) else { return Ok(view) };
    let marks = marks_in_view(outline, &plan.masked, found.places(policy.marks_elsewhere));
    if let Some(pins) = pins(outline, plan, &marks, policy.cache) {
        found.write(&view, &marks, pins)?;
    }
    Ok(view)
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
