//! Stage 1: every observation older than the window is masked.

use super::agents::Reference;
use super::context::{PlanContext, Uncounted, facts, facts_of_pair};
use super::outcome::{Masked, Masking};
use super::planner::Planner;
use crate::clip::{Clip, is_clipped};
use crate::dispatch::{MIN_DISPATCH_CHARS, dispatch_blocks};
use crate::outline::{Name, Outline, ToolResult};
use crate::placeholder::{CountedClip, Form, Placeholder};
use crate::policy::Policy;
use crate::turns::Turns;

impl Planner<'_> {
    /// Masks everything that is older than the window, not exempt, and shorter when masked.
    pub(super) fn mask(&self) -> Masking {
        let mut excluded = Excluded::default();
        excluded.grow(self.policy, self.outline);
        let masker = Masker::of(self.context(), &excluded);
        let older = (0..self.window.older_end)
            .filter(|result| self.window.is_older(*result, self.pairs.name_of(self.outline, *result)));
        let mut all = Vec::with_capacity(self.window.older_end);
        all.extend(older.filter_map(|result| masker.mask(result)));
        let removed = all.iter().map(|masked: &Masked| masked.removed).sum();
        Masking { masked: all, removed, boundary: self.window.older_end, ..Masking::default() }
    }

    /// If that does not fit: masks more observations, oldest first and not in the newest turn, nor what no request has shown, until
    /// the view fits. None if that masks nothing, or removes too little.
    pub(super) fn mask_window(&self, masking: &Masking) -> Option<Masking> {
        let mut excluded = Excluded::default();
        excluded.grow(self.policy, self.outline);
        let masker = Masker::of(self.context(), &excluded);
        let min_removed = self.policy.min_masked_chars;
        let (mut all, mut cost) = (masking.clone(), self.cost(masking));
        for result in 0..self.outline.results.len() {
            if self.fits(cost) && all.removed >= min_removed {
                break;
            }
            if masking.holds(result) || self.is_of_newest_turn(result) || self.window.is_unseen(result) {
                continue;
            }
            if let Some(masked) = masker.mask(result) {
                cost = self.cost_after(cost, &masked);
                all.boundary = all.boundary.max(result + 1);
                all.push(masked);
            }
        }
        let has_more = all.masked.len() > masking.masked.len() && all.removed >= min_removed;
        has_more.then(|| all.sorted())
    }

    fn is_of_newest_turn(&self, result: usize) -> bool {
        let call = self.pairs.call_of(result);
        facts_of_pair(self.outline, call, |message| self.turns.at(message), result).turn == self.turns.count()
    }

    /// Cuts raw results in the window until the view fits.
    pub(super) fn clip(&self, masking: &Masking) -> Result<Masking, Uncounted> {
        let clips = self.clips(masking);
        let costs = self.costs_of(&clips)?;
        let (mut all, mut cost) = (masking.clone(), self.cost(masking));
        for ((result, clip), clip_cost) in clips.into_iter().zip(costs) {
            if self.fits(cost) {
                break;
            }
            let removed = self.outline.results[result].chars - clip.chars();
            let form = Form::Clip(Box::new(CountedClip { clip, cost: clip_cost }));
            let clipped = Masked { result: result as u32, form, removed };
            cost = self.cost_after(cost, &clipped);
            all.push(clipped);
        }
        Ok(all.sorted())
    }

    /// Raw results in the window that are longer than permitted, the longest first.
    fn clips(&self, masking: &Masking) -> Vec<(usize, Clip)> {
        let Planner { outline, pairs, window, .. } = self;
        let Some(max_chars) = self.policy.clip_results else { return vec![] };
        let mut excluded = Excluded::default();
        excluded.grow(self.policy, outline);
        let masker = Masker::of(self.context(), &excluded);
        let is_raw =
            |result: &usize| !window.is_older(*result, pairs.name_of(outline, *result)) && !masking.holds(*result);
        let mut clips: Vec<(usize, Clip)> = (0..outline.results.len())
            .filter(is_raw)
            .filter_map(|result| masker.clip(result, max_chars).map(|clip| (result, clip)))
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

/// Masks single observations.
pub(super) struct Masker<'a> {
    context: PlanContext<'a>,
    placeholder: Placeholder<'a>,
    /// If the placeholder names the turn.
    turns: Option<&'a Turns>,
    excluded: &'a Excluded,
}

impl<'a> Masker<'a> {
    pub fn of(context: PlanContext<'a>, excluded: &'a Excluded) -> Self {
        let placeholder = Placeholder::of(context.policy);
        let turns = placeholder.names_turn().then_some(context.turns);
        Masker { context, placeholder, turns, excluded }
    }

    /// Masks an observation; None if it is exempt, or would not get shorter.
    pub fn mask(&self, result: usize) -> Option<Masked> {
        let PlanContext { outline, policy, pairs, source, .. } = self.context;
        if let Some(max_chars) = policy.clip_at {
            return self.clip(result, max_chars).map(|clip| {
                let cost = clip.chars();
                let form = Form::Clip(Box::new(CountedClip { clip, cost }));
                Masked { result: result as u32, form, removed: outline.results[result].chars - cost }
            });
        }
        if self.is_exempt(result) || self.context.is_cleared(result) {
            return None;
        }
        if let Some(reference) = self.context.references.iter().find(|one| one.result as usize == result) {
            return self.reference(reference);
        }
        let (form, after) = self.placeholder.form(outline, source, result, &facts(outline, pairs, self.turns, result));
        let removed = outline.observation_chars(result, policy.image_chars) - after;
        (form != Form::Stay).then_some(Masked { result: result as u32, form, removed })
    }

    /// Masks a result that refers to an earlier one, whose text it may show.
    fn reference(&self, reference: &Reference) -> Option<Masked> {
        let PlanContext { outline, pairs, .. } = self.context;
        let (result, before) = (reference.result, outline.results[reference.result as usize].chars);
        let after = self.placeholder.chars(&facts(outline, pairs, self.turns, result as usize));
        (before >= after).then_some(Masked { result, form: Form::Placeholder, removed: before - after })
    }

    /// What takes the place of a result that the agent has cleared, wherever it is: the placeholder, or nothing if that is longer.
    pub fn cleared(&self, result: usize) -> Option<Masked> {
        let PlanContext { outline, pairs, .. } = self.context;
        self.context.is_cleared(result).then(|| {
            let before = outline.results[result].chars;
            let after = self.placeholder.chars(&facts(outline, pairs, self.turns, result));
            let form = if before >= after { Form::Placeholder } else { Form::Stay };
            Masked { result: result as u32, form, removed: before.saturating_sub(after) }
        })
    }

    #[inline]
    fn is_exempt(&self, result: usize) -> bool {
        let PlanContext { outline, policy, pairs, source, .. } = self.context;
        outline.results[result].is_pinned
            || (policy.keep_errors && outline.results[result].is_error)
            || self.excluded.has(|| pairs.name_of(outline, result))
            || policy.keep_matching.fit(
                |beginning| source.observation_begins(outline, result, beginning),
                || source.observation(outline, result),
            )
    }

    /// Whether the text of an observation decides how it is masked: it may have dispatch blocks, be a placeholder, or be cut.
    pub fn needs_text(&self, result: usize) -> bool {
        let PlanContext { outline, policy, .. } = self.context;
        let ToolResult { chars, may_hold_dispatch, .. } = outline.results[result];
        !self.is_exempt(result)
            && ((may_hold_dispatch && chars >= MIN_DISPATCH_CHARS)
                || self.placeholder.may_have(chars)
                || self.placeholder.names_handle()
                || (policy.max_observation_chars.is_some() && chars > 0)
                || !policy.keep_matching.0.is_empty()
                || !policy.markers.is_empty())
    }

    /// Cuts an observation that is longer than this, and may be cut.
    fn clip(&self, result: usize, max_chars: usize) -> Option<Clip> {
        let PlanContext { outline, source, .. } = self.context;
        let chars = outline.results[result].chars;
        (chars > max_chars && self.may_clip(result)).then(|| {
            let handle = self.placeholder.names_handle().then(|| source.handle(outline, result));
            Clip::of(chars, 0, max_chars, handle)
        })
    }

    /// Whether an observation may be cut: it is text, not exempt, no placeholder, not cut, and has no images or dispatch blocks.
    fn may_clip(&self, result: usize) -> bool {
        let PlanContext { outline, source, .. } = self.context;
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

/// By tool: whether its results are never masked.
#[derive(Debug, Default, Clone)]
pub(super) struct Excluded(Vec<bool>);

impl Excluded {
    /// Whether results of this tool are never masked; `name` is asked only if those of some are.
    fn has(&self, name: impl FnOnce() -> Name) -> bool {
        !self.0.is_empty() && name().is_some_and(|name| self.0.get(name as usize) == Some(&true))
    }

    /// Keeps only the first tools.
    pub fn truncate(&mut self, tools: usize) {
        self.0.truncate(tools);
    }

    /// Adds new tools; each is looked up once.
    pub fn grow(&mut self, policy: &Policy, outline: &Outline) {
        if !policy.exclude_tools.is_empty() {
            let new = self.0.len()..outline.name_count();
            self.0.extend(new.map(|name| policy.exclude_tools.get(outline.name(name as u32)).is_some()));
        }
    }
}
