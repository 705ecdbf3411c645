//! The tape: the values of one message that some shape may read, in document order. Fields may come in any order, so they are
//! interpreted at the end of the message. All other values are skipped.

use super::{Scan, decoded};
use crate::error::Error;
use crate::json::{Counted, Read, Reader};
use crate::outline::Span;
use crate::shape::{Key, Keys, Value};
use std::borrow::Cow;

/// Nesting levels that are recorded, the message included; deeper containers are skipped.
const MAX_LEVEL: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Text,
    Object,
    List,
    Null,
    True,
    /// Anything else, including skipped containers.
    Other,
}

/// A value on the tape.
#[derive(Clone, Copy)]
struct Entry {
    kind: ValueKind,
    key: Option<Key>,
    may_hold_dispatch: bool,
    /// The entry after its last descendant.
    next: u32,
    /// Recorded members of an object, or elements of a list.
    members: u32,
    /// The keys of the fields.
    keys: Keys,
    /// The start of a value; of a text, without its quotes.
    start: usize,
    end: usize,
    /// [`Counted::minus`] of a text; of any other value its size as compact JSON.
    size: usize,
}

pub(super) struct Tape<'a> {
    data: &'a [u8],
    entries: Vec<Entry>,
    /// Repeated keys: their object, the key, and its position.
    repeated: Vec<(u32, Key, usize)>,
}

impl<'a> Tape<'a> {
    /// An empty tape, for messages of `data`.
    pub(crate) fn of(data: &'a [u8]) -> Self {
        Tape { data, entries: vec![], repeated: vec![] }
    }
}

impl Scan<'_> {
    /// Reads the message at the cursor onto the tape.
    pub(super) fn record_message(&mut self) -> Read<()> {
        self.tape.entries.clear();
        self.tape.repeated.clear();
        self.record_object(None, 1).map(drop)
    }

    /// Records a value. Returns its size.
    fn record(&mut self, key: Option<Key>, is_opened: bool, level: usize) -> Read<usize> {
        let byte = self.cursor.peek();
        if byte != b'"' {
            return self.record_other(byte, key, is_opened, level);
        }
        let Counted { start, end, minus, may_hold_needle: may_hold_dispatch } = self.cursor.string_here()?;
        let place = self.tape.entries.len();
        self.push(Entry { may_hold_dispatch, start, end, size: minus, ..Entry::of(ValueKind::Text, key, place) });
        Ok(end - start - minus + 2)
    }

    /// Records a value that is no string, and begins with `byte`.
    fn record_other(&mut self, byte: u8, key: Option<Key>, is_opened: bool, level: usize) -> Read<usize> {
        let (start, place) = (self.cursor.at, self.tape.entries.len());
        let opens = is_opened && level <= MAX_LEVEL;
        let (kind, size) = match byte {
            b'{' if opens => return self.record_object(key, level),
            b'[' if opens => return self.record_list(key, level),
            b'n' => (ValueKind::Null, self.cursor.value()?),
            b't' => (ValueKind::True, self.cursor.value()?),
            _ => (ValueKind::Other, self.cursor.value()?),
        };
        self.push(Entry { start, end: self.cursor.at, size, ..Entry::of(kind, key, place) });
        Ok(size)
    }

    fn record_list(&mut self, key: Option<Key>, level: usize) -> Read<usize> {
        let (start, place) = (self.cursor.at, self.tape.entries.len());
        self.push(Entry { start, ..Entry::of(ValueKind::List, key, place) });
        let (mut members, mut size) = (0, 2);
        self.each(b']', |scan, index| {
            members += 1;
            size += scan.record(None, true, level + 1)? + usize::from(index > 0);
            scan.bound(scan.tape.entries.len())
        })?;
        self.close(place, size, members, Keys::default());
        Ok(size)
    }

    fn record_object(&mut self, of: Option<Key>, level: usize) -> Read<usize> {
        let (start, place) = (self.cursor.at, self.tape.entries.len());
        self.push(Entry { start, ..Entry::of(ValueKind::Object, of, place) });
        let (mut keys, mut members, mut size) = (Keys::default(), 0, 1);
        self.each(b'}', |scan, _| {
            let (key, chars, at) = scan.key()?;
            size += chars + 4; // two quotes, a colon, a comma or bracket
            size += match key {
                Some(key) if keys.insert(key) => {
                    members += 1;
                    scan.record(Some(key), key.is_opened(), level + 1)?
                }
                Some(key) => {
                    scan.tape.repeated.push((place as u32, key, at));
                    scan.cursor.value()?
                }
                // The only member of a response counts, whatever its key.
                None if of == Some(Key::Response) => {
                    members += 1;
                    scan.record(None, false, level + 1)?
                }
                None => scan.cursor.value()?,
            };
            Ok(())
        })?;
        self.close(place, size.max(2), members, keys);
        Ok(size.max(2))
    }

    /// A member's key, if some shape may ask for it; its characters; and where it is.
    fn key(&mut self) -> Read<(Option<Key>, usize, usize)> {
        if let Some((key, at)) = self.cursor.short_key() {
            return Ok((Key::of(key), key.len(), at));
        }
        let key = self.cursor.key()?;
        Ok((Key::of(&decoded(self.cursor.data, &key)), key.chars(), key.start - 1))
    }

    fn push(&mut self, entry: Entry) {
        self.tape.entries.push(entry);
    }

    /// Ends the container at this place.
    fn close(&mut self, place: usize, size: usize, members: u32, keys: Keys) {
        let (end, next) = (self.cursor.at, self.tape.entries.len() as u32);
        let entry = &mut self.tape.entries[place];
        *entry = Entry { next, members, keys, end, size, ..*entry };
    }
}

impl Entry {
    fn of(kind: ValueKind, key: Option<Key>, place: usize) -> Entry {
        let next = place as u32 + 1;
        let keys = Keys::default();
        Entry { kind, key, may_hold_dispatch: false, next, members: 0, keys, start: 0, end: 0, size: 0 }
    }
}

/// A value on a tape.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    tape: &'a Tape<'a>,
    place: u32,
}

impl<'a> Node<'a> {
    pub(crate) fn message(tape: &'a Tape<'a>) -> Self {
        Node { tape, place: 0 }
    }

    fn entry(&self) -> &'a Entry {
        &self.tape.entries[self.place as usize]
    }

    fn is(&self, kind: ValueKind) -> Option<&Self> {
        (self.entry().kind == kind).then_some(self)
    }

    fn inner(&self) -> impl Iterator<Item = Node<'a>> + use<'a> {
        let (Node { tape, place }, end) = (*self, self.entry().next);
        let mut next = place + 1;
        core::iter::from_fn(move || {
            let place = next;
            (place < end).then(|| {
                next = tape.entries[place as usize].next;
                Node { tape, place }
            })
        })
    }

    /// The bytes, including quotes or brackets.
    pub(crate) fn span(&self) -> Span {
        let Entry { kind, start, end, .. } = *self.entry();
        let quote = usize::from(kind == ValueKind::Text);
        Span { start: start - quote, end: end + quote }
    }

    /// The value as a string.
    pub(crate) fn counted(&self) -> Counted {
        let Entry { start, end, size, may_hold_dispatch, .. } = *self.entry();
        Counted { start, end, minus: size, may_hold_needle: may_hold_dispatch }
    }

    pub(crate) fn decoded(&self) -> Cow<'a, [u8]> {
        decoded(self.tape.data, &self.counted())
    }
}

impl<'a> Value for Node<'a> {
    type Object = Node<'a>;
    type Text = Node<'a>;
    type Stop = Error;

    fn object(&self) -> Option<&Self> {
        self.is(ValueKind::Object)
    }

    fn text(&self) -> Option<&Self> {
        self.is(ValueKind::Text)
    }

    fn items(&self) -> Option<impl Iterator<Item = Self>> {
        self.is(ValueKind::List).map(Node::inner)
    }

    fn length(&self) -> usize {
        self.is(ValueKind::List).map_or(0, |list| list.entry().members as usize)
    }

    fn is_null(&self) -> bool {
        self.entry().kind == ValueKind::Null
    }

    fn is_true(&self) -> bool {
        self.entry().kind == ValueKind::True
    }

    fn is_object(&self) -> bool {
        self.tape.data.get(self.span().start) == Some(&b'{')
    }

    fn offset(&self) -> Option<usize> {
        Some(self.span().start)
    }

    fn get(object: &Self, key: Key) -> Result<Option<Self>, Error> {
        if !object.entry().keys.has(key) {
            return Ok(None);
        }
        Ok(object.inner().find(|member| member.entry().key == Some(key)))
    }

    fn members(object: &Self) -> usize {
        object.entry().members as usize
    }

    fn repeated(object: &Self, keys: Keys) -> Option<(Key, usize)> {
        let mut repeated = object.tape.repeated.iter();
        let (_, key, at) = repeated.find(|(place, key, _)| *place == object.place && keys.has(*key))?;
        Some((*key, *at))
    }

    fn only(object: &Self) -> Option<Self> {
        let is_repeated = object.tape.repeated.iter().any(|(place, ..)| *place == object.place);
        object.inner().next().filter(|_| object.entry().members == 1 && !is_repeated)
    }

    fn size(&self, _: usize) -> Result<usize, Error> {
        let entry = self.entry();
        Ok(if entry.kind == ValueKind::Text { self.counted().chars() } else { entry.size })
    }

    fn object_size(object: &Self, depth: usize) -> Result<usize, Error> {
        object.size(depth)
    }

    fn read<T>(text: &Self, read: impl FnOnce(&[u8]) -> T) -> T {
        read(&text.decoded())
    }
}
