//! Files that get in the store's way: they fail at the N-th operation, or somebody else does something meanwhile.

use recede::store::file::{Access, Backend, BackendFile, FileName};
use recede::store::memory::Memory;
use std::io;
use std::sync::{Arc, Mutex};

// Failing

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// With this error, and nothing done.
    With(io::ErrorKind),
    /// A write stops half way, as on a full disk.
    ShortWrite,
    /// It is done, and yet said to have failed.
    DoneAndReported,
}

/// What the failing files have counted, and when they fail.
#[derive(Default)]
pub struct Plan {
    pub operations: usize,
    /// The number of the operation that fails, from 1; 0 for none.
    pub fails_at: usize,
    pub is_forever: bool,
    pub failure: Option<Failure>,
    /// Pages of the store file that were read, so that a test sees what was not touched.
    pub reads: Vec<(FileName, u64)>,
}

impl Plan {
    fn next(&mut self) -> Option<Failure> {
        self.operations += 1;
        let is_hit = self.operations == self.fails_at
            || self.is_forever && self.fails_at != 0 && self.operations > self.fails_at;
        self.failure.filter(|_| is_hit)
    }
}

/// Files in memory, of which the N-th operation fails.
#[derive(Clone, Default)]
pub struct Failing {
    pub memory: Memory,
    pub plan: Arc<Mutex<Plan>>,
}

impl Failing {
    fn act<T>(&self, done: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        act(&self.plan, done)
    }
}

fn act<T>(plan: &Mutex<Plan>, done: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let failure = plan.lock().unwrap().next();
    match failure {
        None | Some(Failure::ShortWrite) => done(),
        Some(Failure::With(kind)) => Err(kind.into()),
        Some(Failure::DoneAndReported) => done().and(Err(io::ErrorKind::Other.into())),
    }
}

impl Backend for Failing {
    fn open(&self, name: FileName, access: Access) -> io::Result<Option<Box<dyn BackendFile>>> {
        let file = self.act(|| self.memory.open(name, access))?;
        let plan = self.plan.clone();
        Ok(file.map(|file| -> Box<dyn BackendFile> { Box::new(FailingFile { file, name, plan }) }))
    }

    fn is_current(&self, name: FileName, file: &dyn BackendFile) -> io::Result<bool> {
        self.act(|| self.memory.is_current(name, file))
    }

    fn publish(&self) -> io::Result<()> {
        self.act(|| self.memory.publish())
    }

    fn remove(&self, name: FileName) -> io::Result<()> {
        self.act(|| self.memory.remove(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.act(|| self.memory.sync_names())
    }
}

struct FailingFile {
    file: Box<dyn BackendFile>,
    name: FileName,
    plan: Arc<Mutex<Plan>>,
}

impl FailingFile {
    fn refused(&self) -> io::Result<()> {
        self.plan.lock().unwrap().next().map_or(Ok(()), |_| Err(io::ErrorKind::Other.into()))
    }
}

impl BackendFile for FailingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.plan.lock().unwrap().reads.push((self.name, offset));
        act(&self.plan, || self.file.read_at(buffer, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let failure = self.plan.lock().unwrap().next();
        match failure {
            None => self.file.write_at(bytes, offset),
            Some(Failure::With(kind)) => Err(kind.into()),
            Some(Failure::ShortWrite) => {
                self.file.write_at(&bytes[..bytes.len() / 2], offset)?;
                Err(io::ErrorKind::StorageFull.into())
            }
            Some(Failure::DoneAndReported) => {
                self.file.write_at(bytes, offset)?;
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn length(&self) -> io::Result<u64> {
        act(&self.plan, || self.file.length())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        act(&self.plan, || self.file.truncate(length))
    }

    fn sync(&self) -> io::Result<()> {
        act(&self.plan, || self.file.sync())
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.refused()?; // a lock that is said not to be had is not had
        self.file.try_lock()
    }

    fn lock_shared(&self) -> io::Result<()> {
        self.refused()?;
        self.file.lock_shared()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock() // closing a file unlocks it, and that cannot fail
    }

    fn identity(&self) -> io::Result<(u64, u64)> {
        self.file.identity()
    }
}

// Racing

type Deed = Box<dyn FnOnce() + Send>;

/// Files in memory, where somebody else does something just after one was opened.
pub struct Racing {
    pub memory: Memory,
    pub after_opening: Mutex<Option<(FileName, Deed)>>,
}

impl Backend for Racing {
    fn open(&self, name: FileName, access: Access) -> io::Result<Option<Box<dyn BackendFile>>> {
        let file = self.memory.open(name, access)?;
        let mut waiting = self.after_opening.lock().unwrap();
        if waiting.as_ref().is_some_and(|(awaited, _)| *awaited == name) {
            let (_, deed) = waiting.take().unwrap();
            deed();
        }
        Ok(file)
    }

    fn is_current(&self, name: FileName, file: &dyn BackendFile) -> io::Result<bool> {
        self.memory.is_current(name, file)
    }

    fn publish(&self) -> io::Result<()> {
        self.memory.publish()
    }

    fn remove(&self, name: FileName) -> io::Result<()> {
        self.memory.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.memory.sync_names()
    }
}
