//! Exponential backoff of summaries: after each failure the next attempt waits longer, so that a model that is down, or a
//! budget that no summary can meet, does not cost a call per request.

use crate::session::Session;

/// The longest wait, in turns.
const MAX_WAIT_TURNS: usize = 64;

/// Failed or useless summaries since the last success, and the size of the session at the last failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    /// How many in a row.
    pub failures: usize,
    /// Turns in total at the last failure.
    pub turns: usize,
    /// Unmasked cost of the session at the last failure; see [`Session::rebase_attempts`].
    pub cost: usize,
}

impl Attempts {
    /// Records a failure.
    pub fn fail(&mut self, turns: usize, cost: usize) {
        *self = Attempts { failures: self.failures.saturating_add(1), turns, cost };
    }

    /// Whether a summary may be requested: 1 new turn after the first failure, then 2, 4, 8, ... 64; and a quarter of the
    /// budget in new messages (0: no budget).
    #[must_use]
    pub fn may_ask(&self, turns: usize, cost: usize, budget: usize) -> bool {
        let Some(again) = self.failures.checked_sub(1) else { return true };
        let wait = 1 << again.min(MAX_WAIT_TURNS.ilog2() as usize);
        turns.saturating_sub(self.turns) >= wait && cost.saturating_sub(self.cost) >= budget.div_ceil(4)
    }
}

impl Session {
    /// Failures since the last summary.
    #[must_use]
    pub fn attempts(&self) -> Attempts {
        self.attempts.last().map_or(Attempts::default(), |(_, attempts)| *attempts)
    }

    pub(in crate::session) fn fail(&mut self, turns: usize, cost: usize) {
        let mut attempts = self.attempts();
        attempts.fail(turns, cost);
        self.attempts.push((self.len(), attempts));
    }

    /// Resets the failures.
    pub(in crate::session) fn succeed(&mut self) {
        if self.attempts() != Attempts::default() {
            self.attempts.push((self.len(), Attempts::default()));
        }
    }

    /// A compaction without a summary changed the cost of the session: what was new since the failure stays new.
    pub(in crate::session) fn rebase_attempts(&mut self, cost_before: usize) {
        let attempts = self.attempts();
        if attempts.failures > 0 {
            let new = cost_before.saturating_sub(attempts.cost);
            self.attempts.push((self.len(), Attempts { cost: self.log.cost.saturating_sub(new), ..attempts }));
        }
    }

    /// The failures recorded up to this many messages.
    pub(in crate::session) fn attempts_before(&self, messages: usize) -> Vec<(usize, Attempts)> {
        self.attempts.iter().copied().filter(|(at, _)| *at <= messages).collect()
    }
}
