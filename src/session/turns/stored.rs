//! Turns in a store: their eviction, and resuming a session of them. A row keeps the sizes of a turn, so that no text is
//! counted again.

use super::state::{RequestTokens, Row, TurnState};
use crate::placeholder::{Form, ObservationFacts, Placeholder};
use crate::plan::facts;
use crate::session::Session;
use crate::session::base::{Base, EvictedMarks};
use crate::session::log::{Log, TextFormat};
use crate::session::stored::numbers::{CAPPED, Numbers};
use crate::session::stored::snapshot::Snapshot;
use crate::session::stored::too_long;
use crate::store::{self, RecordKind, Store, StoreError, StoreErrorKind};

/// An evicted turn.
#[derive(Debug)]
pub struct StoredTurn {
    /// The number, from 1.
    pub number: usize,
    /// The sizes.
    pub row: Row,
    fields: Vec<Vec<u8>>,
    observation: Vec<u8>,
}

impl StoredTurn {
    /// Reads a turn; its observation only if that stays raw.
    fn read(store: &mut Store, number: usize) -> store::Result<Self> {
        let record = store.get(RecordKind::Turn, number as u64, false)?;
        let fields = record.map_or_else(Vec::new, |record| record.fields);
        let row = row_of(&fields)?;
        let record = if row.stays_raw() { store.get(RecordKind::Turn, number as u64, true)? } else { None };
        let observation = record.and_then(|record| record.last).unwrap_or_default();
        Ok(StoredTurn { number, row, fields, observation })
    }

    /// Bytes that were read.
    fn bytes(&self) -> usize {
        self.fields.iter().take(3).map(Vec::len).sum::<usize>() + self.observation.len()
    }

    /// The texts in a context.
    fn rendered(self, placeholder: &Placeholder) -> [Vec<u8>; 3] {
        let Row { chars, newlines, .. } = self.row;
        let mut observation = self.observation;
        if !self.row.stays_raw() {
            let facts = ObservationFacts { chars, newlines, turn: self.number, ..ObservationFacts::default() };
            placeholder.write(&facts, &mut observation);
        }
        let mut fields = self.fields.into_iter();
        [fields.next().unwrap_or_default(), fields.next().unwrap_or_default(), observation]
    }
}

/// The row among the fields of a turn; its numbers are capped.
fn row_of(fields: &[Vec<u8>]) -> store::Result<Row> {
    let row = fields.get(3).and_then(|bytes| Row::first(bytes, CAPPED).next());
    row.ok_or_else(|| StoreError::new(StoreErrorKind::Damaged, "a turn in it has no row"))
}

/// Whether a snapshot is consistent with its store.
fn fits(snapshot: &Snapshot, state: &TurnState, makes_summaries: bool, store: &Store) -> bool {
    let Snapshot { base: Base { messages, fold, .. }, rows, .. } = snapshot;
    let TurnState { first, due, judged, figures, .. } = state;
    let (evicted, here) = (messages / 2, rows.len());
    let end = evicted + here;
    messages.is_multiple_of(2)
        && end as u64 <= store.last(RecordKind::Turn)
        && [*first, *judged, figures.masked_turns].into_iter().all(|turns| turns <= end)
        && (*due == 0 || (*first < *due && *due <= end))
        && (*first == 0 || makes_summaries)
        && figures.masked_tokens <= figures.observation_tokens
        && fold.observations == evicted
        && fold.masked_count <= evicted
        && fold.before <= 2 * here
        && fold.masked.last().is_none_or(|last| (*last as usize) < here)
}

impl Session {
    /// The row of a turn in memory, from 0.
    fn row(&self, turn: usize) -> Row {
        self.log.with_context(&self.policy, |context| {
            let facts = facts(context.outline, context.pairs, Some(context.turns), turn);
            let (form, after) = context.placeholder.form(context.outline, context.source, turn, &facts);
            Row {
                request: self.turns.requests[turn],
                own_chars: context.outline.messages[2 * turn].chars,
                chars: facts.chars,
                newlines: facts.newlines,
                masked_chars: if form == Form::Stay { 0 } else { after },
                tokens: self.log.tokens(turn),
            }
        })
    }

    /// Masks in the store the turns that no later request can change: they are masked, or remain raw. A summary is judged
    /// first, since it is judged before the request for the next turn.
    ///
    /// # Errors
    /// Those of the store; what was not masked is masked by the next call.
    pub fn mask_stored(&mut self, store: &mut Store) -> store::Result<()> {
        self.summary_due();
        self.request();
        let settled = self.evicted_turns() + self.log.fold.final_observations(&self.policy);
        store.mask_before(settled as u64 + 1).map(|_| ())
    }

    /// Stores a snapshot at the request for the next turn, and evicts the turns whose rendering is final; returns how many. On
    /// errors the session is unchanged.
    ///
    /// # Errors
    /// Those of the store.
    pub fn evict_turns(&mut self, store: &mut Store, options: &[u8]) -> store::Result<usize> {
        self.request();
        let (evicted, count) = (self.evicted_turns(), self.log.fold.final_observations(&self.policy));
        let rows: Vec<Row> = (0..self.log.len() / 2).map(|turn| self.row(turn)).collect();
        let (settled, kept) = rows.split_at(count);
        let Log { chars, cost, pairs, base, fold, .. } = &self.log;
        let fold = self.log.with_context(&self.policy, |context| fold.state_without(context, 2 * count));
        let messages = base.messages + 2 * count;
        let (counts, marks) = (pairs.counts(), EvictedMarks::default());
        let base = Base { messages, chars: *chars, cost: *cost, counts, fold, marks, ..Base::default() };
        let snapshot = Snapshot {
            options: options.to_vec(),
            base,
            attempts: self.attempts.clone(),
            turns: Some(self.turns.clone()),
            rows: kept.to_vec(),
            ..Snapshot::default()
        };
        store.change(|changes| {
            for (turn, row) in (evicted as u64 + 1..).zip(settled) {
                let fields = changes.get(RecordKind::Turn, turn)?.map(|record| record.fields).unwrap_or_default();
                let row = row.encoded();
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
            self.turns.evicted.extend(settled.iter().skip(self.first_shown()).map(Row::evicted));
        }
        self.turns.requests.drain(..count);
        let mut log = Log::after(snapshot.base, TextFormat::Facts);
        for row in kept {
            log.push_turn(&self.policy, row.own_chars, (row.chars, row.newlines), row.tokens);
        }
        let texts = self.log.texts.drain();
        log.texts = texts.filter_map(|(result, text)| Some((result.checked_sub(count as u32)?, text))).collect();
        log.resume(&self.policy);
        log.fold.moves = self.log.fold.moves.split_off(self.known_moves);
        self.known_moves = 0;
        self.log = log;
        Ok(count)
    }

    /// Resumes the snapshot of a store, if there is one. The caller adds the turns after it.
    ///
    /// # Errors
    /// Those of the store; or the snapshot is malformed or inconsistent with it.
    pub fn open_turns(&mut self, store: &mut Store) -> store::Result<bool> {
        let wrong = || StoreError::new(StoreErrorKind::Damaged, "its last snapshot does not match its turns");
        let record = store.get(RecordKind::Session, 1, true)?;
        let Some(bytes) = record.and_then(|record| record.last).filter(|bytes| Snapshot::has_magic(bytes)) else {
            return Ok(false);
        };
        let mut snapshot = Snapshot::of(&bytes).ok_or_else(wrong)?;
        let turns = snapshot.turns.take().ok_or_else(wrong)?;
        if !fits(&snapshot, &turns, self.policy.summaries.is_some(), store) {
            return Err(wrong());
        }
        let Snapshot { base, rows, attempts, .. } = snapshot;
        self.attempts = attempts;
        let mut left = store.max_bytes()?;
        let evicted = base.messages / 2;
        self.turns = turns;
        let mut log = Log::after(base, TextFormat::Facts);
        for (number, row) in (evicted + 1..).zip(rows) {
            log.push_turn(&self.policy, row.own_chars, (row.chars, row.newlines), row.tokens);
            self.turns.requests.push(row.request);
            if row.stays_raw() {
                let record = store.get(RecordKind::Turn, number as u64, true)?;
                let observation = record.and_then(|record| record.last).unwrap_or_default();
                left = left.checked_sub(observation.len() as u64).ok_or_else(too_long)?;
                log.keep_placeholder(&self.policy, &observation);
            }
        }
        log.resume(&self.policy);
        self.log = log;
        self.turns.requests.push(self.turns.figures.tokens);
        if self.policy.summaries.is_some() {
            for number in self.turns.first + 1..=evicted {
                self.turns.evicted.push(StoredTurn::read(store, number)?.row.evicted());
            }
        }
        Ok(true)
    }

    /// The texts in a context of the evicted turns after the first `start` ones, up to and with `end`.
    ///
    /// # Errors
    /// Those of the store.
    pub fn shown_turns(&self, start: usize, end: usize, store: &mut Store) -> store::Result<Vec<[Vec<u8>; 3]>> {
        let placeholder = Placeholder::of(&self.policy);
        let mut left = store.max_bytes()?;
        let shown = (start + 1..=end.min(self.evicted_turns())).map(|number| {
            let turn = StoredTurn::read(store, number)?;
            left = left.checked_sub(turn.bytes() as u64).ok_or_else(too_long)?;
            Ok(turn.rendered(&placeholder))
        });
        shown.collect()
    }
}

/// The requests before the evicted turns after the first `start` ones, up to and with `end`.
pub(in crate::session) fn stored_requests(
    store: &mut Store,
    start: usize,
    end: usize,
) -> store::Result<Vec<RequestTokens>> {
    let request = |number: usize| {
        let record = store.get(RecordKind::Turn, number as u64, false)?;
        let fields = record.map_or_else(Vec::new, |record| record.fields);
        Ok(row_of(&fields)?.request)
    };
    (start + 1..=end).map(request).collect()
}
