//! How a single observation is masked or cut, and which are exempt.

use super::context::{PlanContext, facts, sizes};
use super::masked::Masked;
use crate::clip::{Clip, is_clipped};
use crate::dispatch::has_dispatch;
use crate::outline::{Name, Outline};
use crate::placeholder::{Form, ObservationFacts, Placeholder};
use crate::policy::Policy;
use crate::turns::Turns;

pub(super) struct Masker<'a> {
    pub(super) context: PlanContext<'a>,
    placeholder: &'a Placeholder<'a>,
    /// The turns, if the placeholder names the turn.
    turns: Option<&'a Turns>,
    excluded: &'a Excluded,
}

impl<'a> Masker<'a> {
    pub(crate) fn of(context: PlanContext<'a>, excluded: &'a Excluded) -> Self {
        let placeholder = context.placeholder;
        let turns = placeholder.names_turn().then_some(context.turns);
        Masker { context, placeholder, turns, excluded }
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

    /// The values of an observation, as far as the placeholder depends on them.
    fn facts(&self, result: usize) -> ObservationFacts<'a> {
        let PlanContext { outline, pairs, .. } = self.context;
        if self.placeholder.whole().is_some() {
            sizes(outline, result)
        } else {
            facts(outline, pairs, self.turns, result)
        }
    }

    pub(crate) fn is_exempt(&self, result: usize) -> bool {
        let PlanContext { outline, policy, .. } = self.context;
        (policy.exempt.errors && outline.results[result].is_error) || self.carries_instructions(result)
    }

    /// Whether an observation has instructions, such as the words of the user: it is never masked, and not summarized because that pays.
    pub(crate) fn carries_instructions(&self, result: usize) -> bool {
        let PlanContext { outline, policy, pairs, source, .. } = self.context;
        let is_cut = || outline.cut_of(result).is_some(); // what is exempt was not cut
        outline.results[result].is_pinned
            || self.excluded.has(|| pairs.name_of(outline, result))
            || (!policy.exempt.texts.0.is_empty()
                && !is_cut()
                && policy.exempt.texts.fit(
                    |beginning| source.observation_begins(outline, result, beginning),
                    |suffix| source.observation_may_end(outline, result, suffix),
                    || source.observation(outline, result),
                ))
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

    /// Cuts an observation that is longer than this, and may be cut.
    pub(super) fn clip(&self, result: usize, max_chars: usize) -> Option<Clip> {
        let PlanContext { outline, source, .. } = self.context;
        let chars = outline.results[result].chars;
        (chars > max_chars && self.may_clip(result)).then(|| {
            let handle = self.placeholder.names_handle().then(|| source.handle(outline, result));
            Clip::of(chars, 0, max_chars, handle)
        })
    }

    /// Whether an observation may be cut: it is text, not exempt, no placeholder, not cut, and has no images or dispatch blocks.
    fn may_clip(&self, result: usize) -> bool {
        let PlanContext { outline, source, policy, .. } = self.context;
        let facts = &outline.results[result];
        facts.frame.holds_text()
            && facts.images == 0
            && outline.cut_of(result).is_none()
            && !self.is_exempt(result)
            && !self.placeholder.is_placeholder(outline, source, result)
            && {
                let text = source.observation(outline, result);
                !(is_clipped(&text) || (policy.text.keeps_dispatch && has_dispatch(&text)))
            }
    }
}

/// Whether a tool's results are never masked, by tool.
#[derive(Debug, Default, Clone)]
pub(super) struct Excluded(Vec<bool>);

impl Excluded {
    pub(crate) fn of(policy: &Policy, outline: &Outline) -> Self {
        let mut excluded = Excluded::default();
        excluded.grow(policy, outline);
        excluded
    }

    /// Whether results of this tool are never masked; `name` is asked only if those of some are.
    fn has(&self, name: impl FnOnce() -> Name) -> bool {
        !self.0.is_empty() && name().is_some_and(|name| self.0.get(name as usize) == Some(&true))
    }

    /// Adds new tools; each is looked up once.
    pub(crate) fn grow(&mut self, policy: &Policy, outline: &Outline) {
        if !policy.exempt.tools.is_empty() {
            let new = self.0.len()..outline.name_count();
            self.0.extend(new.map(|name| policy.exempt.tools.get(outline.name(name as u32)).is_some()));
        }
    }
}
