//! The texts of an Outline: ids, and the names of tools, each of which is kept once.

use super::{Name, Outline};
use crate::text::{Counted, is_blank, same};
use std::num::NonZeroU32;
use std::ops::Range;

// For fewer names a linear search is faster than a hash table.
const LINEAR_SEARCH_NAMES: usize = 16;

/// A half-open range of [`Outline::text`]; small, since every call and result has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextSpan {
    start: u32,
    /// The end plus one, so that a missing text takes no room of its own.
    after_end: NonZeroU32,
}

impl TextSpan {
    #[inline]
    fn new(start: usize, end: usize) -> Self {
        assert!(end < u32::MAX as usize, "the ids and names of a history have more than 4 GB");
        TextSpan { start: start as u32, after_end: NonZeroU32::MIN.saturating_add(end as u32) }
    }

    #[inline]
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.after_end.get() as usize - 1
    }
}

/// A cache of recent names by a hash of a few bytes; one more than the number of the name.
#[derive(Debug, Clone)]
pub(super) struct RecentNames([u32; 64]);

impl Default for RecentNames {
    fn default() -> Self {
        RecentNames([0; 64])
    }
}

impl Outline {
    /// The decoded bytes of an id.
    pub fn text(&self, span: TextSpan) -> &[u8] {
        &self.text[span.range()]
    }

    /// Stores decoded text, written by `write`.
    pub fn keep_text(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> TextSpan {
        let start = self.text.len();
        write(&mut self.text);
        TextSpan::new(start, self.text.len())
    }

    #[inline]
    pub(crate) fn keep(&mut self, text: &[u8]) -> TextSpan {
        self.keep_text(|out| out.extend_from_slice(text))
    }

    /// Stores an id; a blank one is none.
    #[inline]
    pub(crate) fn keep_id(&mut self, id: &[u8]) -> Option<TextSpan> {
        (!is_blank(id)).then(|| self.keep(id))
    }

    /// Stores an id in `data` that has no escapes; a blank one is none.
    #[inline]
    pub(crate) fn keep_id_from(&mut self, data: &[u8], id: &Counted) -> Option<TextSpan> {
        (!is_blank(id.raw(data))).then(|| self.keep_from(data, id))
    }

    /// Stores a text in `data` that has no escapes. For short ids a fixed-size copy that is then truncated is faster.
    #[inline]
    fn keep_from(&mut self, data: &[u8], text: &Counted) -> TextSpan {
        let (start, length) = (self.text.len(), text.end - text.start);
        match data[text.start..].first_chunk::<32>() {
            Some(bytes) if length <= bytes.len() => {
                self.text.extend_from_slice(bytes);
                self.text.truncate(start + length);
            }
            _ => self.text.extend_from_slice(text.raw(data)),
        }
        TextSpan::new(start, start + length)
    }

    /// The decoded name of a tool.
    pub fn name(&self, name: u32) -> &[u8] {
        self.text(self.names[name as usize])
    }

    /// How many distinct tool names there are.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// The number of a tool's decoded name; equal names have the same number.
    #[inline]
    pub fn intern(&mut self, name: &[u8]) -> u32 {
        let byte = |place: usize| name.get(place).map_or(0, |byte| usize::from(*byte));
        let place = (name.len() + 7 * byte(0) + 5 * byte(name.len() / 2) + 3 * byte(name.len().wrapping_sub(1))) % 64;
        if let Some(number) = self.recent_names.0[place].checked_sub(1)
            && same(self.name(number), name)
        {
            return number;
        }
        let number = self.number_of(name).unwrap_or_else(|| {
            let span = self.keep(name);
            self.add_name(span)
        });
        self.recent_names.0[place] = number + 1;
        number
    }

    #[inline]
    fn number_of(&self, wanted: &[u8]) -> Name {
        match self.names.iter().take(LINEAR_SEARCH_NAMES).position(|name| same(self.text(*name), wanted)) {
            Some(place) => Some(place as u32),
            None if self.names.len() < LINEAR_SEARCH_NAMES => None,
            None => self.names_by_text.get(wanted).copied(),
        }
    }

    fn add_name(&mut self, span: TextSpan) -> u32 {
        let name = self.names.len() as u32;
        if self.names.len() >= LINEAR_SEARCH_NAMES {
            self.names_by_text.insert(self.text(span).to_vec(), name);
        }
        self.names.push(span);
        name
    }
}
