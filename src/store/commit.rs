//! Commits of a pager and its checkpoints: changed pages go to the log, and from there into the file.

use super::error::{Result, StoreError, StoreErrorKind};
use super::file::FileName;
use super::log::WriteAheadLog;
use super::page::Page;
use super::pager::{Pager, Way};
use super::pages::{failed, fold_into, write_page, write_pages};
use std::collections::HashMap;

impl Pager {
    /// Spills the changed pages for the commit of this number.
    pub(super) fn spill(&mut self, commit: u64) -> Result<()> {
        let pages = pages_to_write(&mut self.changed);
        match &mut self.way {
            Way::Logged(log) => log.spill(commit, pages.into_iter())?,
            Way::Direct => write_pages(&*self.file, &pages)?,
            Way::ReadOnly(_) => {}
        }
        self.keep_changed();
        Ok(())
    }

    /// Commits all changes: on return they outlive this process, and readers see them.
    pub(crate) fn commit(&mut self) -> Result<()> {
        self.writable()?;
        if !self.is_changed() {
            return Ok(());
        }
        self.write_commit()?;
        if self.way.log().is_some_and(|log| log.is_sync_due(self.limits.unsynced)) {
            // The commit is written; if its sync fails, the next operation says so.
            let _ = self.sync_log();
        }
        Ok(())
    }

    /// Commits all changes, and waits until they are on disk.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.writable()?;
        self.check_names()?;
        if self.is_changed() {
            self.write_commit()?;
        }
        self.sync_log()
    }

    fn write_commit(&mut self) -> Result<()> {
        let mut header = self.header.clone();
        header.commits += 1;
        let page = header.page();
        if let Some(backend) = self.backend.as_ref().filter(|_| !self.is_named) {
            backend.sync_names().map_err(|error| failed("syncing its folder", error))?;
            self.is_named = true;
        }
        let pages = pages_to_write(&mut self.changed);
        match &mut self.way {
            Way::Logged(log) => {
                if let Err(error) = log.commit(header.commits, pages.into_iter().chain([(0, &page)])) {
                    // If it is there nevertheless, a reader may have seen it.
                    self.is_broken = log.is_followed().unwrap_or(true);
                    return Err(error);
                }
            }
            Way::Direct => {
                write_pages(&*self.file, &pages)?;
                write_page(&*self.file, 0, &page)?;
                self.file.sync().map_err(|error| failed("syncing it", error))?;
            }
            Way::ReadOnly(_) => {}
        }
        self.keep_changed();
        self.header = header;
        self.committed.clone_from(&self.header);
        self.undo.clear();
        self.undo_header.clone_from(&self.header);
        Ok(())
    }

    /// Changed pages that were written are only cached.
    fn keep_changed(&mut self) {
        for (number, page) in self.changed.drain() {
            self.cache.put(number, page);
        }
    }

    /// Waits until all commits are on disk, and makes a checkpoint if one is due.
    fn sync_log(&mut self) -> Result<()> {
        let Way::Logged(log) = &mut self.way else { return Ok(()) };
        if log.is_unsynced() {
            // After a failure, the content of the disk is unknown.
            self.is_broken = true;
            log.sync()?;
            self.is_broken = false;
        }
        if log.weight() >= self.checkpoint_at {
            // The commits are on disk; a failed checkpoint is retried later.
            let _ = self.checkpoint();
            let weight = self.way.log().map_or(0, WriteAheadLog::weight);
            self.checkpoint_at = if weight < self.limits.log { 0 } else { weight } + self.limits.log;
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

    pub(crate) fn log_length(&self) -> u64 {
        self.way.log().map_or(0, WriteAheadLog::length)
    }

    /// Writes the commits, which are on disk, into the file, and restarts the log. False if readers prevent it.
    pub(crate) fn checkpoint(&mut self) -> Result<bool> {
        self.fold(true)
    }

    /// Ends with a checkpoint; the log will be removed, and is not restarted.
    pub(crate) fn finish(&mut self) -> Result<bool> {
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
