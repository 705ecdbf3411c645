//! Needs of the requests over the trigger or the limit, counted for each session.

use super::Session;
use super::places::Origin;
use crate::plan::{Masked, Need, masked_in};

/// How many requests had each need; and how many messages the last one had that was counted.
#[derive(Debug, Default, Clone)]
pub struct Needs {
    counts: [usize; 4],
    counted: Option<usize>,
}

impl Session {
    /// The need of the current view; None below the trigger, or below the limit where there is no trigger.
    #[must_use]
    pub fn need(&self) -> Option<Need> {
        if let Some(compaction) = &self.compaction {
            return Some(match &self.origins {
                origins if origins.contains(&Origin::New) => Need::Summary,
                origins if origins.len() < compaction.past => Need::Truncation,
                _ => Need::Cuts,
            });
        }
        let most = if self.policy.trigger > 0 { Some(self.policy.trigger) } else { self.max_cost() };
        (self.log.cost > most?).then(|| if self.shows_cuts() { Need::Cuts } else { Need::Masks })
    }

    /// Whether a result is cut because of the limit, and not masked since.
    fn shows_cuts(&self) -> bool {
        let (fold, tentative) = (&self.log.fold, &self.view.tentative);
        let is_masked_in = |layer, one: &Masked| masked_in(layer, one.results()).iter().any(Masked::is_masked);
        let is_shown = |one: &Masked| !is_masked_in(&fold.masked, one) && !is_masked_in(tentative, one);
        fold.cuts.iter().chain(tentative).any(|one| one.is_clipped() && is_shown(one))
    }

    /// Counts the current request, once, where its view is made.
    pub(super) fn count_need(&mut self) {
        let end = self.len();
        if self.log.ends_with_run() || self.needs.counted.replace(end) == Some(end) {
            return;
        }
        if let Some(need) = self.need() {
            self.needs.counts[need as usize] += 1;
        }
    }

    /// How many requests needed masks alone, cuts, a summary, and truncation.
    #[must_use]
    pub fn needs(&self) -> [usize; 4] {
        self.needs.counts
    }
}
