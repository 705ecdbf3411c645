//! Calls of one turn that share an id: it does not distinguish them, so their results pair by place and tool.

use super::{Place, next_unanswered, place_of};
use crate::outline::{Name, Outline};
use std::collections::{BTreeSet, HashMap};

/// The calls that share their id with another one of their turn.
#[derive(Debug, Default, Clone)]
pub(super) struct SharedIds {
    /// For each of them, the first one.
    first: HashMap<u32, u32>,
    /// By the first one and the tool, and for any tool: the calls by their places. They may be answered by now.
    calls: HashMap<(u32, Name), BTreeSet<Place>>,
}

impl SharedIds {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    pub(super) fn has(&self, call: u32) -> bool {
        self.first.contains_key(&call)
    }

    /// Adds a call, which shares its id with an earlier one.
    pub(super) fn add(&mut self, outline: &Outline, earlier: usize, call: usize) {
        let first = *self.first.get(&(earlier as u32)).unwrap_or(&(earlier as u32));
        for call in [earlier, call] {
            if self.first.insert(call as u32, first).is_none() {
                for tool in [None, outline.calls[call].name] {
                    self.calls.entry((first, tool)).or_default().insert(place_of(outline, call));
                }
            }
        }
    }

    /// Returns the call that a result answers, of those that share an id with this one: the next of its tool, or of any.
    pub(super) fn call_of(&mut self, call: u32, tool: Name, is_answered: impl Fn(usize) -> bool) -> Option<u32> {
        let first = *self.first.get(&call)?;
        let mut tools = [tool, None].into_iter();
        tools.find_map(|tool| next_unanswered(self.calls.get_mut(&(first, tool))?, &is_answered))
    }
}
