//! A session played again where a summary takes the place of old turns: the hybrid, and summaries alone.
//!
//! To a turn belong the messages of its run, and those that hold a call made in it or a result of one. All others, of
//! the user and of the system, are instructions, and stay. A summary stands for the first turns, whole, in the place of
//! their first message. A message that belongs to several turns ties them: no summary ends between them; and one that
//! comes late, and ties a turn of the summary to one behind, withdraws it, so that no pair is ever broken. Late results
//! of turns in the summary alone wait for the next one.

use super::boundary::{Fold, Standing, cost, first_changed};
use super::replay::Sent;
use super::summarize::{built_in_summary, strip_head};
use super::{Masked, Planner};
use crate::policy::{Due, Summaries};

/// The turns that a message belongs to: the first and the last; of one that belongs to none, 0.
#[derive(Debug, Clone, Copy)]
struct Reach {
    first: usize,
    last: usize,
}

impl Reach {
    /// Whether it is what a summary of so many turns stands for.
    fn is_within(self, turns: usize) -> bool {
        self.first > 0 && self.last <= turns
    }

    /// Whether it would be torn by a summary of so many turns.
    fn is_torn(self, turns: usize) -> bool {
        self.first > 0 && self.first <= turns && turns < self.last
    }
}

/// The turns of each message. What comes later changes none.
fn reaches(planner: &Planner) -> Vec<Reach> {
    let Planner { outline, pairs, turns, .. } = planner;
    let reach = |message: usize| {
        let own = outline.messages[message].is_agent_made || !outline.calls_of(message).is_empty();
        let calls = outline.results_of(message).map(|result| pairs.call_of(result));
        let at = calls.map(|call| call.map_or(message, |call| outline.calls[call].message as usize));
        let mut reach = Reach { first: 0, last: 0 };
        for turn in own.then_some(message).into_iter().chain(at).map(|at| turns.at(at)) {
            reach.last = match turn {
                // What belongs to no turn stays, and so does what is tied to it.
                0 => usize::MAX,
                _ => reach.last.max(turn),
            };
            reach.first = if reach.first == 0 || turn == 0 { reach.first.max(turn) } else { reach.first.min(turn) };
        }
        reach
    };
    (0..outline.messages.len()).map(reach).collect()
}

impl Summaries {
    /// How many turns a summary is to stand for that is made after so many; None before the first is due.
    #[must_use]
    pub fn wanted(&self, turns: usize) -> Option<usize> {
        match self.due {
            Due::Turns { first, every } => Some(turns.checked_sub(first)? / every * every + first - self.tail),
            Due::BreakEven { .. } => Some(turns.saturating_sub(self.tail)),
        }
    }

    /// Whether a summary is made: where that is a question of prices, if the characters that were sent without need
    /// have cost what it costs to write so many again, and to call a model with so many and have it write so many.
    #[must_use]
    pub fn pays(&self, waste: usize, written_again: usize, (given, said): (usize, usize)) -> bool {
        match self.due {
            Due::Turns { .. } => true,
            Due::BreakEven { read, write, input, output } => {
                cost(waste, read) >= cost(written_again, write - read) + cost(given, input) + cost(said, output)
            }
        }
    }
}

/// What stands between two requests.
struct Session<'a> {
    planner: Planner<'a>,
    rules: Summaries,
    reaches: Vec<Reach>,
    /// The messages so far that tie turns.
    ties: Vec<Reach>,
    /// Where a summary stands: the first message of the first turn.
    place: usize,
    /// How many turns the view shows as a summary.
    summarized: usize,
    /// Its characters, and its text, if nobody was asked for one.
    chars: usize,
    text: Option<Vec<u8>>,
    /// Of each message, whether that summary was made of it.
    told: Vec<bool>,
    /// Characters that requests since the last summary sent without need.
    waste: usize,
    fold: Fold,
}

/// A summary that could be made.
struct Draft {
    turns: usize,
    /// Messages that it is made of, beside the summary before.
    told: Vec<usize>,
    chars: usize,
    text: Option<Vec<u8>>,
    /// Characters that a model is given for it, and that it writes.
    call: (usize, usize),
    /// Characters of the view that it replaces; of these, those that the request before had sent.
    replaced: usize,
    known: usize,
}

impl Planner<'_> {
    /// A replay where a summary takes the place of old turns.
    pub(super) fn replay_summarized(self, requests: &[usize], rules: Summaries) -> Vec<Sent> {
        let mut session = Session::of(self, requests, rules);
        let mut before = 0;
        let mut sent = vec![];
        for (turns, end) in requests.iter().enumerate() {
            sent.push(session.request(turns, before, *end));
            before = *end;
        }
        sent
    }
}

impl<'a> Session<'a> {
    fn of(planner: Planner<'a>, requests: &[usize], rules: Summaries) -> Self {
        let (reaches, told) = (reaches(&planner), vec![false; planner.end]);
        Session {
            planner,
            rules,
            reaches,
            ties: vec![],
            place: requests.first().copied().unwrap_or(0),
            summarized: 0,
            chars: 0,
            text: None,
            told,
            waste: 0,
            fold: Fold::default(),
        }
    }

    /// A request is made after so many turns and messages.
    fn request(&mut self, turns: usize, before: usize, end: usize) -> Sent {
        self.planner.end = end;
        let ties = self.reaches[before..end].iter().filter(|reach| reach.first > 0 && reach.first < reach.last);
        self.ties.extend(ties);
        let mut left = None;
        if self.reaches[before..end].iter().any(|reach| reach.is_torn(self.summarized)) {
            self.told.fill(false);
            (self.summarized, self.chars, self.text) = (0, 0, None);
            left = Some(self.begin_anew(before));
        }
        self.fold.grow(self.planner.ground(), end);
        let mut call = (0, 0);
        if let Some(draft) = self.due(turns, before, end) {
            draft.told.iter().for_each(|message| self.told[*message] = true);
            (self.summarized, self.chars, self.text) = (draft.turns, draft.chars, draft.text);
            call = draft.call;
            let masked = self.begin_anew(before);
            left.get_or_insert(masked);
        }
        let masked = self.fold.request(self.planner.ground(), end, false);
        let changed = first_changed(self.planner.outline, &masked);
        // A view that begins anew differs from the summary on, and before it where more is masked than was.
        let changed = left.map_or(changed, |left| self.place.min(self.first_new(&left)));
        Sent {
            chars: self.fold.chars_before(end),
            cached_chars: self.fold.chars_before(changed.min(before)),
            masked: self.fold.masked.len(),
            summarized: self.summarized,
            summary: call,
        }
    }

    /// The view begins anew. Gives what was masked in it.
    fn begin_anew(&mut self, before: usize) -> Vec<Masked> {
        let hidden = self.reaches.iter().map(|reach| reach.is_within(self.summarized)).collect();
        let summary = Standing { hidden, place: self.place, chars: self.chars };
        self.waste = 0;
        core::mem::replace(&mut self.fold, Fold::anew(summary, before)).masked
    }

    /// The message of the first observation that is masked now and was not; before the summary that is all that changes.
    fn first_new(&self, before: &[Masked]) -> usize {
        let place = self.fold.masked.iter().zip(before).take_while(|(now, before)| now == before).count();
        first_changed(self.planner.outline, &self.fold.masked[place..])
    }

    /// The summary that is made before this request.
    fn due(&mut self, turns: usize, before: usize, end: usize) -> Option<Draft> {
        let draft = self.draft(self.untorn(self.rules.wanted(turns)?), before, end)?;
        self.waste = self.waste.saturating_add(draft.replaced - draft.chars);
        // What stays of what the request before had sent is written again behind the summary.
        let sent = self.fold.chars_before(before) - self.fold.chars_before(self.place);
        self.rules.pays(self.waste, draft.chars + sent - draft.known, draft.call).then_some(draft)
    }

    /// The most turns, but no more than these, that a summary may stand for.
    fn untorn(&self, mut turns: usize) -> usize {
        while let Some(tie) = self.ties.iter().find(|reach| reach.is_torn(turns)) {
            turns = tie.first - 1;
        }
        turns
    }

    /// A summary of so many turns; None where it would be no news, or no shorter than what it replaces.
    fn draft(&self, turns: usize, before: usize, end: usize) -> Option<Draft> {
        if turns <= self.summarized {
            return None;
        }
        // What is new in it belongs to later turns than those in the summary before, or came late.
        let since = self.planner.turns.starts[self.summarized] as usize;
        let told = (since..end).filter(|message| self.reaches[*message].is_within(turns) && !self.told[*message]);
        let told: Vec<usize> = told.collect();
        let shown = |message: &usize| self.fold.chars_before(message + 1) - self.fold.chars_before(*message);
        let replaced = self.chars + told.iter().map(shown).sum::<usize>();
        let known = self.chars + told.iter().filter(|message| **message < before).map(shown).sum::<usize>();
        let (chars, text, call) = if let Some(model) = self.rules.model {
            let image_chars = self.planner.policy.image_chars;
            let raw = told.iter().map(|message| self.planner.outline.chars_of(*message, image_chars)).sum::<usize>();
            (model.summary_chars, None, (raw + self.chars + model.prompt_chars, model.summary_chars))
        } else {
            let earlier = self.planner.earlier_summaries();
            let previous = self.text.as_deref().and_then(strip_head);
            let text = built_in_summary(&self.planner, &told, Some(&earlier), previous);
            (crate::text::count_chars(&text), Some(text), (0, 0))
        };
        (chars < replaced).then_some(Draft { turns, told, chars, text, call, replaced, known })
    }
}
