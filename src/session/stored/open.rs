//! Opening: a session is resumed from the snapshot, summaries and messages of a store, saved to a file, or loaded from one.

use super::Stored;
use super::index;
use super::snapshot::{Compaction, Snapshot};
use super::{for_each_stored, last_compaction, mismatched_compaction};
use crate::policy::Goal;
use crate::session::{Result, Session, scanned};
use crate::store::{self, Record, RecordKind, Store};

impl Session {
    /// Uses a store, and resumes its snapshot if that was made with the same options. Returns how many of the stored messages
    /// the session has; the caller appends the others.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open(
        &mut self,
        store: &mut Store,
        options: &[u8],
        counts: bool,
        evict_after: (usize, usize),
    ) -> Result<usize> {
        let messages = store.last(RecordKind::Message) as usize;
        self.stored =
            Stored { is_used: true, options: options.to_vec(), evict_after, replayed: messages, ..Stored::default() };
        if store.last(RecordKind::Session) == 0 {
            return Ok(0);
        }
        let mut snapshot = Session::snapshot_of(store)?.unwrap_or_default();
        self.reports = snapshot.reports.before(messages); // also with other options: they are facts
        self.renew_policy();
        let compaction = self.last_compaction(store)?;
        let known = compaction.as_ref().map_or(snapshot.ledger.messages, |compaction| compaction.past);
        self.decide_by_stored(store, known.min(messages))?;
        if snapshot.options == options && fits(&snapshot, store) {
            self.attempts = core::mem::take(&mut snapshot.attempts);
            if let Some(known) = self.resume(snapshot, compaction.is_some(), store)? {
                return if compaction.is_some() { self.open_past(store, compaction, counts) } else { Ok(known) };
            }
            self.attempts.clear();
        }
        self.undecide(compaction.as_ref().map_or(0, |compaction| compaction.past));
        self.stored.stale = messages;
        if !store.is_read_only() {
            let first = self.first_snapshot().bytes();
            // The snapshot is of other options, or inconsistent.
            store.change(|changes| {
                changes.replace(RecordKind::Session, 1, &[], &first)?;
                index::clear(changes)
            })?;
        }
        self.open_past(store, compaction, counts)
    }

    /// Resumes a snapshot; returns how many messages the session has then, None if they do not match it.
    fn resume(&mut self, snapshot: Snapshot, is_compacted: bool, store: &mut Store) -> Result<Option<usize>> {
        let Snapshot { ledger, ids, moves, stale, base, .. } = snapshot;
        let (noted, evicted) = (ledger.messages, base.messages);
        let reads = evicted > 0 && !is_compacted;
        if reads {
            let observations = ledger.stored - base.fold.observations;
            let is_here = |result: &u32| (*result as usize) < observations;
            if !base.fold.masked.iter().all(is_here) {
                return Ok(None);
            }
            let mut messages = vec![];
            for_each_stored(store, evicted..noted, |data| {
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
        self.known_moves = moves;
        if !reads {
            return Ok(Some(0));
        }
        self.observations = self.ledger.observations();
        self.stored.last_eviction = (noted, self.log.len(), self.log.data.len());
        Ok(Some(noted))
    }

    /// Continues after the last stored summary, whose messages are not planned again.
    fn open_past(&mut self, store: &mut Store, compaction: Option<Compaction>, counts: bool) -> Result<usize> {
        let Some(compaction) = compaction else { return Ok(0) };
        let past = compaction.past;
        let (ledger, image_chars) = (&mut self.ledger, self.policy.image_chars);
        for_each_stored(store, ledger.messages..past, |data| {
            ledger.add(&scanned(&data)?, 0, image_chars);
            Ok(())
        })?;
        let mut numbered = Some(ledger.observations());
        for_each_stored(store, past..ledger.messages, |data| {
            let results = scanned(&data)?.results.len();
            numbered = numbered.and_then(|numbered| numbered.checked_sub(results));
            Ok(())
        })?;
        self.observations = numbered.ok_or_else(mismatched_compaction)?;
        self.past.first = past;
        self.resume_compaction(compaction, counts)?;
        Ok(past)
    }

    /// The last stored summary to continue after. None without a budget: evicted messages are found by their position in the
    /// session, which a summary shifts.
    fn last_compaction(&self, store: &mut Store) -> Result<Option<Compaction>> {
        if self.policy.goal == Goal::Mask {
            return Ok(None);
        }
        let (last, known) = (store.last(RecordKind::Summary), store.last(RecordKind::Message) as usize);
        let found = last_compaction(last, known, |summary| store.get(RecordKind::Summary, summary, false))?;
        Ok(found.map(|(_, compaction)| compaction))
    }

    /// The snapshot in a store.
    ///
    /// # Errors
    /// Those of the store.
    pub fn snapshot_of(store: &mut Store) -> store::Result<Option<Snapshot>> {
        let record = store.get(RecordKind::Session, 1, true)?;
        Ok(record.and_then(|record| Snapshot::of(&record.last?)))
    }

    /// Writes the first messages, the summaries made of them, and the options to an empty store.
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
            let is_then = Compaction::of(left).is_some_and(|left| left.past <= messages);
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
        for [left, message] in &self.stored.compactions {
            save_summary(left, message)?;
        }
        let attempts = self.attempts_before(messages);
        let reports = self.reports.before(messages);
        let snapshot = Snapshot { options: options.to_vec(), attempts, reports, ..Snapshot::default() };
        target.append(RecordKind::Session, &[], &snapshot.bytes(), false)?;
        Ok(())
    }

    /// Reads a store into memory up to its last summary; returns how many messages that are. The caller appends the others.
    ///
    /// # Errors
    /// Those of the store, or a malformed message.
    pub fn load(&mut self, store: &mut Store, snapshot: Snapshot, counts: bool) -> Result<usize> {
        self.attempts = snapshot.attempts;
        self.reports = snapshot.reports.before(store.last(RecordKind::Message) as usize);
        self.renew_policy();
        for summary in 1..=store.last(RecordKind::Summary) {
            if let Some(Record { fields, last: Some(message) }) = store.get(RecordKind::Summary, summary, true)? {
                // As `last_compaction` reads it: a damaged record may have more fields.
                self.stored.compactions.push([fields.into_iter().next().unwrap_or_default(), message]);
            }
        }
        let Some(compaction) = self.last_compaction(store)? else { return Ok(0) };
        let past = compaction.past;
        self.decide_by_stored(store, past)?;
        for_each_stored(store, 0..past, |data| {
            self.ledger.add(&scanned(&data)?, 0, self.policy.image_chars);
            self.past.push(&data);
            Ok(())
        })?;
        self.observations = self.ledger.observations();
        self.resume_compaction(compaction, counts)?;
        Ok(past)
    }
}

/// Whether a snapshot is consistent with its store.
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
