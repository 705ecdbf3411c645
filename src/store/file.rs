//! File access of the store: a small trait, and its implementation on disk.
//!
//! Nothing else in the store opens, reads, writes, syncs or locks files. So tests can inject files that fail, that tear a
//! write, or that simulate a power loss (`tests/core/store/`).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The files of one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// The store itself.
    Store,
    /// The log beside it, while it is open.
    Log,
    /// A store that is being made or compacted, before it takes the name of the store.
    New,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read what is there.
    Read,
    /// To read and write what is there.
    Write,
    /// To read and write; made if it is not there.
    Create,
}

/// Who may do what with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// The bits of its mode that grant something.
    pub mode: u32,
    /// The number of its owner.
    pub owner: u32,
    /// The number of its group.
    pub group: u32,
}

/// A folder with the files of one store.
pub trait Backend: Send + Sync {
    /// Opens a file; `None` where it is not there and is not to be made. One that is made is its owner's alone.
    fn open(&self, name: Name, access: Access) -> io::Result<Option<Box<dyn BackendFile>>>;

    /// Whether what was opened is still the file of that name.
    fn is_current(&self, name: Name, file: &dyn BackendFile) -> io::Result<bool>;

    /// Gives `Name::New` the name of the store, at once.
    fn publish(&self) -> io::Result<()>;

    /// Removes a file, if it is there.
    fn remove(&self, name: Name) -> io::Result<()>;

    /// Waits until the names of the files are on disk.
    fn sync_names(&self) -> io::Result<()>;
}

/// An open file.
pub trait BackendFile: Send {
    /// Reads until the buffer is full or the file ends; how many bytes that were.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of it, past the end too.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Its length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Cuts it.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Waits until what was written is on disk, and the length too.
    fn sync(&self) -> io::Result<()>;

    /// Locks it against all others; false where another has locked it in any way.
    fn try_lock(&self) -> io::Result<bool>;

    /// Locks it together with others that do so; waits for one that has it alone.
    fn lock_shared(&self) -> io::Result<()>;

    /// Gives up the lock.
    fn unlock(&self) -> io::Result<()>;

    /// Which file it is, whatever its name (device and number).
    fn identity(&self) -> io::Result<(u64, u64)>;

    /// Who may do what with it; `None` where the system has no such thing.
    fn rights(&self) -> io::Result<Option<Rights>> {
        Ok(None)
    }

    /// Gives it these rights as far as they are ours to give, and in no case more than these.
    fn set_rights(&self, _rights: Rights) -> io::Result<()> {
        Ok(())
    }
}

/// The files in a folder of the file system: `FILE`, `FILE-log` and `FILE-new`.
pub struct Disk {
    paths: [PathBuf; 3],
}

impl Disk {
    /// The store of that path. Nothing is opened.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        Disk { paths: [path.to_path_buf(), beside("-log"), beside("-new")] }
    }

    fn path(&self, name: Name) -> &Path {
        &self.paths[name as usize]
    }
}

impl Backend for Disk {
    fn open(&self, name: Name, access: Access) -> io::Result<Option<Box<dyn BackendFile>>> {
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read).create(access == Access::Create);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // Opening a pipe could block forever, and a device has no length. A link beside the store is not ours.
        let facts = if name == Name::Store { fs::metadata } else { fs::symlink_metadata };
        if facts(self.path(name)).is_ok_and(|facts| !facts.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        match options.open(self.path(name)) {
            Ok(file) => Ok(Some(Box::new(DiskFile(file)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && access != Access::Create => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_current(&self, name: Name, file: &dyn BackendFile) -> io::Result<bool> {
        match fs::metadata(self.path(name)) {
            // The file is open, so its number cannot have been given to another one.
            Ok(now) => Ok(identity(&now) == file.identity()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn publish(&self) -> io::Result<()> {
        fs::rename(self.path(Name::New), self.path(Name::Store))
    }

    fn remove(&self, name: Name) -> io::Result<()> {
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync_names(&self) -> io::Result<()> {
        // Only Unix lets one open a folder and sync it; elsewhere the file system keeps names in order by itself.
        if cfg!(unix) {
            let folder = self.paths[0].parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(())
    }
}

struct DiskFile(File);

impl BackendFile for DiskFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match read_once(&self.0, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        write_all(&self.0, bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn lock_shared(&self) -> io::Result<()> {
        self.0.lock_shared()
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }

    fn identity(&self) -> io::Result<(u64, u64)> {
        Ok(identity(&self.0.metadata()?))
    }

    #[cfg(unix)]
    fn rights(&self) -> io::Result<Option<Rights>> {
        use std::os::unix::fs::MetadataExt;
        let facts = self.0.metadata()?;
        Ok(Some(Rights { mode: facts.mode() & 0o777, owner: facts.uid(), group: facts.gid() }))
    }

    /// The same rule as `_files.py` has for what Python writes.
    #[cfg(unix)]
    fn set_rights(&self, rights: Rights) -> io::Result<()> {
        use std::os::unix::fs::{PermissionsExt, fchown};
        let Some(mut now) = self.rights()? else { return Ok(()) };
        if (now.owner, now.group) != (rights.owner, rights.group) {
            // Only root can give a file away; others can at most give it to another of their groups.
            if fchown(&self.0, Some(rights.owner), Some(rights.group)).is_err() {
                let _ = fchown(&self.0, None, Some(rights.group));
            }
            now = self.rights()?.unwrap_or(now);
        }
        let mut mode = rights.mode;
        if now.group != rights.group {
            mode &= 0o707 | (mode & 0o007) << 3; // another group may only do what everybody may
        }
        if now.mode == mode {
            return Ok(()); // some file systems have one mode for all files, and refuse to be asked
        }
        match self.0.set_permissions(fs::Permissions::from_mode(mode)) {
            Err(error) if now.mode & !mode != 0 => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(unix)]
fn identity(facts: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (facts.dev(), facts.ino())
}

#[cfg(not(unix))]
fn identity(_facts: &fs::Metadata) -> (u64, u64) {
    (0, 0) // there is no stable way to ask, so whatever has the name is taken for the file
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
