//! Where the boundary stands at each request of a history. A fold over the requests: a beginning of a history has the
//! boundary that it had when it was the whole, so a session that grows and a plan made afresh agree.
//!
//! A mask shortens what is sent, but it changes the prompt in the middle, and a prompt cache serves only what stands
//! before the first change. The break-even rule is that of a person who rents skis, and buys them once the rent paid
//! would have bought them: each request that sends what could have been masked adds to the waste, and when the waste,
//! read from the cache, has cost what it costs to write again what stands behind the change, the boundary moves.

use super::mask::{Masker, Masking};
use super::window::Aging;
use super::{Masked, Planner};
use crate::policy::{Boundary, NOW};

/// A move of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Before which request, from 0.
    pub request: usize,
    /// How many observations it masked.
    pub masked: usize,
    /// Characters that it removed.
    pub removed: usize,
    /// Characters behind the first change that the request before had sent, and that had to be written again.
    pub written_again: usize,
}

/// What so many characters cost, at a price of one.
#[expect(clippy::cast_precision_loss, reason = "no history has 2^53 characters")]
pub(super) fn cost(chars: usize, price: f64) -> f64 {
    chars as f64 * price
}

/// The state between two requests.
pub(super) struct Fold<'a> {
    planner: &'a Planner<'a>,
    masker: Masker<'a>,
    aging: Aging<'a>,
    /// Characters of the view before each message so far, and at its end.
    chars_before: Vec<usize>,
    /// What the view costs.
    cost: usize,
    /// Older than the window, but not masked; what masking them would remove, and the first of them.
    waiting: Vec<Masked>,
    gain: usize,
    /// The part of it in messages that came since the request before.
    new_gain: usize,
    first: Option<u32>,
    /// Characters that requests since the last move sent without need.
    waste: usize,
    requests: usize,
    /// How many messages there were at the request before: what came since is new, and is written in any case.
    before: usize,
    /// What is masked; in order only where no tool has a window of its own.
    pub masked: Vec<Masked>,
    pub removed: usize,
    pub boundary: usize,
    pub moves: Vec<Move>,
}

impl<'a> Fold<'a> {
    pub fn of(planner: &'a Planner<'a>) -> Self {
        Fold {
            planner,
            masker: Masker::of(planner),
            aging: Aging::of(planner.outline, planner.policy, &planner.pairs, &planner.turns),
            chars_before: vec![0],
            cost: 0,
            waiting: vec![],
            gain: 0,
            new_gain: 0,
            first: None,
            waste: 0,
            requests: 0,
            before: 0,
            masked: vec![],
            removed: 0,
            boundary: 0,
            moves: vec![],
        }
    }

    /// The observations that could be masked at these requests, in order, and how many of them at each.
    pub fn aged(planner: &'a Planner<'a>, requests: &[usize]) -> (Vec<Masked>, Vec<usize>) {
        let mut fold = Fold::of(planner);
        let older = requests.iter().map(|end| {
            fold.grow(*end);
            fold.waiting.len()
        });
        let older = older.collect();
        (fold.waiting, older)
    }

    /// Characters of the view before a message; before the one that does not exist yet, of the whole.
    pub fn chars_before(&self, message: usize) -> usize {
        self.chars_before[message]
    }

    /// A request is made after this many messages. Gives the first message that its view shows otherwise than the
    /// view before did.
    pub fn request(&mut self, end: usize, is_now: bool) -> usize {
        self.grow(end);
        let policy = self.planner.policy;
        let view = self.chars_before[end];
        let pays = match policy.boundary {
            Boundary::Sliding | Boundary::Stepped(_) => true,
            Boundary::BreakEven { read, write } => {
                self.waste = self.waste.saturating_add(self.gain);
                let again = self.written_again();
                // A request that finds the cache cold is not served anything anyway.
                let is_cold = |request: usize| policy.cold_requests.binary_search(&request).is_ok();
                let is_cold = is_cold(end) || (is_now && is_cold(NOW));
                is_cold || cost(self.waste, read) >= cost(again, write - read)
            }
            Boundary::HighWater(chars) => view > chars,
            Boundary::Optimum { .. } => false,
        };
        let is_over = policy.boundary.remembers() && !self.planner.fits(self.cost);
        let changed = if pays || is_over { self.advance() } else { end };
        self.requests += 1;
        (self.before, self.new_gain) = (end, 0);
        changed
    }

    /// What masking all that waits would have a cache written again: of what the request before sent, the view behind
    /// the first change.
    fn written_again(&self) -> usize {
        let first = self.first.map_or(self.before, |first| self.message_of(first)).min(self.before);
        self.chars_before[self.before] - self.chars_before[first] - (self.gain - self.new_gain)
    }

    fn grow(&mut self, end: usize) {
        let Planner { outline, policy, costs, .. } = self.planner;
        for message in self.chars_before.len() - 1..end {
            let chars = outline.chars_of(message, policy.image_chars);
            self.chars_before.push(self.chars_before[message].saturating_add(chars));
            self.cost = self.cost.saturating_add(match costs {
                None => chars,
                Some(costs) => outline
                    .results_of(message)
                    .map(|result| costs.observations[result].0)
                    .fold(costs.messages[message], usize::saturating_add),
            });
        }
        let (masker, waiting) = (&self.masker, &mut self.waiting);
        let (gain, new_gain, first, before) = (&mut self.gain, &mut self.new_gain, &mut self.first, self.before);
        self.aging.grow(end, |result| {
            if let Some(masked) = masker.mask(result) {
                *gain += masked.removed;
                if outline.results[result].message as usize >= before {
                    *new_gain += masked.removed;
                }
                *first = Some(first.map_or(masked.result, |first| first.min(masked.result)));
                waiting.push(masked);
            }
        });
    }

    pub fn into_masking(mut self) -> Masking {
        self.masked.sort_unstable_by_key(|one| one.result);
        Masking { masked: self.masked, removed: self.removed, boundary: self.boundary, moves: self.moves }
    }

    /// Moves the boundary as far as the policy lets it, if that removes enough. Gives the first message changed.
    fn advance(&mut self) -> usize {
        let Planner { policy, costs, .. } = self.planner;
        let end = self.chars_before.len() - 1;
        let boundary = policy.rounded(self.aging.older_end);
        let is_passed = |result: u32| (result as usize) < boundary;
        if !self.first.is_some_and(is_passed) || self.removed + self.gain < policy.min_masked_chars {
            return end;
        }
        let mut now: Vec<Masked> = self.waiting.extract_if(.., |one| is_passed(one.result)).collect();
        let moved: usize = now.iter().map(|one| one.removed).sum();
        if self.removed + moved < policy.min_masked_chars {
            self.waiting.extend(now);
            return end;
        }
        now.sort_unstable_by_key(|one| one.result);
        let first = self.message_of(now[0].result);
        let (mut removed, mut next) = (0, now.iter().peekable());
        for message in first..end {
            while let Some(one) = next.next_if(|one| self.message_of(one.result) == message) {
                removed += one.removed;
            }
            self.chars_before[message + 1] -= removed;
        }
        self.cost = match costs {
            None => self.cost - moved,
            Some(costs) => now.iter().fold(self.cost, |cost, one| {
                let (raw, after) = costs.observations[one.result as usize];
                (cost - raw).saturating_add(after)
            }),
        };
        let written_again = self.chars_before[self.before] - self.chars_before[first.min(self.before)];
        self.moves.push(Move { request: self.requests, masked: now.len(), removed: moved, written_again });
        self.masked.extend(now);
        self.removed += moved;
        self.gain -= moved;
        self.first = self.waiting.iter().map(|one| one.result).min();
        self.boundary = boundary;
        self.waste = 0;
        first
    }

    fn message_of(&self, result: u32) -> usize {
        self.planner.outline.results[result as usize].message as usize
    }
}
