//! Stage 1: every observation older than the window is masked.

use super::{Ground, Masked, Move, Planner, facts};
use crate::outline::Outline;
use crate::placeholder::{Form, Placeholder};
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
        let name = pairs.name_of(outline, result);
        if (policy.keep_errors && outline.results[result].is_error)
            || name.is_some_and(|name| self.excluded.0.get(name as usize) == Some(&true))
        {
            return None;
        }
        let (form, after) = self.placeholder.form(outline, source, result, &facts(outline, pairs, self.turns, result));
        let removed = outline.observation_chars(result, policy.image_chars) - after;
        (form != Form::Stay).then_some(Masked { result: result as u32, form, removed })
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
