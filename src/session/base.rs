//! The rest of evicted messages: the state with which the session continues without them.

use super::places::InView;
use crate::plan::{BlockPlace, FoldState};

/// State of the evicted messages, and totals of the whole session.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Base {
    /// Evicted messages.
    pub messages: usize,
    /// Bytes of these messages in the view, each with a comma.
    pub view_bytes: usize,
    /// Characters of the session.
    pub chars: usize,
    /// The cost.
    pub cost: usize,
    /// See `GrowingPairs::counts`.
    pub counts: (usize, usize),
    /// Taken when the session resumes.
    pub fold: FoldState,
    /// Cache marks of the evicted messages.
    pub marks: EvictedMarks,
}

/// A mark of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMark {
    /// The message.
    pub message: InView,
    /// The block in that.
    pub block: usize,
    /// The value.
    pub value: Vec<u8>,
}

/// Marks of evicted messages.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct EvictedMarks {
    /// The block of the last masked result.
    pub pin: Option<BlockPlace>,
    /// The newest mark.
    pub newest: Option<SentMark>,
}
