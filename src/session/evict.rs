//! Eviction: messages whose rendering is final are written to the store as views show them, and dropped from memory. The
//! session continues with the rest; after a restart it begins there, too.
//!
//! Messages are evicted from the first one on. Where there is a budget, the later stages plan the whole session, which
//! therefore stays; a summary makes it short again. Of turns those are evicted that are masked for good, or never will be.

use super::index::{self, Entry, Update, Writer};
use super::ledger::Ledger;
use super::log::{Log, Text};
use super::snapshot::{Base, Snapshot, Summarized};
use super::{Failure, Result, Session, scanned};
use crate::outline::Name;
use crate::pairs::open_from;
use crate::plan::{Move, masked_in};
use crate::policy::Goal;
use crate::source::{Bytes, Source};

use crate::store::{self, Kind, Record, RecordKind, Store, StoreError};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// What a session knows of its store.
#[derive(Debug, Default)]
pub struct Stored {
    /// Whether there is one.
    pub is_used: bool,
    /// The options, which a snapshot must have to be resumed.
    pub options: Vec<u8>,
    /// It evicts after so many messages, or bytes, and as many as it kept the last time.
    after: (usize, usize),
    /// Ids in the index, and moves.
    ids: usize,
    moves: usize,
    /// Messages before this one may be stored as a session with other options rendered them.
    stale: usize,
    /// Ids of calls that were evicted and have got a result since.
    pub answered: HashSet<Vec<u8>>,
    /// Messages that had come at the last eviction, and how many, of how many bytes, it kept then.
    last: (usize, usize, usize),
    /// Messages that the store has, and that the session reads again when it is opened.
    pub replayed: usize,
    /// How many of the newest messages the store could not take yet.
    pub missing: usize,
    /// Summaries that no store has yet, each as its record will be: what it left, and its message.
    pub summaries: Vec<[Vec<u8>; 2]>,
}

impl Session {
    // Writing

    /// Gives the store what it does not have yet, and evicts what is final, once there is enough of that.
    pub(super) fn store_messages(&mut self, store: &mut Store) -> Result<()> {
        if self.len() > self.stored.replayed {
            self.stored.missing += 1;
            self.store_missing(store)?;
        }
        if self.is_full() && !store.is_read_only() {
            self.evict(store)?;
        }
        Ok(())
    }

    /// Gives the store what it could not take before.
    pub(super) fn store_missing(&mut self, store: &mut Store) -> Result<()> {
        while self.stored.missing > 0 {
            let message = self.message_here(self.len() - self.stored.missing).unwrap_or_default();
            store.append(RecordKind::Message, &[], message, false)?;
            self.stored.missing -= 1;
        }
        if self.stored.summaries.is_empty() { Ok(()) } else { self.store_snapshot(store) }
    }

    /// Whether it is time to evict: so many messages have come since the last time, or so many bytes, and as much as was
    /// kept then.
    fn is_full(&self) -> bool {
        let ((messages, bytes), (before, kept, kept_bytes)) = (self.stored.after, self.stored.last);
        let held = self.log.data.len() + self.past.bytes();
        self.ledger.messages - before >= messages.max(kept) || held.saturating_sub(kept_bytes) >= bytes.max(kept_bytes)
    }

    /// Stores a snapshot, with which the session is resumed.
    pub(super) fn store_snapshot(&mut self, store: &mut Store) -> Result<()> {
        if self.stored.missing == 0 { self.write(store, 0) } else { Ok(()) }
    }

    /// Evicts the messages whose rendering is final. Where this fails, nothing has changed.
    fn evict(&mut self, store: &mut Store) -> Result<()> {
        let count = if self.may_evict() { self.settled() } else { 0 };
        self.write(store, count)?;
        self.stored.last = (self.ledger.messages, self.log.len(), self.log.data.len() + self.past.bytes());
        Ok(())
    }

    /// Writes a snapshot, and drops the first messages.
    fn write(&mut self, store: &mut Store, count: usize) -> Result<()> {
        let shown = self.shown_messages(count);
        let updates = self.updates(count);
        let base = self.base_without(count, &shown);
        let log = if count > 0 {
            let messages = (count..self.log.len()).map(|message| self.log.message(message));
            Some(self.log_after(base.clone(), messages, store)?)
        } else {
            None
        };
        let (first, stale) = (self.log.base.messages, self.stored.stale);
        let moves: &[Move] = if base.messages > 0 { &self.log.fold.moves } else { &[] };
        let (messages, stored, totals) = (self.ledger.messages, self.ledger.observations(), self.ledger.totals);
        let ledger = Ledger { messages, totals, stored, ..Ledger::default() };
        let (options, attempts) = (self.stored.options.clone(), self.attempts.clone());
        let snapshot = store.change(|changes| {
            if changes.last(RecordKind::Session) == 0 {
                changes.append(RecordKind::Session, &[], &[])?;
            }
            for [left, message] in &self.stored.summaries {
                changes.append(RecordKind::Summary, &[left], message)?;
            }
            for (place, shown) in shown.iter().enumerate() {
                let fields: &[&[u8]] = if let Some(bytes) = shown { &[bytes] } else { &[] };
                if first + place < stale || shown.is_some() {
                    changes.replace_before_last(RecordKind::Message, (first + place + 1) as u64, fields)?;
                }
            }
            let mut writer = Writer::of(changes, self.stored.ids);
            writer.add_places(self.ledger.stored, &self.ledger.places)?;
            writer.update(updates.iter().map(|(id, update)| (id.as_slice(), *update)))?;
            writer.add_moves(self.stored.moves, moves)?;
            let (ids, moves) = (writer.ids, self.stored.moves + moves.len());
            let snapshot = Snapshot { options, ledger, ids, moves, stale, base, attempts, ..Snapshot::default() };
            changes.replace(RecordKind::Session, 1, &[], &snapshot.bytes())?;
            Ok(snapshot)
        })?;
        self.ledger.evict();
        (self.stored.ids, self.stored.moves) = (snapshot.ids, snapshot.moves);
        self.stored.summaries.clear();
        if snapshot.base.messages > 0 {
            self.log.fold.moves.clear();
        }
        self.log.fold.begin(self.log.len());
        self.stored.answered.clear();
        self.past.evict();
        if let Some(log) = log {
            self.settle_evicted(count);
            self.log = log;
        }
        Ok(())
    }

    /// Only what is masked for good is evicted; where there is a budget, a later stage may want all of it. And while it
    /// is read again, a session does not know of itself what it has stored of all its messages.
    fn may_evict(&mut self) -> bool {
        let masks = self.policy.goal == Goal::Mask && self.log.cost > self.raw_cost_at_most;
        let may = masks && self.len() == self.ledger.messages;
        if may {
            self.look_masked();
        }
        may
    }

    /// How many of the messages in memory are final.
    fn settled(&mut self) -> usize {
        let (policy, Log { outline, fold, pairs, .. }) = (&self.policy, &self.log);
        // The last one stays, so that there is one to be followed.
        let mut count = outline.messages.len().saturating_sub(1);
        count = count.min(self.log.look(policy, |ground| fold.settled_messages(ground)));
        // Calls that are open still are no orphans.
        count = count.min(open_from(outline, |message| outline.holds_results(message)));
        if let Some(result) = outline.results.get(fold.settled(policy)) {
            count = count.min(result.message as usize);
        }
        loop {
            let results = outline.results_before(count)..outline.results.len();
            let calls = results.filter_map(|result| pairs.pairs.call_of(result));
            let first = calls.map(|call| outline.calls[call].message as usize).min().unwrap_or(count);
            if first >= count {
                return count;
            }
            count = first;
        }
    }

    /// The first messages in memory as every later view shows them; None where they are what was appended.
    fn shown_messages(&self, count: usize) -> Vec<Option<Vec<u8>>> {
        let results = |message| self.log.outline.results_of(message);
        let is_masked = |message| !masked_in(&self.log.fold.masked, results(message)).is_empty();
        (0..count).map(|message| is_masked(message).then(|| self.shown_message(message))).collect()
    }

    /// What becomes of ids in the index.
    fn updates(&self, count: usize) -> HashMap<Vec<u8>, Update> {
        let mut updates: HashMap<Vec<u8>, Update> = HashMap::new();
        for id in &self.stored.answered {
            updates.entry(id.clone()).or_default().is_answered = true;
        }
        for (id, number) in &self.ledger.newest {
            updates.entry(id.clone()).or_default().number = Some(*number);
        }
        let Log { outline, pairs, base, .. } = &self.log;
        for call in 0..outline.calls_before(count) {
            if let Some(id) = outline.calls[call].id {
                let message = outline.calls[call].message as usize;
                let call = (base.messages + message, pairs.pairs.is_answered(call));
                updates.entry(outline.text(id).to_vec()).or_default().call = Some(call);
            }
        }
        updates
    }

    /// What is to be known without the first messages.
    fn base_without(&self, count: usize, shown: &[Option<Vec<u8>>]) -> Base {
        let Log { pairs, fold, chars, cost, base, .. } = &self.log;
        if count == 0 && base.messages == 0 {
            return Base::default();
        }
        let bytes = |message: usize| shown[message].as_ref().map_or(self.log.message(message).len(), Vec::len) + 1;
        Base {
            messages: base.messages + count,
            view_bytes: base.view_bytes + (0..count).map(bytes).sum::<usize>(),
            chars: *chars,
            cost: *cost,
            counts: pairs.counts(),
            fold: self.log.look(&self.policy, |ground| fold.state_without(ground, count)),
        }
    }

    /// The messages after what was evicted.
    fn log_after<'a>(&self, base: Base, messages: impl Iterator<Item = &'a [u8]>, store: &mut Store) -> Result<Log> {
        let mut log = Log::after(base, Text::Json);
        let mut numbers = log.base.fold.observations as u32 + 1..;
        for message in messages {
            log.scan(message, true, &self.policy, &mut numbers)?;
            let late = late_calls(&mut log, store)?;
            log.admit(&self.policy);
            for (result, name, _) in late {
                log.pairs.join_late(result, name, false);
            }
        }
        log.resume(&self.policy);
        Ok(log)
    }

    // Opening

    /// Takes a store for its own, and resumes what a snapshot in it has, if that was made with the same options. How many
    /// of the stored messages the session has now; the others are to be appended again.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open(&mut self, store: &mut Store, options: &[u8], counts: bool, after: (usize, usize)) -> Result<usize> {
        let messages = store.last(RecordKind::Message) as usize;
        self.stored =
            Stored { is_used: true, options: options.to_vec(), after, replayed: messages, ..Stored::default() };
        if store.last(RecordKind::Session) == 0 {
            return Ok(0);
        }
        let mut snapshot = Session::snapshot_of(store)?.unwrap_or_default();
        let summarized = self.last_summary(store)?;
        if snapshot.options == options && fits(&snapshot, store) {
            self.attempts = core::mem::take(&mut snapshot.attempts);
            if let Some(known) = self.resume(snapshot, summarized.is_some(), store)? {
                return if summarized.is_some() { self.open_past(store, summarized, counts) } else { Ok(known) };
            }
            self.attempts.clear();
        }
        self.stored.stale = messages;
        if !store.is_read_only() {
            // What was written is of a session with other options, or cannot be true.
            store.change(|changes| {
                changes.replace(RecordKind::Session, 1, &[], &[])?;
                index::clear(changes)
            })?;
        }
        self.open_past(store, summarized, counts)
    }

    /// Resumes a snapshot; how many messages the session has then. None where the messages are not what it says.
    fn resume(&mut self, snapshot: Snapshot, has_summary: bool, store: &mut Store) -> Result<Option<usize>> {
        let Snapshot { ledger, ids, moves, stale, base, .. } = snapshot;
        let (noted, evicted) = (ledger.messages, base.messages);
        let reads = evicted > 0 && !has_summary;
        if reads {
            let observations = ledger.stored - base.fold.observations;
            let is_here = |result: &u32| (*result as usize) < observations;
            if !base.fold.masked.iter().all(is_here) {
                return Ok(None);
            }
            let mut messages = vec![];
            each_stored(store, evicted..noted, |data| {
                messages.push(data);
                Ok(())
            })?;
            let log = self.log_after(base, messages.iter().map(Vec::as_slice), store)?;
            if log.outline.results.len() != observations {
                return Ok(None);
            }
            self.log = log;
        }
        self.ledger = ledger;
        (self.stored.ids, self.stored.moves, self.stored.stale) = (ids, moves, stale);
        if !reads {
            return Ok(Some(0));
        }
        self.numbered = self.ledger.observations();
        self.stored.last = (noted, self.log.len(), self.log.data.len());
        Ok(Some(noted))
    }

    /// Continues after the last summary that a store has; the messages before it are not planned again.
    fn open_past(&mut self, store: &mut Store, summarized: Option<Summarized>, counts: bool) -> Result<usize> {
        let Some(summarized) = summarized else { return Ok(0) };
        let past = summarized.past;
        let (ledger, image_chars) = (&mut self.ledger, self.policy.image_chars);
        each_stored(store, ledger.messages..past, |data| {
            ledger.note(&scanned(&data)?, 0, image_chars);
            Ok(())
        })?;
        let mut numbered = Some(ledger.observations());
        each_stored(store, past..ledger.messages, |data| {
            let results = scanned(&data)?.results.len();
            numbered = numbered.and_then(|numbered| numbered.checked_sub(results));
            Ok(())
        })?;
        self.numbered = numbered.ok_or_else(not_of_it)?;
        self.past.first = past;
        self.resume_summarized(summarized, counts)?;
        Ok(past)
    }

    /// What the last summary of a store left, which a session with this policy continues after. Without a budget there is
    /// none: what is evicted is known by its place in the store, which is not that in the session that a summary left.
    fn last_summary(&self, store: &mut Store) -> Result<Option<Summarized>> {
        if self.policy.goal == Goal::Mask {
            return Ok(None);
        }
        let (last, known) = (store.last(RecordKind::Summary), store.last(RecordKind::Message) as usize);
        let left = store.get(RecordKind::Summary, last, false)?.and_then(|record| left_by(&record));
        Ok(left.filter(|left| left.past <= known))
    }

    /// The snapshot that a store has.
    ///
    /// # Errors
    /// Those of the store.
    pub fn snapshot_of(store: &mut Store) -> store::Result<Option<Snapshot>> {
        let record = store.get(RecordKind::Session, 1, true)?;
        Ok(record.and_then(|record| Snapshot::of(&record.last?)))
    }

    // Files

    /// Writes the session, as it was when it had so many messages, to an empty store: these, the summaries and the options.
    ///
    /// # Errors
    /// Those of both stores.
    pub fn save(
        &self,
        target: &mut Store,
        options: &[u8],
        messages: usize,
        mut store: Option<&mut Store>,
    ) -> Result<()> {
        for message in 0..messages {
            target.append(RecordKind::Message, &[], &self.message(message, store.as_deref_mut())?, false)?;
        }
        let mut save_summary = |left: &[u8], message: &[u8]| {
            let is_then = Summarized::of(left).is_some_and(|left| left.past <= messages);
            if is_then { target.append(RecordKind::Summary, &[left], message, false).map(|_| ()) } else { Ok(()) }
        };
        if let Some(store) = store {
            for summary in 1..=store.last(RecordKind::Summary) {
                let record = store.get(RecordKind::Summary, summary, true)?;
                if let Some(Record { fields, last: Some(message) }) = record {
                    save_summary(fields.first().map_or(&[], Vec::as_slice), &message)?;
                }
            }
        }
        for [left, message] in &self.stored.summaries {
            save_summary(left, message)?;
        }
        let attempts = self.attempts_before(messages);
        let snapshot = Snapshot { options: options.to_vec(), attempts, ..Snapshot::default() };
        target.append(RecordKind::Session, &[], &snapshot.bytes(), false)?;
        Ok(())
    }

    /// Reads into memory what a store has up to its last summary; how many messages that are. Those after them are to be
    /// appended.
    ///
    /// # Errors
    /// Those of the store; or a message is malformed.
    pub fn load(&mut self, store: &mut Store, snapshot: Snapshot, counts: bool) -> Result<usize> {
        self.attempts = snapshot.attempts;
        for summary in 1..=store.last(RecordKind::Summary) {
            if let Some(Record { mut fields, last: Some(message) }) = store.get(RecordKind::Summary, summary, true)? {
                self.stored.summaries.push([fields.pop().unwrap_or_default(), message]);
            }
        }
        let Some(summarized) = self.last_summary(store)? else { return Ok(0) };
        let past = summarized.past;
        each_stored(store, 0..past, |data| {
            self.ledger.note(&scanned(&data)?, 0, self.policy.image_chars);
            self.past.push(&data);
            Ok(())
        })?;
        self.numbered = self.ledger.observations();
        self.resume_summarized(summarized, counts)?;
        Ok(past)
    }

    // Reading

    /// The first message of the session that is not in the store alone.
    #[must_use]
    pub fn first_here(&self) -> usize {
        self.log.base.messages
    }

    /// The first message of which the session has the bytes.
    #[must_use]
    pub fn first_message_here(&self) -> usize {
        if self.past.end() > self.past.first {
            self.past.first
        } else {
            self.past.end() + self.log.base.messages.saturating_sub(self.origins.len())
        }
    }

    /// How the boundary came to where it is: how many moves are in the store alone, and those after them.
    #[must_use]
    pub fn moves(&self) -> (usize, Vec<Move>) {
        (self.stored.moves, self.newest_moves())
    }

    /// The calls that results of the last message belong to, where these were evicted; notes that they are answered.
    pub(super) fn late_calls(&mut self, store: Option<&mut Store>) -> Result<Vec<(usize, Name, bool)>> {
        let Some(store) = store.filter(|_| self.log.base.messages > 0) else { return Ok(vec![]) };
        let mut late = late_calls(&mut self.log, store)?;
        let outline = &self.log.outline;
        for (result, _, is_first) in &mut late {
            let id = outline.results[*result].id.map_or(&b""[..], |id| outline.text(id));
            *is_first &= self.stored.answered.insert(id.to_vec());
        }
        Ok(late)
    }
}

/// Whether a snapshot can be true of a store.
fn fits(snapshot: &Snapshot, store: &Store) -> bool {
    let Snapshot { ledger, ids, moves, stale, base, .. } = snapshot;
    let in_memory = ledger.messages.checked_sub(base.messages);
    let room = index::room(store);
    ledger.messages.max(*stale) as u64 <= store.last(RecordKind::Message)
        && ledger.totals.turns <= ledger.messages
        && in_memory.is_some_and(|count| base.fold.before <= count)
        && [ledger.stored, *ids, *moves].into_iter().all(|count| count <= room)
        && base.fold.masked_count <= base.fold.observations
        && base.fold.observations <= ledger.stored
}

/// Of the message that was scanned last: its results whose call was evicted, the tool, and whether that had no result yet.
fn late_calls(log: &mut Log, store: &mut Store) -> Result<Vec<(usize, Name, bool)>> {
    let message = log.outline.messages.len() - 1;
    let mut late = vec![];
    for result in log.outline.results_of(message) {
        let Some(id) = log.outline.results[result].id else { continue };
        if log.pairs.call_of_last(&log.outline, result).is_some() {
            continue;
        }
        let id = log.outline.text(id).to_vec();
        let Some((message, is_answered)) = index::find(store, &id)?.as_ref().and_then(Entry::call) else {
            continue;
        };
        if message >= log.base.messages {
            continue;
        }
        let data = stored_bytes(store, message)?;
        let outline = scanned(&data).map_err(|_| no_message())?;
        let mut calls = outline.calls.iter().rev();
        let Some(call) = calls.find(|call| call.id.is_some_and(|of_call| outline.text(of_call) == id)) else {
            continue;
        };
        let name = call.name.map(|name| log.outline.intern(outline.name(name)));
        late.push((result, name, !is_answered));
    }
    Ok(late)
}

/// What a summary left, as its record has it.
pub(super) fn left_by(record: &Record) -> Option<Summarized> {
    Summarized::of(record.fields.first()?)
}

/// What a store has as a message is none.
fn no_message() -> StoreError {
    StoreError::new(Kind::Damaged, "a message in it is none")
}

/// What a store has of a summary is not of its messages.
pub(super) fn not_of_it() -> Failure {
    StoreError::new(Kind::Damaged, "what its last summary left is not of its messages").into()
}

/// A message as it was appended. Whether it is one is for the caller to find out.
fn stored_bytes(store: &mut Store, message: usize) -> store::Result<Vec<u8>> {
    let record = store.get(RecordKind::Message, message as u64 + 1, true)?;
    Ok(record.and_then(|record| record.last).unwrap_or_default())
}

/// Gives some messages one after another. A damaged store may say of many that they are the same long text.
fn each_stored(store: &mut Store, messages: Range<usize>, mut use_it: impl FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
    let mut left = store.most_bytes()?;
    for message in messages {
        let data = stored_bytes(store, message)?;
        left = left.checked_sub(data.len() as u64).ok_or_else(too_long)?;
        use_it(data)?;
    }
    Ok(())
}

pub(super) fn too_long() -> StoreError {
    StoreError::new(Kind::Damaged, "its records are longer than its file")
}

/// A message as it was appended.
pub fn stored_message(store: &mut Store, message: usize) -> store::Result<Vec<u8>> {
    let data = stored_bytes(store, message)?;
    scanned(&data).map_err(|_| no_message())?;
    Ok(data)
}

/// Appends an evicted message to a view, with what precedes it; how many bytes of it were read.
pub fn write_shown(store: &mut Store, message: usize, out: &mut Vec<u8>) -> store::Result<usize> {
    let before = out.len();
    out.push(if message == 0 { b'[' } else { b',' });
    let record = store.get(RecordKind::Message, message as u64 + 1, false)?;
    match record.and_then(|record| record.fields.into_iter().next()) {
        Some(shown) => {
            scanned(&shown).map_err(|_| no_message())?;
            out.extend_from_slice(&shown);
        }
        None => out.extend_from_slice(&stored_message(store, message)?),
    }
    Ok(out.len() - before - 1)
}

/// The text of an observation in a message; of one that is none, its own bytes.
pub fn observation_of(data: &[u8], place: usize) -> Option<Vec<u8>> {
    let outline = scanned(data).ok()?;
    let result = outline.results.get(place)?;
    Some(if result.frame.holds_text() {
        Bytes(data).observation(&outline, place)
    } else {
        result.value.of(data).to_vec()
    })
}
