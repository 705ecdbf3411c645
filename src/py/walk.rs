//! dicts -> Outline: Python objects as what shapes read, lazily, since most messages need three look-ups.

use super::convert::{Stopped, Walked, with_text};
use super::cpython;
use super::dicts::Dicts;
use super::premask::Ahead;
use super::values::{Any, Dict, cast, compact_chars, is_of_client, name};
use crate::error::{Error, Kind};
use crate::outline::{Call, Message, Outline, Span, ToolResult};
use crate::scan::CALL_CHARS;
use crate::shape::{self, Id, Key, RawCall, RawResult, Sink, Value};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString};

/// Bytes of an observation to ask for before it is searched: most have no more.
const BYTES_AHEAD: usize = 2048;

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

    #[inline]
    fn read<T>(text: &Bound<'py, PyString>, read: impl FnOnce(&[u8]) -> T) -> T {
        with_text(text, read)
    }
}

/// Reads a history. `needs_lines` counts the newlines of observations; `ahead` sees each message that was read.
pub fn walk<'py>(dicts: &mut Dicts<'py>, needs_lines: bool, mut ahead: Option<&mut Ahead<'_, 'py>>) -> Walked<Outline> {
    let mut outline = Outline::default();
    // About as many calls and results as messages: a guess too high costs nothing, and growing costs copies.
    let length = dicts.list.len();
    outline.messages.reserve(length);
    outline.calls.reserve(length);
    outline.results.reserve(length);
    dicts.values.reserve(length);
    for (index, message) in dicts.list.iter().enumerate() {
        let Some(message) = cast::<PyDict>(&message) else {
            return Err(Error::in_message(Kind::Message, None, index, None).into());
        };
        outline.messages.push(Message {
            first_call: outline.calls.len() as u32,
            first_result: outline.results.len() as u32,
            ..Message::default()
        });
        let values = &mut dicts.values;
        let (seen, before) = (Seen::default(), Seen::default());
        let is_ahead = ahead.is_some();
        let mut walk =
            Walk { outline: &mut outline, values, message: index as u32, seen, before, needs_lines, is_ahead };
        let facts = shape::read::<Any, _>(message, &mut walk).map_err(|stopped| match stopped {
            Stopped::Shape(error) => Stopped::Shape(Error { message_index: Some(index), ..error }),
            Stopped::Python(_) => stopped,
        })?;
        let Seen { chars, images, .. } = walk.seen;
        let message_facts = &mut outline.messages[index];
        (message_facts.chars, message_facts.images) = (chars, images);
        message_facts.take(&facts);
        if let Some(ahead) = &mut ahead {
            ahead.see(index, message, &outline, &mut dicts.values)?;
        }
    }
    Ok(outline)
}

/// What was seen of a message so far.
#[derive(Default, Clone, Copy)]
struct Seen {
    chars: usize,
    images: u32,
    newlines: usize,
}

/// Writes one message into the Outline.
struct Walk<'a, 'py> {
    outline: &'a mut Outline,
    values: &'a mut Vec<Option<Any<'py>>>,
    message: u32,
    seen: Seen,
    /// What was seen before the observation at hand.
    before: Seen,
    needs_lines: bool,
    is_ahead: bool,
}

impl<'py> Walk<'_, 'py> {
    #[inline]
    fn id(&mut self, id: &Id<Any<'py>>) -> Option<Span> {
        id.read(|id| self.outline.keep(id))
    }
}

impl<'py> Sink<Any<'py>> for Walk<'_, 'py> {
    #[inline]
    fn observation_ahead(&mut self, value: &Any<'py>) {
        if self.is_ahead {
            cpython::prefetch(value, BYTES_AHEAD);
        }
    }

    #[inline]
    fn text(&mut self, text: &Bound<'py, PyString>) -> Walked<()> {
        self.seen.chars += text.len()?;
        if self.needs_lines {
            let count = text.call_method1(intern!(text.py(), "count"), (intern!(text.py(), "\n"),))?;
            self.seen.newlines += count.extract::<usize>()?;
        }
        Ok(())
    }

    fn image(&mut self) {
        self.seen.images += 1;
    }

    fn call(&mut self, call: &RawCall<Any<'py>>) -> Walked<()> {
        self.seen.chars += CALL_CHARS;
        let name = match call.name.and_then(Value::text) {
            Some(name) => {
                self.seen.chars += name.len()?;
                Some(self.outline.intern_name(|out| with_text(name, |name| out.extend_from_slice(name))))
            }
            None => None,
        };
        if let Some(arguments) = call.arguments {
            self.seen.chars += arguments.size(call.depth)?;
        }
        let id = self.id(&call.id);
        self.outline.calls.push(Call { id, name, message: self.message, block: call.block as u32 });
        Ok(())
    }

    #[inline]
    fn begin_observation(&mut self) {
        self.before = self.seen;
    }

    #[inline]
    fn result(&mut self, result: &RawResult<Any<'py>>) -> Walked<()> {
        self.seen.chars += result.chars;
        let (seen, before) = (self.seen, self.before);
        let facts = ToolResult {
            id: self.id(&result.id),
            value: Span::default(),
            chars: seen.chars - before.chars,
            newlines: seen.newlines - before.newlines,
            message: self.message,
            block: result.block as u32,
            images: seen.images - before.images,
            first_piece: 0,
            pieces: 0,
            first_byte: 0,
            is_error: result.is_error,
            frame: result.frame,
            may_hold_dispatch: false,
        };
        self.outline.results.push(facts);
        self.values.push(result.value.cloned());
        Ok(())
    }
}
