//! Page 0: identification, roots and sizes.

use super::error::{Result, StoreError, StoreErrorKind};
use super::page::{HEAD, PAGE, Page, PageKind, ROOM, put_u32, put_u64, u32_at, u64_at};
use super::record::{CELL, KINDS};

/// The first bytes of the content of page 0; a transfer in text mode would change them.
pub(crate) const MAGIC: &[u8; 16] = b"recede store\r\n\x1a\n";
/// The version that is written, and the newest that is read.
pub(crate) const VERSION: u32 = 1;

/// Used bytes of page 0; the rest is zero.
const LENGTH: usize = 152;

/// The content of page 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// A random number, which the log repeats.
    pub id: u64,
    pub commits: u64,
    /// Pages of the file, including this one.
    pub pages: u32,
    /// The first free page, and the number of free pages.
    pub free: (u32, u32),
    /// Buckets are `2^level + split`.
    pub level: u32,
    /// The bucket that will be split next.
    pub split: u32,
    /// The top page of the directory, and its height.
    pub directory: (u32, u32),
    /// Pages that buckets have beyond their first.
    pub overflow: u32,
    /// Bytes of all records in buckets.
    pub bucket_bytes: u64,
    pub splits: u64,
    /// The page to which texts are added, and the number of text pages.
    pub text: (u32, u32),
    /// Turns with a smaller number are masked.
    pub masked_before: u64,
    /// The last id of each kind of record.
    pub last: [u64; KINDS],
}

impl Header {
    pub(crate) fn buckets(&self) -> u32 {
        (1 << self.level) + self.split
    }

    /// Bytes of records as a share of the buckets' first pages.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub(crate) fn load(&self) -> f64 {
        self.bucket_bytes as f64 / (f64::from(self.buckets()) * ROOM as f64)
    }

    pub(crate) fn page(&self) -> Page {
        let mut page = Page::new(PageKind::Header);
        page.set_used(LENGTH - HEAD);
        let content = page.content_mut();
        content[..16].copy_from_slice(MAGIC);
        let mut small = |at: usize, number| put_u32(content, at - HEAD, number);
        small(32, VERSION);
        small(36, PAGE as u32);
        small(56, self.pages);
        small(60, self.free.0);
        small(64, self.free.1);
        small(68, self.level);
        small(72, self.split);
        small(76, self.directory.0);
        small(80, self.directory.1);
        small(84, self.overflow);
        small(104, self.text.0);
        small(108, self.text.1);
        let mut large = |at: usize, number| put_u64(content, at - HEAD, number);
        large(40, self.id);
        large(48, self.commits);
        large(88, self.bucket_bytes);
        large(96, self.splits);
        large(112, self.masked_before);
        for (index, last) in self.last.iter().enumerate() {
            large(120 + 8 * index, *last);
        }
        page.seal(0);
        page
    }

    /// Decodes page 0, and validates what can be validated by itself.
    pub(crate) fn of(page: &Page) -> Result<Self> {
        let bytes = page.bytes();
        facts(bytes)?;
        page.check(0)?;
        let (small, large) = (|at| u32_at(bytes, at), |at| u64_at(bytes, at));
        let header = Header {
            id: large(40),
            commits: large(48),
            pages: small(56),
            free: (small(60), small(64)),
            level: small(68),
            split: small(72),
            directory: (small(76), small(80)),
            overflow: small(84),
            bucket_bytes: large(88),
            splits: large(96),
            text: (small(104), small(108)),
            masked_before: large(112),
            last: std::array::from_fn(|index| large(120 + 8 * index)),
        };
        let pages = u64::from(header.pages);
        let records = header.last.iter().fold(0_u64, |sum, last| sum.saturating_add(*last));
        let used = u64::from(header.overflow) + u64::from(header.free.1) + u64::from(header.text.1);
        let is_sound = page.kind() == Some(PageKind::Header)
            && header.level < 31
            && header.split < 1 << header.level
            && u64::from(header.buckets()) + used < pages
            && (1..=4).contains(&header.directory.1)
            && [header.free.0, header.directory.0, header.text.0].into_iter().all(|page| page < header.pages)
            && header.bucket_bytes <= pages * ROOM as u64
            && records.saturating_mul(CELL as u64) <= header.bucket_bytes
            && (1..=header.last[0].saturating_add(1)).contains(&header.masked_before)
            && header.commits.max(header.splits) < 1 << 63;
        if is_sound { Ok(header) } else { Err(StoreError::damaged(0, "its figures of the file are inconsistent")) }
    }
}

/// The id and the number of commits in the first sector of page 0, which may be torn.
///
/// A torn checkpoint may leave the page half old and half new; the log has it complete. But the bytes of the first sector before
/// the commits are the same in both, so a fault there is not due to tearing.
pub(crate) fn facts(bytes: &[u8; PAGE]) -> Result<(u64, u64)> {
    let mut sound = *bytes;
    sound[16..32].copy_from_slice(MAGIC);
    put_u32(&mut sound, 32, VERSION);
    put_u32(&mut sound, 36, PAGE as u32);
    if sound != *bytes && Page::raw(sound).check(0).is_ok() {
        return Err(StoreError::damaged(0, "its first bytes are invalid"));
    }
    if bytes[16..32] != *MAGIC {
        return Err(StoreError::new(StoreErrorKind::Foreign, "it does not begin with the header of a store"));
    }
    if u32_at(bytes, 32) > VERSION {
        return Err(StoreError::new(StoreErrorKind::Version, "its format is newer than this version of recede"));
    }
    if u32_at(bytes, 32) == 0 || u32_at(bytes, 36) as usize != PAGE {
        return Err(StoreError::damaged(0, "its version or page size is invalid"));
    }
    Ok((u64_at(bytes, 40), u64_at(bytes, 48)))
}
