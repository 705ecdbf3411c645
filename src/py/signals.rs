//! Ctrl-C in long work.

use crate::stop::stoppable;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// How long work runs between two looks at Python's signals.
const PAUSE: Duration = Duration::from_millis(20);

/// How often it asks between two looks at the clock, each of which costs as much as a small request.
const ASKED: u32 = 16;

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    static COUNT: Cell<u32> = const { Cell::new(0) };
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs work that a signal may end; `guarded` raises what the signal's handler raised.
pub(super) fn until_signal<T>(work: impl FnOnce() -> T) -> T {
    LAST.set(Some(Instant::now()));
    stoppable(has_signal, work)
}

/// The exception that ended the work of this thread.
pub(super) fn raised() -> Option<PyErr> {
    RAISED.take()
}

fn has_signal() -> bool {
    let count = COUNT.get().wrapping_add(1);
    COUNT.set(count);
    if !count.is_multiple_of(ASKED) || LAST.get().is_some_and(|last| last.elapsed() < PAUSE) {
        return false;
    }
    let error = Python::attach(|py| py.check_signals().err());
    LAST.set(Some(Instant::now()));
    let is_raised = error.is_some();
    RAISED.set(error);
    is_raised
}
