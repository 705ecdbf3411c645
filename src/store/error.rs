//! Errors of the store: what and where. Messages are written in Python.

use super::file::FileName;
use std::fmt;
use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// An error of the operating system: a full disk, a failed read, a missing permission.
    Io,
    /// There is no such file to read.
    Missing,
    /// The file is no store.
    Foreign,
    /// The file was written by a newer version of the format.
    Version,
    /// A page has invalid content.
    Damaged,
    /// The log belongs to another store, or to another state of it.
    Log,
    /// A writer has the store open.
    Locked,
    /// Readers have the store open, so its pages cannot be moved.
    Reading,
    /// The store was opened for reading.
    ReadOnly,
    /// A sync failed before, so the content of the disk is unknown.
    Broken,
    /// A file of the store was deleted or replaced while a writer had it open.
    Gone,
    /// A record, or the store, would exceed the limits of the format.
    TooLong,
}

impl StoreErrorKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            StoreErrorKind::Io => "io",
            StoreErrorKind::Missing => "missing",
            StoreErrorKind::Foreign => "foreign",
            StoreErrorKind::Version => "version",
            StoreErrorKind::Damaged => "damaged",
            StoreErrorKind::Log => "log",
            StoreErrorKind::Locked => "locked",
            StoreErrorKind::Reading => "reading",
            StoreErrorKind::ReadOnly => "read_only",
            StoreErrorKind::Broken => "broken",
            StoreErrorKind::Gone => "gone",
            StoreErrorKind::TooLong => "too_long",
        }
    }
}

/// An error of the store. Commits are not affected.
#[derive(Debug)]
pub struct StoreError {
    pub kind: StoreErrorKind,
    pub file: FileName,
    pub page: Option<u32>,
    /// Details: what was found, or what was attempted.
    pub what: &'static str,
    /// The error of the operating system.
    pub source: Option<io::Error>,
}

/// The result of operations on the store.
pub type Result<T> = std::result::Result<T, StoreError>;

impl StoreError {
    /// An error of the store file as a whole.
    pub fn new(kind: StoreErrorKind, what: &'static str) -> Self {
        StoreError { kind, file: FileName::Store, page: None, what, source: None }
    }

    pub(crate) fn damaged(page: u32, what: &'static str) -> Self {
        StoreError { page: Some(page), ..StoreError::new(StoreErrorKind::Damaged, what) }
    }

    /// An error of the operating system on a file.
    pub(crate) fn io(file: FileName, what: &'static str, source: io::Error) -> Self {
        StoreError { file, source: Some(source), ..StoreError::new(StoreErrorKind::Io, what) }
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
