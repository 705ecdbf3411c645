//! The nearest earlier call of an id: by linear search among the last few, since results closely follow their calls, then in a
//! table that is built lazily.

use crate::outline::{Outline, ToolResult};
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
}

impl CallIds {
    /// The call of a result's id. To be asked for the results in order.
    pub(crate) fn nearest(&mut self, outline: &Outline, result: usize) -> Option<u32> {
        let ToolResult { message, block, id, .. } = outline.results[result];
        while outline.calls.get(self.seen).is_some_and(|call| (call.message, call.block) < (message, block)) {
            self.seen += 1;
        }
        let id = outline.text(id?);
        let near = self.seen.saturating_sub(LINEAR_SEARCH_CALLS);
        let is_it = |call: &usize| outline.calls[*call].id.is_some_and(|of_call| same(outline.text(of_call), id));
        let found = (near..self.seen).rev().find(is_it).or_else(|| {
            for call in self.indexed..near {
                if let Some(id) = outline.calls[call].id {
                    self.newest.insert(self.hashes.hash_one(outline.text(id)), call as u32);
                }
            }
            self.indexed = self.indexed.max(near);
            let newest = *self.newest.get(&self.hashes.hash_one(id))? as usize;
            // Else another id has the same hash.
            if is_it(&newest) { Some(newest) } else { (0..near).rev().find(is_it) }
        });
        found.map(|call| call as u32)
    }

    /// Keeps only the first calls.
    pub(crate) fn truncate(&mut self, calls: usize) {
        self.seen = self.seen.min(calls);
        if self.indexed > calls {
            self.newest.clear();
            self.indexed = 0;
        }
    }
}
