//! Pages by number, from memory, the log or the file; with atomic operations.
//!
//! Changed pages stay in memory until the commit, which ends each operation but a step of a long one, or until there are too
//! many, when they are spilled to the log. An operation that fails is rolled back.

use super::cache::PageCache;
use super::error::{Result, StoreError, StoreErrorKind};
use super::file::{Backend, BackendFile, Rights};
use super::header::Header;
use super::log::WriteAheadLog;
use super::page::{PAGE, Page, PageKind};
use super::pages::{failed, read_page, rights_of};
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

/// Limits of memory and log.
#[derive(Debug, Clone, Copy)]
pub struct PagerLimits {
    pub changed: usize,
    /// Cached pages in each of two generations.
    pub cached: usize,
    /// Bytes of log after which a sync is followed by a checkpoint; a page counts once between two syncs.
    pub log: u64,
    /// Bytes of log after which there is a sync in any case.
    pub unsynced: u64,
}

impl Default for PagerLimits {
    /// 2 MiB, twice 4 MiB, and about 1,000 and 8,000 whole pages.
    fn default() -> Self {
        PagerLimits { changed: 512, cached: 1_024, log: 4 << 20, unsynced: 32 << 20 }
    }
}

pub(crate) enum Way {
    Logged(WriteAheadLog),
    /// Directly: the file is not the store yet.
    Direct,
    /// Never; commits that are not in the file yet are read from the log.
    ReadOnly(Option<WriteAheadLog>),
}

impl Way {
    /// The log, if there is one.
    pub(crate) fn log(&self) -> Option<&WriteAheadLog> {
        match self {
            Way::Logged(log) | Way::ReadOnly(Some(log)) => Some(log),
            Way::Direct | Way::ReadOnly(None) => None,
        }
    }
}

/// The pages of a store.
pub(crate) struct Pager {
    pub(super) file: Box<dyn BackendFile>,
    pub(super) way: Way,
    /// Page 0 as of the next commit.
    pub header: Header,
    pub(super) committed: Header,
    pub(super) changed: HashMap<u32, Page>,
    pub(super) cache: PageCache,
    /// Pages that the operation changed, for rollback, and whether each was changed before.
    pub(super) undo: HashMap<u32, Option<Page>>,
    pub(super) undo_header: Header,
    /// A write or a sync failed, so the content of the disk is unknown.
    pub(super) is_broken: bool,
    pub(super) limits: PagerLimits,
    /// The files by name, of a writer.
    pub(super) backend: Option<Arc<dyn Backend>>,
    /// Whether the names are on disk.
    pub(super) is_named: bool,
    /// The log length of the next checkpoint.
    pub(super) checkpoint_at: u64,
}

impl Pager {
    /// The pages of a file with this page 0.
    pub(crate) fn new(file: Box<dyn BackendFile>, way: Way, header: Header, limits: PagerLimits) -> Self {
        Pager {
            file,
            way,
            committed: header.clone(),
            undo_header: header.clone(),
            header,
            changed: HashMap::new(),
            cache: PageCache::new(limits.cached),
            undo: HashMap::new(),
            is_broken: false,
            limits,
            backend: None,
            is_named: false,
            checkpoint_at: limits.log,
        }
    }

    // Pages

    /// A page, which must be of one of these kinds.
    pub(crate) fn read(&mut self, number: u32, kinds: &[PageKind]) -> Result<Page> {
        let page = self.any(number)?;
        if number == 0 || !page.kind().is_some_and(|kind| kinds.contains(&kind)) {
            return Err(StoreError::damaged(number, "its kind is not what the page before it requires"));
        }
        Ok(page)
    }

    /// A page of any kind.
    pub(crate) fn any(&mut self, number: u32) -> Result<Page> {
        if let Some(page) = self.changed.get(&number) {
            return Ok(page.clone());
        }
        if let Some(page) = self.cache.get(number) {
            return Ok(page);
        }
        let page = self.load(number)?;
        self.cache.put(number, page.clone());
        Ok(page)
    }

    fn load(&mut self, number: u32) -> Result<Page> {
        if number >= self.header.pages {
            return Err(StoreError::damaged(number, "it is past the last page"));
        }
        let logged = self.way.log().map_or(Ok(None), |log| log.read(number))?;
        let page = if let Some(page) = logged { page } else { read_page(&*self.file, number)? };
        page.check(number)?;
        if page.next() >= self.header.pages {
            return Err(StoreError::damaged(number, "the next page that it names is past the last"));
        }
        Ok(page)
    }

    pub(crate) fn write(&mut self, number: u32, page: Page) {
        let before = self.changed.insert(number, page);
        self.undo.entry(number).or_insert(before);
    }

    pub(crate) fn allocate(&mut self) -> Result<u32> {
        let (first, count) = self.header.free;
        if first != 0 {
            let page = self.read(first, &[PageKind::Free])?;
            let left = count.checked_sub(1).ok_or(StoreError::damaged(0, "it counts too few free pages"))?;
            self.header.free = (page.next(), left);
            return Ok(first);
        }
        let number = self.header.pages;
        let pages = number.checked_add(1);
        self.header.pages =
            pages.ok_or(StoreError::new(StoreErrorKind::TooLong, "the store has 4,294,967,295 pages"))?;
        Ok(number)
    }

    pub(crate) fn free(&mut self, number: u32) {
        let mut page = Page::new(PageKind::Free);
        page.set_next(self.header.free.0);
        self.write(number, page);
        self.header.free = (number, self.header.free.1 + 1);
    }

    // Operations

    pub(crate) fn operate<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.begin()?;
        let done = work(self);
        if done.is_err() {
            self.take_back();
        }
        done
    }

    /// Runs an operation, commits it, and with `syncs` waits until it is on disk. If it cannot be committed, it is rolled back,
    /// unless the content of the log is unknown.
    pub(crate) fn operate_and_commit<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T>,
        syncs: bool,
    ) -> Result<T> {
        let done = self.operate(work)?;
        if let Err(error) = if syncs { self.sync() } else { self.commit() } {
            if !self.is_broken {
                self.take_back();
            }
            return Err(error);
        }
        Ok(done)
    }

    fn begin(&mut self) -> Result<()> {
        self.writable()?;
        if self.changed.len() >= self.limits.changed {
            self.spill(self.header.commits + 1)?;
        }
        self.undo.clear();
        self.undo_header.clone_from(&self.header);
        Ok(())
    }

    fn take_back(&mut self) {
        for (number, before) in mem::take(&mut self.undo) {
            match before {
                Some(page) => drop(self.changed.insert(number, page)),
                None => drop(self.changed.remove(&number)),
            }
        }
        self.header.clone_from(&self.undo_header);
    }

    /// Whether it can be written to.
    pub(crate) fn writable(&self) -> Result<()> {
        if self.is_broken {
            return Err(StoreError::new(
                StoreErrorKind::Broken,
                "a write or a sync failed, so this handle cannot say what is on disk",
            ));
        }
        match self.way {
            Way::ReadOnly(_) => Err(StoreError::new(StoreErrorKind::ReadOnly, "it was opened for reading")),
            Way::Logged(_) | Way::Direct => Ok(()),
        }
    }

    /// Whether there are changes since the last commit.
    pub(crate) fn is_changed(&self) -> bool {
        let is_spilled = matches!(&self.way, Way::Logged(log) if log.is_pending());
        is_spilled || !self.changed.is_empty() || self.header != self.committed
    }

    /// Whether an earlier failure prevents writing.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// How long the file is.
    pub(crate) fn file_length(&self) -> Result<u64> {
        self.file.length().map_err(|error| failed("reading its length", error))
    }

    /// The first page that is neither in the file nor in the log, if any.
    pub(crate) fn first_missing(&self) -> Result<Option<u32>> {
        let there = (self.file_length()? / PAGE as u64).min(u64::from(self.header.pages)) as u32;
        Ok((there..self.header.pages).find(|page| !self.way.log().is_some_and(|log| log.holds(*page))))
    }

    /// Syncs the names of the files before the first commit, and checks them at each commit.
    pub(crate) fn watch_names(&mut self, backend: Arc<dyn Backend>) {
        self.backend = Some(backend);
    }

    /// Owner and permissions of the file.
    pub(crate) fn rights(&self) -> Result<Option<Rights>> {
        rights_of(&*self.file)
    }

    /// Marks the content of the disk as unknown.
    pub(crate) fn set_broken(&mut self) {
        self.is_broken = true;
    }

    pub(crate) fn forget(&mut self) {
        self.cache = PageCache::new(self.limits.cached);
    }

    /// The number of pages in file and log, independent of page 0.
    pub(crate) fn most_pages(&self) -> Result<u64> {
        let logged = self.way.log().map_or(0, WriteAheadLog::frames);
        Ok(self.file_length()? / PAGE as u64 + (logged + self.changed.len()) as u64)
    }

    /// Switches to a compacted file that has the name now.
    pub(crate) fn replace(&mut self, other: Pager) -> Result<()> {
        self.file = other.file;
        self.header = other.header;
        self.committed.clone_from(&self.header);
        self.cache = PageCache::new(self.limits.cached);
        if let Way::Logged(log) = &mut self.way {
            let begun = log.restart(self.header.id, self.header.commits);
            self.is_broken = begun.is_err();
            begun?;
        }
        Ok(())
    }

    pub(crate) fn release(&self) {
        let _ = self.file.unlock();
        if let Way::Logged(log) = &self.way {
            log.unlock();
        }
    }

    /// Takes an exclusive lock on the file, if no reader has it open.
    pub(crate) fn try_lock(&self) -> Result<bool> {
        self.file.try_lock().map_err(|error| failed("locking it", error))
    }

    pub(crate) fn unlock(&self) -> Result<()> {
        self.file.unlock().map_err(|error| failed("unlocking it", error))
    }
}
