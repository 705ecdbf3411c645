//! Exponential backoff of summaries: after each failure the next attempt waits longer, so that a model that is down does not cost a
//! call per request.

/// The longest wait, in turns.
const MAX_WAIT_TURNS: usize = 64;

/// Failed summaries since the last success, and the size of the session at the last failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    /// How many in a row.
    pub failures: usize,
    /// Turns in total at the last failure.
    pub turns: usize,
    /// Unmasked cost of the session at the last failure.
    pub cost: usize,
}

impl Attempts {
    pub fn fail(&mut self, turns: usize, cost: usize) {
        *self = Attempts { failures: self.failures.saturating_add(1), turns, cost };
    }

    /// Whether a summary may be requested: 1 new turn after the first failure, then 2, 4, 8, ... 64; and a quarter of the
    /// budget in new messages (0: no budget).
    pub fn may_ask(&self, turns: usize, cost: usize, budget: usize) -> bool {
        let Some(again) = self.failures.checked_sub(1) else { return true };
        let wait = 1 << again.min(MAX_WAIT_TURNS.ilog2() as usize);
        turns.saturating_sub(self.turns) >= wait && cost.saturating_sub(self.cost) >= budget.div_ceil(4)
    }
}
