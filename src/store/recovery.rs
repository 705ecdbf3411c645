//! Recovery: opening a log after its writer was killed or the machine lost power.
//!
//! A log ends at the first incomplete commit: after a loss of power, any of those that were not synced may be incomplete, and
//! later ones whole. But if a later one says that the incomplete one was on disk, the log is damaged. In version 1 each commit
//! was written only after the previous one was on disk, so the same bytes say the same.

use super::error::{Result, StoreError, StoreErrorKind};
use super::file::{BackendFile, FileName};
use super::header::Header;
use super::log::{FRAME, MAGIC, Tail, VERSION, WriteAheadLog, failed};
use super::page::{PAGE, u16_at, u32_at, u64_at};

pub(crate) struct Recovered {
    /// The id of the store that it belongs to.
    pub id: u64,
    /// The log, ready for the next commit.
    pub log: WriteAheadLog,
    /// Page 0 as of the last commit.
    pub header: Option<Header>,
}

impl WriteAheadLog {
    /// Reads a log up to its last commit. Returns the file if its first block is unreadable: it never came to
    /// disk, so the log has no commit, or [`refuse_damaged`] refuses it.
    pub(crate) fn recover(file: Box<dyn BackendFile>) -> Result<std::result::Result<Recovered, Box<dyn BackendFile>>> {
        let mut block = [0; PAGE];
        let count = file.read_at(&mut block, 0).map_err(|error| failed("reading its first block", error))?;
        let sum = crc32fast::hash(&block[..48]);
        let begun = &block[..count.min(16)];
        let is_damaged = u32_at(&block, 48) == crc32fast::hash(&[MAGIC, &block[16..48]].concat());
        if !MAGIC.starts_with(begun) && begun.iter().any(|&byte| byte != 0) && !is_damaged {
            let what = "it is no log, but has the name of one";
            return Err(StoreError { file: FileName::Log, ..StoreError::new(StoreErrorKind::Foreign, what) });
        }
        if count < PAGE || u32_at(&block, 48) != sum || block[0] == 0 {
            return Ok(Err(file));
        }
        let version = u32_at(&block, 16);
        if !(1..=VERSION).contains(&version) || u32_at(&block, 20) as usize != PAGE {
            let what = "its format is newer than this version of recede";
            return Err(StoreError { file: FileName::Log, ..StoreError::new(StoreErrorKind::Version, what) });
        }
        let mut log = Self::at(file, Tail { at: PAGE as u64, sum });
        (log.salt, log.version, log.base) = (u32_at(&block, 40), version, u64_at(&block, 32));
        let header = log.take_commits()?;
        Ok(Ok(Recovered { id: u64_at(&block, 24), log, header }))
    }

    /// Reads all commits; returns page 0 as of the last one.
    fn take_commits(&mut self) -> Result<Option<Header>> {
        let mut header = None;
        let mut commit = self.base as u32;
        loop {
            while let Some((page, frame, tail)) = self.frame(self.tail)? {
                self.pending.insert(page, frame);
                self.tail = tail;
                if page == 0 {
                    // This code never writes a commit with valid checksums and an invalid page 0.
                    let of_commit = Header::of(&self.page(frame, 0)?)?;
                    if self.pending.keys().any(|page| *page >= of_commit.pages) {
                        return Err(damaged("a commit in it has pages past the last one"));
                    }
                    header = Some(of_commit);
                    self.take_commit();
                    commit = commit.wrapping_add(1);
                }
            }
            if !self.is_known_synced(commit.wrapping_add(1))? {
                break;
            }
            // Unless a writer has completed it meanwhile, as a reader may see.
            if self.frame(self.tail)?.is_none() {
                return Err(damaged("a commit in it is damaged"));
            }
        }
        self.pending.clear();
        self.tail = self.end;
        self.weight = self.end.at;
        Ok(header)
    }

    /// Whether a later commit says that this one, which is incomplete, was on disk.
    fn is_known_synced(&self, broken: u32) -> Result<bool> {
        let mut at = self.end.at + PAGE as u64;
        let mut head = [0; FRAME];
        while self.file.read_at(&mut head, at).map_err(|error| failed("reading a frame", error))? == FRAME {
            let first_unsynced = u32_at(&head, 8).wrapping_sub(u32::from(u16_at(&head, 6)));
            let is_frame = u32_at(&head, 12) == self.salt && usize::from(u16_at(&head, 4)) <= PAGE;
            if is_frame && (1..1 << 31).contains(&first_unsynced.wrapping_sub(broken)) {
                return Ok(true);
            }
            at += PAGE as u64;
        }
        Ok(false)
    }

    /// Writes the recovered commits again, cuts off what follows them, and syncs.
    ///
    /// If a sync of the previous writer failed, its writes may only be in the page cache, marked clean: another sync would not
    /// write them.
    pub(crate) fn renew(&mut self) -> Result<()> {
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
        // Otherwise a later commit that lost the one before it would follow that if it is made again.
        let length = self.file.length().map_err(|error| failed("reading its length", error))?;
        if length > self.end.at {
            self.file.truncate(self.end.at).map_err(|error| failed("cutting it", error))?;
        }
        self.flush()
    }
}

/// Whether a log has a frame of a commit after this one.
pub(crate) fn holds_commits_after(log: &dyn BackendFile, commit: u64) -> Result<bool> {
    let (mut at, mut head, mut salt) = (PAGE as u64, [0; FRAME], None);
    while log.read_at(&mut head, at).map_err(|error| failed("reading a frame", error))? == FRAME {
        let of_first = *salt.get_or_insert(u32_at(&head, 12));
        let is_frame = u32_at(&head, 12) == of_first && (1..=PAGE).contains(&usize::from(u16_at(&head, 4)));
        if is_frame && (1..1 << 31).contains(&u32_at(&head, 8).wrapping_sub(commit as u32)) {
            return Ok(true);
        }
        at += PAGE as u64;
    }
    Ok(false)
}

/// Refuses a log whose first block is unreadable, and which has commits that the file, as of this commit, lacks.
pub(crate) fn refuse_damaged(log: &dyn BackendFile, commit: u64) -> Result<()> {
    if holds_commits_after(log, commit)? { Err(damaged("its first block is damaged")) } else { Ok(()) }
}

fn damaged(what: &'static str) -> StoreError {
    StoreError { file: FileName::Log, ..StoreError::new(StoreErrorKind::Damaged, what) }
}
