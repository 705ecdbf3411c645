//! Outline -> pairs and orphans. A result belongs to the nearest earlier call of its id; without such a call, to an open one.

mod findings;
mod growing;
mod links;
mod open_calls;
mod refused;
mod repair;

use crate::outline::{Call, Half, ItemType, Name, Outline, Shape, ToolKind};
use crate::text::same;
pub use findings::{FindingKind, findings};
pub(crate) use growing::GrowingPairs;
pub(crate) use links::Links;
use open_calls::OpenCalls;
pub use repair::{Repair, repairs};
use std::collections::HashMap;

const NONE: u32 = u32::MAX;

/// The call of each result, and what else ties messages.
#[derive(Debug, Default, Clone)]
pub struct Pairs {
    call_of: Vec<u32>,
    first_result: Vec<u32>,
    next_result: Vec<u32>,
    /// Calls before this message are closed: they can no longer be answered.
    open_from: usize,
    pub links: Links,
}

impl Pairs {
    /// Pairs calls and results, in document order.
    #[must_use]
    pub fn of(outline: &Outline) -> Self {
        let mut pairs = Pairs {
            call_of: vec![NONE; outline.results.len()],
            first_result: vec![NONE; outline.calls.len()],
            next_result: vec![NONE; outline.results.len()],
            open_from: open_from(outline, outline.messages.len(), |message| outline.holds_results(message)),
            links: Links::default(),
        };
        pairs.links.grow(outline, outline.halves.len());
        let mut calls = Calls { outline, seen: 0, indexed: 0, table: HashMap::new() };
        let (mut open_calls, mut unpaired) = (OpenCalls::default(), vec![]);
        for result in 0..outline.results.len() {
            calls.advance_to(result);
            match calls.nearest(result) {
                Some(call) => drop(pairs.join(result as u32, call)),
                None => unpaired.push(result),
            }
            if !unpaired.is_empty() && result + 1 == outline.results_of(outline.results[result].message as usize).end {
                pairs.join_by_place(outline, &mut open_calls, unpaired.drain(..));
            }
        }
        pairs
    }

    /// Pairs the other results of a message, once those with the id of a call are. Returns how many it could.
    fn join_by_place(
        &mut self,
        outline: &Outline,
        open_calls: &mut OpenCalls,
        results: impl Iterator<Item = usize>,
    ) -> usize {
        let join = |result| {
            let call = open_calls.call_of(outline, result, |call| self.is_answered(call))?;
            Some(self.join(result as u32, call))
        };
        results.filter_map(join).count()
    }

    /// Adds a result to a call. Returns whether it is its first one.
    fn join(&mut self, result: u32, call: u32) -> bool {
        self.call_of[result as usize] = call;
        let first = &mut self.first_result[call as usize];
        if *first == NONE {
            *first = result;
            return true;
        }
        let after = &mut self.next_result[*first as usize];
        let second = core::mem::replace(after, result);
        self.next_result[result as usize] = second;
        false
    }

    /// Reverts the last [`Pairs::join`] of a call. Returns whether that was its first result.
    fn unjoin(&mut self, result: u32, call: usize) -> bool {
        let first = &mut self.first_result[call];
        if *first == result {
            *first = NONE;
            return true;
        }
        self.next_result[*first as usize] = self.next_result[result as usize];
        false
    }

    /// The call that a result belongs to.
    #[must_use]
    pub fn call_of(&self, result: usize) -> Option<usize> {
        let call = self.call_of[result];
        (call != NONE).then_some(call as usize)
    }

    /// The results of a call, its first one first.
    pub fn results_of(&self, call: usize) -> impl Iterator<Item = usize> + '_ {
        let mut next = self.first_result[call];
        core::iter::from_fn(move || {
            let result = (next != NONE).then_some(next as usize)?;
            next = self.next_result[result];
            Some(result)
        })
    }

    /// The tool of a result, if known.
    #[inline]
    #[must_use]
    pub fn name_of(&self, outline: &Outline, result: usize) -> Name {
        self.call_of(result).map_or_else(|| own_name(outline, result), |call| outline.calls[call].name)
    }

    /// Whether a call has a result.
    #[must_use]
    pub fn is_answered(&self, call: usize) -> bool {
        self.first_result[call] != NONE
    }

    /// Whether a call without a result may still get one.
    #[must_use]
    pub fn is_open(&self, outline: &Outline, call: usize) -> bool {
        outline.calls[call].message as usize >= self.open_from
    }

    /// The halves that the provider refuses without the other one: results, and uses that are not open.
    pub(crate) fn refused_halves<'a>(&'a self, outline: &'a Outline) -> impl Iterator<Item = &'a Half> + 'a {
        self.links.alone(outline).filter(|half| half.is_result || (half.message as usize) < self.open_from)
    }

    /// Messages that have a call without result or a result without call; ascending.
    #[must_use]
    pub fn orphans(&self, outline: &Outline) -> Vec<usize> {
        let calls = (0..outline.calls.len())
            .filter(|call| !self.is_answered(*call) && !self.is_open(outline, *call))
            .map(|call| outline.calls[call].message as usize);
        let results = (0..outline.results.len())
            .filter(|result| self.call_of[*result] == NONE)
            .map(|result| outline.results[result].message as usize);
        let mut orphans: Vec<usize> = calls.chain(results).collect();
        orphans.sort_unstable();
        orphans.dedup();
        orphans
    }
}

/// The tool that the facts of a result name.
pub(crate) fn own_name(outline: &Outline, result: usize) -> Name {
    let result = &outline.results[result];
    result.name.filter(|_| outline.messages[result.message as usize].shape.may_name_results())
}

/// Whether a call can be named by an answer: by its id, or by its name where that takes the place of ids.
fn can_be_named(outline: &Outline, call: usize) -> bool {
    let Call { id, name, .. } = outline.calls[call];
    id.is_some() || (name.is_some() && shape_of(outline, call).takes_names_for_ids())
}

/// Whether a call can be answered. No screenshot can be made up.
fn can_be_answered(outline: &Outline, call: usize) -> bool {
    let item = outline.messages[outline.calls[call].message as usize].item;
    can_be_named(outline, call) && item != ItemType::Call(ToolKind::Computer)
}

fn shape_of(outline: &Outline, call: usize) -> Shape {
    outline.messages[outline.calls[call].message as usize].shape
}

/// A call is open when only messages of its own run, and then messages that answer, come after it: of the first messages.
pub(crate) fn open_from(outline: &Outline, end: usize, answers: impl Fn(usize) -> bool) -> usize {
    let Some(last) = (0..end).rev().find(|message| !answers(*message)) else {
        return 0;
    };
    let run = outline.messages[..=last].iter().rev().take_while(|message| message.is_agent_made).count();
    last + 1 - run.max(1)
}

/// Finds the nearest earlier call of an id: by linear search among the last few, since results closely follow their calls,
/// then in a table that is built lazily.
struct Calls<'a> {
    outline: &'a Outline,
    seen: usize,
    indexed: usize,
    table: HashMap<&'a [u8], u32>,
}

const LINEAR_SEARCH_CALLS: usize = 16;

impl<'a> Calls<'a> {
    /// Advances over the calls that precede a result.
    fn advance_to(&mut self, result: usize) {
        let result = &self.outline.results[result];
        while let Some(call) = self.outline.calls.get(self.seen) {
            if (call.message, call.block) >= (result.message, result.block) {
                break;
            }
            self.seen += 1;
        }
    }

    fn nearest(&mut self, result: usize) -> Option<u32> {
        let id = self.outline.text(self.outline.results[result].id?);
        let outline = self.outline;
        let text = |call: usize| -> Option<&'a [u8]> { Some(outline.text(outline.calls[call].id?)) };
        let near = self.seen.saturating_sub(LINEAR_SEARCH_CALLS);
        if let Some(call) = (near..self.seen).rev().find(|call| text(*call).is_some_and(|of_call| same(of_call, id))) {
            return Some(call as u32);
        }
        for call in self.indexed..self.seen {
            if let Some(id) = text(call) {
                self.table.insert(id, call as u32);
            }
        }
        self.indexed = self.seen;
        self.table.get(id).copied()
    }
}
