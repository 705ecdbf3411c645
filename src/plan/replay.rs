//! A finished session played again: what each of its requests would have sent under a policy, and how much of that
//! begins as the request before did, which is what a prompt cache serves.
//!
//! A request stands before each run of agent messages, which is its answer. What it sends is the plan of the messages
//! before it; the plans are not made anew each time, since what is masked once stays masked.

use super::boundary::{Fold, first_changed};
use super::{Planner, Window};
use crate::outline::Outline;
use crate::policy::{Boundary, Goal, Policy};
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Characters of the view.
    pub chars: usize,
    /// Of these, characters of the messages at its beginning that the view before began with as well.
    pub cached_chars: usize,
    /// Observations that are masked.
    pub masked: usize,
    /// How many turns it shows as a summary.
    pub summarized: usize,
    /// Characters that a model was given for a summary before this request, and that it wrote.
    pub summary: (usize, usize),
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
    let requests: Vec<usize> = planner.turns.starts.iter().map(|start| *start as usize).collect();
    match (policy.goal, policy.boundary, policy.summaries) {
        (Goal::Truncate, ..) => planner.replay_truncated(requests.into_iter()),
        (_, _, Some(rules)) => planner.replay_summarized(&requests, rules),
        (_, Boundary::Optimum { read, write }, _) => planner.replay_optimum(&requests, read, write),
        _ => planner.replay_masked(&requests),
    }
}

impl Planner<'_> {
    fn replay_masked(&self, requests: &[usize]) -> Vec<Sent> {
        let mut fold = Fold::default();
        let mut before = 0;
        let mut sent = vec![];
        for end in requests {
            let moved = fold.request(self.ground(), *end, false);
            let changed = first_changed(self.outline, &moved);
            let cached_chars = fold.chars_before(changed.min(before));
            sent.push(Sent {
                chars: fold.chars_before(*end),
                cached_chars,
                masked: fold.masked.len(),
                ..Sent::default()
            });
            before = *end;
        }
        sent
    }

    /// The history so far has this many messages.
    fn look_back_from(&mut self, end: usize) {
        self.end = end;
        self.window = Window::of(self.outline, self.policy, &self.pairs, &self.turns, end);
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
            sent.push(Sent { chars: chars(&kept), cached_chars: chars(&kept[..same]), ..Sent::default() });
            before = kept;
        }
        sent
    }
}
