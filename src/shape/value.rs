//! The interfaces of a shape: JSON values, in bytes or Python objects, and a sink for what it finds.

use super::words::{Besides, Keys, Role};
use super::{Frame, Key};
use crate::error::{Error, Kind};
use core::fmt;

/// A JSON value, in bytes or in Python objects.
pub(crate) trait Value: Sized {
    type Object;
    type Text;
    /// An error that stops reading.
    type Stop: From<Error>;

    /// The value as an object.
    fn object(&self) -> Option<&Self::Object>;
    /// The value as a string.
    fn text(&self) -> Option<&Self::Text>;
    /// The elements, if it is a list.
    fn items(&self) -> Option<impl Iterator<Item = Self>>;
    /// How many elements it has; 0 if it is no list.
    fn length(&self) -> usize;
    fn is_null(&self) -> bool;
    fn is_true(&self) -> bool;
    /// Whether it is an object, also where that is not recorded.
    fn is_object(&self) -> bool {
        self.object().is_some()
    }
    /// The first byte, if the input was bytes.
    fn offset(&self) -> Option<usize> {
        None
    }
    /// A member of an object.
    fn get(object: &Self::Object, key: Key) -> Result<Option<Self>, Self::Stop>;
    /// How many members of an object a shape may read.
    fn members(object: &Self::Object) -> usize;
    /// The first of these keys that is repeated in an object, and where.
    fn repeated(_: &Self::Object, _: Keys) -> Option<(Key, usize)> {
        None
    }
    /// The value of the only member of an object, whatever its key.
    fn only(object: &Self::Object) -> Option<Self>;
    /// Whether it is an object of a client, which must first be converted.
    fn is_foreign(&self) -> bool {
        false
    }
    /// The size as the arguments of a call, nested this deep in its message.
    fn size(&self, depth: usize) -> Result<usize, Self::Stop>;
    /// The size of an object, likewise.
    fn object_size(object: &Self::Object, depth: usize) -> Result<usize, Self::Stop>;
    fn read<T>(text: &Self::Text, read: impl FnOnce(&[u8]) -> T) -> T;
}

pub(crate) struct RawCall<'a, V> {
    /// The id, if that is a string.
    pub id: Option<&'a V>,
    /// The tool, if that is a string.
    pub name: Option<&'a V>,
    /// The arguments, unless missing or null.
    pub arguments: Option<&'a V>,
    /// The place among the blocks of its message.
    pub block: usize,
    /// Nesting level of its arguments in the message.
    pub depth: usize,
}

/// What the name of a tool is for, in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameUse {
    /// It is a comment: an id is needed.
    #[default]
    BesideId,
    /// It takes the place of an id.
    AsId,
}

pub(crate) struct RawResult<'a, V> {
    /// The id, if that is a string.
    pub id: Option<&'a V>,
    /// The tool, if the shape names it.
    pub name: Option<&'a V>,
    /// What the name is for.
    pub name_use: NameUse,
    /// The observation, if there is one.
    pub value: Option<&'a V>,
    /// The place among the blocks of its message.
    pub block: usize,
    /// Whether the result is flagged as an error.
    pub is_error: bool,
    /// Whether it is never masked.
    pub is_pinned: bool,
    /// The frame of its text.
    pub frame: Frame,
    /// The characters besides its text.
    pub chars: usize,
}

impl<'a, V: Value> RawResult<'a, V> {
    /// A result whose observation is text.
    pub(crate) fn of(id: Option<&'a V>, value: Option<&'a V>, block: usize, is_error: bool) -> Self {
        RawResult {
            id,
            name: None,
            name_use: NameUse::BesideId,
            value,
            block,
            is_error,
            is_pinned: false,
            frame: Frame::Text,
            chars: 0,
        }
    }
}

/// Receives the content of a message, in document order.
pub(crate) trait Sink<V: Value> {
    /// Whether it is to be found out which results are flagged as errors.
    fn reads_errors(&self) -> bool {
        true
    }
    /// A member of an object.
    #[inline]
    fn get(&mut self, object: &V::Object, key: Key) -> Result<Option<V>, V::Stop> {
        V::get(object, key)
    }
    /// A text: of an observation, if one has begun.
    fn text(&mut self, text: &V::Text) -> Result<(), V::Stop>;
    /// An image or a document; likewise.
    fn image(&mut self) {}
    /// Reasoning of the model: its text with its characters, or the quarter tokens of what only the provider reads.
    fn reasoning(&mut self, _text: Option<&V::Text>, _size: usize) {}
    /// Characters of something outside of observations that is no text.
    fn opaque(&mut self, _chars: usize) {}
    /// The role of this message, before its texts are read.
    fn role(&mut self, _role: Role) {}
    /// Notes what this message has besides calls, results, and the agent's text and reasoning; not of observations.
    fn besides(&mut self, _what: Besides) {}
    /// Notes that this message has signed reasoning, if the agent made it.
    fn signed(&mut self) {}
    /// Notes that this message is of an unknown shape, or its result has text that is not understood.
    fn unread(&mut self) {}
    /// A half of a call that the provider runs; see [`crate::outline::Half`].
    fn half(&mut self, _id: Option<&V>, _block: usize, _is_result: bool) -> Result<(), V::Stop> {
        Ok(())
    }
    fn call(&mut self, _call: &RawCall<V>) -> Result<(), V::Stop> {
        Ok(())
    }
    fn begin_observation(&mut self);
    /// The observation has ended; it belongs to this result.
    fn result(&mut self, result: &RawResult<V>) -> Result<(), V::Stop>;
}

/// The path of a value in its message.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    around: Option<&'a Place<'a>>,
    step: PlaceStep,
}

#[derive(Clone, Copy)]
enum PlaceStep {
    Key(Key),
    Index(usize),
}

impl<'a> Place<'a> {
    /// A field of the message.
    pub(crate) fn of(key: Key) -> Self {
        Place { around: None, step: PlaceStep::Key(key) }
    }

    /// A member of the value here.
    pub(crate) fn key(&'a self, key: Key) -> Self {
        Place { around: Some(self), step: PlaceStep::Key(key) }
    }

    /// An element of the value here.
    pub(crate) fn index(&'a self, index: usize) -> Self {
        Place { around: Some(self), step: PlaceStep::Index(index) }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        if let Some(around) = self.around {
            around.fmt(out)?;
        }
        match self.step {
            PlaceStep::Index(index) => write!(out, "[{index}]"),
            PlaceStep::Key(key) if self.around.is_none() => out.write_str(key.name()),
            PlaceStep::Key(key) => write!(out, ".{}", key.name()),
        }
    }
}

#[cold]
fn fault<V: Value>(kind: Kind, offset: Option<usize>, place: &Place) -> V::Stop {
    Error { kind, offset, message_index: None, field: Some(place.to_string()) }.into()
}

/// A value that is neither missing nor null.
#[inline]
pub(crate) fn present<V: Value>(value: Option<&V>) -> Option<&V> {
    value.filter(|value| !value.is_null())
}

/// A field that is neither missing nor null.
#[inline]
pub(crate) fn get_present<V: Value>(object: &V::Object, key: Key) -> Result<Option<V>, V::Stop> {
    Ok(V::get(object, key)?.filter(|value| !value.is_null()))
}

/// Looks up the meaning of the word in a field.
#[inline]
pub(crate) fn word<V: Value, T: Default>(value: Option<&V>, meaning: impl FnOnce(&[u8]) -> T) -> T {
    value.and_then(V::text).map_or_else(T::default, |text| V::read(text, meaning))
}

/// Refuses repeated keys, of which JSON parsers use different ones.
#[inline]
pub(crate) fn refuse_repeated<V: Value>(object: &V::Object, keys: Keys, around: Option<&Place>) -> Result<(), V::Stop> {
    match V::repeated(object, keys) {
        None => Ok(()),
        Some((key, at)) => {
            Err(fault::<V>(Kind::DuplicateKey, Some(at), &around.map_or(Place::of(key), |around| around.key(key))))
        }
    }
}

/// A part of a content, which must be an object.
#[inline]
pub(crate) fn part<'a, V: Value>(part: &'a V, keys: Keys, place: &Place) -> Result<&'a V::Object, V::Stop> {
    let Some(object) = part.object() else { return Err(fault::<V>(Kind::Part, part.offset(), place)) };
    refuse_repeated::<V>(object, keys, Some(place))?;
    Ok(object)
}

/// The object that a value is, if it is there and is one.
#[inline]
pub(crate) fn object<'a, V: Value>(value: Option<&'a V>, place: &Place) -> Result<Option<&'a V::Object>, V::Stop> {
    let Some(value) = value else { return Ok(None) };
    match value.object() {
        None if value.is_foreign() => Err(fault::<V>(Kind::Part, value.offset(), place)),
        found => Ok(found),
    }
}

/// The error for a content that is neither text, list nor null.
pub(crate) fn wrong_content<V: Value>(value: &V, place: &Place) -> V::Stop {
    fault::<V>(Kind::Content, value.offset(), place)
}
