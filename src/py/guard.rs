//! Entry points: a panic is a bug of recede, and becomes an exception before it reaches Python.

use super::signals::raised;
use crate::stop::Stopped;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs the body of an entry point; a panic becomes a `RuntimeError`. Every function that Python can call begins with it
/// (`tests/contract/test_entrances.py`).
pub(super) fn guarded<T>(body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // The body changes only Python objects, which stay usable as after any other exception.
    panic::catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let ended = if panic.is::<Stopped>() { raised() } else { None };
        Err(ended.unwrap_or_else(|| fault(&*panic)))
    })
}

fn fault(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref().map(String::as_str));
    let place = PLACE.take().unwrap_or_else(|| "an unknown place".to_owned());
    PyRuntimeError::new_err(format!(
        "recede has a bug: {} ({place}); please report it with this message. What was passed in is unchanged",
        text.unwrap_or("a panic without words")
    ))
}

/// Records the location of a panic for `guarded`. It is printed only if a backtrace is requested: a library does not write to
/// the terminal of a program.
pub(super) fn note_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo| {
        PLACE.set(info.location().map(ToString::to_string));
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            print(info);
        }
    }));
}
