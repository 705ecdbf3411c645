//! The trigger, and the limit of each request.
//!
//! Below the trigger nothing is masked. Where a view would exceed the limit, the boundary is forced to the window and then past it,
//! oldest results first, until a quarter of the limit is free again. Where no move helps, long results are cut. Moves and cuts are
//! kept, so that the requests after them find their prefix in the cache.

use super::context::PlanContext;
use super::cost_bound::Bill;
use super::fold::Fold;
use super::mask::Masker;
use super::outcome::{Masked, Move, merged};
use super::step::{Step, after_cut, cut_chars, cut_of};
use super::summarize::begins_with_summary;
use super::units::{message_of, shift};
use crate::outline::reserve;
use crate::placeholder::{CountedClip, Form};
use crate::policy::Goal;

impl Fold {
    /// Whether masking has begun at a request after this many messages, to which the fold must have grown.
    pub(super) fn has_begun(&self, context: PlanContext, end: usize) -> bool {
        let policy = context.policy;
        let is_above = |most: usize| self.core.raw_cost > most;
        self.core.is_begun
            || policy.trigger == 0
            || is_above(policy.trigger)
            || policy.limit_at(self.evicted_messages + end).is_some_and(is_above)
            || !self.core.cleared.is_empty()
            || (self.evicted_messages == 0 && begins_with_summary(context.outline, context.source))
    }

    /// The changes of a request after this many messages, to which the fold must have grown. After the answer, where none is made, a
    /// boundary that depends on requests stays.
    #[must_use]
    pub fn step(&self, context: PlanContext, end: usize, is_now: bool, is_request: bool) -> Step {
        let bill = if is_request { self.bill(context, end, is_now) } else { None }; // no other step depends on one
        self.step_of_bill(context, end, bill.as_ref(), is_request)
    }

    /// The step of a request with this bill.
    pub(super) fn step_of_bill(&self, context: PlanContext, end: usize, bill: Option<&Bill>, is_request: bool) -> Step {
        let policy = context.policy;
        let mut step = Step { cost: self.core.cost, boundary: self.core.boundary, ..Step::default() };
        if (is_request || !policy.boundary.remembers())
            && self.has_begun(context, end)
            && self.moves(context, end, bill)
            && let Some(peek) = self.peek(context, true)
        {
            step = step.with_move(peek, self.next_boundary(policy));
        }
        match policy.limit_at(self.evicted_messages + end) {
            Some(max) if step.cost > max => self.forced(context, end, max, step),
            _ => step,
        }
    }

    /// A request that would exceed the limit.
    fn forced(&self, context: PlanContext, end: usize, max: usize, own: Step) -> Step {
        let (all, place) = self.forced_move(context, end, max - max / 4);
        let furthest = self.step_of(context, &all[..place], vec![]);
        if furthest.cost <= max {
            return furthest;
        }
        let cuts = self.cuts_to_fit(context, max, &own.masked);
        let cut = self.step_of(context, &own.masked, cuts);
        if cut.cost <= max {
            return Step { boundary: own.boundary, ..cut };
        }
        let exhausted = self.exhausted(context, end, max);
        if exhausted.cost <= max {
            return exhausted;
        }
        match context.policy.goal {
            Goal::Reduce => Step { is_over: true, ..own },
            _ => Step { is_over: true, boundary: own.boundary, ..cut },
        }
    }

    /// The furthest move, with as many cuts as needed.
    pub(super) fn exhausted(&self, context: PlanContext, end: usize, max: usize) -> Step {
        let (mut all, _) = self.forced_move(context, end, 0);
        all.sort_unstable_by_key(|one| one.result);
        let cuts = self.cuts_to_fit(context, max, &all);
        self.step_of(context, &all, cuts)
    }

    /// The candidates of a forced move: all that is outside of the window, then what is in it, oldest first, but neither of the newest
    /// turn nor unseen. And how many of them bring the cost of the view to `target`; all if none do.
    fn forced_move(&self, context: PlanContext, end: usize, target: usize) -> (Vec<Masked>, usize) {
        let mut all = self.core.waiting.clone();
        all.sort_unstable_by_key(|one| one.result);
        let mut cost = self.cost_with(context, &all, &[]);
        let mut place = all.len();
        if !all.is_empty() && cost <= target {
            return (all, place);
        }
        let masker = Masker::of(context, &self.excluded);
        let newest_turn = context.turns.starts.partition_point(|start| (*start as usize) < end);
        for result in self.core.aging.recent() {
            if self.is_masked(result) || context.turn_of(result as usize) == newest_turn {
                continue;
            }
            let Some(one) = after_cut(&self.cuts, masker.mask(result as usize)) else { continue };
            let alone = self.cost_with(context, core::slice::from_ref(&one), &[]);
            all.push(one);
            cost = self.cost_besides(context, cost, alone, &all, &[]);
            place += 1;
            if cost <= target {
                break;
            }
        }
        (all, place)
    }

    /// The cost of the view with these changes besides.
    #[must_use]
    pub fn cost_after(&self, context: PlanContext, changes: &[Masked]) -> usize {
        self.cost_with(context, changes, &[])
    }

    /// Characters that the cut under a mask removed.
    #[must_use]
    pub fn removed_by_cut(&self, masked: &Masked) -> usize {
        if masked.is_masked() { cut_chars(&self.cuts, masked.result) } else { 0 }
    }

    /// Cuts of long results that are raw even after these masks, the longest first, until the view fits.
    fn cuts_to_fit(&self, context: PlanContext, max: usize, gone: &[Masked]) -> Vec<Masked> {
        let Some(max_chars) = context.policy.clip_results else { return vec![] };
        let is_masked = |result: &u32| gone.binary_search_by_key(result, |one| one.result).is_ok();
        let mut long: Vec<u32> = self.core.long.iter().copied().filter(|result| !is_masked(result)).collect();
        long.sort_by_key(|result| core::cmp::Reverse(context.outline.results[*result as usize].chars));
        let masker = Masker::of(context, &self.excluded);
        let (mut cuts, mut cost) = (vec![], self.cost_with(context, gone, &[]));
        for result in long {
            if cost <= max {
                break;
            }
            let Some(clip) = masker.clip(result as usize, max_chars) else { continue };
            let (chars, before) = (clip.chars(), context.outline.results[result as usize].chars);
            let clip_cost =
                context.text_cost(chars, || context.source.clipped(context.outline, result as usize, &clip));
            let form = Form::Clip(Box::new(CountedClip { clip, cost: clip_cost }));
            let cut = Masked { result, form, removed: before - chars };
            let alone = self.cost_with(context, &[], core::slice::from_ref(&cut));
            cuts.push(cut);
            cost = self.cost_besides(context, cost, alone, gone, &cuts);
        }
        cuts.sort_unstable_by_key(|one| one.result);
        cuts
    }

    /// The cost of the view with these masks and cuts besides.
    pub(super) fn cost_with(&self, context: PlanContext, masked: &[Masked], cuts: &[Masked]) -> usize {
        let change = |cost: usize, one: &Masked| match context.costs {
            None => cost.saturating_sub(one.removed),
            Some(costs) => {
                let before = cut_of(&self.cuts, one.result).map_or(costs.of(one).0, |cut| costs.of(cut).1);
                cost.saturating_sub(before).saturating_add(costs.of(one).1)
            }
        };
        let cost = masked.iter().chain(cuts).fold(self.core.cost, change);
        cost.saturating_add_signed(self.restored_growth(context, masked))
    }

    /// The cost of the view with these changes, of which the last alone has this cost, and those before it that one.
    fn cost_besides(
        &self,
        context: PlanContext,
        cost: usize,
        alone: usize,
        masked: &[Masked],
        cuts: &[Masked],
    ) -> usize {
        if context.references.is_empty() {
            return (cost + alone).saturating_sub(self.core.cost);
        }
        self.cost_with(context, masked, cuts)
    }

    /// The step that masks and cuts these, each in order but for masks past the window.
    fn step_of(&self, context: PlanContext, masked: &[Masked], cuts: Vec<Masked>) -> Step {
        let mut masked = masked.to_vec();
        masked.sort_unstable_by_key(|one| one.result);
        let cost = self.cost_with(context, &masked, &cuts);
        let last = masked.last().map_or(0, |last| last.result as usize + 1);
        let boundary = if masked.is_empty() { 0 } else { self.core.aging.older_end.max(last) };
        let mut step = Step { masked, cuts, cost, is_forced: true, ..Step::default() };
        step.boundary = boundary.max(self.core.boundary);
        step.moved = self.move_of(context, &step);
        step
    }

    /// The move of a step; None if it changes nothing that was sent.
    fn move_of(&self, context: PlanContext, step: &Step) -> Option<Move> {
        let outline = context.outline;
        let changes = step.changes();
        let first = changes.first()?.result;
        let before = self.core.before;
        let is_sent = |one: &&Masked| message_of(outline, one.result) < before;
        if message_of(outline, first) >= before && step.masked.is_empty() {
            return None;
        }
        let sent: usize = changes.iter().filter(is_sent).map(|one| one.removed).sum();
        let written_again =
            self.chars_before(before).saturating_sub(sent).saturating_sub(self.kept_before(context, Some(first)));
        let removed = changes.iter().map(|one| one.removed).sum();
        Some(Move { request: self.core.requests, masked: step.masked.len(), removed, written_again })
    }

    /// Whether the view of the last request is over the limit.
    pub(super) fn is_over(&self) -> bool {
        self.core.is_over
    }

    /// Steps after the answer to the last request, where no request is made.
    pub(super) fn answer(&mut self, context: PlanContext, end: usize) {
        self.grow(context, end);
        let step = self.step(context, end, false, false);
        if !step.masked.is_empty() {
            self.core.boundary_before = self.core.boundary;
        }
        self.take(context, &step);
    }

    /// Masks and cuts all that a forced move may.
    pub(super) fn exhaust(&mut self, context: PlanContext, end: usize) {
        let max = context.policy.limit_at(self.evicted_messages + end).unwrap_or(usize::MAX);
        let step = self.exhausted(context, end, max);
        self.take(context, &step);
    }

    /// Takes a step. Returns the observations that it masks or cuts, in order.
    pub(super) fn take(&mut self, context: PlanContext, step: &Step) -> Vec<Masked> {
        self.core.is_over = step.is_over;
        if step.changes_nothing() {
            return vec![];
        }
        if step.is_forced {
            self.add_early(&step.masked);
        }
        let holds = |result: u32| step.masked.binary_search_by_key(&result, |one| one.result).is_ok();
        let masked =
            self.mask(context, |result| if step.is_forced { holds(result) } else { (result as usize) < step.boundary });
        if !step.masked.is_empty() {
            self.core.waste = 0;
            self.core.long.retain(|result| !holds(*result));
        }
        self.core.boundary = self.core.boundary.max(step.boundary);
        self.cut(context, &step.cuts);
        if context.policy.remembers() {
            (self.core.paid.boundary, self.core.paid.marked) = (self.boundary_chars(context), 0);
            self.moves.extend(step.moved);
        }
        merged(masked, step.cuts.clone())
    }

    /// Adds observations in the window to those that wait to be masked.
    fn add_early(&mut self, masked: &[Masked]) {
        let mut waiting: Vec<u32> = self.core.waiting.iter().map(|one| one.result).collect();
        waiting.sort_unstable();
        for one in masked.iter().filter(|one| waiting.binary_search(&one.result).is_err()) {
            self.core.early.push(one.result);
            self.core.gain += one.removed;
            self.core.waiting.push(one.clone());
        }
    }

    /// Cuts raw observations.
    fn cut(&mut self, context: PlanContext, cuts: &[Masked]) {
        if cuts.is_empty() {
            return;
        }
        self.core.cost = self.cost_with(context, &[], cuts);
        self.core.removed += shift(&mut self.chars_before, context.outline, cuts, |chars, removed| chars - removed);
        let place = |result: u32| cuts.binary_search_by_key(&result, |one| one.result).ok();
        for one in &mut self.core.waiting {
            if let Some(place) = place(one.result) {
                let removed = one.removed.saturating_sub(cuts[place].removed);
                self.core.gain -= one.removed - removed;
                one.removed = removed;
            }
        }
        self.core.waiting.retain(|one| one.removed > 0);
        self.core.first = self.core.waiting.iter().map(|one| one.result).min();
        self.core.long.retain(|result| place(*result).is_none());
        reserve(&mut self.cuts, cuts.len());
        self.cuts.extend_from_slice(cuts);
        self.cuts.sort_unstable_by_key(|one| one.result);
        if !self.points.is_empty() {
            self.cuts_by_time.extend(cuts.iter().map(|one| one.result));
        }
    }
}
