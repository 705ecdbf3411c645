//! The view of stage 3, and whether stage 2 could give a better one: from what is known of the session, so that neither
//! costs more than what is kept, however often a view cannot be had otherwise.

use super::Session;
use super::view::Counts;
use crate::pairs::open_from;
use crate::plan::{Ground, Keeping, Masked, Move, masked_in, view_cost};
use std::collections::BTreeSet;

impl Session {
    /// Whether there is something to be summarized, and a view with a summary could hold the pairs and fit the budget.
    pub(super) fn summary_may_help(&mut self, masks: &[Masked]) -> bool {
        self.grow();
        self.log.look(&self.policy, |ground| {
            let keeping = self.keeping(ground);
            let earlier = keeping.earlier_summaries();
            let kept = keeping.keep_set(&earlier);
            let cost = || view_cost(ground, kept.iter().copied(), self.masked_among(&kept, masks).iter()).0;
            kept.len() + earlier.len() < keeping.end
                && !(self.policy.strict_pairs && self.holds_orphans(&kept))
                && self.policy.max_cost.is_none_or(|max| cost() <= max)
        })
    }

    /// What is kept, with what the fold masks, and these observations, which it masks as a next step.
    pub(super) fn show_fallback(&mut self, masks: &[Masked], step: Option<Move>) {
        self.grow();
        let (kept, masked, chars) = self.log.look(&self.policy, |ground| {
            let kept = self.keeping(ground).truncated();
            let masked = self.masked_among(&kept, masks);
            let chars = view_cost(ground, kept.iter().copied(), masked.iter()).1;
            (kept, masked, chars)
        });
        let mut view = if kept.is_empty() { vec![b'['] } else { vec![] };
        for message in &kept {
            let of_message = masked_in(&masked, self.log.outline.results_of(*message));
            self.log.render(&self.policy, *message, message + 1, of_message, &mut view);
        }
        view[0] = b'['; // the first one kept may have had a comma before it
        view.push(b']');
        let counts = Counts { messages: kept.len(), chars, masked: masked.len() };
        self.show_planned(view, counts, None);
        self.view.tentative_move = step;
    }

    fn grow(&mut self) {
        let end = self.log.len();
        self.log.with_rules(&self.policy, |ground, fold| fold.grow(ground, end));
    }

    fn keeping<'a>(&'a self, ground: Ground<'a>) -> Keeping<'a> {
        let window_start = self.log.fold.window_start(ground);
        Keeping { ground, end: self.log.len(), window_start, landmarks: &self.log.landmarks }
    }

    /// What is masked in these messages, in order.
    fn masked_among(&self, messages: &BTreeSet<usize>, masks: &[Masked]) -> Vec<Masked> {
        let mut masked = vec![];
        if self.policy.observation_masking {
            for message in messages {
                let results = self.log.outline.results_of(*message);
                let all = [&self.log.fold.masked, masks].into_iter();
                masked.extend(all.flat_map(|all| masked_in(all, results.clone())).cloned());
            }
        }
        masked.sort_unstable_by_key(|one| one.result);
        masked
    }

    /// Whether one of these messages holds a call without result, or a result without call.
    fn holds_orphans(&self, messages: &BTreeSet<usize>) -> bool {
        let (outline, pairs) = (&self.log.outline, &self.log.pairs.pairs);
        let open_from = open_from(outline, |message| outline.holds_results(message));
        messages.iter().any(|message| {
            (*message < open_from && outline.calls_of(*message).any(|call| !pairs.is_answered(call)))
                || outline.results_of(*message).any(|result| pairs.call_of(result).is_none())
        })
    }
}
