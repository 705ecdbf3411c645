//! Calls of Python's stable ABI that the safe wrapper lacks, each in a safe function. For what they gain see
//! docs/decisions/0004-unsafe.md.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section2;
use pyo3::types::{PyDict, PyList, PyString};

/// The first character of a str; None if it is empty.
pub(super) fn first_char(text: &Bound<PyString>) -> Option<u32> {
    // SAFETY: it is a str, and the index is within it, so neither call can fail.
    unsafe { (ffi::PyUnicode_GetLength(text.as_ptr()) > 0).then(|| ffi::PyUnicode_ReadChar(text.as_ptr(), 0)) }
}

/// The dict of the interpreter for extensions.
pub(super) fn interpreter_dict(py: Python<'_>) -> Option<Bound<'_, PyDict>> {
    // SAFETY: this thread is attached, so it has an interpreter; the dict is borrowed from that, or null.
    unsafe {
        let dict = ffi::PyInterpreterState_GetDict(ffi::PyInterpreterState_Get());
        Some(Bound::from_borrowed_ptr_or_opt(py, dict)?.cast_into_unchecked())
    }
}

/// The first index, from this one on, at which two lists have different objects; their common length if there is none.
pub(super) fn first_not_identical(old: &Bound<PyList>, new: &Bound<PyList>, from: usize) -> usize {
    // Without a GIL another thread could shorten a list meanwhile; with one this is no lock.
    with_critical_section2(old, new, || {
        let end = old.len().min(new.len());
        // SAFETY: both are lists that have the index, so no call can fail; the borrowed elements are only compared.
        let is_identical = |index: isize| unsafe {
            ffi::PyList_GetItem(old.as_ptr(), index) == ffi::PyList_GetItem(new.as_ptr(), index)
        };
        (from..end).find(|index| !is_identical(index.cast_signed())).unwrap_or(end)
    })
}
