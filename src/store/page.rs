//! Pages: 4,096 bytes with a header, and the numbers in them.
//!
//! ```text
//!  0  checksum  u32   CRC-32 of the page's number (u32) and of its bytes from 4 on
//!  4  kind      u8
//!  5  zero      u8
//!  6  count     u16   records, parts of texts or entries in it
//!  8  used      u16   bytes in use after the header
//! 10  zero      u16
//! 12  next      u32   the next page of a chain; 0 at its end
//! 16  content         4,080 bytes
//! ```
//!
//! Numbers are little-endian. The page's number is part of the checksum, so that a misplaced page is detected.

use super::error::{Result, StoreError};
use std::sync::Arc;

pub const PAGE: usize = 4_096;
pub const HEAD: usize = 16;
pub(crate) const ROOM: usize = PAGE - HEAD;

/// The kind of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PageKind {
    /// Page 0.
    Header = 1,
    /// Numbers of other pages: of buckets, or of directory pages below.
    Directory = 2,
    /// The first page of a bucket.
    Bucket = 3,
    /// The other pages of a bucket.
    Overflow = 4,
    Text = 5,
    /// A page that is not in use.
    Free = 6,
}

/// A page in memory. A clone costs nothing until one of the two is changed.
#[derive(Clone, PartialEq, Eq)]
pub struct Page(Arc<[u8; PAGE]>);

impl Page {
    pub(crate) fn new(kind: PageKind) -> Self {
        let mut bytes = [0; PAGE];
        bytes[4] = kind as u8;
        Page(Arc::new(bytes))
    }

    /// A page as read, not validated.
    pub fn raw(bytes: [u8; PAGE]) -> Self {
        Page(Arc::new(bytes))
    }

    /// The bytes of the page.
    pub fn bytes(&self) -> &[u8; PAGE] {
        &self.0
    }

    pub(crate) fn content(&self) -> &[u8] {
        &self.0[HEAD..]
    }

    pub(crate) fn content_mut(&mut self) -> &mut [u8] {
        &mut Arc::make_mut(&mut self.0)[HEAD..]
    }

    pub(crate) fn count(&self) -> usize {
        usize::from(u16_at(&self.0[..], 6))
    }

    /// Bytes of its content in use, at most [`ROOM`].
    pub(crate) fn used(&self) -> usize {
        usize::from(u16_at(&self.0[..], 8)).min(ROOM)
    }

    /// The next page of the chain; 0 at its end.
    pub(crate) fn next(&self) -> u32 {
        u32_at(&self.0[..], 12)
    }

    pub(crate) fn set_count(&mut self, count: usize) {
        put_u16(&mut Arc::make_mut(&mut self.0)[..], 6, count as u16);
    }

    /// Sets the bytes in use.
    pub(crate) fn set_used(&mut self, used: usize) {
        put_u16(&mut Arc::make_mut(&mut self.0)[..], 8, used as u16);
    }

    pub(crate) fn set_next(&mut self, next: u32) {
        put_u32(&mut Arc::make_mut(&mut self.0)[..], 12, next);
    }

    pub(crate) fn kind(&self) -> Option<PageKind> {
        use PageKind::{Bucket, Directory, Free, Header, Overflow, Text};
        [Header, Directory, Bucket, Overflow, Text, Free].into_iter().find(|kind| *kind as u8 == self.0[4])
    }

    fn checksum(&self, number: u32) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&number.to_le_bytes());
        hasher.update(&self.0[4..]);
        hasher.finalize()
    }

    /// Sets the checksum of a page that is to be written under this number.
    pub fn seal(&mut self, number: u32) {
        let sum = self.checksum(number);
        put_u32(&mut Arc::make_mut(&mut self.0)[..], 0, sum);
    }

    /// Validates what was read as the page of this number.
    pub(crate) fn check(&self, number: u32) -> Result<()> {
        if u32_at(&self.0[..], 0) != self.checksum(number) {
            return Err(StoreError::damaged(number, "its checksum is wrong"));
        }
        if usize::from(u16_at(&self.0[..], 8)) > ROOM {
            return Err(StoreError::damaged(number, "its number of bytes in use is larger than the page"));
        }
        Ok(())
    }

    /// The length without trailing zeros, in blocks of 64 bytes.
    pub(crate) fn length(&self) -> usize {
        let empty = self.0.chunks_exact(64).rev().take_while(|block| **block == [0; 64]).count();
        PAGE - 64 * empty
    }
}

/// The number at an offset; 0 past the end.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|part| part.try_into().ok()).map_or(0, u16::from_le_bytes)
}

/// The number at an offset; 0 past the end.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|part| part.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The number at an offset; 0 past the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|part| part.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Writes the number at an offset, which must be within the bytes.
pub fn put_u16(bytes: &mut [u8], at: usize, number: u16) {
    bytes[at..at + 2].copy_from_slice(&number.to_le_bytes());
}

/// Writes the number at an offset, which must be within the bytes.
pub fn put_u32(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// Writes the number at an offset, which must be within the bytes.
pub fn put_u64(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}
