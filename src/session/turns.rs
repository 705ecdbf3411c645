//! What a session of turns has besides: the tokens of its requests, and summaries that are due by the number of turns or
//! by prices. A turn is two messages, one of the agent and one that holds its observation; it is masked by the same fold.

use super::Session;
use super::evict::too_long;
use super::log::{Log, Observations, Text, Texts, result_of, write_turn};
use super::snapshot::{Base, LARGEST, Snapshot};
use crate::outline::{Outline, Span};
use crate::placeholder::{Facts, Form, Placeholder};
use crate::plan::{Masked, facts};
use crate::store::{self, Kind, Record, RecordKind, Store, StoreError};
use crate::text::count_words;

/// Words of what frames a turn: "Turn", its number, and three labels.
const FRAME_WORDS: usize = 5;

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnTokens {
    /// Without its observation.
    pub own: usize,
    /// Of its observation.
    pub observation: usize,
    /// Of what masking puts in the place of that.
    pub masked: usize,
}

/// What a request sent, beside its prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTokens {
    /// Tokens of all turns before it, unmasked.
    pub raw: usize,
    /// Tokens that it sent.
    pub sent: usize,
}

/// What is masked, and what that saves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Turns that are masked, also those in a summary.
    pub masked_turns: usize,
    /// Tokens of all observations.
    pub observation_tokens: usize,
    /// Tokens of those that are masked.
    pub masked_tokens: usize,
    /// Tokens of their placeholders.
    pub placeholder_tokens: usize,
    /// Tokens of all turns, and of a context: of the summary, if there is one, and of the turns after it.
    pub tokens: RequestTokens,
}

/// What a session knows of its turns beside the turns themselves.
#[derive(Debug, Clone, Default)]
pub struct TurnState {
    /// Turns before this one are in a summary of so many characters.
    first: usize,
    summary_chars: usize,
    /// How many turns the summary that is due is to stand for, as it was judged after so many turns; and characters
    /// that requests since the last summary sent without need.
    due: Option<usize>,
    judged: usize,
    waste: usize,
    figures: Figures,
    /// All requests that a turn answered, together.
    sums: RequestTokens,
    /// Of the request before each turn in memory, and of the next one once that is made.
    pub requests: Vec<RequestTokens>,
    /// Of turns that were evicted, those that are in no summary; empty where none will ever be made.
    gone: Vec<Gone>,
}

/// What is still asked of a turn that was evicted.
#[derive(Debug, Clone, Copy)]
struct Gone {
    raw_chars: usize,
    shown_chars: usize,
    shown_tokens: usize,
}

impl TurnState {
    /// Its numbers, as a snapshot has them.
    #[must_use]
    pub fn numbers(&self) -> [usize; 13] {
        let TurnState { first, summary_chars, due, judged, waste, figures, sums, .. } = self;
        let Figures { masked_turns, observation_tokens, masked_tokens, placeholder_tokens, tokens } = figures;
        let due = due.unwrap_or(0);
        [
            *first,
            *summary_chars,
            due,
            *judged,
            *waste,
            *masked_turns,
            *observation_tokens,
            *masked_tokens,
            *placeholder_tokens,
            tokens.raw,
            tokens.sent,
            sums.raw,
            sums.sent,
        ]
    }

    /// The state of these numbers.
    #[must_use]
    pub fn of(numbers: [usize; 13]) -> Self {
        let [first, summary_chars, due, judged, waste, rest @ ..] = numbers;
        let [masked_turns, observation_tokens, masked_tokens, placeholder_tokens, raw, sent, rest @ ..] = rest;
        let tokens = RequestTokens { raw, sent };
        TurnState {
            first,
            summary_chars,
            due: (due > 0).then_some(due),
            judged,
            waste,
            figures: Figures { masked_turns, observation_tokens, masked_tokens, placeholder_tokens, tokens },
            sums: RequestTokens { raw: rest[0], sent: rest[1] },
            ..TurnState::default()
        }
    }
}

/// What is known of a turn beside its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// What the request before it sent.
    pub request: RequestTokens,
    /// Characters of the turn as a context shows it, without its observation.
    pub own_chars: usize,
    /// Characters of its observation, and line feeds in it.
    pub chars: usize,
    /// See `chars`.
    pub newlines: usize,
    /// Characters of the placeholder; 0 where the observation stays.
    pub masked_chars: usize,
    /// Its tokens.
    pub tokens: TurnTokens,
}

const NUMBERS: usize = 9;

impl Row {
    /// How many bytes a row is written as.
    pub const BYTES: usize = 8 * NUMBERS;

    /// The row as bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let Row { request, own_chars, chars, newlines, masked_chars, tokens } = self;
        let TurnTokens { own, observation, masked } = tokens;
        let numbers = [&request.raw, &request.sent, own_chars, chars, newlines, masked_chars, own, observation, masked];
        let mut bytes = [0; Self::BYTES];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&(*number as u64).to_le_bytes());
        }
        bytes
    }

    /// The rows of bytes; bytes after the last whole one count for nothing. Whoever wrote them may have written any
    /// numbers.
    pub fn all(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        bytes.chunks_exact(Self::BYTES).map(|bytes| {
            let mut numbers = [0; NUMBERS];
            for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
                *number = (u64::from_le_bytes(*bytes) as usize).min(LARGEST);
            }
            let [raw, sent, own_chars, chars, newlines, masked_chars, own, observation, masked] = numbers;
            let (request, tokens) = (RequestTokens { raw, sent }, TurnTokens { own, observation, masked });
            Row { request, own_chars, chars, newlines, masked_chars, tokens }
        })
    }

    /// Whether the observation is shown though it is old.
    #[must_use]
    pub fn stays(&self) -> bool {
        self.masked_chars == 0
    }

    fn gone(&self) -> Gone {
        let TurnTokens { own, observation, masked } = self.tokens;
        Gone {
            raw_chars: self.own_chars.saturating_add(self.chars),
            shown_chars: self.own_chars.saturating_add(if self.stays() { self.chars } else { self.masked_chars }),
            shown_tokens: own.saturating_add(if self.stays() { observation } else { masked }),
        }
    }
}

impl Session {
    /// What masking would put in the place of this observation, if it came now; None where it stays.
    #[must_use]
    pub fn masked_text(&self, observation: &[u8]) -> Option<Vec<u8>> {
        let result = result_of(observation, Span { start: 0, end: observation.len() }, 0);
        let turn = self.turn_count() + 1;
        let facts = Facts { chars: result.chars, newlines: result.newlines, turn, ..Facts::default() };
        let mut alone = Outline::default();
        alone.results.push(result);
        let placeholder = Placeholder::of(&self.policy);
        let (form, _) = placeholder.form(&alone, &Observations(observation), 0, &facts);
        placeholder.render(&form, &facts, Vec::new)
    }

    /// How many turns there are.
    #[must_use]
    pub fn turn_count(&self) -> usize {
        self.log.end() / 2
    }

    /// How many of the first turns were evicted.
    pub(super) fn evicted_turns(&self) -> usize {
        self.log.base.messages / 2
    }

    /// Appends a turn; the request for it was made before. Its tokens are words, where they are not given.
    pub fn add_turn(&mut self, texts: Texts, timestamp: f64, tokens: Option<TurnTokens>) {
        self.request();
        let (reasoning, action, observation) = texts;
        let tokens = tokens.unwrap_or_else(|| TurnTokens {
            own: FRAME_WORDS + count_words(reasoning) + count_words(action),
            observation: count_words(observation),
            masked: self.masked_text(observation).map_or(0, |text| count_words(&text)),
        });
        let TurnState { figures, sums, requests, .. } = &mut self.turns;
        let all = tokens.own + tokens.observation;
        figures.observation_tokens += tokens.observation;
        (figures.tokens.raw, figures.tokens.sent) = (figures.tokens.raw + all, figures.tokens.sent + all);
        if let Some(request) = requests.last() {
            (sums.raw, sums.sent) = (sums.raw + request.raw, sums.sent + request.sent);
        }
        self.log.push_turn(texts, timestamp, tokens, &self.policy);
    }

    /// The request for the next turn is made, if it was not yet.
    pub(super) fn request(&mut self) {
        if self.turns.requests.len() > self.log.len() / 2 {
            return;
        }
        let end = self.log.len();
        let masked = self.log.with_rules(&self.policy, |ground, fold| fold.request(ground, end, true));
        self.count_masked(&masked);
        self.turns.requests.push(self.turns.figures.tokens);
    }

    fn count_masked(&mut self, masked: &[Masked]) {
        self.flip(masked);
        let first_shown = self.first_shown();
        for one in masked {
            let turn = one.result as usize;
            let tokens = self.log.tokens(turn);
            let figures = &mut self.turns.figures;
            figures.masked_turns += 1;
            figures.masked_tokens += tokens.observation;
            figures.placeholder_tokens += tokens.masked;
            if turn >= first_shown {
                // A snapshot says what was sent, and a row what a turn has of it; both may be anything.
                figures.tokens.sent = figures.tokens.sent.saturating_sub(tokens.observation) + tokens.masked;
            }
        }
    }

    /// How many turns, from the first on, the summary is to stand for that is due before the next request; None where
    /// none is, or it is too soon after one that failed. Asked after each turn.
    pub fn summary_due(&mut self) -> Option<usize> {
        let turns = self.turn_count();
        if self.turns.judged < turns {
            self.turns.judged = turns;
            self.turns.due = self.judge();
        }
        self.turns.due.filter(|_| self.attempts().may_ask(turns, 0, 0))
    }

    /// The summary that was due failed.
    pub fn summary_failed(&mut self) {
        self.fail(self.turn_count(), 0);
    }

    fn judge(&mut self) -> Option<usize> {
        let (rules, first) = (self.policy.summaries?, self.turns.first);
        let wanted = rules.wanted(self.turn_count()).filter(|wanted| *wanted > first)?;
        let Some(model) = rules.model else { return Some(wanted) };
        let replaced = self.replaced_chars(wanted);
        if model.summary_chars >= replaced {
            return None;
        }
        let here = 2 * self.first_shown()..2 * wanted.saturating_sub(self.evicted_turns());
        let raw = here.map(|message| self.log.outline.chars_of(message, 0)).sum::<usize>()
            + self.gone_until(wanted).iter().map(|turn| turn.raw_chars).sum::<usize>();
        let waste = self.turns.waste.saturating_add(replaced - model.summary_chars);
        // Of what the request before had sent, all turns but the last, what stays is written again after the summary.
        let before = self.turn_count() - 1;
        let stays = self.shown_chars(before.max(wanted)) - self.shown_chars(wanted);
        let call = (raw + self.turns.summary_chars + model.prompt_chars, model.summary_chars);
        self.turns.waste = waste;
        rules.pays(waste, model.summary_chars + stays, call).then_some(wanted)
    }

    /// Characters of the context that a summary of so many turns replaces, as the request before showed them.
    pub fn replaced_chars(&mut self, until: usize) -> usize {
        let end = self.log.len();
        self.log.with_rules(&self.policy, |ground, fold| fold.grow(ground, end));
        self.turns.summary_chars + self.shown_chars(until)
    }

    /// Characters of the turns after the summary, up to one of them, as far as the fold has grown.
    fn shown_chars(&self, until: usize) -> usize {
        let gone: usize = self.gone_until(until).iter().map(|turn| turn.shown_chars).sum();
        let (fold, end) = (&self.log.fold, 2 * until.saturating_sub(self.evicted_turns()));
        gone + fold.chars_before(end) - fold.chars_before(end.min(2 * self.first_shown()))
    }

    /// The evicted turns after the summary, up to one of them.
    fn gone_until(&self, until: usize) -> &[Gone] {
        let Session { turns: TurnState { gone, first, .. }, .. } = self;
        &gone[..gone.len().min(until.saturating_sub(*first))]
    }

    /// A summary of so many characters and tokens stands for the turns up to this one, counted from 1. What is older
    /// than the window is masked now: the context is written again in any case.
    pub fn summarize_through(&mut self, turn: usize, chars: usize, tokens: usize) {
        self.request();
        let end = self.log.len();
        let masked = self.log.with_rules(&self.policy, |ground, fold| {
            fold.grow(ground, end);
            fold.advance(ground)
        });
        self.count_masked(&masked);
        let summarized = turn.min(self.turn_count()).saturating_sub(self.turns.first);
        let gone = &mut self.turns.gone;
        gone.drain(..summarized.min(gone.len()));
        self.turns.first += summarized;
        (self.turns.summary_chars, self.turns.due, self.turns.waste) = (chars, None, 0);
        self.succeed();
        self.forget_chunks();
        let gone = self.turns.gone.iter().map(|turn| turn.shown_tokens);
        let sent = tokens + gone.sum::<usize>() + self.shown_tokens();
        self.turns.figures.tokens.sent = sent;
        // The request for the next turn sends the summary.
        if let Some(request) = self.turns.requests.last_mut() {
            request.sent = sent;
        }
    }

    fn shown_tokens(&self) -> usize {
        let masked = &self.log.fold.masked;
        let is_masked = |turn: usize| masked.binary_search_by_key(&(turn as u32), |one| one.result).is_ok();
        let shown = |turn: usize| {
            let TurnTokens { own, observation, masked } = self.log.tokens(turn);
            own + if is_masked(turn) { masked } else { observation }
        };
        (self.first_shown()..self.log.len() / 2).map(shown).sum()
    }

    /// The first turn that is in memory, and in no summary.
    pub(super) fn first_shown(&self) -> usize {
        self.turns.first.saturating_sub(self.evicted_turns())
    }

    /// How many turns a summary stands for, and how many of the first turns were evicted.
    #[must_use]
    pub fn ends(&self) -> (usize, usize) {
        (self.turns.first, self.evicted_turns())
    }

    /// The turns in memory that the context of the next request masks, from 1, with the placeholders; from one of them on.
    pub fn masked_turns(&mut self, from: usize) -> Vec<(usize, Vec<u8>)> {
        self.request();
        let (log, placeholder) = (&self.log, Placeholder::of(&self.policy));
        let shown = |one: &Masked| {
            let (turn, mut text) = (one.result as usize, vec![]);
            placeholder.write(&facts(&log.outline, &log.pairs.pairs, Some(&log.turns), turn), &mut text);
            (self.evicted_turns() + turn + 1, text)
        };
        log.fold.masked.get(from..).unwrap_or_default().iter().map(shown).collect()
    }

    /// A turn as it was added, from 1, and when; None where it is not in memory.
    #[must_use]
    pub fn turn(&self, turn: usize) -> Option<(Texts<'_>, f64)> {
        self.log.turn(turn.checked_sub(self.evicted_turns() + 1)?)
    }

    /// What the context of the next request masks, and what that saves.
    pub fn figures(&mut self) -> Figures {
        self.request();
        self.turns.figures
    }

    /// What each request sent, the next one included; the first came before the first turn in memory.
    pub fn requests(&mut self) -> &[RequestTokens] {
        self.request();
        &self.turns.requests
    }

    /// The sums of all requests but the next one.
    #[must_use]
    pub fn sums(&self) -> RequestTokens {
        self.turns.sums
    }
}

// In a store

/// A turn that was evicted, as its record has it.
#[derive(Debug)]
pub struct StoredTurn {
    /// Its number, from 1.
    pub number: usize,
    /// What is known of it.
    pub row: Row,
    fields: Vec<Vec<u8>>,
    observation: Vec<u8>,
}

impl StoredTurn {
    /// Reads a turn, and its observation where that stays.
    fn read(store: &mut Store, number: usize) -> store::Result<Self> {
        let record = store.get(RecordKind::Turn, number as u64, false)?;
        let fields = record.map_or_else(Vec::new, |record| record.fields);
        let row = fields.get(3).and_then(|bytes| Row::all(bytes).next()).ok_or_else(no_row)?;
        let record = if row.stays() { store.get(RecordKind::Turn, number as u64, true)? } else { None };
        let observation = record.and_then(|record| record.last).unwrap_or_default();
        Ok(StoredTurn { number, row, fields, observation })
    }

    /// How many bytes of it were read.
    fn bytes(&self) -> usize {
        self.fields.iter().take(3).map(Vec::len).sum::<usize>() + self.observation.len()
    }

    /// The turn as a context shows it.
    fn shown(&self, placeholder: &Placeholder) -> [Vec<u8>; 3] {
        let Row { chars, newlines, .. } = self.row;
        let mut observation = self.observation.clone();
        if !self.row.stays() {
            placeholder.write(&Facts { chars, newlines, turn: self.number, ..Facts::default() }, &mut observation);
        }
        let field = |place: usize| self.fields.get(place).cloned().unwrap_or_default();
        [field(0), field(1), observation]
    }
}

/// A turn was evicted, and its record does not have what is known of it.
fn no_row() -> StoreError {
    StoreError::new(Kind::Damaged, "a turn in it has no row")
}

/// Whether a snapshot can be true of a session of turns in a store.
fn fits(snapshot: &Snapshot, state: &TurnState, makes_summaries: bool, store: &Store) -> bool {
    let Snapshot { base: Base { messages, fold, .. }, rows, .. } = snapshot;
    let TurnState { first, due, judged, figures, .. } = state;
    let (evicted, here) = (messages / 2, rows.len() / Row::BYTES);
    let end = evicted + here;
    messages.is_multiple_of(2)
        && end as u64 <= store.last(RecordKind::Turn)
        && [*first, *judged, figures.masked_turns].into_iter().all(|turns| turns <= end)
        && due.is_none_or(|due| *first < due && due <= end)
        && (*first == 0 || makes_summaries)
        && figures.masked_tokens <= figures.observation_tokens
        && fold.observations == evicted
        && fold.masked_count <= evicted
        && fold.before <= 2 * here
        && fold.masked.last().is_none_or(|last| (*last as usize) < here)
}

impl Session {
    /// What is known of a turn in memory, from 0.
    fn row(&self, turn: usize) -> Row {
        self.log.look(&self.policy, |ground| {
            let facts = facts(ground.outline, ground.pairs, Some(ground.turns), turn);
            let (form, after) = Placeholder::of(&self.policy).form(ground.outline, ground.source, turn, &facts);
            Row {
                request: self.turns.requests[turn],
                own_chars: ground.outline.messages[2 * turn].chars,
                chars: facts.chars,
                newlines: facts.newlines,
                masked_chars: if form == Form::Stay { 0 } else { after },
                tokens: self.log.tokens(turn),
            }
        })
    }

    /// Stores where the session is at the request for the next turn, and evicts the turns that are final: masked, or shown
    /// for good. Where this fails, the session is as before.
    ///
    /// # Errors
    /// Those of the store.
    pub fn evict_turns(&mut self, store: &mut Store, options: &[u8]) -> store::Result<()> {
        self.request();
        let (evicted, count) = (self.evicted_turns(), self.log.fold.settled(&self.policy));
        let rows: Vec<Row> = (0..self.log.len() / 2).map(|turn| self.row(turn)).collect();
        let (settled, kept) = rows.split_at(count);
        let Log { chars, cost, pairs, base, fold, .. } = &self.log;
        let view_bytes = base.view_bytes + self.shown_bytes(2 * count);
        let fold = self.log.look(&self.policy, |ground| fold.state_without(ground, 2 * count));
        let messages = base.messages + 2 * count;
        let base = Base { messages, view_bytes, chars: *chars, cost: *cost, counts: pairs.counts(), fold };
        let snapshot = Snapshot {
            options: options.to_vec(),
            base,
            attempts: self.attempts.clone(),
            turns: Some(self.turns.clone()),
            rows: kept.iter().flat_map(Row::bytes).collect(),
            ..Snapshot::default()
        };
        store.change(|changes| {
            for (turn, row) in (evicted as u64 + 1..).zip(settled) {
                let fields = changes.get(RecordKind::Turn, turn)?.map(|record| record.fields).unwrap_or_default();
                let row = row.bytes();
                let fields: Vec<&[u8]> = fields.iter().take(3).map(Vec::as_slice).chain([&row[..]]).collect();
                changes.replace_before_last(RecordKind::Turn, turn, &fields)?;
            }
            if changes.last(RecordKind::Session) == 0 {
                changes.append(RecordKind::Session, &[], &[])?;
            }
            changes.replace(RecordKind::Session, 1, &[], &snapshot.bytes())
        })?;
        store.mask_before((evicted + count) as u64 + 1)?;
        if self.policy.summaries.is_some() {
            self.turns.gone.extend(settled.iter().skip(self.first_shown()).map(Row::gone));
        }
        self.turns.requests.drain(..count);
        let mut log = Log::after(snapshot.base, Text::Turns);
        for (turn, row) in (count..).zip(kept) {
            if let Some((texts, timestamp)) = self.log.turn(turn) {
                log.push_turn(texts, timestamp, row.tokens, &self.policy);
            }
        }
        log.resume(&self.policy);
        self.log = log;
        self.forget_chunks();
        Ok(())
    }

    /// Masks in the store the turns that no later request can change: they are masked, or remain raw. A summary is judged
    /// first, since it is judged before the request for the next turn.
    ///
    /// # Errors
    /// Those of the store; what was not masked is masked by the next call.
    pub fn mask_stored(&mut self, store: &mut Store) -> store::Result<()> {
        self.summary_due();
        self.request();
        let settled = self.evicted_turns() + self.log.fold.settled(&self.policy);
        store.mask_before(settled as u64 + 1).map(|_| ())
    }

    /// Resumes what the snapshot of a store has of turns, if there is one. Turns after these are to be added again.
    ///
    /// # Errors
    /// Those of the store; or the snapshot cannot be read, or cannot be true of it.
    pub fn open_turns(&mut self, store: &mut Store) -> store::Result<bool> {
        let wrong = || StoreError::new(Kind::Damaged, "its last snapshot is not of its turns");
        let record = store.get(RecordKind::Session, 1, true)?;
        let Some(bytes) = record.and_then(|record| record.last).filter(|bytes| Snapshot::is_meant(bytes)) else {
            return Ok(false);
        };
        let mut snapshot = Snapshot::of(&bytes).ok_or_else(wrong)?;
        let turns = snapshot.turns.take().ok_or_else(wrong)?;
        if !fits(&snapshot, &turns, self.policy.summaries.is_some(), store) {
            return Err(wrong());
        }
        let Snapshot { base, rows, attempts, .. } = snapshot;
        self.attempts = attempts;
        let mut left = store.most_bytes()?;
        let evicted = base.messages / 2;
        self.turns = turns;
        let mut log = Log::after(base, Text::Turns);
        for (number, row) in (evicted + 1..).zip(Row::all(&rows)) {
            let record = store.get(RecordKind::Turn, number as u64, true)?;
            let Record { fields, last } = record.ok_or_else(wrong)?;
            let field = |place: usize| fields.get(place).map_or(&b""[..], Vec::as_slice);
            let timestamp = field(2).try_into().map_or(0.0, f64::from_le_bytes);
            let observation = last.unwrap_or_default();
            let read = field(0).len() + field(1).len() + observation.len();
            left = left.checked_sub(read as u64).ok_or_else(too_long)?;
            log.push_turn((field(0), field(1), &observation), timestamp, row.tokens, &self.policy);
            self.turns.requests.push(row.request);
        }
        log.resume(&self.policy);
        self.log = log;
        self.turns.requests.push(self.turns.figures.tokens);
        if self.policy.summaries.is_some() {
            for number in self.turns.first + 1..=evicted {
                self.turns.gone.push(StoredTurn::read(store, number)?.row.gone());
            }
        }
        Ok(true)
    }

    /// Writes a turn that was evicted as a context shows it; how many bytes of it were read.
    pub(super) fn write_stored_turn(
        &self,
        store: &mut Store,
        number: usize,
        out: &mut Vec<u8>,
    ) -> store::Result<usize> {
        let turn = StoredTurn::read(store, number)?;
        let [reasoning, action, observation] = turn.shown(&Placeholder::of(&self.policy));
        write_turn(number, (&reasoning, &action, &observation), out);
        Ok(turn.bytes())
    }

    /// Turns that were evicted, as a context shows them: after the first `start` ones, up to and with `end`.
    ///
    /// # Errors
    /// Those of the store.
    pub fn stored_turns(&self, store: &mut Store, start: usize, end: usize) -> store::Result<Vec<[Vec<u8>; 3]>> {
        let placeholder = Placeholder::of(&self.policy);
        let mut left = store.most_bytes()?;
        let shown = |number: usize| {
            let turn = StoredTurn::read(store, number)?;
            left = left.checked_sub(turn.bytes() as u64).ok_or_else(too_long)?;
            Ok(turn.shown(&placeholder))
        };
        (start + 1..=end).map(shown).collect()
    }

    /// What the request before each evicted turn sent, after the first `start` ones and up to `end`.
    ///
    /// # Errors
    /// Those of the store.
    pub fn stored_requests(store: &mut Store, start: usize, end: usize) -> store::Result<Vec<RequestTokens>> {
        let request = |number: usize| {
            let record = store.get(RecordKind::Turn, number as u64, false)?;
            let fields = record.map_or_else(Vec::new, |record| record.fields);
            let row = fields.get(3).and_then(|bytes| Row::all(bytes).next());
            Ok(row.ok_or_else(no_row)?.request)
        };
        (start + 1..=end).map(request).collect()
    }
}
