//! Pages in the file of the store.

use super::cache::PageCache;
use super::error::{Result, StoreError};
use super::file::{BackendFile, FileName, Rights};
use super::log::WriteAheadLog;
use super::page::{PAGE, Page};

/// Bytes per write of a checkpoint.
const MAX_WRITE_BYTES: usize = 64 * PAGE;

/// Writes pages to the file.
pub(crate) fn write_pages(file: &dyn BackendFile, pages: &[(u32, &Page)]) -> Result<()> {
    pages.iter().try_for_each(|(number, page)| write_page(file, *number, page))
}

/// Writes the pages of a log, and syncs them. Right after a commit, so that cached pages equal those in the log.
pub(crate) fn fold_into(file: &dyn BackendFile, log: &WriteAheadLog, cache: &PageCache) -> Result<()> {
    // Consecutive pages are written together.
    let mut run = vec![];
    let mut first = 0;
    for number in log.pages() {
        let cached = cache.peek(number);
        let Some(page) = cached.map_or_else(|| log.read(number), |page| Ok(Some(page)))? else { continue };
        page.check(number)?;
        if run.len() >= MAX_WRITE_BYTES || place(number) != place(first) + run.len() as u64 {
            write_run(file, first, &run)?;
            run.clear();
            first = number;
        }
        run.extend_from_slice(page.bytes());
    }
    write_run(file, first, &run)?;
    file.sync().map_err(|error| failed("syncing it", error))
}

fn place(number: u32) -> u64 {
    u64::from(number) * PAGE as u64
}

/// A page of the file, not validated.
pub(crate) fn read_page(file: &dyn BackendFile, number: u32) -> Result<Page> {
    let mut bytes = [0; PAGE];
    let count = file.read_at(&mut bytes, place(number));
    let count = count.map_err(|error| StoreError { page: Some(number), ..failed("reading a page", error) })?;
    if count < PAGE {
        return Err(StoreError::damaged(number, "the file ends before or in it"));
    }
    Ok(Page::raw(bytes))
}

/// Writes a page to the file.
pub(crate) fn write_page(file: &dyn BackendFile, number: u32, page: &Page) -> Result<()> {
    write_run(file, number, page.bytes())
}

fn write_run(file: &dyn BackendFile, first: u32, bytes: &[u8]) -> Result<()> {
    let done = file.write_at(bytes, place(first));
    done.map_err(|error| StoreError { page: Some(first), ..failed("writing a page", error) })
}

/// Owner and permissions of the store.
pub(crate) fn rights_of(file: &dyn BackendFile) -> Result<Option<Rights>> {
    file.rights().map_err(|error| failed("reading its mode and owner", error))
}

/// An error of the operating system.
pub(crate) fn failed(what: &'static str, error: std::io::Error) -> StoreError {
    StoreError::io(FileName::Store, what, error)
}
