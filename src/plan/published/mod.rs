//! The published reducer: a history over its budget is reduced at once, by the first of its stages that gives a view that fits. The doors of
//! recede climb over a limit at each request instead, see `limit`; with `fill` both end in the same shares.

mod masks;
mod summary;
mod truncate;

use super::context::{PlanContext, SummaryInput, Uncounted};
use super::fill::Filling;
use super::masked::Masking;
use super::outcome::{Outcome, Unmasked};
use super::planner::Planner;
use super::replayed::Replayed;
use super::state::State;
use super::step::Step;
use crate::policy::{Boundary, Goal, Policy, Requests};

impl Planner<'_> {
    pub(super) fn publish(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let raw = Masking::default();
        Ok(match self.policy.goal {
            Goal::Mask => self.mask_alone(),
            Goal::Summarize => self.summarize(raw, summary, |_| true).unwrap_or_else(|raw| self.masked(raw)),
            Goal::Truncate => self.truncate(raw),
            Goal::Reduce => return self.reduce_at_once(summary),
        })
    }

    /// Replays a session: each request is truncated, or sends the view of its state.
    pub(super) fn replay_goal(self, requests: &[usize], replayed: Replayed) -> Replayed {
        match self.policy.goal {
            Goal::Truncate => self.replay_truncated(requests, replayed),
            _ => self.replay(requests, replayed),
        }
    }

    /// In this order: raw, masked up to the boundary, up to the window, up to the newest turn, with cut results, then the later
    /// stages.
    fn reduce_at_once(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let (policy, raw) = (self.policy, Masking::default());
        let raw_cost = self.cost(&raw);
        if policy.is_off || self.sends_raw(raw_cost) {
            return Ok(self.masked(raw));
        }
        let masks = !policy.design.skips_masks;
        let holds_pairs = self.holds_pairs(|_| true);
        let is_answer = |masking: &Masking| holds_pairs && self.fits(self.cost(masking));
        let mut masking = Masking::default();
        for attempt in if masks { self.maskings() } else { vec![] } {
            masking = attempt;
            if is_answer(&masking) {
                return Ok(self.masked(masking));
            }
        }
        if self.fits(raw_cost) {
            return Ok(self.masked(raw));
        }
        if masks && policy.limit.fill.is_some() {
            masking = self.mask_window(&masking).unwrap_or(masking);
        }
        if !is_answer(&masking) && policy.limit.clip_results.is_some() {
            masking = self.clip_window(&masking)?;
        }
        if is_answer(&masking) {
            return Ok(self.masked(masking));
        }
        Ok(match policy.limit.fill.zip(self.max_cost()) {
            Some((_, max)) => return self.fill(&masking, summary, max),
            None => match self.summarize(masking, summary, |cost| self.fits(cost)) {
                Ok(outcome) => outcome,
                Err(masking) => self.truncate(masking),
            },
        })
    }

    /// The maskings that stage 1 tries: up to the boundary, and if that is rounded, up to the unrounded one.
    fn maskings(&self) -> Vec<Masking> {
        if self.policy.terms.boundary.remembers() {
            return vec![self.fold()];
        }
        let whole = self.mask();
        let (older_end, least) = (self.older_end, self.policy.text.least_in_all);
        let rounded = self.policy.rounded(older_end);
        let stepped = (rounded != older_end).then(|| whole.clone().up_to(rounded, least));
        stepped.into_iter().chain([whole.up_to(older_end, least)]).collect()
    }

    /// Masking up to a boundary that depends on the requests.
    fn fold(&self) -> Masking {
        if self.older_end == 0 {
            return Masking::default(); // nothing was old at any request
        }
        self.state().masking()
    }

    /// Stage 1 alone: up to the boundary, or to the window where a limit asks for that.
    fn mask_alone(&self) -> Outcome {
        let mut maskings = self.maskings().into_iter();
        let rounded = maskings.next().unwrap_or_default();
        let is_over = self.max_cost().is_some_and(|max| self.cost(&rounded) > max);
        let whole = if is_over { maskings.next() } else { None };
        self.masked(whole.unwrap_or(rounded))
    }

    /// The pair invariant. Stages keep pairs whole, so only orphans of the input can break it, under `strict_pairs`.
    pub(super) fn holds_pairs(&self, keeps: impl Fn(usize) -> bool) -> bool {
        !self.policy.design.strict_pairs || !self.orphans.iter().any(|message| keeps(*message))
    }

    /// Whether a history of this cost is sent as it is, for its size alone. A boundary that depends on earlier requests pays off within
    /// the budget too.
    fn sends_raw(&self, raw_cost: usize) -> bool {
        let masks_within_budget = !self.policy.design.skips_masks && self.policy.terms.boundary.remembers();
        self.fits(raw_cost) && !masks_within_budget
    }

    /// Why nothing is masked, where that does not depend on results.
    pub(super) fn not_masked(&self) -> Option<Unmasked> {
        let Policy { goal, limit, design, is_off, .. } = self.policy;
        let is_below_budget =
            || *goal == Goal::Reduce && !limit.is_kept && self.sends_raw(self.cost(&Masking::default()));
        match () {
            () if *is_off || design.skips_masks => Some(Unmasked::default()),
            () => is_below_budget().then_some(Unmasked::BELOW_TRIGGER),
        }
    }

    /// The view of a history over its budget, of which these results are masked, by shares of that.
    fn fill(&self, masking: &Masking, summary: &SummaryInput, max: usize) -> Result<Outcome, Uncounted> {
        let hide = |has_failed: bool| {
            let failed_summaries = if has_failed { vec![self.end] } else { vec![] };
            let requests = &Requests { failed_summaries, ..self.requests.clone() };
            let context = PlanContext { requests, ..self.context() };
            let mut state = State::of_masking(context, self.end, masking);
            let before = Step { cost: state.sums.cost, boundary: masking.boundary, ..Step::default() };
            let step = {
                let filling = Filling::of(&state, context, self.end, max, &before, false)?;
                let kept = filling.in_window(state.results.window.start(context), &[]);
                let room = filling.room(&kept);
                filling.step(filling.with_units(kept, &room), before)?
            };
            state.take(context, &step);
            Some(state)
        };
        let holds_pairs = |state: &State| self.holds_pairs(|message| !state.gone.hidden.has(message));
        let mut state = hide(*summary == SummaryInput::Failed);
        if !state.as_ref().is_none_or(holds_pairs) {
            state = hide(true);
        }
        match state {
            Some(state) => self.view(&state, summary, false),
            None => Ok(self.truncate(masking.clone())),
        }
    }
}

impl State {
    /// Whether a boundary moves whose rule asks for no price: at each request, or by the size of the view.
    pub(super) fn moves_by_size(&self, boundary: Boundary, end: usize) -> bool {
        let Boundary::HighWater { chars, at_least } = boundary else { return true };
        self.chars_before(end) > chars && self.results.gain >= at_least
    }
}
