//! The turn store: the records of a session on disk, in a linear hash table of pages of 4 KiB.
//!
//! ```text
//! Store ──▶ table: which bucket, and its pages ──▶ pager: pages by number ──▶ log: commits    ──▶ file: real ones, or
//!       └─▶ text: fields in text pages        ──┘                        └──▶ the store file  ──┘ those of a test
//! ```
//!
//! Each change is committed atomically, by a write to the log, and is on disk when [`Store::sync`] returns. docs/store-format.md
//! has the format, docs/store.md the guarantees.

mod cache;
mod changes;
mod commit;
pub mod error;
pub mod file;
pub(crate) mod header;
pub mod log;
pub mod memory;
mod open;
pub mod page;
pub mod pager;
mod pages;
pub(crate) mod record;
mod recovery;
pub mod table;
pub(crate) mod text;
mod verify;

pub(crate) use changes::Changes;
use changes::{in_place, stored};
pub use error::{Result, StoreError, StoreErrorKind};
use file::{Backend, FileName};
use pager::Pager;
pub use record::{KINDS, RecordKind};
use std::sync::Arc;
pub(crate) use verify::{Report, StoreFault};

/// An open store, for one writer or any number of readers.
pub struct Store {
    backend: Arc<dyn Backend>,
    pager: Pager,
    is_closed: bool,
    /// Sync after this many appended records; and how many were appended since the last sync.
    sync_every: Option<u64>,
    unsynced: u64,
    /// Whether changes are committed by the next sync only.
    is_held: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The fields but the last.
    pub fields: Vec<Vec<u8>>,
    /// The last field; `None` if it was not read.
    pub last: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stats {
    pub pages: u32,
    pub free_pages: u32,
    pub text_pages: u32,
    pub buckets: u32,
    /// Pages of buckets beyond their first.
    pub overflow_pages: u32,
    /// Bytes of records in buckets as a share of the buckets' first pages.
    pub load: f64,
    pub splits: u64,
    pub commits: u64,
    pub file_bytes: u64,
    pub log_bytes: u64,
    /// The last id of each kind, which is the number of its records.
    pub records: [u64; KINDS],
    /// Turns with a smaller number are masked.
    pub masked_before: u64,
}

impl Store {
    // Writing

    /// Appends a record and returns its id. On return it outlives this process, and with `syncs` the machine; on errors nothing
    /// is added.
    pub fn append(&mut self, kind: RecordKind, fields: &[&[u8]], last: &[u8], syncs: bool) -> Result<u64> {
        self.count(syncs, |changes| changes.append(kind, fields, last))
    }

    /// Makes a change that counts as an appended record.
    fn count<T>(&mut self, syncs: bool, work: impl FnOnce(&mut Changes) -> Result<T>) -> Result<T> {
        let syncs = syncs || self.sync_every.is_some_and(|most| self.unsynced + 1 >= most);
        let work = |pager: &mut Pager| work(&mut Changes::of(pager));
        let is_held = self.is_held && !syncs;
        let done = if is_held { self.pager.operate(work) } else { self.pager.operate_and_commit(work, syncs) }?;
        self.unsynced = if syncs { 0 } else { self.unsynced + 1 };
        self.is_held &= !syncs;
        Ok(done)
    }

    /// Makes all changes up to the next sync one commit.
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// Syncs after this many appended records or changes; None: only by [`Store::sync`].
    pub fn sync_every(&mut self, records: Option<u64>) {
        self.sync_every = records;
    }

    /// Replaces the fields of a record; false if there is no such record.
    pub fn replace(&mut self, kind: RecordKind, id: u64, fields: &[&[u8]], last: &[u8]) -> Result<bool> {
        self.change(|changes| changes.replace(kind, id, fields, last))
    }

    pub fn change<T>(&mut self, work: impl FnOnce(&mut Changes) -> Result<T>) -> Result<T> {
        self.count(false, work)
    }

    /// Masks the turns before this one: their last field is moved to text pages. Turns are never unmasked, so a smaller number
    /// changes nothing. Returns how many turns were masked.
    pub fn mask_before(&mut self, turn: u64) -> Result<u64> {
        self.pager.writable()?;
        let first = self.pager.header.masked_before;
        let end = turn.min(self.last(RecordKind::Turn) + 1);
        for id in first..end {
            self.pager.operate(|pager| {
                if let Some(found) = table::find(pager, RecordKind::Turn, id)?
                    && let Some((fields, last)) = in_place(&found.cell()?, found.number)?
                {
                    let cell = stored(pager, RecordKind::Turn, id, &fields, last, true)?;
                    table::replace(pager, found.number, &cell)?;
                }
                pager.header.masked_before = id + 1;
                Ok(())
            })?;
        }
        if !self.is_held {
            self.pager.commit()?;
        }
        Ok(end.saturating_sub(first))
    }

    /// Waits until all changes are on disk. A renamed or deleted store or log is an error even without changes.
    pub fn sync(&mut self) -> Result<()> {
        self.pager.sync()?;
        (self.unsynced, self.is_held) = (0, false);
        Ok(())
    }

    // Reading

    /// The last id of a kind, which is the number of its records.
    pub fn last(&self, kind: RecordKind) -> u64 {
        self.pager.header.last[kind.index()]
    }

    /// Turns before this one are masked.
    pub fn masked_before(&self) -> u64 {
        self.pager.header.masked_before
    }

    /// A record. Without its last field only pages of its bucket are read, unless the other fields are long.
    pub fn get(&mut self, kind: RecordKind, id: u64, wants_last: bool) -> Result<Option<Record>> {
        changes::get(&mut self.pager, kind, id, wants_last)
    }

    pub fn stats(&self) -> Result<Stats> {
        let header = &self.pager.header;
        Ok(Stats {
            pages: header.pages,
            free_pages: header.free.1,
            text_pages: header.text.1,
            buckets: header.buckets(),
            overflow_pages: header.overflow,
            load: header.load(),
            splits: header.splits,
            commits: header.commits,
            file_bytes: self.pager.file_length()?,
            log_bytes: self.pager.log_length(),
            records: header.last,
            masked_before: header.masked_before,
        })
    }

    /// An upper bound of the bytes of all its records, even if it is damaged: each text is stored once.
    pub(crate) fn max_bytes(&self) -> Result<u64> {
        Ok(self.pager.most_pages()? * page::PAGE as u64)
    }

    /// Reads everything and reports the faults.
    pub fn verify(&mut self) -> Result<Report> {
        verify::verify(&mut self.pager)
    }

    /// Whether it can be written to after earlier failures. If not, it can be read, and reopened as of its last commit.
    pub fn is_usable(&self) -> bool {
        !self.pager.is_broken()
    }

    // Maintenance

    /// Writes the commits in the log into the file; false if a reader prevents it.
    pub fn checkpoint(&mut self) -> Result<bool> {
        self.pager.sync()?;
        self.pager.checkpoint()
    }

    /// Writes all records, in order, into a new file without free pages, which replaces this one.
    pub fn compact(&mut self) -> Result<()> {
        self.pager.sync()?;
        if !self.pager.checkpoint()? || !self.pager.try_lock()? {
            return Err(StoreError::new(StoreErrorKind::Reading, "it cannot be compacted while it is read"));
        }
        // From here on no reader can open it; the lock is released with the old file.
        let done = self.compacted();
        if done.is_err() {
            let _ = self.backend.remove(FileName::New);
            let _ = self.pager.unlock();
        }
        done
    }

    fn compacted(&mut self) -> Result<()> {
        let mut new = open::create_empty(&*self.backend, self.pager.rights()?)?;
        new.header.commits = self.pager.header.commits;
        for kind in RecordKind::ALL {
            for id in 1..=self.last(kind) {
                let Some(record) = self.get(kind, id, true)? else { continue };
                let fields: Vec<&[u8]> = record.fields.iter().map(Vec::as_slice).collect();
                let is_masked = kind == RecordKind::Turn && id < self.pager.header.masked_before;
                new.operate(|new| {
                    let cell = stored(new, kind, id, &fields, &record.last.unwrap_or_default(), is_masked)?;
                    table::insert(new, &cell)?;
                    new.header.last[kind.index()] = id;
                    Ok(())
                })?;
            }
        }
        new.header.masked_before = self.pager.header.masked_before;
        new.commit()?;
        // Until this is done, it is unknown which of the two complete files has the name.
        let published = self.backend.publish().and_then(|()| self.backend.sync_names());
        if let Err(error) = published {
            self.pager.set_broken();
            return Err(StoreError::io(FileName::New, "renaming it", error));
        }
        self.pager.replace(new)
    }

    /// Commits, and leaves one file with everything. On errors the store stays open, and can be closed again. While there are
    /// readers the log remains, and the next writer recovers it.
    pub fn close(&mut self) -> Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let mut is_whole = false;
        if !self.is_read_only() {
            self.pager.sync()?;
            is_whole = self.pager.finish()?;
        }
        // From here on the file is complete, or its log remains for the next writer.
        self.is_closed = true;
        let removed = if is_whole { self.backend.remove(FileName::Log) } else { Ok(()) };
        self.pager.release();
        removed.map_err(|error| StoreError::io(FileName::Log, "removing it", error))
    }

    /// Closes without a sync.
    pub(crate) fn abandon(self) {
        self.pager.release();
    }

    /// Whether it was opened read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.pager.writable().is_err_and(|error| error.kind == StoreErrorKind::ReadOnly)
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }
}
