//! File access of the store: a small trait, and its implementation on disk.
//!
//! All file access of the store goes through it, so that tests can simulate failures, torn writes and power loss
//! (`tests/core/store/`).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The files of one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileName {
    Store,
    /// The log, while a writer has it open.
    Log,
    /// A store that is being created or compacted, before it is renamed.
    New,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read an existing file.
    Read,
    /// To read and write an existing file.
    Write,
    /// To read and write; created if missing.
    Create,
}

/// Owner and permissions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// The permission bits of its mode.
    pub mode: u32,
    /// The number of its owner.
    pub owner: u32,
    /// The number of its group.
    pub group: u32,
}

/// A folder with the files of one store.
pub trait Backend: Send + Sync {
    /// Opens a file; `None` if it is missing and not to be created. Only the owner can access a new file.
    fn open(&self, name: FileName, access: Access) -> io::Result<Option<Box<dyn BackendFile>>>;

    /// Whether an open file still has that name.
    fn is_current(&self, name: FileName, file: &dyn BackendFile) -> io::Result<bool>;

    /// Atomically renames `FileName::New` to the store.
    fn publish(&self) -> io::Result<()>;

    /// Removes a file, if it exists.
    fn remove(&self, name: FileName) -> io::Result<()>;

    /// Waits until the names of the files are on disk.
    fn sync_names(&self) -> io::Result<()>;
}

pub trait BackendFile: Send {
    /// Reads until the buffer is full or the file ends; returns the number of bytes.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes, also past the end.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    fn length(&self) -> io::Result<u64>;

    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Waits until content and length are on disk.
    fn sync(&self) -> io::Result<()>;

    /// Takes an exclusive lock; false if another lock is held.
    fn try_lock(&self) -> io::Result<bool>;

    /// Takes a shared lock; waits for an exclusive one.
    fn lock_shared(&self) -> io::Result<()>;

    fn unlock(&self) -> io::Result<()>;

    /// The identity: device and inode.
    fn identity(&self) -> io::Result<(u64, u64)>;

    /// The owner and permissions, if the system has them.
    fn rights(&self) -> io::Result<Option<Rights>> {
        Ok(None)
    }

    /// Sets these rights as far as permitted, and never more than these.
    fn set_rights(&self, _rights: Rights) -> io::Result<()> {
        Ok(())
    }
}

/// The files in a folder of the file system: `FILE`, `FILE-log` and `FILE-new`.
pub struct Disk {
    paths: [PathBuf; 3],
}

impl Disk {
    /// The files of the store at this path. Nothing is opened.
    pub fn new(path: &Path) -> Self {
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        Disk { paths: [path.to_path_buf(), beside("-log"), beside("-new")] }
    }

    fn path(&self, name: FileName) -> &Path {
        &self.paths[name as usize]
    }
}

impl Backend for Disk {
    fn open(&self, name: FileName, access: Access) -> io::Result<Option<Box<dyn BackendFile>>> {
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read).create(access == Access::Create);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // Opening a pipe could block forever, and a device has no length. A symbolic link may point anywhere.
        let facts = if name == FileName::Store { fs::metadata } else { fs::symlink_metadata };
        if facts(self.path(name)).is_ok_and(|facts| !facts.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        match options.open(self.path(name)) {
            Ok(file) => Ok(Some(Box::new(DiskFile { identity: identity(&file.metadata()?), file }))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && access != Access::Create => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_current(&self, name: FileName, file: &dyn BackendFile) -> io::Result<bool> {
        match identity_at(self.path(name)) {
            // The file is open, so its inode cannot be reused.
            Ok(now) => Ok(now == file.identity()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn publish(&self) -> io::Result<()> {
        fs::rename(self.path(FileName::New), self.path(FileName::Store))
    }

    fn remove(&self, name: FileName) -> io::Result<()> {
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync_names(&self) -> io::Result<()> {
        // Only Unix can sync a folder; elsewhere the file system orders changes of names.
        if cfg!(unix) {
            let folder = self.paths[0].parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(())
    }
}

struct DiskFile {
    file: File,
    identity: (u64, u64),
}

impl BackendFile for DiskFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match read_once(&self.file, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        write_all(&self.file, bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn lock_shared(&self) -> io::Result<()> {
        self.file.lock_shared()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn identity(&self) -> io::Result<(u64, u64)> {
        Ok(self.identity)
    }

    #[cfg(unix)]
    fn rights(&self) -> io::Result<Option<Rights>> {
        use std::os::unix::fs::MetadataExt;
        let facts = self.file.metadata()?;
        Ok(Some(Rights { mode: facts.mode() & 0o777, owner: facts.uid(), group: facts.gid() }))
    }

    /// The rule is that of `_files.py`.
    #[cfg(unix)]
    fn set_rights(&self, rights: Rights) -> io::Result<()> {
        use std::os::unix::fs::{PermissionsExt, fchown};
        let Some(mut now) = self.rights()? else { return Ok(()) };
        if (now.owner, now.group) != (rights.owner, rights.group) {
            // Only root can change the owner; others can change the group to one of theirs.
            if fchown(&self.file, Some(rights.owner), Some(rights.group)).is_err() {
                let _ = fchown(&self.file, None, Some(rights.group));
            }
            now = self.rights()?.unwrap_or(now);
        }
        let mut mode = rights.mode;
        if now.group != rights.group {
            mode &= 0o707 | (mode & 0o007) << 3; // another group gets only what everybody may do
        }
        if now.mode == mode {
            return Ok(()); // some file systems have one mode for all files, and refuse changes
        }
        match self.file.set_permissions(fs::Permissions::from_mode(mode)) {
            Err(error) if now.mode & !mode != 0 => Err(error),
            _ => Ok(()),
        }
    }
}

/// The identity of the file of this name, without its times: since Linux 6.13 the first write after they were asked for gets
/// times of its own, which on ext4 without a journal the next sync writes as well.
#[cfg(target_os = "linux")]
fn identity_at(path: &Path) -> io::Result<(u64, u64)> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
        Ok(facts) => Ok((makedev(facts.stx_dev_major, facts.stx_dev_minor), facts.stx_ino)),
        // Before Linux 4.11 there is no statx; for any other reason this fails as well.
        Err(_) => Ok(identity(&fs::metadata(path)?)),
    }
}

#[cfg(not(target_os = "linux"))]
fn identity_at(path: &Path) -> io::Result<(u64, u64)> {
    Ok(identity(&fs::metadata(path)?))
}

#[cfg(unix)]
fn identity(facts: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (facts.dev(), facts.ino())
}

#[cfg(not(unix))]
fn identity(_facts: &fs::Metadata) -> (u64, u64) {
    (0, 0) // no stable way to query it: assume that the name still means the file
}

#[cfg(unix)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(unix)]
fn write_all(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(windows)]
fn write_all(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[count..];
        offset += count as u64;
    }
    Ok(())
}
