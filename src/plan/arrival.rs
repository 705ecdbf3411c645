//! Arrival: the one place where a result's text becomes another. A function of the body up to that message, decided once, so that it
//! changes no prefix; every rule after it sees only what arrived, and the outline counts that. In this order:
//!
//! 1. What is exempt, has no text, is a placeholder or has dispatch blocks stays as it is.
//! 2. The whole text by which an agent says that it has cleared a result is the placeholder, wherever it stands.
//! 3. References to earlier results: see `references`, since these depend on what the view has masked.
//! 4. A longer text than `max_result_chars` is cut.

use super::context::PlanContext;
use super::mask::Masker;
use super::masked::Masked;
use super::stay::StayingTools;
use crate::clip::Clip;
use crate::json::weight;
use crate::outline::{Outline, ToolResult};
use crate::pairs::Pairs;
use crate::patterns::fits;
use crate::placeholder::{Form, Placeholder};
use crate::policy::Policy;
use crate::source::Source;
use crate::turns::Turns;
use core::ops::Range;
use std::borrow::Cow;
use std::cell::LazyCell;

/// What a result arrives as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A cut text, with so many newlines, which weighs so much.
    Cut(Clip, u32, usize),
    /// The placeholder, of so many characters, which weighs so much.
    Cleared(usize, usize),
}

impl PlanContext<'_> {
    /// What these new results arrive as, where that is another text.
    pub(crate) fn arrivals(&self, results: Range<usize>) -> Vec<(usize, Arrival)> {
        let PlanContext { outline, policy, .. } = *self;
        let is_long =
            |result: &usize| policy.text.max_result_chars.is_some_and(|max| outline.results[*result].chars > max);
        let mut judged = results.filter(|result| !policy.text.markers.is_empty() || is_long(result)).peekable();
        if judged.peek().is_none() {
            return vec![];
        }
        let tools = StayingTools::of(policy, outline);
        let masker = Masker::of(*self, &tools);
        judged.filter_map(|result| Some((result, masker.arrival(result)?))).collect()
    }

    /// Whether the whole text of a result is this one, in which `*` matches any text.
    pub(super) fn is_text(&self, result: usize, text: &str) -> bool {
        let PlanContext { outline, source, .. } = *self;
        let ToolResult { chars, images, frame, .. } = outline.results[result];
        let begins = |prefix: &[u8]| source.observation_begins(outline, result, prefix);
        let may_end = |suffix: &[u8]| source.observation_may_end(outline, result, suffix);
        let whole = LazyCell::new(|| source.observation(outline, result));
        images == 0
            && outline.cut_of(result).is_none()
            && frame.holds_text()
            && !frame.keeps_references()
            && (text.contains('*') || chars == text.chars().count())
            && fits(text.as_bytes(), begins, may_end, || &whole)
    }
}

impl Masker<'_> {
    /// What a new result arrives as.
    fn arrival(&self, result: usize) -> Option<Arrival> {
        let PlanContext { outline, policy, source, .. } = self.context;
        if policy.text.markers.iter().any(|marker| self.context.is_text(result, marker)) {
            let (before, after) = (outline.results[result].chars, self.placeholder_chars(result));
            let weight = if policy.weighs() { self.placeholder_weight(result) } else { 0 };
            return (before >= after && !self.is_exempt(result)).then_some(Arrival::Cleared(after, weight));
        }
        if policy.text.stubs.iter().any(|(_, text)| self.context.is_text(result, text)) {
            return None;
        }
        let clip = self.clip(result, result, policy.text.max_result_chars?)?;
        // In replays, which name no lines, a text may be left out.
        let text = LazyCell::new(|| clip.apply(&source.observation(outline, result)));
        let newlines = if policy.names_lines() { memchr::memchr_iter(b'\n', &text).count() } else { 0 };
        let weight = if policy.weighs() { weight(&text) } else { 0 };
        Some(Arrival::Cut(clip, newlines as u32, weight))
    }
}

impl Arrival {
    /// Lets a result of a history arrive as this.
    pub(crate) fn take(self, outline: &mut Outline, result: usize) {
        match self {
            Arrival::Cut(clip, newlines, weight) => outline.cut(result, clip, newlines, weight),
            Arrival::Cleared(chars, weight) => outline.clear(result, chars, weight),
        }
    }
}

/// Whether a result may arrive as another text.
fn changes_texts(policy: &Policy) -> bool {
    policy.text.max_result_chars.is_some() || !policy.text.markers.is_empty()
}

/// Lets the results of a whole history arrive.
pub(crate) fn arrive(outline: &mut Outline, source: &dyn Source, policy: &Policy) {
    if !changes_texts(policy) {
        return;
    }
    let (pairs, turns, placeholder) = (Pairs::of(outline), Turns::of(outline), Placeholder::of(policy));
    let context = PlanContext::of_texts(outline, source, policy, &placeholder, (&pairs, &turns));
    for (result, arrival) in context.arrivals(0..outline.results.len()) {
        arrival.take(outline, result);
    }
}

/// A history whose results have arrived.
pub(crate) fn arrived<'a>(outline: &'a Outline, source: &dyn Source, policy: &Policy) -> Cow<'a, Outline> {
    let mut outline = Cow::Borrowed(outline);
    if changes_texts(policy) {
        arrive(outline.to_mut(), source, policy);
    }
    outline
}

/// The masked results among these, in order, and those that arrived as another text and are not masked.
pub(crate) fn with_arrivals(outline: &Outline, mut masked: Vec<Masked>, results: Range<usize>) -> Vec<Masked> {
    let (cuts, cleared) = (outline.cuts_of(results.clone()), outline.cleared_of(results));
    if !cuts.is_empty() || !cleared.is_empty() {
        let is_raw = |one: &Masked| masked.binary_search_by_key(&one.result, |other| other.result).is_err();
        let change = |result: u32, form| Masked { result, form, removed: 0 };
        let cuts = cuts.iter().map(|(result, clip)| change(*result, Form::Arrival(Box::new(*clip))));
        let cleared = cleared.iter().map(|(result, _)| change(*result, Form::Placeholder));
        let raw: Vec<Masked> = cuts.chain(cleared).filter(is_raw).collect();
        masked.extend(raw);
        masked.sort_unstable_by_key(|one| one.result);
    }
    masked
}
