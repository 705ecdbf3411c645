//! Files in memory, for stores in bytes and for tests.

use super::file::{Access, Backend, BackendFile, FileName};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A folder in memory. Clones share it, so that a store can be reopened.
#[derive(Clone, Default)]
pub struct Memory {
    files: Arc<Mutex<HashMap<FileName, Arc<Content>>>>,
}

struct Content {
    bytes: Mutex<Vec<u8>>,
    /// -1 for an exclusive lock, else the number of shared locks.
    locks: AtomicI64,
    number: u64,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    /// The content of a file.
    pub fn bytes(&self, name: FileName) -> Option<Vec<u8>> {
        held(&self.files).get(&name).map(|content| held(&content.bytes).clone())
    }

    pub fn put(&self, name: FileName, bytes: Vec<u8>) {
        held(&self.files).insert(name, Content::new(bytes));
    }
}

impl Content {
    fn new(bytes: Vec<u8>) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Content { bytes: Mutex::new(bytes), locks: AtomicI64::new(0), number })
    }
}

impl Backend for Memory {
    fn open(&self, name: FileName, access: Access) -> io::Result<Option<Box<dyn BackendFile>>> {
        let mut files = held(&self.files);
        if access == Access::Create {
            files.entry(name).or_insert_with(|| Content::new(vec![]));
        }
        let file = files.get(&name).map(|content| MemoryFile { content: content.clone(), lock: AtomicI64::new(0) });
        Ok(file.map(|file| -> Box<dyn BackendFile> { Box::new(file) }))
    }

    fn is_current(&self, name: FileName, file: &dyn BackendFile) -> io::Result<bool> {
        Ok(held(&self.files).get(&name).map(|content| (0, content.number)) == Some(file.identity()?))
    }

    fn publish(&self) -> io::Result<()> {
        let mut files = held(&self.files);
        let new = files.remove(&FileName::New).ok_or(io::ErrorKind::NotFound)?;
        files.insert(FileName::Store, new);
        Ok(())
    }

    fn remove(&self, name: FileName) -> io::Result<()> {
        held(&self.files).remove(&name);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }
}

struct MemoryFile {
    content: Arc<Content>,
    /// The lock of this handle: -1 exclusive, 1 shared, 0 none.
    lock: AtomicI64,
}

impl BackendFile for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = held(&self.content.bytes);
        let from = bytes.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let count = from.len().min(buffer.len());
        buffer[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn write_at(&self, written: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = held(&self.content.bytes);
        let start = offset as usize;
        let end = start + written.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(written);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(held(&self.content.bytes).len() as u64)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        held(&self.content.bytes).truncate(length as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        let own = self.lock.load(Ordering::SeqCst).max(0);
        let is_free = self.content.locks.compare_exchange(own, -1, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if is_free {
            self.lock.store(-1, Ordering::SeqCst);
        }
        Ok(is_free)
    }

    fn lock_shared(&self) -> io::Result<()> {
        // Waiting would be a deadlock, since everything is in one thread.
        let count = self.content.locks.load(Ordering::SeqCst);
        let is_free = count >= 0
            && self.content.locks.compare_exchange(count, count + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if !is_free {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.lock.store(1, Ordering::SeqCst);
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        match self.lock.swap(0, Ordering::SeqCst) {
            -1 => self.content.locks.store(0, Ordering::SeqCst),
            1 => drop(self.content.locks.fetch_sub(1, Ordering::SeqCst)),
            _ => {}
        }
        Ok(())
    }

    fn identity(&self) -> io::Result<(u64, u64)> {
        Ok((0, self.content.number))
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let _ = self.unlock(); // as closing a file does
    }
}
