//! The state of a history: what its next view shows. One fold over the messages, in the indices of the Outline.
//!
//! ```text
//! message  ─▶ grow     its characters; results that leave the window wait to be masked
//! request  ─▶ step     what it masks, cuts and hides: decided here, and charged
//!             take     what was decided is kept: forms and hidden messages only grow
//! view     ─▶ Plan     masks, cuts, hidden messages, the place of the summary; rendered elsewhere
//! ```
//!
//! **What is folded.** Of each result its form: raw, cut, masked; of each message whether it is hidden; of the task what is left of it;
//! the standing summary, by its place and its share; the boundary, and the sums of its rule: the waste, and what all requests so
//! far were charged, as sent and raw. Nothing in it is a byte of a view, and nothing refers to an earlier view.
//!
//! **Why it is prefix-stable.** A request reads the messages before it and the state alone, never a text that is still to come: a
//! summary counts as its share, whatever a model writes. So a session that grows by one message, and a plan of the whole history,
//! which makes each request of it in order, decide the same; and a rewind is the same fold over fewer messages.
//!
//! **What the bound promises.** No move of the boundary, and no summary that is made because it pays, leaves a request at which all
//! views so far have cost more than the raw history by more than `max_overcost`: see `cost_bound`. What a limit forces is charged, but
//! not prevented.
//!
//! **What it costs.** A message is added once, in constant time for each of its results, and memory is a few numbers for each message
//! and result. A request takes what changes: a move looks at what waits, and lowers the sums of the messages after its first mask;
//! without a move, and below the limit, nothing is passed again. A rewind folds the messages that are left.
//!
//! **What was tried instead.** A view that dropped messages was rendered, scanned again, and became the history of a new fold. It gave
//! the same views, but each limit cost a scan and a second index space, each summary of a model had to be known to plan on, and a
//! rewind behind it had to build the session again (docs/decisions/0015).

use super::context::{Costs, PlanContext};
use super::hidden::Hidden;
use super::keep::is_fixed;
use super::mask::Masker;
use super::masked::{Masked, Masking, Move, masked_in, merged, shown};
use super::outcome::Unmasked;
use super::reasoning::{Reasoning, ReasoningCost};
use super::references::References;
use super::stay::StayingTools;
use super::step::{Step, after_cut, cut_chars};
use super::turn_spans::OldTurns;
use super::units::{Paid, message_of};
use super::window::Window;
use crate::outline::{ItemType, Outline, reserve};

#[derive(Debug, Default, Clone)]
pub(crate) struct State {
    pub(super) sums: Sums,
    pub(super) results: Results,
    pub(super) rule: Course,
    pub(super) gone: Gone,
}

/// What the view and the raw history have.
#[derive(Debug, Default, Clone)]
pub(super) struct Sums {
    /// Prefix sums of characters: after each message of the view, without its summary, and after each message of the raw history.
    pub view_chars: Vec<usize>,
    pub raw_chars: Vec<usize>,
    /// The cost of the view, and of the raw history.
    pub cost: usize,
    pub raw_cost: usize,
    /// The part of the cost of the view that is reasoning.
    pub reasoning: ReasoningCost,
    /// The cost of what is shown and never hidden.
    pub fixed_cost: usize,
    /// Characters that masks and cuts removed from the view.
    pub removed: usize,
}

/// The observations of the view.
#[derive(Debug, Default, Clone)]
pub(super) struct Results {
    pub tools: StayingTools,
    pub window: Window,
    pub references: References,
    /// Those that are maskable and still raw; the characters that masking them would remove, and the first of them.
    pub waiting: Vec<Masked>,
    pub gain: usize,
    pub first: Option<u32>,
    /// Those that were masked before they left the window.
    pub early: Vec<u32>,
    /// Raw ones that are long enough to be cut, if there is a limit.
    pub long: Vec<u32>,
    /// Masked and cut ones, in order; some are masked over a cut.
    pub masked: Vec<Masked>,
    pub cuts: Vec<Masked>,
}

/// The rule of the boundary, after the requests so far.
#[derive(Debug, Default, Clone)]
pub(super) struct Course {
    pub requests: usize,
    /// Messages at the previous request; later ones are written to the cache in any case.
    pub before: usize,
    /// Whether masking has begun: the history was above the trigger.
    pub is_begun: bool,
    /// Whether the view of the last request is over the limit.
    pub is_over: bool,
    /// The cost of the newest view that was over the limit although all that may be hidden was; 0 after one that was not.
    pub least: usize,
    /// The next request writes the whole view to the cache in any case.
    pub is_rewritten: bool,
    /// The first observation after the boundary; the same before the last request; and the moves.
    pub boundary: usize,
    pub boundary_before: usize,
    pub moves: Vec<Move>,
    /// Characters that requests since the last move could have saved.
    pub waste: usize,
    /// The charge of all requests.
    pub paid: Paid,
    pub reasoning: Reasoning,
}

/// The messages that the view does not show, and what a state knows of them.
#[derive(Debug, Default, Clone)]
pub(super) struct Gone {
    pub hidden: Hidden,
    /// The turns that a summary may hide.
    pub old_turns: OldTurns,
    /// The newest compaction of the provider.
    pub compaction: usize,
    /// Hidden observations that wait to be masked, are masked, or cut.
    pub waiting: Vec<Masked>,
    pub masked: Vec<Masked>,
    pub clipped: Vec<Masked>,
    /// The summaries so far, by their keys, with the messages that each has to tell of besides the one before.
    pub told: Vec<(u64, Vec<u32>)>,
    /// Messages that no summary tells of yet.
    pub untold: Vec<u32>,
    /// Whether a limit has hidden messages.
    pub is_forced: bool,
}

impl State {
    /// The messages that the view does not show.
    pub(crate) fn hidden(&self) -> &Hidden {
        &self.gone.hidden
    }

    /// The cost of the view.
    pub(crate) fn cost(&self) -> usize {
        self.sums.cost
    }

    /// Masked and cut observations of the view.
    pub(crate) fn masked(&self) -> (&[Masked], &[Masked]) {
        (&self.results.masked, &self.results.cuts)
    }

    /// The moves of the boundary.
    pub(crate) fn moves(&self) -> &[Move] {
        &self.rule.moves
    }

    /// How many messages it has.
    pub(crate) fn messages(&self) -> usize {
        self.sums.raw_chars.len()
    }

    /// Characters of the view before a message; before the next message, of the whole view.
    pub(crate) fn chars_before(&self, message: usize) -> usize {
        let message = message.min(self.messages());
        let summary = self.gone.hidden.summary_chars_before(message, self.messages());
        self.view_chars_before(message).saturating_add(summary)
    }

    /// The same without the summary.
    pub(super) fn view_chars_before(&self, message: usize) -> usize {
        self.gone.hidden.shown_before(message).checked_sub(1).map_or(0, |before| self.sums.view_chars[before])
    }

    /// Characters of the raw history before a message.
    pub(super) fn raw_before(&self, message: usize) -> usize {
        message.checked_sub(1).map_or(0, |before| self.sums.raw_chars[before])
    }

    /// Characters of a message of the raw history.
    pub(super) fn raw_of(&self, message: usize) -> usize {
        self.sums.raw_chars[message] - self.raw_before(message)
    }

    /// Finds the first observation that waits, after some wait no longer.
    pub(super) fn find_first(&mut self) {
        self.results.first = self.results.waiting.iter().map(|one| one.result).min();
    }

    /// Adds messages up to this number.
    pub(crate) fn grow(&mut self, context: PlanContext, end: usize) {
        self.results.tools.grow(context.policy, context.outline);
        for message in self.messages()..end {
            self.push(context, message);
        }
        self.results.window.grow(context, end);
        for place in 0..self.results.window.left.len() {
            self.leave_window(context, self.results.window.left[place]);
        }
    }

    fn push(&mut self, context: PlanContext, message: usize) {
        let PlanContext { outline, policy, costs, .. } = context;
        if self.gone.hidden.is_torn_by(context, message) {
            self.withdraw_summary(context);
        }
        self.push_reasoning(context, message);
        if outline.messages[message].item == ItemType::Compaction {
            self.gone.compaction = message;
        }
        let raw = outline.chars_of(message, policy.text.image_chars);
        let (added, held) = self.results.references.arrive(context, message, &self.results.masked);
        for source in held {
            self.hold(source);
        }
        let chars = raw.saturating_add_signed(added);
        let cost = costs.map_or(chars, |costs| self.cost_of_message(costs, outline, message));
        self.push_turn(context, message, chars);
        self.sums.raw_chars.push(self.raw_before(message).saturating_add(chars));
        let reasoning = context.reasoning_of(message);
        self.sums.raw_cost = self.sums.raw_cost.saturating_add(cost).saturating_add(reasoning);
        self.sums.view_chars.push(self.sums.view_chars.last().copied().unwrap_or(0).saturating_add(chars));
        let reasoning = if reasoning == 0 { 0 } else { self.add_reasoning(context, message) };
        self.sums.cost = self.sums.cost.saturating_add(cost).saturating_add(reasoning);
        if is_fixed(outline, message) {
            self.sums.fixed_cost = self.sums.fixed_cost.saturating_add(cost);
        }
        if let Some(max_chars) = policy.limit.clip_of_requests() {
            let results = outline.results_of(message).map(|result| result as u32);
            let references = &self.results.references;
            let masker = Masker::of(context, &self.results.tools);
            let is_long = |result: &u32| {
                let text = references.text_of(*result);
                outline.results[text].chars > max_chars && masker.may_clip(*result as usize, text)
            };
            self.results.long.extend(results.filter(is_long));
        }
    }

    /// The cost of a message as it arrived, unmasked and without its reasoning: references may have the text of earlier results.
    pub(super) fn cost_of_message(&self, costs: &Costs, outline: &Outline, message: usize) -> usize {
        let text_of = |result: usize| self.results.references.text_of(result as u32);
        let observations = outline.results_of(message).map(|result| costs.observations[text_of(result)].0);
        observations.fold(costs.messages[message].0, usize::saturating_add)
    }

    /// An observation is referred to again: if it waits to be masked, it no longer does.
    fn hold(&mut self, source: u32) {
        if let Some(place) = self.results.waiting.iter().position(|one| one.result == source) {
            self.results.gain -= self.results.waiting.swap_remove(place).removed;
            self.find_first();
        }
        if self.results.window.stay(source).is_none() {
            self.results.references.hold(source);
        }
    }

    /// An observation leaves the window.
    fn leave_window(&mut self, context: PlanContext, result: u32) {
        if let Some(place) = self.results.early.iter().position(|one| *one == result) {
            self.results.early.swap_remove(place);
            return;
        }
        if context.related.is_empty() {
            return self.wait(context, result);
        }
        for result in self.results.references.released(result) {
            self.wait(context, result);
        }
    }

    /// An observation outside of the window waits to be masked, if it may be.
    fn wait(&mut self, context: PlanContext, result: u32) {
        let message = message_of(context.outline, result);
        let mask =
            Masker::of(context, &self.results.tools).mask(result as usize, self.results.references.source_of(result));
        let Some(masked) = after_cut(&self.results.cuts, mask) else { return };
        if self.gone.hidden.has(message) {
            self.gone.waiting.push(masked);
            return;
        }
        self.results.gain += masked.removed;
        self.results.first = Some(self.results.first.map_or(masked.result, |first| first.min(masked.result)));
        self.results.waiting.push(masked);
    }

    /// Masks and cuts of the view after a step, of which each result shows the later one.
    pub(super) fn forms(&self, step: &Step) -> Vec<Masked> {
        let cuts = merged(self.results.cuts.clone(), step.cuts.clone());
        let mut masked = merged(self.results.masked.clone(), step.masked.clone());
        for one in &mut masked {
            one.removed += cut_chars(&cuts, one.result); // a mask over a cut removes what both do
        }
        shown(cuts, masked)
    }

    pub(super) fn masking(&self) -> Masking {
        Masking {
            masked: self.forms(&Step::default()),
            removed: self.sums.removed,
            boundary: self.rule.boundary,
            moves: self.rule.moves.clone(),
            boundary_before: self.rule.boundary_before,
        }
    }

    /// The results of the view after a step that could be masked, if nothing is.
    pub(crate) fn unmasked(&self, context: PlanContext, step: &Step) -> Unmasked {
        let is_below_trigger = !self.has_begun(context, self.messages());
        let hides = |one: &Masked| {
            let message = message_of(context.outline, one.result);
            step.hiding.as_ref().is_some_and(|hiding| hiding.has(message))
        };
        let waiting = self.results.waiting.iter().filter(|one| !hides(one)).count();
        Unmasked::of(context.policy, self.results.window.older_end, waiting, is_below_trigger)
    }

    /// The most that the view costs of a history of this cost, whose first messages these are.
    pub(crate) fn cost_of(&self, raw_cost: usize) -> usize {
        self.sums.cost.saturating_add(raw_cost.saturating_sub(self.sums.raw_cost))
    }

    pub(super) fn is_masked(&self, result: u32) -> bool {
        self.results.masked.binary_search_by_key(&result, |one| one.result).is_ok()
    }

    /// The boundary at the previous request, and now: `is_over` after the answer to the last one. `now` is where a step takes it
    /// that is not made for good. For a boundary that depends on requests.
    pub(crate) fn boundaries(&self, is_over: bool, now: Option<usize>) -> (usize, usize) {
        match now {
            Some(now) => (self.rule.boundary, now),
            None if is_over => (self.rule.boundary_before, self.rule.boundary),
            None => (self.rule.boundary, self.rule.boundary),
        }
    }

    /// Masks the waiting observations for which `is_included` is true.
    pub(super) fn mask(&mut self, context: PlanContext, is_included: impl Fn(u32) -> bool) {
        let mut now = Vec::with_capacity(self.results.waiting.len());
        now.extend(self.results.waiting.extract_if(.., |one| is_included(one.result)));
        now.sort_unstable_by_key(|one| one.result);
        let Some(first) = now.first().map(|first| first.result) else { return };
        let removed = self.remove(context, &[], &now);
        let is_in_order = self.results.masked.last().is_none_or(|last| last.result < first);
        reserve(&mut self.results.masked, now.len());
        self.results.masked.append(&mut now);
        if !is_in_order {
            self.results.masked.sort_unstable_by_key(|one| one.result);
        }
        self.results.gain -= removed;
        self.find_first();
    }

    /// Counts what new cuts and masks of the view remove.
    pub(super) fn remove(&mut self, context: PlanContext, cuts: &[Masked], masked: &[Masked]) -> usize {
        self.sums.cost = self.changed_cost(context, masked, cuts);
        let place = |result: u32| self.gone.hidden.shown_before(message_of(context.outline, result));
        let mut changes: Vec<&Masked> = masked.iter().chain(cuts).collect();
        changes.sort_by_key(|one| one.result);
        let Some(first) = changes.first().map(|one| place(one.result)) else { return 0 };
        let (mut removed, mut next) = (0, changes.into_iter().peekable());
        for (at, chars) in self.sums.view_chars.iter_mut().enumerate().skip(first) {
            while let Some(one) = next.next_if(|one| place(one.result) == at) {
                removed += one.removed;
            }
            *chars -= removed;
        }
        self.sums.removed += removed;
        removed
    }

    /// The observations whose texts decide how they are masked or cut: those that leave the window now, and of the messages from this
    /// one on long ones; with a limit, or where texts are exempt, all that may be masked.
    pub(crate) fn texts_needed(&self, context: PlanContext, first: usize) -> Vec<usize> {
        let PlanContext { outline, policy, .. } = context;
        let tools = StayingTools::of(policy, outline);
        let masker = Masker::of(context, &tools);
        let new = outline.results_before(first)..outline.results.len();
        let cut_chars = policy.limit.clip_of_requests();
        let is_long = |result: usize| {
            masker.is_long(result) || cut_chars.is_some_and(|max_chars| outline.results[result].chars > max_chars)
        };
        if cut_chars.is_some() || !policy.exempt.texts.0.is_empty() {
            return new.filter(|result| is_long(*result) || masker.needs_text(*result)).collect();
        }
        let mut needed: Vec<usize> = new.filter(|result| is_long(*result)).collect();
        let mut window = self.results.window.clone();
        window.grow(context, context.outline.messages.len());
        needed.extend(window.left.iter().map(|result| *result as usize).filter(|result| masker.needs_text(*result)));
        needed
    }

    /// The state of a view that masks and cuts these, by a rule that has no memory.
    pub(super) fn of_masking(context: PlanContext, end: usize, masking: &Masking) -> Self {
        let mut state = State::default();
        state.grow(context, end);
        let (cuts, masked): (Vec<Masked>, Vec<Masked>) = masking.masked.iter().cloned().partition(Masked::is_clipped);
        state.add_early(&masked);
        state.mask(context, |result| !masked_in(&masked, result as usize..result as usize + 1).is_empty());
        state.cut(context, &cuts);
        state.rule.boundary = masking.boundary;
        state
    }
}
