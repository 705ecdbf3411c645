//! Replay of a finished session: what each of its requests would have sent under a policy, and how much of that is a prefix
//! shared with the previous request, which a prompt cache serves.
//!
//! There is a request before each run of agent messages, its answer. It sends the plan of the messages before it. Plans are
//! computed incrementally, since observations are never unmasked.

use super::arrival::arrived;
use super::cache::{CachePlace, Sent};
use super::fold::Fold;
use super::outcome::Masked;
use super::planner::Planner;
use super::units::blocks_of;
use super::units::first_changed;
use super::window::Window;
use crate::outline::Outline;
use crate::policy::{Goal, Policy};
use crate::source::Source;
use crate::stop::check;
use crate::turns::Turns;

/// A request that a session made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Messages before it.
    pub messages: usize,
    /// Characters of its answer.
    pub answer_chars: usize,
}

/// A session under a policy.
#[derive(Debug, Default)]
pub struct Replayed {
    /// The requests.
    pub sent: Vec<Sent>,
    /// The first request whose view does not have a result raw, by result; [`NEVER`] if all have.
    pub hidden_from: Vec<u32>,
    /// Summaries whose texts are known, each with the first request that has it.
    pub summaries: Vec<(u32, Vec<u8>)>,
}

/// No request hides a result.
pub const NEVER: u32 = u32::MAX;

impl Replayed {
    pub(super) fn of(outline: &Outline) -> Self {
        Replayed { hidden_from: vec![NEVER; outline.results.len()], ..Replayed::default() }
    }

    pub(super) fn last_summary(&self) -> Option<&Vec<u8>> {
        self.summaries.last().map(|(_, text)| text)
    }

    /// Adds a request whose view hides these results.
    pub(super) fn push(&mut self, sent: Sent, hidden: impl IntoIterator<Item = usize>) {
        let request = self.sent.len() as u32;
        for result in hidden {
            self.hidden_from[result] = self.hidden_from[result].min(request);
        }
        self.sent.push(sent);
    }
}

/// The requests of a session.
#[must_use]
pub fn requests(outline: &Outline, image_chars: usize) -> Vec<Request> {
    let turns = Turns::of(outline);
    let answer = |start: u32, end: u32| {
        let answer_chars = (start as usize..end as usize).map(|message| outline.chars_of(message, image_chars)).sum();
        Request { messages: start as usize, answer_chars }
    };
    turns.starts.iter().zip(&turns.ends).map(|(start, end)| answer(*start, *end)).collect()
}

/// Replays the requests of a session under a policy that masks or truncates; other goals leave views unchanged.
#[must_use]
pub fn replay(outline: &Outline, source: &dyn Source, policy: &Policy) -> Replayed {
    let outline = &*arrived(outline, source, policy);
    let planner = Planner::of(outline, source, policy, None);
    let requests: Vec<usize> = planner.turns.starts.iter().map(|start| *start as usize).collect();
    let mut replayed = planner.replay(&requests);
    for (result, _) in &outline.cuts {
        let message = outline.results[*result as usize].message as usize;
        let first = requests.partition_point(|end| *end <= message) as u32;
        let hidden = &mut replayed.hidden_from[*result as usize];
        *hidden = if (first as usize) < requests.len() { first.min(*hidden) } else { *hidden };
    }
    replayed
}

/// Prefix sums of what each message has: before each, and of all.
pub(super) fn sums_before(counts: impl Iterator<Item = usize>) -> Vec<usize> {
    let sums = counts.scan(0usize, |sum, count| {
        *sum = sum.saturating_add(count);
        Some(*sum)
    });
    core::iter::once(0).chain(sums).collect()
}

impl Planner<'_> {
    fn replay(self, requests: &[usize]) -> Replayed {
        match (self.policy.goal, self.policy.summaries) {
            (Goal::Truncate, _) => self.replay_truncated(requests),
            (_, Some(rules)) => self.replay_summarized(requests, rules),
            _ => self.replay_masked(requests),
        }
    }

    fn replay_masked(&self, requests: &[usize]) -> Replayed {
        let mut fold = Fold::default();
        let blocks = sums_before((0..self.end).map(|message| blocks_of(self.outline, message)));
        let mut before = 0;
        let mut replayed = Replayed::of(self.outline);
        for end in requests {
            check();
            let moved = fold.request(self.context(), *end, false);
            let sent = self.sent(&fold, &blocks, &moved, before, *end);
            replayed.push(sent, moved.iter().map(|one| one.result as usize));
            before = *end;
        }
        replayed
    }

    /// A request of a session that only masks, and has just masked these.
    pub(super) fn sent(&self, fold: &Fold, blocks: &[usize], moved: &[Masked], before: usize, end: usize) -> Sent {
        let changed = first_changed(self.outline, moved).min(before);
        let same_chars = fold.chars_before(changed);
        let within = moved.first().filter(|_| changed < before);
        Sent {
            view: CachePlace { chars: fold.chars_before(end), blocks: blocks[end] },
            same_chars,
            same_blocks: within.map_or(blocks[changed], |first| self.block_end(first.result as usize, blocks) - 1),
            earlier: CachePlace { chars: fold.chars_before(before), blocks: blocks[before] },
            boundary: self.boundary(fold, blocks),
            masked: fold.masked.len(),
            ..Sent::default()
        }
    }

    /// The end of the last masked result.
    fn boundary(&self, fold: &Fold, blocks: &[usize]) -> CachePlace {
        let Some(last) = fold.masked.last() else { return CachePlace::default() };
        let message = self.outline.results[last.result as usize].message as usize;
        self.end_of(last.result as usize, fold.chars_before(message + 1), blocks)
    }

    /// The end of a result in a view with this many characters up to the end of its message, where later results are not masked.
    pub(super) fn end_of(&self, result: usize, message_end: usize, blocks: &[usize]) -> CachePlace {
        CachePlace { chars: message_end - self.later_chars(result), blocks: self.block_end(result, blocks) }
    }

    /// Content blocks of a view up to a result.
    fn block_end(&self, result: usize, blocks: &[usize]) -> usize {
        let (message, block) =
            (self.outline.results[result].message as usize, self.outline.results[result].block as usize);
        (blocks[message] + block + 1).min(blocks[message + 1])
    }

    fn later_chars(&self, result: usize) -> usize {
        self.outline.later_chars(result, self.policy.image_chars)
    }

    /// Sets the number of messages.
    fn set_end(&mut self, end: usize) {
        self.end = end;
        self.window = Window::of(self.outline, self.policy, &self.pairs, &self.turns, end);
    }

    fn replay_truncated(mut self, requests: &[usize]) -> Replayed {
        let mut before: Vec<bool> = vec![];
        let mut replayed = Replayed::of(self.outline);
        for end in requests.iter().copied() {
            check();
            self.set_end(end);
            let kept = self.truncated();
            let same = before.iter().zip(&kept).take_while(|(before, now)| before == now).count();
            let place = |messages: &[bool]| {
                let kept = messages.iter().enumerate().filter(|(_, is_kept)| **is_kept);
                kept.fold(CachePlace::default(), |place, (message, _)| CachePlace {
                    chars: place.chars + self.outline.chars_of(message, self.policy.image_chars),
                    blocks: place.blocks + blocks_of(self.outline, message),
                })
            };
            let same = place(&kept[..same]);
            let (view, earlier) = (place(&kept), place(&kept[..before.len()]));
            let dropped = (0..kept.len()).filter(|message| !kept[*message]);
            let sent = Sent { view, same_chars: same.chars, same_blocks: same.blocks, earlier, ..Sent::default() };
            replayed.push(sent, dropped.flat_map(|message| self.outline.results_of(message)));
            before = kept;
        }
        replayed
    }
}
