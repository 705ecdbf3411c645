//! A history as a list of dicts, which is the source of its Outline's text.

use super::convert::{Walked, bytes_of, with_text};
use super::cpython;
use super::values::{Any, Dict, Names, cast, compact_chars, name};
use crate::clip::handle_of_whole;
use crate::dispatch::{BEGIN_DISPATCH, begin_dispatch};
use crate::error::{Error, Kind};
use crate::fingerprint::Fingerprint;
use crate::handle::Handle;
use crate::json::MAX_DEPTH;
use crate::marks::FIELDS;
use crate::outline::{CALL_CHARS, Outline};
use crate::shape::{self, Key, RawCall, RawResult, Sink, Value};
use crate::source::Source;
use pyo3::IntoPyObjectExt;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use pyo3::{PyTypeCheck, PyTypeInfo};

/// Bytes of the next observation to prefetch while one is searched.
const LINES_AHEAD: usize = 1024;

/// A history as a list of dicts.
pub(super) struct Dicts<'py> {
    /// The caller's list, which is read only once: other code may change it at any time.
    pub given: Bound<'py, PyList>,
    /// The messages then, in a private list.
    pub list: Bound<'py, PyList>,
    /// The value of each observation.
    pub values: Vec<Option<Any<'py>>>,
    /// The names of its fields.
    pub names: Names<'py>,
}
impl<'py> Dicts<'py> {
    /// The history, if it is a list.
    pub(super) fn of(messages: &Any<'py>) -> Walked<Self> {
        match messages.cast::<PyList>() {
            Ok(given) => {
                let list = given.get_slice(0, given.len());
                let names = Names::of(list.len());
                Ok(Dicts { given: given.clone(), list, values: vec![], names })
            }
            Err(_) => Err(Error { kind: Kind::History, offset: None, message_index: None, field: None }.into()),
        }
    }

    pub(super) fn message(&self, index: usize) -> PyResult<Dict<'py>> {
        Ok(self.list.get_item(index)?.cast_into()?)
    }

    /// The text of an observation for a token counter; its compact JSON if it is no text.
    pub(super) fn counted_text(&self, outline: &Outline, result: usize) -> PyResult<Vec<u8>> {
        match &self.values[result] {
            Some(value) if !outline.results[result].frame.holds_text() => {
                let py = value.py();
                let options =
                    [("ensure_ascii", false.into_bound_py_any(py)?), ("separators", (",", ":").into_bound_py_any(py)?)];
                let text = py.import("json")?.call_method("dumps", (value,), Some(&options.into_py_dict(py)?))?;
                Ok(bytes_of(text.cast::<PyString>()?))
            }
            _ => Ok(self.observation(outline, result)),
        }
    }

    /// The texts of a message for a token counter.
    pub(super) fn own_text(&self, message: usize) -> PyResult<OwnText> {
        let mut own = OwnText::default();
        shape::read::<Any, _>(&self.message(message)?, &mut own)?;
        Ok(own)
    }
}

#[derive(Default)]
pub(super) struct OwnText {
    /// Its own text, names and arguments of calls.
    pub text: Vec<u8>,
    /// Characters besides, which are no text.
    pub constant_chars: usize,
    /// The same of its reasoning.
    pub reasoning: Vec<u8>,
    pub sealed_chars: usize,
    /// The bytes before the current observation.
    before: usize,
}

impl<'py> Sink<Any<'py>> for OwnText {
    fn text(&mut self, text: &Bound<'py, PyString>) -> Walked<()> {
        with_text(text, |text| self.text.extend_from_slice(text));
        Ok(())
    }

    fn reasoning(&mut self, text: Option<&Bound<'py, PyString>>, chars: usize) {
        match text {
            Some(text) => with_text(text, |text| self.reasoning.extend_from_slice(text)),
            None => self.sealed_chars += chars,
        }
    }

    fn opaque(&mut self, chars: usize) {
        self.constant_chars += chars;
    }

    fn call(&mut self, call: &RawCall<Any<'py>>) -> Walked<()> {
        self.constant_chars += CALL_CHARS;
        if let Some(name) = call.name.and_then(Value::text) {
            self.text(name)?;
        }
        match call.arguments.map(|arguments| (arguments, arguments.text())) {
            Some((_, Some(text))) => self.text(text)?,
            Some((value, None)) => self.constant_chars += compact_chars(value, 0).unwrap_or(0),
            None => {}
        }
        Ok(())
    }

    fn begin_observation(&mut self) {
        self.before = self.text.len();
    }

    fn result(&mut self, _: &RawResult<Any<'py>>) -> Walked<()> {
        self.text.truncate(self.before);
        Ok(())
    }
}

/// Texts of a message, observations included; and how many precede the current observation.
struct Pieces(Vec<Vec<u8>>, usize);

impl<'py> Sink<Any<'py>> for Pieces {
    fn text(&mut self, text: &Bound<'py, PyString>) -> Walked<()> {
        self.0.push(bytes_of(text));
        Ok(())
    }

    fn begin_observation(&mut self) {
        self.1 = self.0.len();
    }

    fn result(&mut self, result: &RawResult<Any<'py>>) -> Walked<()> {
        if !result.frame.holds_text() {
            self.0.truncate(self.1); // it counts, but is no text
        }
        Ok(())
    }
}

/// A copy of a value that shares what cannot change. None where its JSON may be another value: of other types than those of `json`,
/// subclasses included, with other keys than texts, numbers that are not finite or of over 64 bits, or more levels than this; and
/// where it has a cache mark, whose place rules read in the text.
pub(super) fn plain_copy<'py>(value: &Any<'py>, levels: usize) -> PyResult<Option<Any<'py>>> {
    let is_container =
        |value: &Any<'py>| value.is_exact_instance_of::<PyDict>() || value.is_exact_instance_of::<PyList>();
    let is_plain = |value: &Any<'py>| {
        value.is_exact_instance_of::<PyString>()
            || value.is_none()
            || value.is_exact_instance_of::<PyBool>()
            || (value.is_exact_instance_of::<PyInt>() && value.extract::<i64>().is_ok())
            || (value.is_exact_instance_of::<PyFloat>() && value.extract::<f64>().is_ok_and(f64::is_finite))
    };
    if levels == 0 || !is_container(value) {
        return Ok(Some(value.clone()).filter(is_plain));
    }
    if let Ok(list) = value.cast::<PyList>() {
        let copy = list.get_slice(0, list.len());
        for index in 0..copy.len() {
            let Some(inner) = plain_copy(&copy.get_item(index)?, levels - 1)? else { return Ok(None) };
            copy.set_item(index, inner)?;
        }
        return Ok(Some(copy.into_any()));
    }
    let (copy, mut inner) = (value.cast::<PyDict>()?.copy()?, vec![]);
    for (key, value) in &copy {
        let is_key = key.is_exact_instance_of::<PyString>();
        if !is_key || is_mark(&key)? || !(is_container(&value) || is_plain(&value)) {
            return Ok(None);
        }
        if is_container(&value) {
            inner.push((key, value));
        }
    }
    for (key, value) in inner {
        let Some(value) = plain_copy(&value, levels - 1)? else { return Ok(None) };
        copy.set_item(key, value)?;
    }
    Ok(Some(copy.into_any()))
}

/// Whether a key is that of a cache mark.
fn is_mark(key: &Any<'_>) -> PyResult<bool> {
    let chars = key.len()?;
    for field in FIELDS {
        if chars == field.len() && key.eq(field)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds a value to a fingerprint, of a text its hash; false if it has others than those of `json`, or more levels than this.
fn identify(value: &Any<'_>, levels: usize, fingerprint: &mut Fingerprint) -> PyResult<bool> {
    if let Some(text) = exact::<PyString>(value) {
        fingerprint.number(text.hash()?.cast_unsigned() as u64);
        fingerprint.number(text.len()? as u64);
    } else if let (Some(dict), 1..) = (exact::<PyDict>(value), levels) {
        fingerprint.number(dict.len() as u64);
        for (key, value) in dict {
            if !identify(&key, 0, fingerprint)? || !identify(&value, levels - 1, fingerprint)? {
                return Ok(false);
            }
        }
    } else if let (Some(list), 1..) = (exact::<PyList>(value), levels) {
        fingerprint.number(!(list.len() as u64));
        for value in list {
            if !identify(&value, levels - 1, fingerprint)? {
                return Ok(false);
            }
        }
    } else if value.is_none() || value.is_exact_instance_of::<PyBool>() {
        fingerprint.add(if value.is_none() {
            b"null"
        } else if value.is_truthy()? {
            b"true"
        } else {
            b"false"
        });
    } else if value.is_exact_instance_of::<PyInt>() || value.is_exact_instance_of::<PyFloat>() {
        fingerprint.add(&bytes_of(&value.repr()?));
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn exact<'a, 'py, T: PyTypeCheck + PyTypeInfo>(value: &'a Any<'py>) -> Option<&'a Bound<'py, T>> {
    value.cast_exact().ok()
}

/// A quick check of the first character, in which most texts differ from a placeholder.
fn begins(text: &Bound<PyString>, prefix: &str) -> PyResult<bool> {
    if prefix.chars().next().is_some_and(|first| cpython::first_char(text) != Some(first.into())) {
        return Ok(false);
    }
    text.call_method1(intern!(text.py(), "startswith"), (prefix,))?.is_truthy()
}

/// False only if a text has no dispatch block.
pub(super) fn may_hold_dispatch(text: &Bound<PyString>) -> bool {
    // An ASCII str is UTF-8 already; for others Python would keep an encoded copy, so it searches them itself. A capital G is
    // rare there, and one letter is found much faster than a word.
    if cpython::is_ascii(text)
        && let Ok(ascii) = text.to_str()
    {
        return begin_dispatch().find(ascii.as_bytes()).is_some();
    }
    let holds = |part: &Bound<PyString>| text.contains(part).unwrap_or(true);
    holds(intern!(text.py(), "G")) && holds(intern!(text.py(), BEGIN_DISPATCH))
}

impl Source for Dicts<'_> {
    fn identify(&self, _: &Outline, message: usize, fingerprint: &mut Fingerprint) -> bool {
        self.list.get_item(message).and_then(|message| identify(&message, MAX_DEPTH, fingerprint)).unwrap_or(false)
    }

    fn observation(&self, outline: &Outline, result: usize) -> Vec<u8> {
        let mut pieces = Pieces(vec![], 0);
        if let Some(value) = &self.values[result] {
            // It was read before, so it cannot fail.
            let _ = shape::read_observation(value, outline.results[result].frame, &mut pieces);
        }
        pieces.0.concat()
    }

    fn handle(&self, outline: &Outline, result: usize) -> Handle {
        let id = outline.results[result].id.map_or(&b""[..], |id| outline.text(id));
        handle_of_whole(id, &self.counted_text(outline, result).unwrap_or_default())
    }

    fn observation_begins(&self, outline: &Outline, result: usize, prefix: &[u8]) -> bool {
        let first_byte = outline.results[result].first_byte;
        if first_byte != 0 && prefix.first().is_some_and(|first| *first != first_byte) {
            return false; // mostly: the text is not loaded again
        }
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

    fn pieces(&self, _: &Outline, message: usize) -> Vec<Vec<u8>> {
        let mut pieces = Pieces(vec![], 0);
        if let Ok(message) = self.message(message) {
            // It was read before, so it cannot fail.
            let _ = shape::read::<Any, _>(&message, &mut pieces);
        }
        pieces.0
    }

    fn has_tag(&self, _: &Outline, message: usize, tag: &str) -> bool {
        let tags = self.message(message).and_then(|message| message.get_item(name(message.py(), Key::Tags)));
        let Ok(Some(tags)) = tags else { return false };
        tags.cast::<PyList>()
            .is_ok_and(|tags| tags.iter().any(|other| other.cast::<PyString>().is_ok_and(|other| other == tag)))
    }
}
