//! The stages. A Plan is a function of Outline, Policy, costs and summary.

mod boundary;
mod cache;
mod decide;
mod fill;
mod hybrid;
mod mask;
mod optimum;
mod replay;
mod summarize;
mod truncate;
mod window;

use crate::clip::Clip;
use crate::outline::{Outline, Shape};
use crate::pairs::Pairs;
use crate::placeholder::{Form, ObservationFacts};
use crate::policy::{Goal, Policy};
use crate::source::Source;
use crate::turns::Turns;
pub use boundary::{Fold, FoldState, Move, Peek};
pub use cache::{Cache, Place, Rule, Served};
pub use decide::{Answer, Attempt, Limits, decide};
use mask::Masking;
pub use replay::{Request, Sent, replay, requests};
use std::collections::HashMap;
use std::ops::Range;
use summarize::built_in_summary;
use window::Window;

/// Which stage gave the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Stage 1.
    Masking,
    /// Stage 2.
    Summarization,
    /// Stage 3.
    Fallback,
}

/// A masked or cut observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    /// The result.
    pub result: u32,
    /// What replaces it.
    pub form: Form,
    /// Characters removed.
    pub removed: usize,
}

impl Masked {
    /// The range of its result alone.
    #[must_use]
    pub fn results(&self) -> Range<usize> {
        self.result as usize..self.result as usize + 1
    }

    /// Whether it is cut, not masked.
    #[must_use]
    pub fn is_clipped(&self) -> bool {
        matches!(self.form, Form::Clip { .. })
    }
}

/// A message of the task, cut to its share of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The message.
    pub message: usize,
    /// The cut.
    pub clip: Clip,
    /// Its cost after the cut.
    pub cost: usize,
}

/// A summary and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its decoded text, including the first line.
    pub text: Vec<u8>,
    /// The role of its message.
    pub role: String,
    /// It is inserted before the first kept message from this one on.
    pub before: usize,
    /// The shape of its message.
    pub shape: Shape,
}

/// What to mask, drop and insert.
#[derive(Debug, Default)]
pub struct Plan {
    /// The stage that gave the answer.
    pub stage: Option<Stage>,
    /// Masked observations, in order.
    pub masked: Vec<Masked>,
    /// The boundary: a place in the sequence of observations.
    pub boundary: usize,
    /// Its moves, if it depends on earlier requests.
    pub moves: Vec<Move>,
    /// Whether each message is kept; None: all are.
    pub kept: Option<Vec<bool>>,
    /// The kept message that is cut, if any.
    pub cut: Option<Cut>,
    /// Where the task ends; 0 where nobody asked for it.
    pub task_end: usize,
    /// The summary, if any.
    pub summary: Option<Summary>,
    /// Whether the view fits the budget.
    pub within_budget: bool,
    /// Orphans of the input.
    pub orphans: Vec<usize>,
    /// Characters before and after.
    pub chars: (usize, usize),
    /// The pairs of the input.
    pub pairs: Pairs,
    /// The turns of the input.
    pub turns: Turns,
}

impl Plan {
    /// Whether a message is in the view.
    #[must_use]
    pub fn keeps(&self, message: usize) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept[message])
    }

    /// Whether all messages stay, and none changes but for masks.
    #[must_use]
    pub fn only_masks(&self) -> bool {
        self.cut.is_none()
            && self.summary.is_none()
            && self.kept.as_ref().is_none_or(|kept| !kept.contains(&false))
            && !self.masked.iter().any(Masked::is_clipped)
    }

    /// Whether the view differs from the input.
    #[must_use]
    pub fn changes(&self) -> bool {
        !self.masked.is_empty()
            || self.cut.is_some()
            || self.summary.is_some()
            || self.kept.as_ref().is_some_and(|kept| kept.contains(&false))
    }
}

/// The state of the summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummaryInput {
    /// Not requested yet.
    NotAsked,
    /// Failed: plan without stage 2.
    Failed,
    /// Its decoded text, and its cost if that is not its characters.
    Given(Vec<u8>, Option<usize>),
}

/// The plan, or an input that it needs.
#[derive(Debug)]
pub enum Outcome {
    /// The plan.
    Plan(Box<Plan>),
    /// It needs a summary.
    AskSummary {
        /// Messages to summarize.
        dropped: Vec<usize>,
        /// The summary of an earlier reduction.
        previous: Option<Vec<u8>>,
        /// The built-in summary.
        built_in: Vec<u8>,
    },
    /// It needs the costs of these texts.
    AskCosts(Vec<Vec<u8>>),
}

/// Costs of messages and observations, if those are not their characters.
#[derive(Debug, Default)]
pub struct Costs {
    /// Of each message, without its observations.
    pub messages: Vec<usize>,
    /// Of each observation, raw and masked.
    pub observations: Vec<(usize, usize)>,
    /// Of texts that were requested.
    pub texts: HashMap<Vec<u8>, usize>,
}

/// Texts whose costs are needed first.
#[derive(Debug, PartialEq, Eq)]
pub struct Uncounted(pub Vec<Vec<u8>>);

impl Costs {
    /// Of an observation: raw, and as masked or cut.
    fn of(&self, masked: &Masked) -> (usize, usize) {
        let (raw, after) = self.observations[masked.result as usize];
        match masked.form {
            Form::Clip { cost, .. } => (raw, cost),
            _ => (raw, after),
        }
    }

    /// Of a whole history, unmasked.
    #[must_use]
    pub fn total(&self) -> usize {
        let observations = self.observations.iter().map(|(raw, _)| *raw);
        self.messages.iter().copied().chain(observations).fold(0, usize::saturating_add)
    }
}

/// Read-only inputs shared by all rules.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    /// The history.
    pub outline: &'a Outline,
    /// Its text.
    pub source: &'a dyn Source,
    /// The parameters.
    pub policy: &'a Policy,
    /// Costs, if those are not characters.
    pub costs: Option<&'a Costs>,
    /// The pairs of the history.
    pub pairs: &'a Pairs,
    /// Its turns.
    pub turns: &'a Turns,
}

/// Inputs and facts shared by the stages.
struct Planner<'a> {
    /// The number of messages: all, or in a replay those before a request.
    end: usize,
    outline: &'a Outline,
    source: &'a dyn Source,
    policy: &'a Policy,
    costs: Option<&'a Costs>,
    pairs: Pairs,
    turns: Turns,
    window: Window,
    orphans: Vec<usize>,
    /// Characters of the whole history.
    chars: usize,
}

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

impl<'a> Planner<'a> {
    fn of(outline: &'a Outline, source: &'a dyn Source, policy: &'a Policy, costs: Option<&'a Costs>) -> Self {
        let end = outline.messages.len();
        let pairs = Pairs::of(outline);
        let turns = Turns::of(outline);
        let orphans = pairs.orphans(outline);
        let window = Window::of(outline, policy, &pairs, &turns, end);
        let chars = outline.total_chars(policy.image_chars);
        Planner { end, outline, source, policy, costs, pairs, turns, window, orphans, chars }
    }

    fn context(&self) -> PlanContext<'_> {
        let Planner { outline, source, policy, costs, pairs, turns, .. } = self;
        PlanContext { outline, source: *source, policy, costs: *costs, pairs, turns }
    }

    fn plan(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let raw = Masking::default();
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
        let answer = decide(Limits::of(self.policy), raw_cost, self.holds_pairs(|_| true), |attempt| {
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
        Ok(match (answer, self.policy.fill_millionths.zip(self.policy.max_cost)) {
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
        let is_over = self.policy.max_cost.is_some_and(|max| self.cost(&rounded) > max);
        let whole = if is_over { maskings.next() } else { None };
        self.masked(whole.unwrap_or(rounded))
    }

    fn masked(&self, masking: Masking) -> Outcome {
        let is_masked = masking.masked.iter().any(|masked| !masked.is_clipped());
        self.done(is_masked.then_some(Stage::Masking), masking)
    }

    /// Masking up to a boundary that depends on the requests: one before each run, and one now unless the history ends with a run.
    fn fold(&self) -> Masking {
        let mut fold = Fold::default();
        let context = self.context();
        for start in &self.turns.starts {
            fold.request(context, *start as usize, false);
        }
        if self.outline.messages.last().is_some_and(|message| !message.is_agent_made) {
            fold.request(context, self.end, true);
        }
        fold.into_masking()
    }

    /// The pair invariant. Stages keep pairs whole, so only orphans of the input can break it, under `strict_pairs`.
    fn holds_pairs(&self, keeps: impl Fn(usize) -> bool) -> bool {
        !self.policy.strict_pairs || !self.orphans.iter().any(|message| keeps(*message))
    }

    fn fits(&self, cost: usize) -> bool {
        self.policy.max_cost.is_none_or(|max| cost <= max)
    }

    /// The cost of the whole history with these observations masked.
    fn cost(&self, masking: &Masking) -> usize {
        match self.costs {
            None => self.chars - masking.removed,
            Some(_) => self.view_cost(|_| true, masking).0,
        }
    }

    /// The cost after masking one more observation.
    fn cost_after(&self, cost: usize, masked: &Masked) -> usize {
        let (before, after) = self.costs.map_or((masked.removed, 0), |costs| costs.of(masked));
        cost.saturating_sub(before).saturating_add(after)
    }

    /// The cost of a new text: its characters, or what the caller has counted.
    fn cost_of(&self, chars: usize, text: impl FnOnce() -> Vec<u8>) -> Result<usize, Uncounted> {
        let Some(costs) = self.costs else { return Ok(chars) };
        let text = text();
        costs.texts.get(&text).copied().ok_or_else(|| Uncounted(vec![text]))
    }

    /// Cost and characters of the kept messages with these observations masked.
    fn view_cost(&self, keeps: impl Fn(usize) -> bool, masking: &Masking) -> (usize, usize) {
        let messages = (0..self.end).filter(|message| keeps(*message));
        let message_of = |masked: &&Masked| self.outline.results[masked.result as usize].message as usize;
        let masked = masking.masked.iter().filter(|masked| keeps(message_of(masked)));
        view_cost(self.context(), messages, masked)
    }

    /// A plan that keeps all messages.
    fn done(&self, stage: Option<Stage>, masking: Masking) -> Outcome {
        Outcome::Plan(Box::new(self.finish(stage, masking, None, None, None)))
    }

    fn finish(
        &self,
        stage: Option<Stage>,
        masking: Masking,
        kept: Option<Vec<bool>>,
        cut: Option<Cut>,
        summary: Option<(Summary, usize)>,
    ) -> Plan {
        let (mut cost, mut chars) = match &kept {
            None => (self.cost(&masking), self.chars - masking.removed),
            Some(kept) => self.view_cost(|message| kept[message], &masking),
        };
        if let Some(Cut { message, clip, cost: cut_cost }) = cut {
            let (whole_cost, whole_chars) = self.view_cost(|other| other == message, &masking);
            cost = cost.saturating_sub(whole_cost).saturating_add(cut_cost);
            chars = chars.saturating_sub(whole_chars).saturating_add(clip.chars());
        }
        let (summary, summary_cost) = summary.map_or((None, 0), |(summary, cost)| (Some(summary), cost));
        let summary_chars = summary.as_ref().map_or(0, |summary| crate::text::count_chars(&summary.text));
        Plan {
            stage,
            masked: masking.masked,
            boundary: masking.boundary,
            moves: masking.moves,
            kept,
            cut,
            summary,
            within_budget: self.fits(cost + summary_cost),
            chars: (self.chars, chars + summary_chars),
            ..Plan::default()
        }
    }
}

/// The masked observations in a range.
#[must_use]
pub fn masked_in(masked: &[Masked], results: Range<usize>) -> &[Masked] {
    let start = masked.partition_point(|masked| (masked.result as usize) < results.start);
    let end = masked.partition_point(|masked| (masked.result as usize) < results.end);
    &masked[start..end]
}

/// Cost and characters of these messages with these of their observations masked.
pub fn view_cost<'a>(
    context: PlanContext,
    messages: impl Iterator<Item = usize> + Clone,
    masked: impl Iterator<Item = &'a Masked> + Clone,
) -> (usize, usize) {
    let PlanContext { outline, policy, costs, .. } = context;
    let raw = messages
        .clone()
        .fold(0, |sum: usize, message| sum.saturating_add(outline.chars_of(message, policy.image_chars)));
    let chars = masked.clone().fold(raw, |sum, masked| sum - masked.removed);
    let Some(costs) = costs else { return (chars, chars) };
    let raw = messages.fold(0, |sum: usize, message| {
        let observations = outline.results_of(message).map(|result| costs.observations[result].0);
        observations.fold(sum.saturating_add(costs.messages[message]), usize::saturating_add)
    });
    let cost = masked.fold(raw, |sum, masked| {
        let (before, after) = costs.of(masked);
        (sum - before).saturating_add(after)
    });
    (cost, chars)
}

/// The values of a placeholder for an observation; `turns` if it names the turn.
#[must_use]
pub fn facts<'a>(outline: &'a Outline, pairs: &Pairs, turns: Option<&Turns>, result: usize) -> ObservationFacts<'a> {
    facts_of_pair(outline, pairs.call_of(result), |message| turns.map_or(0, |turns| turns.at(message)), result)
}

/// [`facts`] of a result of this call; `turn_at` returns the turn of a message.
#[must_use]
pub fn facts_of_pair(
    outline: &Outline,
    call: Option<usize>,
    turn_at: impl Fn(usize) -> usize,
    result: usize,
) -> ObservationFacts<'_> {
    let seen = &outline.results[result];
    let call = call.map(|call| &outline.calls[call]);
    let of_call = call.map(|call| call.message as usize).filter(|message| outline.messages[*message].is_agent_made);
    ObservationFacts {
        chars: seen.chars,
        is_json: !seen.frame.holds_text(),
        newlines: seen.newlines,
        images: seen.images as usize,
        turn: turn_at(of_call.unwrap_or(seen.message as usize)),
        number: outline.numbers.get(result).map_or(result + 1, |number| *number as usize),
        tool: call.and_then(|call| call.name).map_or(b"", |name| outline.name(name)),
        id: seen.id.map_or(b"", |id| outline.text(id)),
    }
}
