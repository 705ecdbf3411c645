//! When a summary is asked for again that failed, or that did not help: each time later, so that a model that is down,
//! or a budget that no summary can meet, costs some calls and not one for each request.

/// Most new turns that are waited for.
const MOST_TURNS: usize = 64;

/// Summaries that failed or did not help since the last one that did, and where the session was then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    /// How many, in a row.
    pub failures: usize,
    /// Turns so far at the last of them.
    pub turns: usize,
    /// What the session cost then, unmasked; less what was new when a view without a summary became the session.
    pub cost: usize,
}

impl Attempts {
    /// One more failed, after so many turns, in a session that costs so much.
    pub fn fail(&mut self, turns: usize, cost: usize) {
        *self = Attempts { failures: self.failures.saturating_add(1), turns, cost };
    }

    /// Whether a summary may be asked for: after the first failure once one turn is new, then 2, 4, 8 and so on up to
    /// 64; and a quarter of the budget (0: there is none).
    #[must_use]
    pub fn may_ask(&self, turns: usize, cost: usize, budget: usize) -> bool {
        let Some(again) = self.failures.checked_sub(1) else { return true };
        let wait = 1 << again.min(MOST_TURNS.ilog2() as usize);
        turns.saturating_sub(self.turns) >= wait && cost.saturating_sub(self.cost) >= budget.div_ceil(4)
    }
}
