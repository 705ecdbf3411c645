//! Calls of Python's stable ABI that the safe wrapper lacks, each in a safe function. For what they gain see
//! docs/decisions/0004-unsafe.md.

use pyo3::exceptions::PyIndexError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::sync::critical_section::with_critical_section2;
use pyo3::types::{PyDict, PyList, PyString};

/// The first character of a str; None if it is empty.
pub(super) fn first_char(text: &Bound<PyString>) -> Option<u32> {
    // SAFETY: it is a str, and the index is within it, so neither call can fail.
    unsafe { (ffi::PyUnicode_GetLength(text.as_ptr()) > 0).then(|| ffi::PyUnicode_ReadChar(text.as_ptr(), 0)) }
}

/// `str.isascii`, called directly; its function is looked up once.
pub(super) fn is_ascii(text: &Bound<PyString>) -> bool {
    static FUNCTION: PyOnceLock<Option<ffi::PyCFunction>> = PyOnceLock::new();
    let py = text.py();
    let function = FUNCTION.get_or_init(py, || {
        let method = PyString::new(py, "").getattr("isascii").ok()?;
        // SAFETY: the last two calls are made only if the first finds what they take, a built-in function.
        unsafe {
            let method = method.as_ptr();
            let has_no_arguments =
                ffi::PyCFunction_Check(method) != 0 && ffi::PyCFunction_GetFlags(method) == ffi::METH_NOARGS;
            if has_no_arguments { ffi::PyCFunction_GetFunction(method) } else { None }
        }
    });
    let Some(function) = function else { return false };
    // SAFETY: a method of str without arguments takes a str and null, and returns a new reference, or null for an error.
    let answer = unsafe { Bound::from_owned_ptr_or_opt(py, function(text.as_ptr(), core::ptr::null_mut())) };
    answer.is_some_and(|answer| answer.is_truthy().unwrap_or(false))
}

/// A new str: `model` without its last character, and with the digits of `number` ending at `end`.
pub(super) fn with_number<'py>(
    model: &Bound<'py, PyString>,
    end: usize,
    mut number: usize,
) -> PyResult<Bound<'py, PyString>> {
    let (py, length) = (model.py(), model.len()?);
    if length < 3 || end >= length {
        return Err(PyIndexError::new_err("no place for a number")); // shorter strings may be shared
    }
    // SAFETY: a part of a str is a new reference to a str, or null for an error.
    let text = unsafe {
        let text = ffi::PyUnicode_Substring(model.as_ptr(), 0, length.cast_signed() - 1);
        Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked::<PyString>()
    };
    for place in (0..end).rev() {
        let digit = u32::from(b'0') + (number % 10) as u32;
        // SAFETY: this str is not shared yet; Python checks that and the index.
        if unsafe { ffi::PyUnicode_WriteChar(text.as_ptr(), place.cast_signed(), digit) } != 0 {
            return Err(PyErr::fetch(py));
        }
        number /= 10;
        if number == 0 {
            break;
        }
    }
    Ok(text)
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

/// Prefetches the first cache lines of an object that is probably not in the cache.
pub(super) fn prefetch(object: &Bound<PyAny>, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..bytes).step_by(64) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint dereferences nothing, so any address is valid.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(object.as_ptr().cast::<i8>().wrapping_add(offset)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (object, bytes);
}
