//! Conversion and size of Python values.

use super::convert::{bytes_of, with_text};
use super::cpython;
use crate::error::Kind;
use crate::json::weight;
use crate::json::{FALSE, MARK, MAX_DEPTH, NUMBER, WORD};
use crate::shape::Key;
use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTypeCheck, PyTypeInfo};

pub(super) type Dict<'py> = Bound<'py, PyDict>;
pub(super) type Any<'py> = Bound<'py, PyAny>;

/// In fewer messages it does not pay to learn the names of fields.
const LEAST_NAMED: usize = 32;

/// The name of a field as a str.
#[inline]
pub(super) fn name(py: Python<'_>, key: Key) -> &Bound<'_, PyString> {
    static NAMES: [PyOnceLock<Py<PyString>>; Key::ALL.len()] = [const { PyOnceLock::new() }; Key::ALL.len()];
    NAMES[key as usize].get_or_init(py, || PyString::intern(py, key.name()).unbind()).bind(py)
}

/// The names of fields as a history has them: for the same object Python need not compare the texts. None are learned in a short
/// history, in which that does not pay.
pub(super) struct Names<'py>(Vec<Option<Bound<'py, PyString>>>);

impl<'py> Names<'py> {
    /// The names of a history of so many messages.
    pub(super) fn of(messages: usize) -> Self {
        Names(if messages < LEAST_NAMED { vec![] } else { vec![None; Key::ALL.len()] })
    }

    fn known(&self, key: Key) -> Option<&Bound<'py, PyString>> {
        self.0.get(key as usize)?.as_ref()
    }

    /// A member of a dict.
    #[inline]
    pub(super) fn get(&mut self, dict: &Dict<'py>, key: Key) -> PyResult<Option<Any<'py>>> {
        match self.known(key) {
            Some(name) => dict.get_item(name),
            None => self.get_first(dict, key),
        }
    }

    /// The first member with this key: its dict has the name.
    #[cold]
    fn get_first(&mut self, dict: &Dict<'py>, key: Key) -> PyResult<Option<Any<'py>>> {
        let common = name(dict.py(), key);
        let found = dict.get_item(common)?;
        if let (Some(known), Some(_)) = (self.0.get_mut(key as usize), &found) {
            let mut names = dict.iter().filter_map(|(name, _)| name.cast_into_exact::<PyString>().ok());
            *known = names.find(|name| name == key.name()).or_else(|| Some(common.clone()));
        }
        Ok(found)
    }

    /// Sets a member of a dict.
    #[inline]
    pub(super) fn set(&self, dict: &Dict<'py>, key: Key, value: impl IntoPyObject<'py>) -> PyResult<()> {
        dict.set_item(self.known(key).unwrap_or_else(|| name(dict.py(), key)), value)
    }
}

/// A number to look something up by. One of more than 64 bits finds nothing, as any that is too large.
pub(super) fn number(value: &Any<'_>) -> PyResult<u64> {
    match value.extract::<u64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(u64::MAX),
        number => number,
    }
}

/// A cast that checks for the exact type first, which needs no call.
pub(super) fn cast<'a, 'py, T: PyTypeCheck + PyTypeInfo>(value: &'a Any<'py>) -> Option<&'a Bound<'py, T>> {
    value.cast_exact().ok().or_else(|| value.cast().ok())
}

/// Whether a value is an object of a client.
pub(super) fn is_of_client(value: &Any) -> bool {
    value.hasattr(intern!(value.py(), "model_dump")).unwrap_or(false) && !value.is_instance_of::<PyType>()
}

/// The size of a value as compact JSON; without recursion, and with an error over `MAX_DEPTH` and for an object of a client.
pub(super) fn compact_chars(value: &Any, depth: usize) -> Result<usize, Kind> {
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
        } else if value.is_none() || value.cast::<PyInt>().is_ok() || !is_of_client(&value) {
            size += NUMBER_CHARS; // null has four characters as well
        } else {
            return Err(Kind::Part);
        }
    }
    Ok(size)
}

/// What a text weighs.
pub(super) fn text_weight(text: &Bound<PyString>) -> usize {
    // Python would keep a copy in UTF-8 of one that is not ASCII.
    if cpython::is_ascii(text) { with_text(text, weight) } else { weight(&bytes_of(text)) }
}

/// What a value weighs as compact JSON, once its size was found.
pub(super) fn json_weight(value: &Any) -> usize {
    let (mut sum, mut to_visit) = (0, vec![value.clone()]);
    let marks = |members: usize| MARK * (2 + members.saturating_sub(1));
    while let Some(value) = to_visit.pop() {
        if let Ok(text) = value.cast::<PyString>() {
            sum += 2 * MARK + text_weight(text);
        } else if let Ok(dict) = value.cast::<PyDict>() {
            sum += marks(dict.len()) + MARK * dict.len(); // a colon each
            for (key, value) in dict {
                sum += key.cast::<PyString>().map_or(NUMBER, |key| 2 * MARK + text_weight(key));
                to_visit.push(value);
            }
        } else if let Ok(list) = value.cast::<PyList>() {
            sum += marks(list.len());
            to_visit.extend(list);
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            sum += marks(tuple.len());
            to_visit.extend(tuple);
        } else if let Ok(flag) = value.cast::<PyBool>() {
            sum += if flag.is_true() { WORD } else { FALSE };
        } else {
            sum += if value.is_none() { WORD } else { NUMBER };
        }
    }
    sum
}

pub(super) fn container(length: usize, depth: usize) -> Result<usize, Kind> {
    if depth >= MAX_DEPTH { Err(Kind::Depth) } else { Ok(2 + length.saturating_sub(1)) }
}
