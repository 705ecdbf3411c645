//! The view of a session: what is masked in it, and the first message that changed.

pub mod marks;
mod output;

pub use output::{Chunks, Mask, ViewMessage};

use crate::outline::Outline;
use crate::plan::{Masked, Move, Peek, Step, masked_in, shown, with_cuts};
use crate::scan::scan;
use crate::session::base::SentMark;
use crate::session::log::Log;
use crate::session::stored::index;
use crate::session::{Failure, InLog, InView, Result, Session};
use crate::store::Store;
use std::collections::HashMap;
use std::ops::Range;

/// The last view, and what its readers have cached. Results are indexed from the first in memory.
#[derive(Debug, Default, Clone)]
pub struct View {
    /// Whether it has the masks of the fold and the tentative ones; else nothing is masked.
    pub is_masked: bool,
    /// Masked for the current request, but not for good before its answer.
    pub tentative: Vec<Masked>,
    pub tentative_move: Option<Move>,
    pub tentative_boundary: Option<usize>,
    /// The first message that changed since the chunks, the list, and the masks were read last.
    pub chunks_from: InView,
    pub list_from: InView,
    pub masks_from: InView,
    /// The ends of the closed chunks: message, byte.
    pub chunk_ends: Vec<(InView, usize)>,
    /// Whether no message was appended since; and how many messages it has.
    pub is_current: bool,
    end: InView,
    /// Observations, by result and whether that is a cut, that are masked or cut and were not in the view before, or the reverse; and
    /// of the evicted ones the first message, with its byte in the view.
    flipped: HashMap<(u32, bool), Masked>,
    first_evicted_flip: Option<(InView, usize)>,
    /// The first message of the most recent change, and its byte if known.
    changed: Option<(InView, Option<usize>)>,
    /// The marks of ours and the newest one, which is the first.
    pub marks: Vec<SentMark>,
    /// Whether it is masked up to the window, whatever the boundary; and the boundary before and now, if a later stage planned it.
    pub is_masked_to_window: bool,
    pub planned_boundaries: Option<(usize, usize)>,
}

/// Sizes of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages.
    pub messages: usize,
    /// Characters.
    pub chars: usize,
    /// Masked observations.
    pub masked: usize,
}

impl Session {
    pub(in crate::session) fn show_raw(&mut self) {
        if self.view.is_masked {
            self.flip_masked();
            let tentative = core::mem::take(&mut self.view.tentative);
            self.flip(&tentative);
        }
        self.view.tentative.clear();
        self.view.is_masked = false;
    }

    /// Masks what the fold masks, and what it would mask now.
    pub(in crate::session) fn show_peek(&mut self, peek: Option<Peek>) {
        let boundary = peek.is_some().then(|| self.log.fold.next_boundary(&self.policy));
        let (tentative, step) = peek.map_or((vec![], None), |peek| (peek.masked, Some(peek.step)));
        self.show_masked(tentative, step);
        self.view.tentative_boundary = boundary;
    }

    /// Masks and cuts what the fold does, and what this step would.
    pub(in crate::session) fn show_step(&mut self, step: &Step) {
        let (changes, boundary) = (step.changes(), step.boundary);
        self.view.tentative_boundary = None;
        let is_moved = !changes.is_empty();
        self.show_masked(changes, step.moved);
        self.view.tentative_boundary = is_moved.then_some(boundary);
    }

    pub(in crate::session) fn show_masked(&mut self, tentative: Vec<Masked>, step: Option<Move>) {
        if !self.view.is_masked {
            self.flip_masked();
        }
        if tentative != self.view.tentative {
            let before = core::mem::take(&mut self.view.tentative);
            self.flip(&before);
            self.flip(&tentative);
        }
        (self.view.tentative, self.view.tentative_move) = (tentative, step);
        (self.view.planned_boundaries, self.view.tentative_boundary) = (None, None);
        self.view.is_masked = true;
    }

    fn flip_masked(&mut self) {
        let (masked, cuts) = (core::mem::take(&mut self.log.fold.masked), core::mem::take(&mut self.log.fold.cuts));
        self.flip(&masked);
        self.flip(&cuts);
        (self.log.fold.masked, self.log.fold.cuts) = (masked, cuts);
    }

    /// Masks these observations for good after a request. They replace the tentative masks, from which they differ after a
    /// request for a cold cache.
    pub(in crate::session) fn commit_masks(&mut self, moved: &[Masked]) {
        let tentative = core::mem::take(&mut self.view.tentative);
        if moved != tentative {
            self.flip_if_masked(&tentative);
            self.flip_if_masked(moved);
        }
    }

    /// [`Session::flip`], if the view has masks.
    pub(in crate::session) fn flip_if_masked(&mut self, masked: &[Masked]) {
        if self.view.is_masked {
            self.flip(masked);
        }
    }

    /// Renders the last view.
    pub(in crate::session) fn last_view(&self) -> Vec<u8> {
        let messages = self.view.end.0;
        let layers = [&self.log.fold.cuts, &self.log.fold.masked, &self.view.tentative];
        let now = || layers.into_iter().flatten().filter(|_| self.view.is_masked);
        let flipped = &self.view.flipped;
        let stayed: HashMap<_, _> = now().map(|one| (layer_of(one), one)).collect();
        let before = flipped.iter().filter(|(layer, _)| !stayed.contains_key(*layer)).map(|(_, one)| one);
        let before =
            before.chain(stayed.iter().filter(|(layer, _)| !flipped.contains_key(*layer)).map(|(_, one)| *one));
        let (mut cuts, mut masked): (Vec<Masked>, Vec<Masked>) = before.cloned().partition(Masked::is_clipped);
        cuts.sort_unstable_by_key(|one| one.result);
        masked.sort_unstable_by_key(|one| one.result);
        let masked = shown(cuts, masked);
        self.render_all(messages, masked_in(&masked, 0..self.log.outline.results_before(messages)))
    }

    /// Shows a log that replaced the one of the last view, which is not known of a stored session.
    pub(in crate::session) fn restart_view(&mut self, last_view: Option<&Vec<u8>>) {
        match last_view {
            Some(last_view) => self.changed_between(last_view, &self.render_all(self.log.len(), &[])),
            None => self.view.changed = None,
        }
        self.view.is_masked = false;
        self.view.tentative.clear();
        self.view.flipped.clear();
        self.invalidate_from(InView(0));
        self.record_change();
    }

    /// The next view is the first that is shown.
    pub(in crate::session) fn forget_shown(&mut self) {
        (self.view.end, self.view.is_current) = (InView(0), false);
    }

    /// Rewinds the log to this many messages.
    pub(in crate::session) fn rewind_view(&mut self, messages: usize) {
        let tentative = core::mem::take(&mut self.view.tentative);
        self.flip_if_masked(&tentative);
        let unmasked = self.log.rewind(&self.policy, messages);
        let (end, results) = (self.view_end(), self.log.outline.results.len());
        self.view.flipped.retain(|(result, _), _| (*result as usize) < results);
        if self.view.end > end {
            self.view.end = end;
            self.view.changed = Some((end, None));
        }
        self.flip_if_masked(&unmasked);
        self.invalidate_from(end);
        self.view.is_current = false;
    }

    /// Flips the masks of these observations in the view.
    pub(in crate::session) fn flip(&mut self, masked: &[Masked]) {
        let (results, places) = (&self.log.outline.results, self.places());
        let message = |one: &Masked| places.of_log(InLog(results[one.result as usize].message as usize));
        for one in masked.iter().filter(|one| message(one) < self.view.end) {
            let layer = layer_of(one);
            if self.view.flipped.remove(&layer).is_none() {
                self.view.flipped.insert(layer, one.clone());
            }
        }
        if let Some(first) = masked.first().map(message) {
            self.invalidate_from(first);
        }
    }

    /// Readers must read the view again from this message on.
    pub(in crate::session) fn invalidate_from(&mut self, message: InView) {
        self.view.chunks_from = self.view.chunks_from.min(message);
        self.view.list_from = self.view.list_from.min(message);
        self.view.masks_from = self.view.masks_from.min(message);
    }

    /// Records the first message that changed in the view that was just made.
    pub(in crate::session) fn record_change(&mut self) {
        let flipped = self.view.flipped.keys().map(|(result, _)| self.message_of(*result)).min();
        if let Some((message, byte)) = self.view.first_evicted_flip.take() {
            self.view.changed = Some((message, Some(byte)));
        } else if let Some(first) = flipped {
            self.view.changed = Some((first, None));
        }
        self.view.flipped.clear();
        self.view.end = self.view_end();
        self.view.is_current = true;
    }

    /// Prepares for the eviction of the first messages in memory: where they begin in the view is final, and noted while it
    /// can be computed.
    pub(in crate::session) fn evict_from_view(&mut self, count: usize) {
        let first_result = self.log.outline.results_before(count) as u32;
        let flipped = self.view.flipped.keys().map(|(result, _)| *result).filter(|result| *result < first_result);
        let first = flipped.map(|result| self.message_of(result)).min();
        let before = self.view.first_evicted_flip.map(|(message, _)| message);
        if let Some(first) = first.filter(|first| before.is_none_or(|before| *first < before)) {
            self.view.first_evicted_flip = Some((first, self.byte_of(first)));
        }
        if let Some((message, None)) = self.view.changed
            && message < self.places().of_log(InLog(count))
        {
            self.view.changed = Some((message, Some(self.byte_of(message))));
        }
        let kept = |one: Masked| Some(Masked { result: one.result.checked_sub(first_result)?, ..one });
        let View { flipped, tentative, .. } = &mut self.view;
        *flipped = flipped.drain().filter_map(|(_, one)| kept(one)).map(|one| (layer_of(&one), one)).collect();
        *tentative = tentative.drain(..).filter_map(kept).collect();
    }

    /// The byte of the view at which a message in memory begins.
    fn byte_of(&self, message: InView) -> usize {
        // The comma or bracket before a message is counted with it.
        self.log.base.view_bytes + self.bytes_between(self.places().of_log(InLog(0)), message) + 1
    }

    /// The message of a result in memory.
    fn message_of(&self, result: u32) -> InView {
        self.places().of_log(InLog(self.log.outline.results[result as usize].message as usize))
    }

    /// Bytes of messages in the view, each with the comma or bracket before it.
    fn bytes_between(&self, start: InView, end: InView) -> usize {
        if start < end { self.render(start, end).len() } else { 0 }
    }

    /// Records the first message that differs between two whole views; if none does, the earlier change remains.
    fn changed_between(&mut self, before: &[u8], after: &[u8]) {
        // Both were written here, so they are valid.
        let [before_outline, after_outline] = [before, after].map(|view| scan(view, true).unwrap_or_default());
        let (old, new) = (&before_outline.spans, &after_outline.spans);
        let start = |outline: &Outline, view: &[u8], message: usize| {
            outline.spans.get(message).map_or(view.len(), |message| message.start)
        };
        let same = old.iter().zip(new).take_while(|(old, new)| old.of(before) == new.of(after)).count();
        if same < old.len() {
            self.view.changed = Some((InView(same), Some(start(&after_outline, after, same))));
        } else if let Some((message, byte @ None)) = &mut self.view.changed {
            *byte = Some(start(&before_outline, before, message.0));
        }
    }

    /// The first message of the most recent change, and its byte in the view.
    #[must_use]
    pub fn changed(&self) -> Option<(usize, usize)> {
        let (message, byte) = self.view.changed?;
        let before = || {
            if self.log.base.messages > 0 {
                return self.byte_of(message);
            }
            let valid = message.min(self.view.chunks_from);
            let chunks = self.view.chunk_ends.partition_point(|(end, _)| *end <= valid);
            let (start, bytes) = chunks.checked_sub(1).map_or((InView(0), 0), |last| self.view.chunk_ends[last]);
            bytes + self.bytes_between(start, message) + 1
        };
        Some((message.0, byte.unwrap_or_else(before)))
    }

    /// The masked observations of these messages in memory, and those that are cut.
    pub(in crate::session) fn masked(&self, start: usize, end: usize) -> Vec<Masked> {
        let outline = &self.log.outline;
        let results = outline.results_before(start)..outline.results_before(end);
        if !self.view.is_masked {
            return with_cuts(outline, vec![], results);
        }
        let layers = [&self.log.fold.cuts, &self.log.fold.masked, &self.view.tentative];
        let [cuts, masked, tentative] = layers.map(|layer| masked_in(layer, results.clone()).to_vec());
        with_cuts(outline, shown(shown(cuts, masked), tentative), results)
    }

    /// Renders messages in memory, each with the comma or bracket before it.
    pub(in crate::session) fn render(&self, start: InView, end: InView) -> Vec<u8> {
        let [start, end] = [start, end].map(|message| self.places().held(message).0);
        let mut out = vec![];
        self.log.render(&self.policy, (start, end), &self.masked(start, end), &[], &mut out);
        out
    }

    /// Renders a message in memory.
    pub(in crate::session) fn rendered_message(&self, InLog(message): InLog) -> Vec<u8> {
        let mut shown = vec![];
        self.log.render(&self.policy, (message, message + 1), &self.masked(message, message + 1), &[], &mut shown);
        shown.split_off(1)
    }

    /// Renders the first messages as a whole view, with these observations masked.
    fn render_all(&self, messages: usize, masked: &[Masked]) -> Vec<u8> {
        let mut view = vec![];
        let masked = with_cuts(&self.log.outline, masked.to_vec(), 0..self.log.outline.results_before(messages));
        self.log.render(&self.policy, (0, messages), &masked, &[], &mut view);
        view.push(b']');
        view
    }

    /// The cost of the current view.
    #[must_use]
    pub fn view_cost(&self) -> usize {
        if !self.view.is_masked {
            return self.log.cost;
        }
        self.log.with_context(&self.policy, |context| self.log.fold.cost_after(context, &self.view.tentative))
    }

    /// Sizes of the current view.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let Log { chars, fold, .. } = &self.log;
        let messages = self.log.end();
        let before = self.compaction.as_ref().map_or(0, |compaction| compaction.masked.len());
        if !self.view.is_masked {
            return Counts { messages, chars: *chars, masked: before };
        }
        let tentative: usize = self.view.tentative.iter().map(|one| one.removed).sum();
        let masked = before + fold.masked_count() + self.view.tentative.iter().filter(|one| one.is_masked()).count();
        Counts { messages, chars: chars.saturating_sub(fold.removed() + tentative), masked }
    }

    /// How many moves of the boundary only the store has, and how many there are.
    #[must_use]
    pub fn move_counts(&self) -> (usize, usize) {
        let (moves, step) = self.shown_moves();
        (self.stored.moves, self.stored.moves + moves.len() + usize::from(step.is_some()))
    }

    /// Moves of the boundary, in the store and in memory.
    ///
    /// # Errors
    /// Those of the store.
    pub fn moves(&self, places: Range<usize>, store: Option<&mut Store>) -> Result<Vec<Move>> {
        let stored = self.stored.moves;
        let mut found = vec![];
        if places.start < stored {
            found = index::moves(store.ok_or(Failure::Closed)?, places.start..places.end.min(stored))?;
        }
        let (moves, step) = self.shown_moves();
        let here = moves.iter().copied().chain(step).take(places.end.saturating_sub(stored));
        found.extend(here.skip(places.start.saturating_sub(stored)));
        Ok(found)
    }

    /// The moves since this was called last. Those before a compaction are no longer counted.
    ///
    /// # Errors
    /// Errors of the store; the next call returns the moves.
    pub fn new_moves(&mut self, store: Option<&mut Store>) -> Result<Vec<Move>> {
        let (known, end) = (self.known_moves, self.move_counts().1);
        let moves = if known < end { self.moves(known..end, store)? } else { vec![] };
        self.known_moves = end;
        Ok(moves)
    }

    pub(in crate::session) fn shown_moves(&self) -> (&[Move], Option<Move>) {
        if !self.view.is_masked || !self.policy.remembers() {
            return (&[], None);
        }
        (&self.log.fold.moves, self.view.tentative_move.filter(|_| !self.view.tentative.is_empty()))
    }
}

/// The layer of a change: a result may be cut, and masked over that.
fn layer_of(one: &Masked) -> (u32, bool) {
    (one.result, one.is_clipped())
}
