//! A history that is planned, with what all stages use: its window, and the costs of views.

use super::arrival::with_arrivals;
use super::context::{Costs, Given, PlanContext, Related, Remembered, Uncounted, view_cost};
use super::hidden::{Hidden, share_of};
use super::layout::{Layout, Summary};
use super::mask::Masker;
use super::masked::{Masked, Masking};
use super::outcome::{Outcome, Plan, Stage, Unmasked};
use super::stay::StayingTools;
use super::units::message_of;
use super::window::{Window, older_end};
use crate::outline::Outline;
use crate::pairs::Pairs;
use crate::placeholder::Placeholder;
use crate::policy::{Policy, Requests};
use crate::source::Source;
use crate::text::count_chars;
use crate::turns::Turns;
use std::borrow::Cow;

/// Inputs and facts shared by the stages.
pub(super) struct Planner<'a> {
    /// The number of messages: all, or in a replay those before a request.
    pub(super) end: usize,
    pub(super) outline: &'a Outline,
    pub(super) source: &'a dyn Source,
    pub(super) policy: &'a Policy,
    pub(super) requests: &'a Requests,
    pub(super) placeholder: Placeholder<'a>,
    pub(super) costs: Option<Cow<'a, Costs>>,
    pub(super) remembered: Option<&'a dyn Remembered>,
    pub(super) pairs: Pairs,
    pub(super) turns: Turns,
    /// How many observations are older than the window.
    pub(super) older_end: usize,
    pub(super) orphans: Vec<usize>,
    /// The results of tools that have references to earlier results.
    pub(super) related: Vec<Related>,
    /// Characters of the whole history.
    pub(super) chars: usize,
}

impl<'a> Planner<'a> {
    pub(super) fn of(outline: &'a Outline, source: &'a dyn Source, policy: &'a Policy, given: Given<'a>) -> Self {
        let Given { requests, costs, remembered, .. } = given;
        let end = outline.messages.len();
        let pairs = Pairs::of(outline);
        let turns = Turns::of(outline);
        let orphans = pairs.orphans(outline);
        let chars = outline.total_chars(policy.text.image_chars);
        let placeholder = Placeholder::of(policy);
        let mut planner = Planner {
            end,
            outline,
            source,
            policy,
            requests,
            placeholder,
            costs: costs.map(Cow::Borrowed),
            remembered,
            pairs,
            turns,
            older_end: 0,
            orphans,
            related: vec![],
            chars,
        };
        if planner.costs.is_none() {
            planner.costs = Costs::weighed(planner.context(), 0..end).map(Cow::Owned);
        }
        planner.related = planner.context().related();
        planner.older_end = older_end(planner.context(), end);
        planner
    }

    pub(super) fn context(&self) -> PlanContext<'_> {
        let Planner { outline, source, policy, requests, placeholder, costs, pairs, turns, related, .. } = self;
        let (source, costs) = (*source, costs.as_deref());
        PlanContext { outline, source, policy, requests, placeholder, costs, pairs, turns, related }
    }

    /// The budget of the request after these messages.
    pub(super) fn max_cost(&self) -> Option<usize> {
        self.policy.max_cost_at(self.requests, self.end)
    }

    pub(super) fn fits(&self, cost: usize) -> bool {
        self.max_cost().is_none_or(|max| cost <= max)
    }

    /// The cost of the whole history with these observations masked.
    pub(super) fn cost(&self, masking: &Masking) -> usize {
        match &self.costs {
            None if !self.policy.limit.counts_reasoning => self.chars - masking.removed,
            _ => self.view_cost(|_| true, masking).0,
        }
    }

    /// The cost after masking one more observation.
    pub(super) fn cost_after(&self, cost: usize, masked: &Masked) -> usize {
        let (before, after) = self.costs.as_deref().map_or((masked.removed, 0), |costs| costs.of(masked));
        cost.saturating_sub(before).saturating_add(after)
    }

    /// The cost of a new text: its characters, or what the caller has counted.
    pub(super) fn cost_of(&self, chars: usize, text: impl FnOnce() -> Vec<u8>) -> Result<usize, Uncounted> {
        self.costs.as_deref().map_or(Ok(chars), |costs| costs.of_text(&text()))
    }

    /// Cost and characters of the kept messages with these observations masked.
    pub(super) fn view_cost(&self, keeps: impl Fn(usize) -> bool, masking: &Masking) -> (usize, usize) {
        let messages = (0..self.end).filter(|message| keeps(*message));
        let masked = masking.masked.iter().filter(|masked| keeps(message_of(self.outline, masked.result)));
        let reasoning = messages.clone().map(|message| self.context().reasoning_of(message)).sum::<usize>();
        let (cost, chars) = view_cost(self.context(), messages, masked);
        (cost.saturating_add(reasoning), chars)
    }

    /// The window, which the older observations have left, in order.
    pub(super) fn window(&self) -> Window {
        let mut window = Window::default();
        window.grow(self.context(), self.end);
        window.left.sort_unstable();
        window
    }

    /// Masks everything that is older than the window, not exempt, and shorter when masked.
    pub(super) fn mask(&self) -> Masking {
        let tools = StayingTools::of(self.policy, self.outline);
        let masker = Masker::of(self.context(), &tools);
        let older = self.window().left;
        let mut all = Vec::with_capacity(older.len());
        all.extend(older.into_iter().filter_map(|result| masker.mask(result as usize, None)));
        let removed = all.iter().map(|masked: &Masked| masked.removed).sum();
        Masking { masked: all, removed, boundary: self.older_end, ..Masking::default() }
    }

    /// A plan that masks these, and keeps all messages.
    pub(super) fn masked(&self, masking: Masking) -> Outcome {
        Outcome::Plan(Box::new(self.finish(masking, Hidden::default(), None)))
    }

    /// A plan that masks and hides these.
    pub(super) fn finish(&self, masking: Masking, hidden: Hidden, summary: Option<Summary>) -> Plan {
        let (cost, chars) = if hidden.is_empty() {
            (self.cost(&masking), self.chars - masking.removed)
        } else {
            self.view_cost(|message| !hidden.has(message), &masking)
        };
        let summary_chars = summary.as_ref().map_or(0, |summary| count_chars(&summary.text));
        let sizes = (cost + share_of(hidden.summary), chars + summary_chars);
        self.plan_of(masking, Layout { hidden, summary, ..Layout::whole(self.end) }, sizes, false)
    }

    /// The plan of a view of this cost, and of so many characters.
    pub(super) fn plan_of(
        &self,
        masking: Masking,
        layout: Layout,
        (cost, chars): (usize, usize),
        is_below_trigger: bool,
    ) -> Plan {
        let stage = match (&layout.summary, layout.hidden.is_cut_off()) {
            (Some(_), _) => Some(Stage::Summarization),
            (None, true) => Some(Stage::Fallback),
            (None, false) => masking.masked.iter().any(Masked::is_masked).then_some(Stage::Masking),
        };
        let unmasked = self.unmasked(&masking.masked, is_below_trigger, &layout.hidden);
        let within_limit = self.max_cost().map(|max| cost <= max);
        let whole = |message: usize| self.outline.chars_of(message, self.policy.text.image_chars);
        let cut_off = layout.hidden.cuts.iter().map(|cut| whole(cut.message).saturating_sub(cut.clip.chars()));
        let cut_chars = cut_off.sum();
        let Masking { masked, boundary, boundary_before, moves, .. } = masking;
        let results = 0..self.outline.results.len();
        let masked = with_arrivals(self.outline, masked, results.clone());
        let chars = (self.chars + self.outline.arrival_chars(results), chars);
        let plan = Plan { stage, cut_chars, unmasked, within_limit, ..Plan::default() };
        Plan { masked, boundary, boundary_before, moves, layout, chars, ..plan }
    }

    /// The results of the kept messages that could be masked, if nothing is.
    pub(super) fn unmasked(&self, masked: &[Masked], is_below_trigger: bool, hidden: &Hidden) -> Unmasked {
        if masked.iter().any(Masked::is_masked) {
            return Unmasked::default();
        }
        if let Some(unmasked) = self.not_masked() {
            return unmasked;
        }
        let outside_window = self.older_end;
        let is_kept = |one: &&Masked| !hidden.has(message_of(self.outline, one.result));
        let maskable = if outside_window == 0 { 0 } else { self.mask().masked.iter().filter(is_kept).count() };
        Unmasked::of(self.policy, outside_window, maskable, is_below_trigger)
    }
}
