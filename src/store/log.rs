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
//!  4  length    u32   bytes of the page that follow; the rest of it is zero
//!  8  commit    u32   the number of its commit
//! 12  salt      u32   the lower half of the log's salt
//! 16  checksum  u32   CRC-32 of the 16 bytes before it and of the bytes after it, chained to the previous frame
//! 20  bytes
//! ```
//!
//! The first frame's checksum is chained to that of block 0, which has the salt, so frames of an earlier log are not mistaken
//! for frames of this one. A commit begins at a block of 4,096 bytes, so that no synced block is written again while the log is
//! in use; bytes after page 0 in its block have no meaning.
//!
//! A log ends at the first incomplete frame, as a killed writer leaves it. But a commit is written only after the previous one
//! is on disk: an incomplete commit before a later one means that the log is damaged.

use super::error::{Result, StoreError, StoreErrorKind};
use super::file::{BackendFile, FileName};
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

/// A unique number, from the random seed of hash maps, and since a fork inherits that, the process and the time.
#[must_use]
pub fn random() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one((process::id(), time.as_nanos()))
}

#[derive(Clone, Copy)]
struct LogFrame {
    at: u64,
    length: u32,
}

/// The position of the next frame, and the checksum that it is chained to.
#[derive(Clone, Copy)]
struct Tail {
    at: u64,
    sum: u32,
}

/// An open log.
pub struct WriteAheadLog {
    file: Box<dyn BackendFile>,
    /// The newest frame of each page: committed, and written since then.
    committed: HashMap<u32, LogFrame>,
    pending: HashMap<u32, LogFrame>,
    /// After the last commit, and after the last frame.
    end: Tail,
    tail: Tail,
    salt: u32,
    /// Commits of the store when the log began.
    pub base: u64,
}

impl WriteAheadLog {
    /// Begins an empty log in this file. Its first block is synced with the first commit.
    pub fn start(file: Box<dyn BackendFile>, id: u64, base: u64) -> Result<Self> {
        let tail = Tail { at: PAGE as u64, sum: 0 };
        let mut log =
            WriteAheadLog { file, committed: HashMap::new(), pending: HashMap::new(), end: tail, tail, salt: 0, base };
        log.begin(id, base)?;
        Ok(log)
    }

    /// Restarts after a checkpoint. On return the first block is on disk; otherwise the first of the old commits could be
    /// recovered without the last.
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

    /// Reads a log up to its last commit. Returns the file if its first block never came to disk, so that it has no commit.
    pub fn recover(file: Box<dyn BackendFile>) -> Result<std::result::Result<Recovered, Box<dyn BackendFile>>> {
        let mut block = [0; PAGE];
        let count = file.read_at(&mut block, 0).map_err(|error| failed("reading its first block", error))?;
        let sum = crc32fast::hash(&block[..48]);
        let begun = &block[..count.min(16)];
        if !MAGIC.starts_with(begun) && begun.iter().any(|&byte| byte != 0) {
            let what = "it is no log, but has the name of one";
            return Err(StoreError { file: FileName::Log, ..StoreError::new(StoreErrorKind::Foreign, what) });
        }
        if count < PAGE || u32_at(&block, 48) != sum || block[0] == 0 {
            return Ok(Err(file));
        }
        if u32_at(&block, 16) != VERSION || u32_at(&block, 20) as usize != PAGE {
            let what = "its format is newer than this version of recede";
            return Err(StoreError { file: FileName::Log, ..StoreError::new(StoreErrorKind::Version, what) });
        }
        let (id, base) = (u64_at(&block, 24), u64_at(&block, 32));
        let mut tail = Tail { at: PAGE as u64, sum };
        let salt = u32_at(&block, 40);
        let mut log =
            WriteAheadLog { file, committed: HashMap::new(), pending: HashMap::new(), end: tail, tail, salt, base };
        let mut header = None;
        let mut commit = base as u32;
        while let Some((page, frame, sum)) = log.frame(tail)? {
            log.pending.insert(page, frame);
            tail = Tail { at: frame.at + u64::from(frame.length), sum };
            if page == 0 {
                // This code never writes a commit with valid checksums and an invalid page 0.
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

    /// The file of an unused log.
    #[must_use]
    pub fn into_file(self) -> Box<dyn BackendFile> {
        self.file
    }

    /// Whether a commit follows an incomplete one.
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

    /// The frame at a position, if it is complete.
    fn frame(&self, from: Tail) -> Result<Option<(u32, LogFrame, u32)>> {
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
        let frame = LogFrame { at: from.at + FRAME as u64, length: length as u32 };
        Ok(Some((page, frame, sum)))
    }

    /// Writes the recovered commits again, and syncs them.
    ///
    /// If a sync of the previous writer failed, its writes may only be in the page cache, marked clean: another sync would not
    /// write them.
    pub fn renew(&mut self) -> Result<()> {
        let mut buffer = vec![0; 64 * PAGE];
        let mut at = 0;
        while at < self.end.at {
            let wanted = buffer.len().min((self.end.at - at) as usize);
            let part = &mut buffer[..wanted];
            let count = self.file.read_at(part, at).map_err(|error| failed("reading it again", error))?;
            self.file.write_at(&part[..count], at).map_err(|error| failed("writing it again", error))?;
            if count < wanted {
                break; // bytes after the last commit in its block were never written
            }
            at += count as u64;
        }
        self.file.sync().map_err(|error| failed("syncing it", error))
    }

    /// Releases the writer's lock.
    pub fn unlock(&self) {
        let _ = self.file.unlock(); // closing the file does not, if a fork has it open too
    }

    /// Bytes up to the last frame.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.tail.at
    }

    /// Whether it has no commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.committed.is_empty()
    }

    /// Whether frames were written since the last commit.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The committed pages, in order.
    #[must_use]
    pub fn pages(&self) -> Vec<u32> {
        let mut pages: Vec<u32> = self.committed.keys().copied().collect();
        pages.sort_unstable();
        pages
    }

    /// Number of valid frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.committed.len() + self.pending.len()
    }

    /// Whether a page is committed in it.
    #[must_use]
    pub fn holds(&self, page: u32) -> bool {
        self.committed.contains_key(&page)
    }

    /// The newest version of a page, if the log has it, not validated.
    pub fn read(&self, page: u32) -> Result<Option<Page>> {
        let frame = self.pending.get(&page).or_else(|| self.committed.get(&page));
        frame.map(|frame| self.page(*frame, page)).transpose()
    }

    fn page(&self, frame: LogFrame, page: u32) -> Result<Page> {
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
    pub fn spill<'a>(&mut self, commit: u64, pages: impl Iterator<Item = (u32, &'a Page)>) -> Result<()> {
        let (tail, frames) = self.write(commit as u32, pages)?;
        self.tail = tail;
        self.pending.extend(frames);
        Ok(())
    }

    /// Commits the spilled pages by writing page 0. The commit is on disk after [`WriteAheadLog::sync`].
    ///
    /// If this fails, it is unknown whether the commit exists, and a reader may have seen it. Pages are spilled before, since a
    /// failure of that is harmless.
    pub fn end(&mut self, commit: u64, header: &Page) -> Result<Commit> {
        let (mut tail, frames) = self.write(commit as u32, std::iter::once((0, header)))?;
        tail.at = tail.at.next_multiple_of(PAGE as u64);
        Ok(Commit { tail, frames })
    }

    /// Waits until a commit is on disk; only then is it valid.
    pub fn sync(&mut self, commit: Commit) -> Result<()> {
        self.file.sync().map_err(|error| failed("syncing a commit", error))?;
        self.tail = commit.tail;
        self.end = commit.tail;
        self.committed.extend(self.pending.drain());
        self.committed.extend(commit.frames);
        Ok(())
    }

    /// Truncates a long log after its first block.
    pub fn shorten(&mut self) -> Result<()> {
        self.file.truncate(PAGE as u64).map_err(|error| failed("cutting it", error))
    }

    fn write<'a>(
        &self,
        commit: u32,
        pages: impl Iterator<Item = (u32, &'a Page)>,
    ) -> Result<(Tail, Vec<(u32, LogFrame)>)> {
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
            frames.push((number, LogFrame { at: self.tail.at + buffer.len() as u64, length: bytes.len() as u32 }));
            buffer.extend(bytes);
        }
        self.file.write_at(&buffer, self.tail.at).map_err(|error| failed("writing to it", error))?;
        Ok((Tail { at: self.tail.at + buffer.len() as u64, sum }, frames))
    }
}

/// What [`WriteAheadLog::recover`] found.
pub struct Recovered {
    /// The id of the store that it belongs to.
    pub id: u64,
    /// The log, ready for the next commit.
    pub log: WriteAheadLog,
    /// Page 0 as of the last commit.
    pub header: Option<Header>,
}

/// A commit that is written, but not synced.
pub struct Commit {
    tail: Tail,
    frames: Vec<(u32, LogFrame)>,
}

fn chained(sum: u32, head: &[u8], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(sum);
    hasher.update(head);
    hasher.update(bytes);
    hasher.finalize()
}

fn failed(what: &'static str, error: std::io::Error) -> StoreError {
    StoreError::io(FileName::Log, what, error)
}

fn damaged(what: &'static str) -> StoreError {
    StoreError { file: FileName::Log, ..StoreError::new(StoreErrorKind::Damaged, what) }
}
