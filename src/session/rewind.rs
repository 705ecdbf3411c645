//! Taking back the newest messages. Where they came after the last summary and the last snapshot, the session is changed in
//! place: that takes what is dropped, and what came since the last move of the boundary before it. Else a store keeps what
//! still holds, and is to be opened again; a session in memory is to be saved as it was then, and loaded.

use super::evict::left_by;
use super::index;
use super::log::Log;
use super::snapshot::Snapshot;
use super::{Attempts, Result, Session, scanned};
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
        let ends_with_run = is_here && self.ends_with_run(messages, store.as_deref_mut())?;
        if let Some(store) = store {
            if !is_here {
                self.store_missing(store)?;
            }
            self.rewind_store(store, messages, is_here)?;
        }
        if is_here {
            self.rewind_here(messages, ends_with_run);
        }
        Ok(is_here)
    }

    /// Whether the last of so many messages is of a run.
    fn ends_with_run(&self, messages: usize, store: Option<&mut Store>) -> Result<bool> {
        let Some(last) = messages.checked_sub(1) else { return Ok(false) };
        Ok(scanned(&self.message(last, store)?)?.messages[0].is_agent_made)
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
            let mut summary = changes.last(RecordKind::Summary);
            while let Some(record) = changes.get(RecordKind::Summary, summary)?
                && left_by(&record).is_none_or(|left| left.past > messages)
            {
                summary -= 1;
            }
            changes.truncate(RecordKind::Summary, summary)?;
            index::clear(changes)?;
            changes.replace(RecordKind::Session, 1, &[], &snapshot.bytes())?;
            Ok(())
        })?;
        Ok(())
    }

    fn rewind_here(&mut self, messages: usize, ends_with_run: bool) {
        let dropped = self.len() - messages;
        let (outline, first) = (&self.log.outline, self.log.len() - dropped);
        for message in (first..self.log.len()).rev() {
            let is_after_run =
                if message > first { outline.messages[message - 1].is_agent_made } else { ends_with_run };
            self.ledger.take_back(outline, message, is_after_run, self.policy.image_chars);
            self.numbered -= outline.results_of(message).len();
        }
        self.attempts = self.attempts_before(messages);
        self.stored.missing = self.stored.missing.saturating_sub(dropped);
        self.stored.replayed = self.stored.replayed.min(messages);
        self.rewind_view(first);
        let Log { outline, pairs, base, .. } = &self.log;
        let stored = self.ledger.stored_messages.saturating_sub(base.messages);
        let answered = pairs.late_from(outline.results_before(stored)).filter_map(|result| outline.results[result].id);
        self.stored.answered = answered.map(|id| outline.text(id).to_vec()).collect();
        if let Some(summarized) = self.summarized.as_ref().filter(|summarized| summarized.past == messages) {
            self.show_again(summarized.view.clone(), summarized.counts, summarized.moves.clone());
        }
    }

    /// Of the summaries that failed, those that did when there were no more messages.
    pub(super) fn attempts_before(&self, messages: usize) -> Vec<(usize, Attempts)> {
        self.attempts.iter().copied().filter(|(at, _)| *at <= messages).collect()
    }
}
