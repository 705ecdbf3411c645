//! What stays raw: the window in messages, and the boundary in the sequence of all observations.

use crate::outline::{Outline, Role};
use crate::pairs::Pairs;
use crate::policy::{Policy, is_pattern, matches};
use crate::turns::Turns;
use std::collections::HashMap;

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
        if let Some(count) = policy.recent_messages {
            start = start.min(last_messages(outline, count, messages));
        }
        if let Some(count) = policy.recent_turns.filter(|count| *count > 0) {
            let begun = turns.starts.partition_point(|start| (*start as usize) < messages);
            start = start.min(match begun.saturating_sub(count) {
                0 => 0,
                first => turns.starts[first] as usize,
            });
        }
        let mut bound = outline.results_before(start);
        if let Some(count) = policy.recent_results {
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

    /// Where observations may be masked up to: all older ones, or rounded down to whole chunks.
    pub fn boundary(&self, policy: &Policy) -> usize {
        policy.mask_chunk.map_or(self.older_end, |chunk| self.older_end / chunk * chunk)
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
    let exact: HashMap<&[u8], Option<usize>> =
        policy.keep_by_tool.iter().map(|(tool, count)| (tool.as_slice(), *count)).collect();
    let patterns: Vec<_> = policy.keep_by_tool.iter().filter(|(tool, _)| is_pattern(tool)).collect();
    let rule = |name: u32| {
        let name = outline.name(name);
        let matching = || patterns.iter().find(|(pattern, _)| matches(pattern, name)).map(|(_, count)| *count);
        exact.get(name).copied().or_else(matching)
    };
    // Of each tool: how many of its results are still to be kept, and where its window begins.
    let mut windows: Vec<Option<(usize, usize)>> = (0..outline.name_count() as u32)
        .map(|name| rule(name).map(|count| (count.unwrap_or(usize::MAX), results)))
        .collect();
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
