//! The stages, and their order. A Plan is a function of Outline, Policy, costs and summary.

mod agents;
mod arrival;
mod boundary;
mod cache;
mod context;
mod cost_bound;
mod decide;
mod fill;
mod fold;
mod hybrid;
mod limit;
mod mask;
mod masking;
mod outcome;
mod pins;
mod planner;
mod replay;
mod rewind;
mod step;
mod summarize;
mod truncate;
mod units;
mod view_summary;
mod window;

use crate::outline::Outline;
use crate::policy::{Goal, Policy};
use crate::source::Source;
pub use arrival::{arrived, cut_results, with_cuts};
pub use cache::Sent;
pub use cache::{Cache, CachePlace, Rule, Served};
pub use context::{Costs, PlanContext, Uncounted, facts, facts_of_pair, view_cost};
pub use decide::{Answer, Attempt, Limits, decide, is_within_budget};
pub use fold::{Fold, FoldState};
use outcome::Masking;
pub use outcome::{Cut, Masked, Move, Need, Outcome, Plan, Stage, Summary, SummaryInput, Unmasked, masked_in, shown};
pub use pins::{BlockPlace, Wanted, block_of, blocks_between, marks_in_view, masked_at, pins, previous_request};
use planner::Planner;
pub use replay::{NEVER, Replayed, Request, replay, requests};
pub use step::{Peek, Step};
pub use summarize::begins_with_summary;
use summarize::built_in_summary;
pub use units::{Charged, Paid, blocks_of};
use window::Window;

/// Plans a history.
#[must_use]
pub fn plan(
    outline: &Outline,
    source: &dyn Source,
    policy: &Policy,
    costs: Option<&Costs>,
    summary: &SummaryInput,
) -> Outcome {
    let planner = Planner::of(outline, source, policy, costs);
    let mut outcome = planner.plan(summary).unwrap_or_else(|Uncounted(texts)| Outcome::AskCosts(texts));
    if let Outcome::Plan(plan) = &mut outcome {
        if policy.pins_boundary && !policy.remembers() {
            plan.boundary_before = planner.boundary_before();
        }
        (plan.orphans, plan.pairs, plan.turns) = (planner.orphans, planner.pairs, planner.turns);
    }
    outcome
}

/// The built-in summary of some messages of a history.
#[must_use]
pub fn built_in(outline: &Outline, source: &dyn Source, policy: &Policy, messages: &[usize]) -> Vec<u8> {
    let planner = Planner::of(outline, source, policy, None);
    let earlier = planner.earlier_summaries();
    let previous = (!earlier.is_empty()).then(|| planner.body_of(&earlier));
    let objective_from = policy.fill_millionths.is_none().then_some(&earlier[..]);
    built_in_summary(&planner, messages, objective_from, previous.as_deref())
}

/// The number of observations that are old after this many messages.
#[must_use]
pub fn older_end(context: PlanContext, messages: usize) -> usize {
    let PlanContext { outline, policy, pairs, turns, .. } = context;
    Window::of(outline, policy, pairs, turns, messages).older_end
}

impl Planner<'_> {
    fn plan(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let raw = Masking::default();
        let policy = self.policy;
        let keeps_limit = policy.goal == Goal::Mask || (policy.goal == Goal::Reduce && policy.is_limit);
        if policy.enabled && policy.remembers() && keeps_limit {
            return self.keep_limit(summary);
        }
        Ok(match self.policy.goal {
            Goal::Mask => self.mask_alone(),
            Goal::Summarize => self.summarize(raw, summary, |_| true).unwrap_or_else(|raw| self.done(None, raw)),
            Goal::Truncate => Outcome::Plan(Box::new(self.truncate(raw))),
            Goal::Reduce => return self.reduce(summary),
        })
    }

    fn reduce(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let (mut masking, mut attempts, mut uncounted) = (Masking::default(), None, None);
        let raw_cost = self.cost(&masking);
        let answer = decide(Limits::of(self.policy, self.end), raw_cost, self.holds_pairs(|_| true), |attempt| {
            let next = match attempt {
                Attempt::Boundary | Attempt::Window => {
                    attempts.get_or_insert_with(|| self.maskings().into_iter()).next()?
                }
                Attempt::NewestTurn => self.mask_window(&masking)?,
                Attempt::Clipped => match self.clip(&masking) {
                    Ok(clipped) => clipped,
                    Err(texts) => {
                        uncounted = Some(texts);
                        return None;
                    }
                },
            };
            masking = next;
            Some(self.cost(&masking))
        });
        if let Some(texts) = uncounted {
            return Err(texts);
        }
        Ok(match (answer, self.policy.fill_millionths.zip(self.max_cost())) {
            (Answer::Raw, _) => self.done(None, Masking::default()),
            (Answer::Masked(_), _) => self.masked(masking),
            (Answer::Later, Some(shares)) => return self.fill(masking, summary, shares),
            (Answer::Later, None) => match self.summarize(masking, summary, |cost| self.fits(cost)) {
                Ok(outcome) => outcome,
                Err(masking) => Outcome::Plan(Box::new(self.truncate(masking))),
            },
        })
    }

    /// The maskings that stage 1 tries: up to the boundary, and if that is rounded, up to the unrounded one.
    fn maskings(&self) -> Vec<Masking> {
        if self.policy.boundary.remembers() {
            return vec![self.fold()];
        }
        let whole = self.mask();
        let (older_end, least) = (self.window.older_end, self.policy.min_masked_chars);
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
        let masking = self.with_agent_texts(masking);
        let is_masked = masking.masked.iter().any(Masked::is_masked);
        self.done(is_masked.then_some(Stage::Masking), masking)
    }

    /// The view after the requests of the history, one before each run and one now. Where one of them needs more than masks and cuts,
    /// a session must be replayed; in a session only the current one counts, and a later stage follows.
    fn keep_limit(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        if self.window.older_end == 0 && self.fits(self.cost(&Masking::default())) {
            return Ok(self.masked(Masking::default()));
        }
        let (context, mut was_over) = (self.context(), false);
        let mut fold = Fold::default();
        for start in &self.turns.starts {
            fold.request(context, *start as usize, false);
            was_over |= fold.is_over();
        }
        if self.ends_with_request() {
            fold.request(context, self.end, true);
        } else {
            fold.answer(context, self.end);
        }
        was_over &= !self.policy.is_session;
        if self.policy.goal == Goal::Mask || !(fold.is_over() || was_over) {
            let is_below_trigger = !fold.has_begun(context, self.end);
            return Ok(self.masked(Masking { is_below_trigger, ..fold.into_masking() }));
        }
        let shares = self.policy.fill_millionths.zip(self.max_cost());
        match shares.filter(|_| self.policy.is_session) {
            Some(shares) => {
                fold.exhaust(context, self.end);
                self.fill(fold.into_masking(), summary, shares)
            }
            None => Ok(Outcome::Replay),
        }
    }

    /// Masking up to a boundary that depends on the requests: one before each run, and one now unless the history ends with a run.
    fn fold(&self) -> Masking {
        if self.window.older_end == 0 {
            return Masking::default(); // nothing was old at any request
        }
        let mut fold = Fold::default();
        let context = self.context();
        for start in &self.turns.starts {
            fold.request(context, *start as usize, false);
        }
        if self.ends_with_request() {
            fold.request(context, self.end, true);
        }
        fold.into_masking()
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
