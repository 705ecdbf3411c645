//! The memory of the boundary's rules between requests. It is a fold over the messages and prefix-stable: a growing session
//! and a plan of the whole history agree.

use super::context::PlanContext;
use super::mask::{Excluded, Masker};
use super::outcome::{Masked, Masking, Move, Unmasked, shown};
use super::step::{after_cut, cut_chars};
use super::units::Paid;
use super::units::shift;
use super::view_summary::SummaryInView;
use super::window::Aging;
use crate::outline::reserve;
use crate::policy::Policy;

/// The state of a fold after an eviction that the remaining messages do not imply.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FoldState {
    /// Evicted messages.
    pub messages: usize,
    /// Evicted observations.
    pub observations: usize,
    /// Masked ones among them.
    pub masked_count: usize,
    /// Characters of the view before the remaining messages.
    pub chars: usize,
    /// Characters that masking removed in total.
    pub removed: usize,
    /// Characters that requests since the last move could have saved.
    pub waste: usize,
    /// Number of requests.
    pub requests: usize,
    /// Remaining messages that the last request had sent.
    pub before: usize,
    /// The charge of all requests.
    pub paid: Paid,
    /// The boundary among the remaining observations, before the last request and after it.
    pub boundaries: [usize; 2],
    /// The masked ones of the remaining observations, ascending.
    pub masked: Vec<u32>,
    /// Whether masking has begun.
    pub is_begun: bool,
}

/// The state between two requests.
#[derive(Debug, Default, Clone)]
pub struct Fold {
    /// Evicted messages, observations, masked observations, and characters in the view.
    pub(super) evicted_messages: usize,
    pub(super) evicted_observations: usize,
    pub(super) evicted_masked: usize,
    pub(super) evicted_chars: usize,
    pub(super) excluded: Excluded,
    pub(super) summary: SummaryInView,
    /// The next request writes the whole view to the cache in any case.
    pub(super) is_rewritten: bool,
    /// Prefix sums of the view's characters: after each message.
    pub(super) chars_before: Vec<usize>,
    pub(super) core: FoldCore,
    /// Masked observations, in order.
    pub masked: Vec<Masked>,
    /// The moves of the boundary.
    pub moves: Vec<Move>,
    /// Rewind points: the beginning, and moves that are far enough apart. Empty if rewinding is disabled.
    pub(super) points: Vec<Point>,
    /// Cut observations, in order; some are masked since.
    pub cuts: Vec<Masked>,
    /// The results of `masked` and `cuts` in the order in which they were masked or cut, if there are rewind points.
    pub(super) masked_by_time: Vec<u32>,
    pub(super) cuts_by_time: Vec<u32>,
}

/// The part of a fold that a rewind point copies; its size is that of the window.
#[derive(Debug, Default, Clone)]
pub(super) struct FoldCore {
    pub(super) aging: Aging,
    /// The cost of the view, and of the raw history.
    pub(super) cost: usize,
    pub(super) raw_cost: usize,
    /// Whether masking has begun: the history was above the trigger.
    pub(super) is_begun: bool,
    /// Whether the view of the last request is over the limit.
    pub(super) is_over: bool,
    /// Maskable observations that are still raw; the characters that masking them would remove, and the first of them.
    pub(super) waiting: Vec<Masked>,
    pub(super) gain: usize,
    /// The part of the gain in messages since the previous request.
    pub(super) new_gain: usize,
    pub(super) first: Option<u32>,
    /// Characters that requests since the last move could have saved.
    pub(super) waste: usize,
    pub(super) requests: usize,
    /// Messages at the previous request; later ones are written to the cache in any case.
    pub(super) before: usize,
    /// Characters that masking removed.
    pub(super) removed: usize,
    /// The first observation after the boundary; the same before the last request.
    pub(super) boundary: usize,
    pub(super) boundary_before: usize,
    /// The charge of all requests.
    pub(super) paid: Paid,
    /// Results that were masked before they left the window.
    pub(super) early: Vec<u32>,
    /// Raw results that are long enough to be cut, if there is a limit.
    pub(super) long: Vec<u32>,
    /// Results outside of the window that the agent has cleared itself.
    pub(super) cleared: Vec<u32>,
    /// Messages with references that show the text of their source, and the characters that this adds.
    pub(super) restored: Vec<(usize, isize)>,
}

/// A rewind point: the state of a fold, which needs at least this many messages.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub messages: usize,
    pub masked: usize,
    pub cuts: usize,
    pub moves: usize,
    pub core: FoldCore,
}

impl Fold {
    /// The fold of a view with a new summary, whose previous request had sent this many messages.
    pub(super) fn with_summary(summary: SummaryInView, before: usize, paid: Paid) -> Self {
        Fold { summary, core: FoldCore { before, paid, ..FoldCore::default() }, is_rewritten: true, ..Fold::default() }
    }

    /// How many of the first observations are final: masked, or never to be masked.
    #[must_use]
    pub fn final_observations(&self, policy: &Policy) -> usize {
        let older = self.rounded(policy, self.core.aging.older_end);
        let waiting = self.core.first.map(|first| first as usize);
        waiting.into_iter().chain(self.core.aging.first_recent()).fold(older, usize::min)
    }

    /// Messages before this one are outside of all windows, and were sent by the last request.
    #[must_use]
    pub fn final_messages(&self, context: PlanContext) -> usize {
        let start = self.core.aging.start(context);
        if context.policy.boundary.remembers() { start.min(self.core.before) } else { start }
    }

    /// How many observations are masked, including evicted ones.
    #[must_use]
    pub fn masked_count(&self) -> usize {
        self.evicted_masked + self.masked.len()
    }

    /// The state after evicting the messages before this one, whose observations are final.
    #[must_use]
    pub fn state_without(&self, context: PlanContext, messages: usize) -> FoldState {
        let evicted = context.outline.results_before(messages);
        let (masked_before, masked) =
            self.masked.split_at(self.masked.partition_point(|one| (one.result as usize) < evicted));
        FoldState {
            messages: self.evicted_messages + messages,
            observations: self.evicted_observations + evicted,
            masked_count: self.evicted_masked + masked_before.len(),
            chars: self.chars_before(messages),
            removed: self.core.removed,
            waste: self.core.waste,
            requests: self.core.requests,
            before: self.core.before.saturating_sub(messages),
            paid: self.core.paid,
            boundaries: [self.core.boundary_before, self.core.boundary].map(|end| end.saturating_sub(evicted)),
            masked: masked.iter().map(|one| one.result - evicted as u32).collect(),
            is_begun: self.core.is_begun,
        }
    }

    /// Resumes a state over the remaining messages.
    #[must_use]
    pub fn resumed(context: PlanContext, state: &FoldState) -> Self {
        let mut fold = Fold {
            evicted_messages: state.messages,
            evicted_observations: state.observations,
            evicted_masked: state.masked_count,
            evicted_chars: state.chars,
            core: FoldCore {
                waste: state.waste,
                requests: state.requests,
                paid: state.paid,
                // Where texts are counted and there is a limit or a trigger, nothing is evicted; nor is anything masked before it begins.
                cost: state.chars,
                raw_cost: state.chars,
                is_begun: state.is_begun,
                ..FoldCore::default()
            },
            ..Fold::default()
        };
        fold.grow(context, state.before);
        (fold.core.before, fold.core.new_gain) = (state.before, 0);
        fold.grow(context, context.outline.messages.len());
        fold.mask(context, |result| state.masked.binary_search(&result).is_ok());
        fold.core.removed = state.removed;
        [fold.core.boundary_before, fold.core.boundary] = state.boundaries;
        fold
    }

    /// The boundary at the previous request, and now: `is_over` after the answer to the last one. `now` is where a step takes it
    /// that is not made for good. For a boundary that depends on requests.
    #[must_use]
    pub fn boundaries(&self, is_over: bool, now: Option<usize>) -> (usize, usize) {
        let FoldCore { boundary, boundary_before, .. } = self.core;
        match now {
            Some(now) => (boundary, now),
            None if is_over => (boundary_before, boundary),
            None => (boundary, boundary),
        }
    }

    /// The boundary after a move by its rule.
    #[must_use]
    pub fn next_boundary(&self, policy: &Policy) -> usize {
        self.rounded(policy, self.core.aging.older_end).max(self.core.boundary)
    }

    /// A boundary rounded by the policy, among the observations in memory.
    #[must_use]
    pub fn rounded(&self, policy: &Policy, boundary: usize) -> usize {
        policy.rounded(self.evicted_observations + boundary).saturating_sub(self.evicted_observations)
    }

    /// Characters of the view before a message; before the next message, of the whole view.
    #[must_use]
    pub fn chars_before(&self, message: usize) -> usize {
        message.checked_sub(1).map_or(self.evicted_chars, |before| self.chars_before[before])
    }

    /// Characters of the raw history before a message.
    pub(super) fn raw_before(&self, message: usize) -> usize {
        let SummaryInView { hidden_before, place, chars, .. } = &self.summary;
        let summary = if *place < message { *chars } else { 0 };
        let hidden = hidden_before.get(message).copied().unwrap_or(0);
        let raw = (self.chars_before(message) - summary).saturating_add(hidden).saturating_add(self.core.removed);
        raw.saturating_add_signed(-self.restored_before(message))
    }

    /// Adds messages up to this number.
    pub fn grow(&mut self, context: PlanContext, end: usize) {
        let PlanContext { outline, policy, costs, .. } = context;
        for message in self.chars_before.len()..end {
            let restored = if context.references.is_empty() { 0 } else { self.restore(context, message) };
            let chars = self.summary.chars(message, outline.chars_of(message, policy.image_chars));
            self.chars_before.push(self.chars_before(message).saturating_add(chars).saturating_add_signed(restored));
            let cost = match costs {
                None => chars,
                Some(costs) => outline
                    .results_of(message)
                    .map(|result| costs.observations[result].0)
                    .fold(costs.messages[message], usize::saturating_add),
            };
            self.core.cost = self.core.cost.saturating_add(cost).saturating_add_signed(restored);
            self.core.raw_cost = self.core.raw_cost.saturating_add(cost);
            if let Some(max_chars) = policy.clip_results.filter(|_| policy.is_limit) {
                let is_long =
                    |result: &usize| outline.results[*result].chars > max_chars && outline.cut_of(*result).is_none();
                let long = outline.results_of(message).filter(is_long);
                self.core.long.extend(long.map(|result| result as u32));
            }
        }
        self.excluded.grow(policy, outline);
        let masker = Masker::of(context, &self.excluded);
        let (waiting, cleared) = (&mut self.core.waiting, &mut self.core.cleared);
        let (gain, new_gain, first, before) =
            (&mut self.core.gain, &mut self.core.new_gain, &mut self.core.first, self.core.before);
        let (summary, early, cuts) = (&self.summary, &mut self.core.early, &self.cuts);
        self.core.aging.grow(context, end, |result| {
            if let Some(place) = early.iter().position(|one| *one == result as u32) {
                early.swap_remove(place);
                return;
            }
            let message = outline.results[result].message as usize;
            let mask = (!summary.hides(message)).then(|| masker.mask(result)).flatten();
            if let Some(masked) = after_cut(cuts, mask) {
                *gain += masked.removed;
                if message >= before {
                    *new_gain += masked.removed;
                }
                *first = Some(first.map_or(masked.result, |first| first.min(masked.result)));
                waiting.push(masked);
            } else if context.is_cleared(result) {
                cleared.push(result as u32);
            }
        });
    }

    /// The observations whose texts decide how they are masked or cut: those that leave the window now, and of the messages from this
    /// one on long ones; with a limit all that may be masked.
    #[must_use]
    pub fn texts_needed(&self, context: PlanContext, first: usize) -> Vec<usize> {
        let PlanContext { outline, policy, .. } = context;
        let mut excluded = Excluded::default();
        excluded.grow(policy, outline);
        let masker = Masker::of(context, &excluded);
        let new = outline.results_before(first)..outline.results.len();
        if let Some(max_chars) = policy.clip_results.filter(|_| policy.is_limit) {
            let is_long = |result: usize| outline.results[result].chars > max_chars || masker.is_long(result);
            return new.filter(|result| is_long(*result) || masker.needs_text(*result)).collect();
        }
        let mut needed: Vec<usize> = new.filter(|result| masker.is_long(*result)).collect();
        let mut aging = self.core.aging.clone();
        aging.grow(context, context.outline.messages.len(), |result| {
            if masker.needs_text(result) {
                needed.push(result);
            }
        });
        needed
    }

    pub(super) fn into_masking(self) -> Masking {
        let mut masked = self.masked;
        for one in &mut masked {
            one.removed += cut_chars(&self.cuts, one.result); // a mask over a cut removes what both do
        }
        Masking {
            masked: shown(self.cuts, masked),
            stays: vec![],
            removed: self.core.removed,
            boundary: self.core.boundary,
            moves: self.moves,
            boundary_before: self.core.boundary_before,
            is_below_trigger: false,
        }
    }

    /// The results that could be masked, if nothing is.
    #[must_use]
    pub fn unmasked(&self, context: PlanContext) -> Unmasked {
        let outside_window = self.evicted_observations + self.core.aging.older_end;
        let is_below_trigger = !self.has_begun(context, self.core.aging.messages());
        Unmasked::of(context.policy, outside_window, self.core.waiting.len(), is_below_trigger)
    }

    /// Characters that masking removed.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.core.removed
    }

    /// The cost of the view.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.core.cost
    }

    /// Masks the waiting observations for which `is_included` is true. Returns them, in order.
    pub(super) fn mask(&mut self, context: PlanContext, is_included: impl Fn(u32) -> bool) -> Vec<Masked> {
        let outline = context.outline;
        let mut now: Vec<Masked> = self.core.waiting.extract_if(.., |one| is_included(one.result)).collect();
        now.sort_unstable_by_key(|one| one.result);
        let Some(first) = now.first().map(|first| first.result) else { return now };
        let before = core::mem::take(&mut self.core.restored);
        let cost = self.cost_with(context, &now, &[]);
        let removed = shift(&mut self.chars_before, outline, &now, |chars, removed| chars - removed);
        self.core.cost = cost;
        let is_in_order = self.masked.last().is_none_or(|last| last.result < first);
        reserve(&mut self.masked, now.len());
        self.masked.extend_from_slice(&now);
        if !self.points.is_empty() {
            self.masked_by_time.extend(now.iter().map(|one| one.result));
        }
        if !is_in_order {
            self.masked.sort_unstable_by_key(|one| one.result);
        }
        self.restore_again(context, &before);
        self.core.removed += removed;
        self.core.gain -= removed;
        self.core.first = self.core.waiting.iter().map(|one| one.result).min();
        now
    }
}
