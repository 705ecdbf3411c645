//! Stage 1: every observation older than the window is masked.

use super::{Masked, Planner, facts};
use crate::placeholder::{Form, Placeholder};
use crate::policy::{Policy, matches};

/// Observations that are masked up to a boundary.
#[derive(Debug, Clone, Default)]
pub struct Masking {
    pub masked: Vec<Masked>,
    pub removed: usize,
    pub boundary: usize,
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
        let placeholder = Placeholder::of(self.policy);
        let turns = placeholder.names_turn().then_some(&self.turns);
        let is_excluded = excluded_names(self.policy, self.outline);
        let masked = Vec::with_capacity(self.window.older_end);
        let mut masking = Masking { boundary: self.window.older_end, masked, removed: 0 };
        for result in 0..self.window.older_end {
            let name = self.pairs.name_of(self.outline, result);
            if !self.window.is_older(result, name)
                || (self.policy.keep_errors && self.outline.results[result].is_error)
                || name.is_some_and(|name| is_excluded.get(name as usize) == Some(&true))
            {
                continue;
            }
            let (form, after) =
                placeholder.form(self.outline, self.source, result, &facts(self.outline, &self.pairs, turns, result));
            if form != Form::Stay {
                let removed = self.outline.observation_chars(result, self.policy.image_chars) - after;
                masking.removed += removed;
                masking.masked.push(Masked { result: result as u32, form, removed });
            }
        }
        masking
    }
}

fn excluded_names(policy: &Policy, outline: &crate::outline::Outline) -> Vec<bool> {
    if policy.exclude_tools.is_empty() {
        return vec![];
    }
    let is_excluded = |name| policy.exclude_tools.iter().any(|pattern| matches(pattern, outline.name(name)));
    (0..outline.name_count() as u32).map(is_excluded).collect()
}
