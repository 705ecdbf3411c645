//! Reading the fields of dicts: what a string, a part and a call is.

use super::convert::{Walked, with_text};
use crate::json::MAX_DEPTH;
use crate::outline::Shape;
use crate::shape::{self, PairRole, PartType, Type};
use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};
use pyo3::{PyTypeCheck, PyTypeInfo};

pub type Dict<'py> = Bound<'py, PyDict>;
pub type Any<'py> = Bound<'py, PyAny>;

/// Looks up a field whose name is known at compile time.
macro_rules! get {
    ($dict:expr, $name:literal) => {
        $dict.get_item(intern!($dict.py(), $name))
    };
}
pub(super) use get;

/// A number by which something is looked up. One that no 64 bits hold is that of nothing, like any other that is too
/// large.
pub fn number(value: &Any<'_>) -> PyResult<u64> {
    match value.extract::<u64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(u64::MAX),
        number => number,
    }
}

/// Whether a value is there: neither missing nor None.
pub fn present<'a, 'py>(value: Option<&'a Any<'py>>) -> Option<&'a Any<'py>> {
    value.filter(|value| !value.is_none())
}

/// A cast that first asks whether it is the very type, which takes no call.
pub fn cast<'a, 'py, T: PyTypeCheck + PyTypeInfo>(value: &'a Any<'py>) -> Option<&'a Bound<'py, T>> {
    value.cast_exact().ok().or_else(|| value.cast().ok())
}

/// `cast` of a value that is not needed as what it was.
pub fn cast_into<T: PyTypeCheck + PyTypeInfo>(value: Any<'_>) -> Option<Bound<'_, T>> {
    value.cast_into_exact().or_else(|error| error.into_inner().cast_into()).ok()
}

pub fn string(value: Option<Any<'_>>) -> Option<Bound<'_, PyString>> {
    value.and_then(cast_into)
}

pub fn part_type(part: &Dict) -> PyResult<PartType> {
    Ok(string(get!(part, "type")?).map_or(PartType::Other, |name| with_text(&name, shape::part_type)))
}

/// Calls `piece` with each text of a content: a string, or its text parts.
pub fn texts<'py>(content: &Any<'py>, piece: &mut dyn FnMut(&Bound<'py, PyString>)) -> PyResult<()> {
    if let Ok(text) = content.cast::<PyString>() {
        piece(text);
    } else if let Ok(parts) = content.cast::<PyList>() {
        for part in parts {
            let Ok(part) = part.cast::<PyDict>() else { continue };
            if part_type(part)? == PartType::Text
                && let Some(text) = string(get!(part, "text")?)
            {
                piece(&text);
            }
        }
    }
    Ok(())
}

/// One call as its message holds it.
pub struct RawCall<'py> {
    pub id: Option<Any<'py>>,
    pub name: Option<Bound<'py, PyString>>,
    pub arguments: Option<Any<'py>>,
    pub block: usize,
}

/// Calls `call` with each call of a message of this shape.
pub fn for_each_call<'py>(
    dict: &Dict<'py>,
    shape: Shape,
    content: Option<&Any<'py>>,
    tool_calls: Option<Any<'py>>,
    call: &mut dyn FnMut(RawCall<'py>) -> Walked<()>,
) -> Walked<()> {
    let not_none = |value: Option<Any<'py>>| value.filter(|value| !value.is_none());
    match shape {
        Shape::Plain => {}
        Shape::ChatMessage => {
            if pair_role(dict)? == PairRole::Call {
                call(RawCall { id: get!(dict, "pairId")?, name: None, arguments: None, block: 0 })?;
            }
        }
        Shape::OpenAi => {
            let Some(calls) = tool_calls.and_then(cast_into::<PyList>) else { return Ok(()) };
            for (block, item) in calls.iter().enumerate() {
                let Some(item) = cast::<PyDict>(&item) else { continue };
                let id = get!(item, "id")?;
                let raw = if let Some(function) = get!(item, "function")?.and_then(cast_into::<PyDict>) {
                    RawCall {
                        id,
                        name: string(get!(function, "name")?),
                        arguments: not_none(get!(function, "arguments")?),
                        block,
                    }
                } else if let Some(custom) = get!(item, "custom")?.and_then(cast_into::<PyDict>) {
                    RawCall {
                        id,
                        name: string(get!(custom, "name")?),
                        arguments: not_none(get!(custom, "input")?),
                        block,
                    }
                } else {
                    RawCall { id, name: None, arguments: None, block }
                };
                call(raw)?;
            }
        }
        Shape::Anthropic => {
            let Some(blocks) = content.and_then(|content| content.cast::<PyList>().ok()) else { return Ok(()) };
            for (block, item) in blocks.iter().enumerate() {
                let Some(item) = cast::<PyDict>(&item) else { continue };
                if part_type(item)? == PartType::ToolUse {
                    call(tool_use(item, block)?)?;
                }
            }
        }
        Shape::Responses => {
            if item_type(dict)? == Type::Call {
                let mut arguments = not_none(get!(dict, "arguments")?);
                if arguments.is_none() {
                    arguments = not_none(get!(dict, "input")?);
                }
                if arguments.is_none() {
                    arguments = not_none(get!(dict, "action")?);
                }
                call(RawCall { id: get!(dict, "call_id")?, name: string(get!(dict, "name")?), arguments, block: 0 })?;
            }
        }
    }
    Ok(())
}

pub fn tool_use<'py>(block: &Dict<'py>, place: usize) -> PyResult<RawCall<'py>> {
    let arguments = get!(block, "input")?.filter(|value| !value.is_none());
    Ok(RawCall { id: get!(block, "id")?, name: string(get!(block, "name")?), arguments, block: place })
}

pub fn pair_role(dict: &Dict) -> PyResult<PairRole> {
    Ok(string(get!(dict, "pairRole")?).map_or(PairRole::Other, |name| with_text(&name, shape::pair_role)))
}

pub fn item_type(dict: &Dict) -> PyResult<Type> {
    Ok(string(get!(dict, "type")?).map_or(Type::Other, |name| with_text(&name, shape::message_type)))
}
/// The size of a value as compact JSON, as counts go; without recursion, and an error over `MAX_DEPTH`.
pub fn compact_chars(value: &Any, depth: usize) -> Result<usize, ()> {
    const NUMBER_CHARS: usize = 4;
    let mut size = 0;
    let mut to_visit = vec![(value.clone(), depth)];
    let text_chars = |text: &Bound<PyString>| text.len().unwrap_or(0) + 2;
    while let Some((value, depth)) = to_visit.pop() {
        if let Ok(text) = value.cast::<PyString>() {
            size += text_chars(text);
        } else if let Ok(dict) = value.cast::<PyDict>() {
            size += container(dict.len(), depth)? + dict.len(); // a colon each
            for (key, value) in dict {
                size += key.cast::<PyString>().map_or(NUMBER_CHARS, text_chars);
                to_visit.push((value, depth + 1));
            }
        } else if let Ok(list) = value.cast::<PyList>() {
            size += container(list.len(), depth)?;
            to_visit.extend(list.iter().map(|value| (value, depth + 1)));
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            size += container(tuple.len(), depth)?;
            to_visit.extend(tuple.iter().map(|value| (value, depth + 1)));
        } else if let Ok(flag) = value.cast::<PyBool>() {
            size += if flag.is_true() { 4 } else { 5 };
        } else {
            size += NUMBER_CHARS; // null has four characters as well
        }
    }
    Ok(size)
}

/// Brackets and commas.
pub fn container(length: usize, depth: usize) -> Result<usize, ()> {
    if depth >= MAX_DEPTH { Err(()) } else { Ok(2 + length.saturating_sub(1)) }
}
