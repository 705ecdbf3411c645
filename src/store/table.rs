//! The linear hash table: which bucket a record belongs to, the pages of a bucket, and how buckets split.
//!
//! With `2^level + split` buckets, the buckets before `split` were split in this round, and the last `split` ones are their other
//! halves. When the load exceeds 0.8, the bucket at `split` is split: about half of its records move to a new bucket at the
//! end. So the table grows by one bucket at a time, and at most one bucket is rewritten.
//!
//! Records are hashed by groups of consecutive ids. Ids have no gaps, so buckets fill evenly, and records that were appended
//! together are stored together.

use super::error::{Result, StoreError};
use super::page::{Page, PageKind, ROOM, put_u32, u32_at};
use super::pager::Pager;
use super::record::{Cell, RecordKind, cells};
use std::ops::Range;

/// Consecutive ids in the same bucket.
const GROUP: u64 = 8;
/// The load above which a bucket is split.
const FULL: f64 = 0.8;
/// Entries of a directory page.
const ENTRIES: u64 = (ROOM / 4) as u64;
/// More pages than any bucket has: a longer chain is a cycle.
const MAX_CHAIN_PAGES: usize = 1_024;

/// The bucket of a record.
pub fn bucket_of(id: u64, level: u32, split: u32) -> u32 {
    let group = id / GROUP;
    let bucket = (group & ((2 << level) - 1)) as u32;
    if bucket < (1 << level) + split { bucket } else { bucket & ((1 << level) - 1) }
}

// The directory

/// The first page of a bucket.
pub(crate) fn page_of(pager: &mut Pager, bucket: u32) -> Result<u32> {
    let (mut number, height) = pager.header.directory;
    for level in (0..height).rev() {
        let page = pager.read(number, &[PageKind::Directory])?;
        let index = (u64::from(bucket) / ENTRIES.pow(level) % ENTRIES) as usize;
        if index >= page.count() {
            return Err(StoreError::damaged(number, "it lacks the entry of a bucket"));
        }
        number = u32_at(page.content(), 4 * index);
    }
    Ok(number)
}

/// Adds the first page of the next bucket.
fn add_to_directory(pager: &mut Pager, bucket: u32, first: u32) -> Result<()> {
    let (top, height) = pager.header.directory;
    if u64::from(bucket) >= ENTRIES.pow(height) {
        let number = pager.allocate()?;
        let mut page = Page::new(PageKind::Directory);
        set_entry(&mut page, 0, top);
        pager.write(number, page);
        pager.header.directory = (number, height + 1);
    }
    let (mut number, height) = pager.header.directory;
    for level in (0..height).rev() {
        let mut page = pager.read(number, &[PageKind::Directory])?;
        let index = (u64::from(bucket) / ENTRIES.pow(level) % ENTRIES) as usize;
        let mut below = u32_at(page.content(), 4 * index);
        if level == 0 || index >= page.count() {
            below = first;
            if level > 0 {
                below = pager.allocate()?;
                pager.write(below, Page::new(PageKind::Directory));
            }
            set_entry(&mut page, index, below);
            pager.write(number, page);
        }
        number = below;
    }
    Ok(())
}

fn set_entry(page: &mut Page, index: usize, number: u32) {
    put_u32(page.content_mut(), 4 * index, number);
    page.set_count(index + 1);
    page.set_used(4 * (index + 1));
}

// Buckets

/// The pages of a bucket.
pub(crate) fn chain(pager: &mut Pager, bucket: u32) -> Result<Vec<(u32, Page)>> {
    let mut number = page_of(pager, bucket)?;
    let mut links = vec![];
    let mut kind = PageKind::Bucket;
    while links.len() < MAX_CHAIN_PAGES {
        let page = pager.read(number, &[kind])?;
        let next = page.next();
        links.push((number, page));
        if next == 0 {
            return Ok(links);
        }
        (number, kind) = (next, PageKind::Overflow);
    }
    Err(StoreError::damaged(number, "the chain of a bucket is a cycle"))
}

/// The records of a page of a bucket.
pub(crate) fn cells_of(number: u32, page: &Page) -> impl Iterator<Item = Result<(u8, u64, &[u8])>> {
    cells(&page.content()[..page.used()], page.count(), number)
}

fn own_bucket(pager: &Pager, id: u64) -> u32 {
    bucket_of(id, pager.header.level, pager.header.split)
}

/// A record and its location.
pub(crate) struct FoundRecord {
    /// The number of its page.
    pub number: u32,
    page: Page,
    place: Range<usize>,
}

impl FoundRecord {
    pub(crate) fn cell(&self) -> Result<Cell<'_>> {
        Cell::of(&self.page.content()[self.place.clone()], self.number)
    }
}

pub(crate) fn find(pager: &mut Pager, kind: RecordKind, id: u64) -> Result<Option<FoundRecord>> {
    let bucket = own_bucket(pager, id);
    let mut number = page_of(pager, bucket)?;
    let mut page = pager.read(number, &[PageKind::Bucket])?;
    for _ in 0..MAX_CHAIN_PAGES {
        let mut start = 0;
        let mut place = None;
        for cell in cells_of(number, &page) {
            let (its_kind, its_id, bytes) = cell?;
            let end = start + bytes.len();
            if its_id == id && its_kind == kind as u8 {
                place = Some(start..end);
                break;
            }
            start = end;
        }
        if let Some(place) = place {
            return Ok(Some(FoundRecord { number, page, place }));
        }
        number = page.next();
        if number == 0 {
            return Ok(None);
        }
        page = pager.read(number, &[PageKind::Overflow])?;
    }
    Err(StoreError::damaged(number, "the chain of a bucket is a cycle"))
}

/// Adds a new record, and splits a bucket if the table becomes too full.
pub(crate) fn insert(pager: &mut Pager, cell: &Cell) -> Result<()> {
    let bytes = cell.bytes();
    let bucket = own_bucket(pager, cell.id);
    let links = chain(pager, bucket)?;
    pager.header.bucket_bytes += bytes.len() as u64;
    place(pager, links, &bytes)?;
    if pager.header.load() > FULL && pager.header.level < 30 { split(pager) } else { Ok(()) }
}

/// Puts a record into the first page with room, or into a new one.
fn place(pager: &mut Pager, mut links: Vec<(u32, Page)>, bytes: &[u8]) -> Result<()> {
    if let Some((number, page)) = links.iter_mut().find(|(_, page)| page.used() + bytes.len() <= ROOM) {
        add(page, bytes);
        pager.write(*number, page.clone());
        return Ok(());
    }
    let mut page = Page::new(PageKind::Overflow);
    add(&mut page, bytes);
    let number = pager.allocate()?;
    pager.write(number, page);
    pager.header.overflow += 1;
    if let Some((before, mut last)) = links.pop() {
        last.set_next(number);
        pager.write(before, last);
    }
    Ok(())
}

fn add(page: &mut Page, bytes: &[u8]) {
    let used = page.used();
    page.content_mut()[used..used + bytes.len()].copy_from_slice(bytes);
    page.set_used(used + bytes.len());
    page.set_count(page.count() + 1);
}

/// Replaces the record of the same kind and id in this page.
pub(crate) fn replace(pager: &mut Pager, number: u32, cell: &Cell) -> Result<()> {
    let mut page = without(pager, number, cell.kind, cell.id)?;
    let bytes = cell.bytes();
    pager.header.bucket_bytes += bytes.len() as u64;
    if page.used() + bytes.len() <= ROOM {
        add(&mut page, &bytes);
        pager.write(number, page);
        return Ok(());
    }
    pager.write(number, page);
    let bucket = own_bucket(pager, cell.id);
    let links = chain(pager, bucket)?;
    place(pager, links, &bytes)
}

/// Removes the record of this kind and id in this page. Buckets are not merged; later records fill them.
pub(crate) fn remove(pager: &mut Pager, number: u32, kind: RecordKind, id: u64) -> Result<()> {
    let page = without(pager, number, kind, id)?;
    pager.write(number, page);
    Ok(())
}

/// A page without a record.
fn without(pager: &mut Pager, number: u32, kind: RecordKind, id: u64) -> Result<Page> {
    let old = pager.read(number, &[PageKind::Bucket, PageKind::Overflow])?;
    let mut page = empty_copy(&old);
    let mut removed = 0;
    for other in cells_of(number, &old) {
        let (its_kind, its_id, other) = other?;
        if its_kind == kind as u8 && its_id == id { removed += other.len() } else { add(&mut page, other) }
    }
    pager.header.bucket_bytes = pager.header.bucket_bytes.saturating_sub(removed as u64);
    Ok(page)
}

/// The page without its records, in the same chain.
fn empty_copy(page: &Page) -> Page {
    let mut empty = Page::new(page.kind().unwrap_or(PageKind::Overflow));
    empty.set_next(page.next());
    empty
}

fn split(pager: &mut Pager) -> Result<()> {
    let (old, new) = (pager.header.split, pager.header.buckets());
    let links = chain(pager, old)?;
    pager.header.split += 1;
    if pager.header.split == 1 << pager.header.level {
        pager.header.level += 1;
        pager.header.split = 0;
    }
    let (mut stay, mut go) = (vec![], vec![]);
    for (number, page) in &links {
        for cell in cells_of(*number, page) {
            let (_, id, bytes) = cell?;
            let bucket = own_bucket(pager, id);
            if bucket == old {
                stay.push(bytes);
            } else if bucket == new {
                go.push(bytes);
            } else {
                return Err(StoreError::damaged(*number, "a record is in the wrong bucket"));
            }
        }
    }
    let mut numbers: Vec<u32> = links.iter().map(|(number, _)| *number).rev().collect();
    pager.header.overflow = pager.header.overflow.saturating_sub(numbers.len() as u32 - 1);
    write_chain(pager, &stay, &mut numbers)?;
    let first = match numbers.pop() {
        Some(number) => number,
        None => pager.allocate()?,
    };
    numbers.push(first);
    write_chain(pager, &go, &mut numbers)?;
    for number in numbers {
        pager.free(number);
    }
    add_to_directory(pager, new, first)?;
    pager.header.splits += 1;
    Ok(())
}

/// Writes the records of a bucket to the pages in `numbers`, last first, and then to new ones.
fn write_chain(pager: &mut Pager, records: &[&[u8]], numbers: &mut Vec<u32>) -> Result<()> {
    let mut written = vec![Page::new(PageKind::Bucket)];
    for bytes in records {
        if written.last().is_some_and(|page| page.used() + bytes.len() > ROOM) {
            written.push(Page::new(PageKind::Overflow));
        }
        if let Some(page) = written.last_mut() {
            add(page, bytes);
        }
    }
    pager.header.overflow += written.len() as u32 - 1;
    let mut next = 0;
    let mut chosen = vec![];
    for _ in &written {
        chosen.push(match numbers.pop() {
            Some(number) => number,
            None => pager.allocate()?,
        });
    }
    for (page, number) in written.iter_mut().zip(chosen).rev() {
        page.set_next(next);
        pager.write(number, page.clone());
        next = number;
    }
    Ok(())
}
