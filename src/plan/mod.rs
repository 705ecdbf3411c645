//! The stages, and their order. A Plan is a function of Outline, Policy, costs and summary.

mod arrival;
mod boundary;
mod cache;
mod context;
mod cost_bound;
mod fill;
mod hidden;
mod hiding;
mod layout;
mod limit;
mod mask;
mod masked;
mod masking;
mod old_turns;
mod outcome;
mod pins;
mod planner;
mod references;
mod replay;
mod state;
mod step;
mod summarize;
mod truncate;
mod turn_spans;
mod units;
mod view;
mod window;

use crate::outline::Outline;
use crate::policy::{Goal, Limit, Policy, Requests};
use crate::source::Source;
pub(crate) use arrival::{arrive, with_arrivals};
pub(crate) use cache::{Cache, Rule, Sent, Served};
pub use context::{Costs, Given, SummaryInput, facts};
pub(crate) use context::{PlanContext, Uncounted, facts_of_pair};
pub(crate) use hidden::Standing;
pub(crate) use layout::{Item, Layout, Part, Summary};
use masked::Masking;
pub use masked::{Cut, Masked};
pub(crate) use masked::{Move, masked_in, shown};
pub(crate) use outcome::{Need, SummaryRequest, Unmasked};
pub use outcome::{Outcome, Plan, Stage};
pub(crate) use pins::{BlockPlace, Wanted, blocks_between, marks_in_view, masked_at, pins, previous_request};
use planner::Planner;
pub(crate) use replay::{NEVER, Replayed};
pub use replay::{Request, replay, requests};
pub(crate) use state::State;
pub(crate) use step::Step;
pub(crate) use summarize::{SummaryForm, SummaryWriter, begins_with_summary, leading_system_messages};
use window::Window;

pub fn plan(outline: &Outline, source: &dyn Source, policy: &Policy, given: Given<'_>) -> Outcome {
    if *given.summary == SummaryInput::Failed
        && policy.limit.asks_summary
        && (policy.limit.is_kept || policy.terms.summaries.is_some())
    {
        // The view of the same history without a summarizer.
        let mut without = policy.clone();
        without.limit.asks_summary = false;
        without.limit.summary_chars = Limit::default().summary_chars;
        without.terms.summaries = None;
        return plan(outline, source, &without, Given { summary: &SummaryInput::NotAsked, ..given });
    }
    let planner = Planner::of(outline, source, policy, given);
    let mut outcome = planner.plan(given.summary).unwrap_or_else(|Uncounted(texts)| Outcome::AskCosts(texts));
    if let Outcome::Plan(plan) = &mut outcome {
        if policy.terms.pins_boundary && !policy.remembers() {
            plan.boundary_before = planner.boundary_before();
        }
        (plan.orphans, plan.pairs, plan.turns) = (planner.orphans, planner.pairs, planner.turns);
    }
    outcome
}

/// The number of observations that are old after this many messages.
pub(crate) fn older_end(context: PlanContext, messages: usize) -> usize {
    let PlanContext { outline, policy, pairs, turns, .. } = context;
    Window::of(outline, policy, pairs, turns, messages).older_end
}

impl Planner<'_> {
    fn plan(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let raw = Masking::default();
        let policy = self.policy;
        let keeps_limit = policy.goal == Goal::Mask || (policy.goal == Goal::Reduce && policy.limit.is_kept);
        if !policy.is_off && keeps_limit && (policy.remembers() || !self.related.is_empty()) {
            return self.make_requests(summary);
        }
        Ok(match self.policy.goal {
            Goal::Mask => self.mask_alone(),
            Goal::Summarize => self.summarize(raw, summary, |_| true).unwrap_or_else(|raw| self.done(None, raw)),
            Goal::Truncate => Outcome::Plan(Box::new(self.truncate(raw))),
            Goal::Reduce => return self.reduce(summary),
        })
    }

    /// In this order: raw, masked up to the boundary, up to the window, up to the newest turn, with cut results, then the later
    /// stages.
    fn reduce(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let (policy, raw) = (self.policy, Masking::default());
        let raw_cost = self.cost(&raw);
        if policy.is_off || policy.sends_raw(self.max_cost(), raw_cost) {
            return Ok(self.done(None, raw));
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
            return Ok(self.done(None, raw));
        }
        if masks && policy.limit.fill.is_some() {
            masking = self.mask_window(&masking).unwrap_or(masking);
        }
        if !is_answer(&masking) && policy.limit.clip_results.is_some() {
            masking = self.clip(&masking)?;
        }
        if is_answer(&masking) {
            return Ok(self.masked(masking));
        }
        Ok(match policy.limit.fill.zip(self.max_cost()) {
            Some((_, max)) => return self.fill(&masking, summary, max),
            None => match self.summarize(masking, summary, |cost| self.fits(cost)) {
                Ok(outcome) => outcome,
                Err(masking) => Outcome::Plan(Box::new(self.truncate(masking))),
            },
        })
    }

    /// The maskings that stage 1 tries: up to the boundary, and if that is rounded, up to the unrounded one.
    fn maskings(&self) -> Vec<Masking> {
        if self.policy.terms.boundary.remembers() {
            return vec![self.fold()];
        }
        let whole = self.mask();
        let (older_end, least) = (self.window.older_end, self.policy.design.min_masked_chars);
        let rounded = self.policy.rounded(older_end);
        let stepped = (rounded != older_end).then(|| whole.clone().up_to(rounded, least));
        stepped.into_iter().chain([whole.up_to(older_end, least)]).collect()
    }

    /// Stage 1 alone: up to the boundary, or to the window where a limit asks for that.
    fn mask_alone(&self) -> Outcome {
        let mut maskings = self.maskings().into_iter();
        let rounded = maskings.next().unwrap_or_default();
        let is_over = self.max_cost().is_some_and(|max| self.cost(&rounded) > max);
        let whole = if is_over { maskings.next() } else { None };
        self.masked(whole.unwrap_or(rounded))
    }

    fn masked(&self, masking: Masking) -> Outcome {
        let is_masked = masking.masked.iter().any(Masked::is_masked);
        self.done(is_masked.then_some(Stage::Masking), masking)
    }

    /// The view after the requests of the history, one before each run and one now unless the history ends with a run.
    fn make_requests(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let is_small = self.window.older_end == 0 && self.fits(self.cost(&Masking::default()));
        if is_small && self.policy.terms.summaries.is_none() {
            return Ok(self.masked(Masking::default())); // nothing was old at any request, nor over the limit
        }
        let state = self.state();
        let is_below_trigger = !state.has_begun(self.context(), self.end);
        self.view(&state, summary, is_below_trigger)
    }

    /// The state after all requests.
    fn state(&self) -> State {
        let (context, mut state) = (self.context(), State::default());
        for start in &self.turns.starts {
            state.request(context, *start as usize, false);
        }
        if self.ends_with_request() {
            state.request(context, self.end, true);
        } else {
            state.answer(context, self.end);
        }
        state
    }

    /// Masking up to a boundary that depends on the requests.
    fn fold(&self) -> Masking {
        if self.window.older_end == 0 {
            return Masking::default(); // nothing was old at any request
        }
        self.state().masking()
    }

    /// The view of a history over its budget, of which these results are masked, by shares of that.
    fn fill(&self, masking: &Masking, summary: &SummaryInput, max: usize) -> Result<Outcome, Uncounted> {
        let hide = |has_failed: bool| {
            let failed_summaries = if has_failed { vec![self.end] } else { vec![] };
            let requests = &Requests { failed_summaries, ..self.requests.clone() };
            let context = PlanContext { requests, ..self.context() };
            let mut state = State::of_masking(context, self.end, masking);
            let before = Step { cost: state.cost, boundary: masking.boundary, ..Step::default() };
            let step = state.hide(context, self.end, max, before)?;
            state.take(context, &step);
            Some(state)
        };
        let holds_pairs = |state: &State| self.holds_pairs(|message| !state.hidden.has(message));
        let mut state = hide(*summary == SummaryInput::Failed);
        if !state.as_ref().is_none_or(holds_pairs) {
            state = hide(true);
        }
        match state {
            Some(state) => self.view(&state, summary, false),
            None => Ok(Outcome::Plan(Box::new(self.truncate(masking.clone())))),
        }
    }

    /// Whether a request is made now: the history does not end with an answer.
    fn ends_with_request(&self) -> bool {
        self.outline.messages.last().is_some_and(|message| !message.is_agent_made)
    }

    /// The previous place of a boundary that depends on no request.
    fn boundary_before(&self) -> usize {
        let end = previous_request(self.outline, &self.turns).unwrap_or(0);
        self.policy.rounded(older_end(self.context(), end))
    }
}
