//! The end of long work whose caller wants no answer any more, such as after Ctrl-C.

use std::cell::Cell;
use std::panic::resume_unwind;

thread_local! {
    static IS_STOPPED: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
}

/// The reason why work unwinds that was stopped.
pub(crate) struct Stopped;

/// Runs work that ends where it calls [`check`] once `is_stopped` says so: it unwinds with [`Stopped`].
pub(crate) fn stoppable<T>(is_stopped: fn() -> bool, work: impl FnOnce() -> T) -> T {
    let _outer = Outer(IS_STOPPED.replace(Some(is_stopped)));
    work()
}

/// Ends stoppable work that was stopped; called for each request of a plan or a replay, and for each text that is examined.
pub(crate) fn check() {
    if IS_STOPPED.get().is_some_and(|is_stopped| is_stopped()) {
        resume_unwind(Box::new(Stopped));
    }
}

/// The function that outer work asks.
struct Outer(Option<fn() -> bool>);

impl Drop for Outer {
    fn drop(&mut self) {
        IS_STOPPED.set(self.0);
    }
}
