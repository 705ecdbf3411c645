//! The append-only session. The work of a message is done once, when it comes: its text is scanned, its pairs are found,
//! and what is masked is written once. A view is then the view before, from the first message on that it shows
//! otherwise.
//!
//! The views are those of the planner for the whole history. A summary, once made, stands in the place of what it
//! summarizes: from then on the session is that summary and the rest, and all that came before is the past, which is
//! kept, but not planned any more.

use crate::error::Error;
use crate::outline::{Outline, Span};
use crate::pairs::GrowingPairs;
use crate::plan::{Fold, Ground, Masked, Move, Outcome, Peek, Plan, Stage, SummaryInput, plan};
use crate::policy::{Goal, Policy};
use crate::scan::scan_message;
use crate::source::{Bytes, Source, count_newlines};
use crate::splice::{masked_in, splice, splice_stretch, summary_message};
use crate::turns::Turns;
use std::collections::HashMap;

/// A chunk of a view is done when it has about so many bytes: large enough that a view of 40 MB is some hundred of
/// them, small enough that what is open is copied in microseconds.
const CHUNK_BYTES: usize = 64 << 10;

/// A placeholder in a view takes about so many bytes.
const PLACEHOLDER_BYTES: usize = 48;

/// See the module.
#[derive(Debug)]
pub struct History {
    policy: Policy,
    /// A history of at most so many characters is sent raw.
    raw_chars_at_most: usize,
    session: Session,
    past: Past,
    /// Messages of the session before this one were there when the last summary was made.
    new_from: usize,
    /// Of each observation ever: its message, and its place among the results of that.
    observations: Vec<(u32, u32)>,
    newest_observation: HashMap<Vec<u8>, u32>,
    /// Of all that was ever appended.
    totals: Totals,
    shown: Shown,
}

/// Messages before the last summary.
#[derive(Debug, Default)]
struct Past {
    data: Vec<u8>,
    messages: Vec<Span>,
}

/// What is planned.
#[derive(Debug)]
struct Session {
    /// An array that is not closed yet.
    data: Vec<u8>,
    outline: Outline,
    pairs: GrowingPairs,
    turns: Turns,
    fold: Fold,
    chars: usize,
}

#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    turns: usize,
    chars: usize,
    ends_with_run: bool,
}

/// Which view was shown last, and what of it its readers have.
#[derive(Debug, Default)]
struct Shown {
    form: Form,
    /// Masked in the view of a request that is being made; not fixed before the answer. And after how many messages.
    tentative: Vec<Masked>,
    tentative_move: Option<Move>,
    tentative_end: usize,
    /// The first message that changed since the chunks, and the list, were read last.
    chunks_from: usize,
    list_from: usize,
    /// Where each chunk that is done ends.
    chunk_ends: Vec<usize>,
    /// Whether the view is still that of the history; and how many messages it was of.
    is_current: bool,
    messages: usize,
    /// The first message that the view shows otherwise than the one before; and the same of the last view that did.
    changes_from: Option<usize>,
    changed: Option<usize>,
}

#[derive(Debug, Default)]
enum Form {
    #[default]
    Raw,
    Masked,
    /// A later stage gave it: its bytes, what it counts, and how the boundary of the first stage came to where it is.
    Planned(Vec<u8>, Counts, Vec<Move>),
}

/// What a view counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Messages.
    pub messages: usize,
    /// Characters.
    pub chars: usize,
    /// Masked observations.
    pub masked: usize,
}

/// From which message on the list of a view changed, and what stands there instead of messages that hold masked
/// observations.
pub type Changes = (usize, Vec<(usize, Vec<u8>)>);

/// What a view needs.
#[derive(Debug)]
pub enum Look {
    /// Nothing.
    Ready,
    /// A summary: the messages of the session to be summarized, the earlier summary, the built-in one.
    AskSummary(Vec<usize>, Option<Vec<u8>>, Vec<u8>),
    /// Nothing, but the session begins anew: with these of its messages, and before one of them a new message.
    Summarized(Vec<usize>, usize, Vec<u8>),
}

impl Session {
    fn new() -> Self {
        let mut outline = Outline::default();
        outline.array_start = 1;
        Session {
            data: vec![b'['],
            outline,
            pairs: GrowingPairs::default(),
            turns: Turns::default(),
            fold: Fold::default(),
            chars: 0,
        }
    }

    fn len(&self) -> usize {
        self.outline.messages.len()
    }

    fn message(&self, message: usize) -> &[u8] {
        self.outline.messages[message].span.of(&self.data)
    }

    /// A message comes; its results have these numbers.
    fn push(
        &mut self,
        message: &[u8],
        surrogates: bool,
        policy: &Policy,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<(), Error> {
        let before = self.data.len();
        if self.len() > 0 {
            self.data.push(b',');
        }
        let start = self.data.len();
        let leading = message.iter().take_while(|byte| is_white(**byte)).count();
        let trailing = message[leading..].iter().rev().take_while(|byte| is_white(**byte)).count();
        self.data.extend_from_slice(&message[leading..message.len() - trailing]);
        let results = self.outline.results.len();
        if let Err(mut error) = scan_message(&self.data, start, surrogates, &mut self.outline) {
            self.data.truncate(before);
            error.offset = error.offset.map(|offset| offset - start + leading);
            return Err(error);
        }
        if policy.names_lines() {
            count_newlines(&self.data, &mut self.outline, results);
        }
        let new = self.outline.results.len() - results;
        self.outline.numbers.extend(numbers.take(new));
        self.pairs.push(&self.outline);
        let message = self.len() - 1;
        self.turns.push(message, self.outline.messages[message].is_agent_made);
        self.chars += self.outline.chars_of(message, policy.image_chars);
        Ok(())
    }

    fn ends_with_run(&self) -> bool {
        self.outline.messages.last().is_some_and(|message| message.is_agent_made)
    }

    /// The rules look at the session, and the fold is theirs to change.
    fn parts<'a>(&'a mut self, policy: &'a Policy, source: &'a dyn Source) -> (Ground<'a>, &'a mut Fold) {
        let Session { outline, pairs, turns, fold, .. } = self;
        (Ground { outline, source, policy, costs: None, pairs: &pairs.pairs, turns }, fold)
    }
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Runs a rule over the session; the text is lent to it meanwhile.
macro_rules! with_rules {
    ($history:ident, $ground:ident, $fold:ident, $body:expr) => {{
        let data = core::mem::take(&mut $history.session.data);
        let source = Bytes(&data);
        let ($ground, $fold) = $history.session.parts(&$history.policy, &source);
        let result = $body;
        $history.session.data = data;
        result
    }};
}

impl History {
    /// An empty one.
    #[must_use]
    pub fn new(policy: Policy, raw_chars_at_most: usize) -> Self {
        History {
            policy,
            raw_chars_at_most,
            session: Session::new(),
            past: Past::default(),
            new_from: 0,
            observations: vec![],
            newest_observation: HashMap::new(),
            totals: Totals::default(),
            shown: Shown { chunks_from: 0, list_from: 0, ..Shown::default() },
        }
    }

    /// How many messages were appended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.past.messages.len() + self.session.len() - self.new_from
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A message as it was appended.
    #[must_use]
    pub fn message(&self, message: usize) -> &[u8] {
        match self.past.messages.get(message) {
            Some(span) => span.of(&self.past.data),
            None => self.session.message(message - self.past.messages.len() + self.new_from),
        }
    }

    /// A message of the session, which after a summary is that and the rest.
    #[must_use]
    pub fn session_message(&self, message: usize) -> &[u8] {
        self.session.message(message)
    }

    /// Appends a message.
    ///
    /// # Errors
    /// Malformed JSON, or a shape that is no message; the history is as before.
    pub fn append(&mut self, message: &[u8], surrogates: bool) -> Result<(), Error> {
        let index = self.len();
        let numbers = self.observations.len() as u32 + 1..;
        let was_run = self.session.ends_with_run();
        self.session.push(message, surrogates, &self.policy, numbers).map_err(|mut error| {
            error.message_index = error.message_index.map(|_| index);
            error
        })?;
        let Session { outline, .. } = &self.session;
        let new = self.session.len() - 1;
        for (place, result) in outline.results_of(new).enumerate() {
            if let Some(id) = outline.results[result].id {
                self.newest_observation.insert(outline.text(id).to_vec(), self.observations.len() as u32);
            }
            self.observations.push((index as u32, place as u32));
        }
        let is_run = self.session.ends_with_run();
        self.totals.turns += usize::from(is_run && !self.totals.ends_with_run);
        self.totals.ends_with_run = is_run;
        self.totals.chars += outline.chars_of(new, self.policy.image_chars);
        self.shown.is_current = false;
        if is_run && !was_run && self.policy.boundary.remembers() {
            let masked = self.session.fold.masked.len();
            let changed = with_rules!(self, ground, fold, fold.request(ground, new, false));
            let tentative = core::mem::take(&mut self.shown.tentative);
            // What the view of the request showed already is now fixed; unless it was masked for a cold cache.
            let has_moved = self.session.fold.masked.len() == masked + tentative.len();
            let is_shown = !tentative.is_empty() && self.shown.tentative_end == new && has_moved;
            if matches!(self.shown.form, Form::Masked) && !is_shown {
                self.change(changed);
                self.change_from(&[tentative.first().cloned()]);
            }
        }
        Ok(())
    }

    /// Makes sure that the view is that of the history.
    pub fn look(&mut self, summary: &SummaryInput) -> Look {
        if self.shown.is_current {
            return Look::Ready;
        }
        let look = if self.policy.goal == Goal::Mask { self.look_masked() } else { self.look_reduced(summary) };
        self.shown.is_current = !matches!(look, Look::AskSummary(..));
        self.shown.changed = self.shown.changes_from.take().or(self.shown.changed);
        self.shown.messages = self.session.len();
        look
    }

    /// Without a budget: raw while the history is small, else masked.
    fn look_masked(&mut self) -> Look {
        if self.session.chars <= self.raw_chars_at_most {
            return Look::Ready;
        }
        let tentative = self.settle();
        self.show_masked(tentative);
        Look::Ready
    }

    fn look_reduced(&mut self, summary: &SummaryInput) -> Look {
        let fits = |cost: usize, policy: &Policy| policy.max_cost.is_none_or(|max| cost <= max);
        let raw_fits = fits(self.session.chars, &self.policy);
        let masks_anyway = self.policy.observation_masking && self.policy.boundary.remembers();
        if !self.policy.enabled || (raw_fits && !masks_anyway) {
            self.show_raw();
            return Look::Ready;
        }
        let holds_pairs = !self.policy.strict_pairs || self.session.pairs.orphan_count(&self.session.outline) == 0;
        if self.policy.observation_masking {
            let tentative = self.settle();
            let cost = tentative.as_ref().map_or(self.session.fold.cost(), |peek| peek.cost);
            if holds_pairs && fits(cost, &self.policy) {
                self.show_masked(tentative);
                return Look::Ready;
            }
            // A boundary that was rounded goes as far as it can where the rounded one does not fit.
            if !self.policy.boundary.remembers()
                && let Some(peek) = with_rules!(self, ground, fold, fold.peek(ground, false))
                && holds_pairs
                && fits(peek.cost, &self.policy)
            {
                self.show_masked(Some(peek));
                return Look::Ready;
            }
        }
        if raw_fits {
            self.show_raw();
            return Look::Ready;
        }
        self.plan(summary)
    }

    /// Moves the boundary where it may be moved for good; else says what the view of this request masks besides.
    fn settle(&mut self) -> Option<Peek> {
        let end = self.session.len();
        if self.policy.boundary.remembers() {
            let is_asked = !self.session.ends_with_run();
            return with_rules!(self, ground, fold, {
                fold.grow(ground, end);
                if is_asked && fold.moves_at(ground, end, true) { fold.peek(ground, true) } else { None }
            });
        }
        let changed = with_rules!(self, ground, fold, {
            fold.grow(ground, end);
            fold.advance(ground)
        });
        if matches!(self.shown.form, Form::Masked) {
            self.change(changed);
        }
        None
    }

    fn show_raw(&mut self) {
        match self.shown.form {
            Form::Raw => {}
            Form::Masked => {
                let firsts = [&self.session.fold.masked, &self.shown.tentative].map(|masked| masked.first().cloned());
                self.change_from(&firsts);
            }
            Form::Planned(..) => self.change(0),
        }
        self.shown.tentative.clear();
        self.shown.form = Form::Raw;
    }

    fn show_masked(&mut self, tentative: Option<Peek>) {
        let (tentative, step) = tentative.map_or((vec![], None), |peek| (peek.masked, Some(peek.step)));
        match self.shown.form {
            Form::Raw => self.change_from(&[self.session.fold.masked.first().cloned()]),
            Form::Masked => {}
            Form::Planned(..) => self.change(0),
        }
        if tentative != self.shown.tentative {
            self.change_from(&[tentative.first().cloned(), self.shown.tentative.first().cloned()]);
        }
        (self.shown.tentative, self.shown.tentative_move) = (tentative, step);
        self.shown.tentative_end = self.session.len();
        self.shown.form = Form::Masked;
    }

    /// The view differs from the first of these observations on.
    fn change_from(&mut self, firsts: &[Option<Masked>]) {
        for first in firsts.iter().flatten() {
            self.change(self.session.outline.results[first.result as usize].message as usize);
        }
    }

    fn change(&mut self, message: usize) {
        self.shown.chunks_from = self.shown.chunks_from.min(message);
        self.shown.list_from = self.shown.list_from.min(message);
        if message < self.shown.messages {
            self.shown.changes_from = Some(self.shown.changes_from.map_or(message, |other| other.min(message)));
        }
    }

    /// From which message of the view on it changed last, and how many bytes of the chunks that are done, and of those
    /// behind, stand before it.
    #[must_use]
    pub fn changed(&self) -> Option<(usize, usize, usize)> {
        let message = self.shown.changed?.min(self.session.len());
        if matches!(self.shown.form, Form::Planned(..)) {
            return Some((0, 0, 1));
        }
        let chunks = self.shown.chunk_ends.partition_point(|end| *end <= message);
        let start = chunks.checked_sub(1).map_or(0, |last| self.shown.chunk_ends[last]);
        let behind = if start < message { self.render(start, message).len() } else { 0 };
        // What stands before a message is its own.
        Some((message, chunks, behind + 1))
    }

    /// The later stages, over the whole session.
    fn plan(&mut self, summary: &SummaryInput) -> Look {
        self.session.data.push(b']');
        let data = core::mem::take(&mut self.session.data);
        let planned = plan(&self.session.outline, &Bytes(&data), &self.policy, None, summary);
        let look = match planned {
            Outcome::AskSummary { dropped, previous, built_in } => {
                self.session.data = data;
                self.session.data.pop();
                return Look::AskSummary(dropped, previous, built_in);
            }
            Outcome::Plan(plan) => {
                let view = splice(&data, &self.session.outline, &self.policy, &plan).to_vec(&data);
                self.session.data = data;
                self.session.data.pop();
                let look = self.summarized(&plan);
                let kept = |message: &usize| plan.keeps(*message);
                let messages = (0..plan.kept.as_ref().map_or(0, Vec::len)).filter(kept).count();
                let messages = messages + usize::from(plan.summary.is_some());
                let masked = plan.masked.iter();
                let masked =
                    masked.filter(|one| plan.keeps(self.session.outline.results[one.result as usize].message as usize));
                let counts = Counts { messages, chars: plan.chars.1, masked: masked.count() };
                self.shown.form = Form::Planned(view, counts, plan.moves);
                self.shown.tentative.clear();
                self.change(0);
                look
            }
        };
        if let Look::Summarized(kept, place, message) = &look {
            self.begin_anew(kept, *place, message);
        }
        look
    }

    fn summarized(&self, plan: &Plan) -> Look {
        let (Some(Stage::Summarization), Some(summary)) = (plan.stage, &plan.summary) else { return Look::Ready };
        let kept: Vec<usize> = (0..self.session.len()).filter(|message| plan.keeps(*message)).collect();
        let place = kept.partition_point(|message| *message < summary.before);
        let mut message = vec![];
        summary_message(summary, &mut message);
        Look::Summarized(kept, place, message)
    }

    /// The session is the summary and the rest from now on; all that came is the past.
    fn begin_anew(&mut self, kept: &[usize], place: usize, summary: &[u8]) {
        let before = core::mem::replace(&mut self.session, Session::new());
        let messages = kept.iter().map(|message| before.message(*message));
        let messages: Vec<&[u8]> = messages.collect();
        let results = kept.iter().flat_map(|message| before.outline.results_of(*message));
        let numbers: Vec<u32> = results.map(|result| before.outline.numbers[result]).collect();
        let mut numbers = numbers.into_iter();
        for message in messages[..place].iter().chain([&summary]).chain(&messages[place..]) {
            // Each was read before, or was written as JSON, so this cannot fail.
            let _ = self.resume(message, &mut numbers);
        }
        if self.past.messages.is_empty() {
            self.past.messages = before.outline.messages.iter().map(|message| message.span).collect();
            self.past.data = before.data;
        } else {
            for message in self.new_from..before.len() {
                let start = self.past.data.len();
                self.past.data.extend_from_slice(before.message(message));
                self.past.messages.push(Span { start, end: self.past.data.len() });
            }
        }
        self.new_from = self.session.len();
    }

    /// The chunks of the view, once it was looked at: how many of those read last still stand, those that follow, and
    /// what is open yet.
    pub fn chunks(&mut self) -> (usize, Vec<Vec<u8>>, Vec<u8>) {
        if let Form::Planned(view, ..) = &self.shown.form {
            let view = view.clone();
            self.shown.chunk_ends.clear();
            self.shown.chunks_from = 0;
            return (0, vec![], view);
        }
        let stand = self.shown.chunk_ends.partition_point(|end| *end <= self.shown.chunks_from);
        self.shown.chunk_ends.truncate(stand);
        self.shown.chunks_from = usize::MAX;
        let mut start = self.shown.chunk_ends.last().copied().unwrap_or(0);
        let mut done = vec![];
        let (mut bytes, messages) = (0, start..self.session.len());
        for message in messages {
            bytes += self.bytes_of(message);
            if bytes >= CHUNK_BYTES {
                done.push(self.render(start, message + 1));
                self.shown.chunk_ends.push(message + 1);
                (start, bytes) = (message + 1, 0);
            }
        }
        let mut open =
            if start < self.session.len() || start == 0 { self.render(start, self.session.len()) } else { vec![] };
        open.push(b']');
        (stand, done, open)
    }

    /// About how many bytes a message has in the view.
    fn bytes_of(&self, message: usize) -> usize {
        let outline = &self.session.outline;
        let span = outline.messages[message].span;
        let of_result = |result: usize| {
            let value = outline.results[result].value;
            (value.end - value.start).saturating_sub(PLACEHOLDER_BYTES)
        };
        let removed: usize = self.masked(message, message + 1).iter().map(|one| of_result(one.result as usize)).sum();
        (span.end - span.start).saturating_sub(removed) + 1
    }

    /// What is masked in these messages of the view.
    fn masked(&self, start: usize, end: usize) -> Vec<Masked> {
        let outline = &self.session.outline;
        if !matches!(self.shown.form, Form::Masked) {
            return vec![];
        }
        let results = || outline.results_before(start)..outline.results_before(end);
        let mut masked = masked_in(&self.session.fold.masked, results()).to_vec();
        let tentative = masked_in(&self.shown.tentative, results());
        if !tentative.is_empty() {
            masked.extend_from_slice(tentative);
            masked.sort_unstable_by_key(|one| one.result);
        }
        masked
    }

    /// Messages as the view shows them, with what stands before each.
    fn render(&self, start: usize, end: usize) -> Vec<u8> {
        let Session { data, outline, pairs, turns, .. } = &self.session;
        let mut out = vec![if start == 0 { b'[' } else { b',' }];
        if start < end {
            let source = Bytes(data);
            let pairs = &pairs.pairs;
            let ground = Ground { outline, source: &source, policy: &self.policy, costs: None, pairs, turns };
            let stretch = Span { start: outline.messages[start].span.start, end: outline.messages[end - 1].span.end };
            splice_stretch(data, ground, stretch, &self.masked(start, end), &mut out);
        }
        out
    }

    /// What changed in the view since the list was read last: from which message on it is to be made anew, and what
    /// stands there instead of messages that hold masked observations. None where a later stage gave the view.
    pub fn changes(&mut self) -> Option<Changes> {
        let from = core::mem::replace(&mut self.shown.list_from, usize::MAX).min(self.session.len());
        if matches!(self.shown.form, Form::Planned(..)) {
            self.shown.list_from = 0;
            return None;
        }
        let mut messages: Vec<u32> = self
            .masked(from, self.session.len())
            .iter()
            .map(|one| self.session.outline.results[one.result as usize].message)
            .collect();
        messages.dedup();
        let shown =
            |message: u32| (message as usize, self.render(message as usize, message as usize + 1)[1..].to_vec());
        Some((from, messages.into_iter().map(shown).collect()))
    }

    /// What the view counts, once it was looked at.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let Session { chars, fold, .. } = &self.session;
        let messages = self.session.len();
        match &self.shown.form {
            Form::Raw => Counts { messages, chars: *chars, masked: 0 },
            Form::Masked => {
                let tentative: usize = self.shown.tentative.iter().map(|one| one.removed).sum();
                let masked = fold.masked.len() + self.shown.tentative.len();
                Counts { messages, chars: *chars - fold.removed - tentative, masked }
            }
            Form::Planned(_, counts, _) => *counts,
        }
    }

    /// Characters and turns of all that was appended, and orphans among what is planned.
    #[must_use]
    pub fn totals(&self) -> (usize, usize, usize) {
        (self.totals.chars, self.totals.turns, self.session.pairs.orphan_count(&self.session.outline))
    }

    /// The numbers of the observations of the session.
    #[must_use]
    pub fn session_numbers(&self) -> &[u32] {
        &self.session.outline.numbers
    }

    /// How the boundary came to where it is.
    #[must_use]
    pub fn moves(&self) -> Vec<Move> {
        match &self.shown.form {
            Form::Planned(_, _, moves) => moves.clone(),
            Form::Masked if self.policy.boundary.remembers() => {
                let tentative = self.shown.tentative_move.filter(|_| !self.shown.tentative.is_empty());
                self.session.fold.moves.iter().copied().chain(tentative).collect()
            }
            Form::Raw | Form::Masked => vec![],
        }
    }

    /// The number of the newest observation of this id, from 1.
    #[must_use]
    pub fn number_of(&self, id: &[u8]) -> Option<usize> {
        self.newest_observation.get(id).map(|number| *number as usize + 1)
    }

    /// What was appended before the last summary, and the session that it left, with the numbers of its observations,
    /// of a history that was kept elsewhere.
    ///
    /// # Errors
    /// Malformed JSON, or a shape that is no message.
    pub fn restore<'a>(
        &mut self,
        past: impl Iterator<Item = &'a [u8]>,
        session: impl Iterator<Item = &'a [u8]>,
        kept_numbers: Vec<u32>,
    ) -> Result<(), Error> {
        for message in past {
            self.append(message, true)?;
        }
        let before = core::mem::replace(&mut self.session, Session::new());
        self.past.messages = before.outline.messages.iter().map(|message| message.span).collect();
        self.past.data = before.data;
        let mut of_kept = kept_numbers.into_iter();
        for message in session {
            self.resume(message, &mut of_kept)?;
        }
        self.new_from = self.session.len();
        Ok(())
    }

    /// A message that was there before comes to a session that begins anew.
    fn resume(&mut self, message: &[u8], numbers: impl Iterator<Item = u32>) -> Result<(), Error> {
        let was_run = self.session.ends_with_run();
        self.session.push(message, true, &self.policy, numbers)?;
        let new = self.session.len() - 1;
        if self.session.ends_with_run() && !was_run && self.policy.boundary.remembers() {
            with_rules!(self, ground, fold, fold.request(ground, new, false));
        }
        Ok(())
    }

    /// The text of an observation, by its number from 1.
    #[must_use]
    pub fn recall(&self, number: usize) -> Option<Vec<u8>> {
        let (message, place) = *self.observations.get(number.checked_sub(1)?)?;
        let data = self.message(message as usize);
        let mut outline = Outline::default();
        scan_message(data, 0, true, &mut outline).ok()?;
        Some(Bytes(data).observation(&outline, place as usize))
    }
}
