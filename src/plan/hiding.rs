//! Messages leave the view of a state, and come back where a late result would be torn from its call.

use super::context::PlanContext;
use super::hidden::{Hidden, Hiding, Standing, share_of};
use super::keep::{Keeping, Landmarks, is_fixed};
use super::masked::Masked;
use super::reasoning::ReasoningCost;
use super::state::{Gone, State};
use super::step::{Point, Step};
use super::summarize::earlier_summaries;
use super::units::message_of;
use crate::policy::Goal;

impl State {
    /// What is hidden after a step.
    pub(crate) fn hidden_after(&self, step: &Step) -> Hidden {
        let mut hidden = self.gone.hidden.clone();
        if let Some(hiding) = &step.hiding {
            hidden.take(hiding, self.messages());
        }
        hidden
    }

    /// The messages that the summary after a step has to tell of, besides those of the newest one of which `is_known` has the key;
    /// and that key.
    pub(super) fn to_tell(&self, step: &Step, is_known: impl Fn(u64) -> bool) -> (Vec<usize>, Option<u64>) {
        let new = step.hiding.as_ref().map_or(&[][..], |hiding| &hiding.messages);
        let is_new = step
            .hiding
            .as_ref()
            .and_then(|hiding| hiding.summary)
            .is_some_and(|summary| self.gone.told.last().is_none_or(|(told, _)| *told != summary.key));
        let untold: &[u32] = if is_new { &self.gone.untold } else { &[] };
        let mut messages: Vec<usize> =
            untold.iter().chain(if is_new { new } else { &[] }).map(|one| *one as usize).collect();
        let mut known = None;
        for (key, told) in self.gone.told.iter().rev() {
            if is_known(*key) {
                known = Some(*key);
                break;
            }
            messages.extend(told.iter().map(|message| *message as usize));
        }
        messages.sort_unstable();
        (messages, known)
    }

    /// What the newest compaction of the provider stands for: all before it but the system messages, what the user has said, and what
    /// is tied to later messages. None if nothing of that is shown, or nothing is ever hidden.
    fn compacted(&self, context: PlanContext, end: usize) -> Option<Hiding> {
        let (policy, compacted) = (context.policy, self.gone.compaction);
        if compacted <= self.gone.hidden.compacted || policy.goal != Goal::Reduce || policy.limit.fill.is_none() {
            return None;
        }
        let landmarks = Landmarks::of(context.outline, self.gone.hidden.shown(0..end));
        let (landmarks, references) = (&landmarks, Some(&self.results.references));
        let system_inside = context.outline.system_inside(end);
        let keeping = Keeping { context, end, landmarks, references, alternates: false, system_inside };
        let later = self.gone.hidden.shown(compacted..end).chain(keeping.open_calls());
        let kept = keeping.keep_set(later, |message| !self.gone.hidden.has(message));
        let earlier = earlier_summaries(context.outline, context.source, end);
        let is_said = |message: &usize| landmarks.is_said(*message) && !earlier.contains(message);
        let is_replaced = |message: &usize| !kept.contains(message) && !is_said(message);
        let messages: Vec<u32> =
            self.gone.hidden.shown(0..compacted).filter(is_replaced).map(|message| message as u32).collect();
        let summary = self.gone.hidden.summary.filter(|summary| summary.request > compacted).map(|summary| {
            let place = self.gone.hidden.shown(summary.place..end).find(|message| !is_replaced(message));
            Standing { place: place.unwrap_or(end), ..summary }
        });
        let changes_nothing = messages.is_empty() && summary == self.gone.hidden.summary;
        let hiding = Hiding {
            messages,
            cuts: self.gone.hidden.cuts.clone(),
            summary,
            compacted,
            is_forced: true,
            ..Hiding::default()
        };
        (!changes_nothing).then_some(hiding)
    }

    /// The step of a request over its limit if a compaction of the provider has come: what that stands for goes first.
    pub(super) fn compacted_step(&self, context: PlanContext, end: usize, point: Point) -> Option<Step> {
        let mut hiding = self.compacted(context, end)?;
        let mut after = self.clone();
        after.take_hiding(context, &hiding);
        let mut step = after.step(context, end, point);
        hiding.chars = after.chars_after(end, &step);
        if let Some(more) = step.hiding.take() {
            let messages = more.messages.iter().chain(&hiding.messages).copied().collect();
            hiding = Hiding { messages, compacted: hiding.compacted, is_forced: true, ..*more };
            hiding.messages.sort_unstable();
        }
        step.moved = self.move_of(context, &step);
        Some(Step { hiding: Some(Box::new(hiding)), is_forced: true, ..step })
    }

    /// Hides messages: their results are no longer part of the view.
    pub(super) fn take_hiding(&mut self, context: PlanContext, hiding: &Hiding) {
        let outline = context.outline;
        self.gone.hidden.take(hiding, self.messages());
        self.void_reasoning(0);
        let is_hidden = |one: &mut Masked| hiding.has(message_of(outline, one.result));
        self.gone.waiting.extend(self.results.waiting.extract_if(.., is_hidden));
        self.gone.masked.extend(self.results.masked.extract_if(.., is_hidden));
        self.gone.clipped.extend(self.results.cuts.extract_if(.., is_hidden));
        self.gone.untold.extend(&hiding.messages);
        self.gone.is_forced |= hiding.is_forced;
        if let Some(Standing { key, .. }) = hiding.summary
            && self.gone.told.last().is_none_or(|(told, _)| *told != key)
        {
            self.gone.told.push((key, core::mem::take(&mut self.gone.untold)));
        }
        self.results.long.retain(|result| !hiding.has(message_of(outline, *result)));
        self.count_again(context);
        self.reach(context);
    }

    /// Shows what is hidden again, since a late result would be torn from its call.
    pub(super) fn withdraw_summary(&mut self, context: PlanContext) {
        let Gone { waiting, masked, clipped, old_turns, compaction, .. } = core::mem::take(&mut self.gone);
        self.gone = Gone { old_turns, compaction, ..Gone::default() };
        self.results.waiting.extend(waiting);
        self.results.masked.extend(masked);
        self.results.masked.sort_unstable_by_key(|one| one.result);
        self.results.cuts.extend(clipped);
        self.results.cuts.sort_unstable_by_key(|one| one.result);
        self.gone.old_turns.begin_anew();
        self.void_reasoning(0);
        self.count_again(context);
        (self.rule.is_rewritten, self.rule.paid.shared) = (true, 0);
    }

    /// Counts the view again, after messages were hidden or shown.
    fn count_again(&mut self, context: PlanContext) {
        let PlanContext { outline, costs, .. } = context;
        let (mut chars, mut cost, mut fixed) = (0usize, share_of(self.gone.hidden.summary), 0usize);
        self.sums.view_chars.clear();
        self.sums.reasoning = ReasoningCost::default();
        for message in self.gone.hidden.shown(0..self.sums.raw_chars.len()).collect::<Vec<usize>>() {
            let raw = self.raw_of(message);
            let own_cost = costs.map_or(raw, |costs| self.cost_of_message(costs, outline, message));
            let (own_chars, own_cost) =
                self.gone.hidden.cut_of(message).map_or((raw, own_cost), |cut| (cut.clip.chars(), cut.cost));
            chars = chars.saturating_add(own_chars);
            cost = cost.saturating_add(own_cost).saturating_add(self.add_reasoning(context, message));
            fixed = fixed.saturating_add(if is_fixed(outline, message) { own_cost } else { 0 });
            self.sums.view_chars.push(chars);
        }
        (self.sums.cost, self.sums.fixed_cost) = (cost, fixed);
        (self.sums.removed, self.results.gain) = (0, self.results.waiting.iter().map(|one| one.removed).sum());
        self.find_first();
        let (masked, cuts) = (core::mem::take(&mut self.results.masked), core::mem::take(&mut self.results.cuts));
        self.remove(context, &cuts, &[]);
        self.results.cuts = cuts;
        self.remove(context, &[], &masked);
        self.results.masked = masked;
    }

    /// The cost of the view that hides these messages and masks these results besides.
    pub(super) fn cost_hiding(&self, context: PlanContext, hiding: &Hiding, masked: &[Masked]) -> usize {
        let outline = context.outline;
        let reasoning = self.reasoning_hiding(context, hiding);
        let Some(costs) = context.costs else { return hiding.chars.saturating_add(reasoning) };
        let of_message = |message: &u32| self.cost_of_message(costs, outline, *message as usize);
        let hidden: usize = hiding.messages.iter().map(of_message).sum();
        let is_hidden = |one: &&Masked| hiding.has(message_of(outline, one.result));
        let raw = |one: &Masked| costs.observations[self.results.references.text_of(one.result)].0;
        let saved = |one: &Masked| raw(one).saturating_sub(costs.of(one).1);
        let saved: usize = self.forms(&Step::default()).iter().filter(is_hidden).map(saved).sum();
        let gone = hidden.saturating_sub(saved) + self.sums.reasoning.all + share_of(self.gone.hidden.summary);
        (self.changed_cost(context, masked, &[]) + share_of(hiding.summary) + reasoning).saturating_sub(gone)
    }
}
