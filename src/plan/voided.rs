//! What reasoning costs in the view of a state, and what an edit voids of it.

use super::context::PlanContext;
use super::hidden::Hiding;
use super::state::State;

impl State {
    /// What the reasoning of a message costs after an edit of the view from a message on, if there is one.
    pub(super) fn reasoning_cost(&self, context: PlanContext, message: usize, edited: Option<usize>) -> usize {
        let reasoning = edited.map_or(self.rule.reasoning, |first| self.rule.reasoning.edited(first));
        if reasoning.leaves_out(context, message) { 0 } else { context.reasoning_of(message) }
    }

    /// Adds the reasoning of a message to that of the view. Returns its cost.
    pub(super) fn add_reasoning(&mut self, context: PlanContext, message: usize) -> usize {
        let cost = self.reasoning_cost(context, message, None);
        let sums = &mut self.sums.reasoning;
        sums.all = sums.all.saturating_add(cost);
        if context.outline.messages[message].is_signed {
            sums.signed = sums.signed.saturating_add(cost);
        }
        cost
    }

    /// What an edit of the view from this message on takes from its cost, since it voids reasoning.
    pub(super) fn voided_cost(&self, first: usize) -> usize {
        if self.rule.reasoning.is_voided_by(first) { self.sums.reasoning.signed } else { 0 }
    }

    /// What the reasoning of the view costs that hides these messages.
    pub(super) fn reasoning_hiding(&self, context: PlanContext, hiding: &Hiding) -> usize {
        let of_hidden = |message: &u32| self.reasoning_cost(context, *message as usize, Some(0));
        let gone: usize = hiding.messages.iter().map(of_hidden).sum();
        self.sums.reasoning.all.saturating_sub(self.voided_cost(0)).saturating_sub(gone)
    }

    /// An edit of the view from this message on: what it voids is sent no more.
    pub(super) fn void_reasoning(&mut self, first: usize) {
        let voided = self.voided_cost(first);
        if voided > 0 {
            self.sums.cost = self.sums.cost.saturating_sub(voided);
            self.sums.reasoning.all = self.sums.reasoning.all.saturating_sub(voided);
            self.sums.reasoning.signed = 0;
        }
        self.rule.reasoning = self.rule.reasoning.edited(first);
    }
}
