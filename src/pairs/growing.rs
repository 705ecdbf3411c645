//! Pairs of a growing history: one message at a time, and back.

use super::open_calls::OpenCalls;
use super::{NONE, Pairs, open_from};
use crate::outline::{Outline, ToolResult};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Pairs of a growing history, with incremental counts of orphans.
#[derive(Debug, Default, Clone)]
pub(crate) struct GrowingPairs {
    pub pairs: Pairs,
    /// The newest call by a part of the hash of its id. The ids themselves are in the outline.
    newest: HashMap<u32, u32>,
    hashes: RandomState,
    /// The previous call whose id has the same hash, of each call.
    earlier: Vec<u32>,
    open_calls: OpenCalls,
    unanswered_calls: usize,
    results_without_call: usize,
}

impl GrowingPairs {
    /// Adds the last message of the outline.
    pub(crate) fn push(&mut self, outline: &Outline) {
        let message = outline.messages.len() - 1;
        let (calls, results) = (outline.calls_of(message), outline.results_of(message));
        self.pairs.links.grow(outline, outline.halves.len());
        self.pairs.first_result.resize(calls.end, NONE);
        self.pairs.call_of.resize(results.end, NONE);
        self.pairs.next_result.resize(results.end, NONE);
        let (mut answered, mut unpaired) = (0, vec![]);
        for result in results {
            if let Some(call) = self.call_by_id(outline, result) {
                answered += usize::from(self.pairs.join(result as u32, call));
            } else {
                unpaired.push(result);
            }
        }
        self.results_without_call += unpaired.len();
        let by_place = self.pairs.join_by_place(outline, &mut self.open_calls, unpaired.into_iter());
        self.results_without_call -= by_place;
        self.unanswered_calls = self.unanswered_calls + calls.len() - answered - by_place;
        for call in calls {
            let id = outline.calls[call].id;
            let earlier = id.and_then(|id| self.newest.insert(self.hash(outline.text(id)), call as u32));
            self.earlier.push(earlier.unwrap_or(NONE));
        }
    }

    /// Keeps only the first messages of the outline, which still has all of them.
    pub(crate) fn truncate(&mut self, outline: &Outline, messages: usize) {
        let (calls, results) = (outline.calls_before(messages), outline.results_before(messages));
        self.pairs.links.truncate(outline, outline.halves_before(messages));
        for result in (results..self.pairs.call_of.len()).rev() {
            match self.pairs.call_of(result) {
                Some(call) => self.unanswered_calls += usize::from(self.pairs.unjoin(result as u32, call)),
                None => self.results_without_call -= 1,
            }
        }
        for call in (calls..self.earlier.len()).rev() {
            self.unanswered_calls -= 1;
            match (outline.calls[call].id.map(|id| self.hash(outline.text(id))), self.earlier[call]) {
                (Some(hash), NONE) => drop(self.newest.remove(&hash)),
                (Some(hash), earlier) => drop(self.newest.insert(hash, earlier)),
                (None, _) => {}
            }
        }
        self.open_calls = OpenCalls::default();
        self.earlier.truncate(calls);
        self.pairs.first_result.truncate(calls);
        self.pairs.call_of.truncate(results);
        self.pairs.next_result.truncate(results);
    }

    /// The call with the id of a result of the last message, which may be new.
    pub(crate) fn call_by_id(&self, outline: &Outline, result: usize) -> Option<u32> {
        let ToolResult { message, block, id, .. } = &outline.results[result];
        let id = outline.text((*id)?);
        let is_nearest = |call: &usize| {
            let call = &outline.calls[*call];
            call.block < *block && call.id.is_some_and(|of_call| outline.text(of_call) == id)
        };
        let own = outline.calls_of(*message as usize).rev().find(is_nearest);
        let is_same = |call: &u32| outline.calls[*call as usize].id.is_some_and(|of_call| outline.text(of_call) == id);
        let newest = || self.newest.get(&self.hash(id)).copied();
        let before = |call: &u32| Some(self.earlier[*call as usize]).filter(|earlier| *earlier != NONE);
        own.map(|call| call as u32).or_else(|| core::iter::successors(newest(), before).find(is_same))
    }

    fn hash(&self, id: &[u8]) -> u32 {
        self.hashes.hash_one(id) as u32
    }

    /// Calls without result, excluding open ones, plus results without call.
    pub(crate) fn orphan_count(&self, outline: &Outline) -> usize {
        let open_from = open_from(outline, outline.messages.len(), |message| outline.holds_results(message));
        let open = outline.messages.get(open_from).map_or(outline.calls.len(), |message| message.first_call as usize);
        let open = (open..outline.calls.len()).filter(|call| !self.pairs.is_answered(*call)).count();
        self.unanswered_calls - open + self.results_without_call
    }
}
