//! Results of planning: a Plan, or a request for an input that it needs.

use crate::clip::Clip;
use crate::outline::Shape;
use crate::pairs::Pairs;
use crate::placeholder::Form;
use crate::policy::{Boundary, Policy};
use crate::turns::Turns;
use std::ops::Range;

/// The stage that gave the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Masking,
    Summarization,
    Fallback,
}

/// The needs of a request over the trigger or the limit, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Masks alone, if those.
    Masks,
    Cuts,
    Summary,
    /// Messages are dropped without a summary.
    Truncation,
}

impl Need {
    pub(crate) fn name(self) -> &'static str {
        ["masks", "cuts", "summary", "truncation"][self as usize]
    }
}

/// A masked or cut observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    pub result: u32,
    pub form: Form,
    /// Characters removed.
    pub removed: usize,
}

impl Masked {
    /// The range of its result alone.
    pub(crate) fn results(&self) -> Range<usize> {
        self.result as usize..self.result as usize + 1
    }

    /// Whether its text is gone: it is neither cut nor that of an earlier result.
    pub fn is_masked(&self) -> bool {
        !matches!(self.form, Form::Clip(_) | Form::Arrival(_) | Form::Restored { .. })
    }

    /// Whether it is cut, not masked.
    pub(crate) fn is_clipped(&self) -> bool {
        matches!(self.form, Form::Clip(_) | Form::Arrival(_))
    }
}

/// The masked observations in a range.
pub(crate) fn masked_in(masked: &[Masked], results: Range<usize>) -> &[Masked] {
    let start = masked.partition_point(|masked| (masked.result as usize) < results.start);
    let end = masked.partition_point(|masked| (masked.result as usize) < results.end);
    &masked[start..end]
}

/// Two lists of changed observations as one, each in order.
pub(crate) fn merged(mut one: Vec<Masked>, other: Vec<Masked>) -> Vec<Masked> {
    if one.is_empty() || other.is_empty() {
        return if one.is_empty() { other } else { one };
    }
    one.extend(other);
    one.sort_by_key(|one| one.result);
    one
}

/// Changes with others over them: of two changes of a result the later is shown.
pub(crate) fn shown(changes: Vec<Masked>, later: Vec<Masked>) -> Vec<Masked> {
    let mut all = merged(later, changes); // stable: the later comes first
    all.dedup_by_key(|one| one.result);
    all
}

/// Observations that are masked up to a boundary.
#[derive(Debug, Clone, Default)]
pub(super) struct Masking {
    pub masked: Vec<Masked>,
    pub removed: usize,
    pub boundary: usize,
    pub boundary_before: usize,
    /// Moves of the boundary, if it depends on earlier requests.
    pub moves: Vec<Move>,
}

/// Why results are raw where nothing is masked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unmasked {
    /// Results outside of the window.
    pub outside_window: usize,
    /// How many of them could be masked.
    pub maskable: usize,
    /// Whether the history is below the trigger, or the budget, above which masks begin.
    pub is_below_trigger: bool,
    /// Whether the boundary moves in steps, and the first is not full.
    pub is_below_step: bool,
}

impl Unmasked {
    /// The facts of a history for which masks have not begun.
    pub(crate) const BELOW_TRIGGER: Self =
        Unmasked { outside_window: 0, maskable: 0, is_below_trigger: true, is_below_step: false };

    /// The reasons of a history with so many results outside of the window, of which so many could be masked.
    pub(crate) fn of(policy: &Policy, outside_window: usize, maskable: usize, is_below_trigger: bool) -> Self {
        let is_below_trigger = is_below_trigger && outside_window > 0;
        let is_stepped = matches!(policy.terms.boundary, Boundary::Stepped(_));
        let is_below_step = is_stepped && maskable > 0 && !is_below_trigger;
        Unmasked { outside_window, maskable, is_below_trigger, is_below_step }
    }
}

impl Masking {
    /// Only the part before the boundary; nothing if that removes fewer than `min_removed` characters.
    pub(super) fn up_to(mut self, boundary: usize, min_removed: usize) -> Self {
        let count = self.masked.partition_point(|masked| (masked.result as usize) < boundary);
        self.masked.truncate(count);
        self.removed = self.masked.iter().map(|masked| masked.removed).sum();
        if self.removed < min_removed {
            return Masking::default();
        }
        Masking { boundary, ..self }
    }

    pub(super) fn holds(&self, result: usize) -> bool {
        self.masked.binary_search_by_key(&result, |masked| masked.result as usize).is_ok()
    }

    pub(super) fn push(&mut self, masked: Masked) {
        self.removed += masked.removed;
        self.masked.push(masked);
    }

    pub(super) fn sorted(mut self) -> Self {
        self.masked.sort_unstable_by_key(|masked| masked.result);
        self
    }
}

/// A move of the boundary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Move {
    /// The request before which it moved, from 0.
    pub request: usize,
    pub masked: usize,
    /// Characters that it removed.
    pub removed: usize,
    /// Characters after the first change that the previous request had sent, and that were written to the cache again.
    pub written_again: usize,
}

/// A message of the task, cut to its share of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    pub message: usize,
    pub clip: Clip,
    /// The cost after the cut.
    pub cost: usize,
}

/// A summary and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The decoded text, including the first line.
    pub text: Vec<u8>,
    /// The role of its message.
    pub role: String,
    /// The summary is inserted before the first kept message from this one on.
    pub before: usize,
    /// The message that has the text as its last block; None: the summary is a message of its own.
    pub joins: Option<usize>,
    /// The shape of its message.
    pub shape: Shape,
}

/// The decisions: what to mask, drop and insert.
#[derive(Debug, Default)]
pub struct Plan {
    /// The stage that gave the answer.
    pub stage: Option<Stage>,
    pub masked: Vec<Masked>,
    /// The boundary: a place in the sequence of observations.
    pub boundary: usize,
    /// The boundary at the previous request, for pins.
    pub boundary_before: usize,
    /// The moves, if it depends on earlier requests.
    pub moves: Vec<Move>,
    /// Whether each message is kept; None: all are.
    pub kept: Option<Vec<bool>>,
    /// The kept messages of the task that are cut, in order.
    pub cuts: Vec<Cut>,
    pub cut_chars: usize,
    pub summary: Option<Summary>,
    /// The request that made it, by the messages before that, and its key.
    pub standing: Option<(usize, u64)>,
    /// Why nothing is masked; empty where something is.
    pub unmasked: Unmasked,
    /// Whether the view is within the limit or budget; None without one.
    pub within_limit: Option<bool>,
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
    pub fn keeps(&self, message: usize) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept[message])
    }

    /// The cut of a message.
    pub fn cut_of(&self, message: usize) -> Option<&Cut> {
        let place = self.cuts.binary_search_by_key(&message, |cut| cut.message).ok()?;
        Some(&self.cuts[place])
    }

    /// Whether the view differs from the input.
    pub fn changes(&self) -> bool {
        !self.masked.is_empty()
            || !self.cuts.is_empty()
            || self.summary.is_some()
            || self.kept.as_ref().is_some_and(|kept| kept.contains(&false))
    }
}

/// The state of the summary.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum SummaryInput {
    /// Not requested yet.
    #[default]
    NotAsked,
    /// Failed: plan without stage 2.
    Failed,
    /// The decoded text, and its cost if that is not its characters.
    Given(Vec<u8>, Option<usize>),
    /// The decoded texts that are known, by their keys.
    Known(Vec<(u64, Vec<u8>)>),
}

/// What a summary is asked for.
#[derive(Debug)]
pub struct SummaryRequest {
    pub dropped: Vec<usize>,
    /// The summary of an earlier reduction.
    pub previous: Option<Vec<u8>>,
    pub built_in: Vec<u8>,
    /// The request that made it, by the messages before that, and its key; None if it is of no request.
    pub standing: Option<(usize, u64)>,
    /// Those of the messages of which no known text tells, and the key of the newest one that is known.
    pub untold: Vec<usize>,
    /// See `untold`.
    pub known: Option<u64>,
}

/// The plan, or an input that it needs.
#[derive(Debug)]
pub enum Outcome {
    Plan(Box<Plan>),
    AskSummary(Box<SummaryRequest>),
    /// The costs of these texts are needed.
    AskCosts(Vec<Vec<u8>>),
}
