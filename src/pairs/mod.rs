//! Outline -> pairs and orphans. A result belongs to the nearest earlier call of its id. Where ids are missing, or calls of a turn
//! share one, place and tool decide.

mod call_ids;
mod findings;
mod links;
mod open_calls;
mod refused;
mod repair;
mod shared_ids;

use crate::outline::{Call, Half, ItemType, Name, NameUse, Outline, Shape, ToolKind, ToolResult};
use call_ids::CallIds;
use core::cmp::Reverse;
pub use findings::{FindingKind, findings};
pub(crate) use links::Links;
use open_calls::OpenCalls;
pub(crate) use repair::{MissingId, missing_ids};
pub use repair::{Repair, repairs};
use std::collections::BTreeSet;

const NONE: u32 = u32::MAX;

/// The call of each result, and what else ties messages.
#[derive(Debug, Default, Clone)]
pub struct Pairs {
    call_of: Vec<u32>,
    first_result: Vec<u32>,
    next_result: Vec<u32>,
    /// Calls before this message are closed: they can no longer be answered. Not of a history that grows.
    open_from: usize,
    pub links: Links,
    ids: CallIds,
    open_calls: OpenCalls,
}

impl Pairs {
    /// Pairs calls and results, in document order.
    pub fn of(outline: &Outline) -> Self {
        let mut pairs = Pairs::default();
        pairs.grow(outline);
        pairs.open_from = open_from(outline, outline.messages.len(), |message| outline.holds_results(message));
        pairs
    }

    /// Adds the new messages of an outline.
    pub(crate) fn grow(&mut self, outline: &Outline) {
        let new = self.call_of.len()..outline.results.len();
        self.links.grow(outline, outline.halves.len());
        self.first_result.resize(outline.calls.len(), NONE);
        self.call_of.resize(new.end, NONE);
        self.next_result.resize(new.end, NONE);
        let mut unpaired = vec![];
        for result in new {
            let nearest = self.ids.nearest(outline, result);
            let call = match nearest {
                Some(call) if self.ids.shared.has(call) => {
                    let (tool, first_result) = (outline.results[result].name, &self.first_result);
                    self.ids.shared.call_of(call, tool, |call| first_result[call] != NONE)
                }
                call => call,
            };
            match call {
                Some(call) => self.join(result as u32, call),
                None => unpaired.push((result, nearest)),
            }
            if !unpaired.is_empty() && result + 1 == outline.results_of(outline.results[result].message as usize).end {
                unpaired.sort_by_key(|(result, _)| outline.results[*result].id.is_none());
                self.join_by_place(outline, unpaired.drain(..));
            }
        }
    }

    /// Keeps only the first messages of an outline, which still has all of them.
    pub(crate) fn truncate(&mut self, outline: &Outline, messages: usize) {
        let (calls, results) = (outline.calls_before(messages), outline.results_before(messages));
        self.links.truncate(outline, outline.halves_before(messages));
        for result in (results..self.call_of.len()).rev() {
            if let Some(call) = self.call_of(result) {
                self.unjoin(result as u32, call);
            }
        }
        self.ids.truncate(outline, calls);
        self.open_calls = OpenCalls::default();
        self.first_result.truncate(calls);
        self.call_of.truncate(results);
        self.next_result.truncate(results);
    }

    /// Pairs the other results of a message, once those with the id of a call are. Each has the call that it answers again if it
    /// finds no other.
    fn join_by_place(&mut self, outline: &Outline, results: impl Iterator<Item = (usize, Option<u32>)>) {
        let mut open_calls = core::mem::take(&mut self.open_calls);
        for (result, answered) in results {
            if let Some(call) = open_calls.call_of(outline, result, |call| self.is_answered(call)).or(answered) {
                self.join(result as u32, call);
            }
        }
        self.open_calls = open_calls;
    }

    /// Adds a result to a call.
    fn join(&mut self, result: u32, call: u32) {
        self.call_of[result as usize] = call;
        let first = &mut self.first_result[call as usize];
        if *first == NONE {
            *first = result;
            return;
        }
        let after = &mut self.next_result[*first as usize];
        self.next_result[result as usize] = core::mem::replace(after, result);
    }

    /// Reverts the last [`Pairs::join`] of a call.
    fn unjoin(&mut self, result: u32, call: usize) {
        let first = &mut self.first_result[call];
        if *first == result {
            *first = NONE;
        } else {
            self.next_result[*first as usize] = self.next_result[result as usize];
        }
    }

    /// The call that a result belongs to.
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
    pub fn name_of(&self, outline: &Outline, result: usize) -> Name {
        self.call_of(result).map_or_else(|| own_name(outline, result), |call| outline.calls[call].name)
    }

    /// Whether a call has a result.
    pub fn is_answered(&self, call: usize) -> bool {
        self.first_result[call] != NONE
    }

    /// Whether a call without a result may still get one.
    pub fn is_open(&self, outline: &Outline, call: usize) -> bool {
        outline.calls[call].message as usize >= self.open_from
    }

    /// The halves that the provider refuses without the other one: results, and uses that are not open.
    pub(crate) fn refused_halves<'a>(&'a self, outline: &'a Outline) -> impl Iterator<Item = &'a Half> + 'a {
        self.links.alone(outline).filter(|half| half.is_result || (half.message as usize) < self.open_from)
    }

    /// Messages that have a call without result or a result without call; ascending.
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

    /// Calls without result, excluding open ones, plus results without call.
    pub(crate) fn orphan_count(&self, outline: &Outline) -> usize {
        let open_from = open_from(outline, outline.messages.len(), |message| outline.holds_results(message));
        let calls = (0..outline.calls_before(open_from)).filter(|call| !self.is_answered(*call));
        calls.count() + self.call_of.iter().filter(|call| **call == NONE).count()
    }
}

/// The place of a call among those that results answer by their place: the next one to be answered is the smallest.
type Place = (Reverse<u32>, u32);

/// The place of a call: of the last message the first one, or the first of its turn where each message is one call.
fn place_of(outline: &Outline, call: usize) -> Place {
    let Call { message, .. } = outline.calls[call];
    let is_one_call = outline.messages[message as usize].shape.is_one_call();
    (Reverse(if is_one_call { 0 } else { message }), call as u32)
}

/// The next of these calls to be answered. Those that are answered go.
fn next_unanswered(calls: &mut BTreeSet<Place>, is_answered: impl Fn(usize) -> bool) -> Option<u32> {
    while calls.first().is_some_and(|(_, call)| is_answered(*call as usize)) {
        calls.pop_first();
    }
    calls.first().map(|(_, call)| *call)
}

/// The tool that the facts of a result name.
pub(crate) fn own_name(outline: &Outline, result: usize) -> Name {
    let result = &outline.results[result];
    let shape = outline.messages[result.message as usize].shape;
    result.name.filter(|_| shape.may_name_results() || shape.names_results())
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

/// Whether a result has no id, nor a name in its place, though its call has one.
fn lacks_id(outline: &Outline, pairs: &Pairs, result: usize) -> bool {
    let ToolResult { id, name_use, .. } = outline.results[result];
    id.is_none()
        && name_use == NameUse::BesideId
        && pairs.call_of(result).is_some_and(|call| outline.calls[call].id.is_some())
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
