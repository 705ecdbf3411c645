//! Results of planning: a Plan, or a request for an input that it needs.

use super::layout::Layout;
use super::masked::{Cut, Masked, Move};
use crate::fingerprint::Digest;
use crate::pairs::Pairs;
use crate::policy::{Boundary, Policy};
use crate::turns::Turns;

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

/// Why results are raw where nothing is masked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unmasked {
    /// Results outside of the window.
    pub outside_window: usize,
    /// How many of them could be masked.
    pub maskable: usize,
    /// Whether the history is below the trigger, or the budget, above which masks begin.
    pub is_below_trigger: bool,
    /// Whether the boundary moves in steps, as it does where each change costs reasoning, and the first is not full.
    pub is_below_step: bool,
}

impl Unmasked {
    /// The facts of a history for which masks have not begun.
    pub(crate) const BELOW_TRIGGER: Self =
        Unmasked { outside_window: 0, maskable: 0, is_below_trigger: true, is_below_step: false };

    /// The reasons of a history with so many results outside of the window, of which so many could be masked.
    pub(crate) fn of(policy: &Policy, outside_window: usize, maskable: usize, is_below_trigger: bool) -> Self {
        let is_below_trigger = is_below_trigger && outside_window > 0;
        let is_stepped = match policy.terms.boundary {
            Boundary::Sliding => policy.terms.verifies_reasoning,
            boundary => matches!(boundary, Boundary::Stepped(_)),
        };
        let is_below_step = is_stepped && maskable > 0 && !is_below_trigger;
        Unmasked { outside_window, maskable, is_below_trigger, is_below_step }
    }
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
    /// The order of the view.
    pub(crate) layout: Layout,
    pub cut_chars: usize,
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
        !self.layout.hidden.has(message)
    }

    /// The messages of the task that are cut, in order.
    pub fn cuts(&self) -> &[Cut] {
        &self.layout.hidden.cuts
    }

    /// Whether the view differs from the input.
    pub fn changes(&self) -> bool {
        !self.masked.is_empty() || !self.layout.is_whole() || !self.layout.unsigned.is_empty()
    }
}

/// What a summary is asked for.
#[derive(Debug, Default)]
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
    /// The fingerprint of all that it has to tell, where texts are remembered.
    pub told: Option<Digest>,
}

/// The plan, or an input that it needs.
#[derive(Debug)]
pub enum Outcome {
    Plan(Box<Plan>),
    AskSummary(Box<SummaryRequest>),
    /// The costs of these texts are needed.
    AskCosts(Vec<Vec<u8>>),
}
