//! What a session shows: its view, in chunks or as what changed in a list, from the first message on that it shows
//! otherwise than before.

use super::History;
use super::let_go::write_shown;
use super::session::Session;
use crate::outline::Outline;
use crate::plan::{Masked, Move, Peek};
use crate::scan::scan;
use crate::source::Bytes;
use crate::splice::{masked_in, splice_stretch};
use crate::store::{self, Store};
use std::collections::HashMap;

/// A chunk of a view is done when it has about so many bytes: large enough that a view of 40 MB is some hundred of
/// them, small enough that what is open is copied in microseconds.
const CHUNK_BYTES: usize = 64 << 10;

/// A placeholder in a view takes about so many bytes.
const PLACEHOLDER_BYTES: usize = 48;

/// Which view was shown last, and what of it its readers have. Messages are counted from the first of the session, those
/// that were let go too; results from the first that is there.
#[derive(Debug, Default)]
pub struct Shown {
    pub form: Form,
    /// Masked in the view of a request that is being made; not fixed before the answer.
    pub tentative: Vec<Masked>,
    tentative_move: Option<Move>,
    /// The first message that changed since the chunks, and the list, were read last.
    chunks_from: usize,
    list_from: usize,
    /// Where each chunk that is done ends.
    chunk_ends: Vec<usize>,
    /// Whether the view is still that of the history; and how many messages it was of.
    pub is_current: bool,
    messages: usize,
    /// Observations that are shown otherwise than in the view before, by their result; and of those that were let go the
    /// first message, with its byte in the view.
    flipped: HashMap<u32, Masked>,
    flipped_and_gone: Option<(usize, usize)>,
    /// From which message on the view changed last, and its byte where that is known already.
    changed: Option<(usize, Option<usize>)>,
}

/// What a view is made of.
#[derive(Debug, Default)]
pub enum Form {
    /// The messages as they are.
    #[default]
    Raw,
    /// With what the fold masks, and what is masked tentatively.
    Masked,
    /// A later stage gave it: its bytes, what it counts, and how the boundary of the first stage came to where it is.
    Planned(Vec<u8>, Counts, Vec<Move>),
}

/// What a view counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Messages.
    pub messages: usize,
    /// Characters.
    pub chars: usize,
    /// Masked observations.
    pub masked: usize,
}

/// From which message on the list of a view changed, and what stands there instead of messages that hold masked
/// observations.
pub type Changes = (usize, Vec<(usize, Vec<u8>)>);

impl History {
    pub(super) fn show_raw(&mut self) {
        match self.shown.form {
            Form::Raw => {}
            Form::Masked => {
                let tentative = core::mem::take(&mut self.shown.tentative);
                let masked = core::mem::take(&mut self.session.fold.masked);
                self.flip(&masked);
                self.flip(&tentative);
                self.session.fold.masked = masked;
            }
            Form::Planned(..) => self.leave_planned(Form::Raw),
        }
        self.shown.tentative.clear();
        self.shown.form = Form::Raw;
    }

    pub(super) fn show_masked(&mut self, tentative: Option<Peek>) {
        let (tentative, step) = tentative.map_or((vec![], None), |peek| (peek.masked, Some(peek.step)));
        if matches!(self.shown.form, Form::Raw) {
            let masked = core::mem::take(&mut self.session.fold.masked);
            self.flip(&masked);
            self.session.fold.masked = masked;
        }
        if tentative != self.shown.tentative && !matches!(self.shown.form, Form::Planned(..)) {
            let before = core::mem::take(&mut self.shown.tentative);
            self.flip(&before);
            self.flip(&tentative);
        }
        (self.shown.tentative, self.shown.tentative_move) = (tentative, step);
        if matches!(self.shown.form, Form::Planned(..)) {
            self.leave_planned(Form::Masked);
        }
        self.shown.form = Form::Masked;
    }

    /// A later stage gave the view.
    pub(super) fn show_planned(&mut self, view: Vec<u8>, counts: Counts, moves: Vec<Move>) {
        let shown = self.shown.messages;
        let before = match core::mem::take(&mut self.shown.form) {
            Form::Planned(before, ..) => before,
            form => {
                let now = if matches!(form, Form::Raw) { vec![] } else { self.all_masked() };
                let is_now = |one: &Masked| now.binary_search_by_key(&one.result, |other| other.result).is_ok();
                let flipped = &self.shown.flipped;
                let stayed = now.iter().filter(|one| !flipped.contains_key(&one.result));
                let mut masked: Vec<Masked> =
                    flipped.values().filter(|one| !is_now(one)).chain(stayed).cloned().collect();
                masked.sort_unstable_by_key(|one| one.result);
                self.whole(shown, masked_in(&masked, 0..self.session.outline.results_before(shown)))
            }
        };
        self.changed_between(&before, &view);
        self.shown.form = Form::Planned(view, counts, moves);
        self.shown.tentative.clear();
        self.shown.flipped.clear();
        self.touch(0);
    }

    /// The view that a later stage gave is shown again, until the next message comes.
    pub fn show_again(&mut self, view: &[u8], counts: Counts, moves: Vec<Move>) {
        self.shown.form = Form::Planned(view.to_vec(), counts, moves);
        self.shown.is_current = true;
    }

    /// The view is no longer that of a later stage, but of this form.
    fn leave_planned(&mut self, form: Form) {
        if let Form::Planned(before, ..) = core::mem::replace(&mut self.shown.form, form) {
            let masked = if matches!(self.shown.form, Form::Raw) { vec![] } else { self.all_masked() };
            let after = self.whole(self.session.len(), &masked);
            self.changed_between(&before, &after);
            self.touch(0);
        }
    }

    /// These observations are masked in the view from now on where they were not, or are no longer.
    pub(super) fn flip(&mut self, masked: &[Masked]) {
        let (outline, gone) = (&self.session.outline, self.session.behind.messages);
        let message = |one: &Masked| gone + outline.results[one.result as usize].message as usize;
        for one in masked.iter().filter(|one| message(one) < self.shown.messages) {
            if self.shown.flipped.remove(&one.result).is_none() {
                self.shown.flipped.insert(one.result, one.clone());
            }
        }
        if let Some(first) = masked.first().map(message) {
            self.touch(first);
        }
    }

    /// Readers must read again from this message on.
    fn touch(&mut self, message: usize) {
        self.shown.chunks_from = self.shown.chunks_from.min(message);
        self.shown.list_from = self.shown.list_from.min(message);
    }

    /// The view was made anew: says from where on it shows otherwise than the one before.
    pub(super) fn settle_change(&mut self) {
        let (results, gone) = (&self.session.outline.results, self.session.behind.messages);
        let messages = self.shown.flipped.keys().map(|result| gone + results[*result as usize].message as usize);
        if let Some((message, byte)) = self.shown.flipped_and_gone.take() {
            self.shown.changed = Some((message, Some(byte)));
        } else if let Some(first) = messages.min() {
            self.shown.changed = Some((first, None));
        }
        self.shown.flipped.clear();
        self.shown.messages = self.session.end();
    }

    /// The first messages that are there will be let go. What they show changes no more, so now it is known where.
    pub(super) fn settle_let_go(&mut self, count: usize) {
        let (gone, outline) = (self.session.behind.messages, &self.session.outline);
        let first_result = outline.results_before(count) as u32;
        let flipped = self.shown.flipped.keys().filter(|result| **result < first_result);
        let first = flipped.map(|result| gone + outline.results[*result as usize].message as usize).min();
        let before = self.shown.flipped_and_gone.map(|(message, _)| message);
        if let Some(first) = first.filter(|first| before.is_none_or(|before| *first < before)) {
            self.shown.flipped_and_gone = Some((first, self.byte_of(first)));
        }
        if let Some((message, None)) = self.shown.changed
            && message < gone + count
        {
            self.shown.changed = Some((message, Some(self.byte_of(message))));
        }
        let behind = |one: Masked| Some(Masked { result: one.result.checked_sub(first_result)?, ..one });
        let Shown { flipped, tentative, .. } = &mut self.shown;
        *flipped = flipped.drain().filter_map(|(_, one)| behind(one)).map(|one| (one.result, one)).collect();
        *tentative = tentative.drain(..).filter_map(behind).collect();
    }

    /// Where a message that is there begins in the view.
    fn byte_of(&self, message: usize) -> usize {
        let behind = &self.session.behind;
        // What stands before a message is its own.
        behind.view_bytes + self.bytes_between(behind.messages, message) + 1
    }

    /// Bytes of messages in the view, each with what stands before it.
    fn bytes_between(&self, start: usize, end: usize) -> usize {
        if start < end { self.render(start, end).len() } else { 0 }
    }

    /// Says where one whole view differs from the one before; what is known of earlier changes stays.
    fn changed_between(&mut self, before: &[u8], after: &[u8]) {
        // Both are arrays of messages that were read before.
        let [before_outline, after_outline] = [before, after].map(|view| scan(view, true).unwrap_or_default());
        let (old, new) = (&before_outline.messages, &after_outline.messages);
        let start = |outline: &Outline, view: &[u8], message: usize| {
            outline.messages.get(message).map_or(view.len(), |message| message.span.start)
        };
        let same = old.iter().zip(new).take_while(|(old, new)| old.span.of(before) == new.span.of(after)).count();
        if same < old.len() {
            self.shown.changed = Some((same, Some(start(&after_outline, after, same))));
        } else if let Some((message, byte @ None)) = &mut self.shown.changed {
            *byte = Some(start(&before_outline, before, *message));
        }
    }

    /// From which message of the view on it changed last, and how many bytes of the chunks that are done, and of those
    /// behind, stand before it.
    #[must_use]
    pub fn changed(&self) -> Option<(usize, usize, usize)> {
        let (message, byte) = self.shown.changed?;
        if let Some(byte) = byte {
            return Some((message, 0, byte));
        }
        if self.session.behind.messages > 0 {
            return Some((message, 0, self.byte_of(message)));
        }
        let chunks = self.shown.chunk_ends.partition_point(|end| *end <= message);
        let start = chunks.checked_sub(1).map_or(0, |last| self.shown.chunk_ends[last]);
        Some((message, chunks, self.bytes_between(start, message) + 1))
    }

    /// The chunks of the view, once it was looked at: how many of those read last still stand, those that follow, and
    /// what is open yet. Messages that were let go are read from the store.
    ///
    /// # Errors
    /// Those of the store; then no chunk stands.
    pub fn chunks(&mut self, store: Option<&mut Store>) -> store::Result<(usize, Vec<Vec<u8>>, Vec<u8>)> {
        if let Form::Planned(view, ..) = &self.shown.form {
            let view = view.clone();
            self.forget_chunks();
            return Ok((0, vec![], view));
        }
        let stand = self.shown.chunk_ends.partition_point(|end| *end <= self.shown.chunks_from);
        self.shown.chunk_ends.truncate(stand);
        self.shown.chunks_from = usize::MAX;
        let mut done = vec![];
        if let Some(store) = store {
            self.settled_chunks(store, &mut done).inspect_err(|_| self.forget_chunks())?;
        }
        let mut start = self.shown.chunk_ends.last().copied().unwrap_or(0);
        let (mut bytes, messages) = (0, start..self.session.end());
        for message in messages {
            bytes += self.bytes_of(message - self.session.behind.messages);
            if bytes >= CHUNK_BYTES {
                done.push(self.render(start, message + 1));
                self.shown.chunk_ends.push(message + 1);
                (start, bytes) = (message + 1, 0);
            }
        }
        let mut open =
            if start < self.session.end() || start == 0 { self.render(start, self.session.end()) } else { vec![] };
        open.push(b']');
        Ok((stand, done, open))
    }

    /// The chunks of messages that were let go.
    fn settled_chunks(&mut self, store: &mut Store, done: &mut Vec<Vec<u8>>) -> store::Result<()> {
        let mut chunk = vec![];
        for message in self.shown.chunk_ends.last().copied().unwrap_or(0)..self.session.behind.messages {
            write_shown(store, message, &mut chunk)?;
            if chunk.len() >= CHUNK_BYTES || message + 1 == self.session.behind.messages {
                done.push(core::mem::take(&mut chunk));
                self.shown.chunk_ends.push(message + 1);
            }
        }
        Ok(())
    }

    /// The next chunks are read from the first message on.
    pub fn forget_chunks(&mut self) {
        self.shown.chunk_ends.clear();
        self.shown.chunks_from = 0;
    }

    /// About how many bytes a message that is there has in the view.
    fn bytes_of(&self, message: usize) -> usize {
        let outline = &self.session.outline;
        let span = outline.messages[message].span;
        let of_result = |result: usize| {
            let value = outline.results[result].value;
            (value.end - value.start).saturating_sub(PLACEHOLDER_BYTES)
        };
        let removed: usize = self.masked(message, message + 1).iter().map(|one| of_result(one.result as usize)).sum();
        (span.end - span.start).saturating_sub(removed) + 1
    }

    /// What is masked in these of the messages that are there.
    fn masked(&self, start: usize, end: usize) -> Vec<Masked> {
        let outline = &self.session.outline;
        if !matches!(self.shown.form, Form::Masked) {
            return vec![];
        }
        let results = || outline.results_before(start)..outline.results_before(end);
        let mut masked = masked_in(&self.session.fold.masked, results()).to_vec();
        let tentative = masked_in(&self.shown.tentative, results());
        if !tentative.is_empty() {
            masked.extend_from_slice(tentative);
            masked.sort_unstable_by_key(|one| one.result);
        }
        masked
    }

    /// What the fold masks, and what is masked tentatively.
    fn all_masked(&self) -> Vec<Masked> {
        let mut masked = [&self.session.fold.masked[..], &self.shown.tentative].concat();
        masked.sort_unstable_by_key(|one| one.result);
        masked
    }

    /// Messages as the view shows them, with what stands before each. They must be there.
    fn render(&self, start: usize, end: usize) -> Vec<u8> {
        let gone = self.session.behind.messages;
        let (start, end) = (start - gone, end - gone);
        self.render_with(start, end, &self.masked(start, end))
    }

    /// One of the messages that are there as the view shows it.
    pub(super) fn shown_message(&self, message: usize) -> Vec<u8> {
        self.render_with(message, message + 1, &self.masked(message, message + 1)).split_off(1)
    }

    /// The view of so many messages, with these observations masked.
    fn whole(&self, messages: usize, masked: &[Masked]) -> Vec<u8> {
        let mut view = self.render_with(0, messages, masked);
        view.push(b']');
        view
    }

    fn render_with(&self, start: usize, end: usize, masked: &[Masked]) -> Vec<u8> {
        let Session { data, behind, .. } = &self.session;
        let mut out = vec![if behind.messages + start == 0 { b'[' } else { b',' }];
        if start < end {
            let source = Bytes(data);
            let ground = self.session.ground(&self.policy, &source);
            splice_stretch(data, ground, self.session.stretch(start, end), masked, &mut out);
        }
        out
    }

    /// What changed in the view since the list was read last: from which message on it is to be made anew, and what
    /// stands there instead of messages that are there and hold masked observations. None where a later stage gave the
    /// view.
    pub fn changes(&mut self) -> Option<Changes> {
        let from = core::mem::replace(&mut self.shown.list_from, usize::MAX).min(self.session.end());
        if matches!(self.shown.form, Form::Planned(..)) {
            self.shown.list_from = 0;
            return None;
        }
        let gone = self.session.behind.messages;
        let masked = self.masked(from.saturating_sub(gone), self.session.len());
        let mut messages: Vec<u32> =
            masked.iter().map(|one| self.session.outline.results[one.result as usize].message).collect();
        messages.dedup();
        let shown = |message: u32| (gone + message as usize, self.shown_message(message as usize));
        Some((from, messages.into_iter().map(shown).collect()))
    }

    /// The next list is made from the first message on.
    pub fn forget_list(&mut self) {
        self.shown.list_from = 0;
    }

    /// What the view counts, once it was looked at.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let Session { chars, fold, .. } = &self.session;
        let messages = self.session.end();
        match &self.shown.form {
            Form::Raw => Counts { messages, chars: *chars, masked: 0 },
            Form::Masked => {
                let tentative: usize = self.shown.tentative.iter().map(|one| one.removed).sum();
                let masked = fold.masked_count() + self.shown.tentative.len();
                Counts { messages, chars: chars.saturating_sub(fold.removed + tentative), masked }
            }
            Form::Planned(_, counts, _) => *counts,
        }
    }

    /// How the boundary came to where it is, as far as that is in memory.
    pub(super) fn newest_moves(&self) -> Vec<Move> {
        match &self.shown.form {
            Form::Planned(_, _, moves) => moves.clone(),
            Form::Masked if self.policy.boundary.remembers() => {
                let tentative = self.shown.tentative_move.filter(|_| !self.shown.tentative.is_empty());
                self.session.fold.moves.iter().copied().chain(tentative).collect()
            }
            Form::Raw | Form::Masked => vec![],
        }
    }
}
