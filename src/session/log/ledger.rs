//! Totals of all appended messages, also those replaced by a summary, and where each observation is. Written to the store,
//! if there is one, and then dropped from memory.

use crate::outline::Outline;
use crate::session::stored::{index, observation_of};
use crate::session::{Failure, Result, Session};
use crate::store::Store;
use std::collections::HashMap;

#[derive(Debug, Default, Clone)]
pub struct Ledger {
    pub messages: usize,
    pub totals: Totals,
    /// Messages and observations up to the last write to the store.
    pub stored_messages: usize,
    pub stored: usize,
    /// Of each later observation: message, place among its results, and number of the previous one with the same id among
    /// these, or 0.
    pub places: Vec<(u32, u32, u32)>,
    /// The number, from 1, of the newest of them by id.
    pub newest: HashMap<Vec<u8>, u32>,
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
            let number = self.observations() as u32 + 1;
            let id = outline.results[result].id;
            let earlier = id.and_then(|id| self.newest.insert(outline.text(id).to_vec(), number));
            self.places.push((self.messages as u32, place as u32, earlier.unwrap_or(0)));
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
        for result in outline.results_of(message).rev() {
            let earlier = self.places.pop().map_or(0, |(.., earlier)| earlier);
            match outline.results[result].id.map(|id| outline.text(id)) {
                Some(id) if earlier == 0 => drop(self.newest.remove(id)),
                Some(id) => drop(self.newest.insert(id.to_vec(), earlier)),
                None => {}
            }
        }
        self.totals.turns -= usize::from(outline.messages[message].is_agent_made && !is_after_run);
        self.totals.ends_with_run = is_after_run;
        self.totals.chars = self.totals.chars.saturating_sub(outline.chars_of(message, image_chars));
        self.messages -= 1;
    }

    /// Drops what was written to the store.
    pub fn evict(&mut self) {
        self.stored_messages = self.messages;
        self.stored = self.observations();
        self.places = vec![];
        self.newest = HashMap::new();
    }

    /// The message of an observation and its place there, by its number from 1; None where that is not in memory.
    pub fn place(&self, number: usize) -> Option<(usize, usize)> {
        let (message, place, _) = *self.places.get(number.checked_sub(self.stored + 1)?)?;
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
        Ok(match (self.ledger.newest.get(id), store) {
            (Some(number), _) => Some(*number as usize),
            (None, Some(store)) if self.ledger.stored > 0 => index::find(store, id)?.and_then(|entry| entry.number()),
            (None, None) if self.ledger.stored > 0 => return Err(Failure::Closed),
            (None, _) => None,
        })
    }

    /// The text of an observation, by its number from 1.
    ///
    /// # Errors
    /// Those of the store.
    pub fn recall(&self, number: usize, mut store: Option<&mut Store>) -> Result<Option<Vec<u8>>> {
        let place = match (self.ledger.place(number), &mut store) {
            (None, Some(store)) if number <= self.ledger.stored => index::place(store, number)?,
            (None, None) if number > 0 && number <= self.ledger.stored => return Err(Failure::Closed),
            (place, _) => place,
        };
        let Some((message, place)) = place.filter(|(message, _)| *message < self.len()) else { return Ok(None) };
        Ok(observation_of(&self.message(message, store)?, place))
    }
}
