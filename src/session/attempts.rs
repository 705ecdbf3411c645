//! Exponential backoff of summaries: after each failure the next attempt waits longer, so that a model that is down does not cost a
//! call per request.

/// So many unfinished answers in a row end the calls: the same question gets them again, and each is paid.
const MOST_UNFINISHED: usize = 2;

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
    /// How many of the last ones in a row were unfinished or empty answers of a model.
    pub unfinished: usize,
}

/// For how many turns, or requests, no summary is asked for after so many failures in a row: 1, then 2, 4, 8, ... 64.
pub fn wait_after(failures: usize) -> usize {
    failures.checked_sub(1).map_or(0, |again| 1 << again.min(MAX_WAIT_TURNS.ilog2() as usize))
}

impl Attempts {
    pub fn fail(&mut self, turns: usize, cost: usize, is_unfinished: bool) {
        let unfinished = if is_unfinished { self.unfinished + 1 } else { 0 };
        *self = Attempts { failures: self.failures.saturating_add(1), turns, cost, unfinished };
    }

    /// Whether no summary is asked for any more.
    pub fn have_ended(&self) -> bool {
        self.unfinished >= MOST_UNFINISHED
    }

    /// Whether a summary may be requested: after the wait, and with a quarter of the budget in new messages (0: no budget).
    pub fn may_ask(&self, turns: usize, cost: usize, budget: usize) -> bool {
        let is_over = turns.saturating_sub(self.turns) >= wait_after(self.failures);
        self.failures == 0 || (is_over && !self.have_ended() && cost.saturating_sub(self.cost) >= budget.div_ceil(4))
    }
}
