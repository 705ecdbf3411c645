//! What is known of all messages that were ever appended, whatever is planned: how many there are, and where each
//! observation stands. With a store, it is in memory only until it was written there.

use crate::outline::Outline;
use std::collections::HashMap;

/// See the module.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Messages that were noted.
    pub messages: usize,
    pub totals: Totals,
    /// How many of the first messages were noted when it was stored, and how many observations they have.
    pub stored_messages: usize,
    /// See `stored_messages`.
    pub stored: usize,
    /// Of each observation after these: its message, its place among the results of that, and the number of the one
    /// before it with the same id that is in memory; 0 where there is none.
    pub places: Vec<(u32, u32, u32)>,
    /// The number of the newest observation of each id, from 1, of those that are in memory.
    pub newest: HashMap<Vec<u8>, u32>,
}

/// Of all that was appended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub chars: usize,
    pub turns: usize,
    pub ends_with_run: bool,
}

impl Ledger {
    /// How many observations there are.
    pub fn observations(&self) -> usize {
        self.stored + self.places.len()
    }

    /// The next message comes, which stands here in an outline.
    pub fn note(&mut self, outline: &Outline, message: usize, image_chars: usize) {
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

    /// The last message is taken back, which stands here in an outline; the one before it is of a run, or not. It must
    /// have come after those that are stored.
    pub fn take_back(&mut self, outline: &Outline, message: usize, is_after_run: bool, image_chars: usize) {
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

    /// All that is in memory was written to the store.
    pub fn evict(&mut self) {
        self.stored_messages = self.messages;
        self.stored = self.observations();
        self.places = vec![];
        self.newest = HashMap::new();
    }

    /// Where an observation stands, by its number from 1: its message and its place in that. `None` where there is none
    /// in memory.
    pub fn place(&self, number: usize) -> Option<(usize, usize)> {
        let (message, place, _) = *self.places.get(number.checked_sub(self.stored + 1)?)?;
        Some((message as usize, place as usize))
    }
}
