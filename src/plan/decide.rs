//! The order of attempts: raw, masked up to the boundary, up to the window, up to the newest turn, with results of the
//! window cut, then the later stages. One function of numbers, asked by `reduce` and by a session.

use crate::policy::Policy;

/// What is done to observations before any message is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// Up to the boundary of the policy.
    Boundary,
    /// Up to the window, where the boundary is rounded and ends before it.
    Window,
    /// Also in the window, as far as the budget needs it; but for the newest turn.
    NewestTurn,
    /// Results that are raw even so are cut.
    Clipped,
}

/// Which view answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The history as it is.
    Raw,
    /// What this attempt makes of it.
    Masked(Attempt),
    /// What stage 2 or stage 3 makes of the last attempt.
    Later,
}

/// What the order of attempts depends on, beside costs.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    max_cost: Option<usize>,
    is_enabled: bool,
    /// A boundary that remembers earlier requests pays off within the budget, too.
    masks_within_budget: bool,
    /// Those that the policy has.
    attempts: [Option<Attempt>; 4],
}

impl Limits {
    /// Those of a policy.
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        let masks = policy.observation_masking;
        Limits {
            max_cost: policy.max_cost,
            is_enabled: policy.enabled,
            masks_within_budget: masks && policy.boundary.remembers(),
            attempts: [
                masks.then_some(Attempt::Boundary),
                masks.then_some(Attempt::Window),
                (masks && policy.fill_millionths.is_some()).then_some(Attempt::NewestTurn),
                policy.clip_results.is_some().then_some(Attempt::Clipped),
            ],
        }
    }

    /// Whether a view of this cost fits the budget.
    #[must_use]
    pub fn fit(&self, cost: usize) -> bool {
        self.max_cost.is_none_or(|max| cost <= max)
    }
}

/// Decides by the cost of the raw history, by whether its pairs are whole, and by the cost of each attempt that is made;
/// None where an attempt would be no other than the one before.
#[must_use]
pub fn decide(
    limits: Limits,
    raw_cost: usize,
    holds_pairs: bool,
    mut cost_of: impl FnMut(Attempt) -> Option<usize>,
) -> Answer {
    let raw_fits = limits.fit(raw_cost);
    if !limits.is_enabled || (raw_fits && !limits.masks_within_budget) {
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
