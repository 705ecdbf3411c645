//! Operations on records, which can be grouped into one change.

use super::error::{Result, StoreError};
use super::pager::Pager;
use super::record::{self, CELL, Cell, IN_PLACE, LAST_IN_PLACE, Part, REFERENCE, Reference};
use super::{Record, RecordKind, table, text};

/// A change of a store. If any part fails, all of it is undone.
pub struct Changes<'a> {
    pager: &'a mut Pager,
}

impl<'a> Changes<'a> {
    pub(super) fn of(pager: &'a mut Pager) -> Self {
        Changes { pager }
    }

    /// The last id of a kind, which is the number of its records.
    pub fn last(&self, kind: RecordKind) -> u64 {
        self.pager.header.last[kind.index()]
    }

    pub fn get(&mut self, kind: RecordKind, id: u64) -> Result<Option<Record>> {
        get(self.pager, kind, id, true)
    }

    /// Appends a record of this kind and returns its id.
    pub fn append(&mut self, kind: RecordKind, fields: &[&[u8]], last: &[u8]) -> Result<u64> {
        let id = self.last(kind) + 1;
        let cell = stored(self.pager, kind, id, fields, last, false)?;
        table::insert(self.pager, &cell)?;
        self.pager.header.last[kind.index()] = id;
        Ok(id)
    }

    /// Replaces the fields of a record; false if there is no such record.
    pub fn replace(&mut self, kind: RecordKind, id: u64, fields: &[&[u8]], last: &[u8]) -> Result<bool> {
        let Some(found) = table::find(self.pager, kind, id)? else { return Ok(false) };
        self.free_all(&found.cell()?)?;
        let is_masked = kind == RecordKind::Turn && id < self.pager.header.masked_before;
        let cell = stored(self.pager, kind, id, fields, last, is_masked)?;
        table::replace(self.pager, found.number, &cell)?;
        Ok(true)
    }

    /// Removes the records of a kind after this one.
    pub fn truncate(&mut self, kind: RecordKind, last: u64) -> Result<()> {
        for id in (last + 1..=self.last(kind)).rev() {
            let Some(found) = table::find(self.pager, kind, id)? else { return Err(missing(self.pager, id)?) };
            self.free_all(&found.cell()?)?;
            table::remove(self.pager, found.number, kind, id)?;
            self.pager.header.last[kind.index()] = id - 1;
        }
        Ok(())
    }

    fn free_all(&mut self, cell: &Cell) -> Result<()> {
        self.free(&cell.fields)?;
        if let Some(reference) = cell.last { text::free(self.pager, reference) } else { Ok(()) }
    }

    fn free(&mut self, part: &Part) -> Result<()> {
        if let Part::Aside(reference) = part { text::free(self.pager, *reference) } else { Ok(()) }
    }
}

/// Reads a record. Without its last field only pages of its bucket are read, unless the other fields are long.
pub(crate) fn get(pager: &mut Pager, kind: RecordKind, id: u64, wants_last: bool) -> Result<Option<Record>> {
    if id == 0 || id > pager.header.last[kind.index()] {
        return Ok(None);
    }
    let Some(found) = table::find(pager, kind, id)? else {
        return Err(missing(pager, id)?);
    };
    let cell = found.cell()?;
    if let Some((fields, last)) = in_place(&cell, found.number)? {
        let fields = fields.into_iter().map(<[u8]>::to_vec).collect();
        return Ok(Some(Record { fields, last: wants_last.then(|| last.to_vec()) }));
    }
    let (fields, page) = match &cell.fields {
        Part::Here(fields) => (fields.clone(), found.number),
        Part::Aside(reference) => (text::read(pager, *reference)?.into(), reference.page),
    };
    let fields = decoded(&fields, page)?.into_iter().map(<[u8]>::to_vec).collect();
    let last = cell.last.filter(|_| wants_last).map(|reference| text::read(pager, reference)).transpose()?;
    Ok(Some(Record { fields, last }))
}

/// The error for a record that is missing.
fn missing(pager: &mut Pager, id: u64) -> Result<StoreError> {
    let page = table::page_of(pager, table::bucket_of(id, pager.header.level, pager.header.split))?;
    Ok(StoreError::damaged(page, "a record is missing from its bucket"))
}

/// The fields but the last, and the last.
type RecordFields<'a> = (Vec<&'a [u8]>, &'a [u8]);

/// Splits off the last field.
pub(crate) fn in_place<'a>(cell: &'a Cell<'a>, page: u32) -> Result<Option<RecordFields<'a>>> {
    if cell.last.is_some() { Ok(None) } else { whole(cell, page).map(Some) }
}

/// The fields of a record without references.
fn whole<'a>(cell: &'a Cell<'a>, page: u32) -> Result<RecordFields<'a>> {
    let Part::Here(fields) = &cell.fields else {
        return Err(StoreError::damaged(page, "a record has no last field"));
    };
    let mut fields = decoded(fields, page)?;
    let last = fields.pop().ok_or(StoreError::damaged(page, "a record has no fields"))?;
    Ok((fields, last))
}

fn decoded(bytes: &[u8], page: u32) -> Result<Vec<&[u8]>> {
    record::decode(bytes).ok_or(StoreError::damaged(page, "the fields of a record are malformed"))
}

/// The record for a bucket, whose long parts are written to text pages.
pub(crate) fn stored(
    pager: &mut Pager,
    kind: RecordKind,
    id: u64,
    fields: &[&[u8]],
    last: &[u8],
    is_aside: bool,
) -> Result<Cell<'static>> {
    let whole = CELL + 6 + last.len() + fields.iter().map(|field| 4 + field.len()).sum::<usize>();
    if whole <= IN_PLACE && last.len() <= LAST_IN_PLACE && !is_aside {
        let all: Vec<&[u8]> = fields.iter().copied().chain([last]).collect();
        return Ok(Cell { kind, id, fields: Part::Here(record::encode(&all)?.into()), last: None });
    }
    let reference = text::write(pager, last)?;
    with_last_aside(pager, kind, id, fields, reference)
}

fn with_last_aside(
    pager: &mut Pager,
    kind: RecordKind,
    id: u64,
    fields: &[&[u8]],
    last: Reference,
) -> Result<Cell<'static>> {
    let rest = record::encode(fields)?;
    let fields = if CELL + rest.len() + REFERENCE <= IN_PLACE {
        Part::Here(rest.into())
    } else {
        Part::Aside(text::write(pager, &rest)?)
    };
    Ok(Cell { kind, id, fields, last: Some(last) })
}
