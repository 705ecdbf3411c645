//! Pages in the file of the store.

use super::cache::Cache;
use super::error::{Result, StoreError};
use super::file::{BackendFile, Name, Rights};
use super::log::Log;
use super::page::{PAGE, Page};

/// Bytes that a checkpoint writes at once.
const MOST_AT_ONCE: usize = 64 * PAGE;

/// Writes pages where they belong.
pub fn write_pages(file: &dyn BackendFile, pages: &[(u32, &Page)]) -> Result<()> {
    pages.iter().try_for_each(|(number, page)| write_page(file, *number, page))
}

/// Writes the pages of a log, and syncs them. Right after a commit, when what is in memory of a page is what the log has of it.
pub fn fold_into(file: &dyn BackendFile, log: &Log, cache: &Cache) -> Result<()> {
    // Pages that follow each other are written together.
    let mut run = vec![];
    let mut first = 0;
    for number in log.pages() {
        let cached = cache.peek(number);
        let Some(page) = cached.map_or_else(|| log.read(number), |page| Ok(Some(page)))? else { continue };
        page.check(number)?;
        if run.len() >= MOST_AT_ONCE || place(number) != place(first) + run.len() as u64 {
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

/// A page of the file; nothing in it is checked.
pub fn read_page(file: &dyn BackendFile, number: u32) -> Result<Page> {
    let mut bytes = [0; PAGE];
    let count = file.read_at(&mut bytes, place(number));
    let count = count.map_err(|error| StoreError { page: Some(number), ..failed("reading a page", error) })?;
    if count < PAGE {
        return Err(StoreError::damaged(number, "the file ends before or in it"));
    }
    Ok(Page::raw(bytes))
}

/// Writes a page where it belongs.
pub fn write_page(file: &dyn BackendFile, number: u32, page: &Page) -> Result<()> {
    write_run(file, number, page.bytes())
}

fn write_run(file: &dyn BackendFile, first: u32, bytes: &[u8]) -> Result<()> {
    let done = file.write_at(bytes, place(first));
    done.map_err(|error| StoreError { page: Some(first), ..failed("writing a page", error) })
}

/// Who may do what with the store.
pub fn rights_of(file: &dyn BackendFile) -> Result<Option<Rights>> {
    file.rights().map_err(|error| failed("asking for its mode and owner", error))
}

/// The operating system refused what was being done with the store.
pub fn failed(what: &'static str, error: std::io::Error) -> StoreError {
    StoreError::io(Name::Store, what, error)
}
