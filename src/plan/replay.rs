//! A finished session played again: what each of its requests would have sent under a policy, and how much of that
//! begins as the request before did, which is what a prompt cache serves.
//!
//! A request stands before each run of agent messages, which is its answer. What it sends is the plan of the messages
//! before it; the plans are not made anew each time, since what is masked once stays masked.

use super::{Masked, Planner, Window};
use crate::outline::Outline;
use crate::policy::{Goal, Policy};
use crate::source::Source;
use crate::turns::Turns;

/// A request that a session made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// How many messages came before it.
    pub messages: usize,
    /// Characters of its answer.
    pub answer_chars: usize,
}

/// What a request sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Characters of the view.
    pub chars: usize,
    /// Of these, characters of the messages at its beginning that the view before began with as well.
    pub cached_chars: usize,
    /// Observations that are masked.
    pub masked: usize,
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

/// What each request of a session would have sent. The policy masks or truncates; with any other goal, nothing is
/// done to the views.
#[must_use]
pub fn replay(outline: &Outline, source: &dyn Source, policy: &Policy) -> Vec<Sent> {
    let planner = Planner::of(outline, source, policy, None);
    let requests = planner.turns.starts.clone();
    let requests = requests.into_iter().map(|start| start as usize);
    match policy.goal {
        Goal::Truncate => planner.replay_truncated(requests),
        Goal::Mask => {
            let maskable = planner.masked(outline.results.len(), |_, _| true);
            planner.replay_masked(requests, maskable)
        }
        Goal::Reduce | Goal::Summarize => planner.replay_masked(requests, vec![]),
    }
}

impl Planner<'_> {
    /// The history so far has this many messages.
    fn look_back_from(&mut self, end: usize) {
        self.end = end;
        self.window = Window::of(self.outline, self.policy, &self.pairs, &self.turns, end);
    }

    fn replay_masked(mut self, requests: impl Iterator<Item = usize>, maskable: Vec<Masked>) -> Vec<Sent> {
        let image_chars = self.policy.image_chars;
        let mut chars: Vec<usize> =
            (0..self.outline.messages.len()).map(|message| self.outline.chars_of(message, image_chars)).collect();
        let mut maskable = maskable.into_iter().peekable();
        // Before the boundary, but not masked yet: too few characters are to be won, or a tool has a window of its own.
        let mut waiting: Vec<Masked> = vec![];
        let (mut masked, mut removed, mut view, mut seen) = (0, 0, 0, 0);
        let mut sent = vec![];
        for end in requests {
            self.look_back_from(end);
            let boundary = self.window.boundary(self.policy);
            waiting.extend(core::iter::from_fn(|| maskable.next_if(|next| (next.result as usize) < boundary)));
            let is_older = |masked: &Masked| {
                let result = masked.result as usize;
                self.window.is_older(result, self.pairs.name_of(self.outline, result))
            };
            let gain: usize = waiting.iter().filter(|masked| is_older(masked)).map(|masked| masked.removed).sum();
            let mut changed = seen;
            if removed + gain >= self.policy.min_masked_chars {
                waiting.retain(|next| {
                    if !is_older(next) {
                        return true;
                    }
                    let message = self.outline.results[next.result as usize].message as usize;
                    chars[message] -= next.removed;
                    if message < seen {
                        view -= next.removed;
                        changed = changed.min(message);
                    }
                    masked += 1;
                    false
                });
                removed += gain;
            }
            let cached_chars = view - chars[changed..seen].iter().sum::<usize>();
            view += chars[seen..end].iter().sum::<usize>();
            seen = end;
            sent.push(Sent { chars: view, cached_chars, masked });
        }
        sent
    }

    fn replay_truncated(mut self, requests: impl Iterator<Item = usize>) -> Vec<Sent> {
        let mut before: Vec<bool> = vec![];
        let mut sent = vec![];
        for end in requests {
            self.look_back_from(end);
            let kept = self.truncated();
            let same = before.iter().zip(&kept).take_while(|(before, now)| before == now).count();
            let chars = |messages: &[bool]| {
                let kept = messages.iter().enumerate().filter(|(_, is_kept)| **is_kept);
                kept.map(|(message, _)| self.outline.chars_of(message, self.policy.image_chars)).sum()
            };
            sent.push(Sent { chars: chars(&kept), cached_chars: chars(&kept[..same]), masked: 0 });
            before = kept;
        }
        sent
    }
}
