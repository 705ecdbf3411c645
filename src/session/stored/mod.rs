//! Sessions in a store: its records of messages and summaries, which may be damaged.

mod evict;
pub mod index;
pub mod numbers;
mod open;
mod records;
mod reports;
pub mod snapshot;

use crate::session::{Failure, Result, scanned};
use crate::source::{Bytes, Source};
use crate::store::{self, Record, RecordKind, Store, StoreError, StoreErrorKind};
use snapshot::Compaction;
use std::collections::HashSet;
use std::ops::Range;

/// State of the session's store.
#[derive(Debug, Default, Clone)]
pub struct Stored {
    /// Whether the session has a store.
    pub is_used: bool,
    /// The options; only a snapshot with the same ones is resumed.
    pub options: Vec<u8>,
    /// Evict after this many new messages or bytes; see [`Session::is_full`].
    pub evict_after: (usize, usize),
    /// Ids and moves in the index.
    pub ids: usize,
    pub moves: usize,
    /// Stored renderings before this message may be those of a session with other options.
    pub stale: usize,
    /// Ids of evicted calls that were answered since.
    pub answered: HashSet<Vec<u8>>,
    /// At the last eviction: messages in total, messages kept, bytes kept.
    pub last_eviction: (usize, usize, usize),
    /// Stored messages that are appended again when the session is opened.
    pub replayed: usize,
    /// How many of the newest messages could not be written yet.
    pub missing: usize,
    /// Compactions that are not stored yet, as the fields of their records: `Compaction`, message of the summary.
    pub compactions: Vec<[Vec<u8>; 2]>,
    /// Whether something was reported that is not stored yet.
    pub has_unwritten_reports: bool,
}

/// The last of these compactions of at most this many messages, with its number. Ones that cannot be read are passed over, as
/// they are when the session is saved.
pub(in crate::session) fn last_compaction(
    last: u64,
    messages: usize,
    mut get: impl FnMut(u64) -> store::Result<Option<Record>>,
) -> store::Result<Option<(u64, Compaction)>> {
    for summary in (1..=last).rev() {
        let compaction = get(summary)?.and_then(|record| Compaction::of(record.fields.first()?));
        if let Some(compaction) = compaction.filter(|compaction| compaction.past <= messages) {
            return Ok(Some((summary, compaction)));
        }
    }
    Ok(None)
}

pub(in crate::session) fn malformed_message() -> StoreError {
    StoreError::new(StoreErrorKind::Damaged, "a message in it is malformed")
}

pub(in crate::session) fn mismatched_compaction() -> Failure {
    StoreError::new(StoreErrorKind::Damaged, "its last summary does not match its messages").into()
}

/// A message as it was appended, not validated.
pub(in crate::session) fn stored_bytes(store: &mut Store, message: usize) -> store::Result<Vec<u8>> {
    let record = store.get(RecordKind::Message, message as u64 + 1, true)?;
    Ok(record.and_then(|record| record.last).unwrap_or_default())
}

/// Visits some messages in order. A damaged store may refer to one long text many times, so the bytes are limited.
pub(in crate::session) fn for_each_stored(
    store: &mut Store,
    messages: Range<usize>,
    mut visit: impl FnMut(Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut left = store.max_bytes()?;
    for message in messages {
        let data = stored_bytes(store, message)?;
        left = left.checked_sub(data.len() as u64).ok_or_else(too_long)?;
        visit(data)?;
    }
    Ok(())
}

pub(in crate::session) fn too_long() -> StoreError {
    StoreError::new(StoreErrorKind::Damaged, "its records are longer than its file")
}

/// A message as it was appended.
pub fn stored_message(store: &mut Store, message: usize) -> store::Result<Vec<u8>> {
    let data = stored_bytes(store, message)?;
    scanned(&data).map_err(|_| malformed_message())?;
    Ok(data)
}

/// Appends an evicted message and the comma or bracket before it to a view; returns how many bytes were read.
pub fn write_rendered(store: &mut Store, message: usize, out: &mut Vec<u8>) -> store::Result<usize> {
    let before = out.len();
    out.push(if message == 0 { b'[' } else { b',' });
    let record = store.get(RecordKind::Message, message as u64 + 1, false)?;
    match record.and_then(|record| record.fields.into_iter().next()) {
        Some(shown) => {
            scanned(&shown).map_err(|_| malformed_message())?;
            out.extend_from_slice(&shown);
        }
        None => out.extend_from_slice(&stored_message(store, message)?),
    }
    Ok(out.len() - before - 1)
}

/// The text of an observation of a message; its JSON where it is not a text.
pub fn observation_of(data: &[u8], place: usize) -> Option<Vec<u8>> {
    let outline = scanned(data).ok()?;
    let result = outline.results.get(place)?;
    Some(if result.frame.holds_text() {
        Bytes(data).observation(&outline, place)
    } else {
        result.value.of(data).to_vec()
    })
}
