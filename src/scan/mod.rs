//! Bytes -> Outline, in one forward pass: every byte is validated, and no text is copied but ids and names.
//!
//! **What the input is like.** Nine tenths of a history are a few long strings, and the rest is small and alike: some serializer
//! wrote the same fields in the same order, message after message. So strings are read 64 bytes at a time (`json/block`), and one
//! pass finds the end of a string, checks its UTF-8 and its escapes, counts its characters as decoded, and says whether it may
//! hold the begin of a dispatch block. An escape costs arithmetic, not a branch.
//!
//! **Why a tape.** Fields may come in any order: the role may follow the content, and only the whole message says which shape it
//! has. A message is therefore recorded on a tape first (`tape.rs`): of the keys that some shape reads, kinds, places and sizes,
//! in document order, down to ten levels. All else is skipped, validated nevertheless. At its end the shape reads the tape as it
//! reads a dict, by the same code, and writes the facts to the Outline (`write.rs`).
//!
//! **Why a second way.** The tape costs as much as the text of a message of 2 KB. Messages of the commonest layouts are matched
//! by whole literals and written to the Outline at once (`quick.rs`). What does not match, valid or not, is read again from its
//! start: the tape is the definition, and alone knows errors.
//!
//! **Errors.** Malformed JSON stops the pass, at the first byte by position. A wrong shape is kept until the rest proves to be
//! well formed; then the first message that has one is reported. So the error depends on the input alone, not on the way that was
//! taken.
//!
//! **Bounds.** Time is linear in the bytes. A message is read at most twice, its last long string once: it is remembered. Nesting
//! stops at [`crate::json::MAX_DEPTH`], and what is skipped takes no stack. Memory is the facts, about a hundred bytes for each
//! message, call and result, and the tape of one message; an input of a stranger, which could be nothing but tiny messages, goes
//! through [`scan_bounded`], which takes no more than a few times its length. A scan leaves its Outline for the next one of the
//! thread, since new pages are slow.
//!
//! **Rivals.** A parser that builds a tree copies each text, and the caller's bytes could not be kept; the facts are a small part
//! of them. An index of all structural bytes before the parse, as simdjson makes it, is written and read again for nothing where
//! most blocks lie within one string. Reading on demand leaves the rest unvalidated. One automaton for all shapes, without a
//! tape, would have to follow every shape at once until the role comes. The numbers are in docs/decisions/0004 and 0009.

mod quick;
mod tape;
mod write;

use crate::dispatch::NEEDLE;
use crate::error::{Error, Kind};
use crate::json::{Counted, Cursor, Fault, Read, Reader, Scanner, decode};
use crate::outline::{Call, Outline, Span};
use crate::shape::{self, BODY_KEYS, Key};
use std::borrow::Cow;
use tape::{Node, Tape};

/// Reads a message array, or a request body whose `messages`, `input` or `contents` is one.
pub fn scan(data: &[u8], surrogates: bool) -> Result<Outline, Error> {
    scan_with(data, surrogates, Scanner::detect())
}

/// [`scan`] that weighs texts, if they are to be counted in tokens.
pub fn scan_weighing(data: &[u8], surrogates: bool, weighs: bool) -> Result<Outline, Error> {
    Scan { weighs, ..Scan::of(data, surrogates, Scanner::detect(), Outline::spare()) }.scanned()
}

/// Values that a bounded input may have, whatever its length.
const FREE_VALUES: usize = 1 << 16;
/// Bytes of a bounded input for each other value: the facts of one take about a hundred.
const LEAST_BYTES: usize = 32;

/// [`scan`] of an input whose facts are to take no more memory than a few times its length. One of very many small values is
/// refused.
pub(crate) fn scan_bounded(data: &[u8], weighs: bool) -> Result<Outline, Error> {
    Scan { is_bounded: true, weighs, ..Scan::of(data, false, Scanner::detect(), Outline::spare()) }.scanned()
}

/// [`scan`] with a string scanner of the caller's choice, for tests.
pub fn scan_with(data: &[u8], surrogates: bool, scanner: Scanner) -> Result<Outline, Error> {
    Scan::of(data, surrogates, scanner, Outline::spare()).scanned()
}

/// Appends the message at the end of `data`, from `start` on, to the outline of the earlier ones. Malformed JSON, or a shape that
/// is no message, leaves it unchanged.
pub(crate) fn scan_message(
    data: &[u8],
    start: usize,
    (surrogates, weighs): (bool, bool),
    outline: &mut Outline,
) -> Result<(), Error> {
    let index = outline.messages.len();
    let mark = outline.mark_before(index);
    let mut scan = Scan::of(data, surrogates, Scanner::detect(), core::mem::take(outline));
    (scan.index, scan.weighs) = (Some(index), weighs);
    scan.cursor.at = start;
    scan.cursor.enter();
    let read = scan.message(index).and_then(|()| scan.end());
    let fault = if read.is_ok() {
        scan.fault
    } else {
        let fault = scan.cursor.fault.unwrap_or(Fault { kind: Kind::Eof, at: data.len() });
        Some(Error { kind: fault.kind, offset: Some(fault.at), message_index: Some(index), field: None })
    };
    *outline = scan.outline;
    fault.map_or(Ok(()), |fault| {
        outline.truncate(&mark);
        Err(fault)
    })
}

/// The JSON of an answer to a call of a history that was scanned before.
pub(crate) fn answer(data: &[u8], surrogates: bool, outline: &Outline, call: usize) -> Result<Vec<u8>, Error> {
    let Call { message, block, .. } = outline.calls[call];
    let mut scan = Scan::of(data, surrogates, Scanner::detect(), Outline::default());
    scan.cursor.at = outline.spans[message as usize].start;
    let _ = scan.record_message();
    shape::answer::<Node>(outline.messages[message as usize].shape, &Node::message(&scan.tape), block as usize)
}

/// Whether this block of a field of a message, which was scanned before, is signed reasoning.
pub(crate) fn is_signed_block(data: &[u8], block: Span, field: Key) -> bool {
    let mut scan = Scan::of(data, true, Scanner::detect(), Outline::default());
    scan.cursor.at = block.start;
    scan.record_message().is_ok() && shape::is_signed_block::<Node>(&Node::message(&scan.tape), field).unwrap_or(false)
}

/// Whether the message at `span`, which was scanned before, has this tag.
pub(crate) fn has_tag(data: &[u8], span: Span, tag: &[u8]) -> bool {
    let tags = member(data, span, b"tags").and_then(|tags| elements(data, tags)).unwrap_or_default();
    tags.into_iter().any(|one| text(one.of(data)).is_some_and(|text| text == tag))
}

/// The text of a valid value; None if it is not a string.
pub(crate) fn text(value: &[u8]) -> Option<Vec<u8>> {
    let mut text = vec![];
    decode(value.strip_prefix(b"\"")?.strip_suffix(b"\"")?, &mut text);
    Some(text)
}

/// Finds the value of a field in the object at `span`, which was scanned before; of repeated fields the last.
pub(crate) fn member(data: &[u8], span: Span, key: &[u8]) -> Option<Span> {
    member_around(data, span, key, (0, 0))
}

/// [`member`] of an object around messages: what is between these two positions is skipped.
fn member_around(data: &[u8], span: Span, wanted: &[u8], (array_start, end): (usize, usize)) -> Option<Span> {
    let mut found = None;
    each(data, span, *b"{}", |cursor| {
        let key = cursor.key()?;
        cursor.peek();
        if cursor.at + 1 == array_start {
            cursor.at = end;
            return cursor.expect(b']');
        }
        let (is_it, value) = (*decoded(data, &key) == *wanted, cursor.span()?);
        found = if is_it { Some(value) } else { found };
        Ok(())
    })?;
    found
}

/// A member of an object: its key, all of it, and its value.
pub(crate) struct Member {
    pub key: Vec<u8>,
    pub field: Span,
    pub value: Span,
}

/// Finds the members of the object at `span`, which was scanned before.
pub(crate) fn members(data: &[u8], span: Span) -> Vec<Member> {
    let mut found = vec![];
    each(data, span, *b"{}", |cursor| {
        let key = cursor.key()?;
        let (start, key, value) = (key.start - 1, decoded(data, &key).into_owned(), cursor.span()?);
        found.push(Member { key, field: Span { start, end: value.end }, value });
        Ok(())
    });
    found
}

/// Finds the elements of the list at `span`, which was scanned before; None if it is no list.
pub(crate) fn elements(data: &[u8], span: Span) -> Option<Vec<Span>> {
    let mut found = vec![];
    each(data, span, *b"[]", |cursor| cursor.span().map(|element| found.push(element)))?;
    Some(found)
}

/// Reads each member or element of the value at `span`, which was scanned before; None if it is not in these brackets.
fn each(data: &[u8], span: Span, [open, close]: [u8; 2], mut read: impl FnMut(&mut Cursor) -> Read<()>) -> Option<()> {
    let mut cursor = Cursor::new(&data[..span.end], Scanner::detect(), true, &NEEDLE);
    cursor.at = span.start;
    if cursor.peek() != open {
        return None;
    }
    cursor.each(close, |cursor, _| read(cursor)).ok()
}

/// Whether what was scanned before is a request body.
pub(crate) fn is_body(data: &[u8], outline: &Outline) -> bool {
    outline.array_start > 0 && data.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// Finds the value of this field beside the messages of a request body that was scanned before.
pub(crate) fn field(data: &[u8], outline: &Outline, name: &str) -> Option<Span> {
    let end = outline.spans.last().map_or(outline.array_start, |last| last.end);
    let find = || member_around(data, Span { start: 0, end: data.len() }, name.as_bytes(), (outline.array_start, end));
    is_body(data, outline).then(find)?
}

/// Whether a request body that was scanned before has this field beside its messages, not null and not empty.
pub(crate) fn has_field(data: &[u8], outline: &Outline, name: &str) -> bool {
    let is_empty = |value: &[u8]| matches!(value, b"null" | b"false" | b"\"\"" | b"{}" | b"[]");
    field(data, outline, name).is_some_and(|value| !is_empty(value.of(data)))
}

/// The decoded bytes of a string: its own, unless its counts say that it may have escapes.
fn decoded<'a>(data: &'a [u8], text: &Counted) -> Cow<'a, [u8]> {
    let raw = text.raw(data);
    if text.minus == 0 {
        return Cow::Borrowed(raw);
    }
    let mut decoded = Vec::with_capacity(raw.len());
    decode(raw, &mut decoded);
    Cow::Owned(decoded)
}

fn outside_messages(kind: Kind, at: usize, field: Option<&str>) -> Error {
    Error { kind, offset: Some(at), message_index: None, field: field.map(str::to_owned) }
}

struct Scan<'a> {
    cursor: Cursor<'a>,
    outline: Outline,
    index: Option<usize>,
    /// The first message of a wrong shape.
    fault: Option<Error>,
    /// The tape of the current message; kept so that it is allocated once.
    tape: Tape<'a>,
    /// Whether an input of very many small values is refused.
    is_bounded: bool,
    /// Whether texts are weighed, and what those of the current message of a common layout weigh.
    weighs: bool,
    weight: usize,
}

impl<'a> Reader<'a> for Scan<'a> {
    fn cursor(&mut self) -> &mut Cursor<'a> {
        &mut self.cursor
    }
}

impl<'a> Scan<'a> {
    fn of(data: &'a [u8], surrogates: bool, scanner: Scanner, outline: Outline) -> Self {
        let cursor = Cursor::new(data, scanner, surrogates, &NEEDLE);
        Scan {
            cursor,
            outline,
            index: None,
            fault: None,
            tape: Tape::of(data),
            is_bounded: false,
            weighs: false,
            weight: 0,
        }
    }
}

impl Scan<'_> {
    fn scanned(mut self) -> Result<Outline, Error> {
        if let Ok(body_fault) = self.document() {
            return body_fault.or(self.fault).map_or(Ok(self.outline), Err);
        }
        let fault = self.cursor.fault.unwrap_or(Fault { kind: Kind::Eof, at: self.cursor.data.len() });
        Err(Error { kind: fault.kind, offset: Some(fault.at), message_index: self.index, field: None })
    }

    /// Stops a bounded scan that has so many values.
    fn bound(&mut self, values: usize) -> Read<()> {
        if self.is_bounded && values > FREE_VALUES + self.cursor.at / LEAST_BYTES {
            return self.cursor.stop(Kind::Size, self.cursor.at);
        }
        Ok(())
    }

    /// The whole input. Returns an error outside of its messages.
    fn document(&mut self) -> Read<Option<Error>> {
        let byte = self.cursor.peek();
        let start = self.cursor.at;
        let fault = match byte {
            b'[' => {
                self.history()?;
                None
            }
            b'{' => self.body()?,
            _ => {
                self.cursor.value()?;
                Some(outside_messages(Kind::History, start, None))
            }
        };
        self.end()?;
        Ok(fault)
    }

    /// Refuses trailing bytes.
    fn end(&mut self) -> Read<()> {
        self.cursor.peek();
        if self.cursor.at < self.cursor.data.len() {
            return self.cursor.stop(Kind::Trailing, self.cursor.at);
        }
        Ok(())
    }

    /// A request body: the history is the first of [`BODY_KEYS`] that is a list.
    fn body(&mut self) -> Read<Option<Error>> {
        let start = self.cursor.at;
        let (mut history, mut wrong, mut repeated) = (BODY_KEYS.len(), [None; BODY_KEYS.len()], None);
        let mut seen = [false; BODY_KEYS.len()];
        self.each(b'}', |scan, _| {
            let name = scan.cursor.key()?;
            let key = decoded(scan.cursor.data, &name);
            let Some(key) = BODY_KEYS.iter().position(|name| *key == *name.as_bytes()) else {
                return scan.cursor.value().map(drop);
            };
            if core::mem::replace(&mut seen[key], true) {
                repeated.get_or_insert((key, name.start - 1));
                return scan.cursor.value().map(drop);
            }
            if scan.cursor.peek() != b'[' || key > history {
                wrong[key] = Some(scan.cursor.at);
                return scan.cursor.value().map(drop);
            }
            // A key of higher precedence replaces the history that was read.
            history = key;
            core::mem::take(&mut scan.outline).recycle();
            scan.outline = Outline::spare();
            scan.fault = None;
            scan.history()
        })?;
        let wrong = wrong.iter().zip(BODY_KEYS).find_map(|(at, key)| Some(((*at)?, Some(key))));
        Ok(match repeated {
            Some((key, at)) => Some(outside_messages(Kind::DuplicateKey, at, Some(BODY_KEYS[key]))),
            None if history < BODY_KEYS.len() => None,
            None => {
                let (at, key) = wrong.unwrap_or((start, None));
                Some(outside_messages(Kind::History, at, key))
            }
        })
    }

    fn history(&mut self) -> Read<()> {
        self.outline.array_start = self.cursor.at + 1;
        self.each(b']', |scan, index| {
            scan.index = Some(index);
            scan.message(index)?;
            scan.bound(scan.outline.messages.len() + scan.outline.calls.len() + scan.outline.results.len())?;
            scan.index = None;
            Ok(())
        })
    }

    fn message(&mut self, index: usize) -> Read<()> {
        let byte = self.cursor.peek();
        let start = self.cursor.at;
        if byte != b'{' {
            self.cursor.value()?;
            self.fault.get_or_insert_with(|| Error::in_message(Kind::Message, Some(start), index, None));
            return Ok(());
        }
        if self.quick_message() { Ok(()) } else { self.any_message(start, index) }
    }

    /// Reads a message that is an object, through the tape. Not inlined: the fast path does without its stack frame.
    #[inline(never)]
    fn any_message(&mut self, start: usize, index: usize) -> Read<()> {
        self.record_message()?;
        if let Err(fault) = self.write_message(Span { start, end: self.cursor.at }) {
            self.fault.get_or_insert(Error { message_index: Some(index), ..fault });
        }
        Ok(())
    }
}
