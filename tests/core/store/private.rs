//! Real files: what is written beside a store, or in its place, is for those alone who may read the store.

use super::model::{append, record};
use recede::store::error::Result;
use recede::store::file::{Access, Backend, BackendFile, Disk, FileName, Rights};
use recede::store::{RecordKind, Store, StoreErrorKind};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A folder of its own for a test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("recede-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    fn store(&self) -> PathBuf {
        self.0.join("session.store")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Seen = Arc<Mutex<Vec<(FileName, Rights)>>>;

/// Real files that note what rights each has just before something is written to it.
struct Watched {
    disk: Disk,
    seen: Seen,
}

impl Backend for Watched {
    fn open(&self, name: FileName, access: Access) -> io::Result<Option<Box<dyn BackendFile>>> {
        let file = self.disk.open(name, access)?;
        let seen = self.seen.clone();
        Ok(file.map(|file| -> Box<dyn BackendFile> { Box::new(WatchedFile { file, name, seen }) }))
    }

    fn is_current(&self, name: FileName, file: &dyn BackendFile) -> io::Result<bool> {
        self.disk.is_current(name, file)
    }

    fn publish(&self) -> io::Result<()> {
        self.disk.publish()
    }

    fn remove(&self, name: FileName) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
    }
}

struct WatchedFile {
    file: Box<dyn BackendFile>,
    name: FileName,
    seen: Seen,
}

impl BackendFile for WatchedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.seen.lock().unwrap().push((self.name, self.file.rights()?.unwrap()));
        self.file.write_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }

    fn lock_shared(&self) -> io::Result<()> {
        self.file.lock_shared()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn identity(&self) -> io::Result<(u64, u64)> {
        self.file.identity()
    }

    fn rights(&self) -> io::Result<Option<Rights>> {
        self.file.rights()
    }

    fn set_rights(&self, rights: Rights) -> io::Result<()> {
        self.file.set_rights(rights)
    }
}

/// A session with every kind of file, and what rights each had when something was written to it.
fn session(path: &Path) -> Result<Vec<(FileName, Rights)>> {
    let seen = Seen::default();
    let mut store = Store::open(Box::new(Watched { disk: Disk::new(path), seen: seen.clone() }))?;
    append(&mut store, RecordKind::Turn, &record(&[], vec![1; 9_000]), true)?;
    store.compact()?;
    append(&mut store, RecordKind::Turn, &record(&[], vec![2; 9_000]), true)?;
    store.close()?;
    let seen = seen.lock().unwrap().clone();
    assert!(seen.len() > 6, "{seen:?}");
    Ok(seen)
}

fn rights(path: &Path) -> Rights {
    Disk::new(path).open(FileName::Store, Access::Read).unwrap().unwrap().rights().unwrap().unwrap()
}

#[test]
fn a_new_store_is_its_owners_alone_from_the_first_byte_on() {
    let folder = Folder::new("new");
    let seen = session(&folder.store());
    let modes: Vec<(FileName, u32)> = seen.unwrap().into_iter().map(|(name, rights)| (name, rights.mode)).collect();
    for name in [FileName::New, FileName::Log, FileName::Store] {
        assert!(modes.contains(&(name, 0o600)), "{modes:?}");
    }
    assert!(modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
    assert_eq!(rights(&folder.store()).mode, 0o600);
}

#[test]
fn each_file_has_the_mode_and_owner_of_the_store_before_a_byte_is_written() {
    let folder = Folder::new("taken");
    let path = folder.store();
    session(&path).unwrap();
    let is_root = rights(&path).owner == 0;
    for mode in [0o600, 0o640, 0o666, 0o606] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        if is_root {
            chown(&path, Some(1_234), Some(2_345)).unwrap(); // as if root opened the store of a user
        }
        let before = rights(&path);
        let seen = session(&path).unwrap();
        for name in [FileName::New, FileName::Log, FileName::Store] {
            assert!(seen.contains(&(name, before)), "{mode:o}: {seen:?}");
        }
        assert!(seen.iter().all(|(_, rights)| *rights == before), "{mode:o}: {seen:?}");
        assert_eq!(rights(&path), before);
    }
}

#[test]
fn what_an_earlier_writer_left_gets_them_too() {
    let folder = Folder::new("left");
    let path = folder.store();
    let beside = |ending: &str| path.with_file_name(format!("session.store{ending}"));
    session(&path).unwrap();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::copy(&path, beside("-new")).unwrap();
    open(&beside("-new"));
    let held = fs::File::open(beside("-new")).unwrap(); // by somebody who might read what is written to it
    // A writer that was killed after a commit, and one before its first.
    for commits in [true, false] {
        let mut store = Store::open(Box::new(Disk::new(&path))).unwrap();
        if commits {
            append(&mut store, RecordKind::Turn, &record(&[], vec![3; 100]), true).unwrap();
        }
        drop(store);
        open(&beside("-log"));
        let seen = session(&path).unwrap();
        assert!(seen.iter().all(|(_, rights)| rights.mode == 0o600), "{seen:?}");
        assert!(!beside("-new").exists());
        assert_eq!(held.metadata().unwrap().nlink(), 0);
    }
}

#[test]
fn a_link_in_the_place_of_the_log_is_not_followed() {
    let folder = Folder::new("link");
    let path = folder.store();
    let target = folder.0.join("elsewhere");
    for ending in ["-log", "-new"] {
        let link = path.with_file_name(format!("session.store{ending}"));
        for exists in [false, true] {
            std::os::unix::fs::symlink(&target, &link).unwrap();
            if exists {
                fs::write(&target, "").unwrap();
            }
            let error = Store::open(Box::new(Disk::new(&path))).err().unwrap();
            assert_eq!(error.kind, StoreErrorKind::Io);
            assert_eq!(fs::read(&target).ok(), exists.then(Vec::new));
            fs::remove_file(&link).unwrap();
            let _ = fs::remove_file(&target);
        }
    }
}
