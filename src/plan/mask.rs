//! How a single observation is masked or cut.

use super::context::{PlanContext, facts, sizes};
use super::masked::Masked;
use super::stay::StayingTools;
use crate::clip::Clip;
use crate::dispatch::has_dispatch;
use crate::json::weight;
use crate::placeholder::{Form, ObservationFacts, Placeholder};
use crate::turns::Turns;

pub(super) struct Masker<'a> {
    pub(super) context: PlanContext<'a>,
    placeholder: &'a Placeholder<'a>,
    /// The turns, if the placeholder names the turn.
    turns: Option<&'a Turns>,
    tools: &'a StayingTools,
}

impl<'a> Masker<'a> {
    pub(crate) fn of(context: PlanContext<'a>, tools: &'a StayingTools) -> Self {
        let placeholder = context.placeholder;
        let turns = placeholder.names_turn().then_some(context.turns);
        Masker { context, placeholder, turns, tools }
    }

    /// Masks an observation, which may have the text of another one and so many characters more; None if it is exempt, or would
    /// not get shorter. A reference that goes with its source is masked where it does not get longer.
    pub(crate) fn mask(&self, result: usize, source: Option<(u32, isize)>) -> Option<Masked> {
        let PlanContext { outline, policy, source: texts, .. } = self.context;
        if self.is_exempt(result) || outline.is_cleared(result) {
            return None;
        }
        let before = outline.observation_chars(result, policy.text.image_chars);
        if source.is_some() || self.context.is_reference(result) {
            let before = before.saturating_add_signed(source.map_or(0, |(_, growth)| growth));
            let least = source.map_or(0, |_| policy.text.least_removed.unwrap_or(1));
            let removed = before.checked_sub(self.placeholder_chars(result)).filter(|removed| *removed >= least)?;
            return Some(Masked { result: result as u32, form: Form::Placeholder, removed });
        }
        let (form, after) = self.placeholder.form(outline, texts, result, &self.facts(result))?;
        Some(Masked { result: result as u32, form, removed: before - after })
    }

    /// Characters of the placeholder of a result.
    pub(crate) fn placeholder_chars(&self, result: usize) -> usize {
        self.placeholder.chars(&self.facts(result))
    }

    /// What the placeholder of a result weighs; its handle as if that had digits alone.
    pub(crate) fn placeholder_weight(&self, result: usize) -> usize {
        match self.placeholder.whole() {
            Some(text) => weight(text),
            None => weight(&self.placeholder.render(&Form::Placeholder, &self.facts(result), Vec::new)),
        }
    }

    /// The values of an observation, as far as the placeholder depends on them.
    fn facts(&self, result: usize) -> ObservationFacts<'a> {
        let PlanContext { outline, pairs, .. } = self.context;
        if self.placeholder.whole().is_some() {
            sizes(outline, result)
        } else {
            facts(outline, pairs, self.turns, result)
        }
    }

    pub(super) fn is_exempt(&self, result: usize) -> bool {
        self.tools.exemption(self.context, result).is_some()
    }

    /// Whether the text of an observation decides how it is masked: it may be a placeholder, or be cut.
    pub(crate) fn needs_text(&self, result: usize) -> bool {
        let PlanContext { outline, policy, .. } = self.context;
        let chars = outline.results[result].chars;
        let is_known = || self.is_long(result) || outline.cut_of(result).is_some();
        !self.is_exempt(result)
            && !is_known()
            && (self.placeholder.may_have(chars)
                || self.placeholder.names_handle()
                || !policy.exempt.texts.0.is_empty()
                || !policy.text.markers.is_empty())
    }

    /// Whether the text of a new result decides whether it is cut.
    pub(crate) fn is_long(&self, result: usize) -> bool {
        let PlanContext { outline, policy, .. } = self.context;
        policy.text.max_result_chars.is_some_and(|max_chars| outline.results[result].chars > max_chars)
            && !self.is_exempt(result)
    }

    /// Cuts an observation that is longer than this, and may be cut, from its whole text; `text` is the result whose text it has.
    pub(super) fn clip(&self, result: usize, text: usize, max_chars: usize) -> Option<Clip> {
        let PlanContext { outline, source, .. } = self.context;
        let chars = outline.results[text].chars;
        (chars > max_chars && self.may_clip(result, text)).then(|| {
            let handle = self.placeholder.names_handle().then(|| source.handle(outline, text));
            Clip::of(chars + outline.cut_of(text).map_or(0, Clip::removed), 0, max_chars, handle)
        })
    }

    /// Whether an observation may be cut: it is text, not exempt, no placeholder, and has no images or dispatch blocks.
    pub(super) fn may_clip(&self, result: usize, text: usize) -> bool {
        let PlanContext { outline, source, policy, .. } = self.context;
        let facts = &outline.results[text];
        facts.frame.holds_text()
            && facts.images == 0
            && !self.is_exempt(result)
            && !self.placeholder.is_placeholder(outline, source, text)
            && !(policy.text.keeps_dispatch && has_dispatch(&source.observation(outline, text)))
    }
}
