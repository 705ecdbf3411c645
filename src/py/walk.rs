//! dicts -> Outline: Python objects as values of shapes, read lazily, since most messages need only three lookups.

use super::convert::{Stopped, Walked, with_text};
use super::cpython;
use super::dicts::Dicts;
use super::values::{Any, Dict, Names, cast, compact_chars, is_of_client, name};
use crate::error::{Error, Kind};
use crate::outline::{Call, Half, Message, Name, Outline, Span, TextSpan, ToolResult};
use crate::policy::Policy;
use crate::scan::CALL_CHARS;
use crate::shape::{self, Key, RawCall, RawResult, Sink, Value};
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
        outline.messages.push(Message {
            first_call: outline.calls.len() as u32,
            first_result: outline.results.len() as u32,
            ..Message::default()
        });
        let (values, names) = (&mut dicts.values, &mut dicts.names);
        let (totals, before) = (WalkTotals::default(), WalkTotals::default());
        let mut walk = Walk {
            outline: &mut outline,
            values,
            names,
            message: index as u32,
            totals,
            before,
            needs_lines,
            needs_errors,
        };
        let facts = shape::read::<Any, _>(message, &mut walk).map_err(|stopped| match stopped {
            Stopped::Shape(error) => Stopped::Shape(Error { message_index: Some(index), ..error }),
            Stopped::Python(_) => stopped,
        })?;
        let WalkTotals { chars, images, .. } = walk.totals;
        let message_facts = &mut outline.messages[index];
        (message_facts.chars, message_facts.images) = (chars, images);
        message_facts.take(&facts);
    }
    Ok(outline)
}

/// Running totals of a message.
#[derive(Default, Clone, Copy)]
struct WalkTotals {
    chars: usize,
    images: u32,
    newlines: usize,
}

/// Writes one message into the Outline.
struct Walk<'a, 'py> {
    outline: &'a mut Outline,
    values: &'a mut Vec<Option<Any<'py>>>,
    names: &'a mut Names<'py>,
    message: u32,
    totals: WalkTotals,
    /// The totals before the current observation.
    before: WalkTotals,
    needs_lines: bool,
    needs_errors: bool,
}

impl<'py> Walk<'_, 'py> {
    #[inline]
    fn id(&mut self, id: Option<&Any<'py>>) -> Option<TextSpan> {
        id.and_then(Value::text).map(|id| with_text(id, |id| self.outline.keep(id)))
    }

    #[inline]
    fn name(&mut self, name: Option<&Any<'py>>) -> Name {
        name.and_then(Value::text).map(|name| with_text(name, |name| self.outline.intern(name)))
    }
}

/// The first character of a text that begins with an ASCII character; else 0.
#[inline]
fn first_byte(value: Option<&Any>) -> u8 {
    let first = value.and_then(Value::text).and_then(cpython::first_char);
    first.and_then(|first| u8::try_from(first).ok()).filter(u8::is_ascii).unwrap_or(0)
}

impl<'py> Sink<Any<'py>> for Walk<'_, 'py> {
    #[inline]
    fn reads_errors(&self) -> bool {
        self.needs_errors
    }

    #[inline]
    fn get(&mut self, dict: &Dict<'py>, key: Key) -> Walked<Option<Any<'py>>> {
        Ok(self.names.get(dict, key)?)
    }

    #[inline]
    fn text(&mut self, text: &Bound<'py, PyString>) -> Walked<()> {
        self.totals.chars += text.len()?;
        if self.needs_lines {
            let count = text.call_method1(intern!(text.py(), "count"), (intern!(text.py(), "\n"),))?;
            self.totals.newlines += count.extract::<usize>()?;
        }
        Ok(())
    }

    fn image(&mut self) {
        self.totals.images += 1;
    }

    fn opaque(&mut self, chars: usize) {
        self.totals.chars += chars;
    }

    #[cold]
    fn unread(&mut self) {
        self.outline.unread.push(self.message);
    }

    #[cold]
    fn half(&mut self, id: Option<&Any<'py>>, block: usize, is_result: bool) -> Walked<()> {
        let half = self.id(id).map(|id| Half { id, message: self.message, block: block as u32, is_result });
        self.outline.halves.extend(half);
        Ok(())
    }

    fn call(&mut self, call: &RawCall<Any<'py>>) -> Walked<()> {
        self.totals.chars += CALL_CHARS;
        if let Some(name) = call.name.and_then(Value::text) {
            self.totals.chars += name.len()?;
        }
        let name = self.name(call.name);
        if let Some(arguments) = call.arguments {
            self.totals.chars += arguments.size(call.depth)?;
        }
        let id = self.id(call.id);
        self.outline.calls.push(Call { id, name, message: self.message, block: call.block as u32 });
        Ok(())
    }

    #[inline]
    fn begin_observation(&mut self) {
        self.before = self.totals;
    }

    #[inline]
    fn result(&mut self, result: &RawResult<Any<'py>>) -> Walked<()> {
        self.totals.chars += result.chars;
        let (totals, before) = (self.totals, self.before);
        let facts = ToolResult {
            id: self.id(result.id),
            name: self.name(result.name),
            value: Span::default(),
            chars: totals.chars - before.chars,
            newlines: if result.frame.holds_text() { (totals.newlines - before.newlines) as u32 } else { 0 },
            message: self.message,
            block: result.block as u32,
            images: totals.images - before.images,
            first_piece: 0,
            pieces: 0,
            first_byte: first_byte(result.value),
            is_error: result.is_error,
            is_pinned: false,
            frame: result.frame,
        };
        self.outline.results.push(facts);
        self.values.push(result.value.cloned());
        Ok(())
    }
}
