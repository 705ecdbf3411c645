//! Results that an agent has changed before it sends them: those that it has cleared itself, and those that only refer to the result
//! of an earlier call. Both are known by their whole texts, which the policy lists; none are listed outside of a proxy.

use super::context::{PlanContext, Reference};
use super::fold::Fold;
use super::mask::{Excluded, Masker};
use super::outcome::{Masked, Masking};
use super::planner::Planner;
use super::units::message_of;
use crate::outline::{Name, ToolResult};
use crate::patterns::fits;
use crate::placeholder::Form;
use std::cell::LazyCell;
use std::collections::HashMap;

impl PlanContext<'_> {
    /// Whether the whole text of a result is this one, in which `*` matches any text.
    fn is_text(&self, result: usize, text: &str) -> bool {
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

    /// Whether the agent has cleared a result itself.
    pub(super) fn is_cleared(&self, result: usize) -> bool {
        self.policy.markers.iter().any(|marker| self.is_text(result, marker))
    }

    /// Whether a result is a text of the agent's own, in place of what the tool returned.
    pub(super) fn is_agents_text(&self, result: usize) -> bool {
        self.is_cleared(result) || self.policy.stubs.iter().any(|(_, text)| self.is_text(result, text))
    }

    /// The results that refer to the result of an earlier call of the same tool with the same arguments, in order.
    pub(super) fn references(&self) -> Vec<Reference> {
        let PlanContext { outline, policy, pairs, source, .. } = *self;
        let stubs_of = |name: Name| {
            let name = name.map_or(&b""[..], |name| outline.name(name));
            policy.stubs.iter().filter(move |(tool, _)| tool.as_bytes() == name)
        };
        let is_stub =
            |result: usize| stubs_of(pairs.name_of(outline, result)).any(|(_, text)| self.is_text(result, text));
        let mut found = vec![];
        if policy.stubs.is_empty() || !(0..outline.results.len()).any(is_stub) {
            return found;
        }
        // By call: the result that has the text, and the last one that is or refers to it.
        let mut last: HashMap<(Name, Vec<u8>), (u32, u32)> = HashMap::new();
        for result in 0..outline.results.len() {
            let name = pairs.name_of(outline, result);
            let call = pairs.call_of(result).filter(|_| stubs_of(name).next().is_some());
            let Some(arguments) = call.and_then(|call| source.arguments(outline, call)) else { continue };
            let key = (name, arguments);
            let seen = &outline.results[result];
            if is_stub(result) {
                if let Some((source, previous)) = last.get_mut(&key) {
                    let growth = outline.results[*source as usize].chars.cast_signed() - seen.chars.cast_signed();
                    found.push(Reference { result: result as u32, source: *source, previous: *previous, growth });
                    *previous = result as u32;
                }
            } else if seen.images == 0 && seen.frame.holds_text() && !self.is_cleared(result) {
                last.insert(key, (result as u32, result as u32));
            } else {
                last.remove(&key);
            }
        }
        found
    }
}

/// The references that show the text of their source, since it and all between are masked.
pub(super) fn shown(references: &[Reference], is_masked: impl Fn(u32) -> bool) -> impl Iterator<Item = &Reference> {
    let mut restored: Vec<u32> = vec![];
    references.iter().filter(move |one| {
        let is_restored = is_masked(one.previous) && (one.previous == one.source || restored.contains(&one.previous));
        if is_restored {
            restored.push(one.result);
        }
        is_restored && !is_masked(one.result)
    })
}

impl Fold {
    pub(super) fn is_masked(&self, result: u32) -> bool {
        self.masked.binary_search_by_key(&result, |one| one.result).is_ok()
    }

    /// Characters that references in messages before this one show in addition.
    pub(super) fn restored_before(&self, message: usize) -> isize {
        self.core.restored.iter().filter(|(other, _)| *other < message).map(|(_, growth)| growth).sum()
    }

    /// Adds the references of a new message that show the text of their source. Returns the characters that this adds.
    pub(super) fn restore(&mut self, context: PlanContext, message: usize) -> isize {
        let results = context.outline.results_of(message);
        let here = |one: &&Reference| results.contains(&(one.result as usize));
        let now = shown(context.references, |result| self.is_masked(result));
        let growth: isize = now.filter(here).map(|one| one.growth).sum();
        if growth != 0 {
            self.core.restored.push((message, growth));
        }
        growth
    }

    /// After a move: the references of all messages that now show the text of their source, instead of those of before.
    pub(super) fn restore_again(&mut self, context: PlanContext, before: &[(usize, isize)]) {
        if context.references.is_empty() {
            return;
        }
        (0..self.chars_before.len()).for_each(|message| {
            self.restore(context, message);
        });
        let sum = |restored: &[(usize, isize)], message| -> isize {
            restored.iter().filter(|(other, _)| *other <= message).map(|(_, growth)| growth).sum()
        };
        for (message, chars) in self.chars_before.iter_mut().enumerate() {
            *chars = chars.saturating_add_signed(sum(&self.core.restored, message) - sum(before, message));
        }
        let growth = sum(&self.core.restored, usize::MAX) - sum(before, usize::MAX);
        self.core.cost = self.core.cost.saturating_add_signed(growth);
    }

    /// Characters that references in messages before this one show in addition, more than now, once these results are masked as well.
    fn growth(&self, context: PlanContext, message: usize, is_new: impl Fn(u32) -> bool) -> isize {
        if context.references.is_empty() {
            return 0;
        }
        let after: isize = shown(context.references, |result| self.is_masked(result) || is_new(result))
            .filter(|one| message_of(context.outline, one.result) < message)
            .map(|one| one.growth)
            .sum();
        after - self.restored_before(message)
    }

    /// [`Fold::growth`] of a move.
    pub(super) fn growth_by_move(&self, context: PlanContext, message: usize) -> isize {
        self.growth(context, message, |result| self.core.waiting.iter().any(|one| one.result == result))
    }

    /// [`Fold::growth`] of the whole view, if these observations are masked.
    pub(super) fn restored_growth(&self, context: PlanContext, masked: &[Masked]) -> isize {
        let end = self.core.aging.messages();
        self.growth(context, end, |result| masked.iter().any(|one| one.result == result))
    }

    /// Characters that a move removes from the view, without those that references then show.
    pub(super) fn net_gain(&self, context: PlanContext) -> usize {
        self.core.gain.saturating_add_signed(-self.growth_by_move(context, self.core.aging.messages()))
    }

    /// Moves the boundary past results that the agent has cleared, with none between that could be masked: nothing is charged.
    pub(super) fn pass_cleared(&mut self, context: PlanContext) {
        let first = self.core.first.unwrap_or(u32::MAX);
        let Some(last) = self.core.cleared.iter().copied().filter(|result| *result < first).max() else { return };
        if last as usize >= self.core.boundary {
            self.core.boundary = last as usize + 1;
            (self.core.paid.boundary, self.core.paid.marked) = (self.boundary_chars(context), 0);
        }
    }

    /// The last result before the boundary whose text is gone: masked, or cleared by the agent.
    pub(super) fn last_gone(&self) -> Option<u32> {
        let is_passed = |result: &u32| (*result as usize) < self.core.boundary;
        let cleared = self.core.cleared.iter().copied().filter(is_passed).max();
        self.masked.last().map(|last| last.result).max(cleared)
    }
}

impl Planner<'_> {
    /// Adds what follows from the texts of the agent: cleared results as placeholders, references with the text of their source.
    pub(super) fn with_agent_texts(&self, mut masking: Masking) -> Masking {
        let context = self.context();
        if !self.policy.markers.is_empty() {
            let excluded = Excluded::default();
            let masker = Masker::of(context, &excluded);
            for cleared in (0..self.outline.results.len()).filter_map(|result| masker.cleared(result)) {
                if cleared.form == Form::Stay {
                    masking.stays.push(cleared.result);
                } else {
                    masking.push(cleared);
                }
            }
            masking = masking.sorted();
        }
        let restored: Vec<Reference> =
            shown(&self.references, |result| masking.holds(result as usize)).copied().collect();
        for Reference { result, source, growth, .. } in restored {
            let removed = usize::try_from(-growth).unwrap_or(0);
            masking.removed -= usize::try_from(growth).unwrap_or(0);
            masking.push(Masked { result, form: Form::Restored { source }, removed });
        }
        masking.sorted()
    }
}
