//! The order of attempts: raw, masked up to the boundary, up to the window, up to the newest turn, with cut results, then the later
//! stages. Used by `reduce` and by sessions.

use crate::policy::{Goal, Policy};

/// An attempt before any message is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Masks up to the boundary.
    Boundary,
    /// Masks up to the window, if the boundary is rounded.
    Window,
    /// Masks in the window too, as needed, except the newest turn.
    NewestTurn,
    Clipped,
}

/// The view that is the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Raw,
    /// The view of this attempt.
    Masked(Attempt),
    /// The view of stage 2 or 3.
    Later,
}

/// The options that the order of attempts depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    max_cost: Option<usize>,
    is_enabled: bool,
    /// A boundary that depends on earlier requests pays off within the budget too.
    masks_within_limit: bool,
    /// The attempts of the policy.
    attempts: [Option<Attempt>; 4],
}

impl Limits {
    /// The limits of a request that may cost this much.
    pub(crate) fn of(policy: &Policy, max_cost: Option<usize>) -> Self {
        let masks = !policy.design.skips_masks;
        Limits {
            max_cost,
            is_enabled: !policy.is_off,
            masks_within_limit: masks && policy.terms.boundary.remembers(),
            attempts: [
                masks.then_some(Attempt::Boundary),
                masks.then_some(Attempt::Window),
                (masks && policy.limit.fill.is_some()).then_some(Attempt::NewestTurn),
                policy.limit.clip_results.is_some().then_some(Attempt::Clipped),
            ],
        }
    }

    /// Whether a history of this cost is sent as it is, for its size alone.
    pub(crate) fn send_raw(&self, raw_cost: usize) -> bool {
        self.fit(raw_cost) && !self.masks_within_limit
    }

    /// Whether a view of this cost fits the budget.
    pub(crate) fn fit(&self, cost: usize) -> bool {
        self.max_cost.is_none_or(|max| cost <= max)
    }
}

/// Whether a history of this cost is sent as it is, since masks begin only above its budget.
pub(crate) fn is_within_budget(policy: &Policy, max_cost: Option<usize>, raw_cost: usize) -> bool {
    policy.goal == Goal::Reduce && !policy.limit.is_kept && Limits::of(policy, max_cost).send_raw(raw_cost)
}

/// Decides by the cost of the raw history, whether its pairs are whole, and the cost of each attempt, None if that equals the
/// previous one.
pub(crate) fn decide(
    limits: Limits,
    raw_cost: usize,
    holds_pairs: bool,
    mut cost_of: impl FnMut(Attempt) -> Option<usize>,
) -> Answer {
    let raw_fits = limits.fit(raw_cost);
    if !limits.is_enabled || limits.send_raw(raw_cost) {
        return Answer::Raw;
    }
    for attempt in limits.attempts.into_iter().flatten() {
        if raw_fits && !matches!(attempt, Attempt::Boundary | Attempt::Window) {
            break;
        }
        if cost_of(attempt).is_some_and(|cost| holds_pairs && limits.fit(cost)) {
            return Answer::Masked(attempt);
        }
    }
    if raw_fits { Answer::Raw } else { Answer::Later }
}
