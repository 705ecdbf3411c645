//! Pairs by place: a result that has no id, or whose call has none, answers an open call of its tool.

use super::{Place, next_unanswered, place_of};
use crate::outline::{Name, Outline, Shape};
use std::collections::{BTreeSet, HashMap};

/// The open calls before a message: those of the run, and then of the messages with results, that directly precede it. Each
/// message is read once, and only when a later result asks.
#[derive(Debug, Default, Clone)]
pub(crate) struct OpenCalls {
    /// The messages before this one were read.
    end: usize,
    /// The first message whose calls are open.
    from: usize,
    /// The start of the run of the last read message.
    run: usize,
    /// Calls by tool, those without an id and those with one, by their places. They may be answered by now.
    calls: HashMap<(Shape, Name), [BTreeSet<Place>; 2]>,
}

impl OpenCalls {
    /// The call that a result answers by its place: an open one of its tool, rather one without an id. Not both have an id. To be asked
    /// for the results of a message in this order: those with the id of a call, others with an id, those without one.
    pub(crate) fn call_of(
        &mut self,
        outline: &Outline,
        result: usize,
        is_answered: impl Fn(usize) -> bool,
    ) -> Option<u32> {
        let result = &outline.results[result];
        let tool = tool_of(outline, result.message, result.name)?;
        self.advance_to(outline, result.message as usize);
        let calls = self.calls.get_mut(&tool)?.each_mut();
        let [without_id, with_id] = calls.map(|calls| next_unanswered(calls, &is_answered));
        without_id.or_else(|| with_id.filter(|_| result.id.is_none()))
    }

    fn advance_to(&mut self, outline: &Outline, end: usize) {
        let mut new = self.end;
        for message in self.end..end {
            let is_agent_made = |message: usize| outline.messages[message].is_agent_made;
            if message == 0 || !is_agent_made(message) || !is_agent_made(message - 1) {
                self.run = message;
            }
            if !outline.holds_results(message) && self.from < self.run {
                self.calls.clear();
                (self.from, new) = (self.run, self.run);
            }
        }
        for call in outline.calls_before(new)..outline.calls_before(end) {
            let facts = &outline.calls[call];
            for tool in tools_of(outline, facts.message, facts.name) {
                let calls = &mut self.calls.entry(tool).or_default()[usize::from(facts.id.is_some())];
                calls.insert(place_of(outline, call));
            }
        }
        self.end = end;
    }
}

/// The keys by which results find a call: its shape and tool, and the shape alone if results may be unnamed.
fn tools_of(outline: &Outline, message: u32, name: Name) -> impl Iterator<Item = (Shape, Name)> {
    let tool = tool_of(outline, message, name);
    let unnamed =
        tool.filter(|(shape, name)| shape.may_name_results() && name.is_some()).map(|(shape, _)| (shape, None));
    tool.into_iter().chain(unnamed)
}

/// The key by which a call and a result pair; None if they pair by their ids only.
fn tool_of(outline: &Outline, message: u32, name: Name) -> Option<(Shape, Name)> {
    let shape = outline.messages[message as usize].shape.family();
    let is_named = shape.names_results();
    let name = name.filter(|_| is_named || shape.may_name_results());
    (name.is_some() || !is_named).then_some((shape, name))
}
