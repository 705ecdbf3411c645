//! A message without its signed reasoning.

use super::values::{Any, name};
use crate::shape::{Key, NO_REASONING, SIGNED_FIELDS, Value, is_thinking};
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
    let Some(content) = message.get_item(name(py, Key::Content))? else { return Ok(message) };
    let blocks = content.cast::<PyList>().ok();
    let (kept, mut has_types) = (PyList::empty(py), true);
    for block in blocks.into_iter().flatten() {
        let Ok(dict) = block.cast::<PyDict>() else { continue };
        has_types &= dict.contains(name(py, Key::Type))?;
        if !is_thinking::<Any>(dict).map_err(PyErr::from)? {
            kept.append(block)?;
        }
    }
    let has_calls = message.get_item(name(py, Key::ToolCalls))?.is_some_and(|calls| calls.length() > 0);
    let is_empty = if blocks.is_some() { kept.is_empty() } else { !content.is_truthy()? };
    if !is_empty || has_calls {
        if blocks.is_some() {
            message.set_item(name(py, Key::Content), kept)?;
        }
        return Ok(message);
    }
    let text = PyString::new(py, NO_REASONING);
    if blocks.is_none() {
        message.set_item(name(py, Key::Content), text)?;
        return Ok(message);
    }
    let block = PyDict::new(py);
    if has_types {
        block.set_item(name(py, Key::Type), intern!(py, "text"))?;
    }
    block.set_item(name(py, Key::Text), text)?;
    message.set_item(name(py, Key::Content), PyList::new(py, [block])?)?;
    Ok(message)
}
