//! Stage 1, where masks up to the window are not enough.

use crate::clip::Clip;
use crate::placeholder::{CountedClip, Form};
use crate::plan::context::Uncounted;
use crate::plan::mask::Masker;
use crate::plan::masked::{Masked, Masking};
use crate::plan::planner::Planner;
use crate::plan::stay::StayingTools;

impl Planner<'_> {
    /// If that does not fit: masks more observations, oldest first and not in the newest turn, nor what no request has shown, until
    /// the view fits. None if that masks nothing, or removes too little.
    pub(super) fn mask_window(&self, masking: &Masking) -> Option<Masking> {
        let tools = StayingTools::of(self.policy, self.outline);
        let masker = Masker::of(self.context(), &tools);
        let min_removed = self.policy.text.least_in_all;
        let (mut all, mut cost, window) = (masking.clone(), self.cost(masking), self.window());
        for result in 0..self.outline.results.len() {
            if self.fits(cost) && all.removed >= min_removed {
                break;
            }
            let is_of_newest_turn = || self.context().turn_of(result) == self.turns.count();
            if masking.holds(result) || is_of_newest_turn() || window.is_unseen(result) {
                continue;
            }
            if let Some(masked) = masker.mask(result, None) {
                cost = self.cost_after(cost, &masked);
                all.boundary = all.boundary.max(result + 1);
                all.push(masked);
            }
        }
        let has_more = all.masked.len() > masking.masked.len() && all.removed >= min_removed;
        has_more.then(|| all.sorted())
    }

    /// Cuts raw results in the window until the view fits.
    pub(super) fn clip_window(&self, masking: &Masking) -> Result<Masking, Uncounted> {
        let clips = self.clips(masking);
        let costs = self.costs_of(&clips)?;
        let (mut all, mut cost) = (masking.clone(), self.cost(masking));
        for ((result, clip), clip_cost) in clips.into_iter().zip(costs) {
            if self.fits(cost) {
                break;
            }
            let removed = self.outline.results[result].chars - clip.chars();
            let form = Form::Clip(Box::new(CountedClip { clip, cost: clip_cost, source: None }));
            let clipped = Masked { result: result as u32, form, removed };
            cost = self.cost_after(cost, &clipped);
            all.push(clipped);
        }
        Ok(all.sorted())
    }

    /// Raw results in the window that are longer than permitted, the longest first.
    fn clips(&self, masking: &Masking) -> Vec<(usize, Clip)> {
        let (outline, older) = (self.outline, self.window().left);
        let Some(max_chars) = self.policy.limit.clip_results else { return vec![] };
        let tools = StayingTools::of(self.policy, outline);
        let masker = Masker::of(self.context(), &tools);
        let is_raw = |result: &usize| older.binary_search(&(*result as u32)).is_err() && !masking.holds(*result);
        let mut clips: Vec<(usize, Clip)> = (0..outline.results.len())
            .filter(is_raw)
            .filter_map(|result| masker.clip(result, result, max_chars).map(|clip| (result, clip)))
            .collect();
        clips.sort_by_key(|(result, _)| core::cmp::Reverse(outline.results[*result].chars));
        clips
    }

    /// The costs of cut results; unknown ones are requested all at once.
    fn costs_of(&self, clips: &[(usize, Clip)]) -> Result<Vec<usize>, Uncounted> {
        let (mut costs, mut unknown) = (vec![], vec![]);
        for (result, clip) in clips {
            match self.cost_of(clip.chars(), || clip.apply(&self.source.observation(self.outline, *result))) {
                Ok(cost) => costs.push(cost),
                Err(Uncounted(texts)) => unknown.extend(texts),
            }
        }
        if unknown.is_empty() { Ok(costs) } else { Err(Uncounted(unknown)) }
    }
}
