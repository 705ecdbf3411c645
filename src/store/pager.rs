//! Pages by number, from memory, the log or the file; with atomic operations and commits.
//!
//! Changed pages stay in memory until the commit, or until there are too many, when they are spilled to the log. An operation
//! that fails is rolled back.

use super::cache::Cache;
use super::error::{Result, StoreError, StoreErrorKind};
use super::file::{Backend, BackendFile, FileName, Rights};
use super::header::Header;
use super::log::WriteAheadLog;
use super::page::{PAGE, Page, PageKind};
use super::pages::{failed, fold_into, read_page, rights_of, write_page, write_pages};
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

/// Limits of memory and log.
#[derive(Debug, Clone, Copy)]
pub struct PagerLimits {
    /// Uncommitted pages in memory.
    pub changed: usize,
    /// Cached pages in each of two generations.
    pub cached: usize,
    /// Bytes of log after which a checkpoint is due.
    pub log: u64,
}

impl Default for PagerLimits {
    /// 2 MiB, twice 4 MiB, and about 1,000 whole pages.
    fn default() -> Self {
        PagerLimits { changed: 512, cached: 1_024, log: 4 << 20 }
    }
}

/// How changes are written.
pub enum Way {
    /// Through a log.
    Logged(WriteAheadLog),
    /// Directly: the file is not the store yet.
    Direct,
    /// Not at all; commits that are not in the file yet are read from the log.
    ReadOnly(Option<WriteAheadLog>),
}

/// The pages of a store.
pub struct Pager {
    file: Box<dyn BackendFile>,
    way: Way,
    /// Page 0 as of the next commit.
    pub header: Header,
    committed: Header,
    changed: HashMap<u32, Page>,
    cache: Cache,
    /// For rollback: each page that the operation changed, and whether it was changed before.
    undo: HashMap<u32, Option<Page>>,
    undo_header: Header,
    /// A sync failed, so the content of the disk is unknown.
    is_broken: bool,
    limits: PagerLimits,
    /// The files by name, of a writer.
    backend: Option<Arc<dyn Backend>>,
    /// Whether the names are on disk.
    is_named: bool,
    /// The log length of the next checkpoint.
    checkpoint_at: u64,
}

impl Pager {
    /// The pages of a file with this page 0.
    #[must_use]
    pub fn new(file: Box<dyn BackendFile>, way: Way, header: Header, limits: PagerLimits) -> Self {
        Pager {
            file,
            way,
            committed: header.clone(),
            undo_header: header.clone(),
            header,
            changed: HashMap::new(),
            cache: Cache::new(limits.cached),
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
    pub fn read(&mut self, number: u32, kinds: &[PageKind]) -> Result<Page> {
        let page = self.any(number)?;
        if number == 0 || !page.kind().is_some_and(|kind| kinds.contains(&kind)) {
            return Err(StoreError::damaged(number, "its kind is not what the page before it requires"));
        }
        Ok(page)
    }

    /// A page of any kind.
    pub fn any(&mut self, number: u32) -> Result<Page> {
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
        let page = match &self.way {
            Way::Logged(log) | Way::ReadOnly(Some(log)) => log.read(number)?,
            Way::Direct | Way::ReadOnly(None) => None,
        };
        let page = if let Some(page) = page { page } else { read_page(&*self.file, number)? };
        page.check(number)?;
        if page.next() >= self.header.pages {
            return Err(StoreError::damaged(number, "the next page that it names is past the last"));
        }
        Ok(page)
    }

    /// Changes a page.
    pub fn write(&mut self, number: u32, page: Page) {
        let before = self.changed.insert(number, page);
        self.undo.entry(number).or_insert(before);
    }

    /// Allocates a page.
    pub fn allocate(&mut self) -> Result<u32> {
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

    /// Frees a page.
    pub fn free(&mut self, number: u32) {
        let mut page = Page::new(PageKind::Free);
        page.set_next(self.header.free.0);
        self.write(number, page);
        self.header.free = (number, self.header.free.1 + 1);
    }

    // Operations

    /// Runs an operation atomically.
    pub fn operate<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.begin()?;
        let done = work(self);
        if done.is_err() {
            self.take_back();
        }
        done
    }

    /// Runs an operation and commits it. If the commit fails, the operation is rolled back, unless the content of the disk is
    /// unknown.
    pub fn operate_and_commit<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let done = self.operate(work)?;
        if let Err(error) = self.commit() {
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
    pub fn writable(&self) -> Result<()> {
        if self.is_broken {
            return Err(StoreError::new(
                StoreErrorKind::Broken,
                "a sync failed, so this handle cannot say what is on disk",
            ));
        }
        match self.way {
            Way::ReadOnly(_) => Err(StoreError::new(StoreErrorKind::ReadOnly, "it was opened for reading")),
            Way::Logged(_) | Way::Direct => Ok(()),
        }
    }

    /// Whether there are changes since the last commit.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        let is_spilled = matches!(&self.way, Way::Logged(log) if log.is_pending());
        is_spilled || !self.changed.is_empty() || self.header != self.committed
    }

    /// Whether an earlier failure prevents writing.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    // Commits

    /// Spills the changed pages for the commit of this number.
    fn spill(&mut self, commit: u64) -> Result<()> {
        let pages = pages_to_write(&mut self.changed);
        match &mut self.way {
            Way::Logged(log) => log.spill(commit, pages.into_iter())?,
            Way::Direct => write_pages(&*self.file, &pages)?,
            Way::ReadOnly(_) => {}
        }
        for (number, page) in self.changed.drain() {
            self.cache.put(number, page);
        }
        Ok(())
    }

    /// Commits all changes. On return they are on disk.
    pub fn commit(&mut self) -> Result<()> {
        self.writable()?;
        self.check_names()?;
        if !self.is_changed() {
            return Ok(());
        }
        let mut header = self.header.clone();
        header.commits += 1;
        let page = header.page();
        if let Some(backend) = self.backend.as_ref().filter(|_| !self.is_named) {
            backend.sync_names().map_err(|error| failed("syncing its folder", error))?;
            self.is_named = true;
        }
        self.spill(header.commits)?;
        match &mut self.way {
            Way::Logged(log) => {
                // After a failure from here on, the content of the disk is unknown.
                self.is_broken = true;
                let commit = log.end(header.commits, &page)?;
                log.sync(commit)?;
                self.is_broken = false;
            }
            Way::Direct => {
                write_page(&*self.file, 0, &page)?;
                self.file.sync().map_err(|error| failed("syncing it", error))?;
            }
            Way::ReadOnly(_) => {}
        }
        self.header = header;
        self.committed.clone_from(&self.header);
        self.undo.clear();
        self.undo_header.clone_from(&self.header);
        if self.log_length() >= self.checkpoint_at {
            // The commit is on disk; a failed checkpoint is retried later.
            let _ = self.checkpoint();
            self.checkpoint_at =
                if self.log_length() < self.limits.log { 0 } else { self.log_length() } + self.limits.log;
        }
        Ok(())
    }

    /// Whether the files still have their names; otherwise writes are lost with this process.
    fn check_names(&self) -> Result<()> {
        let (Some(backend), Way::Logged(log)) = (&self.backend, &self.way) else { return Ok(()) };
        for (name, file) in [(FileName::Store, &*self.file), (FileName::Log, log.file())] {
            let asked = backend.is_current(name, file);
            if !asked.map_err(|error| StoreError::io(name, "reading its identity", error))? {
                let what = "its name leads to another file, or to none";
                return Err(StoreError { file: name, ..StoreError::new(StoreErrorKind::Gone, what) });
            }
        }
        Ok(())
    }

    /// Bytes of the log.
    #[must_use]
    pub fn log_length(&self) -> u64 {
        match &self.way {
            Way::Logged(log) | Way::ReadOnly(Some(log)) => log.length(),
            Way::Direct | Way::ReadOnly(None) => 0,
        }
    }

    /// Writes the commits into the file, and restarts the log. False if readers prevent it.
    pub fn checkpoint(&mut self) -> Result<bool> {
        self.fold(true)
    }

    /// The same at the end; the log will be removed, and is not restarted.
    pub fn finish(&mut self) -> Result<bool> {
        self.fold(false)
    }

    fn fold(&mut self, restarts: bool) -> Result<bool> {
        self.writable()?;
        let Way::Logged(log) = &mut self.way else { return Ok(true) };
        if log.is_empty() {
            return Ok(true);
        }
        // A reader has locked the file, whose pages must not change.
        if !self.file.try_lock().map_err(|error| failed("locking it", error))? {
            return Ok(false);
        }
        let done = fold_into(&*self.file, log, &self.cache).and_then(|()| {
            if !restarts {
                return Ok(());
            }
            let is_long = log.length() > 4 * self.limits.log;
            // Under the lock: a reader in between would read frames of two logs.
            let begun = log.restart(self.header.id, self.committed.commits);
            self.is_broken = begun.is_err();
            if begun.is_ok() && is_long {
                // Only now, when the log is not needed any more: a truncation that reports an error may have happened.
                let _ = log.shorten();
            }
            begun
        });
        self.file.unlock().map_err(|error| failed("unlocking it", error))?;
        done.map(|()| true)
    }

    /// How long the file is.
    pub fn file_length(&self) -> Result<u64> {
        self.file.length().map_err(|error| failed("reading its length", error))
    }

    /// The first page that is neither in the file nor in the log, if any.
    pub fn first_missing(&self) -> Result<Option<u32>> {
        let there = (self.file_length()? / PAGE as u64).min(u64::from(self.header.pages)) as u32;
        let log = match &self.way {
            Way::Logged(log) | Way::ReadOnly(Some(log)) => Some(log),
            Way::Direct | Way::ReadOnly(None) => None,
        };
        Ok((there..self.header.pages).find(|page| !log.is_some_and(|log| log.holds(*page))))
    }

    /// Syncs the names of the files before the first commit, and checks them at each commit.
    pub fn watch_names(&mut self, backend: Arc<dyn Backend>) {
        self.backend = Some(backend);
    }

    /// Owner and permissions of the file.
    pub fn rights(&self) -> Result<Option<Rights>> {
        rights_of(&*self.file)
    }

    /// Marks the content of the disk as unknown.
    pub fn set_broken(&mut self) {
        self.is_broken = true;
    }

    /// Clears the cache.
    pub fn forget(&mut self) {
        self.cache = Cache::new(self.limits.cached);
    }

    /// The number of pages in file and log, independent of page 0.
    pub fn most_pages(&self) -> Result<u64> {
        let logged = match &self.way {
            Way::Logged(log) | Way::ReadOnly(Some(log)) => log.frames(),
            Way::Direct | Way::ReadOnly(None) => 0,
        };
        Ok(self.file_length()? / PAGE as u64 + (logged + self.changed.len()) as u64)
    }

    /// Switches to a compacted file that has the name now.
    pub fn replace(&mut self, other: Pager) -> Result<()> {
        self.file = other.file;
        self.header = other.header;
        self.committed.clone_from(&self.header);
        self.cache = Cache::new(self.limits.cached);
        if let Way::Logged(log) = &mut self.way {
            let begun = log.restart(self.header.id, self.header.commits);
            self.is_broken = begun.is_err();
            begun?;
        }
        Ok(())
    }

    /// Releases all locks.
    pub fn release(&self) {
        let _ = self.file.unlock();
        if let Way::Logged(log) = &self.way {
            log.unlock();
        }
    }

    /// Takes an exclusive lock on the file, if no reader has it open.
    pub fn try_lock(&self) -> Result<bool> {
        self.file.try_lock().map_err(|error| failed("locking it", error))
    }

    /// Releases it.
    pub fn unlock(&self) -> Result<()> {
        self.file.unlock().map_err(|error| failed("unlocking it", error))
    }
}

/// Pages to write, in order.
fn pages_to_write(changed: &mut HashMap<u32, Page>) -> Vec<(u32, &Page)> {
    let mut pages: Vec<(u32, &mut Page)> = changed.iter_mut().map(|(number, page)| (*number, page)).collect();
    pages.sort_unstable_by_key(|(number, _)| *number);
    for (number, page) in &mut pages {
        page.seal(*number);
    }
    pages.into_iter().map(|(number, page)| (number, &*page)).collect()
}
