//! Cache marks: the `cache_control` of a block or of a part, after which a provider writes an entry of its prompt cache.
//!
//! A mark inside of an observation moves when that is replaced: to the block of its result; where the message itself is the
//! result, to the one part that has the new text. So no mark is lost.

use crate::outline::{Outline, Span};
use crate::scan::{elements, member};
use crate::shape::{Frame, Key, Shape};

/// The field of a mark.
pub const FIELD: &str = "cache_control";

/// Where a mark goes whose observation is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// After the observation, as a new field of its block.
    After(Span),
    /// Over the null that the block has in its place.
    Over(Span, Span),
    /// Around the new text, in a part of this type.
    Around(Span, &'static str),
}

/// The type of a part with text in a message of this shape.
#[must_use]
pub fn part_type(shape: Shape) -> &'static str {
    if shape == Shape::Responses { "input_text" } else { "text" }
}

/// The mark in the observation of a result, and where it goes; None if there is none, or its block has one.
#[must_use]
pub fn moved(data: &[u8], outline: &Outline, result: usize) -> Option<Moved> {
    let facts = &outline.results[result];
    let pieces = &outline.pieces[facts.first_piece as usize..(facts.first_piece + facts.pieces) as usize];
    if facts.frame != Frame::Text || !may_hold_mark(data, facts.value, pieces) {
        return None;
    }
    let mark = in_parts(data, facts.value)?;
    let message = &outline.messages[facts.message as usize];
    let Some(blocks) = message.shape.path().blocks else {
        return Some(Moved::Around(mark, part_type(message.shape)));
    };
    let block = block_at(data, message.span, blocks, facts.block as usize)?;
    match member(data, block, FIELD.as_bytes()) {
        None => Some(Moved::After(mark)),
        Some(own) if is_null(data, own) => Some(Moved::Over(mark, own)),
        Some(_) => None,
    }
}

/// The mark of the last part that has one, of a value that may be a list of parts.
#[must_use]
pub fn in_parts(data: &[u8], value: Span) -> Option<Span> {
    let parts = if data[value.start] == b'[' { elements(data, value) } else { vec![] };
    parts.into_iter().rev().find_map(|part| {
        let is_object = data[part.start] == b'{';
        is_object.then(|| member(data, part, FIELD.as_bytes())).flatten().filter(|mark| !is_null(data, *mark))
    })
}

fn is_null(data: &[u8], value: Span) -> bool {
    value.of(data) == b"null"
}

fn block_at(data: &[u8], message: Span, blocks: Key, place: usize) -> Option<Span> {
    elements(data, member(data, message, blocks.name().as_bytes())?).get(place).copied()
}

/// False only if a value with these texts has no mark: only what is between the texts is searched, which mostly is short.
fn may_hold_mark(data: &[u8], value: Span, texts: &[Span]) -> bool {
    if data[value.start] != b'[' {
        return false;
    }
    let starts = core::iter::once(value.start).chain(texts.iter().map(|text| text.end));
    let ends = texts.iter().map(|text| text.start).chain([value.end]);
    starts.zip(ends).any(|(start, end)| {
        let between = &data[start..end];
        // A key may be written with escapes.
        memchr::memchr(b'\\', between).is_some() || memchr::memmem::find(between, FIELD.as_bytes()).is_some()
    })
}
