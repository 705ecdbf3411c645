//! Files that remember what was done to them, and what a loss of power would leave.

use crate::common::Random;
use recede::store::file::{Access, Backend, BackendFile, FileName};
use recede::store::memory::Memory;
use recede::store::page::PAGE;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The syncs of the store. A test takes each of them away, and must then see something lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// Of a new file, before it takes its name.
    New,
    /// Of the names of files.
    Names,
    /// Of the first block of a log.
    LogBlock,
    /// Of a commit.
    Commit,
    /// Of the file, at a checkpoint or at the end.
    Store,
    /// Of what a log was found to hold.
    Renewed,
}

#[derive(Clone, Debug)]
pub enum Event {
    Made(FileName, usize),
    Published,
    Removed(FileName),
    NamesSynced,
    Wrote(usize, u64, Vec<u8>),
    Cut(usize, u64),
    Synced(usize),
    /// A sync has failed: what was written since the last one will never reach the disk, though it can be read.
    Lost(usize),
    /// By the test: from here on the state of this number may be found, and is confirmed.
    Begun(usize),
    Confirmed(usize),
}

/// Files in memory that write down what is done to them.
#[derive(Clone)]
pub struct Recording {
    memory: Memory,
    /// Syncs that do not happen.
    pub without: Arc<Mutex<HashSet<Sync>>>,
    /// Whether the next sync of a commit fails.
    pub fails: Arc<AtomicBool>,
    pub events: Arc<Mutex<Vec<Event>>>,
    files: Arc<Mutex<HashMap<(u64, u64), usize>>>,
}

impl Recording {
    pub fn new(without: impl IntoIterator<Item = Sync>) -> Self {
        Recording {
            memory: Memory::default(),
            without: Arc::new(Mutex::new(without.into_iter().collect())),
            fails: Arc::default(),
            events: Arc::default(),
            files: Arc::default(),
        }
    }

    pub fn note(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

impl Backend for Recording {
    fn open(&self, name: FileName, access: Access) -> io::Result<Option<Box<dyn BackendFile>>> {
        let Some(file) = self.memory.open(name, access)? else { return Ok(None) };
        let mut files = self.files.lock().unwrap();
        let next = files.len();
        let index = *files.entry(file.identity()?).or_insert_with(|| {
            self.note(Event::Made(name, next));
            next
        });
        Ok(Some(Box::new(RecordingFile { file, name, index, all: self.clone() })))
    }

    fn is_current(&self, name: FileName, file: &dyn BackendFile) -> io::Result<bool> {
        self.memory.is_current(name, file)
    }

    fn publish(&self) -> io::Result<()> {
        self.note(Event::Published);
        self.memory.publish()
    }

    fn remove(&self, name: FileName) -> io::Result<()> {
        self.note(Event::Removed(name));
        self.memory.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        if !self.without.lock().unwrap().contains(&Sync::Names) {
            self.note(Event::NamesSynced);
        }
        Ok(())
    }
}

struct RecordingFile {
    file: Box<dyn BackendFile>,
    name: FileName,
    index: usize,
    all: Recording,
}

impl BackendFile for RecordingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.all.note(Event::Wrote(self.index, offset, bytes.to_vec()));
        self.file.write_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.all.note(Event::Cut(self.index, length));
        self.file.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        let events = self.all.events.lock().unwrap().clone();
        let last = events.iter().rev().find_map(|event| match event {
            Event::Wrote(index, offset, bytes) if *index == self.index => Some((*offset, bytes.len())),
            _ => None,
        });
        let sync = match self.name {
            FileName::New => Sync::New,
            FileName::Store => Sync::Store,
            FileName::Log => match last {
                Some((0, 4_096)) => Sync::LogBlock,
                Some((0, _)) => Sync::Renewed,
                _ => Sync::Commit,
            },
        };
        if sync == Sync::Commit && self.all.fails.swap(false, Ordering::SeqCst) {
            self.all.note(Event::Lost(self.index));
            return Err(io::ErrorKind::Other.into());
        }
        if !self.all.without.lock().unwrap().contains(&sync) {
            self.all.note(Event::Synced(self.index));
        }
        Ok(())
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
}

/// How many choices of pages are tried after each event.
const CHOICES: u64 = 8;

/// Which of the writes that were not synced reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The first so many.
    First(usize),
    /// The first so many, and of the next one so many bytes.
    Torn(usize, usize),
    /// All but this one.
    AllBut(usize),
    /// This one alone.
    Only(usize),
    /// All, but of this one only so many bytes.
    AllButTorn(usize, usize),
    /// All, but no file has grown.
    WithoutGrowth,
    /// Of each write some of its pages, which this number chooses.
    SomePages(u64),
}

/// What is on disk when power is lost after some events: what is certain, and what may or may not have come there.
#[derive(Clone, Default)]
pub struct Disk {
    files: Vec<Vec<u8>>,
    names: HashMap<FileName, usize>,
    /// Writes and cuts that were not synced, and changes of names.
    loose: Vec<Event>,
    loose_names: Vec<Event>,
    events: u64,
}

impl Disk {
    pub fn add(&mut self, event: &Event) {
        self.events += 1;
        match event {
            Event::Made(_, index) => {
                self.files.resize(self.files.len().max(index + 1), vec![]);
                self.loose_names.push(event.clone());
            }
            Event::Published | Event::Removed(_) => self.loose_names.push(event.clone()),
            Event::NamesSynced => {
                let loose = std::mem::take(&mut self.loose_names);
                for event in &loose {
                    rename(&mut self.names, event);
                }
            }
            Event::Wrote(..) | Event::Cut(..) => self.loose.push(event.clone()),
            Event::Synced(synced) => {
                for event in &self.loose {
                    if file_of(event) == *synced {
                        write(&mut self.files, event, usize::MAX);
                    }
                }
                self.loose.retain(|event| file_of(event) != *synced);
            }
            Event::Lost(lost) => self.loose.retain(|event| file_of(event) != *lost),
            Event::Begun(_) | Event::Confirmed(_) => {}
        }
    }

    /// Every way in which the writes that were not synced may have reached it.
    pub fn reaches(&self) -> Vec<Reach> {
        let count = self.loose.len();
        let mut reaches: Vec<Reach> = (0..=count).map(Reach::First).collect();
        if count > 1 {
            reaches.extend((0..count).flat_map(|index| [Reach::AllBut(index), Reach::Only(index)]));
        }
        for (index, event) in self.loose.iter().enumerate() {
            let Event::Wrote(_, _, bytes) = event else { continue };
            let torn = (512..bytes.len()).step_by(512);
            reaches.extend(torn.flat_map(|torn| [Reach::Torn(index, torn), Reach::AllButTorn(index, torn)]));
        }
        reaches.push(Reach::WithoutGrowth);
        if count > 0 {
            reaches.extend((0..CHOICES).map(|choice| Reach::SomePages(choice + CHOICES * self.events)));
        }
        reaches
    }

    pub fn loose_names(&self) -> usize {
        self.loose_names.len()
    }

    /// The files after power has come back.
    pub fn image(&self, reach: Reach, renamed: usize) -> Memory {
        let mut files = self.files.clone();
        let mut random = Random::new(if let Reach::SomePages(choice) = reach { choice } else { 0 });
        for (index, event) in self.loose.iter().enumerate() {
            if let (Reach::SomePages(_), Event::Wrote(file, offset, bytes)) = (reach, event) {
                for (page, bytes) in (offset / PAGE as u64..).zip(pages(*offset, bytes)) {
                    let start = (*offset).max(page * PAGE as u64);
                    if random.once_in(2) {
                        write(&mut files, &Event::Wrote(*file, start, bytes.to_vec()), usize::MAX);
                    }
                }
                continue;
            }
            let bytes = match reach {
                Reach::First(count) if index >= count => 0,
                Reach::Torn(count, _) if index > count => 0,
                Reach::Torn(count, bytes) if index == count => bytes,
                Reach::AllButTorn(other, bytes) if index == other => bytes,
                Reach::AllBut(other) if index == other => 0,
                Reach::Only(other) if index != other => 0,
                _ => usize::MAX,
            };
            if bytes > 0 {
                write(&mut files, event, bytes);
            }
        }
        if reach == Reach::WithoutGrowth {
            for (file, before) in files.iter_mut().zip(&self.files) {
                file.truncate(before.len());
            }
        }
        let mut names = self.names.clone();
        for event in self.loose_names.iter().take(renamed) {
            rename(&mut names, event);
        }
        let memory = Memory::default();
        for (name, index) in names {
            memory.put(name, files[index].clone());
        }
        memory
    }
}

/// What was written, page by page of the file.
fn pages(offset: u64, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (first, rest) = bytes.split_at((PAGE - offset as usize % PAGE).min(bytes.len()));
    std::iter::once(first).chain(rest.chunks(PAGE))
}

fn file_of(event: &Event) -> usize {
    match event {
        Event::Wrote(index, ..) | Event::Cut(index, _) => *index,
        _ => unreachable!(),
    }
}

fn write(files: &mut [Vec<u8>], event: &Event, most: usize) {
    match event {
        Event::Wrote(index, offset, bytes) => {
            let (start, bytes) = (*offset as usize, &bytes[..bytes.len().min(most)]);
            let file = &mut files[*index];
            file.resize(file.len().max(start + bytes.len()), 0);
            file[start..start + bytes.len()].copy_from_slice(bytes);
        }
        Event::Cut(index, length) => files[*index].truncate(*length as usize),
        _ => {}
    }
}

fn rename(names: &mut HashMap<FileName, usize>, event: &Event) {
    match event {
        Event::Made(name, index) => drop(names.insert(*name, *index)),
        Event::Published => {
            if let Some(index) = names.remove(&FileName::New) {
                names.insert(FileName::Store, index);
            }
        }
        Event::Removed(name) => drop(names.remove(name)),
        _ => {}
    }
}
