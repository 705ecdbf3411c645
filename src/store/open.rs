//! Opening a store: for one writer, which holds a lock on the log, or for readers, whose lock on the file keeps the writer
//! from changing pages under them.

use super::error::{Kind, Result, StoreError};
use super::file::{Access, Backend, BackendFile, Name, Rights};
use super::header::{Header, MAGIC, facts};
use super::log::{Log, Recovered, random};
use super::page::{PAGE, Page, PageKind, put_u32};
use super::pager::{Limits, Pager, Way};
use super::pages::{read_page, rights_of};
use super::{KINDS, Store};
use std::sync::Arc;

impl Store {
    /// Opens a store to write to it; makes one where there is none. What a writer that ended too early had committed is there.
    pub fn open(backend: Box<dyn Backend>) -> Result<Self> {
        Self::open_within(backend, Limits::default())
    }

    /// The same, with other limits of memory and log.
    pub fn open_within(backend: Box<dyn Backend>, limits: Limits) -> Result<Self> {
        let backend: Arc<dyn Backend> = backend.into();
        // Before anything is put beside a file that is none of ours.
        if let Some(file) = opened(&*backend, Name::Store, Access::Write)? {
            first_page(&*file)?;
        }
        let log = locked_log(&*backend)?;
        let recovered = Log::recover(log)?;
        let holds_commits = matches!(&recovered, Ok(Recovered { header: Some(_), .. }));
        let file = match opened(&*backend, Name::Store, Access::Write)? {
            Some(file) => file,
            None if holds_commits => {
                return Err(of_log("it holds commits of a store that is gone"));
            }
            None => create(&*backend)?,
        };
        let (page, facts) = first_page(&*file)?;
        // What is written to the log can be read by those alone who may read the store.
        let rights = rights_of(&*file)?;
        let (log, header) = match recovered {
            Ok(Recovered { id, mut log, header: Some(header) }) => {
                belongs(id, &log, &header, facts)?;
                give(log.file(), Name::Log, rights)?;
                log.renew()?;
                backend.sync_names().map_err(|error| StoreError::io(Name::Store, "syncing its folder", error))?;
                (log, header)
            }
            Ok(Recovered { log, .. }) => begin(log.into_file(), &page, rights)?,
            Err(file) => begin(file, &page, rights)?,
        };
        let mut pager = Pager::new(file, Way::Logged(log), header, limits);
        pager.watch_names(backend.clone());
        if let Some(page) = pager.first_missing()? {
            return Err(StoreError::damaged(page, "the file was shortened: it ends before this page"));
        }
        Ok(Store { backend, pager, is_closed: false, sync_every: None, unsynced: 0 })
    }

    /// Opens a store to read what was committed last, beside a writer or without one. Nothing is written, and what is
    /// damaged does not keep the rest from being read.
    pub fn open_read_only(backend: Box<dyn Backend>) -> Result<Self> {
        let backend: Arc<dyn Backend> = backend.into();
        let file = loop {
            let file = opened(&*backend, Name::Store, Access::Read)?;
            let file = file.ok_or(StoreError::new(Kind::Missing, "there is no such file"))?;
            file.lock_shared().map_err(|error| StoreError::io(Name::Store, "locking it", error))?;
            // A writer that compacts may have put another file in its place meanwhile.
            if backend.is_current(Name::Store, &*file).map_err(asking)? {
                break file;
            }
        };
        let (page, facts) = first_page(&*file)?;
        let recovered = match opened(&*backend, Name::Log, Access::Read)? {
            Some(log) => Log::recover(log)?.ok(),
            None => None,
        };
        let (log, header) = match recovered {
            Some(Recovered { id, log, header: Some(header) }) => {
                belongs(id, &log, &header, facts)?;
                (Some(log), header)
            }
            _ => (None, Header::of(&page)?),
        };
        let pager = Pager::new(file, Way::ReadOnly(log), header, Limits::default());
        Ok(Store { backend, pager, is_closed: false, sync_every: None, unsynced: 0 })
    }
}

fn of_log(what: &'static str) -> StoreError {
    StoreError { file: Name::Log, ..StoreError::new(Kind::Log, what) }
}

fn asking(error: std::io::Error) -> StoreError {
    StoreError::io(Name::Store, "asking which file it is", error)
}

/// Gives a file beside the store the rights of that.
fn give(file: &dyn BackendFile, name: Name, rights: Option<Rights>) -> Result<()> {
    let given = rights.map_or(Ok(()), |rights| file.set_rights(rights));
    given.map_err(|error| StoreError::io(name, "giving it the mode and owner of the store", error))
}

fn opened(backend: &dyn Backend, name: Name, access: Access) -> Result<Option<Box<dyn BackendFile>>> {
    backend.open(name, access).map_err(|error| StoreError::io(name, "opening it", error))
}

/// The log, locked against other writers.
fn locked_log(backend: &dyn Backend) -> Result<Box<dyn BackendFile>> {
    let fault = |error| StoreError::io(Name::Log, "locking it", error);
    loop {
        let Some(log) = opened(backend, Name::Log, Access::Create)? else { continue };
        if !log.try_lock().map_err(fault)? {
            return Err(StoreError::new(Kind::Locked, "another writer has it open"));
        }
        // The one who had it before may have removed it between the two steps: then this one is nobody's.
        if backend.is_current(Name::Log, &*log).map_err(fault)? {
            return Ok(log);
        }
    }
}

/// Page 0 as it lies in the file, and what can be said of it however torn it is.
fn first_page(file: &dyn BackendFile) -> Result<(Page, (u64, u64))> {
    let length = file.length().map_err(|error| StoreError::io(Name::Store, "asking for its length", error))?;
    if length < 32 {
        return Err(StoreError::new(Kind::Foreign, "it is empty, or too short for a store"));
    }
    if length < PAGE as u64 {
        let mut bytes = [0; PAGE];
        file.read_at(&mut bytes, 0).map_err(|error| StoreError::io(Name::Store, "reading a page", error))?;
        facts(&bytes)?;
        return Err(StoreError::damaged(0, "the file was shortened: it ends in this page"));
    }
    let page = read_page(file, 0)?;
    let facts = facts(page.bytes())?;
    Ok((page, facts))
}

/// Whether the log is one of this store, begun at a state that the file has or had passed when it was last closed.
fn belongs(id: u64, log: &Log, header: &Header, (own, commits): (u64, u64)) -> Result<()> {
    let is_of_it = id == own && header.id == own && (log.base..=header.commits).contains(&commits);
    if is_of_it { Ok(()) } else { Err(of_log("it is not of this state of the store")) }
}

/// A store whose log holds no commit: the file is whole by itself.
fn begin(log: Box<dyn BackendFile>, page: &Page, rights: Option<Rights>) -> Result<(Log, Header)> {
    let header = Header::of(page)?;
    give(&*log, Name::Log, rights)?;
    Ok((Log::start(log, header.id, header.commits)?, header))
}

/// Makes a store with nothing in it, whole or not at all.
fn create(backend: &dyn Backend) -> Result<Box<dyn BackendFile>> {
    let mut new = create_empty(backend, None)?;
    new.commit()?;
    backend.publish().map_err(|error| StoreError::io(Name::New, "renaming it", error))?;
    opened(backend, Name::Store, Access::Write)?.ok_or(StoreError::new(Kind::Missing, "it was removed at once"))
}

/// The pages of an empty store in `Name::New`: one bucket, and a directory that names it. With rights it gets these
/// before anything is written; without, it is its owner's alone.
pub fn create_empty(backend: &dyn Backend, rights: Option<Rights>) -> Result<Pager> {
    if let Some(left) = opened(backend, Name::New, Access::Write)? {
        let mut head = [0; 32];
        let count = left.read_at(&mut head, 0).map_err(|error| StoreError::io(Name::New, "reading it", error))?;
        if count > 0 && head[16..] != *MAGIC && head[16..] != [0; 16] {
            let what = "it is no store, but has the name of one that is being made";
            return Err(StoreError { file: Name::New, ..StoreError::new(Kind::Foreign, what) });
        }
        // Somebody may have it open since its mode was another one.
        backend.remove(Name::New).map_err(|error| StoreError::io(Name::New, "removing it", error))?;
    }
    let Some(file) = opened(backend, Name::New, Access::Create)? else {
        return Err(StoreError::new(Kind::Missing, "a new file could not be made"));
    };
    give(&*file, Name::New, rights)?;
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
    let mut pager = Pager::new(file, Way::Direct, header, Limits::default());
    let mut directory = Page::new(PageKind::Directory);
    put_u32(directory.content_mut(), 0, 2);
    directory.set_count(1);
    directory.set_used(4);
    pager.write(1, directory);
    pager.write(2, Page::new(PageKind::Bucket));
    Ok(pager)
}
