//! A message without its signed reasoning.

use super::values::{Any, name};
use crate::shape::{BLOCKS, Key, NO_REASONING, SIGNED_FIELDS, Value, is_signed_block};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// A copy of a message without its signed reasoning. One that has nothing else keeps its place with a short text.
pub(super) fn unsigned<'py>(message: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let (py, message) = (message.py(), message.copy()?);
    for field in SIGNED_FIELDS {
        if message.contains(name(py, field))? {
            message.del_item(name(py, field))?;
        }
    }
    let mut found = None;
    for field in BLOCKS {
        if found.is_none() {
            found = message.get_item(name(py, field))?.map(|content| (field, content));
        }
    }
    let Some((field, content)) = found else { return Ok(message) };
    let blocks = content.cast::<PyList>().ok();
    let (kept, mut has_types) = (PyList::empty(py), true);
    for block in blocks.into_iter().flatten() {
        let Ok(dict) = block.cast::<PyDict>() else { continue };
        has_types &= dict.contains(name(py, Key::Type))?;
        if !is_signed_block::<Any>(dict, field).map_err(PyErr::from)? {
            kept.append(block)?;
        }
    }
    let has_calls = message.get_item(name(py, Key::ToolCalls))?.is_some_and(|calls| calls.length() > 0);
    let is_empty = if blocks.is_some() { kept.is_empty() } else { !content.is_truthy()? };
    if !is_empty || has_calls {
        if blocks.is_some() {
            message.set_item(name(py, field), kept)?;
        }
        return Ok(message);
    }
    let text = PyString::new(py, NO_REASONING);
    if blocks.is_none() {
        message.set_item(name(py, field), text)?;
        return Ok(message);
    }
    let block = PyDict::new(py);
    if has_types {
        block.set_item(name(py, Key::Type), intern!(py, "text"))?;
    }
    block.set_item(name(py, Key::Text), text)?;
    message.set_item(name(py, field), PyList::new(py, [block])?)?;
    Ok(message)
}
