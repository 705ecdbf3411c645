//! The trigger, and the limit of each request.
//!
//! Below the trigger nothing is masked, and no summary is made. Where a view would exceed the limit, the boundary is forced to the
//! window and then past it, oldest results first, until a quarter of the limit is free again. Where no move helps, long results are
//! cut. Moves and cuts are kept, so that the requests after them find their prefix in the cache.

use super::context::PlanContext;
use super::hidden::Hiding;
use super::mask::Masker;
use super::masked::{Masked, Move, masked_in};
use super::outcome::Need;
use super::state::State;
use super::step::{Point, Step, after_cut, cut_of};
use super::summarize::begins_with_summary;
use super::units::{Bill, message_of};
use crate::outline::reserve;
use crate::placeholder::{CountedClip, Form};
use crate::policy::Goal;
use std::collections::BTreeSet;

impl State {
    /// Whether masking has begun at a request after this many messages, to which the state must have grown.
    pub(super) fn has_begun(&self, context: PlanContext, end: usize) -> bool {
        let policy = context.policy;
        let is_above = |most: usize| self.sums.raw_cost > most;
        let is_over = || {
            policy.limit.trigger == 0
                || is_above(policy.trigger_at(context.requests, end))
                || context.limit_at(end).is_some_and(is_above)
                || begins_with_summary(context.outline, context.source)
        };
        self.rule.is_begun || (!policy.is_off && is_over())
    }

    /// The changes at a point after this many messages, to which the state must have grown. Where no request is made, a boundary that
    /// depends on requests stays.
    pub(crate) fn step(&self, context: PlanContext, end: usize, point: Point) -> Step {
        let bill = if point == Point::Answered { None } else { self.bill(context, end, point) };
        let mut step = self.climb(context, end, point, bill.as_ref());
        let is_forced = step.is_forced && !step.changes_nothing();
        let of_forced = |bill: Bill| self.forced_bill(context, (end, point), &bill, &step);
        step.bill = if is_forced { bill.map(of_forced) } else { bill };
        step
    }

    /// The first of these whose view fits the limit: what the rule of the boundary moves, a summary that pays, what a compaction of the
    /// provider stands for, and what the limit forces.
    fn climb(&self, context: PlanContext, end: usize, point: Point, bill: Option<&Bill>) -> Step {
        let limit = context.limit_at(end);
        let fits = |step: &Step| limit.is_none_or(|max| step.cost <= max);
        let summary = |is_needed| match point {
            Point::Answered => Err(0),
            _ if !self.has_begun(context, end) => Err(0),
            _ => self.summary_step(context, end, bill, is_needed),
        };
        let mut step = self.own_step(context, end, point, bill);
        if context.policy.terms.summaries.is_some() {
            match summary(false) {
                Ok(summary) if fits(&summary) => step = summary,
                Ok(_) => {}
                Err(wasted) => step.wasted = wasted,
            }
        }
        let Some(max) = limit.filter(|_| !fits(&step)) else { return step };
        if let Some(compacted) = self.compacted_step(context, end, point) {
            return compacted;
        }
        let forced = Step { wasted: step.wasted, ..self.forced(context, end, max, &step) };
        // A door that drops nothing for the limit has a summary of old turns where all else is not enough.
        let is_needed = forced.is_over && context.policy.goal == Goal::Mask;
        let summary = if is_needed { summary(true).ok().filter(fits) } else { None };
        summary.unwrap_or(forced)
    }

    /// The step by the rule of the boundary.
    fn own_step(&self, context: PlanContext, end: usize, point: Point, bill: Option<&Bill>) -> Step {
        let policy = context.policy;
        let may_move = point != Point::Answered || !policy.terms.boundary.remembers();
        if may_move
            && self.has_begun(context, end)
            && self.moves_boundary(context, end, bill)
            && let Some(step) = self.move_step(context, true)
        {
            return step;
        }
        Step { boundary: self.rule.boundary, ..Step::at_rest(self.sums.cost) }
    }

    /// The first of these whose view fits: a move past the window, cuts besides the own step, the furthest move with cuts. Else that,
    /// the smallest view of masks and cuts; a door that reduces hides messages besides.
    fn forced(&self, context: PlanContext, end: usize, max: usize, own: &Step) -> Step {
        let fits = |step: &Step| step.cost <= max;
        let furthest = self.step_of(context, self.forced_move(context, end, max - max / 4), vec![]);
        if fits(&furthest) {
            return furthest;
        }
        let with_cuts = |masked: Vec<Masked>| {
            let cuts = self.cuts_to_fit(context, max, &masked);
            self.step_of(context, masked, cuts)
        };
        let cut = Step { boundary: own.boundary, ..with_cuts(own.masked.clone()) };
        if fits(&cut) {
            return cut;
        }
        let exhausted = with_cuts(self.forced_move(context, end, 0));
        match context.policy.goal {
            _ if fits(&exhausted) => exhausted,
            Goal::Reduce if !self.is_least(max, &exhausted) => {
                let hidden = self.hide(context, end, max, exhausted.clone());
                let least = hidden.unwrap_or(Step { is_over: true, ..exhausted });
                Step { is_least: least.is_over, ..least }
            }
            _ => Step { is_over: true, ..exhausted },
        }
    }

    /// The candidates of a forced move: all that is outside of the window, then what is in it, oldest first, but neither of the newest
    /// turn nor unseen; as many as bring the cost of the view to `target`. In order.
    fn forced_move(&self, context: PlanContext, end: usize, target: usize) -> Vec<Masked> {
        let mut all = self.results.waiting.clone();
        all.sort_unstable_by_key(|one| one.result);
        let mut cost = self.changed_cost(context, &all, &[]);
        let mut first = all.first().map(|one| one.result);
        let fits = |cost: usize, first: Option<u32>| {
            let voided = first.map_or(0, |first| self.voided_cost(message_of(context.outline, first)));
            cost.saturating_sub(voided) <= target
        };
        if !all.is_empty() && fits(cost, first) {
            return all;
        }
        let masker = Masker::of(context, &self.results.tools);
        let newest_turn = context.turns.starts.partition_point(|start| (*start as usize) < end);
        let is_shown = |result: u32| !self.gone.hidden.has(message_of(context.outline, result));
        let mut groups = BTreeSet::new();
        for result in self.results.window.recent().into_iter().filter(|result| is_shown(*result)) {
            let alone = [result];
            let group = self.results.references.group_of(result).unwrap_or(&alone);
            if self.is_masked(result) || (group.len() > 1 && !groups.insert(group[0])) {
                continue;
            }
            // The newest of a group is its last.
            if group.iter().rev().any(|one| context.turn_of(*one as usize) == newest_turn) {
                continue;
            }
            let mask = |one: u32| {
                after_cut(&self.results.cuts, masker.mask(one as usize, self.results.references.source_of(one)))
            };
            for one in group.iter().copied().filter(|one| is_shown(*one) && !self.is_masked(*one)).filter_map(mask) {
                let changed = self.changed_cost(context, core::slice::from_ref(&one), &[]);
                cost = (cost + changed).saturating_sub(self.sums.cost);
                first = Some(first.map_or(one.result, |first| first.min(one.result)));
                all.push(one);
            }
            if fits(cost, first) {
                break;
            }
        }
        all.sort_unstable_by_key(|one| one.result);
        all
    }

    /// Cuts of long results that are raw even after these masks, the longest first, until the view fits; of those that were cut when
    /// they arrived, too.
    fn cuts_to_fit(&self, context: PlanContext, max: usize, gone: &[Masked]) -> Vec<Masked> {
        let Some(max_chars) = context.policy.limit.clip_results else { return vec![] };
        let is_masked = |result: &u32| gone.binary_search_by_key(result, |one| one.result).is_ok();
        let mut long: Vec<u32> = self.results.long.iter().copied().filter(|result| !is_masked(result)).collect();
        let text_of = |result: u32| self.results.references.text_of(result);
        long.sort_by_key(|result| core::cmp::Reverse(context.outline.results[text_of(*result)].chars));
        let masker = Masker::of(context, &self.results.tools);
        let (mut cuts, mut left) = (vec![], self.changed_cost(context, gone, &[]));
        let mut first = gone.first().map(|one| one.result);
        for result in long {
            let voided = first.map_or(0, |first| self.voided_cost(message_of(context.outline, first)));
            if left.saturating_sub(voided) <= max {
                break;
            }
            let text = text_of(result);
            let Some(clip) = masker.clip(result as usize, text, max_chars) else { continue };
            let (chars, before) = (clip.chars(), context.outline.results[text].chars);
            let cost = context.text_cost(chars, || context.source.clipped(context.outline, text, &clip));
            let source = (text != result as usize).then_some(text as u32);
            let form = Form::Clip(Box::new(CountedClip { clip, cost, source }));
            let cut = Masked { result, form, removed: before - chars };
            left = (left + self.changed_cost(context, &[], core::slice::from_ref(&cut))).saturating_sub(self.sums.cost);
            first = Some(first.map_or(result, |first| first.min(result)));
            cuts.push(cut);
        }
        cuts.sort_unstable_by_key(|one| one.result);
        cuts
    }

    /// The cost of the view with these masks and cuts besides, and with the reasoning that it has now.
    pub(super) fn changed_cost(&self, context: PlanContext, masked: &[Masked], cuts: &[Masked]) -> usize {
        let change = |cost: usize, one: &Masked| match context.costs {
            None => cost.saturating_sub(one.removed),
            Some(costs) => {
                let raw = || costs.observations[self.results.references.text_of(one.result)].0;
                let before = cut_of(&self.results.cuts, one.result).map_or_else(raw, |cut| costs.of(cut).1);
                cost.saturating_sub(before).saturating_add(costs.of(one).1)
            }
        };
        masked.iter().chain(cuts).fold(self.sums.cost, change)
    }

    /// The step that masks and cuts these, each in order, whatever the rule of the boundary says.
    pub(super) fn step_of(&self, context: PlanContext, masked: Vec<Masked>, cuts: Vec<Masked>) -> Step {
        let cost = self.changed_cost(context, &masked, &cuts);
        let last = masked.last().map_or(0, |last| last.result as usize + 1);
        let boundary = if masked.is_empty() { 0 } else { self.results.window.older_end.max(last) };
        let mut step = Step { masked, cuts, is_forced: true, ..Step::default() };
        step.cost = cost.saturating_sub(step.first_edited(context.outline).map_or(0, |first| self.voided_cost(first)));
        step.boundary = boundary.max(self.rule.boundary);
        step.moved = self.move_of(context, &step);
        step
    }

    /// The move of a step; None if it changes nothing that was sent. Of the view after it, it writes to the cache again what the
    /// previous request had sent and the cache does not keep.
    pub(super) fn move_of(&self, context: PlanContext, step: &Step) -> Option<Move> {
        let first = step.first_change()?;
        let is_sent = |result: u32| message_of(context.outline, result) < self.rule.before;
        if step.masked.is_empty() && !is_sent(first) {
            return None;
        }
        let gone: usize = step.changes().filter(|one| is_sent(one.result)).map(|one| one.removed).sum();
        let kept = self.kept_before(context, Some(first));
        let written_again = self.chars_before(self.rule.before).saturating_sub(gone).saturating_sub(kept);
        let removed = step.changes().map(|one| one.removed).sum();
        Some(Move { request: self.rule.requests, masked: step.masked.len(), removed, written_again, reasoning: 0 })
    }

    /// Characters of the view after a step.
    pub(crate) fn chars_after(&self, end: usize, step: &Step) -> usize {
        let removed = || step.changes().map(|one| one.removed).sum::<usize>();
        step.hiding.as_ref().map_or_else(|| self.chars_before(end).saturating_sub(removed()), |hiding| hiding.chars)
    }

    /// What a limit forced in the view after this step; None below the trigger, or below the limit where there is no trigger. A summary
    /// that was made because it pays is none of the limit.
    pub(crate) fn need(&self, context: PlanContext, step: &Step) -> Option<Need> {
        let policy = context.policy;
        let messages = self.messages();
        let most = match policy.limit.trigger {
            0 => context.max_cost_at(messages)?,
            _ => policy.trigger_at(context.requests, messages),
        };
        if self.sums.raw_cost <= most {
            return None;
        }
        let cuts_off = |hiding: &Hiding| hiding.cuts_off(&self.gone.hidden);
        let hides = self.gone.hidden.is_cut_off() || step.hiding.as_deref().is_some_and(cuts_off);
        let summary = step.hiding.as_ref().map_or(self.gone.hidden.summary, |hiding| hiding.summary);
        let has_cuts = !step.hiding.as_ref().map_or(&self.gone.hidden.cuts, |hiding| &hiding.cuts).is_empty();
        let is_forced = self.gone.is_forced || step.hiding.as_ref().is_some_and(|hiding| hiding.is_forced);
        match summary {
            Some(_) if is_forced => return Some(Need::Summary),
            None if hides => return Some(Need::Truncation),
            _ if has_cuts => return Some(Need::Cuts),
            _ => {}
        }
        let is_masked = |one: &Masked| {
            [&self.results.masked, &step.masked].iter().any(|all| !masked_in(all, one.results()).is_empty())
        };
        let is_cut = self.results.cuts.iter().chain(&step.cuts).any(|one| !is_masked(one));
        Some(if is_cut { Need::Cuts } else { Need::Masks })
    }

    /// Adds the answer to the last request, where no request is made.
    pub(crate) fn answer(&mut self, context: PlanContext, end: usize) {
        self.grow(context, end);
        let step = self.step(context, end, Point::Answered);
        if !step.masked.is_empty() {
            self.rule.boundary_before = self.rule.boundary;
        }
        self.take(context, &step);
    }

    pub(super) fn take(&mut self, context: PlanContext, step: &Step) {
        self.rule.is_over = step.is_over;
        if step.is_least || !step.is_over {
            self.rule.least = if step.is_least { step.cost } else { 0 };
        }
        if step.changes_nothing() {
            return;
        }
        let moved = self.moved_by(context.outline, step);
        if let Some(first) = step.first_edited(context.outline) {
            self.void_reasoning(first);
        }
        if step.is_forced {
            self.add_early(&step.masked);
        }
        let holds = |result: u32| step.masked.binary_search_by_key(&result, |one| one.result).is_ok();
        self.mask(context, |result| if step.is_forced { holds(result) } else { (result as usize) < step.boundary });
        if !step.masked.is_empty() {
            self.rule.waste = 0;
            self.results.long.retain(|result| !holds(*result));
        }
        self.rule.boundary = self.rule.boundary.max(step.boundary);
        self.cut(context, &step.cuts);
        if let Some(hiding) = &step.hiding {
            self.take_hiding(context, hiding);
            self.rule.waste = 0;
        }
        if context.policy.remembers() {
            (self.rule.paid.boundary, self.rule.paid.marked) = (self.boundary_chars(context), 0);
            let first = step.first_change().map_or(usize::MAX, |first| message_of(context.outline, first));
            if step.hiding.is_some() || first < self.rule.before {
                self.rule.paid.shared = if step.hiding.is_some() { 0 } else { first };
            }
            self.rule.moves.extend(moved);
        }
    }

    /// Adds observations in the window to those that wait to be masked.
    pub(super) fn add_early(&mut self, masked: &[Masked]) {
        let mut waiting: Vec<u32> = self.results.waiting.iter().map(|one| one.result).collect();
        waiting.sort_unstable();
        for one in masked.iter().filter(|one| waiting.binary_search(&one.result).is_err()) {
            self.results.early.push(one.result);
            self.results.references.forget_group_of(one.result);
            self.results.gain += one.removed;
            self.results.waiting.push(one.clone());
        }
    }

    pub(super) fn cut(&mut self, context: PlanContext, cuts: &[Masked]) {
        if cuts.is_empty() {
            return;
        }
        self.remove(context, cuts, &[]);
        let place = |result: u32| cuts.binary_search_by_key(&result, |one| one.result).ok();
        for one in &mut self.results.waiting {
            if let Some(place) = place(one.result) {
                let removed = one.removed.saturating_sub(cuts[place].removed);
                self.results.gain -= one.removed - removed;
                one.removed = removed;
            }
        }
        self.results.waiting.retain(|one| one.removed > 0);
        self.find_first();
        self.results.long.retain(|result| place(*result).is_none());
        reserve(&mut self.results.cuts, cuts.len());
        let is_in_order = self.results.cuts.last().is_none_or(|last| last.result < cuts[0].result);
        self.results.cuts.extend_from_slice(cuts);
        if !is_in_order {
            self.results.cuts.sort_unstable_by_key(|one| one.result);
        }
    }
}
