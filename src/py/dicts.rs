//! A history as a list of dicts, and the text behind its Outline.

use super::convert::{Walked, bytes_of, with_text};
use super::cpython;
use super::values::{Any, Dict, cast, compact_chars, for_each_call, get, part_type, string, texts};
use crate::dispatch::{BEGIN_DISPATCH, begin_dispatch};
use crate::error::{Error, Kind};
use crate::outline::{Outline, Shape};
use crate::scan::CALL_CHARS;
use crate::shape::PartType;
use crate::source::Source;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// Bytes of the next observation to ask for while one is searched.
const LINES_AHEAD: usize = 1024;

/// A history as a list of dicts.
pub struct Dicts<'py> {
    /// The caller's own list, which is read once: other code may change it at any time.
    pub given: Bound<'py, PyList>,
    /// What it held then, in a list that nobody else knows.
    pub list: Bound<'py, PyList>,
    /// The value of each observation, as the walk found it; none of those that were masked ahead.
    pub values: Vec<Option<Any<'py>>>,
}
impl<'py> Dicts<'py> {
    /// The history, if it is a list.
    pub fn of(messages: &Any<'py>) -> Walked<Self> {
        match messages.cast::<PyList>() {
            Ok(given) => Ok(Dicts { given: given.clone(), list: given.get_slice(0, given.len()), values: vec![] }),
            Err(_) => Err(Error { kind: Kind::History, offset: None, message_index: None, field: None }.into()),
        }
    }

    pub fn message(&self, index: usize) -> PyResult<Dict<'py>> {
        Ok(self.list.get_item(index)?.cast_into()?)
    }

    /// The value of an observation that was masked ahead.
    fn value_again(&self, outline: &Outline, result: usize) -> Option<Any<'py>> {
        let message = outline.results[result].message as usize;
        let dict = self.message(message).ok()?;
        match outline.messages[message].shape {
            Shape::Responses => get!(dict, "output").ok()?,
            Shape::OpenAi | Shape::ChatMessage => get!(dict, "content").ok()?,
            Shape::Anthropic | Shape::Plain => None,
        }
    }

    /// `type` of a message.
    pub fn type_of(&self, message: usize) -> PyResult<Vec<u8>> {
        Ok(string(get!(self.message(message)?, "type")?).map_or_else(Vec::new, |name| bytes_of(&name)))
    }

    /// Own text, names and arguments of calls for a token counter; and the characters that are constants.
    pub fn own_text(&self, outline: &Outline, message: usize) -> PyResult<(Vec<u8>, usize)> {
        let dict = self.message(message)?;
        let shape = outline.messages[message].shape;
        let is_observation = matches!(shape, Shape::ChatMessage | Shape::OpenAi) && outline.holds_results(message);
        let mut text = Vec::new();
        let content = get!(dict, "content")?;
        if let Some(content) = content.as_ref().filter(|_| !is_observation) {
            texts(content, &mut |piece| text.extend(bytes_of(piece)))?;
        }
        let mut constant_chars = 0;
        let tool_calls = get!(dict, "tool_calls")?.filter(|_| !is_observation);
        for_each_call(&dict, shape, content.as_ref(), tool_calls, &mut |call| {
            constant_chars += CALL_CHARS;
            if let Some(name) = call.name {
                text.extend(bytes_of(&name));
            }
            match call.arguments.as_ref().map(|value| (value, value.cast::<PyString>())) {
                Some((_, Ok(arguments))) => text.extend(bytes_of(arguments)),
                Some((value, Err(_))) => constant_chars += compact_chars(value, 0).unwrap_or(0),
                None => {}
            }
            Ok(())
        })
        .map_err(PyErr::from)?;
        Ok((text, constant_chars))
    }
}

/// Most texts differ from a placeholder in the first character.
fn begins(text: &Bound<PyString>, prefix: &str) -> PyResult<bool> {
    if prefix.chars().next().is_some_and(|first| cpython::first_char(text) != Some(first.into())) {
        return Ok(false);
    }
    text.call_method1(intern!(text.py(), "startswith"), (prefix,))?.is_truthy()
}

/// False only if a text holds no dispatch block.
pub fn may_hold_dispatch(text: &Bound<PyString>) -> bool {
    // An ASCII str is its own UTF-8; of others Python would keep a copy for good, so it searches them itself. There
    // a capital G is rare, and one letter is found much faster than a word.
    if cpython::is_ascii(text)
        && let Ok(ascii) = text.to_str()
    {
        return begin_dispatch().find(ascii.as_bytes()).is_some();
    }
    let holds = |part: &Bound<PyString>| text.contains(part).unwrap_or(true);
    holds(intern!(text.py(), "G")) && holds(intern!(text.py(), BEGIN_DISPATCH))
}

impl Source for Dicts<'_> {
    fn observation(&self, outline: &Outline, result: usize) -> Vec<u8> {
        let mut text = Vec::new();
        let value = self.values[result].clone().or_else(|| self.value_again(outline, result));
        if let Some(value) = &value {
            // What was walked before is read again: it cannot fail.
            let _ = texts(value, &mut |piece| with_text(piece, |piece| text.extend_from_slice(piece)));
        }
        text
    }

    fn observation_begins(&self, outline: &Outline, result: usize, prefix: &[u8]) -> bool {
        let Some(value) = &self.values[result] else { return prefix.is_empty() };
        match (cast::<PyString>(value), core::str::from_utf8(prefix)) {
            (Some(text), Ok(prefix)) => begins(text, prefix).unwrap_or(true),
            _ => self.observation(outline, result).starts_with(prefix),
        }
    }

    fn observation_may_hold_dispatch(&self, _: &Outline, result: usize) -> bool {
        let Some(value) = &self.values[result] else { return false };
        let Some(text) = cast::<PyString>(value) else { return true };
        if let Some(Some(next)) = self.values.get(result + 1) {
            cpython::prefetch(next, LINES_AHEAD);
        }
        may_hold_dispatch(text)
    }

    fn pieces(&self, outline: &Outline, message: usize) -> Vec<Vec<u8>> {
        let mut pieces = vec![];
        // What was walked before is read again: it cannot fail.
        let _ = self.collect_pieces(outline, message, &mut pieces);
        pieces
    }

    fn has_tag(&self, _: &Outline, message: usize, tag: &str) -> bool {
        let tags = self.message(message).and_then(|message| get!(message, "tags"));
        let Ok(Some(tags)) = tags else { return false };
        tags.cast::<PyList>()
            .is_ok_and(|tags| tags.iter().any(|other| other.cast::<PyString>().is_ok_and(|other| other == tag)))
    }
}

impl Dicts<'_> {
    fn collect_pieces(&self, outline: &Outline, message: usize, pieces: &mut Vec<Vec<u8>>) -> PyResult<()> {
        let dict = self.message(message)?;
        let shape = outline.messages[message].shape;
        let holds_results = outline.holds_results(message);
        if let Some(content) = get!(dict, "content")? {
            match content.cast::<PyList>() {
                Ok(parts) if shape == Shape::Anthropic => {
                    for part in parts {
                        let Ok(part) = part.cast::<PyDict>() else { continue };
                        match part_type(part)? {
                            PartType::Text => {
                                pieces.extend(string(get!(part, "text")?).map(|text| bytes_of(&text)));
                            }
                            PartType::ToolResult => {
                                if let Some(content) = get!(part, "content")? {
                                    texts(&content, &mut |text| pieces.push(bytes_of(text)))?;
                                }
                            }
                            _ => {}
                        }
                    }
                }
                _ => texts(&content, &mut |text| pieces.push(bytes_of(text)))?,
            }
        }
        if shape == Shape::Responses
            && holds_results
            && let Some(output) = get!(dict, "output")?
        {
            texts(&output, &mut |text| pieces.push(bytes_of(text)))?;
        }
        Ok(())
    }
}
