//! Texts outside of buckets. Each is in a chain of pages, and begins in the page in which the previous one ended, so that short
//! texts waste no space.
//!
//! A page counts the texts with a part in it, and is freed with the last of them.

use super::error::{Result, StoreError, StoreErrorKind};
use super::page::{Page, PageKind, ROOM};
use super::pager::Pager;
use super::record::Reference;

/// Appends a text after the last one.
pub(crate) fn write(pager: &mut Pager, text: &[u8]) -> Result<Reference> {
    let length =
        u32::try_from(text.len()).map_err(|_| StoreError::new(StoreErrorKind::TooLong, "a text has over 4 GiB"))?;
    let sum = crc32fast::hash(text);
    if text.is_empty() {
        return Ok(Reference { page: 0, offset: 0, length, sum });
    }
    let (mut number, mut page) = end(pager)?;
    let reference = Reference { page: number, offset: page.used() as u16, length, sum };
    let mut rest = text;
    loop {
        let used = page.used();
        let (part, after) = rest.split_at(rest.len().min(ROOM - used));
        page.content_mut()[used..used + part.len()].copy_from_slice(part);
        page.set_used(used + part.len());
        page.set_count(page.count() + 1);
        rest = after;
        if rest.is_empty() {
            pager.write(number, page);
            pager.header.text.0 = number;
            return Ok(reference);
        }
        let next = new_page(pager)?;
        page.set_next(next);
        pager.write(number, page);
        (number, page) = (next, Page::new(PageKind::Text));
    }
}

/// The page to which texts are added, with room in it.
fn end(pager: &mut Pager) -> Result<(u32, Page)> {
    let number = pager.header.text.0;
    if number != 0 {
        let page = pager.read(number, &[PageKind::Text])?;
        if page.used() < ROOM {
            return Ok((number, page));
        }
    }
    Ok((new_page(pager)?, Page::new(PageKind::Text)))
}

fn new_page(pager: &mut Pager) -> Result<u32> {
    let number = pager.allocate()?;
    pager.header.text.1 += 1;
    Ok(number)
}

/// Calls `see` with each page of a text and the range of its part in the content.
pub(crate) fn walk(
    pager: &mut Pager,
    reference: Reference,
    mut see: impl FnMut(&mut Pager, u32, Page, std::ops::Range<usize>) -> Result<()>,
) -> Result<()> {
    let (mut number, mut start) = (reference.page, usize::from(reference.offset));
    let mut left = reference.length as usize;
    if left as u64 > u64::from(pager.header.pages) * ROOM as u64 {
        return Err(StoreError::damaged(number, "a text that begins in it is longer than the file"));
    }
    while left > 0 {
        let page = pager.read(number, &[PageKind::Text])?;
        // Each page has a part, so even a cycle of pages ends with the text.
        if start >= page.used() {
            return Err(StoreError::damaged(number, "a text continues in it where it has none"));
        }
        let part = start..page.used().min(start + left);
        let next = page.next();
        left -= part.len();
        see(pager, number, page, part)?;
        (number, start) = (next, 0);
    }
    Ok(())
}

pub(crate) fn read(pager: &mut Pager, reference: Reference) -> Result<Vec<u8>> {
    let mut text = vec![];
    walk(pager, reference, |_, _, page, part| {
        if text.is_empty() {
            text.reserve_exact(reference.length as usize); // walk has validated it against the size of the file
        }
        text.extend_from_slice(&page.content()[part]);
        Ok(())
    })?;
    if crc32fast::hash(&text) != reference.sum {
        return Err(StoreError::damaged(reference.page, "the text that begins in it has a wrong checksum"));
    }
    Ok(text)
}

pub(crate) fn free(pager: &mut Pager, reference: Reference) -> Result<()> {
    walk(pager, reference, |pager, number, mut page, _| {
        let left = page.count().saturating_sub(1);
        if left > 0 {
            page.set_count(left);
        } else if number == pager.header.text.0 {
            page = Page::new(PageKind::Text);
        } else {
            pager.header.text.1 = pager.header.text.1.saturating_sub(1);
            pager.free(number);
            return Ok(());
        }
        pager.write(number, page);
        Ok(())
    })
}
