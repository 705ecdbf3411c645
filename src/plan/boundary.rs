//! When the boundary moves, and how far: the rules, at each request of a history.
//!
//! Masking shortens the prompt, but invalidates the prompt cache from the first change on. The break-even rule is that of the ski
//! rental problem: characters that could have been masked add to the waste of each request that sends them. Once reading the waste
//! from the cache has cost a given part of what writing the cache again costs, the boundary moves, if the bound on cost permits it.

use super::context::PlanContext;
use super::cost_bound::BREAK_EVEN_AT;
use super::masked::{Masked, Move};
use super::reasoning::Reasoning;
use super::state::State;
use super::step::{Point, Step};
use super::units::{Bill, message_of};
use crate::outline::Outline;
use crate::policy::{Boundary, Policy};

/// The least results of a move that costs reasoning, where there is no cache.
const UNCACHED_STEP: usize = 10;

impl State {
    /// Makes a request after this many messages. Returns what it changes.
    pub(crate) fn request(&mut self, context: PlanContext, end: usize, point: Point) -> Step {
        self.grow(context, end);
        let step = self.step(context, end, point);
        self.take_request(context, end, &step);
        step
    }

    /// Makes a request after this many messages, for which this step was decided.
    pub(crate) fn take_request(&mut self, context: PlanContext, end: usize, step: &Step) {
        let is_begun = self.has_begun(context, end);
        self.rule.is_begun = is_begun && context.policy.limit.trigger > 0;
        self.rule.boundary_before = self.rule.boundary;
        if is_begun {
            self.rule.waste = self.rule.waste.saturating_add(self.results.gain);
        }
        self.gone.old_turns.waste = self.gone.old_turns.waste.saturating_add(step.wasted);
        self.take(context, step);
        let is_moved = step.moved.is_some() || step.hiding.is_some();
        self.rule.paid.marked = if !is_moved && self.is_pinned(context) { self.rule.paid.boundary } else { 0 };
        if let Some(bill) = &step.bill {
            let call = step.hiding.as_ref().and_then(|hiding| hiding.call);
            self.rule.paid.pay(bill, is_moved, self.rule.is_rewritten, call);
        }
        self.rule.requests += 1;
        (self.rule.before, self.rule.is_rewritten) = (end, false);
    }

    pub(super) fn moves_boundary(&self, context: PlanContext, end: usize, bill: Option<&Bill>) -> bool {
        let policy = context.policy;
        let pays = match policy.terms.boundary {
            Boundary::BreakEven(prices) => {
                let part = if self.is_amid_round(context, end) { 1.0 } else { BREAK_EVEN_AT };
                self.results.gain > 0
                    && bill.is_some_and(|bill| {
                        self.breaks_even(policy, bill, prices, part) && !self.awaits_results(context, Some(bill))
                    })
            }
            boundary => self.moves_by_size(boundary, end) && !self.awaits_results(context, None),
        };
        let max_cost = || context.max_cost_at(end).filter(|_| !policy.limit.is_kept);
        let is_over = || max_cost().is_some_and(|max| self.sums.cost > max);
        pays || (policy.terms.boundary.remembers() && is_over())
    }

    /// Whether a move would cost reasoning while the agent works: the request has results of the last answer.
    fn is_amid_round(&self, context: PlanContext, end: usize) -> bool {
        let outline = context.outline;
        outline.results_before(end) > outline.results_before(self.rule.before) && self.costs_reasoning(outline)
    }

    /// Whether a move would cost reasoning for too few results, where no request finds a cache and each could move.
    fn awaits_results(&self, context: PlanContext, bill: Option<&Bill>) -> bool {
        let had_none = || context.requests.cold.binary_search(&self.rule.before).is_ok();
        let is_uncached = bill.is_none_or(|bill| bill.is_cold && had_none());
        let boundary = self.next_boundary(context.policy);
        let is_passed = |one: &&Masked| (one.result as usize) < boundary;
        let is_full = || self.results.waiting.iter().filter(is_passed).nth(UNCACHED_STEP - 1).is_some();
        is_uncached && self.costs_reasoning(context.outline) && !is_full()
    }

    /// Whether a move would leave out signed reasoning that is still sent.
    fn costs_reasoning(&self, outline: &Outline) -> bool {
        self.results.first.is_some_and(|first| self.rule.reasoning.is_voided_by(message_of(outline, first)))
    }

    /// The step that moves the boundary to the window now, rounded by the policy or not; None if nothing would change, or too little.
    pub(crate) fn move_step(&self, context: PlanContext, is_rounded: bool) -> Option<Step> {
        let least = context.policy.text.least_in_all;
        if self.sums.removed + self.results.gain < least {
            return None;
        }
        let boundary = if is_rounded { self.next_boundary(context.policy) } else { self.results.window.older_end };
        let masked = self.waiting_before(boundary, |_| true);
        let removed: usize = masked.iter().map(|one| one.removed).sum();
        let is_enough = !masked.is_empty() && self.sums.removed + removed >= least;
        is_enough.then(|| {
            let boundary = boundary.max(self.rule.boundary);
            Step { boundary, is_forced: false, ..self.step_of(context, masked, vec![]) }
        })
    }

    /// A boundary that moves by its rule.
    pub(super) fn next_boundary(&self, policy: &Policy) -> usize {
        policy.rounded(self.results.window.older_end)
    }

    /// The observations before a boundary that wait to be masked, of those for which `is_shown` is true; in order.
    pub(super) fn waiting_before(&self, boundary: usize, is_shown: impl Fn(&Masked) -> bool) -> Vec<Masked> {
        if self.results.first.is_none_or(|first| first as usize >= boundary) {
            return vec![];
        }
        let is_passed = |one: &&Masked| (one.result as usize) < boundary && is_shown(one);
        let mut waiting = Vec::with_capacity(self.results.waiting.len());
        waiting.extend(self.results.waiting.iter().filter(is_passed).cloned());
        waiting.sort_unstable_by_key(|one| one.result);
        waiting
    }

    /// Moves the boundary as far as the policy permits, if that removes enough. Returns the newly masked observations, in order. For
    /// a boundary that depends on no request.
    pub(crate) fn advance(&mut self, context: PlanContext) -> Vec<Masked> {
        let Some(step) = self.move_step(context, true) else { return vec![] };
        self.take(context, &step);
        step.masked
    }

    /// The reasoning of the view after a step.
    pub(crate) fn reasoning_after(&self, outline: &Outline, step: &Step) -> Reasoning {
        let first = step.first_edited(outline);
        first.map_or(self.rule.reasoning, |first| self.rule.reasoning.edited(first))
    }

    /// The move of a step, with the messages that lose their reasoning by it.
    pub(crate) fn moved_by(&self, outline: &Outline, step: &Step) -> Option<Move> {
        let lost = || self.reasoning_after(outline, step).dropped - self.rule.reasoning.dropped;
        step.moved.map(|moved| Move { reasoning: lost(), ..moved })
    }

    /// Adds the reasoning of a message, where it is verified.
    pub(super) fn push_reasoning(&mut self, context: PlanContext, message: usize) {
        if context.policy.terms.verifies_reasoning && context.outline.messages[message].is_signed {
            self.rule.reasoning.push(message, self.rule.before);
        }
    }
}
