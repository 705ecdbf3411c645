//! Rewind points: where a fold can be taken back to.

use super::fold::{Fold, Point};
use super::outcome::{Masked, merged};
use super::units::shift;
use crate::outline::Outline;

/// There is at most one rewind point per this many messages; those after it are planned again.
const POINT_INTERVAL: usize = 64;

impl Fold {
    /// Enables rewinding, to no fewer than this many messages.
    pub fn enable_rewind(&mut self, messages: usize) {
        self.points.clear();
        self.masked_by_time.clear();
        self.cuts_by_time.clear();
        self.add_point(messages);
    }

    fn add_point(&mut self, messages: usize) {
        let (masked, cuts, moves) = (self.masked_by_time.len(), self.cuts_by_time.len(), self.moves.len());
        self.points.push(Point { messages, masked, cuts, moves, core: self.core.clone() });
    }

    /// Adds a rewind point after a move, which needs this many messages, if the last one is far enough back.
    pub(super) fn add_due_point(&mut self, messages: usize) {
        if self.points.last().is_some_and(|last| messages >= last.messages + POINT_INTERVAL) {
            self.add_point(messages);
        }
    }

    /// Restores the last rewind point for this many messages; the caller repeats the requests after it. Returns the messages that
    /// the point needs, and the observations that are no longer masked.
    pub fn rewind(&mut self, outline: &Outline, messages: usize) -> (usize, Vec<Masked>) {
        while self.points.len() > 1 && self.points.last().is_some_and(|point| point.messages > messages) {
            self.points.pop();
        }
        let Some(Point { messages, masked, cuts, moves, core }) = self.points.last() else { return (0, vec![]) };
        self.moves.truncate(*moves);
        self.core = core.clone();
        // Later tools get the numbers of those that were dropped.
        self.core.aging.truncate_tools(outline.name_count());
        self.excluded.truncate(outline.name_count());
        self.chars_before.truncate(self.core.aging.messages());
        let messages = *messages;
        let unmasked = undone(&mut self.masked, self.masked_by_time.split_off(*masked), outline);
        let uncut = undone(&mut self.cuts, self.cuts_by_time.split_off(*cuts), outline);
        for changes in [&unmasked, &uncut] {
            shift(&mut self.chars_before, outline, changes, usize::saturating_add);
        }
        (messages, merged(unmasked, uncut))
    }
}

/// Takes these results out of a list of changes, in order. Returns those of messages that are still there.
fn undone(changes: &mut Vec<Masked>, mut undone: Vec<u32>, outline: &Outline) -> Vec<Masked> {
    undone.sort_unstable();
    let Some(first) = undone.first() else { return vec![] };
    let first = changes.partition_point(|one| one.result < *first);
    let is_undone = |one: &mut Masked| undone.binary_search(&one.result).is_ok();
    let is_here = |one: &Masked| (one.result as usize) < outline.results.len();
    changes.extract_if(first.., is_undone).filter(is_here).collect()
}
