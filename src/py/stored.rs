//! Turns that a log has let go, read from the store.

use super::store::PyStore;
use crate::render::{Row, Texts};
use crate::store::{Record, RecordKind, Result};
use pyo3::prelude::*;

/// A settled turn: what a context shows of it was read, and no more.
pub struct StoredTurn {
    pub number: usize,
    pub row: Row,
    fields: Vec<Vec<u8>>,
    observation: Vec<u8>,
}

impl StoredTurn {
    /// Its texts; without its observation, where that is masked.
    pub fn texts(&self) -> Texts<'_> {
        let field = |index: usize| self.fields.get(index).map_or(&b""[..], Vec::as_slice);
        (field(0), field(1), &self.observation)
    }
}

/// The turns of these rows, from this number on.
pub fn turns(store: &Bound<'_, PyStore>, first: usize, rows: &[u8]) -> PyResult<Vec<StoredTurn>> {
    store.get().with(store.py(), |store| {
        let mut turns = vec![];
        for (number, row) in (first..).zip(Row::all(rows)) {
            if let Some(Record { fields, last }) = store.get(RecordKind::Turn, number as u64, row.stays())? {
                turns.push(StoredTurn { number, row, fields, observation: last.unwrap_or_default() });
            }
        }
        Result::Ok(turns)
    })
}
