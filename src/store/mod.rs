//! The turn store: the records of a session on disk, in a linear hash table of pages of 4 KiB.
//!
//! ```text
//! Store ──▶ table: which bucket, and its pages ──▶ pager: pages by number ──▶ log: commits    ──▶ file: real ones, or
//!       └─▶ text: what lies in no bucket      ──┘                        └──▶ the store file  ──┘ those of a test
//! ```
//!
//! What is changed is committed whole, by way of the log, and a commit is on disk before [`Store::sync`] returns. The
//! format is described in docs/store-format.md, and what is promised in docs/store.md.

mod cache;
mod changes;
pub mod error;
pub mod file;
pub mod header;
pub mod log;
pub mod memory;
mod open;
pub mod page;
pub mod pager;
mod pages;
pub mod record;
pub mod table;
pub mod text;
mod verify;

pub use changes::Changes;
use changes::{in_place, stored};
pub use error::{Kind, Result, StoreError};
use file::{Backend, Name};
use pager::Pager;
pub use record::{KINDS, RecordKind};
use std::sync::Arc;
pub use verify::{Fault, Report};

/// A store that is open, by one writer or by any number of readers.
pub struct Store {
    backend: Arc<dyn Backend>,
    pager: Pager,
    is_closed: bool,
    /// It syncs after so many appended records; and how many it has appended since it did.
    sync_every: Option<u64>,
    unsynced: u64,
}

/// A record as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its fields but the last.
    pub fields: Vec<Vec<u8>>,
    /// The last field; `None` where it was not asked for.
    pub last: Option<Vec<u8>>,
}

/// How large a store is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stats {
    /// Pages of 4,096 bytes.
    pub pages: u32,
    /// Pages that are in use by nothing.
    pub free_pages: u32,
    /// Pages of texts that lie in no bucket.
    pub text_pages: u32,
    /// Buckets, and the pages that they have beyond their first.
    pub buckets: u32,
    /// See `buckets`.
    pub overflow_pages: u32,
    /// Bytes of the records in buckets, as a share of their first pages.
    pub load: f64,
    /// How often a bucket was split.
    pub splits: u64,
    /// How many commits there were.
    pub commits: u64,
    /// Bytes of the file, and of the log beside it.
    pub file_bytes: u64,
    /// See `file_bytes`.
    pub log_bytes: u64,
    /// The last id of each kind, which is how many records there are of it.
    pub records: [u64; KINDS],
    /// Turns with a smaller number are masked.
    pub masked_before: u64,
}

impl Store {
    // Writing

    /// Appends a record of this kind and returns its id. It is durable after the next [`Store::sync`], or at once with
    /// `syncs`; where that fails, nothing was added.
    pub fn append(&mut self, kind: RecordKind, fields: &[&[u8]], last: &[u8], syncs: bool) -> Result<u64> {
        self.count(syncs, |changes| changes.append(kind, fields, last))
    }

    /// A change that counts for the next sync.
    fn count<T>(&mut self, syncs: bool, work: impl FnOnce(&mut Changes) -> Result<T>) -> Result<T> {
        let work = |pager: &mut Pager| work(&mut Changes::of(pager));
        let syncs = syncs || self.sync_every.is_some_and(|most| self.unsynced + 1 >= most);
        let done = if syncs { self.pager.operate_and_commit(work) } else { self.pager.operate(work) }?;
        self.unsynced = if syncs { 0 } else { self.unsynced + 1 };
        Ok(done)
    }

    /// Sync after so many appended records, or changes, each as one; None leaves it to [`Store::sync`].
    pub fn sync_every(&mut self, records: Option<u64>) {
        self.sync_every = records;
    }

    /// Puts other fields into a record; false where there is no such record.
    pub fn replace(&mut self, kind: RecordKind, id: u64, fields: &[&[u8]], last: &[u8]) -> Result<bool> {
        self.change(|changes| changes.replace(kind, id, fields, last))
    }

    /// Several changes together: all of them, or where one fails, none.
    pub fn change<T>(&mut self, work: impl FnOnce(&mut Changes) -> Result<T>) -> Result<T> {
        self.count(false, work)
    }

    /// Masks the turns before this one: their last field is moved out of their bucket, where it is not out already.
    /// What is masked stays so: a smaller number changes nothing. How many turns were masked by it.
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
        Ok(end.saturating_sub(first))
    }

    /// Waits until all changes are on disk. A failure before that can be retried. That the store or its log was renamed or
    /// deleted is an error even if nothing was changed.
    pub fn sync(&mut self) -> Result<()> {
        self.pager.commit()?;
        self.unsynced = 0;
        Ok(())
    }

    // Reading

    /// The id of the last record of a kind, which is how many there are.
    #[must_use]
    pub fn last(&self, kind: RecordKind) -> u64 {
        self.pager.header.last[kind.index()]
    }

    /// Turns before this one are masked.
    #[must_use]
    pub fn masked_before(&self) -> u64 {
        self.pager.header.masked_before
    }

    /// A record; without its last field no page is read but those of its bucket, unless its other fields are long.
    pub fn get(&mut self, kind: RecordKind, id: u64, wants_last: bool) -> Result<Option<Record>> {
        changes::get(&mut self.pager, kind, id, wants_last)
    }

    /// How large it is.
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

    /// More bytes than all its records have together, whatever they say: each text is there once.
    pub fn most_bytes(&self) -> Result<u64> {
        Ok(self.pager.most_pages()? * page::PAGE as u64)
    }

    /// Reads everything and reports the faults.
    pub fn verify(&mut self) -> Result<Report> {
        verify::verify(&mut self.pager)
    }

    /// Whether something was changed that is not on disk yet.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.pager.is_changed()
    }

    /// Whether it can still be written to after the failures so far. If not, it can be read; after reopening, it has what
    /// was committed.
    #[must_use]
    pub fn can_go_on(&self) -> bool {
        !self.pager.is_broken()
    }

    // The whole

    /// Writes what was committed from the log into the file; false where a reader keeps it from that.
    pub fn checkpoint(&mut self) -> Result<bool> {
        self.pager.commit()?;
        self.pager.checkpoint()
    }

    /// Writes all records into a new file without free pages, in their order, which then takes the place of this one.
    pub fn compact(&mut self) -> Result<()> {
        self.pager.commit()?;
        if !self.pager.checkpoint()? || !self.pager.try_lock()? {
            return Err(StoreError::new(Kind::Reading, "it cannot be compacted while it is read"));
        }
        // From here to the end no reader can come in; the lock goes with the old file.
        let done = self.compacted();
        if done.is_err() {
            let _ = self.backend.remove(Name::New);
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
        // Which of the two files has the name is known only when this is done; both are whole.
        let published = self.backend.publish().and_then(|()| self.backend.sync_names());
        if let Err(error) = published {
            self.pager.set_broken();
            return Err(StoreError::io(Name::New, "renaming it", error));
        }
        self.pager.replace(new)
    }

    /// Commits, and leaves one regular file that holds everything. Where that fails, the store stays open and can be closed
    /// again; while there are readers, the log remains, and the next writer recovers it.
    pub fn close(&mut self) -> Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let mut is_whole = false;
        if !self.is_read_only() {
            self.pager.commit()?;
            is_whole = self.pager.finish()?;
        }
        // From here on the file is whole, or its log is there for the next writer, whether or not it can be removed.
        self.is_closed = true;
        let removed = if is_whole { self.backend.remove(Name::Log) } else { Ok(()) };
        self.pager.release();
        removed.map_err(|error| StoreError::io(Name::Log, "removing it", error))
    }

    /// Closes without committing.
    pub fn abandon(self) {
        self.pager.release();
    }

    /// Whether it was opened for reading alone.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.pager.writable().is_err_and(|error| error.kind == Kind::ReadOnly)
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }
}
