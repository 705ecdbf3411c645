//! The stages, each a function of Outline and Policy: the same Outline, Policy and summary give the same Plan.

mod boundary;
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
use crate::placeholder::{Facts, Form};
use crate::policy::{Goal, Policy};
use crate::source::Source;
use crate::turns::Turns;
pub use boundary::{Fold, FoldState, Move, Peek};
pub use decide::{Answer, Attempt, Limits, decide};
use mask::Masking;
pub use replay::{Request, Sent, replay, requests};
use std::collections::HashMap;
use std::ops::Range;
use summarize::built_in_summary;
pub use truncate::{Keeping, Landmarks};
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

/// One observation that is masked, or cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    /// The result.
    pub result: u32,
    /// What is put in its place.
    pub form: Form,
    /// Characters that this removes.
    pub removed: usize,
}

impl Masked {
    /// The range of its result alone.
    #[must_use]
    pub fn results(&self) -> Range<usize> {
        self.result as usize..self.result as usize + 1
    }

    /// Whether it is only cut.
    #[must_use]
    pub fn is_clipped(&self) -> bool {
        matches!(self.form, Form::Clip { .. })
    }
}

/// A message of the task that is cut to its share of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The message.
    pub message: usize,
    /// What it is cut to.
    pub clip: Clip,
    /// What it costs then.
    pub cost: usize,
}

/// A summary in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its decoded text, first line included.
    pub text: Vec<u8>,
    /// The role of its message.
    pub role: String,
    /// It stands before the first kept message from this one on.
    pub before: usize,
    /// The shape of its message.
    pub shape: Shape,
}

/// What to do with a history.
#[derive(Debug, Default)]
pub struct Plan {
    /// The stage that gave the answer.
    pub stage: Option<Stage>,
    /// Observations that are masked, in order.
    pub masked: Vec<Masked>,
    /// The place of the boundary in the sequence of observations.
    pub boundary: usize,
    /// How it came there, where it depends on earlier requests.
    pub moves: Vec<Move>,
    /// Which messages stay; None for all.
    pub kept: Option<Vec<bool>>,
    /// The kept message that is cut, if one is.
    pub cut: Option<Cut>,
    /// Where the task ends; 0 where nobody asked for it.
    pub task_end: usize,
    /// The summary, if there is one.
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

/// What a summary was asked for, or given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummaryInput {
    /// Nothing yet.
    NotAsked,
    /// It could not be made: plan without stage 2.
    Failed,
    /// Its decoded text, and its cost where that is not its characters.
    Given(Vec<u8>, Option<usize>),
}

/// The plan, or the question that must be answered first.
#[derive(Debug)]
pub enum Outcome {
    /// Done.
    Plan(Box<Plan>),
    /// A summary is wanted.
    AskSummary {
        /// Messages to be summarized.
        dropped: Vec<usize>,
        /// The summary that an earlier reduction left.
        previous: Option<Vec<u8>>,
        /// The built-in summary.
        built_in: Vec<u8>,
    },
    /// The costs of these texts are wanted.
    AskCosts(Vec<Vec<u8>>),
}

/// What messages and observations cost, where that is not their characters.
#[derive(Debug, Default)]
pub struct Costs {
    /// Of each message without its observations.
    pub messages: Vec<usize>,
    /// Of each observation, raw and masked.
    pub observations: Vec<(usize, usize)>,
    /// Of texts that were asked for.
    pub texts: HashMap<Vec<u8>, usize>,
}

/// Texts whose cost must be known first.
#[derive(Debug, PartialEq, Eq)]
pub struct Uncounted(pub Vec<Vec<u8>>);

impl Costs {
    /// Of an observation, raw and as it is masked or cut.
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

/// What every rule may look at.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The history.
    pub outline: &'a Outline,
    /// Its text.
    pub source: &'a dyn Source,
    /// The parameters.
    pub policy: &'a Policy,
    /// What messages cost, where that is not their characters.
    pub costs: Option<&'a Costs>,
    /// The pairs of the history.
    pub pairs: &'a Pairs,
    /// Its turns.
    pub turns: &'a Turns,
}

/// All that the stages share.
struct Planner<'a> {
    /// How many messages there are: all, or in a replay those that came before a request.
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

    fn ground(&self) -> Ground<'_> {
        let Planner { outline, source, policy, costs, pairs, turns, .. } = self;
        Ground { outline, source: *source, policy, costs: *costs, pairs, turns }
    }

    fn plan(&self, summary: &SummaryInput) -> Result<Outcome, Uncounted> {
        let raw = Masking::default();
        Ok(match self.policy.goal {
            Goal::Mask => {
                let first = self.maskings().into_iter().next();
                self.masked(first.unwrap_or_default())
            }
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

    /// The maskings that stage 1 tries: up to the boundary, and where that is rounded, up to the unrounded one.
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

    fn masked(&self, masking: Masking) -> Outcome {
        let is_masked = masking.masked.iter().any(|masked| !masked.is_clipped());
        self.done(is_masked.then_some(Stage::Masking), masking)
    }

    /// Masking up to a boundary that depends on the requests that were made: before each run, and now, if the
    /// history does not end with one.
    fn fold(&self) -> Masking {
        let mut fold = Fold::default();
        let ground = self.ground();
        for start in &self.turns.starts {
            fold.request(ground, *start as usize, false);
        }
        if self.outline.messages.last().is_some_and(|message| !message.is_agent_made) {
            fold.request(ground, self.end, true);
        }
        fold.into_masking()
    }

    /// The pair invariant. Stages keep pairs whole, so only old orphans can break it, and only if pairs are strict.
    fn holds_pairs(&self, keeps: impl Fn(usize) -> bool) -> bool {
        !self.policy.strict_pairs || !self.orphans.iter().any(|message| keeps(*message))
    }

    fn fits(&self, cost: usize) -> bool {
        self.policy.max_cost.is_none_or(|max| cost <= max)
    }

    /// What the whole history costs with these observations masked.
    fn cost(&self, masking: &Masking) -> usize {
        match self.costs {
            None => self.chars - masking.removed,
            Some(_) => self.view_cost(|_| true, masking).0,
        }
    }

    /// What the history costs that cost so much before this was masked.
    fn cost_after(&self, cost: usize, masked: &Masked) -> usize {
        let (before, after) = self.costs.map_or((masked.removed, 0), |costs| costs.of(masked));
        cost.saturating_sub(before).saturating_add(after)
    }

    /// What a text costs that the history does not have: its characters, or what the caller has counted.
    fn cost_of(&self, chars: usize, text: impl FnOnce() -> Vec<u8>) -> Result<usize, Uncounted> {
        let Some(costs) = self.costs else { return Ok(chars) };
        let text = text();
        costs.texts.get(&text).copied().ok_or_else(|| Uncounted(vec![text]))
    }

    /// What the kept messages cost, and their characters, with these observations masked.
    fn view_cost(&self, keeps: impl Fn(usize) -> bool, masking: &Masking) -> (usize, usize) {
        let messages = (0..self.end).filter(|message| keeps(*message));
        let message_of = |masked: &&Masked| self.outline.results[masked.result as usize].message as usize;
        let masked = masking.masked.iter().filter(|masked| keeps(message_of(masked)));
        view_cost(self.ground(), messages, masked)
    }

    /// All messages stay.
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

/// The masked ones of these observations.
#[must_use]
pub fn masked_in(masked: &[Masked], results: Range<usize>) -> &[Masked] {
    let start = masked.partition_point(|masked| (masked.result as usize) < results.start);
    let end = masked.partition_point(|masked| (masked.result as usize) < results.end);
    &masked[start..end]
}

/// What these messages cost, and their characters, with these of their observations masked.
pub fn view_cost<'a>(
    ground: Ground,
    messages: impl Iterator<Item = usize> + Clone,
    masked: impl Iterator<Item = &'a Masked> + Clone,
) -> (usize, usize) {
    let Ground { outline, policy, costs, .. } = ground;
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

/// The facts that a placeholder may name of one observation; `turns` where it names the turn.
#[must_use]
pub fn facts<'a>(outline: &'a Outline, pairs: &Pairs, turns: Option<&Turns>, result: usize) -> Facts<'a> {
    facts_of_pair(outline, pairs.call_of(result), |message| turns.map_or(0, |turns| turns.at(message)), result)
}

/// [`facts`] of a result that belongs to this call, where `turn_at` gives the turn of a message.
#[must_use]
pub fn facts_of_pair(
    outline: &Outline,
    call: Option<usize>,
    turn_at: impl Fn(usize) -> usize,
    result: usize,
) -> Facts<'_> {
    let seen = &outline.results[result];
    let call = call.map(|call| &outline.calls[call]);
    let of_call = call.map(|call| call.message as usize).filter(|message| outline.messages[*message].is_agent_made);
    Facts {
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
