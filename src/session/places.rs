//! Positions of messages: among all that were appended, in the view, and in memory.
//!
//! ```text
//! appended  0 1 2 3 4 5 6 7 8 9      all of them
//! in view           s 4 5 6 7 8 9    `s`: what the last compaction left of the messages before it
//! in log                  6 7 8 9    those before are evicted
//! ```

use super::Session;

/// The index of a message among all that were appended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Appended(pub usize);

/// The index of a message in the view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InView(pub usize);

/// The index of a message in memory, as the outline of the log has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InLog(pub usize);

/// The origin of a message of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A message as it was appended.
    Appended(Appended),
    /// The rendering of an appended message, or that message in a resumed session.
    Rendered(Appended),
    /// A summary.
    New,
}

impl Origin {
    /// The appended message; None of a summary.
    pub fn appended(self) -> Option<Appended> {
        match self {
            Origin::Appended(message) | Origin::Rendered(message) => Some(message),
            Origin::New => None,
        }
    }

    /// The index of the appended message and 1; 0 without one.
    pub fn source(self) -> usize {
        self.appended().map_or(0, |message| message.0 + 1)
    }

    pub fn of_stored(source: usize) -> Self {
        source.checked_sub(1).map_or(Origin::New, |index| Origin::Rendered(Appended(index)))
    }
}

/// Converts positions.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// Messages before the last compaction.
    compacted: usize,
    /// Messages that it left.
    left: usize,
    /// Evicted messages of the view.
    evicted: usize,
}

impl Places {
    /// The appended message of a message in the view; None for what the last compaction left.
    pub fn appended(self, message: InView) -> Option<Appended> {
        Some(Appended(message.0.checked_sub(self.left)? + self.compacted))
    }

    /// The message in the view of an appended one; None before the last compaction.
    pub fn in_view(self, message: Appended) -> Option<InView> {
        Some(InView(message.0.checked_sub(self.compacted)? + self.left))
    }

    /// The message in memory of a message in the view; None if it is evicted.
    pub fn in_log(self, message: InView) -> Option<InLog> {
        message.0.checked_sub(self.evicted).map(InLog)
    }

    /// A message of the view that is known to be in memory.
    pub fn held(self, message: InView) -> InLog {
        InLog(message.0.saturating_sub(self.evicted))
    }

    /// The position in the view of a message in memory.
    pub fn of_log(self, message: InLog) -> InView {
        InView(self.evicted + message.0)
    }
}

impl Session {
    pub(super) fn places(&self) -> Places {
        Places { compacted: self.past.end(), left: self.origins.len(), evicted: self.log.base.messages }
    }

    /// The position after the last message of the view.
    pub(super) fn view_end(&self) -> InView {
        InView(self.log.end())
    }

    pub(super) fn origin(&self, message: InView) -> Origin {
        self.places().appended(message).map_or_else(|| self.origins[message.0], Origin::Appended)
    }

    /// An appended message; None if it is not in memory.
    pub(super) fn message_in_memory(&self, message: usize) -> Option<&[u8]> {
        match self.places().in_view(Appended(message)) {
            None => self.past.message(message),
            Some(place) => Some(self.log.message(self.places().in_log(place)?.0)),
        }
    }
}
