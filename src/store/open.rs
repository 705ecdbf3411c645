//! Opening a store: for one writer, which locks the log, or for readers, whose lock on the file prevents changes of its pages.

use super::error::{Result, StoreError, StoreErrorKind};
use super::file::{Access, Backend, BackendFile, FileName, Rights};
use super::header::{Header, MAGIC, facts};
use super::log::{WriteAheadLog, random};
use super::page::{PAGE, Page, PageKind, put_u32};
use super::pager::{Pager, PagerLimits, Way};
use super::pages::{read_page, rights_of};
use super::recovery::{Recovered, holds_commits_after, refuse_damaged};
use super::{KINDS, Store};
use std::sync::Arc;

impl Store {
    /// Opens a store to write to it, or creates one. Commits of a writer that was killed are recovered.
    pub fn open(backend: Box<dyn Backend>) -> Result<Self> {
        Self::open_within(backend, PagerLimits::default())
    }

    /// [`Store::open`] with other limits of memory and log.
    pub fn open_within(backend: Box<dyn Backend>, limits: PagerLimits) -> Result<Self> {
        let backend: Arc<dyn Backend> = backend.into();
        // First, so that no log is created beside a file that is no store.
        if let Some(file) = opened(&*backend, FileName::Store, Access::Write)? {
            first_page(&*file)?;
        }
        let log = locked_log(&*backend)?;
        let recovered = WriteAheadLog::recover(log)?;
        let holds_commits = match &recovered {
            Ok(recovered) => recovered.header.is_some(),
            Err(log) => holds_commits_after(&**log, 0)?,
        };
        let file = match opened(&*backend, FileName::Store, Access::Write)? {
            Some(file) => file,
            None if holds_commits => {
                return Err(of_log("it holds commits of a store that is gone"));
            }
            None => create(&*backend)?,
        };
        let (page, facts) = first_page(&*file)?;
        // Only those who may read the store may read its log.
        let rights = rights_of(&*file)?;
        let (log, header) = match recovered {
            Ok(Recovered { id, mut log, header: Some(header) }) => {
                belongs(id, &log, &header, facts, &page)?;
                copy_rights(log.file(), FileName::Log, rights)?;
                log.renew()?;
                backend.sync_names().map_err(|error| StoreError::io(FileName::Store, "syncing its folder", error))?;
                (log, header)
            }
            Ok(Recovered { log, .. }) => begin(log.into_file(), &page, rights)?,
            Err(log) => {
                refuse_damaged(&*log, facts.1)?;
                begin(log, &page, rights)?
            }
        };
        let mut pager = Pager::new(file, Way::Logged(log), header, limits);
        pager.watch_names(backend.clone());
        if let Some(page) = pager.first_missing()? {
            return Err(StoreError::damaged(page, "the file was shortened: it ends before this page"));
        }
        if pager.way.log().is_some_and(WriteAheadLog::is_old) && !pager.checkpoint()? {
            let what = "its log is of an older version, and cannot be replaced while it is read";
            return Err(StoreError { file: FileName::Log, ..StoreError::new(StoreErrorKind::Reading, what) });
        }
        Ok(Store { backend, pager, is_closed: false, sync_every: None, unsynced: 0, is_held: false })
    }

    /// Opens a store to read its last commit, with or without a writer. Nothing is written, and undamaged records can be read.
    pub fn open_read_only(backend: Box<dyn Backend>) -> Result<Self> {
        let backend: Arc<dyn Backend> = backend.into();
        let file = loop {
            let file = opened(&*backend, FileName::Store, Access::Read)?;
            let file = file.ok_or(StoreError::new(StoreErrorKind::Missing, "there is no such file"))?;
            file.lock_shared().map_err(|error| StoreError::io(FileName::Store, "locking it", error))?;
            // A compaction may have replaced the file meanwhile.
            if backend.is_current(FileName::Store, &*file).map_err(identity_error)? {
                break file;
            }
        };
        let (page, facts) = first_page(&*file)?;
        let log = opened(&*backend, FileName::Log, Access::Read)?;
        let (log, header) = match log.map(WriteAheadLog::recover).transpose()? {
            Some(Ok(Recovered { id, log, header: Some(header) })) => {
                belongs(id, &log, &header, facts, &page)?;
                (Some(log), header)
            }
            Some(Err(log)) => {
                refuse_damaged(&*log, facts.1)?;
                (None, Header::of(&page)?)
            }
            _ => (None, Header::of(&page)?),
        };
        let pager = Pager::new(file, Way::ReadOnly(log), header, PagerLimits::default());
        Ok(Store { backend, pager, is_closed: false, sync_every: None, unsynced: 0, is_held: false })
    }
}

fn of_log(what: &'static str) -> StoreError {
    StoreError { file: FileName::Log, ..StoreError::new(StoreErrorKind::Log, what) }
}

fn identity_error(error: std::io::Error) -> StoreError {
    StoreError::io(FileName::Store, "reading its identity", error)
}

/// Gives a file the permissions of the store.
fn copy_rights(file: &dyn BackendFile, name: FileName, rights: Option<Rights>) -> Result<()> {
    let given = rights.map_or(Ok(()), |rights| file.set_rights(rights));
    given.map_err(|error| StoreError::io(name, "setting the mode and owner of the store", error))
}

fn opened(backend: &dyn Backend, name: FileName, access: Access) -> Result<Option<Box<dyn BackendFile>>> {
    backend.open(name, access).map_err(|error| StoreError::io(name, "opening it", error))
}

/// The log, locked against other writers.
fn locked_log(backend: &dyn Backend) -> Result<Box<dyn BackendFile>> {
    let fault = |error| StoreError::io(FileName::Log, "locking it", error);
    loop {
        let Some(log) = opened(backend, FileName::Log, Access::Create)? else { continue };
        if !log.try_lock().map_err(fault)? {
            return Err(StoreError::new(StoreErrorKind::Locked, "another writer has it open"));
        }
        // The previous writer may have removed it before the lock: then this file has lost its name.
        if backend.is_current(FileName::Log, &*log).map_err(fault)? {
            return Ok(log);
        }
    }
}

/// Page 0 of the file, and its first sector, which is valid even if the page is torn.
fn first_page(file: &dyn BackendFile) -> Result<(Page, (u64, u64))> {
    let length = file.length().map_err(|error| StoreError::io(FileName::Store, "reading its length", error))?;
    if length < 32 {
        return Err(StoreError::new(StoreErrorKind::Foreign, "it is empty, or too short for a store"));
    }
    if length < PAGE as u64 {
        let mut bytes = [0; PAGE];
        file.read_at(&mut bytes, 0).map_err(|error| StoreError::io(FileName::Store, "reading a page", error))?;
        facts(&bytes)?;
        return Err(StoreError::damaged(0, "the file was shortened: it ends in this page"));
    }
    let page = read_page(file, 0)?;
    let facts = facts(page.bytes())?;
    Ok((page, facts))
}

/// Whether the log belongs to this store, and began at or before the state of the file.
fn belongs(id: u64, log: &WriteAheadLog, header: &Header, (own, commits): (u64, u64), page: &Page) -> Result<()> {
    if id == own && header.id == own && (log.base..=header.commits).contains(&commits) {
        return Ok(());
    }
    page.check(0)?;
    Err(of_log("it is not of this state of the store"))
}

/// A store whose log has no commit: the file is complete.
fn begin(log: Box<dyn BackendFile>, page: &Page, rights: Option<Rights>) -> Result<(WriteAheadLog, Header)> {
    let header = Header::of(page)?;
    copy_rights(&*log, FileName::Log, rights)?;
    Ok((WriteAheadLog::start(log, header.id, header.commits)?, header))
}

/// Atomically creates an empty store.
fn create(backend: &dyn Backend) -> Result<Box<dyn BackendFile>> {
    let mut new = create_empty(backend, None)?;
    new.commit()?;
    backend.publish().map_err(|error| StoreError::io(FileName::New, "renaming it", error))?;
    opened(backend, FileName::Store, Access::Write)?
        .ok_or(StoreError::new(StoreErrorKind::Missing, "it was removed at once"))
}

/// Writes an empty store to `FileName::New`: one bucket, and its directory. The permissions are set before anything is written;
/// without them, only the owner can access it.
pub(crate) fn create_empty(backend: &dyn Backend, rights: Option<Rights>) -> Result<Pager> {
    if let Some(left) = opened(backend, FileName::New, Access::Write)? {
        let mut head = [0; 32];
        let count = left.read_at(&mut head, 0).map_err(|error| StoreError::io(FileName::New, "reading it", error))?;
        if count > 0 && head[16..] != *MAGIC && head[16..] != [0; 16] {
            let what = "it is no store, but has the name of one that is being made";
            return Err(StoreError { file: FileName::New, ..StoreError::new(StoreErrorKind::Foreign, what) });
        }
        // It may have been opened while its mode was wider.
        backend.remove(FileName::New).map_err(|error| StoreError::io(FileName::New, "removing it", error))?;
    }
    let Some(file) = opened(backend, FileName::New, Access::Create)? else {
        return Err(StoreError::new(StoreErrorKind::Missing, "a new file could not be made"));
    };
    copy_rights(&*file, FileName::New, rights)?;
    let header = Header {
        id: random(),
        commits: 0,
        pages: 3,
        free: (0, 0),
        level: 0,
        split: 0,
        directory: (1, 1),
        overflow: 0,
        bucket_bytes: 0,
        splits: 0,
        text: (0, 0),
        masked_before: 1,
        last: [0; KINDS],
    };
    let mut pager = Pager::new(file, Way::Direct, header, PagerLimits::default());
    let mut directory = Page::new(PageKind::Directory);
    put_u32(directory.content_mut(), 0, 2);
    directory.set_count(1);
    directory.set_used(4);
    pager.write(1, directory);
    pager.write(2, Page::new(PageKind::Bucket));
    Ok(pager)
}
