//! The turns that a summary may hide.
//!
//! A turn has the messages of its run, and those with its calls or results. All others, of the user and of the system, are
//! instructions, and stay; so do turns with a result that [stays](super::stay), with a compaction of the provider, or with what is never
//! hidden. A summary stands for whole turns that are older than the newest ones and than the window. A message of several turns ties
//! them: they are hidden together or not at all.

use super::context::PlanContext;
use super::hidden::Hidden;
use crate::outline::{ItemType, Outline};
use std::collections::BTreeSet;

/// The first and last turn of a message; 0 if it belongs to none.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TurnSpan {
    pub first: usize,
    pub last: usize,
}

/// What summaries of old turns know of a history.
#[derive(Debug, Default, Clone)]
pub(super) struct OldTurns {
    pub spans: Vec<TurnSpan>,
    /// Messages of several turns, and results that came after a later turn had begun: their turns.
    ties: Vec<(usize, TurnSpan)>,
    /// The turns with what stays at every request, from 1.
    staying: BTreeSet<usize>,
    /// The turns, from 1, right before messages of the user, ascending.
    answered: Vec<usize>,
    /// The last turn with what stays, or a tie.
    last_odd: usize,
    /// Prefix sums of the characters of messages of no turn, after each message.
    stays: Vec<usize>,
    /// How many of the first turns the last summary has reached.
    pub reached: usize,
    /// Characters that requests since the last summary could have saved.
    pub waste: usize,
}

impl OldTurns {
    /// Adds a message of this many characters, of whose results some stay.
    pub(crate) fn push(
        &mut self,
        context: PlanContext,
        message: usize,
        chars: usize,
        stays: impl FnMut(usize) -> bool,
    ) {
        let PlanContext { outline, pairs, turns, .. } = context;
        let own = outline.messages[message].is_agent_made || !outline.calls_of(message).is_empty();
        let calls = outline.results_of(message).map(|result| pairs.call_of(result));
        let at = calls.map(|call| call.map_or(message, |call| outline.calls[call].message as usize));
        let mut span = TurnSpan::default();
        let at = at.chain(pairs.links.before(message));
        for turn in own.then_some(message).into_iter().chain(at).map(|at| turns.at(at)) {
            // A message of no turn stays, and so does one tied to it.
            span.last = if turn == 0 { usize::MAX } else { span.last.max(turn) };
            span.first = if span.first == 0 || turn == 0 { span.first.max(turn) } else { span.first.min(turn) };
        }
        let is_of_turns = span.first > 0 && span.last < usize::MAX;
        let newest = turns.starts.partition_point(|start| *start as usize <= message);
        if span.first > 0 && span.first < span.last.max(newest) {
            self.ties.push((message, TurnSpan { last: span.last.max(newest), ..span }));
            self.last_odd = self.last_odd.max(span.last.max(newest));
        }
        if outline.is_said_by_user(message) && newest > 0 {
            self.answered.push(newest);
        }
        let is_kept = outline.messages[message].item == ItemType::Compaction || outline.is_never_hidden(message);
        if is_of_turns && (is_kept || outline.results_of(message).any(stays)) {
            self.staying.insert(span.first);
            self.last_odd = self.last_odd.max(span.first);
        }
        let stays = self.stays.last().copied().unwrap_or(0);
        self.stays.push(if is_of_turns { stays } else { stays + chars });
        self.spans.push(span);
    }

    pub(crate) fn stays_before(&self, message: usize) -> usize {
        message.checked_sub(1).map_or(0, |before| self.stays[before])
    }

    /// Whether no summary ever hides a turn: it has what stays; or else two messages of the user would be in a row, which the provider
    /// refuses.
    pub(crate) fn stays(&self, outline: &Outline, turn: usize) -> bool {
        let is_between = || outline.alternates_roles() && self.answered.binary_search(&turn).is_ok();
        self.staying.contains(&turn) || is_between()
    }

    /// Whether a summary hides all turns from this one on alike.
    pub(crate) fn are_even(&self, outline: &Outline, first: usize) -> bool {
        let is_last = || self.answered.last().is_none_or(|last| *last <= first);
        self.last_odd <= first && (!outline.alternates_roles() || is_last())
    }

    /// Which turns from this one on, up to another, a summary may hide; the others stay, or are in a window, or would be torn.
    pub(crate) fn hideable(
        &self,
        outline: &Outline,
        hidden: &Hidden,
        (first, end): (usize, usize),
        in_windows: &BTreeSet<usize>,
    ) -> Vec<bool> {
        let may_hide = |turn: usize| !self.stays(outline, turn) && !in_windows.contains(&turn);
        let mut hideable: Vec<bool> = (first + 1..=end).map(may_hide).collect();
        let ties = self.ties.iter().filter(|(message, tie)| tie.last > first && !hidden.has(*message));
        let mut ties: Vec<TurnSpan> = ties.map(|(_, tie)| *tie).collect();
        ties.sort_unstable_by_key(|tie| tie.first);
        // Ties that share a turn are one.
        let mut joined: Vec<TurnSpan> = vec![];
        for tie in ties {
            match joined.last_mut().filter(|before| tie.first <= before.last) {
                Some(before) => before.last = before.last.max(tie.last),
                None => joined.push(tie),
            }
        }
        for TurnSpan { first: from, last } in joined {
            let is_inside = from > first && last <= end;
            let range = from.saturating_sub(1).clamp(first, end) - first..last.min(end) - first;
            if !is_inside || hideable[range.clone()].contains(&false) {
                hideable[range].fill(false);
            }
        }
        hideable
    }

    /// Begins anew after everything that was hidden is shown again.
    pub(crate) fn begin_anew(&mut self) {
        (self.reached, self.waste) = (0, 0);
    }
}
