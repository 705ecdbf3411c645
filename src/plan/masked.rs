//! Observations that a view shows masked or cut, and messages of the task that it cuts.

use crate::clip::Clip;
use crate::placeholder::Form;
use std::ops::Range;

/// A masked or cut observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    pub result: u32,
    pub form: Form,
    /// Characters removed.
    pub removed: usize,
}

impl Masked {
    /// The range of its result alone.
    pub(crate) fn results(&self) -> Range<usize> {
        self.result as usize..self.result as usize + 1
    }

    /// Whether its text is gone: it is neither cut nor that of an earlier result.
    pub fn is_masked(&self) -> bool {
        !matches!(self.form, Form::Clip(_) | Form::Arrival(_) | Form::Restored { .. })
    }

    /// How it is cut, where it is not masked.
    pub(crate) fn clip(&self) -> Option<&Clip> {
        match &self.form {
            Form::Clip(counted) => Some(&counted.clip),
            Form::Arrival(clip) => Some(clip),
            _ => None,
        }
    }

    /// Whether it is cut, not masked.
    pub(crate) fn is_clipped(&self) -> bool {
        self.clip().is_some()
    }
}

/// The masked observations in a range.
pub(crate) fn masked_in(masked: &[Masked], results: Range<usize>) -> &[Masked] {
    let start = masked.partition_point(|masked| (masked.result as usize) < results.start);
    let end = masked.partition_point(|masked| (masked.result as usize) < results.end);
    &masked[start..end]
}

/// Two lists of changed observations as one, each in order.
pub(crate) fn merged(mut one: Vec<Masked>, other: Vec<Masked>) -> Vec<Masked> {
    if one.is_empty() || other.is_empty() {
        return if one.is_empty() { other } else { one };
    }
    one.extend(other);
    one.sort_by_key(|one| one.result);
    one
}

/// Changes with others over them: of two changes of a result the later is shown.
pub(crate) fn shown(changes: Vec<Masked>, later: Vec<Masked>) -> Vec<Masked> {
    let mut all = merged(later, changes); // stable: the later comes first
    all.dedup_by_key(|one| one.result);
    all
}

/// Observations that are masked up to a boundary.
#[derive(Debug, Clone, Default)]
pub(super) struct Masking {
    pub masked: Vec<Masked>,
    pub removed: usize,
    pub boundary: usize,
    pub boundary_before: usize,
    /// Moves of the boundary, if it depends on earlier requests.
    pub moves: Vec<Move>,
}

impl Masking {
    /// Only the part before the boundary; nothing if that removes fewer than `min_removed` characters.
    pub(super) fn up_to(mut self, boundary: usize, min_removed: usize) -> Self {
        let count = self.masked.partition_point(|masked| (masked.result as usize) < boundary);
        self.masked.truncate(count);
        self.removed = self.masked.iter().map(|masked| masked.removed).sum();
        if self.removed < min_removed {
            return Masking::default();
        }
        Masking { boundary, ..self }
    }

    pub(super) fn holds(&self, result: usize) -> bool {
        self.masked.binary_search_by_key(&result, |masked| masked.result as usize).is_ok()
    }

    pub(super) fn push(&mut self, masked: Masked) {
        self.removed += masked.removed;
        self.masked.push(masked);
    }

    pub(super) fn sorted(mut self) -> Self {
        self.masked.sort_unstable_by_key(|masked| masked.result);
        self
    }
}

/// A move of the boundary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Move {
    /// The request before which it moved, from 0.
    pub request: usize,
    pub masked: usize,
    /// Characters that it removed.
    pub removed: usize,
    /// Characters after the first change that the previous request had sent, and that were written to the cache again.
    pub written_again: usize,
    /// Messages that are sent without their signed reasoning since.
    pub reasoning: usize,
}

/// A message of the task, cut to its share of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    pub message: usize,
    pub clip: Clip,
    /// The cost after the cut.
    pub cost: usize,
}
