//! When the boundary moves, and how far: the rules, at each request of a history.
//!
//! Masking shortens the prompt, but invalidates the prompt cache from the first change on. The break-even rule is that of the ski
//! rental problem: characters that could have been masked add to the waste of each request that sends them. Once reading the waste
//! from the cache has cost a given part of what writing the cache again costs, the boundary moves, if the bound on cost permits it.

use super::context::PlanContext;
use super::cost_bound::Bill;
use super::fold::Fold;
use super::outcome::{Masked, Move};
use super::step::Peek;
use crate::policy::Boundary;

impl Fold {
    /// Makes a request after this many messages. Returns the newly masked observations, in order.
    pub fn request(&mut self, context: PlanContext, end: usize, is_now: bool) -> Vec<Masked> {
        self.grow(context, end);
        let is_begun = self.has_begun(context, end);
        self.core.is_begun = is_begun && context.policy.trigger > 0;
        let bill = self.bill(context, end, is_now);
        let step = self.step_of_bill(context, end, bill.as_ref(), true);
        let is_forced = step.is_forced && !step.changes_nothing();
        let bill = bill.map(|bill| if is_forced { self.forced_bill(context, end, &bill, &step, is_now) } else { bill });
        self.core.boundary_before = self.core.boundary;
        if is_begun {
            self.core.waste = self.core.waste.saturating_add(self.net_gain(context));
        }
        let changes = self.take(context, &step);
        if let Some(bill) = bill {
            self.pay(context, &bill, step.moved.is_some());
        }
        self.pass_cleared(context);
        self.core.requests += 1;
        (self.core.before, self.core.new_gain, self.is_rewritten) = (end, 0, false);
        if !changes.is_empty() && context.policy.remembers() {
            self.add_due_point(end + 1); // the request is made when the next message is appended
        }
        changes
    }

    /// Whether the boundary moves at a request after this many messages, to which the fold must have grown.
    #[must_use]
    pub fn moves_at(&self, context: PlanContext, end: usize, is_now: bool) -> bool {
        self.moves(context, end, self.bill(context, end, is_now).as_ref())
    }

    pub(super) fn moves(&self, context: PlanContext, end: usize, bill: Option<&Bill>) -> bool {
        let policy = context.policy;
        let pays = match policy.boundary {
            Boundary::Sliding | Boundary::Stepped(_) => true,
            Boundary::BreakEven { read, write } => {
                let gain = self.net_gain(context);
                gain > 0 && bill.is_some_and(|bill| self.breaks_even(policy, bill, gain, read, write))
            }
            Boundary::HighWater { chars, at_least } => self.chars_before(end) > chars && self.core.gain >= at_least,
        };
        let max_cost = || policy.max_cost_at(self.evicted_messages + end).filter(|_| !policy.is_limit);
        let is_over = || max_cost().is_some_and(|max| self.core.cost > max);
        pays || (policy.boundary.remembers() && is_over())
    }

    /// Characters that a move to the window writes to the cache again: of the view after it, those that the previous request had sent
    /// and the cache does not keep.
    fn written_again(&self, context: PlanContext) -> usize {
        let masked_before = self.core.gain.saturating_sub(self.core.new_gain); // without an earlier request all of it is new
        let before = self.core.before;
        let growth = self.growth_by_move(context, before);
        let sent = self.chars_before(before).saturating_add_signed(growth).saturating_sub(masked_before);
        sent.saturating_sub(self.kept_chars(context))
    }

    /// The effect of moving the boundary now, rounded by the policy or not; None if nothing would change.
    #[must_use]
    pub fn peek(&self, context: PlanContext, is_rounded: bool) -> Option<Peek> {
        let policy = context.policy;
        if self.core.waiting.is_empty() || self.core.removed + self.core.gain < policy.min_masked_chars {
            return None;
        }
        let older_end = self.core.aging.older_end;
        let boundary = if is_rounded { self.rounded(policy, older_end) } else { older_end };
        let is_passed = |one: &&Masked| (one.result as usize) < boundary;
        let mut now: Vec<Masked> = self.core.waiting.iter().filter(is_passed).cloned().collect();
        let moved: usize = now.iter().map(|one| one.removed).sum();
        if now.is_empty() || self.core.removed + moved < policy.min_masked_chars {
            return None;
        }
        now.sort_unstable_by_key(|one| one.result);
        let cost = self.cost_with(context, &now, &[]);
        let written_again = self.written_again(context);
        let step = Move { request: self.core.requests, masked: now.len(), removed: moved, written_again };
        Some(Peek { masked: now, cost, step })
    }

    /// Moves the boundary as far as the policy permits, if that removes enough. Returns the newly masked observations, in order.
    pub fn advance(&mut self, context: PlanContext) -> Vec<Masked> {
        let policy = context.policy;
        let boundary = self.rounded(policy, self.core.aging.older_end);
        let is_passed = |result: u32| (result as usize) < boundary;
        if !self.core.first.is_some_and(is_passed) || self.core.removed + self.core.gain < policy.min_masked_chars {
            return vec![];
        }
        let moved: usize = self.core.waiting.iter().filter(|one| is_passed(one.result)).map(|one| one.removed).sum();
        if self.core.removed + moved < policy.min_masked_chars {
            return vec![];
        }
        let written_again = self.written_again(context);
        let now = self.mask(context, is_passed);
        self.core.boundary = boundary;
        if policy.boundary.remembers() {
            (self.core.paid.boundary, self.core.paid.marked) = (self.boundary_chars(context), 0);
            self.moves.push(Move { request: self.core.requests, masked: now.len(), removed: moved, written_again });
        }
        self.core.waste = 0;
        if !policy.boundary.remembers() {
            self.add_due_point(self.core.aging.messages());
        }
        now
    }
}
