//! Eviction: the first messages whose rendering is final are written to the store as rendered, and dropped from memory. The
//! session continues, or is resumed, with the rest. With a budget nothing is evicted before a summary, because the later
//! stages plan the whole session.

use super::index::{self, IdEntry, IdUpdate, IndexWriter};
use super::snapshot::Snapshot;
use super::{malformed_message, stored_bytes};
use crate::pairs::{LateResult, open_from};
use crate::plan::{Move, masked_in};
use crate::policy::Goal;
use crate::session::base::Base;
use crate::session::log::ledger::Ledger;
use crate::session::log::{Log, TextFormat};
use crate::session::{InLog, Result, Session, scanned};
use crate::store::{RecordKind, Store};
use std::collections::HashMap;

impl Session {
    /// Writes the messages that are not stored yet, and evicts once enough has accumulated.
    pub(in crate::session) fn store_messages(&mut self, store: &mut Store) -> Result<()> {
        if self.len() > self.stored.replayed {
            self.stored.missing += 1;
            self.store_missing(store)?;
        }
        if self.is_full() && !store.is_read_only() {
            self.evict(store)?;
        }
        Ok(())
    }

    /// Retries failed writes.
    pub(in crate::session) fn store_missing(&mut self, store: &mut Store) -> Result<()> {
        while self.stored.missing > 0 {
            let message = self.message_in_memory(self.len() - self.stored.missing).unwrap_or_default();
            store.append(RecordKind::Message, &[], message, false)?;
            self.stored.missing -= 1;
        }
        if self.stored.compactions.is_empty() { self.store_reports(store) } else { self.store_snapshot(store) }
    }

    /// Whether as many messages or bytes were added since the last eviction as `evict_after` says, and as it kept. The
    /// latter makes eviction amortized O(1) per message.
    fn is_full(&self) -> bool {
        let ((messages, bytes), (before, kept, kept_bytes)) = (self.stored.evict_after, self.stored.last_eviction);
        let held = self.log.data.len() + self.past.bytes();
        self.ledger.messages - before >= messages.max(kept) || held.saturating_sub(kept_bytes) >= bytes.max(kept_bytes)
    }

    /// Stores a snapshot to resume from.
    pub(in crate::session) fn store_snapshot(&mut self, store: &mut Store) -> Result<()> {
        if self.stored.missing == 0 { self.write(store, 0) } else { Ok(()) }
    }

    /// Evicts the messages whose rendering is final. On errors nothing has changed.
    fn evict(&mut self, store: &mut Store) -> Result<()> {
        let count = if self.may_evict() { self.final_messages() } else { 0 };
        self.write(store, count)?;
        self.stored.last_eviction = (self.ledger.messages, self.log.len(), self.log.data.len() + self.past.bytes());
        Ok(())
    }

    /// Writes a snapshot, and evicts the first messages.
    fn write(&mut self, store: &mut Store, count: usize) -> Result<()> {
        let shown = self.rendered_messages(count);
        let updates = self.updates(count);
        let base = self.base_without(count, &shown);
        let log = if count > 0 {
            let messages = (count..self.log.len()).map(|message| self.log.message(message));
            Some(self.log_after(base.clone(), messages, store)?)
        } else {
            None
        };
        let (first_message, stale) = (self.log.base.messages, self.stored.stale);
        let moves: &[Move] = if base.messages > 0 { &self.log.fold.moves } else { &[] };
        let (messages, stored, totals) = (self.ledger.messages, self.ledger.observations(), self.ledger.totals);
        let ledger = Ledger { messages, totals, stored, ..Ledger::default() };
        let first = self.first_snapshot();
        let snapshot = store.change(|changes| {
            if changes.last(RecordKind::Session) == 0 {
                changes.append(RecordKind::Session, &[], &[])?;
            }
            for [compaction, message] in &self.stored.compactions {
                changes.append(RecordKind::Summary, &[compaction], message)?;
            }
            for (place, shown) in shown.iter().enumerate() {
                let fields: &[&[u8]] = if let Some(bytes) = shown { &[bytes] } else { &[] };
                if first_message + place < stale || shown.is_some() {
                    changes.replace_before_last(RecordKind::Message, (first_message + place + 1) as u64, fields)?;
                }
            }
            let mut writer = IndexWriter::of(changes, self.stored.ids);
            writer.add_places(self.ledger.stored, &self.ledger.places)?;
            writer.update(updates.iter().map(|(id, update)| (id.as_slice(), *update)))?;
            writer.add_moves(self.stored.moves, moves)?;
            let (ids, moves) = (writer.ids, self.stored.moves + moves.len());
            let snapshot = Snapshot { ledger, ids, moves, base, ..first };
            changes.replace(RecordKind::Session, 1, &[], &snapshot.bytes())?;
            Ok(snapshot)
        })?;
        self.ledger.evict();
        (self.stored.ids, self.stored.moves) = (snapshot.ids, snapshot.moves);
        self.stored.compactions.clear();
        self.stored.has_unwritten_reports = false;
        if snapshot.base.messages > 0 {
            self.log.fold.moves.clear();
        }
        self.log.fold.enable_rewind(self.log.len());
        self.stored.answered.clear();
        self.past.evict();
        if let Some(log) = log {
            self.evict_from_view(count);
            self.log = log;
        }
        Ok(())
    }

    /// Whether messages may be evicted. Not with a budget, since a later stage may need all of them; and not while stored messages
    /// are appended again, since the ledger is ahead of the session then; and not where a limit is counted, since costs are not stored.
    fn may_evict(&mut self) -> bool {
        let masks = self.policy.goal == Goal::Mask && self.log.cost > self.raw_cost_at_most;
        let is_counted = self.log.costs.is_some() && (self.policy.max_cost.is_some() || self.policy.trigger > 0);
        let may = masks && self.len() == self.ledger.messages && !is_counted && !self.is_undecided();
        if may {
            self.update_masked();
        }
        may
    }

    /// How many of the messages in memory are final.
    fn final_messages(&mut self) -> usize {
        let (policy, Log { outline, fold, pairs, .. }) = (&self.policy, &self.log);
        // The log always has a last message.
        let mut count = outline.messages.len().saturating_sub(1);
        count = count.min(self.log.with_context(policy, |context| fold.final_messages(context)));
        // Open calls may still be answered.
        count = count.min(self.final_marks());
        count = count.min(open_from(outline, |message| outline.holds_results(message)));
        if let Some(result) = outline.results.get(fold.final_observations(policy)) {
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

    /// The final rendering of the first messages in memory; None where it is the message itself. Readers take older marks out.
    fn rendered_messages(&self, count: usize) -> Vec<Option<Vec<u8>>> {
        let results = |message| self.log.outline.results_of(message);
        let is_masked = |message| {
            !masked_in(&self.log.fold.masked, results(message)).is_empty()
                || !self.log.outline.cuts_of(results(message)).is_empty()
        };
        let sent = |message: usize| self.sent_message(InLog(message));
        (0..count).map(|message| is_masked(message).then(|| sent(message))).collect()
    }

    /// Changes of the id index.
    fn updates(&self, count: usize) -> HashMap<Vec<u8>, IdUpdate> {
        let mut updates: HashMap<Vec<u8>, IdUpdate> = HashMap::new();
        for id in &self.stored.answered {
            updates.entry(id.clone()).or_default().is_answered = true;
        }
        for (id, number) in self.ledger.ids() {
            updates.entry(id.to_vec()).or_default().number = Some(number as u32);
        }
        let Log { outline, pairs, .. } = &self.log;
        for call in 0..outline.calls_before(count) {
            if let Some(id) = outline.calls[call].id {
                let message = outline.calls[call].message as usize;
                let call = (self.places().of_log(InLog(message)).0, pairs.pairs.is_answered(call));
                updates.entry(outline.text(id).to_vec()).or_default().call = Some(call);
            }
        }
        updates
    }

    /// The base of a log without the first messages.
    fn base_without(&self, count: usize, shown: &[Option<Vec<u8>>]) -> Base {
        let Log { pairs, fold, chars, cost, base, marks, .. } = &self.log;
        if count == 0 && base.messages == 0 {
            return Base::default();
        }
        let is_marked = |message| marks.binary_search_by_key(&message, |(marked, ..)| *marked).is_ok();
        let bytes = |message: usize| match &shown[message] {
            None => self.log.message(message).len() + 1,
            Some(_) if is_marked(message) => self.rendered_message(InLog(message)).len() + 1,
            Some(shown) => shown.len() + 1,
        };
        Base {
            messages: base.messages + count,
            view_bytes: base.view_bytes + (0..count).map(bytes).sum::<usize>(),
            chars: *chars,
            cost: *cost,
            counts: pairs.counts(),
            fold: self.log.with_context(&self.policy, |context| fold.state_without(context, count)),
            marks: self.evicted_marks(count),
        }
    }

    /// The log of the messages after the evicted ones.
    pub(in crate::session) fn log_after<'a>(
        &self,
        base: Base,
        messages: impl Iterator<Item = &'a [u8]>,
        store: &mut Store,
    ) -> Result<Log> {
        let mut log = Log::after(base, TextFormat::Json);
        let mut numbers = log.base.fold.observations as u32 + 1..;
        for message in messages {
            log.scan(message, true, &self.policy, &mut numbers)?;
            let mut late = late_calls(&mut log, store)?;
            for (.., is_first) in &mut late {
                *is_first = false;
            }
            log.admit(&self.policy, &late);
        }
        log.resume(&self.policy);
        Ok(log)
    }

    /// How many messages of the session are evicted.
    #[must_use]
    pub fn first_in_memory(&self) -> usize {
        self.log.base.messages
    }

    /// The first message whose bytes are in memory.
    #[must_use]
    pub fn first_message_in_memory(&self) -> usize {
        if self.past.end() > self.past.first {
            return self.past.first;
        }
        self.places().appended(self.places().of_log(InLog(0))).map_or(self.past.end(), |first| first.0)
    }

    /// [`late_calls`] of the last message, which are marked as answered.
    pub(in crate::session) fn late_calls(&mut self, store: Option<&mut Store>) -> Result<Vec<LateResult>> {
        let Some(store) = store.filter(|_| self.log.base.messages > 0) else { return Ok(vec![]) };
        let mut late = late_calls(&mut self.log, store)?;
        let outline = &self.log.outline;
        for (result, _, is_first) in &mut late {
            let id = outline.results[*result as usize].id.map_or(&b""[..], |id| outline.text(id));
            *is_first &= self.stored.answered.insert(id.to_vec());
        }
        Ok(late)
    }
}

/// Results of evicted calls in the message that was scanned last.
pub(in crate::session) fn late_calls(log: &mut Log, store: &mut Store) -> Result<Vec<LateResult>> {
    let message = log.outline.messages.len() - 1;
    let mut late = vec![];
    for result in log.outline.results_of(message) {
        let Some(id) = log.outline.results[result].id else { continue };
        if log.pairs.call_by_id(&log.outline, result).is_some() {
            continue;
        }
        let id = log.outline.text(id).to_vec();
        let Some((message, is_answered)) = index::find(store, &id)?.as_ref().and_then(IdEntry::call) else {
            continue;
        };
        if message >= log.base.messages {
            continue;
        }
        let data = stored_bytes(store, message)?;
        let outline = scanned(&data).map_err(|_| malformed_message())?;
        let mut calls = outline.calls.iter().rev();
        let Some(call) = calls.find(|call| call.id.is_some_and(|of_call| outline.text(of_call) == id)) else {
            continue;
        };
        let name = call.name.map(|name| log.outline.intern(outline.name(name)));
        late.push((result as u32, name, !is_answered));
    }
    Ok(late)
}
