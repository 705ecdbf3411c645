//! A summary of old turns, because it pays or is due: the hybrid of masks and summaries, and summaries alone.
//!
//! A summary stands for whole turns that are older than the newest ones and than the window; see `turn_spans`.
//!
//! Characters of requests that a summary would have saved are waste. Once reading them from the cache has cost as much as the summary:
//! writing the view again, and the call of a model; and if the bound on cost permits it, the summary pays.

use super::context::PlanContext;
use super::hidden::{Hiding, Standing, key_of, share_of};
use super::state::State;
use super::step::Step;
use super::summarize::leading_system_messages;
use super::turn_spans::TurnSpan;
use super::units::{Bill, cost, message_of};
use crate::outline::Role;
use crate::policy::{Due, Summaries, SummaryPrices};
use std::collections::BTreeSet;

struct Draft {
    /// The turns up to which it reaches.
    turns: usize,
    /// Characters of the view that it replaces, and those of them that the previous request had sent.
    replaced: usize,
    sent_before: usize,
    /// Characters of the same, raw.
    raw: usize,
}

impl Summaries {
    /// How many turns a summary made after this many reaches; None before the first is due.
    fn wanted(&self, turns: usize) -> Option<usize> {
        match self.due {
            Due::Turns { first, every } => Some(turns.checked_sub(first)? / every * every + first - self.tail),
            Due::BreakEven => Some(turns.saturating_sub(self.tail)),
        }
    }

    /// The cost of a model with this input and output.
    pub(super) fn call_cost(&self, (given, written): (usize, usize)) -> f64 {
        cost(given, self.prices.input) + cost(written, self.prices.output)
    }

    /// Whether a summary is made; see the module.
    fn pays(&self, waste: usize, again: usize, call: (usize, usize), is_permitted: impl FnOnce() -> bool) -> bool {
        let SummaryPrices { read, write, .. } = self.prices;
        let is_paid = || cost(waste, read) >= cost(again, write - read) + self.call_cost(call) && is_permitted();
        self.due != Due::BreakEven || is_paid()
    }
}

impl State {
    /// Adds a message, if summaries of old turns are made.
    pub(super) fn push_turn(&mut self, context: PlanContext, message: usize, chars: usize) {
        if context.policy.terms.summaries.is_some() {
            let stays = |result: usize| self.results.tools.for_good(context, result).is_some();
            self.gone.old_turns.push(context, message, chars, stays);
        }
    }

    /// A summary of this many turns or fewer, as they are tied; None if it would reach no new turn.
    fn draft(&self, context: PlanContext, end: usize, wanted: usize) -> Option<Draft> {
        let turns = context.turns;
        let rules = context.policy.terms.summaries?;
        let mut reaches = wanted;
        let window = &self.results.window;
        if let Some(first) = window.first(context.policy).filter(|_| rules.due == Due::BreakEven) {
            reaches = reaches.min(context.turn_of(first as usize).saturating_sub(1));
        }
        // What no request has shown, and calls whose results may still come, are of the newest turns.
        let newest = turns.starts.partition_point(|start| (*start as usize) < end);
        reaches = reaches.min(newest.saturating_sub(1));
        let first = self.gone.old_turns.reached;
        if reaches <= first {
            return None;
        }
        let (from, to) = (turns.starts[first] as usize, turns.starts[reaches] as usize);
        let share = share_of(self.gone.hidden.summary);
        let sum = |chars: &dyn Fn(usize) -> usize, to: usize| chars(to).saturating_sub(chars(from));
        let (view, raw) = (|message| self.view_chars_before(message), |message| self.raw_before(message));
        let in_windows = self.turns_in_windows(context);
        let is_whole = self.gone.hidden.shown_before(to) - self.gone.hidden.shown_before(from) == to - from;
        let is_even = is_whole && self.gone.old_turns.are_even(first);
        let draft = if is_even && in_windows.range(first + 1..=reaches).next().is_none() {
            let stays = |to| sum(&|message| self.gone.old_turns.stays_before(message), to);
            let sent = to.min(self.rule.before.max(from));
            Draft {
                turns: reaches,
                replaced: share + sum(&view, to).saturating_sub(stays(to)),
                sent_before: share + sum(&view, sent).saturating_sub(stays(sent)),
                raw: sum(&raw, to).saturating_sub(stays(to)),
            }
        } else {
            let hidden = self.hidden_by(context, reaches, &in_windows);
            let chars = |chars: &dyn Fn(usize) -> usize, end: usize| {
                let of = hidden.iter().map(|message| *message as usize).filter(|message| *message < end);
                of.map(|message| chars(message + 1) - chars(message)).sum::<usize>()
            };
            let (replaced, sent_before) = (share + chars(&view, to), share + chars(&view, self.rule.before));
            Draft { turns: reaches, replaced, sent_before, raw: chars(&raw, to) }
        };
        Some(draft)
    }

    /// The turns with a result in the window of its own tool.
    fn turns_in_windows(&self, context: PlanContext) -> BTreeSet<usize> {
        let spans = &self.gone.old_turns.spans;
        let results = self.results.window.of_tools();
        results.map(|result| spans[message_of(context.outline, result)].first).collect()
    }

    /// The messages that a summary hides which reaches this many turns.
    fn hidden_by(&self, context: PlanContext, reaches: usize, in_windows: &BTreeSet<usize>) -> Vec<u32> {
        let (old_turns, first) = (&self.gone.old_turns, self.gone.old_turns.reached);
        let hideable = old_turns.hideable(&self.gone.hidden, (first, reaches), in_windows);
        let starts = &context.turns.starts;
        let is_hidden = |message: &usize| {
            let TurnSpan { first: from, last } = old_turns.spans[*message];
            from > first && last <= reaches && hideable[from - 1 - first] && !self.gone.hidden.has(*message)
        };
        (starts[first] as usize..starts[reaches] as usize).filter(is_hidden).map(|message| message as u32).collect()
    }

    /// The step of a request for which a summary of old turns pays, is due, or is needed; without it, the characters that it would have
    /// saved.
    pub(super) fn summary_step(
        &self,
        context: PlanContext,
        end: usize,
        bill: Option<&Bill>,
        is_needed: bool,
    ) -> Result<Step, usize> {
        let rules = context.policy.terms.summaries.ok_or(0usize)?;
        let begun = |end: usize| context.turns.starts.partition_point(|start| (*start as usize) < end);
        let known = context.requests.summaries_at.as_deref();
        let text = known.and_then(|known| known.iter().find(|(request, _)| *request == end));
        let most = rules.wanted(begun(end)).filter(|_| context.requests.failed_summaries.binary_search(&end).is_err());
        let most = most.map(|most| text.map_or(most, |(_, before)| most.min(begun(*before))));
        let draft = most.and_then(|most| self.draft(context, end, most)).ok_or(0usize)?;
        let share = rules.model.map_or(context.policy.limit.summary_chars, |model| model.summary_chars);
        if share >= draft.replaced {
            return Err(0);
        }
        let wasted = draft.replaced - share;
        if known.is_some() && text.is_none() {
            return Err(wasted);
        }
        let first = || self.before_systems(context, context.turns.starts[0] as usize, |_| true);
        let place = self.gone.hidden.summary.map_or_else(first, |summary| summary.place);
        let standing = share_of(self.gone.hidden.summary);
        // Kept characters after the summary that the previous request had sent are written to the cache again.
        let sent =
            standing + self.view_chars_before(self.rule.before) - self.view_chars_before(place.min(self.rule.before));
        let untold = self.gone.untold.iter().map(|message| *message as usize);
        let untold = untold.filter(|message| *message >= self.gone.hidden.compacted);
        let untold: usize = untold.map(|message| self.raw_of(message)).sum();
        let given = draft.raw + untold + standing;
        let call = rules.model.map_or((0, 0), |model| (given + model.prompt_chars, model.summary_chars));
        let chars = (self.chars_before(end) - draft.replaced).saturating_add(share);
        let again = share + sent.saturating_sub(draft.sent_before);
        let is_permitted = || self.permits_summary(context.policy, bill, chars, call);
        // What an earlier request has made is a fact.
        let is_made = is_needed || (text.is_some() && end < context.outline.messages.len());
        if !is_made && !rules.pays(self.gone.old_turns.waste.saturating_add(wasted), again, call, is_permitted) {
            return Err(wasted);
        }
        let hidden = self.hidden_by(context, draft.turns, &self.turns_in_windows(context));
        if hidden.is_empty() {
            return Err(0);
        }
        let (first, key) = ((hidden[0] as usize).min(place), key_of(self.gone.hidden.summary, &hidden));
        let (cuts, compacted, call) = (self.gone.hidden.cuts.clone(), self.gone.hidden.compacted, Some(call));
        let mut hiding = Hiding { messages: hidden, cuts, call, is_forced: is_needed, ..Hiding::default() };
        let place = self.gone.hidden.shown(first..end).find(|message| !hiding.has(*message)).unwrap_or(end);
        let place = self.before_systems(context, place, |message| !hiding.has(message));
        hiding.summary = Some(Standing { place, share, request: end, compacted, key, is_forced: is_needed });
        // Since all is written again, what is old is masked now.
        let boundary = self.next_boundary(context.policy);
        let masked = self.waiting_before(boundary, |one| !hiding.has(message_of(context.outline, one.result)));
        hiding.chars = chars.saturating_sub(masked.iter().map(|one| one.removed).sum());
        let cost = self.cost_hiding(context, &hiding, &masked);
        let boundary = boundary.max(self.rule.boundary);
        Ok(Step { cost, boundary, hiding: Some(Box::new(hiding)), ..self.step_of(context, masked, vec![]) })
    }

    /// The place before the system messages of the view that are right before it: the user speaks in a summary, and a system message has
    /// to come after the user.
    fn before_systems(&self, context: PlanContext, place: usize, is_shown: impl Fn(usize) -> bool) -> usize {
        let outline = context.outline;
        let leading = leading_system_messages(outline, place);
        let before = self.gone.hidden.shown(leading..place).rev().filter(|message| is_shown(*message));
        before.take_while(|message| outline.messages[*message].role == Role::System).last().unwrap_or(place)
    }

    /// After messages were hidden: the turns that are reached.
    pub(super) fn reach(&mut self, context: PlanContext) {
        let starts = &context.turns.starts;
        let is_gone = |turn: usize| {
            starts.get(turn).is_some_and(|start| self.gone.hidden.has(*start as usize))
                || self.gone.old_turns.stays(turn + 1)
        };
        let more = (self.gone.old_turns.reached..starts.len()).take_while(|turn| is_gone(*turn)).count();
        self.gone.old_turns.reached += more;
        self.gone.old_turns.waste = 0;
    }
}
