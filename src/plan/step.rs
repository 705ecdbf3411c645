//! Steps: what a request masks, cuts and hides in the view. A step is decided of a state that stays as it is, so that a session can
//! show the step of a request that is not made yet.

use super::hidden::Hiding;
use super::masked::{Masked, Move};
use super::units::{Bill, message_of};
use crate::outline::Outline;

/// What follows the messages of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// A request that was answered.
    Past,
    /// The current request.
    Now,
    /// No request, since an answer was the last.
    Answered,
}

/// The changes of a request in the view.
#[derive(Debug, Default, Clone)]
pub(crate) struct Step {
    /// The observations that it masks, in order.
    pub masked: Vec<Masked>,
    /// The observations that it cuts, in order.
    pub cuts: Vec<Masked>,
    /// The messages that it hides, if any.
    pub hiding: Option<Box<Hiding>>,
    /// The cost of the view after it.
    pub cost: usize,
    /// The move, if it changes what was sent before.
    pub moved: Option<Move>,
    pub boundary: usize,
    /// Whether it changes more than the rule of the boundary does.
    pub is_forced: bool,
    /// Whether the view is over the limit after it.
    pub is_over: bool,
    /// Whether it is, although all that may be hidden is.
    pub is_least: bool,
    /// What the request is charged.
    pub(super) bill: Option<Bill>,
    /// Characters that a summary would have saved, if it had been made.
    pub(super) wasted: usize,
}

impl Step {
    /// The observations that it changes: those that it masks, then those that it cuts.
    pub(super) fn changes(&self) -> impl Iterator<Item = &Masked> + Clone {
        self.masked.iter().chain(&self.cuts)
    }

    /// The first observation that it changes.
    pub(super) fn first_change(&self) -> Option<u32> {
        [self.masked.first(), self.cuts.first()].into_iter().flatten().map(|one| one.result).min()
    }

    /// The first message that it changes; of one that hides messages the first of all.
    pub(super) fn first_edited(&self, outline: &Outline) -> Option<usize> {
        if self.hiding.is_some() { Some(0) } else { self.first_change().map(|result| message_of(outline, result)) }
    }

    /// Whether the view stays as it is.
    pub(crate) fn changes_nothing(&self) -> bool {
        self.masked.is_empty() && self.cuts.is_empty() && self.hiding.is_none()
    }

    /// The step that leaves a view of this cost as it is.
    pub(crate) fn at_rest(cost: usize) -> Self {
        Step { cost, ..Step::default() }
    }
}

/// The cut of an observation.
pub(super) fn cut_of(cuts: &[Masked], result: u32) -> Option<&Masked> {
    cuts.binary_search_by_key(&result, |one| one.result).ok().map(|place| &cuts[place])
}

/// Characters that the cut of an observation removed.
pub(super) fn cut_chars(cuts: &[Masked], result: u32) -> usize {
    cut_of(cuts, result).map_or(0, |cut| cut.removed)
}

/// The mask of an observation, which removes less if that is cut already; None if it removes nothing more.
pub(super) fn after_cut(cuts: &[Masked], masked: Option<Masked>) -> Option<Masked> {
    let mut masked = masked?;
    masked.removed = masked.removed.saturating_sub(cut_chars(cuts, masked.result));
    (masked.removed > 0).then_some(masked)
}
