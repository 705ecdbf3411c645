//! When the boundary moves, and how far: the rules, at each request of a history.
//!
//! Masking shortens the prompt, but invalidates the prompt cache from the first change on. The break-even rule is that of the ski
//! rental problem: characters that could have been masked add to the waste of each request that sends them. Once reading the waste
//! from the cache has cost a given part of what writing the cache again costs, the boundary moves, if the bound on cost permits it.

use super::context::PlanContext;
use super::masked::{Masked, Move};
use super::reasoning::Reasoning;
use super::state::State;
use super::step::{Point, Step};
use super::units::{Bill, message_of};
use crate::outline::Outline;
use crate::policy::Boundary;

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
            Boundary::Sliding | Boundary::Stepped(_) => true,
            Boundary::BreakEven { read, write } => {
                self.results.gain > 0
                    && bill.is_some_and(|bill| self.breaks_even(policy, bill, self.results.gain, read, write))
            }
            Boundary::HighWater { chars, at_least } => self.chars_before(end) > chars && self.results.gain >= at_least,
        };
        let max_cost = || context.max_cost_at(end).filter(|_| !policy.limit.is_kept);
        let is_over = || max_cost().is_some_and(|max| self.sums.cost > max);
        pays || (policy.terms.boundary.remembers() && is_over())
    }

    /// The step that moves the boundary now, rounded by the policy or not; None if nothing would change.
    pub(crate) fn peek(&self, context: PlanContext, is_rounded: bool) -> Option<Step> {
        let policy = context.policy;
        if self.results.waiting.is_empty() || self.sums.removed + self.results.gain < policy.text.least_in_all {
            return None;
        }
        let older_end = self.results.window.older_end;
        let boundary = if is_rounded { policy.rounded(older_end) } else { older_end };
        let is_passed = |one: &&Masked| (one.result as usize) < boundary;
        let mut now: Vec<Masked> = self.results.waiting.iter().filter(is_passed).cloned().collect();
        let removed: usize = now.iter().map(|one| one.removed).sum();
        if now.is_empty() || self.sums.removed + removed < policy.text.least_in_all {
            return None;
        }
        now.sort_unstable_by_key(|one| one.result);
        let cost = self.cost_with(context, &now, &[]);
        let moved = Some(self.move_by(context, &now, now.len()));
        let boundary = now.last().map_or(0, |last| last.result as usize + 1);
        Some(Step { masked: now, cost, moved, boundary, ..Step::default() })
    }

    /// Moves the boundary as far as the policy permits, if that removes enough. Returns the newly masked observations, in order. For
    /// a boundary that depends on no request.
    pub(crate) fn advance(&mut self, context: PlanContext) -> Vec<Masked> {
        let policy = context.policy;
        let boundary = policy.rounded(self.results.window.older_end);
        let is_passed = |result: u32| (result as usize) < boundary;
        if !self.results.first.is_some_and(is_passed)
            || self.sums.removed + self.results.gain < policy.text.least_in_all
        {
            return vec![];
        }
        let moved: usize = self.results.waiting.iter().filter(|one| is_passed(one.result)).map(|one| one.removed).sum();
        if self.sums.removed + moved < policy.text.least_in_all {
            return vec![];
        }
        self.rule.boundary = boundary;
        self.rule.waste = 0;
        self.mask(context, is_passed)
    }

    /// The reasoning of the view after a step.
    pub(crate) fn reasoning_after(&self, outline: &Outline, step: &Step) -> Reasoning {
        let results = [step.masked.first(), step.cuts.first()];
        let edited = results.into_iter().flatten().map(|one| message_of(outline, one.result)).min();
        let first = if step.hiding.is_some() { Some(0) } else { edited };
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
