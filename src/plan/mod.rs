//! The stages, and their order. A Plan is a function of Outline, Policy, costs and summary.

mod arrival;
mod boundary;
mod cache;
mod context;
mod cost_bound;
mod fill;
mod hidden;
mod hiding;
mod judge;
mod keep;
mod layout;
mod limit;
mod mask;
mod masked;
mod old_turns;
mod outcome;
mod pins;
mod planner;
mod published;
mod reasoning;
mod references;
mod replay;
mod replayed;
mod sent;
mod state;
mod stay;
mod step;
mod summarize;
mod turn_spans;
mod units;
mod view;
mod voided;
mod weighed;
mod window;

use crate::outline::Outline;
use crate::policy::{Goal, Limit, Policy};
use crate::source::Source;
use crate::stop::check;
pub(crate) use arrival::{arrive, with_arrivals};
pub(crate) use cache::{Cache, Rule, Sent, Served};
pub use context::{Costs, Given, Remembered, SummaryInput, facts};
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
pub use replay::{Period, Request, replay, requests};
pub(crate) use replayed::{HiddenChange, NEVER, Replayed};
pub(crate) use sent::{Alone, START, mixed, reasoning_from, texts_of, with_form};
pub use sent::{SentView, SentViews};
pub(crate) use state::State;
pub(crate) use step::{Point, Step};
pub(crate) use summarize::{SummaryForm, SummaryWriter, begins_with_summary, leading_system_messages};
pub(crate) use window::older_end;

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
        if let Some(sent) = given.sent.filter(|_| policy.terms.verifies_reasoning) {
            plan.judge_reasoning(outline, policy, sent);
        }
    }
    outcome
}

impl Planner<'_> {
    fn plan(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let policy = self.policy;
        let is_of_requests = policy.goal == Goal::Mask || (policy.goal == Goal::Reduce && policy.limit.is_kept);
        if !policy.is_off && is_of_requests && (policy.remembers() || !self.related.is_empty()) {
            return self.make_requests(summary);
        }
        self.publish(summary)
    }

    /// The view after the requests of the history, one before each run and one now unless the history ends with a run.
    fn make_requests(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let is_small = self.older_end == 0 && self.fits(self.cost(&Masking::default()));
        if is_small && self.policy.terms.summaries.is_none() {
            return Ok(self.masked(Masking::default())); // nothing was old at any request, nor over the limit
        }
        let state = self.state();
        let is_below_trigger = !state.has_begun(self.context(), self.end);
        self.view(&state, summary, is_below_trigger)
    }

    /// The state after all requests.
    pub(super) fn state(&self) -> State {
        let (context, mut state) = (self.context(), State::default());
        for start in &self.turns.starts {
            check();
            state.request(context, *start as usize, Point::Past);
        }
        if self.ends_with_request() {
            state.request(context, self.end, Point::Now);
        } else {
            state.answer(context, self.end);
        }
        state
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
