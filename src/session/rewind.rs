//! Taking back the newest messages. Where they came after the last summary and the last snapshot, the session is changed in
//! place: that takes what is dropped, and what came since the last move of the boundary before it. Else a store keeps what
//! still holds, and is to be opened again; a session in memory is to be saved as it was then, and loaded.

use super::evict::compaction_of;
use super::index;
use super::log::Log;
use super::snapshot::Snapshot;
use super::{Attempts, Result, Session, scanned};
use crate::outline::Outline;
use crate::store::{RecordKind, Store};

impl Session {
    /// Takes back all but the first messages. False where the session must be made again: of its store, which has only
    /// these messages now, or of what [`Session::save`] writes for so many.
    ///
    /// # Errors
    /// Those of the store, and the session is as before.
    pub fn rewind(&mut self, messages: usize, mut store: Option<&mut Store>) -> Result<bool> {
        if messages >= self.len() {
            return Ok(true);
        }
        self.check_store(store.as_deref())?;
        let is_here = self.restart.is_none() && messages >= self.past.end().max(self.ledger.stored_messages);
        let dropped = if is_here { self.dropped(messages, store.as_deref_mut())? } else { vec![] };
        if let Some(store) = store {
            if !is_here {
                self.store_missing(store)?;
            }
            self.rewind_store(store, messages, is_here)?;
        }
        if is_here {
            self.rewind_here(messages, &dropped);
        }
        Ok(is_here)
    }

    /// The outlines of the messages that are taken back, and whether the one before each is of a run.
    fn dropped(&self, messages: usize, store: Option<&mut Store>) -> Result<Vec<(Outline, bool)>> {
        let before = messages.checked_sub(1).map(|last| self.message(last, store)).transpose()?;
        let before = before.map(|last| scanned(&last)).transpose()?;
        let mut is_run = before.is_some_and(|before| before.messages[0].is_agent_made);
        let mut dropped = vec![];
        for message in messages..self.len() {
            let outline = scanned(self.message_here(message).unwrap_or_default())?;
            let is_after_run = core::mem::replace(&mut is_run, outline.messages[0].is_agent_made);
            dropped.push((outline, is_after_run));
        }
        Ok(dropped)
    }

    /// The store forgets the messages. Where the session is to be made of it again, it has nothing but what that needs.
    fn rewind_store(&self, store: &mut Store, messages: usize, is_here: bool) -> Result<()> {
        let attempts = self.attempts_before(messages);
        let snapshot =
            Snapshot { options: self.stored.options.clone(), stale: messages, attempts, ..Snapshot::default() };
        store.change(|changes| {
            changes.truncate(RecordKind::Message, messages as u64)?;
            if is_here {
                return Ok(());
            }
            let mut last = changes.last(RecordKind::Summary);
            while let Some(record) = changes.get(RecordKind::Summary, last)?
                && compaction_of(&record).is_none_or(|compaction| compaction.past > messages)
            {
                last -= 1;
            }
            changes.truncate(RecordKind::Summary, last)?;
            index::clear(changes)?;
            changes.replace(RecordKind::Session, 1, &[], &snapshot.bytes())?;
            Ok(())
        })?;
        Ok(())
    }

    fn rewind_here(&mut self, messages: usize, dropped: &[(Outline, bool)]) {
        for (outline, is_after_run) in dropped.iter().rev() {
            self.ledger.take_back(outline, *is_after_run, self.policy.image_chars);
            self.numbered -= outline.results.len();
        }
        self.attempts = self.attempts_before(messages);
        self.stored.missing = self.stored.missing.saturating_sub(dropped.len());
        self.stored.replayed = self.stored.replayed.min(messages);
        self.rewind_view(self.log.len() - dropped.len());
        let Log { outline, pairs, base, .. } = &self.log;
        let stored = self.ledger.stored_messages.saturating_sub(base.messages);
        let answered = pairs.late_from(outline.results_before(stored)).filter_map(|result| outline.results[result].id);
        self.stored.answered = answered.map(|id| outline.text(id).to_vec()).collect();
        if self.compaction.as_ref().is_some_and(|compaction| compaction.past == messages) {
            self.show_raw(); // the session began as the view of that time
            self.settle_change();
        }
    }

    /// Of the summaries that failed, those that did when there were no more messages.
    pub(super) fn attempts_before(&self, messages: usize) -> Vec<(usize, Attempts)> {
        self.attempts.iter().copied().filter(|(at, _)| *at <= messages).collect()
    }
}
