//! Results that are cut when they arrive, a function of their texts alone: every rule after that sees the cut text, and the outline
//! counts it.

use super::context::PlanContext;
use super::mask::{Excluded, Masker};
use super::outcome::Masked;
use crate::clip::Clip;
use crate::outline::Outline;
use crate::pairs::Pairs;
use crate::placeholder::{Form, Placeholder};
use crate::policy::Policy;
use crate::source::Source;
use crate::turns::Turns;
use core::ops::Range;
use std::borrow::Cow;

impl PlanContext<'_> {
    /// How these new results are cut, and the newlines that they then have.
    #[must_use]
    pub fn arrivals(&self, results: Range<usize>) -> Vec<(usize, Clip, u32)> {
        let PlanContext { outline, policy, .. } = *self;
        let Some(max_chars) = policy.max_result_chars else { return vec![] };
        let mut long = results.filter(|result| outline.results[*result].chars > max_chars).peekable();
        if long.peek().is_none() {
            return vec![];
        }
        let mut excluded = Excluded::default();
        excluded.grow(policy, outline);
        let masker = Masker::of(*self, &excluded);
        long.filter_map(|result| masker.arrival(result, max_chars)).collect()
    }
}

/// Cuts the results of a whole history.
pub fn cut_results(outline: &mut Outline, source: &dyn Source, policy: &Policy) {
    if policy.max_result_chars.is_none() {
        return;
    }
    let (pairs, turns, placeholder) = (&Pairs::of(outline), &Turns::default(), &Placeholder::of(policy));
    let context = PlanContext { outline, source, policy, placeholder, costs: None, pairs, turns, references: &[] };
    for (result, clip, newlines) in context.arrivals(0..outline.results.len()) {
        outline.cut(result, clip, newlines);
    }
}

/// A history with its results cut.
#[must_use]
pub fn arrived<'a>(outline: &'a Outline, source: &dyn Source, policy: &Policy) -> Cow<'a, Outline> {
    let mut outline = Cow::Borrowed(outline);
    if policy.max_result_chars.is_some() {
        cut_results(outline.to_mut(), source, policy);
    }
    outline
}

/// The masked results among these, in order, and those that were cut and are not masked.
#[must_use]
pub fn with_cuts(outline: &Outline, mut masked: Vec<Masked>, results: Range<usize>) -> Vec<Masked> {
    let cuts = outline.cuts_of(results);
    if !cuts.is_empty() {
        let is_raw = |result| masked.binary_search_by_key(result, |one| one.result).is_err();
        let cut =
            |(result, clip): &(u32, Clip)| Masked { result: *result, form: Form::Arrival(Box::new(*clip)), removed: 0 };
        let raw: Vec<Masked> = cuts.iter().filter(|(result, _)| is_raw(result)).map(cut).collect();
        masked.extend(raw);
        masked.sort_unstable_by_key(|one| one.result);
    }
    masked
}
