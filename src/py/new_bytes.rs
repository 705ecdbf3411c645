//! New `bytes` objects, written in place with the GIL released. `PyBytes::new_with` would fill them with zeros first, and
//! hold the GIL until the last byte is written. docs/decisions/0004 has what this gains.

use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::mem::MaybeUninit;

/// A new `bytes` of this length, which `write` fills; it returns the number of bytes written.
///
/// # Panics
/// If those are not all of them.
pub(super) fn bytes(
    py: Python<'_>,
    length: usize,
    write: impl FnOnce(&mut [MaybeUninit<u8>]) -> usize + Send,
) -> PyResult<Bound<'_, PyBytes>> {
    let size = ffi::Py_ssize_t::try_from(length).map_err(|_| PyOverflowError::new_err("the view is too long"))?;
    // SAFETY: without a source, PyBytes_FromStringAndSize returns a new object with room for `size` bytes, or NULL with an
    // exception set, as `from_owned_ptr_or_err` requires.
    let object = unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
        Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyBytes>()
    };
    // SAFETY: the room is `length` bytes long. The object is not shared yet, so nothing else accesses it, with or without the
    // GIL. MaybeUninit bytes need not be initialized.
    let room = unsafe {
        let start = ffi::PyBytes_AsString(object.as_ptr()).cast::<MaybeUninit<u8>>();
        std::slice::from_raw_parts_mut(start, length)
    };
    let written = py.detach(|| write(room));
    assert_eq!(written, length, "bytes of the view that were never written would be shown");
    Ok(object)
}
