//! What stays raw: the window in messages, and the boundary in the sequence of all observations.

use super::Ground;
use crate::outline::{Outline, Role};
use crate::pairs::Pairs;
use crate::policy::Policy;
use crate::turns::Turns;
use std::collections::VecDeque;

/// The recent part of a history.
pub struct Window {
    /// Its first message.
    pub start: usize,
    /// Observations before this one are older than the window, where no tool has a window of its own.
    pub bound: usize,
    /// One behind the last observation that is older than the window.
    pub older_end: usize,
    /// By tool: the observation from which on its own window begins.
    by_tool: Vec<Option<usize>>,
}

impl Window {
    /// The window of a policy in the first `messages` of a history: what any of its measures keeps.
    pub fn of(outline: &Outline, policy: &Policy, pairs: &Pairs, turns: &Turns, messages: usize) -> Self {
        let results = outline.results_before(messages);
        let mut start = messages;
        if let Some(count) = policy.keep_messages {
            start = start.min(last_messages(outline, count, messages));
        }
        if let Some(count) = policy.keep_turns.filter(|count| *count > 0) {
            let begun = turns.starts.partition_point(|start| (*start as usize) < messages);
            start = start.min(match begun.saturating_sub(count) {
                0 => 0,
                first => turns.starts[first] as usize,
            });
        }
        let mut bound = outline.results_before(start);
        if let Some(count) = policy.keep_results {
            let first = results.saturating_sub(count);
            bound = bound.min(first);
            if count > 0 {
                start = start.min(if first == 0 { 0 } else { outline.results[first].message as usize });
            }
        }
        let mut window = Window { start, bound, older_end: bound, by_tool: vec![] };
        if !policy.keep_by_tool.is_empty() {
            window.by_tool = windows_by_tool(outline, policy, pairs, results);
            let mut older =
                (0..results).rev().skip_while(|result| !window.is_older(*result, pairs.name_of(outline, *result)));
            window.older_end = older.next().map_or(0, |last| last + 1);
        }
        window
    }

    /// Whether an observation is older than the window; `name` is its tool's.
    pub fn is_older(&self, result: usize, name: Option<u32>) -> bool {
        let own = name.and_then(|name| self.by_tool.get(name as usize).copied().flatten());
        result < own.unwrap_or(self.bound)
    }
}

/// Where the last `count` messages before `end` that are no system messages begin.
fn last_messages(outline: &Outline, count: usize, end: usize) -> usize {
    if count == 0 {
        return end;
    }
    let mut others = (0..end).rev().filter(|message| outline.messages[*message].role != Role::System);
    others.nth(count - 1).unwrap_or(0)
}

/// By tool: where the newest N of its own among the first `results` begin; None for tools that go by the measures
/// of all.
fn windows_by_tool(outline: &Outline, policy: &Policy, pairs: &Pairs, results: usize) -> Vec<Option<usize>> {
    // Of each tool: how many of its results are still to be kept, and where its window begins.
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

/// By tool: how many of its newest results stay, where it has a window of its own.
fn counts_by_tool(outline: &Outline, policy: &Policy) -> Vec<Option<usize>> {
    (0..outline.name_count() as u32).map(|name| own_count(policy, outline.name(name))).collect()
}

/// How many of a tool's newest results stay, where it has a window of its own.
fn own_count(policy: &Policy, name: &[u8]) -> Option<usize> {
    policy.keep_by_tool.get(name).map(|count| count.unwrap_or(usize::MAX))
}

/// The same window as a history grows: which observations it leaves. Each is visited once; memory is that of the window.
#[derive(Debug, Default, Clone)]
pub struct Aging {
    /// Messages that have come, and of these the newest ones that are no system messages.
    messages: usize,
    others: VecDeque<u32>,
    /// Results that have come: of each tool with a window of its own those in it, and all others that are not older yet.
    results: usize,
    by_tool: Vec<Option<(usize, VecDeque<u32>)>>,
    rest: VecDeque<u32>,
    /// One behind the last observation that is older.
    pub older_end: usize,
}

impl Aging {
    /// The history has grown to this many messages. Gives the observations that are older now and were not before.
    pub fn grow(&mut self, ground: Ground, messages: usize, mut older: impl FnMut(usize)) {
        let Ground { outline, policy, pairs, .. } = ground;
        if let Some(count) = policy.keep_messages {
            for message in self.messages..messages {
                if outline.messages[message].role != Role::System {
                    self.others.push_back(message as u32);
                    if self.others.len() > count {
                        self.others.pop_front();
                    }
                }
            }
        }
        self.messages = messages;
        if !policy.keep_by_tool.is_empty() {
            for name in self.by_tool.len()..outline.name_count() {
                let count = own_count(policy, outline.name(name as u32));
                self.by_tool.push(count.map(|count| (count, VecDeque::new())));
            }
        }
        let results = outline.results_before(messages);
        for result in self.results..results {
            let name = pairs.name_of(outline, result);
            match name.and_then(|name| self.by_tool.get_mut(name as usize)) {
                // Such a window is never left.
                Some(Some((usize::MAX, _))) => {}
                Some(Some((count, own))) => {
                    own.push_back(result as u32);
                    if own.len() > *count
                        && let Some(result) = own.pop_front()
                    {
                        self.older_end = self.older_end.max(result as usize + 1);
                        older(result as usize);
                    }
                }
                _ => self.rest.push_back(result as u32),
            }
        }
        self.results = results;
        let bound = self.bound(ground);
        while let Some(result) = self.rest.front().map(|result| *result as usize).filter(|result| *result < bound) {
            self.rest.pop_front();
            self.older_end = self.older_end.max(result + 1);
            older(result);
        }
    }

    /// How many messages have come.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// The first observation that may yet become older, if there is one.
    pub fn first_young(&self) -> Option<usize> {
        let own = self.by_tool.iter().flatten().filter_map(|(_, own)| own.front());
        self.rest.front().into_iter().chain(own).min().map(|result| *result as usize)
    }

    /// [`Window::bound`].
    fn bound(&self, ground: Ground) -> usize {
        let bound = ground.outline.results_before(self.start(ground));
        ground.policy.keep_results.map_or(bound, |count| bound.min(self.results.saturating_sub(count)))
    }

    /// Where the windows begin that are measured in messages and turns.
    pub fn start(&self, ground: Ground) -> usize {
        let Ground { policy, turns, .. } = ground;
        let mut start = self.messages;
        if let Some(count) = policy.keep_messages.filter(|count| *count > 0) {
            let is_full = self.others.len() == count;
            start = start.min(self.others.front().filter(|_| is_full).map_or(0, |first| *first as usize));
        }
        if let Some(count) = policy.keep_turns.filter(|count| *count > 0) {
            let begun = turns.starts.partition_point(|start| (*start as usize) < self.messages);
            start = start.min(match begun.saturating_sub(count) {
                0 => 0,
                first => turns.starts[first] as usize,
            });
        }
        start
    }
}
