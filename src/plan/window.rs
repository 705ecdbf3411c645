//! The window: which messages and observations stay raw.

use super::context::PlanContext;
use crate::outline::{Name, Outline, Role};
use crate::pairs::Pairs;
use crate::policy::Policy;
use crate::turns::Turns;
use core::ops::Range;
use std::collections::VecDeque;

/// The recent part of a history.
pub(crate) struct Window {
    pub start: usize,
    /// Observations before this one are older than the window, except for tools with their own window.
    pub bound: usize,
    /// The number of observations that are older than the window.
    pub older_end: usize,
    /// The first observation that no request has shown: it and all after it stay, whatever the window.
    unseen: usize,
    /// The first observation of a tool's own window, by tool.
    by_tool: Vec<Option<usize>>,
}

impl Window {
    /// The window of a policy in the first `messages` of a history: the union of its measures.
    pub(crate) fn of(outline: &Outline, policy: &Policy, pairs: &Pairs, turns: &Turns, messages: usize) -> Self {
        let results = outline.results_before(messages);
        let mut start = messages;
        if let Some(count) = policy.keep.messages {
            start = start.min(last_messages(outline, count, messages));
        }
        if let Some(count) = policy.keep.turns.filter(|count| *count > 0) {
            let begun = turns.starts.partition_point(|start| (*start as usize) < messages);
            start = start.min(match begun.saturating_sub(count) {
                0 => 0,
                first => turns.starts[first] as usize,
            });
        }
        let mut bound = outline.results_before(start);
        let first = results.saturating_sub(policy.keep.results);
        bound = bound.min(first);
        if policy.keep.results > 0 {
            start = start.min(if first == 0 { 0 } else { outline.results[first].message as usize });
        }
        let unseen = if policy.keep.nothing_unseen { results } else { shown(outline, 0..messages).unwrap_or(0) };
        if unseen < results {
            start = start.min(outline.results[unseen].message as usize);
        }
        bound = bound.min(unseen);
        let mut window = Window { start, bound, older_end: bound, unseen, by_tool: vec![] };
        if !policy.keep.by_tool.is_empty() {
            window.by_tool = windows_by_tool(outline, policy, pairs, results);
            let mut older =
                (0..results).rev().skip_while(|result| !window.is_older(*result, || pairs.name_of(outline, *result)));
            window.older_end = older.next().map_or(0, |last| last + 1);
        }
        window
    }

    /// Whether an observation is older than the window; `name` is its tool's.
    pub(crate) fn is_older(&self, result: usize, name: impl FnOnce() -> Name) -> bool {
        let of_tool = |name: u32| self.by_tool.get(name as usize).copied().flatten();
        let own = if self.by_tool.is_empty() { None } else { name().and_then(of_tool) };
        result < own.unwrap_or(self.bound).min(self.unseen)
    }

    /// Whether no request has shown an observation.
    pub(crate) fn is_unseen(&self, result: usize) -> bool {
        result >= self.unseen
    }
}

/// The last message of these that the agent made.
pub(super) fn last_answer(outline: &Outline, mut messages: Range<usize>) -> Option<usize> {
    messages.rfind(|message| outline.messages[*message].is_agent_made)
}

/// How many results the model saw before the last of its answers among these messages; None if there is no answer.
fn shown(outline: &Outline, messages: Range<usize>) -> Option<usize> {
    last_answer(outline, messages).map(|last| outline.results_before(last + 1))
}

/// The start of the last `count` messages before `end`, not counting system messages.
fn last_messages(outline: &Outline, count: usize, end: usize) -> usize {
    if count == 0 {
        return end;
    }
    let mut non_system = (0..end).rev().filter(|message| outline.messages[*message].role != Role::System);
    non_system.nth(count - 1).unwrap_or(0)
}

/// The start of a tool's own window among the first `results`, by tool; None for tools without one.
fn windows_by_tool(outline: &Outline, policy: &Policy, pairs: &Pairs, results: usize) -> Vec<Option<usize>> {
    // By tool: how many more results to keep, and the start of the window so far.
    let mut windows: Vec<Option<(usize, usize)>> =
        counts_by_tool(outline, policy).into_iter().map(|count| count.map(|count| (count, results))).collect();
    for result in (0..results).rev() {
        let name = pairs.name_of(outline, result);
        if let Some(Some((left, start))) = name.map(|name| &mut windows[name as usize])
            && *left > 0
        {
            *left -= 1;
            *start = result;
        }
    }
    windows.into_iter().map(|window| window.map(|(_, start)| start)).collect()
}

/// The size of a tool's own window, if it has one.
fn counts_by_tool(outline: &Outline, policy: &Policy) -> Vec<Option<usize>> {
    (0..outline.name_count() as u32).map(|name| own_count(policy, outline.name(name))).collect()
}

/// The size of a tool's own window, if it has one.
fn own_count(policy: &Policy, name: &[u8]) -> Option<usize> {
    policy.keep.by_tool.get(name).map(|count| count.unwrap_or(usize::MAX))
}

/// The window of a growing history, and the observations that leave it. Each is visited once; memory is O(window).
#[derive(Debug, Default, Clone)]
pub(crate) struct Aging {
    /// The number of messages, and the newest ones that are no system messages.
    messages: usize,
    non_system: VecDeque<u32>,
    /// The number of results; those in each tool's own window, and the rest in the window.
    results: usize,
    by_tool: Vec<Option<(usize, VecDeque<u32>)>>,
    rest: VecDeque<u32>,
    /// The results that a request has shown; and those that left their tool's window before that.
    shown: usize,
    unseen: Vec<u32>,
    /// The number of observations that are older.
    pub older_end: usize,
}

impl Aging {
    /// Adds messages up to this number. Returns the observations that leave the window.
    pub(crate) fn grow(&mut self, context: PlanContext, messages: usize) -> Vec<u32> {
        let PlanContext { outline, policy, pairs, .. } = context;
        if let Some(count) = policy.keep.messages {
            for message in self.messages..messages {
                if outline.messages[message].role != Role::System {
                    self.non_system.push_back(message as u32);
                    if self.non_system.len() > count {
                        self.non_system.pop_front();
                    }
                }
            }
        }
        let mut leaving = vec![];
        if policy.keep.nothing_unseen {
            self.shown = usize::MAX;
        } else if let Some(shown) = shown(outline, self.messages..messages) {
            self.shown = shown;
            leaving.append(&mut self.unseen);
        }
        self.messages = messages;
        if !policy.keep.by_tool.is_empty() {
            for name in self.by_tool.len()..outline.name_count() {
                let count = own_count(policy, outline.name(name as u32));
                self.by_tool.push(count.map(|count| (count, VecDeque::new())));
            }
        }
        let results = outline.results_before(messages);
        for result in self.results..results {
            let name = pairs.name_of(outline, result);
            match name.and_then(|name| self.by_tool.get_mut(name as usize)) {
                // Nothing leaves an unlimited window, but a forced move reaches into it.
                Some(Some((usize::MAX, own))) => {
                    if policy.limit.is_kept {
                        own.push_back(result as u32);
                    }
                }
                Some(Some((count, own))) => {
                    own.push_back(result as u32);
                    if own.len() > *count
                        && let Some(result) = own.pop_front()
                    {
                        let is_shown = (result as usize) < self.shown;
                        if is_shown { &mut leaving } else { &mut self.unseen }.push(result);
                    }
                }
                _ => self.rest.push_back(result as u32),
            }
        }
        self.results = results;
        let bound = self.bound(context);
        while let Some(result) = self.rest.front().filter(|result| (**result as usize) < bound) {
            leaving.push(*result);
            self.rest.pop_front();
        }
        for result in &leaving {
            self.older_end = self.older_end.max(*result as usize + 1);
        }
        leaving
    }

    /// Whether an observation is in a window, or no request has shown it.
    pub(crate) fn keeps(&self, result: u32) -> bool {
        let mut own = self.by_tool.iter().flatten();
        let is_new = result as usize >= self.results;
        is_new
            || self.rest.contains(&result)
            || self.unseen.contains(&result)
            || own.any(|(_, own)| own.contains(&result))
    }

    /// The observations in a window that a request has shown, oldest first.
    pub(crate) fn recent(&self) -> Vec<u32> {
        let own = self.by_tool.iter().flatten().flat_map(|(_, own)| own);
        let shown = |result: &u32| (*result as usize) < self.shown;
        let mut recent: Vec<u32> = self.rest.iter().chain(own).copied().filter(shown).collect();
        recent.sort_unstable();
        recent
    }

    /// [`Window::bound`].
    fn bound(&self, context: PlanContext) -> usize {
        let bound = context.outline.results_before(self.start(context)).min(self.shown);
        bound.min(self.results.saturating_sub(context.policy.keep.results))
    }

    /// The start of the windows that are measured in messages and turns, and of what no request has shown.
    pub(crate) fn start(&self, context: PlanContext) -> usize {
        let PlanContext { outline, policy, turns, .. } = context;
        let mut start = self.messages;
        if self.shown < self.results {
            start = outline.results[self.shown].message as usize;
        }
        if let Some(count) = policy.keep.messages.filter(|count| *count > 0) {
            let is_full = self.non_system.len() == count;
            start = start.min(self.non_system.front().filter(|_| is_full).map_or(0, |first| *first as usize));
        }
        if let Some(count) = policy.keep.turns.filter(|count| *count > 0) {
            let begun = turns.starts.partition_point(|start| (*start as usize) < self.messages);
            start = start.min(match begun.saturating_sub(count) {
                0 => 0,
                first => turns.starts[first] as usize,
            });
        }
        start
    }
}
