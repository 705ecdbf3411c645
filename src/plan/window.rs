//! The window: which messages and observations stay raw.

use super::context::PlanContext;
use super::stay::Stay;
use super::units::message_of;
use crate::outline::{Outline, Role};
use crate::policy::{EVERYTHING, Policy};
use core::ops::Range;
use std::collections::VecDeque;

/// The window of a growing history, and the observations that leave it. Each is visited once, and the newest messages again where the
/// window is measured in these; memory is O(window).
#[derive(Debug, Default, Clone)]
pub(super) struct Window {
    messages: usize,
    /// The number of results; those in each tool's own window, and the rest in the window.
    results: usize,
    by_tool: Vec<Option<(usize, VecDeque<u32>)>>,
    rest: VecDeque<u32>,
    /// The results that a request has shown; and those that left their tool's window before that.
    shown: usize,
    unseen: Vec<u32>,
    /// Those that left the window when it grew last.
    pub(super) left: Vec<u32>,
    /// The number of observations that are older.
    pub(super) older_end: usize,
}

impl Window {
    /// Adds messages up to this number.
    pub(super) fn grow(&mut self, context: PlanContext, messages: usize) {
        let PlanContext { outline, policy, pairs, .. } = context;
        self.left.clear();
        if let Some(shown) = shown(outline, policy, self.messages..messages) {
            self.shown = shown;
            self.left.append(&mut self.unseen);
        }
        self.messages = messages;
        if !policy.keep.by_tool.is_empty() {
            for name in self.by_tool.len()..outline.name_count() {
                let count = policy.keep.by_tool.get(outline.name(name as u32));
                self.by_tool.push(count.map(|count| (count.unwrap_or(usize::MAX), VecDeque::new())));
            }
        }
        let results = outline.results_before(messages);
        for result in self.results..results {
            let name = if self.by_tool.is_empty() { None } else { pairs.name_of(outline, result) };
            match name.and_then(|name| self.by_tool.get_mut(name as usize)) {
                Some(Some((count, own))) => {
                    own.push_back(result as u32);
                    if own.len() > *count
                        && let Some(result) = own.pop_front()
                    {
                        let is_shown = (result as usize) < self.shown;
                        if is_shown { &mut self.left } else { &mut self.unseen }.push(result);
                    }
                }
                _ => self.rest.push_back(result as u32),
            }
        }
        self.results = results;
        let bound = bound(context, messages, self.shown);
        while let Some(result) = self.rest.front().filter(|result| (**result as usize) < bound) {
            self.left.push(*result);
            self.rest.pop_front();
        }
        let last = self.left.iter().max().map_or(0, |last| *last as usize + 1);
        self.older_end = self.older_end.max(last);
    }

    /// Why an observation has not left its window.
    pub(super) fn stay(&self, result: u32) -> Option<Stay> {
        let has = |window: &VecDeque<u32>| window.binary_search(&result).is_ok();
        let is_unseen = result as usize >= self.shown.min(self.results);
        let is_recent = || has(&self.rest) || self.by_tool.iter().flatten().any(|(_, own)| has(own));
        if is_unseen { Some(Stay::Unseen) } else { is_recent().then_some(Stay::Window) }
    }

    /// The first observation in the window of all tools that have no own one; none where a replay masks nothing.
    pub(super) fn first(&self, policy: &Policy) -> Option<u32> {
        self.rest.front().copied().filter(|_| policy.keep.results < EVERYTHING)
    }

    /// The observations in the windows of single tools that end.
    pub(super) fn of_tools(&self) -> impl Iterator<Item = u32> + '_ {
        let windows = self.by_tool.iter().flatten().filter(|(count, _)| *count < usize::MAX);
        windows.flat_map(|(_, own)| own.iter().copied())
    }

    /// Whether no request has shown an observation.
    pub(super) fn is_unseen(&self, result: usize) -> bool {
        result >= self.shown
    }

    /// The observations in a window that a request has shown, oldest first.
    pub(super) fn recent(&self) -> Vec<u32> {
        let own = self.by_tool.iter().flatten().flat_map(|(_, own)| own);
        let shown = |result: &u32| (*result as usize) < self.shown;
        let mut recent: Vec<u32> = self.rest.iter().chain(own).copied().filter(shown).collect();
        recent.sort_unstable();
        recent
    }

    /// The first message of the window, and of what no request has shown.
    pub(super) fn start(&self, context: PlanContext) -> usize {
        let (keep, start) = (context.policy.keep.results, measured_start(context, self.messages));
        match bound(context, self.messages, self.shown) {
            _ if keep > 0 && self.results <= keep => 0,
            first if first < self.results => start.min(message_of(context.outline, first as u32)),
            _ => start,
        }
    }
}

/// How many observations are older than the window after this many messages.
pub(crate) fn older_end(context: PlanContext, messages: usize) -> usize {
    let PlanContext { outline, policy, .. } = context;
    if policy.keep.by_tool.is_empty() {
        return bound(context, messages, shown(outline, policy, 0..messages).unwrap_or(0));
    }
    let mut window = Window::default();
    window.grow(context, messages);
    window.older_end
}

/// The first observation that stays in these messages, whatever its tool, where requests have shown this many: by the union of the
/// measures of the window.
fn bound(context: PlanContext, messages: usize, shown: usize) -> usize {
    let PlanContext { outline, policy, .. } = context;
    let newest = outline.results_before(messages).saturating_sub(policy.keep.results);
    outline.results_before(measured_start(context, messages)).min(shown).min(newest)
}

/// The start of the windows of these messages that are measured in messages and turns.
fn measured_start(context: PlanContext, messages: usize) -> usize {
    let PlanContext { outline, policy, turns, .. } = context;
    let of_turns = policy.keep.turns.filter(|count| *count > 0).map(|count| {
        let begun = turns.starts.partition_point(|start| (*start as usize) < messages);
        begun.checked_sub(count).filter(|first| *first > 0).map_or(0, |first| turns.starts[first] as usize)
    });
    let of_messages = policy.keep.messages.map(|count| last_messages(outline, count, messages));
    of_turns.into_iter().chain(of_messages).fold(messages, usize::min)
}

/// The last message of these that the agent made.
pub(super) fn last_answer(outline: &Outline, mut messages: Range<usize>) -> Option<usize> {
    messages.rfind(|message| outline.messages[*message].is_agent_made)
}

/// How many results the model saw before the last of its answers among these messages, or counts as seen; None if there is no answer.
fn shown(outline: &Outline, policy: &Policy, messages: Range<usize>) -> Option<usize> {
    let last = last_answer(outline, messages).map(|last| outline.results_before(last + 1));
    if policy.keep.nothing_unseen { Some(usize::MAX) } else { last }
}

/// The start of the last `count` messages before `end`, not counting system messages.
fn last_messages(outline: &Outline, count: usize, end: usize) -> usize {
    if count == 0 {
        return end;
    }
    let mut non_system = (0..end).rev().filter(|message| outline.messages[*message].role != Role::System);
    non_system.nth(count - 1).unwrap_or(0)
}
