//! Totals of all appended messages, also those replaced by a summary, and where each observation is. Written to the store,
//! if there is one, and then dropped from memory.

use crate::handle::is_handle;
use crate::outline::{Outline, Span};
use crate::session::stored::{index, observation_of};
use crate::session::{Failure, Result, Session, scanned};
use crate::source::{Bytes, Source};
use crate::store::Store;

#[derive(Debug, Default, Clone)]
pub struct Ledger {
    pub messages: usize,
    pub totals: Totals,
    /// Messages and observations up to the last write to the store.
    pub stored_messages: usize,
    pub stored: usize,
    /// Of each later observation: message, and place among its results.
    pub places: Vec<(u32, u32)>,
    /// Their ids, and the text of these. No table: few are looked up.
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
        self.totals.chars += outline.chars_of(message, image_chars);
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
        self.totals.chars = self.totals.chars.saturating_sub(outline.chars_of(message, image_chars));
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

impl Session {
    /// Characters and turns of all messages, and orphans among those after the last summary.
    #[must_use]
    pub fn totals(&self) -> (usize, usize, usize) {
        let totals = self.ledger.totals;
        (totals.chars, totals.turns, self.log.pairs.orphan_count(&self.log.outline))
    }

    /// The number of the newest observation of this id, from 1.
    ///
    /// # Errors
    /// Those of the store, where evicted ids are looked up.
    pub fn number_of(&self, id: &[u8], store: Option<&mut Store>) -> Result<Option<usize>> {
        let newest = self.ledger.ids().rev().find(|(known, _)| *known == id);
        Ok(match (newest, store) {
            (Some((_, number)), _) => Some(number),
            (None, Some(store)) if self.ledger.stored > 0 => index::find(store, id)?.and_then(|entry| entry.number()),
            (None, None) if self.ledger.stored > 0 => return Err(Failure::Closed),
            (None, _) => None,
        })
    }

    /// The number of the newest observation with this handle, from 1. Reads the observations until it is found.
    ///
    /// # Errors
    /// Those of the store.
    pub fn number_of_handle(&self, handle: &[u8], mut store: Option<&mut Store>) -> Result<Option<usize>> {
        let count = if is_handle(handle) { self.ledger.observations() } else { 0 };
        for number in (1..=count).rev() {
            if let Some((message, place)) = self.place_of_number(number, store.as_deref_mut())? {
                let data = self.message(message, store.as_deref_mut())?;
                if Bytes(&data).handle(&scanned(&data)?, place) == handle {
                    return Ok(Some(number));
                }
            }
        }
        Ok(None)
    }

    /// The text of an observation, by its number from 1, and how many images it has.
    ///
    /// # Errors
    /// Those of the store.
    pub fn recall(&self, number: usize, mut store: Option<&mut Store>) -> Result<Option<(Vec<u8>, usize)>> {
        let Some((message, place)) = self.place_of_number(number, store.as_deref_mut())? else { return Ok(None) };
        let data = self.message(message, store)?;
        let images = scanned(&data)?.results.get(place).map_or(0, |result| result.images as usize);
        Ok(observation_of(&data, place).map(|text| (text, images)))
    }

    fn place_of_number(&self, number: usize, store: Option<&mut Store>) -> Result<Option<(usize, usize)>> {
        let place = match (self.ledger.place(number), store) {
            (None, Some(store)) if number <= self.ledger.stored => index::place(store, number)?,
            (None, None) if number > 0 && number <= self.ledger.stored => return Err(Failure::Closed),
            (place, _) => place,
        };
        Ok(place.filter(|(message, _)| *message < self.len()))
    }
}
