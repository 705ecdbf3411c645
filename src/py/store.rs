//! The turn store for Python. The GIL is released while files are read and written.

use super::convert::{Text, to_str};
use super::guard::guarded;
use super::named::named;
use super::values::number;
use crate::store::error::{StoreError, StoreErrorKind};
use crate::store::file::{Disk, FileName};
use crate::store::memory::Memory;
use crate::store::{Record, RecordKind, Result, Store, StoreFault};
use pyo3::exceptions::{PyUnicodeDecodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::path::PathBuf;
use std::process;
use std::sync::{Mutex, PoisonError};

/// Called by `recede.store.TurnStore` only.
#[pyclass(frozen, name = "Store", module = "recede._core")]
pub struct PyStore {
    store: Mutex<Option<Store>>,
    path: PathBuf,
    /// The process that opened it: a fork has the same locks and could overwrite it.
    process: u32,
}

#[pymethods]
impl PyStore {
    #[new]
    #[pyo3(signature = (path, read_only, sync_every=None))]
    fn new(py: Python<'_>, path: PathBuf, read_only: bool, sync_every: Option<u64>) -> PyResult<Self> {
        guarded(|| {
            let opened = py.detach(|| {
                let disk = Box::new(Disk::new(&path));
                let mut store = if read_only { Store::open_read_only(disk) } else { Store::open(disk) }?;
                store.sync_every(sync_every);
                Ok(store)
            });
            PyStore::of(py, path, opened)
        })
    }

    /// The store in these bytes, for reading.
    #[staticmethod]
    fn of_bytes(py: Python<'_>, data: &[u8], path: PathBuf) -> PyResult<Self> {
        guarded(|| {
            let files = Memory::default();
            files.put(FileName::Store, data.to_vec());
            PyStore::of(py, path, Store::open_read_only(Box::new(files)))
        })
    }

    /// Adds a record; its last field may be stored in text pages.
    fn append(&self, py: Python<'_>, kind: u8, fields: Vec<PyBackedBytes>, sync: bool) -> PyResult<u64> {
        guarded(|| {
            let (kind, (rest, last)) = (kind_of(kind)?, split(&fields)?);
            self.with(py, |store| store.append(kind, &rest, last, sync))
        })
    }

    fn replace(
        &self,
        py: Python<'_>,
        kind: u8,
        #[pyo3(from_py_with = number)] id: u64,
        fields: Vec<PyBackedBytes>,
    ) -> PyResult<bool> {
        guarded(|| {
            let (kind, (rest, last)) = (kind_of(kind)?, split(&fields)?);
            self.with(py, |store| store.replace(kind, id, &rest, last))
        })
    }

    /// The fields of consecutive records.
    fn records<'py>(
        &self,
        py: Python<'py>,
        kind: u8,
        #[pyo3(from_py_with = number)] first: u64,
        count: u64,
    ) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let kind = kind_of(kind)?;
            let records = self.with(py, |store| {
                let end = first.saturating_add(count).min(store.last(kind) + 1);
                (first..end)
                    .map(|id| store.get(kind, id, true))
                    .filter_map(Result::transpose)
                    .collect::<Result<Vec<_>>>()
            })?;
            let list = PyList::empty(py);
            for Record { mut fields, last } in records {
                fields.extend(last);
                list.append(PyTuple::new(py, fields.iter().map(|field| PyBytes::new(py, field)))?)?;
            }
            Ok(list)
        })
    }

    fn append_turn(
        &self,
        py: Python<'_>,
        reasoning: Text,
        action: Text,
        observation: Text,
        timestamp: f64,
        sync: bool,
    ) -> PyResult<u64> {
        guarded(|| {
            let fields: [&[u8]; 3] = [&reasoning.0, &action.0, &timestamp.to_le_bytes()];
            self.with(py, |store| store.append(RecordKind::Turn, &fields, &observation.0, sync))
        })
    }

    /// Consecutive turns. The observation of a masked turn is None, and not read.
    fn turns<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number)] first: u64,
        count: u64,
    ) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let turns = self.with(py, |store| {
                let end = first.saturating_add(count).min(store.last(RecordKind::Turn) + 1);
                let visible = store.masked_before();
                let turn = |id| Ok((id, store.get(RecordKind::Turn, id, id >= visible)?));
                (first..end).map(turn).collect::<Result<Vec<_>>>()
            })?;
            let list = PyList::empty(py);
            for (id, record) in turns {
                let Some(Record { fields, last }) = record else { continue };
                let text = |index: usize| self.text(py, fields.get(index).map_or(b"", Vec::as_slice));
                let timestamp =
                    fields.get(2).and_then(|field| field.as_slice().try_into().ok()).map(f64::from_le_bytes);
                let observation = last.map(|last| self.text(py, &last)).transpose()?;
                list.append(named!(
                    "recede.store._turn_store.StoredTurn",
                    py,
                    turn_id = id,
                    reasoning = text(0)?,
                    action = text(1)?,
                    observation,
                    timestamp
                )?)?;
            }
            Ok(list)
        })
    }

    /// The observation of a turn, masked or not.
    fn recall<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number)] turn: u64,
    ) -> PyResult<Option<Bound<'py, PyString>>> {
        guarded(|| {
            let record = self.with(py, |store| store.get(RecordKind::Turn, turn, true))?;
            record.and_then(|record| record.last).map(|last| self.text(py, &last)).transpose()
        })
    }

    fn mask_before(&self, py: Python<'_>, #[pyo3(from_py_with = number)] turn: u64) -> PyResult<u64> {
        guarded(|| self.with(py, |store| store.mask_before(turn)))
    }

    fn masked_before(&self, py: Python<'_>) -> PyResult<u64> {
        guarded(|| self.with(py, |store| Ok(store.masked_before())))
    }

    /// An upper bound of the bytes of all records.
    fn max_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        guarded(|| self.with(py, |store| store.max_bytes()))
    }

    /// The number of records of a kind.
    fn count(&self, py: Python<'_>, kind: u8) -> PyResult<u64> {
        guarded(|| {
            let kind = kind_of(kind)?;
            self.with(py, |store| Ok(store.last(kind)))
        })
    }

    /// Makes all changes up to the next sync one commit.
    fn hold(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| {
            self.with(py, |store| {
                store.hold();
                Ok(())
            })
        })
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.with(py, Store::sync))
    }

    fn checkpoint(&self, py: Python<'_>) -> PyResult<bool> {
        guarded(|| self.with(py, Store::checkpoint))
    }

    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.with(py, Store::compact))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let stats = self.with(py, |store| store.stats())?;
            let [turns, messages, summaries, sessions] = stats.records;
            named!(
                "recede.store._turn_store.StoreStats",
                py,
                turns,
                messages,
                summaries,
                sessions,
                masked_turns = stats.masked_before - 1,
                buckets = stats.buckets,
                overflow_pages = stats.overflow_pages,
                load = stats.load,
                splits = stats.splits,
                pages = stats.pages,
                free_pages = stats.free_pages,
                text_pages = stats.text_pages,
                commits = stats.commits,
                file_bytes = stats.file_bytes,
                log_bytes = stats.log_bytes
            )
        })
    }

    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let report = self.with(py, Store::verify)?;
            let fault = |fault: StoreFault| {
                named!("recede.store._turn_store.StoreFault", py, page = fault.page, what = fault.what)
            };
            let faults = report.faults.into_iter().map(fault).collect::<PyResult<Vec<_>>>()?;
            let [turns, messages, summaries, sessions] = report.records;
            named!(
                "recede.store._turn_store.StoreReport",
                py,
                turns,
                messages,
                summaries,
                sessions,
                longest_chain = report.longest_chain,
                faults = PyTuple::new(py, faults)?
            )
        })
    }

    /// Whether it can be written to after earlier failures.
    fn is_usable(&self, py: Python<'_>) -> PyResult<bool> {
        guarded(|| Ok(self.with(py, |store| Ok(store.is_usable())).unwrap_or(false)))
    }

    fn is_open(&self, py: Python<'_>) -> PyResult<bool> {
        guarded(|| Ok(self.process == process::id() && py.detach(|| self.held().is_some())))
    }

    /// Commits and closes the files. On errors it stays open, unless it is unusable.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| {
            if self.process != process::id() {
                return Ok(()); // it is the other process's to close
            }
            let closed = py.detach(|| {
                let mut held = self.held();
                let Some(store) = held.as_mut() else { return Ok(()) };
                let closed = store.close();
                if (store.is_closed() || !store.is_usable())
                    && let Some(store) = held.take()
                {
                    store.abandon();
                }
                closed
            });
            closed.map_err(|error| store_error(py, &self.path, &error))
        })
    }

    /// Closes the files without committing.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| {
            if self.process == process::id() {
                py.detach(|| self.held().take().map(Store::abandon));
            }
            Ok(())
        })
    }
}

impl PyStore {
    fn of(py: Python<'_>, path: PathBuf, opened: Result<Store>) -> PyResult<Self> {
        match opened {
            Ok(store) => Ok(PyStore { store: Mutex::new(Some(store)), path, process: process::id() }),
            Err(error) => Err(store_error(py, &path, &error)),
        }
    }

    pub(super) fn held(&self) -> std::sync::MutexGuard<'_, Option<Store>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn text<'py>(&self, py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
        to_str(py, text).map_err(|error| {
            if !error.is_instance_of::<PyUnicodeDecodeError>(py) {
                return error;
            }
            store_error(py, &self.path, &StoreError::new(StoreErrorKind::Damaged, "a text in it is not UTF-8"))
        })
    }

    /// Runs `work` on the store with the GIL released.
    pub(super) fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Store) -> Result<T> + Send,
    ) -> PyResult<T> {
        let done = self.with_any(py, |store| store.map(work)).ok_or_else(|| self.closed(py))?;
        done.map_err(|error| self.raised(py, &error))
    }

    /// Runs `work` with the store, or None if that is closed or belongs to another process.
    pub(super) fn with_any<T: Send>(&self, py: Python<'_>, work: impl FnOnce(Option<&mut Store>) -> T + Send) -> T {
        py.detach(|| if self.process == process::id() { work(self.held().as_mut()) } else { work(None) })
    }

    /// The error of a store that is closed or belongs to another process.
    pub(super) fn closed(&self, py: Python<'_>) -> PyErr {
        let kind = if self.process == process::id() { "closed" } else { "forked" };
        made_error(py, kind, &self.path, None)
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }

    pub(super) fn raised(&self, py: Python<'_>, error: &StoreError) -> PyErr {
        store_error(py, &self.path, error)
    }
}

/// All fields but the last, and that.
fn split(fields: &[PyBackedBytes]) -> PyResult<(Vec<&[u8]>, &[u8])> {
    let split = fields.split_last().map(|(last, rest)| (rest.iter().map(|field| &**field).collect(), &**last));
    split.ok_or_else(|| PyValueError::new_err("a record has at least one field"))
}

fn kind_of(kind: u8) -> PyResult<RecordKind> {
    let found = RecordKind::ALL.into_iter().find(|known| *known as u8 == kind);
    found.ok_or_else(|| PyValueError::new_err(format!("unknown kind of record {kind}")))
}

fn store_error(py: Python<'_>, path: &std::path::Path, error: &StoreError) -> PyErr {
    let mut path = path.as_os_str().to_os_string();
    path.push(match error.file {
        FileName::Store => "",
        FileName::Log => "-log",
        FileName::New => "-new",
    });
    made_error(py, error.kind.name(), std::path::Path::new(&path), Some(error))
}

/// Makes a `recede.StoreError`, which is defined in Python.
fn made_error(py: Python<'_>, kind: &str, path: &std::path::Path, error: Option<&StoreError>) -> PyErr {
    let make = || {
        let class = py.import("recede._errors")?.getattr("StoreError")?;
        let places = PyDict::new(py);
        places.set_item("path", path)?;
        if let Some(error) = error {
            places.set_item("page", error.page)?;
            places.set_item("what", error.what)?;
            if let Some(source) = &error.source {
                places.set_item("errno", source.raw_os_error())?;
                places.set_item("said", source.to_string())?;
            }
        }
        class.call((kind,), Some(&places))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}
