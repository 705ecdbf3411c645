//! The nearest earlier call of an id: by linear search among the last few, since results closely follow their calls, then in a
//! table that is built lazily.

use super::shared_ids::SharedIds;
use crate::outline::{Call, Outline, TextSpan, ToolResult};
use crate::text::same;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

const LINEAR_SEARCH_CALLS: usize = 16;

#[derive(Debug, Default, Clone)]
pub(super) struct CallIds {
    /// The calls before the result that was looked at last; and how many of the first are in the table.
    seen: usize,
    indexed: usize,
    /// The newest call by the hash of its id. The ids themselves are in the outline.
    newest: HashMap<u64, u32>,
    hashes: RandomState,
    /// The first call of the turn of the call that was seen last.
    turn_from: usize,
    pub shared: SharedIds,
}

impl CallIds {
    /// The call of a result's id. To be asked for the results in order.
    pub(crate) fn nearest(&mut self, outline: &Outline, result: usize) -> Option<u32> {
        let ToolResult { message, block, id, .. } = outline.results[result];
        while outline.calls.get(self.seen).is_some_and(|call| (call.message, call.block) < (message, block)) {
            self.note_shared(outline);
            self.seen += 1;
        }
        self.newest_from(outline, 0, id?).map(|call| call as u32)
    }

    /// Notes whether the next call shares its id with an earlier one of its turn.
    fn note_shared(&mut self, outline: &Outline) {
        let call = self.seen;
        if call == 0 || !are_of_one_turn(outline, call - 1, call) {
            self.turn_from = call;
        } else if let Some(id) = outline.calls[call].id
            && let Some(earlier) = self.newest_from(outline, self.turn_from, id)
        {
            self.shared.add(outline, earlier, call);
        }
    }

    /// The newest call of an id among those that were seen, from this one on.
    #[inline]
    fn newest_from(&mut self, outline: &Outline, from: usize, id: TextSpan) -> Option<usize> {
        let text = outline.text(id);
        let near = self.seen.saturating_sub(LINEAR_SEARCH_CALLS).max(from);
        let is_it = |call: &Call| call.id.is_some_and(|of_call| same(outline.text(of_call), text));
        match outline.calls[near..self.seen].iter().rposition(is_it) {
            None if near > from => self.newest_before(outline, near, text).filter(|call| *call >= from),
            found => found.map(|place| near + place),
        }
    }

    /// The newest call of an id among those before this one, by the table.
    #[cold]
    fn newest_before(&mut self, outline: &Outline, end: usize, id: &[u8]) -> Option<usize> {
        for call in self.indexed..end {
            if let Some(id) = outline.calls[call].id {
                self.newest.insert(self.hashes.hash_one(outline.text(id)), call as u32);
            }
        }
        self.indexed = self.indexed.max(end);
        let newest = *self.newest.get(&self.hashes.hash_one(id))? as usize;
        let is_it = |call: &usize| outline.calls[*call].id.is_some_and(|of_call| same(outline.text(of_call), id));
        // Else another id has the same hash.
        if is_it(&newest) { Some(newest) } else { (0..end).rev().find(is_it) }
    }

    /// Keeps only the first calls of an outline.
    pub(crate) fn truncate(&mut self, outline: &Outline, calls: usize) {
        let calls = if self.shared.is_empty() { calls.min(self.seen) } else { 0 }; // their results may be gone
        self.shared = SharedIds::default();
        self.seen = calls;
        self.turn_from = calls.saturating_sub(1);
        while self.turn_from > 0 && are_of_one_turn(outline, self.turn_from - 1, self.turn_from) {
            self.turn_from -= 1;
        }
        if self.indexed > calls {
            self.newest.clear();
            self.indexed = 0;
        }
    }
}

/// Whether two calls are of one turn: in one message, or in one run.
fn are_of_one_turn(outline: &Outline, one: usize, other: usize) -> bool {
    let (from, to) = (outline.calls[one].message as usize, outline.calls[other].message as usize);
    from == to || outline.messages[from..=to].iter().all(|message| message.is_agent_made)
}
