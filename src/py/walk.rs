//! dicts -> Outline: Python objects as values of shapes, read lazily, since most messages need only three lookups.

use super::convert::{Stopped, Walked, with_text};
use super::cpython;
use super::dicts::Dicts;
use super::values::{Any, Dict, Names, cast, compact_chars, is_of_client, json_weight, name, text_weight};
use crate::error::{Error, Kind};
use crate::outline::{Outline, Texts, ToolResult, write_message};
use crate::policy::Policy;
use crate::shape::{Key, RawResult, Value};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString};

impl<'py> Value for Any<'py> {
    type Object = Dict<'py>;
    type Text = Bound<'py, PyString>;
    type Stop = Stopped;

    #[inline]
    fn object(&self) -> Option<&Dict<'py>> {
        cast::<PyDict>(self)
    }

    #[inline]
    fn text(&self) -> Option<&Bound<'py, PyString>> {
        cast::<PyString>(self)
    }

    #[inline]
    fn items(&self) -> Option<impl Iterator<Item = Self>> {
        cast::<PyList>(self).map(PyListMethods::iter)
    }

    #[inline]
    fn length(&self) -> usize {
        cast::<PyList>(self).map_or(0, PyListMethods::len)
    }

    #[inline]
    fn is_null(&self) -> bool {
        self.is_none()
    }

    fn is_true(&self) -> bool {
        self.cast::<PyBool>().is_ok_and(PyBoolMethods::is_true)
    }

    #[inline]
    fn get(dict: &Dict<'py>, key: Key) -> Walked<Option<Self>> {
        Ok(dict.get_item(name(dict.py(), key))?)
    }

    #[inline]
    fn members(dict: &Dict<'py>) -> usize {
        dict.len()
    }

    fn only(dict: &Dict<'py>) -> Option<Self> {
        dict.iter().next().filter(|_| dict.len() == 1).map(|(_, value)| value)
    }

    #[cold]
    fn is_foreign(&self) -> bool {
        is_of_client(self)
    }

    fn size(&self, depth: usize) -> Walked<usize> {
        match self.text() {
            Some(text) => Ok(text.len()?),
            None => compact_chars(self, 1 + depth)
                .map_err(|kind| Error { kind, offset: None, message_index: None, field: None }.into()),
        }
    }

    fn object_size(dict: &Dict<'py>, depth: usize) -> Walked<usize> {
        dict.as_any().size(depth)
    }

    #[inline]
    fn read<T>(text: &Bound<'py, PyString>, read: impl FnOnce(&[u8]) -> T) -> T {
        with_text(text, read)
    }
}

/// Reads a history for these policies: without one no newlines are counted, and flags of errors are not read.
pub(super) fn walk(dicts: &mut Dicts, policies: &[&Policy]) -> Walked<Outline> {
    let needs_lines = policies.iter().any(|policy| policy.names_lines());
    let needs_errors = policies.iter().any(|policy| policy.exempt.errors);
    let weighs = policies.iter().any(|policy| policy.weighs());
    let mut outline = Outline::default();
    // About as many calls and results as messages: too much capacity costs nothing, growing costs copies.
    let length = dicts.list.len();
    outline.messages.reserve(length);
    outline.calls.reserve(length);
    outline.results.reserve(length);
    dicts.values.reserve(length);
    for (index, message) in dicts.list.iter().enumerate() {
        let Some(message) = cast::<PyDict>(&message) else {
            return Err(Error::in_message(Kind::Message, None, index, None).into());
        };
        let (values, names) = (&mut dicts.values, &mut dicts.names);
        let texts = DictTexts { values, names, newlines: 0, before: 0, needs_lines, needs_errors, weighs };
        write_message::<Any, _>(&mut outline, texts, message, None).map_err(|stopped| match stopped {
            Stopped::Shape(error) => Stopped::Shape(Error { message_index: Some(index), ..error }),
            Stopped::Python(_) => stopped,
        })?;
    }
    Ok(outline)
}

/// Keeps the values of observations, and counts newlines.
struct DictTexts<'a, 'py> {
    values: &'a mut Vec<Option<Any<'py>>>,
    names: &'a mut Names<'py>,
    newlines: usize,
    /// Those before the current observation.
    before: usize,
    needs_lines: bool,
    needs_errors: bool,
    weighs: bool,
}

/// The first character of a text that begins with an ASCII character; else 0.
#[inline]
fn first_byte(value: Option<&Any>) -> u8 {
    let first = value.and_then(Value::text).and_then(cpython::first_char);
    first.and_then(|first| u8::try_from(first).ok()).filter(u8::is_ascii).unwrap_or(0)
}

impl<'py> Texts<Any<'py>> for DictTexts<'_, 'py> {
    #[inline]
    fn reads_errors(&self) -> bool {
        self.needs_errors
    }

    #[inline]
    fn get(&mut self, dict: &Dict<'py>, key: Key) -> Walked<Option<Any<'py>>> {
        Ok(self.names.get(dict, key)?)
    }

    #[inline]
    fn text(&mut self, _: &mut Outline, text: &Bound<'py, PyString>) -> Walked<usize> {
        if self.needs_lines {
            let count = text.call_method1(intern!(text.py(), "count"), (intern!(text.py(), "\n"),))?;
            self.newlines += count.extract::<usize>()?;
        }
        Ok(text.len()?)
    }

    #[inline]
    fn weighs(&self) -> bool {
        self.weighs
    }

    fn weight(&self, text: &Bound<'py, PyString>) -> usize {
        text_weight(text)
    }

    fn json_weight(&self, value: &Any<'py>) -> usize {
        json_weight(value)
    }

    #[inline]
    fn begin_observation(&mut self, _: &Outline) {
        self.before = self.newlines;
    }

    #[inline]
    fn end_observation(&mut self, _: &mut Outline, result: &RawResult<Any<'py>>, facts: &mut ToolResult) {
        facts.newlines = if result.frame.holds_text() { (self.newlines - self.before) as u32 } else { 0 };
        facts.first_byte = first_byte(result.value);
        self.values.push(result.value.cloned());
    }
}
