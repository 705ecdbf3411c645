//! The log beside the store: pages as they are after each commit, until a checkpoint has written them into the store.
//!
//! ```text
//! block 0 (4,096 bytes)
//!  0  magic     16 bytes
//! 16  version   u32
//! 20  page size u32
//! 24  store     u64   the id of the store
//! 32  base      u64   how many commits the store had when this log began
//! 40  salt      u64   another one for each log
//! 48  checksum  u32   CRC-32 of the 48 bytes before it; the rest of the block is zero
//! then frames
//!  0  page      u32   page 0 ends a commit
//!  4  length    u32   bytes of the page that follow; the rest of it is zero
//!  8  commit    u32   the number of the commit that it will belong to
//! 12  salt      u32   the lower half of that of the log
//! 16  checksum  u32   CRC-32 of the 16 bytes before it and of the bytes after it, chained to the frame before
//! 20  bytes
//! ```
//!
//! The first frame's checksum is chained to that of block 0, which has the salt: frames left by an earlier log cannot be
//! taken for a part of this one. A commit begins at a block of 4,096 bytes, so that no block that was once synced is
//! written again while the log is in use; what follows page 0 in its block has no meaning.
//!
//! A log ends at the first incomplete frame, as a killed writer leaves it. But a commit is written only when the one before
//! it is on disk: an incomplete commit with a later one after it means that the log was damaged since.

use super::error::{Kind, Result, StoreError};
use super::file::{BackendFile, Name};
use super::header::{Header, VERSION};
use super::page::{PAGE, Page, put_u32, put_u64, u32_at, u64_at};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

/// The first bytes of a log.
pub const MAGIC: &[u8; 16] = b"recede  log\r\n\x1a\n\0";
/// Bytes before a frame's page.
pub const FRAME: usize = 20;

/// A unique number: from the seeds of hash maps, which the operating system gives and a fork inherits, and so from the
/// process and the time as well.
#[must_use]
pub fn random() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one((process::id(), time.as_nanos()))
}

#[derive(Clone, Copy)]
struct Frame {
    at: u64,
    length: u32,
}

/// Where the next frame goes, and the checksum that it is chained to.
#[derive(Clone, Copy)]
struct Tail {
    at: u64,
    sum: u32,
}

/// An open log.
pub struct Log {
    file: Box<dyn BackendFile>,
    /// The newest frame of each page, of what was committed, and of what was written since without a commit.
    committed: HashMap<u32, Frame>,
    pending: HashMap<u32, Frame>,
    /// After the last commit, and after the last frame.
    end: Tail,
    tail: Tail,
    salt: u32,
    /// How many commits the store had when it began.
    pub base: u64,
}

impl Log {
    /// Begins a log in this file, which holds no commit. Its first block comes to disk with the first commit: without it,
    /// there is none.
    pub fn start(file: Box<dyn BackendFile>, id: u64, base: u64) -> Result<Self> {
        let tail = Tail { at: PAGE as u64, sum: 0 };
        let mut log = Log { file, committed: HashMap::new(), pending: HashMap::new(), end: tail, tail, salt: 0, base };
        log.begin(id, base)?;
        Ok(log)
    }

    /// Starts over after a checkpoint. On return the first block is on disk: otherwise the first of the old commits could
    /// be recovered without the last.
    pub fn restart(&mut self, id: u64, base: u64) -> Result<()> {
        self.begin(id, base)?;
        self.file.sync().map_err(|error| failed("syncing its first block", error))
    }

    fn begin(&mut self, id: u64, base: u64) -> Result<()> {
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
        self.tail = Tail { at: PAGE as u64, sum };
        self.end = self.tail;
        self.salt = salt as u32;
        self.base = base;
        self.committed.clear();
        self.pending.clear();
        Ok(())
    }

    /// Reads a log up to its last commit: the id of its store, the log, and page 0 as of that commit if there was one.
    /// `None` where this is no log, or one whose first block never came to disk, so that nothing followed.
    pub fn recover(file: Box<dyn BackendFile>) -> Result<std::result::Result<Recovered, Box<dyn BackendFile>>> {
        let mut block = [0; PAGE];
        let count = file.read_at(&mut block, 0).map_err(|error| failed("reading its first block", error))?;
        let sum = crc32fast::hash(&block[..48]);
        let begun = &block[..count.min(16)];
        if !MAGIC.starts_with(begun) && begun.iter().any(|&byte| byte != 0) {
            let what = "it is no log, but has the name of one";
            return Err(StoreError { file: Name::Log, ..StoreError::new(Kind::Foreign, what) });
        }
        if count < PAGE || u32_at(&block, 48) != sum || block[0] == 0 {
            return Ok(Err(file));
        }
        if u32_at(&block, 16) != VERSION || u32_at(&block, 20) as usize != PAGE {
            let what = "its format is newer than this version of recede";
            return Err(StoreError { file: Name::Log, ..StoreError::new(Kind::Version, what) });
        }
        let (id, base) = (u64_at(&block, 24), u64_at(&block, 32));
        let mut tail = Tail { at: PAGE as u64, sum };
        let salt = u32_at(&block, 40);
        let mut log = Log { file, committed: HashMap::new(), pending: HashMap::new(), end: tail, tail, salt, base };
        let mut header = None;
        let mut commit = base as u32;
        while let Some((page, frame, sum)) = log.frame(tail)? {
            log.pending.insert(page, frame);
            tail = Tail { at: frame.at + u64::from(frame.length), sum };
            if page == 0 {
                // A commit whose sums are right and whose page 0 is not was never written by this code.
                let of_commit = Header::of(&log.page(frame, 0)?)?;
                if log.pending.keys().any(|page| *page >= of_commit.pages) {
                    return Err(damaged("a commit in it has pages past the last one"));
                }
                header = Some(of_commit);
                log.committed.extend(log.pending.drain());
                tail.at = tail.at.next_multiple_of(PAGE as u64);
                log.end = tail;
                commit = commit.wrapping_add(1);
            }
        }
        if log.has_commit_after(commit.wrapping_add(1))? {
            return Err(damaged("a commit in it is damaged"));
        }
        log.pending.clear();
        log.tail = log.end;
        Ok(Ok(Recovered { id, log, header }))
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &dyn BackendFile {
        &*self.file
    }

    /// The file, where the log is of no use.
    #[must_use]
    pub fn into_file(self) -> Box<dyn BackendFile> {
        self.file
    }

    /// Whether a commit follows one that is not whole.
    fn has_commit_after(&self, broken: u32) -> Result<bool> {
        let mut at = self.end.at + PAGE as u64;
        let mut head = [0; FRAME];
        while self.file.read_at(&mut head, at).map_err(|error| failed("reading a frame", error))? == FRAME {
            let later = u32_at(&head, 8).wrapping_sub(broken);
            if u32_at(&head, 12) == self.salt && u32_at(&head, 4) as usize <= PAGE && (1..1 << 31).contains(&later) {
                return Ok(true);
            }
            at += PAGE as u64;
        }
        Ok(false)
    }

    /// The frame at a place, if there is a whole one.
    fn frame(&self, from: Tail) -> Result<Option<(u32, Frame, u32)>> {
        let mut bytes = [0; FRAME + PAGE];
        let count = self.file.read_at(&mut bytes, from.at).map_err(|error| failed("reading a frame", error))?;
        let (page, length) = (u32_at(&bytes, 0), u32_at(&bytes, 4) as usize);
        if length > PAGE || count < FRAME + length {
            return Ok(None);
        }
        let sum = chained(from.sum, &bytes[..16], &bytes[FRAME..FRAME + length]);
        if sum != u32_at(&bytes, 16) {
            return Ok(None);
        }
        let frame = Frame { at: from.at + FRAME as u64, length: length as u32 };
        Ok(Some((page, frame, sum)))
    }

    /// Writes what was recovered once more, and syncs it.
    ///
    /// A writer may have ended after a sync that failed. What it wrote is then read from memory, as if it were on
    /// disk, and no further sync would put it there: only what is written again is synced.
    pub fn renew(&mut self) -> Result<()> {
        let mut buffer = vec![0; 64 * PAGE];
        let mut at = 0;
        while at < self.end.at {
            let wanted = buffer.len().min((self.end.at - at) as usize);
            let part = &mut buffer[..wanted];
            let count = self.file.read_at(part, at).map_err(|error| failed("reading it again", error))?;
            self.file.write_at(&part[..count], at).map_err(|error| failed("writing it again", error))?;
            if count < wanted {
                break; // what follows the last commit in its block was never written
            }
            at += count as u64;
        }
        self.file.sync().map_err(|error| failed("syncing it", error))
    }

    /// Releases the writer's lock.
    pub fn unlock(&self) {
        let _ = self.file.unlock(); // closing the file does it too, but for a fork that has it as well
    }

    /// Bytes up to the last frame.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.tail.at
    }

    /// Whether it holds no commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.committed.is_empty()
    }

    /// Whether frames were written since the last commit.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The pages that were committed, in their order.
    #[must_use]
    pub fn pages(&self) -> Vec<u32> {
        let mut pages: Vec<u32> = self.committed.keys().copied().collect();
        pages.sort_unstable();
        pages
    }

    /// How many frames count.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.committed.len() + self.pending.len()
    }

    /// Whether a page is among those that were committed.
    #[must_use]
    pub fn holds(&self, page: u32) -> bool {
        self.committed.contains_key(&page)
    }

    /// The newest state of a page, if the log has it. Nothing in it is checked.
    pub fn read(&self, page: u32) -> Result<Option<Page>> {
        let frame = self.pending.get(&page).or_else(|| self.committed.get(&page));
        frame.map(|frame| self.page(*frame, page)).transpose()
    }

    fn page(&self, frame: Frame, page: u32) -> Result<Page> {
        let mut bytes = [0; PAGE];
        let part = &mut bytes[..frame.length as usize];
        let wanted = part.len();
        let count = self.file.read_at(part, frame.at).map_err(|error| failed("reading a page", error))?;
        if count < wanted {
            let what = "it was cut while it was open";
            return Err(StoreError { file: Name::Log, ..StoreError::damaged(page, what) });
        }
        Ok(Page::raw(bytes))
    }

    /// Writes pages that no commit holds yet, so that they need no memory. Without a commit they count for nothing.
    pub fn spill<'a>(&mut self, commit: u64, pages: impl Iterator<Item = (u32, &'a Page)>) -> Result<()> {
        let (tail, frames) = self.write(commit as u32, pages)?;
        self.tail = tail;
        self.pending.extend(frames);
        Ok(())
    }

    /// Ends the commit of all that was spilled since the last one with page 0. It is on disk after [`Log::sync`].
    ///
    /// Where this fails nobody knows whether the commit is there, and a reader may have seen it: so pages are spilled by
    /// themselves before, since to fail at that does no harm.
    pub fn end(&mut self, commit: u64, header: &Page) -> Result<Commit> {
        let (mut tail, frames) = self.write(commit as u32, std::iter::once((0, header)))?;
        tail.at = tail.at.next_multiple_of(PAGE as u64);
        Ok(Commit { tail, frames })
    }

    /// Waits until a commit is on disk; only then does it count.
    pub fn sync(&mut self, commit: Commit) -> Result<()> {
        self.file.sync().map_err(|error| failed("syncing a commit", error))?;
        self.tail = commit.tail;
        self.end = commit.tail;
        self.committed.extend(self.pending.drain());
        self.committed.extend(commit.frames);
        Ok(())
    }

    /// Truncates it after its first block, where it has become long.
    pub fn shorten(&mut self) -> Result<()> {
        self.file.truncate(PAGE as u64).map_err(|error| failed("cutting it", error))
    }

    fn write<'a>(
        &self,
        commit: u32,
        pages: impl Iterator<Item = (u32, &'a Page)>,
    ) -> Result<(Tail, Vec<(u32, Frame)>)> {
        let mut frames = vec![];
        let mut buffer = vec![];
        let mut sum = self.tail.sum;
        for (number, page) in pages {
            let bytes = &page.bytes()[..page.length()];
            let mut head = [0; FRAME];
            put_u32(&mut head, 0, number);
            put_u32(&mut head, 4, bytes.len() as u32);
            put_u32(&mut head, 8, commit);
            put_u32(&mut head, 12, self.salt);
            sum = chained(sum, &head[..16], bytes);
            put_u32(&mut head, 16, sum);
            buffer.extend(head);
            frames.push((number, Frame { at: self.tail.at + buffer.len() as u64, length: bytes.len() as u32 }));
            buffer.extend(bytes);
        }
        self.file.write_at(&buffer, self.tail.at).map_err(|error| failed("writing to it", error))?;
        Ok((Tail { at: self.tail.at + buffer.len() as u64, sum }, frames))
    }
}

/// What [`Log::recover`] found.
pub struct Recovered {
    /// The id of the store that it belongs to.
    pub id: u64,
    /// The log, ready for the next commit.
    pub log: Log,
    /// Page 0 as of the last commit.
    pub header: Option<Header>,
}

/// A commit that was written and is not yet synced.
pub struct Commit {
    tail: Tail,
    frames: Vec<(u32, Frame)>,
}

fn chained(sum: u32, head: &[u8], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(sum);
    hasher.update(head);
    hasher.update(bytes);
    hasher.finalize()
}

fn failed(what: &'static str, error: std::io::Error) -> StoreError {
    StoreError::io(Name::Log, what, error)
}

fn damaged(what: &'static str) -> StoreError {
    StoreError { file: Name::Log, ..StoreError::new(Kind::Damaged, what) }
}
