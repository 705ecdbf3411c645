//! Observations by number, id or handle, in memory or the store.

use super::stored::{index, observation_of};
use super::{Failure, Result, Session, scanned};
use crate::handle::is_handle;
use crate::plan::{Unmasked, is_within_budget};
use crate::source::{Bytes, Source};
use crate::store::Store;

impl Session {
    /// How many observations were appended, and what of them could be masked, if nothing is.
    #[must_use]
    pub fn unmasked(&self) -> (usize, Unmasked) {
        if !self.policy.masks() || self.counts().masked > 0 {
            return (self.observations, Unmasked::default());
        }
        let is_small = (1..=self.raw_cost_at_most).contains(&self.log.cost);
        if is_small || is_within_budget(&self.policy, self.log.len(), self.log.cost) {
            return (self.observations, Unmasked::BELOW_TRIGGER);
        }
        (self.observations, self.log.with_context(&self.policy, |context| self.log.fold.unmasked(context)))
    }

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
