//! Stage 1: every observation older than the window is masked.

use super::{Ground, Masked, Move, Planner, Uncounted, facts, facts_of_pair};
use crate::clip::{Clip, is_clipped};
use crate::outline::Outline;
use crate::placeholder::{Form, Placeholder, dispatch_blocks};
use crate::policy::Policy;
use crate::turns::Turns;

/// Observations that are masked up to a boundary.
#[derive(Debug, Clone, Default)]
pub struct Masking {
    pub masked: Vec<Masked>,
    pub removed: usize,
    pub boundary: usize,
    /// Where the boundary depends on earlier requests.
    pub moves: Vec<Move>,
}

impl Masking {
    /// Only what lies before the boundary; nothing, if that would remove fewer characters than is worth it.
    pub fn up_to(mut self, boundary: usize, min_removed: usize) -> Self {
        let count = self.masked.partition_point(|masked| (masked.result as usize) < boundary);
        self.masked.truncate(count);
        self.removed = self.masked.iter().map(|masked| masked.removed).sum();
        if self.removed < min_removed {
            return Masking::default();
        }
        Masking { boundary, ..self }
    }

    fn holds(&self, result: usize) -> bool {
        self.masked.binary_search_by_key(&result, |masked| masked.result as usize).is_ok()
    }

    fn push(&mut self, masked: Masked) {
        self.removed += masked.removed;
        self.masked.push(masked);
    }

    fn sorted(mut self) -> Self {
        self.masked.sort_unstable_by_key(|masked| masked.result);
        self
    }
}

impl Planner<'_> {
    /// All that can be masked: older than the window, not exempt, and shorter when masked.
    pub(super) fn mask(&self) -> Masking {
        let mut excluded = Excluded::default();
        excluded.grow(self.policy, self.outline);
        let masker = Masker::of(self.ground(), &excluded);
        let older = (0..self.window.older_end)
            .filter(|result| self.window.is_older(*result, self.pairs.name_of(self.outline, *result)));
        let mut all = Vec::with_capacity(self.window.older_end);
        all.extend(older.filter_map(|result| masker.mask(result)));
        let removed = all.iter().map(|masked: &Masked| masked.removed).sum();
        Masking { masked: all, removed, boundary: self.window.older_end, moves: vec![] }
    }

    /// Where that does not fit: what else can be masked, oldest first, until it fits; but for the newest turn. None where
    /// that is nothing, or too little.
    pub(super) fn mask_window(&self, masking: &Masking) -> Option<Masking> {
        let mut excluded = Excluded::default();
        excluded.grow(self.policy, self.outline);
        let masker = Masker::of(self.ground(), &excluded);
        let least = self.policy.min_masked_chars;
        let (mut all, mut cost) = (masking.clone(), self.cost(masking));
        for result in 0..self.outline.results.len() {
            if self.fits(cost) && all.removed >= least {
                break;
            }
            if masking.holds(result) || self.is_of_newest_turn(result) {
                continue;
            }
            if let Some(masked) = masker.mask(result) {
                cost = self.cost_after(cost, &masked);
                all.boundary = all.boundary.max(result + 1);
                all.push(masked);
            }
        }
        let has_more = all.masked.len() > masking.masked.len() && all.removed >= least;
        has_more.then(|| all.sorted())
    }

    fn is_of_newest_turn(&self, result: usize) -> bool {
        let call = self.pairs.call_of(result);
        facts_of_pair(self.outline, call, |message| self.turns.at(message), result).turn == self.turns.count()
    }

    /// Results of the window that are still raw, cut until the view fits.
    pub(super) fn clip(&self, masking: &Masking) -> Result<Masking, Uncounted> {
        let clips = self.clips(masking);
        let costs = self.costs_of(&clips)?;
        let (mut all, mut cost) = (masking.clone(), self.cost(masking));
        for ((result, clip), clip_cost) in clips.into_iter().zip(costs) {
            if self.fits(cost) {
                break;
            }
            let removed = self.outline.results[result].chars - clip.chars();
            let clipped = Masked { result: result as u32, form: Form::Clip { clip, cost: clip_cost }, removed };
            cost = self.cost_after(cost, &clipped);
            all.push(clipped);
        }
        Ok(all.sorted())
    }

    /// Results of the window that are still raw and longer than they may be, the longest first.
    fn clips(&self, masking: &Masking) -> Vec<(usize, Clip)> {
        let Planner { outline, pairs, window, .. } = self;
        let Some(most) = self.policy.clip_results else { return vec![] };
        let mut excluded = Excluded::default();
        excluded.grow(self.policy, outline);
        let masker = Masker::of(self.ground(), &excluded);
        let is_raw = |result: usize| !window.is_older(result, pairs.name_of(outline, result)) && !masking.holds(result);
        let chars = |result: usize| outline.results[result].chars;
        let mut clips: Vec<(usize, Clip)> = (0..outline.results.len())
            .filter(|result| chars(*result) > most && is_raw(*result) && masker.may_clip(*result))
            .map(|result| (result, Clip::of(chars(result), 0, most)))
            .collect();
        clips.sort_by_key(|(result, _)| core::cmp::Reverse(chars(*result)));
        clips
    }

    /// What results cost when they are cut; of all whose cost is not known it is asked for at once.
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

/// Says what masking would make of single observations.
pub(super) struct Masker<'a> {
    ground: Ground<'a>,
    placeholder: Placeholder<'a>,
    /// Where the placeholder names the turn.
    turns: Option<&'a Turns>,
    excluded: &'a Excluded,
}

impl<'a> Masker<'a> {
    pub fn of(ground: Ground<'a>, excluded: &'a Excluded) -> Self {
        let placeholder = Placeholder::of(ground.policy);
        let turns = placeholder.names_turn().then_some(ground.turns);
        Masker { ground, placeholder, turns, excluded }
    }

    /// None where the observation is exempt, or would not get shorter.
    pub fn mask(&self, result: usize) -> Option<Masked> {
        let Ground { outline, policy, pairs, source, .. } = self.ground;
        if self.is_exempt(result) {
            return None;
        }
        let (form, after) = self.placeholder.form(outline, source, result, &facts(outline, pairs, self.turns, result));
        let removed = outline.observation_chars(result, policy.image_chars) - after;
        (form != Form::Stay).then_some(Masked { result: result as u32, form, removed })
    }

    fn is_exempt(&self, result: usize) -> bool {
        let Ground { outline, policy, pairs, .. } = self.ground;
        let name = pairs.name_of(outline, result);
        (policy.keep_errors && outline.results[result].is_error)
            || name.is_some_and(|name| self.excluded.0.get(name as usize) == Some(&true))
    }

    /// Whether an observation is text that may be cut: not exempt, no placeholder, without images and dispatch blocks,
    /// and not cut already.
    fn may_clip(&self, result: usize) -> bool {
        let Ground { outline, source, .. } = self.ground;
        let facts = &outline.results[result];
        facts.frame.holds_text()
            && facts.images == 0
            && !self.is_exempt(result)
            && !self.placeholder.is_placeholder(outline, source, result)
            && {
                let text = source.observation(outline, result);
                dispatch_blocks(&text).is_empty() && !is_clipped(&text)
            }
    }
}

/// Of each tool, whether its results are never masked.
#[derive(Debug, Default)]
pub(super) struct Excluded(Vec<bool>);

impl Excluded {
    /// More tools may have come; each is looked up once.
    pub fn grow(&mut self, policy: &Policy, outline: &Outline) {
        if !policy.exclude_tools.is_empty() {
            let new = self.0.len()..outline.name_count();
            self.0.extend(new.map(|name| policy.exclude_tools.get(outline.name(name as u32)).is_some()));
        }
    }
}
