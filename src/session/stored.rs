//! A session in a store: what happened, in order. Opening reads that, and appends it again.
//!
//! Messages are records of their kind. What else happened is an event, a record of the kind "summary": numbers, the first of which is
//! its tag, and the text of a summary. The options are in the one record of the kind "session".

use super::event::Event;
use super::{Failure, Result, Session};
use crate::store::{RecordKind, Store, StoreError, StoreErrorKind};
use std::collections::VecDeque;

const MAGIC: &[u8; 8] = b"recede s";
const VERSION: u16 = 2;

/// State of the session's store.
#[derive(Debug, Default, Clone)]
pub(crate) struct Stored {
    /// Whether the session has a store.
    pub is_used: bool,
    /// Stored messages that are appended again when the session is opened.
    pub known: usize,
    /// How many of the newest messages are not written yet.
    pub missing: usize,
    /// Events that are not written yet.
    pub events: VecDeque<Event>,
}

fn damaged(what: &'static str) -> Failure {
    StoreError::new(StoreErrorKind::Damaged, what).into()
}

/// The options as they are stored.
fn header(options: &[u8]) -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_le_bytes(), options].concat()
}

fn append_event(store: &mut Store, event: &Event) -> core::result::Result<(), StoreError> {
    let (numbers, text) = event.fields();
    store.append(RecordKind::Summary, &[&numbers], text, false).map(drop)
}

impl Session {
    /// The options of the session in a store; None if it has none, or is that of turns. A session that another version of recede
    /// wrote is an error.
    pub fn stored_options(store: &mut Store) -> Result<Option<Vec<u8>>> {
        let Some(record) = store.get(RecordKind::Session, 1, true)? else { return Ok(None) };
        let data = record.last.unwrap_or_default();
        let Some(rest) = data.strip_prefix(MAGIC) else { return Ok(None) };
        match rest.split_first_chunk() {
            Some((version, options)) if u16::from_le_bytes(*version) == VERSION => Ok(Some(options.to_vec())),
            _ => Err(StoreError::new(StoreErrorKind::Version, "its session has another format").into()),
        }
    }

    /// Uses a store, with what happened in it. The caller appends its messages again; returns how many there are.
    pub fn open(&mut self, store: &mut Store, options: &[u8]) -> Result<usize> {
        Session::store_options(store, options)?;
        let known = self.load(store)?;
        self.stored = Stored { is_used: true, known, ..Stored::default() };
        Ok(known)
    }

    /// Writes the options to a store that has others.
    pub(super) fn store_options(store: &mut Store, options: &[u8]) -> Result<()> {
        if Session::stored_options(store)?.as_deref() != Some(options) && !store.is_read_only() {
            store.change(|changes| {
                if changes.last(RecordKind::Session) == 0 {
                    changes.append(RecordKind::Session, &[], &[])?;
                }
                changes.replace(RecordKind::Session, 1, &[], &header(options))
            })?;
        }
        Ok(())
    }

    /// Takes over what happened in a store, as far as it has the messages for that. The caller appends these; returns how many there
    /// are.
    pub(crate) fn load(&mut self, store: &mut Store) -> Result<usize> {
        let messages = store.last(RecordKind::Message) as usize;
        for event in 1..=store.last(RecordKind::Summary) {
            let record = store.get(RecordKind::Summary, event, true)?;
            let event = record.and_then(|record| Event::of(record.fields.first()?, record.last.unwrap_or_default()));
            let event = event.ok_or_else(|| damaged("an event in it is malformed"))?;
            if event.messages() <= messages {
                self.events.push(event);
            }
        }
        self.renew_requests();
        Ok(messages)
    }

    /// Refuses a store that is closed, or has messages of another session.
    pub(super) fn check_store(&self, store: Option<&Store>) -> Result<()> {
        let stored = self.len().max(self.stored.known) - self.stored.missing;
        match store {
            None if self.stored.is_used => Err(Failure::Closed),
            Some(store) if store.is_usable() && store.last(RecordKind::Message) as usize != stored => {
                Err(Failure::OtherWriter)
            }
            _ => Ok(()),
        }
    }

    /// Something happened besides a message.
    pub(super) fn happened(&mut self, event: Event) {
        if self.stored.is_used {
            self.stored.events.push_back(event.clone());
        }
        self.events.push(event);
    }

    /// Writes what is not written yet. What fails is written with the next message.
    pub(super) fn write(&mut self, store: &mut Store) -> Result<()> {
        while self.stored.missing > 0 {
            let message = self.log.message(self.log.len() - self.stored.missing);
            store.append(RecordKind::Message, &[], message, false)?;
            self.stored.missing -= 1;
        }
        while let Some(event) = self.stored.events.front() {
            append_event(store, event)?;
            self.stored.events.pop_front();
        }
        Ok(())
    }

    /// Writes the options, the first messages and what happened until then to an empty store.
    pub fn save(&self, target: &mut Store, options: &[u8], messages: usize) -> Result<()> {
        target.append(RecordKind::Session, &[], &header(options), false)?;
        for message in 0..messages {
            target.append(RecordKind::Message, &[], self.log.message(message), false)?;
        }
        for event in self.events.until(messages).all() {
            append_event(target, &event)?;
        }
        Ok(())
    }

    /// Drops all but the first messages from the store, and what happened after them.
    pub(super) fn rewind_store(&mut self, store: &mut Store, messages: usize) -> Result<()> {
        let stored = store.last(RecordKind::Message);
        let events = self.events.until(messages);
        let is_later = events != self.events;
        store.change(|changes| {
            changes.truncate(RecordKind::Message, stored.min(messages as u64))?;
            if !is_later {
                return Ok(());
            }
            changes.truncate(RecordKind::Summary, 0)?;
            for event in events.all() {
                let (numbers, text) = event.fields();
                changes.append(RecordKind::Summary, &[&numbers], text)?;
            }
            Ok(())
        })?;
        self.stored.events.clear();
        Ok(())
    }
}
