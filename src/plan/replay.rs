//! Replay of a finished session: what each of its requests would have sent under a policy, and how much of that is a prefix
//! shared with the previous request, which a prompt cache serves.
//!
//! There is a request before each run of agent messages, its answer. It sends the plan of the messages before it. Plans are
//! computed incrementally, since observations are never unmasked.

use super::fold::{Fold, first_changed};
use super::planner::Planner;
use super::window::Window;
use crate::outline::Outline;
use crate::policy::{Boundary, Goal, Policy};
use crate::source::Source;
use crate::turns::Turns;

/// A request that a session made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Messages before it.
    pub messages: usize,
    /// Characters of its answer.
    pub answer_chars: usize,
}

/// A request as sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Characters of the view.
    pub chars: usize,
    /// Characters of the leading messages that the previous view began with too.
    pub cached_chars: usize,
    /// Masked observations.
    pub masked: usize,
    /// Turns replaced by a summary.
    pub summarized: usize,
    /// Characters of input and output of a model that wrote a summary before this request.
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

/// What each request of a session would have sent under a policy that masks or truncates; other goals leave views unchanged.
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
            let moved = fold.request(self.context(), *end, false);
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

    /// Sets the number of messages.
    fn set_end(&mut self, end: usize) {
        self.end = end;
        self.window = Window::of(self.outline, self.policy, &self.pairs, &self.turns, end);
    }

    fn replay_truncated(mut self, requests: impl Iterator<Item = usize>) -> Vec<Sent> {
        let mut before: Vec<bool> = vec![];
        let mut sent = vec![];
        for end in requests {
            self.set_end(end);
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
