//! Pages by number: from memory, from the log or from the file; changed together, and committed together.
//!
//! A page that an operation changes stays in memory until the commit, or until there are too many, when they are written to
//! the log without a commit. An operation that fails is taken back, so that the store is as it was before it.

use super::cache::Cache;
use super::error::{Kind, Result, StoreError};
use super::file::{Backend, BackendFile, Name, Rights};
use super::header::Header;
use super::log::Log;
use super::page::{PAGE, Page, PageKind};
use super::pages::{failed, fold_into, read_page, rights_of, write_page, write_pages};
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

/// How much is kept in memory and in the log.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Pages that wait in memory for a commit.
    pub changed: usize,
    /// Pages that were read, kept in each of two generations.
    pub cached: usize,
    /// Bytes of log after which a checkpoint is due.
    pub log: u64,
}

impl Default for Limits {
    /// 2 MiB, twice 4 MiB, and about 1,000 whole pages.
    fn default() -> Self {
        Limits { changed: 512, cached: 1_024, log: 4 << 20 }
    }
}

/// How changes come to the file.
pub enum Way {
    /// By way of a log.
    Logged(Log),
    /// At once: the file is not the store yet.
    Direct,
    /// Not at all. What a writer has committed but not yet written into the file is read from its log.
    ReadOnly(Option<Log>),
}

/// The pages of a store.
pub struct Pager {
    file: Box<dyn BackendFile>,
    way: Way,
    /// What page 0 will say with the next commit.
    pub header: Header,
    committed: Header,
    changed: HashMap<u32, Page>,
    cache: Cache,
    /// What the operation changed, as it was before, and whether it was changed then.
    undo: HashMap<u32, Option<Page>>,
    undo_header: Header,
    /// A sync failed, so what is on disk is not known.
    is_broken: bool,
    limits: Limits,
    /// The files by name, of a writer.
    backend: Option<Arc<dyn Backend>>,
    /// Whether the names are on disk.
    is_named: bool,
    /// The length of the log at which the next checkpoint is due.
    checkpoint_at: u64,
}

impl Pager {
    /// The pages of a file, of which page 0 says this.
    #[must_use]
    pub fn new(file: Box<dyn BackendFile>, way: Way, header: Header, limits: Limits) -> Self {
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
            return Err(StoreError::damaged(number, "it is of another kind than the page that led to it says"));
        }
        Ok(page)
    }

    /// A page of whatever kind.
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

    /// The number of a page that is in use by nothing, from now on by the caller.
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
        self.header.pages = pages.ok_or(StoreError::new(Kind::TooLong, "the store has 4,294,967,295 pages"))?;
        Ok(number)
    }

    /// Gives a page back.
    pub fn free(&mut self, number: u32) {
        let mut page = Page::new(PageKind::Free);
        page.set_next(self.header.free.0);
        self.write(number, page);
        self.header.free = (number, self.header.free.1 + 1);
    }

    // Operations

    /// Does something that changes pages, whole or not at all.
    pub fn operate<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.begin()?;
        let done = work(self);
        if done.is_err() {
            self.take_back();
        }
        done
    }

    /// The same, and a commit: where that fails the operation is taken back too, unless what is on disk is not known.
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
            return Err(StoreError::new(Kind::Broken, "a sync failed, so this handle cannot say what is on disk"));
        }
        match self.way {
            Way::ReadOnly(_) => Err(StoreError::new(Kind::ReadOnly, "it was opened for reading")),
            Way::Logged(_) | Way::Direct => Ok(()),
        }
    }

    /// Whether something was changed since the last commit.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        let is_spilled = matches!(&self.way, Way::Logged(log) if log.is_pending());
        is_spilled || !self.changed.is_empty() || self.header != self.committed
    }

    /// Whether an earlier failure keeps it from being written to.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    // Commits

    /// Writes what was changed for the commit of this number, so that it can be forgotten.
    fn spill(&mut self, commit: u64) -> Result<()> {
        let pages = sealed(&mut self.changed);
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

    /// Makes all changes last, together. On return they are on disk.
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
                // After a failure from here on, nobody knows what is on disk.
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
            // The commit is on disk whatever becomes of the checkpoint; one that fails is tried again later.
            let _ = self.checkpoint();
            self.checkpoint_at =
                if self.log_length() < self.limits.log { 0 } else { self.log_length() } + self.limits.log;
        }
        Ok(())
    }

    /// Whether the files still have their names: what is written to one that has lost it is gone with this process.
    fn check_names(&self) -> Result<()> {
        let (Some(backend), Way::Logged(log)) = (&self.backend, &self.way) else { return Ok(()) };
        for (name, file) in [(Name::Store, &*self.file), (Name::Log, log.file())] {
            let asked = backend.is_current(name, file);
            if !asked.map_err(|error| StoreError::io(name, "asking which file it is", error))? {
                let what = "its name leads to another file, or to none";
                return Err(StoreError { file: name, ..StoreError::new(Kind::Gone, what) });
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

    /// Writes what was committed into the file, and restarts the log. False where readers prevent it.
    pub fn checkpoint(&mut self) -> Result<bool> {
        self.fold(true)
    }

    /// The same at the end, when the log will be removed: it is left as it is.
    pub fn finish(&mut self) -> Result<bool> {
        self.fold(false)
    }

    fn fold(&mut self, restarts: bool) -> Result<bool> {
        self.writable()?;
        let Way::Logged(log) = &mut self.way else { return Ok(true) };
        if log.is_empty() {
            return Ok(true);
        }
        // A reader has the file locked, and the pages under it must stay as they are.
        if !self.file.try_lock().map_err(|error| failed("locking it", error))? {
            return Ok(false);
        }
        let done = fold_into(&*self.file, log, &self.cache).and_then(|()| {
            if !restarts {
                return Ok(());
            }
            let is_long = log.length() > 4 * self.limits.log;
            // While the lock is held: a reader that comes in between would read frames of two logs.
            let begun = log.restart(self.header.id, self.committed.commits);
            self.is_broken = begun.is_err();
            if begun.is_ok() && is_long {
                // Only now, when nothing in it counts any more: it may be done and said to have failed.
                let _ = log.shorten();
            }
            begun
        });
        self.file.unlock().map_err(|error| failed("unlocking it", error))?;
        done.map(|()| true)
    }

    /// How long the file is.
    pub fn file_length(&self) -> Result<u64> {
        self.file.length().map_err(|error| failed("asking for its length", error))
    }

    /// The first page that is neither in the file nor in the log, where there is one.
    pub fn first_missing(&self) -> Result<Option<u32>> {
        let there = (self.file_length()? / PAGE as u64).min(u64::from(self.header.pages)) as u32;
        let log = match &self.way {
            Way::Logged(log) | Way::ReadOnly(Some(log)) => Some(log),
            Way::Direct | Way::ReadOnly(None) => None,
        };
        Ok((there..self.header.pages).find(|page| !log.is_some_and(|log| log.holds(*page))))
    }

    /// Sees to it that the names of the files are on disk before anything is committed, and are still theirs at each commit.
    pub fn watch_names(&mut self, backend: Arc<dyn Backend>) {
        self.backend = Some(backend);
    }

    /// Who may do what with the file.
    pub fn rights(&self) -> Result<Option<Rights>> {
        rights_of(&*self.file)
    }

    /// Says that what is on disk is not known.
    pub fn set_broken(&mut self) {
        self.is_broken = true;
    }

    /// Forgets pages that were read, so that they are read again.
    pub fn forget(&mut self) {
        self.cache = Cache::new(self.limits.cached);
    }

    /// How many pages there can be in the file and the log, whatever page 0 says.
    pub fn most_pages(&self) -> Result<u64> {
        let logged = match &self.way {
            Way::Logged(log) | Way::ReadOnly(Some(log)) => log.frames(),
            Way::Direct | Way::ReadOnly(None) => 0,
        };
        Ok(self.file_length()? / PAGE as u64 + (logged + self.changed.len()) as u64)
    }

    /// Takes another file for its own: a compacted one, that has taken the name of the old one.
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

    /// Gives up all locks.
    pub fn release(&self) {
        let _ = self.file.unlock();
        if let Way::Logged(log) = &self.way {
            log.unlock();
        }
    }

    /// Locks the file, if no reader has it open.
    pub fn try_lock(&self) -> Result<bool> {
        self.file.try_lock().map_err(|error| failed("locking it", error))
    }

    /// Gives the lock up.
    pub fn unlock(&self) -> Result<()> {
        self.file.unlock().map_err(|error| failed("unlocking it", error))
    }
}

/// Pages as they are written, in their order.
fn sealed(changed: &mut HashMap<u32, Page>) -> Vec<(u32, &Page)> {
    let mut pages: Vec<(u32, &mut Page)> = changed.iter_mut().map(|(number, page)| (*number, page)).collect();
    pages.sort_unstable_by_key(|(number, _)| *number);
    for (number, page) in &mut pages {
        page.seal(*number);
    }
    pages.into_iter().map(|(number, page)| (number, &*page)).collect()
}
