//! Records in buckets.
//!
//! ```text
//!  0  length  u16   of the whole record
//!  2  kind    u8    1 turn, 2 message, 3 summary, 4 session
//!  3  flags   u8    0; 1: the last field is in text pages; 3: the other fields too
//!  4  id      u64   from 1, without gaps
//! 12  fields        u16 count, then each as u32 length and bytes; or a reference to that
//!     last          a reference, if the last field is in text pages
//! ```
//!
//! A reference is 16 bytes: page u32, offset in the content of that page u16, zero u16, length u32, and the CRC-32 of the
//! text u32. The last field of a turn is its observation.

use super::error::{Result, StoreError, StoreErrorKind as StoreFault};
use super::page::{u16_at, u32_at, u64_at};
use std::borrow::Cow;

/// Number of kinds of records.
pub const KINDS: usize = 4;

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// A turn: reasoning, action, time, row, observation.
    Turn = 1,
    /// A message of a history.
    Message = 2,
    /// An event of a history, or a summary of turns.
    Summary = 3,
    /// Options, and arguments.
    Session = 4,
}

impl RecordKind {
    pub const ALL: [Self; KINDS] = [Self::Turn, Self::Message, Self::Summary, Self::Session];

    pub fn index(self) -> usize {
        self as usize - 1
    }
}

/// The longest record in a bucket. Four fit into a page, so that chains are short at any length of texts.
pub(crate) const IN_PLACE: usize = super::page::ROOM / 4;
/// The longest last field in a bucket. Fields in buckets are rewritten by splits, those in text pages never.
pub(crate) const LAST_IN_PLACE: usize = 256;
pub(crate) const CELL: usize = 12;
pub(crate) const REFERENCE: usize = 16;

const LAST_ASIDE: u8 = 1;
const REST_ASIDE: u8 = 2;

/// The location of a text in text pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The page in which it begins; 0 if it is empty.
    pub page: u32,
    /// Offset in the content of that page.
    pub offset: u16,
    pub length: u32,
    /// The CRC-32 of the bytes.
    pub sum: u32,
}

impl Reference {
    fn of(bytes: &[u8]) -> Self {
        let (page, offset) = (u32_at(bytes, 0), u16_at(bytes, 4));
        Reference { page, offset, length: u32_at(bytes, 8), sum: u32_at(bytes, 12) }
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend(self.page.to_le_bytes());
        out.extend(self.offset.to_le_bytes());
        out.extend([0, 0]);
        out.extend(self.length.to_le_bytes());
        out.extend(self.sum.to_le_bytes());
    }
}

/// Bytes in the record, or in text pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A text in the record.
    Here(Cow<'a, [u8]>),
    /// A text in text pages.
    Aside(Reference),
}

/// A record in a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell<'a> {
    pub kind: RecordKind,
    /// The number within its kind.
    pub id: u64,
    /// The encoded fields, without the last one if that is in text pages.
    pub fields: Part<'a>,
    /// The last field, if it is in text pages.
    pub last: Option<Reference>,
}

impl<'a> Cell<'a> {
    /// The bytes; at most [`IN_PLACE`] if the caller has respected that.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let flags = if self.last.is_some() { LAST_ASIDE } else { 0 };
        let (flags, length) = match &self.fields {
            Part::Here(fields) => (flags, CELL + fields.len()),
            Part::Aside(_) => (flags | REST_ASIDE, CELL + REFERENCE),
        };
        let length = length + if self.last.is_some() { REFERENCE } else { 0 };
        let mut out = Vec::with_capacity(length);
        out.extend((length as u16).to_le_bytes());
        out.extend([self.kind as u8, flags]);
        out.extend(self.id.to_le_bytes());
        match &self.fields {
            Part::Here(fields) => out.extend_from_slice(fields),
            Part::Aside(reference) => reference.write(&mut out),
        }
        if let Some(reference) = self.last {
            reference.write(&mut out);
        }
        out
    }

    /// Decodes a record that [`cells`] found in a page of this number.
    pub(crate) fn of(bytes: &'a [u8], page: u32) -> Result<Self> {
        let Some(kind) = RecordKind::ALL.into_iter().find(|kind| *kind as u8 == bytes[2]) else {
            return Err(StoreError::damaged(page, "a record is of an unknown kind"));
        };
        let (flags, id) = (bytes[3], u64_at(bytes, 4));
        let (has_last, has_rest) = (flags & LAST_ASIDE != 0, flags & REST_ASIDE != 0);
        let references = REFERENCE * (usize::from(has_last) + usize::from(has_rest));
        let is_sound = [0, LAST_ASIDE, LAST_ASIDE | REST_ASIDE].contains(&flags)
            && if has_rest { bytes.len() == CELL + references } else { bytes.len() >= CELL + references + 2 };
        if !is_sound {
            return Err(StoreError::damaged(page, "a record has a wrong length"));
        }
        let end = bytes.len() - if has_last { REFERENCE } else { 0 };
        let fields = &bytes[CELL..end];
        Ok(Cell {
            kind,
            id,
            fields: if has_rest { Part::Aside(Reference::of(fields)) } else { Part::Here(fields.into()) },
            last: has_last.then(|| Reference::of(&bytes[end..])),
        })
    }

    /// Whether the last field is in the record.
    pub(crate) fn holds_last(&self) -> bool {
        self.last.is_none()
    }
}

/// The records in the content of a bucket's page: kind, id and bytes. A record that does not fit is an error.
pub(crate) fn cells(content: &[u8], count: usize, page: u32) -> impl Iterator<Item = Result<(u8, u64, &[u8])>> {
    let (mut rest, mut left) = (content, count);
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        left -= 1;
        let length = usize::from(u16_at(rest, 0));
        if length < CELL || length > rest.len() {
            left = 0;
            return Some(Err(StoreError::damaged(page, "a record does not fit into it")));
        }
        let (cell, after) = rest.split_at(length);
        rest = after;
        Some(Ok((cell[2], u64_at(cell, 4), cell)))
    })
}

pub(crate) fn encode(fields: &[&[u8]]) -> Result<Vec<u8>> {
    let too_long = |_| StoreError::new(StoreFault::TooLong, "a record has over 65,535 fields, or one of over 4 GiB");
    let mut out = Vec::with_capacity(2 + fields.iter().map(|field| 4 + field.len()).sum::<usize>());
    out.extend(u16::try_from(fields.len()).map_err(too_long)?.to_le_bytes());
    for field in fields {
        out.extend(u32::try_from(field.len()).map_err(too_long)?.to_le_bytes());
        out.extend(*field);
    }
    Ok(out)
}

/// Decodes fields; `None` if malformed.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (count, mut rest) = bytes.split_at_checked(2)?;
    let mut fields = vec![];
    for _ in 0..u16_at(count, 0) {
        let (length, after) = rest.split_at_checked(4)?;
        let (field, after) = after.split_at_checked(u32_at(length, 0) as usize)?;
        fields.push(field);
        rest = after;
    }
    rest.is_empty().then_some(fields)
}
