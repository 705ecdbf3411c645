//! What the requests of a history cost under the cache that the rule of the boundary assumes; and its bound: no request
//! makes the views so far cost more than the raw history by more than a given part. docs/caching.md has the proof.
//!
//! What only the provider knows is taken at its worst: the raw history is served all that it can be, the view no more than what
//! the request before had marked.

use super::boundary::cost;
use super::context::PlanContext;
use super::fold::{Fold, message_of};
use super::replay::blocks_of;
use crate::policy::{Boundary, CHARS_PER_TOKEN, NOW, Policy};
use crate::provider::{CacheRule, ProviderCache};

impl ProviderCache {
    /// The least characters of an entry.
    fn min_chars(self) -> usize {
        CHARS_PER_TOKEN.saturating_mul(self.min_tokens)
    }

    /// What whole steps may leave of a prefix.
    fn step_rest_chars(self) -> usize {
        CHARS_PER_TOKEN.saturating_mul(self.step_tokens).saturating_sub(1)
    }

    /// What is served, at the least, of a prefix of this many characters.
    fn serves(self, chars: usize) -> usize {
        if chars < self.min_chars() { 0 } else { chars.saturating_sub(self.step_rest_chars()) }
    }

    /// Characters of a system prompt that may be written again with a view of whose beginning the cache keeps this many: where
    /// these are too few, and those of the prompt as well.
    fn again(self, kept: usize, is_cold: bool) -> usize {
        if is_cold || self.serves(kept) > 0 { 0 } else { self.min_chars() }
    }
}

/// Characters that requests read from the cache, and write to it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Charged {
    /// Read.
    pub read: usize,
    /// Written.
    pub written: usize,
}

impl Charged {
    /// A request of this many characters that reads this many of them.
    fn request(chars: usize, read: usize) -> Self {
        Charged { read: read.min(chars), written: chars.saturating_sub(read) }
    }

    fn and_written(self, chars: usize) -> Self {
        Charged { written: self.written.saturating_add(chars), ..self }
    }

    fn and(self, other: Charged) -> Self {
        Charged { read: self.read.saturating_add(other.read), written: self.written.saturating_add(other.written) }
    }

    fn cost(self, read: f64, write: f64) -> f64 {
        cost(self.read, read) + cost(self.written, write)
    }
}

/// What all requests so far were charged, and the entry that a mark at the boundary has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Paid {
    /// With the views that were sent.
    pub view: Charged,
    /// With the raw history.
    pub raw: Charged,
    /// Characters of the view up to the last masked observation.
    pub boundary: usize,
    /// The same, if the request before was marked there; else 0.
    pub marked: usize,
    /// Characters given to models for summaries, and written by them.
    pub calls: (usize, usize),
}

impl Paid {
    /// After a call of a model for a summary, which changes the view.
    pub(super) fn with_summary(self, (given, said): (usize, usize)) -> Self {
        let calls = (self.calls.0.saturating_add(given), self.calls.1.saturating_add(said));
        Paid { boundary: 0, marked: 0, calls, ..self }
    }

    /// Whether all requests, with one more of the view and of the raw history, are within the bound on cost.
    fn is_within(self, policy: &Policy, view: Charged, raw: Charged, part: f64, read: f64, write: f64) -> bool {
        let calls = policy.summaries.map_or(0.0, |rules| rules.call_cost(self.calls));
        self.view.and(view).cost(read, write) + calls <= (1.0 + part) * self.raw.and(raw).cost(read, write)
    }
}

/// What a request is charged: with the raw history, with the boundary where it is, and after a move.
#[derive(Debug)]
pub(super) struct Bill {
    raw: Charged,
    stay: Charged,
    go: Charged,
    /// Characters of the system prompt that the move may write again.
    again: usize,
}

impl Fold {
    /// Characters of the beginning of the view that stay in the cache at a move.
    pub(super) fn kept_chars(&self, context: PlanContext) -> usize {
        let PlanContext { outline, policy, .. } = context;
        let first = self.core.first.map_or(self.core.before, |first| message_of(outline, first)).min(self.core.before);
        if policy.cache.rule != CacheRule::Breakpoints {
            return self.view_before(first);
        }
        let is_after = |first: u32| self.last_gone().is_none_or(|last| last < first);
        let is_kept = self.core.first.is_some_and(is_after) && self.is_pinned(context);
        if is_kept { self.core.paid.marked } else { 0 }
    }

    /// Whether this request is marked at the boundary, at a move at the old one. The mark gives way where the client's previous one
    /// is out of reach of its newest.
    fn is_pinned(&self, context: PlanContext) -> bool {
        let new = self.core.before..self.core.aging.messages();
        context.policy.pins_boundary
            && new.map(|message| blocks_of(context.outline, message)).sum::<usize>()
                < context.policy.cache.lookback_blocks
    }

    /// What a request after this many messages is charged, to which the fold must have grown; None where no rule reads it.
    pub(super) fn bill(&self, context: PlanContext, end: usize, is_now: bool) -> Option<Bill> {
        let policy = context.policy;
        if !matches!(policy.boundary, Boundary::BreakEven { .. }) {
            return None;
        }
        // The prompt of a request with a cold cache is written in any case.
        let is_listed = |request: usize| policy.cold.binary_search(&request).is_ok();
        let is_cold = is_listed(self.evicted_messages + end) || (is_now && is_listed(NOW));
        let warm = |chars: usize| if is_cold { 0 } else { chars };
        let (chars, raw_chars) = (self.view_before(end), self.raw_before(end));
        // Below the minimum nothing is cached; what that costs at least is taken to be reading.
        let is_short = raw_chars < policy.cache.min_chars();
        let raw =
            Charged::request(raw_chars, if is_short { raw_chars } else { warm(self.raw_before(self.core.before)) });
        let (sent, kept) = if self.is_rewritten {
            (0, 0)
        } else {
            (warm(self.view_before(self.core.before)), warm(self.kept_chars(context)))
        };
        let is_raw = chars == raw_chars && !self.is_rewritten;
        let stay = Charged::request(chars, policy.cache.serves(sent)).and_written(policy.cache.again(sent, is_cold));
        let moved_chars = chars.saturating_sub(self.core.gain + self.restored_before(end));
        let moved_chars = moved_chars + self.restored_by_move(context, end);
        let moved = Charged::request(moved_chars, policy.cache.serves(kept));
        Some(Bill { raw, stay: if is_raw { raw } else { stay }, go: moved, again: policy.cache.again(kept, is_cold) })
    }

    /// Whether a move breaks even at these prices, and keeps the bound on cost.
    pub(super) fn breaks_even(&self, policy: &Policy, bill: &Bill, gain: usize, read: f64, write: f64) -> bool {
        let waste = self.core.waste.saturating_add(gain);
        let extra = bill.go.cost(read, write) - bill.stay.cost(read, write);
        let is_within_bound = |part: f64| {
            let at_most = bill.go.and_written(bill.again);
            (extra + cost(bill.again, write) <= 0.0
                || self.core.paid.is_within(policy, at_most, bill.raw, part, read, write))
                && stays_cached(policy.cache, bill.raw, bill.go, part, read, write)
        };
        cost(waste, read) >= policy.break_even_at * extra && policy.max_overcost.is_none_or(is_within_bound)
    }

    /// Whether a summary keeps the bound on cost that leaves this many characters of the view, all of which are written again.
    #[must_use]
    pub fn permits_summary(&self, context: PlanContext, end: usize, chars: usize, call: (usize, usize)) -> bool {
        let policy = context.policy;
        let (Boundary::BreakEven { read, write }, Some(part)) = (policy.boundary, policy.max_overcost) else {
            return true;
        };
        let Some(Bill { raw, .. }) = self.bill(context, end, false) else { return true };
        let (view, again) = (Charged::request(chars, 0), policy.cache.again(0, false));
        self.core.paid.with_summary(call).is_within(policy, view.and_written(again), raw, part, read, write)
            && stays_cached(policy.cache, raw, view, part, read, write)
    }

    /// Charges a model's call for a summary, and writing the view with it, of this many characters. The request for which it
    /// comes may have been made without it, so that stays charged.
    pub fn pay_summary(&mut self, cache: ProviderCache, chars: usize, call: (usize, usize)) {
        let paid = self.core.paid.with_summary(call);
        let view = Charged::request(chars, 0).and_written(cache.again(0, false));
        self.core.paid = Paid { view: paid.view.and(view), ..paid };
    }

    /// Adds what a request was charged.
    pub(super) fn pay(&mut self, context: PlanContext, bill: &Bill, is_moved: bool) {
        let marked = if !is_moved && self.is_pinned(context) { self.core.paid.boundary } else { 0 };
        let paid = &mut self.core.paid;
        paid.view = paid.view.and(if is_moved { bill.go.and_written(bill.again) } else { bill.stay });
        paid.raw = paid.raw.and(bill.raw);
        paid.marked = marked;
    }

    /// Characters of the view up to the last masked observation. What follows results in a message is counted before them.
    pub(super) fn boundary_chars(&self, context: PlanContext) -> usize {
        let PlanContext { outline, policy, .. } = context;
        let Some(last) = self.last_gone() else { return 0 };
        let message = message_of(outline, last);
        let later = outline.later_chars(last as usize, policy.image_chars);
        let restored = self.restored_before(message + 1) - self.restored_before(message);
        self.view_before(message + 1).saturating_sub(later + restored)
    }
}

/// Whether after the move, and at each request to come, the view is served nearly as much of it as the raw history would be.
fn stays_cached(cache: ProviderCache, raw: Charged, view: Charged, part: f64, read: f64, write: f64) -> bool {
    let (raw, view) = (raw.read + raw.written, view.read + view.written);
    view >= cache.min_chars()
        && cost(raw.saturating_sub(view), read) + part * cost(raw, read) >= cost(cache.step_rest_chars(), write - read)
}
