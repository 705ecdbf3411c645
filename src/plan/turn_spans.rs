//! The turns that a summary may hide.
//!
//! Those with calls, the text and reasoning beside them, and their results alone. Anything else keeps its turn: a result that
//! [stays](super::stay), words and pictures of the user beside one, what the provider has run, what loads tools, what is of an unknown
//! type, a compaction. An answer without results is of no turn here, like messages of the user and of the system: these stay. A summary
//! stands for whole turns that are older than the newest ones and than the window. A message of several turns ties them: they are hidden
//! together or not at all.

use super::context::PlanContext;
use super::hidden::Hidden;
use crate::outline::{Besides, ItemType, Outline, Role};
use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    /// The last turn with what stays, or a tie.
    last_odd: usize,
    /// The turns without a result, and what the agent has said in each.
    unanswered: BTreeMap<usize, Vec<u32>>,
    /// The newest turn.
    newest: usize,
    /// The newest system messages after the first turn, by what they say.
    systems: HashMap<u64, u32>,
    /// Whether there is a system message behind another message; and whether there is one that is none of the system.
    has_systems: bool,
    is_begun: bool,
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
        let newest = turns.starts.partition_point(|start| *start as usize <= message);
        let calls = outline.results_of(message).map(|result| pairs.call_of(result));
        let calls: Vec<Option<usize>> =
            calls.map(|call| call.map(|call| outline.calls[call].message as usize)).collect();
        for call in calls.iter().flatten() {
            self.take_answer(outline, turns.at(*call));
        }
        let linked = pairs.links.before(message);
        let mut at: Vec<usize> = calls.iter().map(|call| call.unwrap_or(message)).chain(linked).collect();
        let is_own = outline.messages[message].is_agent_made || !outline.calls_of(message).is_empty();
        if is_own && newest > 0 && at.is_empty() && self.waits_for_result(newest) {
            self.unanswered.entry(newest).or_default().push(message as u32);
        } else if is_own {
            at.push(message);
        }
        let mut span = TurnSpan::default();
        for turn in at.into_iter().map(|at| turns.at(at)) {
            // A message of no turn stays, and so does one tied to it.
            span.last = if turn == 0 { usize::MAX } else { span.last.max(turn) };
            span.first = if span.first == 0 || turn == 0 { span.first.max(turn) } else { span.first.min(turn) };
        }
        let is_of_turns = span.first > 0 && span.last < usize::MAX;
        if span.first > 0 && span.first < span.last.max(newest) {
            self.ties.push((message, TurnSpan { last: span.last.max(newest), ..span }));
            self.last_odd = self.last_odd.max(span.last.max(newest));
        }
        self.push_system(context, message, newest);
        if outline.is_said_by_user(message)
            && self.has_systems
            && newest > 0
            && !outline.messages[message - 1].is_agent_made
        {
            self.keep(newest); // else a system message would be right before one of the user
        }
        if is_of_turns && (keeps_turn(outline, message) || outline.results_of(message).any(stays)) {
            self.keep(span.first);
        }
        let stays = self.stays.last().copied().unwrap_or(0);
        self.stays.push(if is_of_turns { stays } else { stays + chars });
        self.spans.push(span);
    }

    /// Adds a system message: an earlier one that it replaces goes with its turn.
    fn push_system(&mut self, context: PlanContext, message: usize, newest: usize) {
        let PlanContext { outline, turns, .. } = context;
        if outline.messages[message].role != Role::System {
            self.is_begun = true;
            return;
        }
        self.has_systems |= self.is_begun;
        let Some(digest) = outline.system_text(message).filter(|_| newest > 0) else { return };
        let Some(before) = self.systems.insert(digest, message as u32) else { return };
        let turn = turns.at(before as usize);
        match self.unanswered.get_mut(&turn) {
            Some(messages) => messages.push(before),
            None => self.take_message(before as usize, turn),
        }
    }

    /// Notes that a message belongs to a turn.
    fn take_message(&mut self, message: usize, turn: usize) {
        let chars = self.stays_before(message + 1) - self.stays_before(message);
        self.stays[message..].iter_mut().for_each(|stays| *stays -= chars);
        self.spans[message] = TurnSpan { first: turn, last: turn };
    }

    /// Whether no result of a turn has come; a new one is noted.
    fn waits_for_result(&mut self, turn: usize) -> bool {
        let is_new = turn > self.newest;
        self.newest = self.newest.max(turn);
        is_new || self.unanswered.contains_key(&turn)
    }

    /// The first result of a turn has come: what the agent has said in it belongs to it.
    fn take_answer(&mut self, outline: &Outline, turn: usize) {
        let Some(messages) = self.unanswered.remove(&turn) else { return };
        for message in messages.into_iter().map(|message| message as usize) {
            self.take_message(message, turn);
            if keeps_turn(outline, message) {
                self.keep(turn);
            }
        }
    }

    /// Notes that a turn stays.
    fn keep(&mut self, turn: usize) {
        self.staying.insert(turn);
        self.last_odd = self.last_odd.max(turn);
    }

    pub(crate) fn stays_before(&self, message: usize) -> usize {
        message.checked_sub(1).map_or(0, |before| self.stays[before])
    }

    /// Whether no summary hides a turn: it has what stays, or no result.
    pub(crate) fn stays(&self, turn: usize) -> bool {
        self.staying.contains(&turn) || self.unanswered.contains_key(&turn)
    }

    /// Whether a summary hides all turns with results from this one on.
    pub(crate) fn are_even(&self, first: usize) -> bool {
        self.last_odd <= first
    }

    /// Which turns from this one on, up to another, a summary may hide; the others stay, or are in a window, or would be torn.
    pub(crate) fn hideable(
        &self,
        hidden: &Hidden,
        (first, end): (usize, usize),
        in_windows: &BTreeSet<usize>,
    ) -> Vec<bool> {
        let may_hide = |turn: usize| !self.stays(turn) && !in_windows.contains(&turn);
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

/// Whether a message has what keeps its turn.
fn keeps_turn(outline: &Outline, message: usize) -> bool {
    let facts = &outline.messages[message];
    facts.besides != Besides::Nothing || facts.item == ItemType::Compaction || outline.is_never_hidden(message)
}
