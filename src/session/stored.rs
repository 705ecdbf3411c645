//! Records of messages and summaries in a store, which may be damaged.

use super::snapshot::Compaction;
use super::{Failure, Result, scanned};
use crate::source::{Bytes, Source};
use crate::store::{self, Record, RecordKind, Store, StoreError, StoreErrorKind};
use std::ops::Range;

/// The last of these compactions of at most so many messages, with its number. Ones that cannot be read are passed over, as
/// they are when the session is saved.
pub(super) fn last_compaction(
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

pub(super) fn malformed_message() -> StoreError {
    StoreError::new(StoreErrorKind::Damaged, "a message in it is malformed")
}

pub(super) fn mismatched_compaction() -> Failure {
    StoreError::new(StoreErrorKind::Damaged, "its last summary does not match its messages").into()
}

/// A message as it was appended, not validated.
pub(super) fn stored_bytes(store: &mut Store, message: usize) -> store::Result<Vec<u8>> {
    let record = store.get(RecordKind::Message, message as u64 + 1, true)?;
    Ok(record.and_then(|record| record.last).unwrap_or_default())
}

/// Visits some messages in order. A damaged store may refer to one long text many times, so the bytes are limited.
pub(super) fn for_each_stored(
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

pub(super) fn too_long() -> StoreError {
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
