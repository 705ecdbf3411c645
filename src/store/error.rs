//! What went wrong with a store, and where. The words for people are made in Python.

use super::file::Name;
use std::fmt;
use std::io;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The operating system refused: a full disk, a failed read, a missing right.
    Io,
    /// There is no such file, and none is made for a reader.
    Missing,
    /// The file is no store.
    Foreign,
    /// The file was written by a newer version of the format.
    Version,
    /// A page does not hold what it must.
    Damaged,
    /// The log beside the file belongs to another store, or to another state of it.
    Log,
    /// A writer has the store open.
    Locked,
    /// Readers have the store open, and what was asked for would pull pages from under them.
    Reading,
    /// The store was opened for reading.
    ReadOnly,
    /// A sync failed before, so this handle can no longer say what is on disk.
    Broken,
    /// A file of the store was deleted or replaced while a writer had it open.
    Gone,
    /// A record, or the store itself, would become longer than the format can say.
    TooLong,
}

impl Kind {
    /// The word by which Python names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Io => "io",
            Kind::Missing => "missing",
            Kind::Foreign => "foreign",
            Kind::Version => "version",
            Kind::Damaged => "damaged",
            Kind::Log => "log",
            Kind::Locked => "locked",
            Kind::Reading => "reading",
            Kind::ReadOnly => "read_only",
            Kind::Broken => "broken",
            Kind::Gone => "gone",
            Kind::TooLong => "too_long",
        }
    }
}

/// Why the store could not do what it was asked for. What was committed stays committed.
#[derive(Debug)]
pub struct StoreError {
    /// What is wrong.
    pub kind: Kind,
    /// The file it lies in.
    pub file: Name,
    /// The page it lies in.
    pub page: Option<u32>,
    /// More about it: what was found, or what was being done.
    pub what: &'static str,
    /// What the operating system said.
    pub source: Option<io::Error>,
}

/// What everything in the store answers.
pub type Result<T> = std::result::Result<T, StoreError>;

impl StoreError {
    /// An error of the store file as a whole.
    #[must_use]
    pub fn new(kind: Kind, what: &'static str) -> Self {
        StoreError { kind, file: Name::Store, page: None, what, source: None }
    }

    /// A page that does not hold what it must.
    #[must_use]
    pub fn damaged(page: u32, what: &'static str) -> Self {
        StoreError { page: Some(page), ..StoreError::new(Kind::Damaged, what) }
    }

    /// The operating system refused what was being done with a file.
    #[must_use]
    pub fn io(file: Name, what: &'static str, source: io::Error) -> Self {
        StoreError { file, source: Some(source), ..StoreError::new(Kind::Io, what) }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.what)?;
        if let Some(page) = self.page {
            write!(f, ", page {page}")?;
        }
        if let Some(source) = &self.source {
            write!(f, " ({source})")?;
        }
        Ok(())
    }
}

impl std::error::Error for StoreError {}
