//! Observations by number, id or handle; and figures of the whole session.

use super::{ResultPlace, Session};
use crate::handle::is_handle;
use crate::outline::Message;
use crate::plan::Unmasked;
use crate::source::{Bytes, Source};

impl Session {
    /// How many observations were appended, and what of them could be masked, if nothing is.
    pub(crate) fn unmasked(&self) -> (usize, Unmasked) {
        let observations = self.log.outline.results.len();
        if self.policy.is_off || self.counts().masked > 0 {
            return (observations, Unmasked::default());
        }
        if (1..=self.raw_cost_at_most).contains(&self.log.cost) {
            return (observations, Unmasked::BELOW_TRIGGER);
        }
        (observations, self.with_context(|context| self.state.unmasked(context, &self.step)))
    }

    /// The facts of the newest message.
    pub(crate) fn newest(&self) -> Option<&Message> {
        self.log.outline.messages.last()
    }

    /// Characters and turns of all messages, and orphans among them.
    pub fn totals(&self) -> (usize, usize, usize) {
        (self.raw_chars(), self.log.turns.count(), self.log.pairs.orphan_count(&self.log.outline))
    }

    /// The number of the newest observation of this id, from 1.
    pub(crate) fn number_of(&self, id: &[u8]) -> Option<usize> {
        let outline = &self.log.outline;
        let is_it = |result: usize| outline.results[result].id.is_some_and(|of_result| outline.text(of_result) == id);
        (0..outline.results.len()).rfind(|result| is_it(*result)).map(|result| result + 1)
    }

    /// The number of the newest observation with this handle, from 1. Reads the observations until it is found.
    pub(crate) fn number_of_handle(&self, handle: &[u8]) -> Option<usize> {
        let (outline, source) = (&self.log.outline, Bytes(&self.log.data));
        let results = if is_handle(handle) { outline.results.len() } else { 0 };
        (0..results).rfind(|result| source.handle(outline, *result) == handle).map(|result| result + 1)
    }

    /// The text of an observation, by its number from 1, and how many images it has; its JSON where it is not a text.
    pub(crate) fn recall(&self, number: usize) -> Option<(Vec<u8>, usize)> {
        let outline = &self.log.outline;
        let result = number.checked_sub(1).filter(|result| *result < outline.results.len())?;
        let facts = &outline.results[result];
        let text = if facts.frame.holds_text() {
            Bytes(&self.log.data).observation(outline, result)
        } else {
            facts.value.of(&self.log.data).to_vec()
        };
        Some((text, facts.images as usize))
    }

    /// The place of an observation by its number, from 1.
    pub(crate) fn place(&self, number: usize) -> Option<ResultPlace> {
        let result = number.checked_sub(1).filter(|result| *result < self.log.outline.results.len())?;
        Some(self.place_of(result))
    }

    /// The observations with this handle, of those of which the text was given.
    fn results_by_handle(&self, handle: &[u8]) -> impl Iterator<Item = usize> + Clone {
        self.log.texts.iter().filter(move |(_, known)| known.handle == handle).map(|(result, _)| *result as usize)
    }

    /// The place of the newest observation with this handle.
    pub(crate) fn newest_by_handle(&self, handle: &[u8]) -> Option<ResultPlace> {
        Some(self.place_of(self.results_by_handle(handle).max()?))
    }

    /// The place of the newest observation with this handle; None if others may be meant.
    pub(crate) fn place_by_handle(&self, handle: &[u8]) -> Option<ResultPlace> {
        let found = self.results_by_handle(handle);
        let newest = found.clone().max()?;
        // A handle says nothing of images: they may be others.
        let is_certain = self.log.outline.results[newest].images == 0 || found.count() == 1;
        is_certain.then(|| self.place_of(newest))
    }

    /// The place of the newest observation with this id.
    pub(crate) fn place_by_id(&self, id: &[u8]) -> Option<ResultPlace> {
        self.place(self.number_of(id)?)
    }

    /// The place of a result in memory.
    pub(in crate::session) fn place_of(&self, result: usize) -> ResultPlace {
        let message = self.log.outline.results[result].message as usize;
        (message, result - self.log.outline.results_before(message))
    }
}
