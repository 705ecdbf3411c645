//! Rewinding to the first messages. After the last summary and the last snapshot this happens in place, and costs the dropped
//! messages and those since the boundary last moved before them. Otherwise the store is truncated and must be opened again; a
//! session in memory must be saved up to that message, and loaded.

use super::log::{Log, TextFormat};
use super::stored::index;
use super::stored::last_compaction;
use super::stored::snapshot::Snapshot;
use super::{Result, Session, scanned};
use crate::store::{RecordKind, Store};

impl Session {
    /// Drops all but the first messages. False if the session must be rebuilt: from its store, which is truncated now, or
    /// from what [`Session::save`] writes for this many messages.
    ///
    /// # Errors
    /// Those of the store, and the session is as before.
    pub fn rewind(&mut self, messages: usize, mut store: Option<&mut Store>) -> Result<bool> {
        if messages >= self.len() {
            return Ok(true);
        }
        self.check_store(store.as_deref())?;
        let in_place = self.pending.is_none() && messages >= self.past.end().max(self.ledger.stored_messages);
        let ends_with_run = in_place && self.ends_with_run(messages, store.as_deref_mut())?;
        if let Some(store) = store.as_deref_mut() {
            if !in_place {
                self.store_missing(store)?;
            }
            self.rewind_store(store, messages, in_place)?;
        }
        if in_place {
            self.rewind_in_place(messages, ends_with_run);
            if self.stored.has_unwritten_reports
                && let Some(store) = store
            {
                self.store_reports(store)?;
            }
        }
        Ok(in_place)
    }

    /// Whether the last of this many messages belongs to a run.
    fn ends_with_run(&self, messages: usize, store: Option<&mut Store>) -> Result<bool> {
        let Some(last) = messages.checked_sub(1) else { return Ok(false) };
        if self.log.format() == TextFormat::Facts {
            return Ok(self.log.outline.messages[last].is_agent_made);
        }
        Ok(scanned(&self.message(last, store)?)?.messages[0].is_agent_made)
    }

    /// Truncates the store; unless the rewind is in place, to what rebuilding the session needs.
    fn rewind_store(&self, store: &mut Store, messages: usize, in_place: bool) -> Result<()> {
        let attempts = self.attempts_before(messages);
        let reports = self.reports.before(messages);
        let snapshot = Snapshot { stale: messages, attempts, reports, ..self.first_snapshot() };
        store.change(|changes| {
            changes.truncate(RecordKind::Message, messages as u64)?;
            if in_place {
                return Ok(());
            }
            let last = changes.last(RecordKind::Summary);
            let kept = last_compaction(last, messages, |summary| changes.get(RecordKind::Summary, summary))?;
            changes.truncate(RecordKind::Summary, kept.map_or(0, |(summary, _)| summary))?;
            index::clear(changes)?;
            changes.replace(RecordKind::Session, 1, &[], &snapshot.bytes())?;
            Ok(())
        })?;
        Ok(())
    }

    fn rewind_in_place(&mut self, messages: usize, ends_with_run: bool) {
        let dropped = self.len() - messages;
        let (outline, first) = (&self.log.outline, self.log.len() - dropped);
        for message in (first..self.log.len()).rev() {
            let is_after_run =
                if message > first { outline.messages[message - 1].is_agent_made } else { ends_with_run };
            if self.log.format() != TextFormat::Facts {
                self.ledger.pop(outline, message, is_after_run, self.policy.image_chars);
            }
            self.observations -= outline.results_of(message).len();
        }
        self.attempts = self.attempts_before(messages);
        let reports = self.reports.before(messages);
        if reports != self.reports {
            self.reports = reports;
            self.stored.has_unwritten_reports = self.stored.is_used;
            self.renew_policy();
        }
        self.stored.missing = self.stored.missing.saturating_sub(dropped);
        self.stored.replayed = self.stored.replayed.min(messages);
        self.rewind_view(first);
        if self.undecide(messages) {
            self.log.charge_again(&self.policy, self.log.len());
        }
        self.known_moves = self.known_moves.min(self.move_counts().1);
        let Log { outline, pairs, base, .. } = &self.log;
        let stored = self.ledger.stored_messages.saturating_sub(base.messages);
        let answered = pairs.late_from(outline.results_before(stored)).filter_map(|result| outline.results[result].id);
        self.stored.answered = answered.map(|id| outline.text(id).to_vec()).collect();
    }
}
