//! Replays with summaries of old turns: the hybrid, and summaries alone.
//!
//! A turn has the messages of its run, and those with its calls or results. All others, of the user and of the system, are
//! instructions, and stay. A summary replaces the first turns, at their first message. A message of several turns ties them: no
//! summary ends between them, and a late one that ties a summarized turn to a later one withdraws the summary, so that no pair is
//! broken. Late results of summarized turns are part of the next summary.

use super::cache::Sent;
use super::fold::Fold;
use super::outcome::Masked;
use super::planner::Planner;
use super::replay::{Replayed, sums_before};
use super::summarize::{built_in_summary, strip_first_line};
use super::units::{blocks_of, cost, first_changed};
use super::view_summary::SummaryInView;
use crate::policy::{Due, Summaries, SummaryPrices};
use crate::stop::check;

/// The first and last turn of a message; 0 if it belongs to none.
#[derive(Debug, Clone, Copy)]
struct TurnSpan {
    first: usize,
    last: usize,
}

impl TurnSpan {
    /// Whether a summary of this many turns replaces the message.
    fn is_within(self, turns: usize) -> bool {
        self.first > 0 && self.last <= turns
    }

    /// Whether a summary of this many turns would split the message.
    fn is_split_by(self, turns: usize) -> bool {
        self.first > 0 && self.first <= turns && turns < self.last
    }
}

/// The turns of each message, which later messages do not change.
fn turn_spans(planner: &Planner) -> Vec<TurnSpan> {
    let Planner { outline, pairs, turns, .. } = planner;
    let turn_span = |message: usize| {
        let own = outline.messages[message].is_agent_made || !outline.calls_of(message).is_empty();
        let calls = outline.results_of(message).map(|result| pairs.call_of(result));
        let at = calls.map(|call| call.map_or(message, |call| outline.calls[call].message as usize));
        let mut turn_span = TurnSpan { first: 0, last: 0 };
        for turn in own.then_some(message).into_iter().chain(at).map(|at| turns.at(at)) {
            turn_span.last = match turn {
                // A message of no turn stays, and so does one tied to it.
                0 => usize::MAX,
                _ => turn_span.last.max(turn),
            };
            turn_span.first =
                if turn_span.first == 0 || turn == 0 { turn_span.first.max(turn) } else { turn_span.first.min(turn) };
        }
        turn_span
    };
    (0..outline.messages.len()).map(turn_span).collect()
}

impl Summaries {
    /// How many turns a summary made after this many replaces; None before the first is due.
    #[must_use]
    pub fn wanted(&self, turns: usize) -> Option<usize> {
        match self.due {
            Due::Turns { first, every } => Some(turns.checked_sub(first)? / every * every + first - self.tail),
            Due::BreakEven => Some(turns.saturating_sub(self.tail)),
        }
    }

    /// The cost of a model with this input and output.
    #[must_use]
    pub fn call_cost(&self, (given, written): (usize, usize)) -> f64 {
        cost(given, self.prices.input) + cost(written, self.prices.output)
    }

    /// Whether a summary is made. By prices it is once reading the waste has cost as much as writing this many characters to the
    /// cache again and calling a model with this input and output, if the bound on cost permits it.
    #[must_use]
    pub fn pays(
        &self,
        waste: usize,
        written_again: usize,
        call: (usize, usize),
        is_permitted: impl FnOnce() -> bool,
    ) -> bool {
        let SummaryPrices { read, write, .. } = self.prices;
        let is_paid =
            || cost(waste, read) >= cost(written_again, write - read) + self.call_cost(call) && is_permitted();
        self.due != Due::BreakEven || is_paid()
    }
}

/// The state between two requests.
struct HybridReplay<'a> {
    planner: Planner<'a>,
    rules: Summaries,
    turn_spans: Vec<TurnSpan>,
    /// Messages so far that tie turns.
    ties: Vec<TurnSpan>,
    /// The place of a summary: the first message of the first turn.
    place: usize,
    /// How many turns are replaced by a summary.
    summarized: usize,
    /// The characters, and its text if it is the built-in one.
    chars: usize,
    text: Option<Vec<u8>>,
    /// Whether the summary covers a message, for each message.
    covered: Vec<bool>,
    /// Characters that requests since the last summary could have saved.
    waste: usize,
    fold: Fold,
    /// Content blocks of the view before each message.
    blocks: Vec<usize>,
}

/// A possible summary.
struct Draft {
    turns: usize,
    /// Messages that it covers in addition to the previous summary.
    covered: Vec<usize>,
    chars: usize,
    text: Option<Vec<u8>>,
    /// Characters of the model's input and output.
    call: (usize, usize),
    /// Characters of the view that it replaces; and those of them that the previous request had sent.
    replaced: usize,
    sent_before: usize,
}

impl Planner<'_> {
    /// A replay with summaries of old turns.
    pub(super) fn replay_summarized(self, requests: &[usize], rules: Summaries) -> Replayed {
        let outline = self.outline;
        let mut session = HybridReplay::of(self, requests, rules);
        let mut before = 0;
        let mut replayed = Replayed::of(outline);
        for (turns, end) in requests.iter().enumerate() {
            check();
            let sent = session.request(turns, before, *end);
            let masked = session.fold.masked.iter().map(|one| one.result as usize);
            let hidden = (0..*end).filter(|message| session.fold.summary.hides(*message));
            replayed.push(sent, masked.chain(hidden.flat_map(|message| outline.results_of(message))));
            if let Some(text) = session.text.as_ref().filter(|text| replayed.last_summary() != Some(text)) {
                replayed.summaries.push((turns as u32, text.clone()));
            }
            before = *end;
        }
        replayed
    }
}

impl<'a> HybridReplay<'a> {
    fn of(planner: Planner<'a>, requests: &[usize], rules: Summaries) -> Self {
        let (turn_spans, covered) = (turn_spans(&planner), vec![false; planner.end]);
        let blocks = sums_before((0..planner.end).map(|message| blocks_of(planner.outline, message)));
        HybridReplay {
            planner,
            rules,
            turn_spans,
            ties: vec![],
            place: requests.first().copied().unwrap_or(0),
            summarized: 0,
            chars: 0,
            text: None,
            covered,
            waste: 0,
            fold: Fold::default(),
            blocks,
        }
    }

    /// Makes a request after this many turns and messages.
    fn request(&mut self, turns: usize, before: usize, end: usize) -> Sent {
        self.planner.end = end;
        let ties = self.turn_spans[before..end]
            .iter()
            .filter(|turn_span| turn_span.first > 0 && turn_span.first < turn_span.last);
        self.ties.extend(ties);
        let mut masked_before = None;
        if self.turn_spans[before..end].iter().any(|turn_span| turn_span.is_split_by(self.summarized)) {
            self.covered.fill(false);
            (self.summarized, self.chars, self.text) = (0, 0, None);
            masked_before = Some(self.restart_view(before, (0, 0)));
        }
        self.fold.grow(self.planner.context(), end);
        let mut call = (0, 0);
        if let Some(draft) = self.due(turns, before, end) {
            draft.covered.iter().for_each(|message| self.covered[*message] = true);
            (self.summarized, self.chars, self.text) = (draft.turns, draft.chars, draft.text);
            call = draft.call;
            let masked = self.restart_view(before, call);
            masked_before.get_or_insert(masked);
        }
        let masked = self.fold.request(self.planner.context(), end, false);
        let sent = self.planner.sent(&self.fold, &self.blocks, &masked, before, end);
        let sent = Sent { summarized: self.summarized, summary: call, ..sent };
        let Some(masked_before) = masked_before else { return sent };
        // A view with a new summary differs from the summary on, and before it where masks have changed.
        let changed = self.place.min(self.first_new(&masked_before)).min(before);
        let same_chars = self.fold.chars_before(changed);
        Sent { same_chars, same_blocks: self.blocks[changed], ..sent }
    }

    /// Starts a view with the current summary, for which a model was called. Returns the previously masked observations.
    fn restart_view(&mut self, before: usize, call: (usize, usize)) -> Vec<Masked> {
        let hidden: Vec<bool> = self.turn_spans.iter().map(|turn_span| turn_span.is_within(self.summarized)).collect();
        self.blocks = sums_before(hidden.iter().enumerate().map(|(message, is_hidden)| match is_hidden {
            false => blocks_of(self.planner.outline, message),
            true => usize::from(message == self.place),
        }));
        let (outline, image_chars) = (self.planner.outline, self.planner.policy.image_chars);
        let hidden_chars = |(message, is_hidden): (usize, &bool)| {
            if *is_hidden { outline.chars_of(message, image_chars) } else { 0 }
        };
        let hidden_before = sums_before(hidden.iter().enumerate().map(hidden_chars));
        let summary = SummaryInView { hidden, hidden_before, place: self.place, chars: self.chars };
        self.waste = 0;
        let paid = self.fold.core.paid.with_summary(call);
        core::mem::replace(&mut self.fold, Fold::with_summary(summary, before, paid)).masked
    }

    /// The message of the first newly masked observation; before the summary nothing else changes.
    fn first_new(&self, before: &[Masked]) -> usize {
        let place = self.fold.masked.iter().zip(before).take_while(|(now, before)| now == before).count();
        first_changed(self.planner.outline, &self.fold.masked[place..])
    }

    /// The summary that is made before this request.
    fn due(&mut self, turns: usize, before: usize, end: usize) -> Option<Draft> {
        let draft = self.draft(self.without_split(self.rules.wanted(turns)?), before, end)?;
        self.waste = self.waste.saturating_add(draft.replaced - draft.chars);
        // Kept characters after the summary that the previous request had sent are written to the cache again.
        let sent = self.fold.chars_before(before) - self.fold.chars_before(self.place);
        let pays = self.rules.pays(self.waste, draft.chars + sent - draft.sent_before, draft.call, || {
            let chars = self.fold.chars_before(end) - draft.replaced + draft.chars;
            self.fold.permits_summary(self.planner.context(), end, chars, draft.call)
        });
        pays.then_some(draft)
    }

    /// The largest number of turns, up to this one, that a summary may replace without splitting a message.
    fn without_split(&self, mut turns: usize) -> usize {
        while let Some(tie) = self.ties.iter().find(|turn_span| turn_span.is_split_by(turns)) {
            turns = tie.first - 1;
        }
        turns
    }

    /// A summary of this many turns; None if it would cover no new turn, or be no shorter than what it replaces.
    fn draft(&self, turns: usize, before: usize, end: usize) -> Option<Draft> {
        if turns <= self.summarized {
            return None;
        }
        // New in it are later turns, and late results.
        let since = self.planner.turns.starts[self.summarized] as usize;
        let covered =
            (since..end).filter(|message| self.turn_spans[*message].is_within(turns) && !self.covered[*message]);
        let covered: Vec<usize> = covered.collect();
        let shown = |message: &usize| self.fold.chars_before(message + 1) - self.fold.chars_before(*message);
        let replaced = self.chars + covered.iter().map(shown).sum::<usize>();
        let sent_before = self.chars + covered.iter().filter(|message| **message < before).map(shown).sum::<usize>();
        let (chars, text, call) = if let Some(model) = self.rules.model {
            let image_chars = self.planner.policy.image_chars;
            let raw = covered.iter().map(|message| self.planner.outline.chars_of(*message, image_chars)).sum::<usize>();
            (model.summary_chars, None, (raw + self.chars + model.prompt_chars, model.summary_chars))
        } else {
            let earlier = self.planner.earlier_summaries();
            let previous = self.text.as_deref().and_then(strip_first_line);
            let text = built_in_summary(&self.planner, &covered, Some(&earlier), previous);
            (crate::text::count_chars(&text), Some(text), (0, 0))
        };
        (chars < replaced).then_some(Draft { turns, covered, chars, text, call, replaced, sent_before })
    }
}
