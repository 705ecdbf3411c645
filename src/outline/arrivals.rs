//! Results that arrived as other texts: cut, or as placeholders.

use super::Outline;
use crate::clip::Clip;
use core::ops::Range;

impl Outline {
    /// Cuts a result, after which its text has this many newlines, and weighs so much.
    pub(crate) fn cut(&mut self, result: usize, clip: Clip, newlines: u32, weight: usize) {
        let removed = clip.removed();
        self.results[result].newlines = newlines;
        self.change(result, self.results[result].chars - removed, weight);
        self.cuts.insert(self.cuts_before(result), (result as u32, clip));
    }

    /// Makes a result a placeholder of so many characters, which weighs so much.
    pub(crate) fn clear(&mut self, result: usize, chars: usize, weight: usize) {
        let removed = self.results[result].chars - chars;
        self.change(result, chars, weight);
        self.cleared.insert(self.cleared_before(result), (result as u32, removed));
    }

    /// Gives a result a text of so many characters, which weighs so much.
    fn change(&mut self, result: usize, chars: usize, weight: usize) {
        let result = &mut self.results[result];
        let message = &mut self.messages[result.message as usize];
        message.chars = message.chars - result.chars + chars;
        message.weight = message.weight - result.weight + weight;
        (result.chars, result.weight) = (chars, weight);
    }

    pub(super) fn cleared_before(&self, result: usize) -> usize {
        self.cleared.partition_point(|(other, _)| (*other as usize) < result)
    }

    /// Those of these results that arrived as placeholders.
    #[inline]
    pub(crate) fn cleared_of(&self, results: Range<usize>) -> &[(u32, usize)] {
        if self.cleared.is_empty() {
            return &[];
        }
        &self.cleared[self.cleared_before(results.start)..self.cleared_before(results.end)]
    }

    /// Whether a result arrived as a placeholder.
    pub(crate) fn is_cleared(&self, result: usize) -> bool {
        !self.cleared_of(result..result + 1).is_empty()
    }

    pub(super) fn cuts_before(&self, result: usize) -> usize {
        self.cuts.partition_point(|(other, _)| (*other as usize) < result)
    }

    /// The cuts of these results.
    #[inline]
    pub(crate) fn cuts_of(&self, results: Range<usize>) -> &[(u32, Clip)] {
        if self.cuts.is_empty() {
            return &[]; // nearly always, and this is asked for every result
        }
        &self.cuts[self.cuts_before(results.start)..self.cuts_before(results.end)]
    }

    /// The cut of a result, if it was cut when it arrived.
    pub(crate) fn cut_of(&self, result: usize) -> Option<&Clip> {
        self.cuts_of(result..result + 1).first().map(|(_, clip)| clip)
    }

    /// Characters that these results had more before they arrived as other texts.
    #[inline]
    pub fn arrival_chars(&self, results: Range<usize>) -> usize {
        let has_none = self.cuts.is_empty() && self.cleared.is_empty();
        if has_none { 0 } else { self.some_arrival_chars(results) }
    }

    #[cold]
    fn some_arrival_chars(&self, results: Range<usize>) -> usize {
        let cut: usize = self.cuts_of(results.clone()).iter().map(|(_, clip)| clip.removed()).sum();
        cut + self.cleared_of(results).iter().map(|(_, removed)| removed).sum::<usize>()
    }
}
