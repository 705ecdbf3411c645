//! The write-ahead log: pages as of each commit, until a checkpoint writes them into the store.
//!
//! ```text
//! block 0 (4,096 bytes)
//!  0  magic     16 bytes
//! 16  version   u32
//! 20  page size u32
//! 24  store     u64   the id of the store
//! 32  base      u64   commits of the store when this log began
//! 40  salt      u64   unique for each log
//! 48  checksum  u32   CRC-32 of the 48 bytes before it; the rest of the block is zero
//! then frames
//!  0  page      u32   page 0 ends a commit
//!  4  length    u16   bytes of the page that follow; the rest of it is zero
//!  6  unsynced  u16   commits right before this one that were not known to be on disk when it was written
//!  8  commit    u32   the number of its commit
//! 12  salt      u32   the lower half of the log's salt
//! 16  checksum  u32   CRC-32 of the 16 bytes before it and of the bytes after it, chained to the previous frame
//! 20  bytes
//! ```
//!
//! The first frame's checksum is chained to that of block 0, which has the salt, so frames of an earlier log are not mistaken
//! for frames of this one. A commit begins at a block of 4,096 bytes, so that no synced block is written again while the log is
//! in use; bytes after page 0 in its block have no meaning. After the last commit there may be frames of earlier logs or zeros.

use super::error::{Result, StoreError};
use super::file::{BackendFile, FileName};
use super::page::{PAGE, Page, put_u16, put_u32, put_u64, u16_at, u32_at};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::mem;
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

/// The first bytes of a log.
pub(crate) const MAGIC: &[u8; 16] = b"recede  log\r\n\x1a\n\0";
/// The version that is written, and the newest that is read.
pub(crate) const VERSION: u32 = 2;
/// Bytes before a frame's page.
pub const FRAME: usize = 20;

/// The least and the most zeros that are written ahead at a time.
const AHEAD: (u64, u64) = (64 << 10, 256 << 10);
/// Bytes between two syncs up to which they are close together: then the file has at least so much room for the next one.
const CLOSE: u64 = 16 << 10;

/// A unique number, from the random seed of hash maps, and since a fork inherits that, the process and the time.
pub(crate) fn random() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one((process::id(), time.as_nanos()))
}

#[derive(Clone, Copy)]
pub(super) struct LogFrame {
    at: u64,
    length: u32,
}

/// The position of the next frame, and the checksum that it is chained to.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    pub(super) at: u64,
    pub(super) sum: u32,
}

pub(crate) struct WriteAheadLog {
    pub(super) file: Box<dyn BackendFile>,
    /// The newest frame of each page: committed, and written since then.
    committed: HashMap<u32, LogFrame>,
    pub(super) pending: HashMap<u32, LogFrame>,
    /// The positions after the last commit and after the last frame.
    pub(super) end: Tail,
    pub(super) tail: Tail,
    /// The position after the last synced commit, and the number of commits since then.
    synced: u64,
    unsynced: u16,
    /// Up to where the file does not grow.
    room: u64,
    /// Bytes of the log if each page were written once between two syncs.
    pub(super) weight: u64,
    pub(super) salt: u32,
    pub(super) version: u32,
    /// Commits of the store when the log began.
    pub base: u64,
}

impl WriteAheadLog {
    /// Begins an empty log in this file.
    pub(crate) fn start(file: Box<dyn BackendFile>, id: u64, base: u64) -> Result<Self> {
        let mut log = Self::at(file, Tail { at: PAGE as u64, sum: 0 });
        log.restart(id, base)?;
        Ok(log)
    }

    pub(super) fn at(file: Box<dyn BackendFile>, tail: Tail) -> Self {
        WriteAheadLog {
            file,
            committed: HashMap::new(),
            pending: HashMap::new(),
            end: tail,
            tail,
            synced: tail.at,
            unsynced: 0,
            room: 0,
            weight: tail.at,
            salt: 0,
            version: VERSION,
            base: 0,
        }
    }

    /// Restarts after a checkpoint. On return the first block is on disk: frames after a block that cannot be read prove that
    /// it was damaged, and the first of the old commits cannot be recovered without the last.
    pub(crate) fn restart(&mut self, id: u64, base: u64) -> Result<()> {
        let mut block = [0; PAGE];
        block[..16].copy_from_slice(MAGIC);
        put_u32(&mut block, 16, VERSION);
        put_u32(&mut block, 20, PAGE as u32);
        put_u64(&mut block, 24, id);
        put_u64(&mut block, 32, base);
        let salt = random();
        put_u64(&mut block, 40, salt);
        let sum = crc32fast::hash(&block[..48]);
        put_u32(&mut block, 48, sum);
        self.file.write_at(&block, 0).map_err(|error| failed("writing its first block", error))?;
        (self.salt, self.version, self.base) = (salt as u32, VERSION, base);
        self.end = Tail { at: PAGE as u64, sum };
        self.tail = self.end;
        (self.synced, self.unsynced, self.weight) = (self.end.at, 0, self.end.at);
        self.committed.clear();
        self.pending.clear();
        self.file.sync().map_err(|error| failed("syncing its first block", error))
    }

    pub(crate) fn file(&self) -> &dyn BackendFile {
        &*self.file
    }

    /// The file of an unused log.
    pub(crate) fn into_file(self) -> Box<dyn BackendFile> {
        self.file
    }

    /// The frame at a position, if it is complete, and what follows it.
    pub(super) fn frame(&self, from: Tail) -> Result<Option<(u32, LogFrame, Tail)>> {
        let mut bytes = [0; FRAME + PAGE];
        let count = self.file.read_at(&mut bytes, from.at).map_err(|error| failed("reading a frame", error))?;
        let (page, length) = (u32_at(&bytes, 0), usize::from(u16_at(&bytes, 4)));
        if length > PAGE || count < FRAME + length || u32_at(&bytes, 12) != self.salt {
            return Ok(None);
        }
        let sum = chained(from.sum, &bytes[..16], &bytes[FRAME..FRAME + length]);
        if sum != u32_at(&bytes, 16) {
            return Ok(None);
        }
        let frame = LogFrame { at: from.at + FRAME as u64, length: length as u32 };
        Ok(Some((page, frame, Tail { at: frame.at + length as u64, sum })))
    }

    /// Whether a complete commit follows the last one: a write was reported as failed, and yet happened.
    pub(crate) fn is_followed(&self) -> Result<bool> {
        let mut tail = self.tail;
        while let Some((page, _, next)) = self.frame(tail)? {
            if page == 0 {
                return Ok(true);
            }
            tail = next;
        }
        Ok(false)
    }

    pub(crate) fn unlock(&self) {
        let _ = self.file.unlock(); // closing the file does not, if a fork has it open too
    }

    /// Bytes up to the last frame.
    pub(crate) fn length(&self) -> u64 {
        self.tail.at
    }

    /// Bytes up to the last frame, with each page counted once between two syncs.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// Whether there are commits since the last sync.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.unsynced > 0
    }

    /// Whether there are this many bytes since the last sync, or more commits than a frame can say.
    pub(crate) fn is_sync_due(&self, bytes: u64) -> bool {
        self.end.at - self.synced >= bytes || self.unsynced == u16::MAX
    }

    /// Whether an older version of recede began it.
    pub(crate) fn is_old(&self) -> bool {
        self.version < VERSION
    }

    /// Whether it has no commit.
    pub(crate) fn is_empty(&self) -> bool {
        self.committed.is_empty()
    }

    /// Whether frames were written since the last commit.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The committed pages, in order.
    pub(crate) fn pages(&self) -> Vec<u32> {
        let mut pages: Vec<u32> = self.committed.keys().copied().collect();
        pages.sort_unstable();
        pages
    }

    pub(crate) fn frames(&self) -> usize {
        self.committed.len() + self.pending.len()
    }

    /// Whether a page is committed in it.
    pub(crate) fn holds(&self, page: u32) -> bool {
        self.committed.contains_key(&page)
    }

    /// The newest version of a page, if the log has it, not validated.
    pub(crate) fn read(&self, page: u32) -> Result<Option<Page>> {
        let frame = self.pending.get(&page).or_else(|| self.committed.get(&page));
        frame.map(|frame| self.page(*frame, page)).transpose()
    }

    pub(super) fn page(&self, frame: LogFrame, page: u32) -> Result<Page> {
        let mut bytes = [0; PAGE];
        let part = &mut bytes[..frame.length as usize];
        let wanted = part.len();
        let count = self.file.read_at(part, frame.at).map_err(|error| failed("reading a page", error))?;
        if count < wanted {
            let what = "it was cut while it was open";
            return Err(StoreError { file: FileName::Log, ..StoreError::damaged(page, what) });
        }
        Ok(Page::raw(bytes))
    }

    /// Writes uncommitted pages, so that they need no memory. They have no effect before their commit.
    pub(crate) fn spill<'a>(&mut self, commit: u64, pages: impl Iterator<Item = (u32, &'a Page)>) -> Result<()> {
        let (tail, frames) = self.write(commit as u32, pages)?;
        self.tail = tail;
        self.pending.extend(frames);
        Ok(())
    }

    /// Commits these pages, the last of which is page 0, and those spilled before, with one write. On return the commit outlives
    /// this process, and readers see it.
    pub(crate) fn commit<'a>(&mut self, commit: u64, pages: impl Iterator<Item = (u32, &'a Page)>) -> Result<()> {
        self.spill(commit, pages)?;
        self.take_commit();
        self.unsynced += 1;
        Ok(())
    }

    /// Makes the frames up to the tail, which is after page 0, a commit.
    pub(super) fn take_commit(&mut self) {
        for (page, frame) in mem::take(&mut self.pending) {
            let old = self.committed.insert(page, frame);
            if old.is_none_or(|old| old.at < self.synced) {
                self.weight += FRAME as u64 + u64::from(frame.length);
            }
        }
        self.tail.at = self.tail.at.next_multiple_of(PAGE as u64);
        self.end = self.tail;
    }

    /// Waits until all commits are on disk.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.write_ahead();
        self.flush()
    }

    /// Writes zeros where the next commits will be, if syncs are close together: one takes half the time if the file does not
    /// grow. If that fails, for lack of space, they only take longer.
    fn write_ahead(&mut self) {
        if self.tail.at - self.synced <= CLOSE && self.room < self.tail.at + CLOSE {
            let zeros = vec![0; self.tail.at.clamp(AHEAD.0, AHEAD.1) as usize];
            if self.file.write_at(&zeros, self.tail.at).is_ok() {
                self.room = self.tail.at + zeros.len() as u64;
            }
        }
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.file.sync().map_err(|error| failed("syncing it", error))?;
        self.weight = self.weight.next_multiple_of(PAGE as u64);
        (self.synced, self.unsynced) = (self.end.at, 0);
        Ok(())
    }

    /// Truncates a long log after its first block.
    pub(crate) fn shorten(&mut self) -> Result<()> {
        self.room = 0;
        self.file.truncate(PAGE as u64).map_err(|error| failed("cutting it", error))
    }

    fn write<'a>(
        &self,
        commit: u32,
        pages: impl Iterator<Item = (u32, &'a Page)>,
    ) -> Result<(Tail, Vec<(u32, LogFrame)>)> {
        let mut frames = vec![];
        let mut buffer = Vec::with_capacity(4 * PAGE); // one change has about three frames
        let mut sum = self.tail.sum;
        for (number, page) in pages {
            let bytes = &page.bytes()[..page.length()];
            let mut head = [0; FRAME];
            put_u32(&mut head, 0, number);
            put_u16(&mut head, 4, bytes.len() as u16);
            put_u16(&mut head, 6, self.unsynced);
            put_u32(&mut head, 8, commit);
            put_u32(&mut head, 12, self.salt);
            sum = chained(sum, &head[..16], bytes);
            put_u32(&mut head, 16, sum);
            buffer.extend(head);
            frames.push((number, LogFrame { at: self.tail.at + buffer.len() as u64, length: bytes.len() as u32 }));
            buffer.extend(bytes);
        }
        self.file.write_at(&buffer, self.tail.at).map_err(|error| failed("writing to it", error))?;
        Ok((Tail { at: self.tail.at + buffer.len() as u64, sum }, frames))
    }
}

fn chained(sum: u32, head: &[u8], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(sum);
    hasher.update(head);
    hasher.update(bytes);
    hasher.finalize()
}

pub(super) fn failed(what: &'static str, error: std::io::Error) -> StoreError {
    StoreError::io(FileName::Log, what, error)
}
