//! Totals of all appended messages, also those replaced by a summary, and where each observation is. Written to the store,
//! if there is one, and then dropped from memory.

use crate::outline::{Outline, Span};

#[derive(Debug, Default, Clone)]
pub struct Ledger {
    pub messages: usize,
    pub totals: Totals,
    /// Messages and observations up to the last write to the store.
    pub stored_messages: usize,
    pub stored: usize,
    /// The place of each later observation: message, and place among its results.
    pub places: Vec<(u32, u32)>,
    /// The ids of these observations, and the text of the ids. No table: few are looked up.
    pub ids: Vec<Option<Span>>,
    pub id_text: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub chars: usize,
    pub turns: usize,
    pub ends_with_run: bool,
}

impl Ledger {
    pub fn observations(&self) -> usize {
        self.stored + self.places.len()
    }

    /// Adds the next message, at this index of an outline.
    pub fn add(&mut self, outline: &Outline, message: usize, image_chars: usize) {
        for (place, result) in outline.results_of(message).enumerate() {
            self.places.push((self.messages as u32, place as u32));
            let start = self.id_text.len();
            let id = outline.results[result].id;
            self.id_text.extend_from_slice(id.map_or(b"", |id| outline.text(id)));
            self.ids.push(id.map(|_| Span { start, end: self.id_text.len() }));
        }
        let is_run = outline.messages[message].is_agent_made;
        self.totals.turns += usize::from(is_run && !self.totals.ends_with_run);
        self.totals.ends_with_run = is_run;
        self.totals.chars += outline.raw_chars_of(message, image_chars);
        self.messages += 1;
    }

    /// Removes the last message, which is at this place of an outline and not stored; the one before it is of a run or
    /// not.
    pub fn pop(&mut self, outline: &Outline, message: usize, is_after_run: bool, image_chars: usize) {
        self.places.truncate(self.places.len() - outline.results_of(message).len());
        self.ids.truncate(self.places.len());
        self.id_text.truncate(self.ids.iter().rev().flatten().next().map_or(0, |last| last.end));
        self.totals.turns -= usize::from(outline.messages[message].is_agent_made && !is_after_run);
        self.totals.ends_with_run = is_after_run;
        self.totals.chars = self.totals.chars.saturating_sub(outline.raw_chars_of(message, image_chars));
        self.messages -= 1;
    }

    /// Drops what was written to the store.
    pub fn evict(&mut self) {
        self.stored_messages = self.messages;
        self.stored = self.observations();
        (self.places, self.ids, self.id_text) = (vec![], vec![], vec![]);
    }

    /// The ids of the later observations, each with its number from 1.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = (&[u8], usize)> {
        let id = |(place, id): (usize, &Option<Span>)| Some(((*id)?.of(&self.id_text), self.stored + place + 1));
        self.ids.iter().enumerate().filter_map(id)
    }

    /// The message of an observation and its place there, by its number from 1; None where that is not in memory.
    pub fn place(&self, number: usize) -> Option<(usize, usize)> {
        let (message, place) = *self.places.get(number.checked_sub(self.stored + 1)?)?;
        Some((message as usize, place as usize))
    }
}
