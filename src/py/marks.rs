//! Cache marks of dicts: where they are, and a view with others. The input is never changed.

use super::dicts::Dicts;
use super::values::{Any, Dict, cast, name};
use crate::marks::{FIELD, LEVELS, Marked, Marks, Pins};
use crate::outline::Outline;
use crate::plan::{Plan, marks_in_view, pins};
use crate::policy::{Policy, Requests};
use crate::shape::Key;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// The marks of a list of dicts.
#[derive(Default)]
pub(super) struct DictMarks<'py> {
    blocks: Vec<Marked>,
    /// The oldest mark of each of these blocks, which is copied.
    values: Vec<Any<'py>>,
    /// The mark that the body has for the last block.
    automatic: Option<Any<'py>>,
}

impl<'py> DictMarks<'py> {
    /// Marks of a history whose view may get others. They are read before [`apply`](super::apply::apply), which masks messages in
    /// the same list.
    pub(super) fn of(
        dicts: &Dicts<'py>,
        outline: &Outline,
        (policy, requests): (&Policy, &Requests),
        plan: &Plan,
    ) -> PyResult<Option<Self>> {
        if !(plan.changes() && policy.terms.pins_boundary) {
            return Ok(None);
        }
        let json = dicts.list.py().import("json")?;
        let automatic = requests.automatic_mark.as_ref().map(|mark| json.call_method1("loads", (mark,)));
        let mut found = DictMarks::around(automatic.transpose()?);
        for message in 0..outline.messages.len() {
            found.add(message, &dicts.message(message)?)?;
        }
        Ok(Some(found))
    }

    /// Writes the pins of a plan into its view.
    pub(super) fn pin(
        &self,
        view: &Bound<'py, PyList>,
        outline: &Outline,
        policy: &Policy,
        requests: &Requests,
        plan: &Plan,
    ) -> PyResult<()> {
        let marks = self.places(requests.marks_elsewhere);
        let marks = if self.is_automatic() { marks.with_automatic(outline) } else { marks };
        let marks = marks_in_view(outline, &plan.masked, marks);
        pins(outline, plan, &marks, policy.terms.cache).map_or(Ok(()), |pins| self.write(view, &marks, pins))
    }

    /// Adds those of the next message.
    pub(super) fn add(&mut self, index: usize, message: &Dict<'py>) -> PyResult<()> {
        let Some(blocks) = blocks_of(message)? else { return Ok(()) };
        for (place, block) in blocks.iter().enumerate() {
            let marks = cast::<PyDict>(&block).map_or(Ok(vec![]), |block| marks_within(block, LEVELS, &[FIELD]))?;
            let count = marks.len();
            if let Some((_, oldest)) = marks.into_iter().next() {
                self.blocks.push(Marked { message: index, block: place, count, stays: false });
                self.values.push(oldest);
            }
        }
        Ok(())
    }

    /// Those of messages in a body that has this mark for the last block.
    pub(super) fn around(automatic: Option<Any<'py>>) -> Self {
        DictMarks { automatic, ..DictMarks::default() }
    }

    pub(super) fn is_automatic(&self) -> bool {
        self.automatic.is_some()
    }

    /// The messages that have some.
    pub(super) fn messages(&self) -> Vec<usize> {
        let mut messages: Vec<usize> = self.blocks.iter().map(|one| one.message).collect();
        messages.dedup();
        messages
    }

    /// The places of the marks, besides this many elsewhere in a request.
    pub(super) fn places(&self, elsewhere: usize) -> Marks {
        Marks { blocks: self.blocks.clone(), elsewhere, ..Marks::default() }
    }

    /// Writes pins into a view, for which its marks were asked.
    pub(super) fn write(&self, view: &Bound<'py, PyList>, marks: &Marks, pins: Pins) -> PyResult<()> {
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
        if one.count == 0 {
            return self.automatic.clone();
        }
        let place = self.blocks.iter().position(|block| (block.message, block.block) == (one.message, one.block));
        Some(self.values[place?].clone())
    }
}

fn blocks_of<'py>(message: &Dict<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
    Ok(message.get_item(intern!(message.py(), "content"))?.and_then(|content| content.cast_into().ok()))
}

fn mark_of<'py>(object: &Bound<'py, PyDict>) -> PyResult<Option<Any<'py>>> {
    Ok(object.get_item(intern!(object.py(), "cache_control"))?.filter(|mark| !mark.is_none()))
}

/// A mark, and the name of its field.
pub(super) type NamedMark<'py> = (&'static str, Any<'py>);

/// Marks of these names of a block, the newest last: those of its parts for so many levels, then its own.
pub(super) fn marks_within<'py>(
    block: &Bound<'py, PyDict>,
    levels: usize,
    fields: &[&'static str],
) -> PyResult<Vec<NamedMark<'py>>> {
    let mut marks = vec![];
    if levels > 0
        && let Some((_, parts)) = parts_of(block)?
    {
        marks = marks_on(&parts, levels - 1, fields)?;
    }
    for field in fields {
        let key = if *field == FIELD { Key::CacheControl } else { Key::PromptCacheBreakpoint };
        let own = block.get_item(name(block.py(), key))?;
        marks.extend(own.filter(|mark| !mark.is_none()).map(|mark| (*field, mark)));
    }
    Ok(marks)
}

/// The marks of these names on the elements of a list, and on their parts for so many levels.
pub(super) fn marks_on<'py>(
    list: &Bound<'py, PyList>,
    levels: usize,
    fields: &[&'static str],
) -> PyResult<Vec<NamedMark<'py>>> {
    let mut marks = vec![];
    for part in list.iter() {
        if let Ok(part) = part.cast::<PyDict>() {
            marks.extend(marks_within(part, levels, fields)?);
        }
    }
    Ok(marks)
}

/// The parts of a block that may have marks, the content of a result or a document; and the field around them.
fn parts_of<'py>(block: &Dict<'py>) -> PyResult<Option<(Option<Dict<'py>>, Bound<'py, PyList>)>> {
    let py = block.py();
    let content = |object: &Dict<'py>| -> PyResult<Option<Bound<'py, PyList>>> {
        Ok(object.get_item(intern!(py, "content"))?.and_then(|content| content.cast_into().ok()))
    };
    let kind = block.get_item(intern!(py, "type"))?;
    let is = |name: &str| kind.as_ref().is_some_and(|kind| kind.cast::<PyString>().is_ok_and(|kind| kind == name));
    if is("document") {
        let source = block.get_item(intern!(py, "source"))?.and_then(|source| source.cast_into::<PyDict>().ok());
        let Some(source) = source else { return Ok(None) };
        return Ok(content(&source)?.map(|parts| (Some(source), parts)));
    }
    // Mostly a text, or nothing.
    let Some(parts) = content(block)? else { return Ok(None) };
    Ok((is("tool_result") || is("mcp_tool_result") || is("search_result")).then_some((None, parts)))
}

/// Removes the marks of a block that is ours.
fn clear(block: &Bound<'_, PyDict>) -> PyResult<()> {
    clear_within(block, LEVELS)
}

fn clear_within(block: &Bound<'_, PyDict>, levels: usize) -> PyResult<()> {
    if mark_of(block)?.is_some() || (levels == LEVELS && block.contains(FIELD)?) {
        block.del_item(FIELD)?;
    }
    let Some((source, parts)) = (if levels > 0 { parts_of(block)? } else { None }) else { return Ok(()) };
    let cleared = PyList::empty(block.py());
    for part in parts.iter() {
        match part.cast::<PyDict>() {
            Ok(part) if !marks_within(part, levels - 1, &[FIELD])?.is_empty() => {
                let part = part.copy()?;
                clear_within(&part, levels - 1)?;
                cleared.append(part)?;
            }
            _ => cleared.append(part)?,
        }
    }
    match source {
        None => block.set_item("content", cleared),
        Some(source) => {
            let source = source.copy()?;
            source.set_item("content", cleared)?;
            block.set_item("source", source)
        }
    }
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
