//! What a session shows: its view, in chunks or as what changed in a list, from the first changed message on.

use super::evict::{too_long, write_shown};
use super::log::{Log, Text};
use super::summary::Origin;
use super::{Failure, Result, Session};
use crate::outline::Outline;
use crate::plan::{Masked, Move, Peek};
use crate::scan::scan;
use crate::splice::masked_in;
use crate::store::Store;
use std::collections::HashMap;

/// A chunk of a view is done when it has about so many bytes: large enough that a view of 40 MB is a few hundred of
/// them, small enough that what is open is copied in microseconds.
const CHUNK_BYTES: usize = 64 << 10;

/// A placeholder in a view takes about so many bytes.
const PLACEHOLDER_BYTES: usize = 48;

/// Readers do not keep a view with more bytes of evicted messages: memory is bounded.
const MOST_BYTES_KEPT: usize = 2 << 20;

/// Which view was shown last, and what of it its readers have. Messages are counted from the first of the session, those
/// that were evicted too; results from the first in memory.
#[derive(Debug)]
pub struct View {
    form: Form,
    /// Masked in the view of a request that is being made; not fixed before the answer.
    tentative: Vec<Masked>,
    pub tentative_move: Option<Move>,
    /// The first message that changed since the chunks, and the list, were read last.
    chunks_from: usize,
    list_from: usize,
    /// The end of each chunk that is done: its last message, and its last byte.
    chunk_ends: Vec<(usize, usize)>,
    /// Whether the view is still that of the history; and how many messages it was of.
    pub is_current: bool,
    messages: usize,
    /// Observations that are masked and were not in the view before, or the reverse, by their result; and of those that
    /// were evicted the first message, with its byte in the view.
    flipped: HashMap<u32, Masked>,
    flipped_and_gone: Option<(usize, usize)>,
    /// The first message that changed last, and its byte where that is known already.
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
    /// A later stage gave it: its bytes, what it counts, and how the boundary of the first stage came to where it is;
    /// None where the fold knows that.
    Planned(Vec<u8>, Counts, Option<Vec<Move>>),
}

/// What a view counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages.
    pub messages: usize,
    /// Characters.
    pub chars: usize,
    /// Masked observations.
    pub masked: usize,
}

/// What changed in the list of a view since it was read last.
#[derive(Debug)]
pub enum Change {
    /// All of it: a later stage gave the view, as a JSON array.
    All(Vec<u8>),
    /// The messages from this one on.
    From(usize, Vec<Shown>),
}

/// A message of a view.
#[derive(Debug)]
pub enum Shown {
    /// The message of this index, as it was appended.
    Appended(usize),
    /// The message of this index, masked.
    Masked(usize, Vec<u8>),
    /// Another text.
    Bytes(Vec<u8>),
}

/// The chunks of a view.
#[derive(Debug)]
pub struct Chunks {
    /// How many of those read last still stand, and those that follow.
    pub stand: usize,
    /// See `stand`.
    pub done: Vec<Vec<u8>>,
    /// What is open yet.
    pub open: Vec<u8>,
}

impl View {
    pub fn of(form: Form) -> Self {
        View {
            form,
            tentative: vec![],
            tentative_move: None,
            chunks_from: 0,
            list_from: 0,
            chunk_ends: vec![],
            is_current: false,
            messages: 0,
            flipped: HashMap::new(),
            flipped_and_gone: None,
            changed: None,
        }
    }
}

impl Session {
    pub(super) fn show_raw(&mut self) {
        match self.view.form {
            Form::Raw => {}
            Form::Masked => {
                self.flip_masked();
                let tentative = core::mem::take(&mut self.view.tentative);
                self.flip(&tentative);
            }
            Form::Planned(..) => self.leave_planned(Form::Raw),
        }
        self.view.tentative.clear();
        self.view.form = Form::Raw;
    }

    pub(super) fn show_masked(&mut self, tentative: Option<Peek>) {
        let (tentative, step) = tentative.map_or((vec![], None), |peek| (peek.masked, Some(peek.step)));
        if matches!(self.view.form, Form::Raw) {
            self.flip_masked();
        }
        if tentative != self.view.tentative && !matches!(self.view.form, Form::Planned(..)) {
            let before = core::mem::take(&mut self.view.tentative);
            self.flip(&before);
            self.flip(&tentative);
        }
        (self.view.tentative, self.view.tentative_move) = (tentative, step);
        if matches!(self.view.form, Form::Planned(..)) {
            self.leave_planned(Form::Masked);
        }
        self.view.form = Form::Masked;
    }

    fn flip_masked(&mut self) {
        let masked = core::mem::take(&mut self.log.fold.masked);
        self.flip(&masked);
        self.log.fold.masked = masked;
    }

    /// A request was made, and these observations are masked for good. What its view masked tentatively is fixed by it,
    /// but one for a cold cache may have masked more.
    pub(super) fn fix(&mut self, moved: &[Masked]) {
        let tentative = core::mem::take(&mut self.view.tentative);
        if moved != tentative {
            self.flip_shown(&tentative);
            self.flip_shown(moved);
        }
    }

    /// [`Session::flip`], where the view shows what is masked.
    pub(super) fn flip_shown(&mut self, masked: &[Masked]) {
        if matches!(self.view.form, Form::Masked) {
            self.flip(masked);
        }
    }

    /// A later stage gave the view.
    pub(super) fn show_planned(&mut self, view: Vec<u8>, counts: Counts, moves: Option<Vec<Move>>) {
        let shown = self.view.messages;
        let before = match core::mem::take(&mut self.view.form) {
            Form::Planned(before, ..) => before,
            form => {
                let now = if matches!(form, Form::Raw) { vec![] } else { self.all_masked() };
                let is_now = |one: &Masked| now.binary_search_by_key(&one.result, |other| other.result).is_ok();
                let flipped = &self.view.flipped;
                let stayed = now.iter().filter(|one| !flipped.contains_key(&one.result));
                let mut masked: Vec<Masked> =
                    flipped.values().filter(|one| !is_now(one)).chain(stayed).cloned().collect();
                masked.sort_unstable_by_key(|one| one.result);
                self.whole(shown, masked_in(&masked, 0..self.log.outline.results_before(shown)))
            }
        };
        self.changed_between(&before, &view);
        self.view.form = Form::Planned(view, counts, moves);
        self.view.tentative.clear();
        self.view.flipped.clear();
        self.touch(0);
    }

    /// The view that a later stage gave is shown again, until the next message comes.
    pub(super) fn show_again(&mut self, view: Vec<u8>, counts: Counts, moves: Vec<Move>) {
        self.show_planned(view, counts, Some(moves));
        self.view.messages = self.log.end();
        self.view.is_current = true;
    }

    /// The log is rewound to so many messages.
    pub(super) fn rewind_view(&mut self, messages: usize) {
        let tentative = core::mem::take(&mut self.view.tentative);
        self.flip_shown(&tentative);
        let unmasked = self.log.rewind(&self.policy, messages);
        let (end, results) = (self.log.end(), self.log.outline.results.len());
        self.view.flipped.retain(|result, _| (*result as usize) < results);
        if self.view.messages > end {
            self.view.messages = end;
            if !matches!(self.view.form, Form::Planned(..)) {
                self.view.changed = Some((end, None));
            }
        }
        self.flip_shown(&unmasked);
        self.touch(end);
        self.view.is_current = false;
    }

    /// The view is no longer that of a later stage, but of this form.
    fn leave_planned(&mut self, form: Form) {
        if let Form::Planned(before, ..) = core::mem::replace(&mut self.view.form, form) {
            let masked = if matches!(self.view.form, Form::Raw) { vec![] } else { self.all_masked() };
            let after = self.whole(self.log.len(), &masked);
            self.changed_between(&before, &after);
            self.touch(0);
        }
    }

    /// These observations are masked in the view from now on where they were not, or are no longer.
    pub(super) fn flip(&mut self, masked: &[Masked]) {
        let (outline, gone) = (&self.log.outline, self.log.base.messages);
        let message = |one: &Masked| gone + outline.results[one.result as usize].message as usize;
        for one in masked.iter().filter(|one| message(one) < self.view.messages) {
            if self.view.flipped.remove(&one.result).is_none() {
                self.view.flipped.insert(one.result, one.clone());
            }
        }
        if let Some(first) = masked.first().map(message) {
            self.touch(first);
        }
    }

    /// Readers must read again from this message on.
    fn touch(&mut self, message: usize) {
        self.view.chunks_from = self.view.chunks_from.min(message);
        self.view.list_from = self.view.list_from.min(message);
    }

    /// A view was made: notes the first message that changed.
    pub(super) fn settle_change(&mut self) {
        let (results, gone) = (&self.log.outline.results, self.log.base.messages);
        let messages = self.view.flipped.keys().map(|result| gone + results[*result as usize].message as usize);
        if let Some((message, byte)) = self.view.flipped_and_gone.take() {
            self.view.changed = Some((message, Some(byte)));
        } else if let Some(first) = messages.min() {
            self.view.changed = Some((first, None));
        }
        self.view.flipped.clear();
        self.view.messages = self.log.end();
    }

    /// The first messages in memory will be evicted. Their rendering changes no more, so now it is known where they are.
    pub(super) fn settle_evicted(&mut self, count: usize) {
        let (gone, outline) = (self.log.base.messages, &self.log.outline);
        let first_result = outline.results_before(count) as u32;
        let flipped = self.view.flipped.keys().filter(|result| **result < first_result);
        let first = flipped.map(|result| gone + outline.results[*result as usize].message as usize).min();
        let before = self.view.flipped_and_gone.map(|(message, _)| message);
        if let Some(first) = first.filter(|first| before.is_none_or(|before| *first < before)) {
            self.view.flipped_and_gone = Some((first, self.byte_of(first)));
        }
        if let Some((message, None)) = self.view.changed
            && message < gone + count
        {
            self.view.changed = Some((message, Some(self.byte_of(message))));
        }
        let kept = |one: Masked| Some(Masked { result: one.result.checked_sub(first_result)?, ..one });
        let View { flipped, tentative, .. } = &mut self.view;
        *flipped = flipped.drain().filter_map(|(_, one)| kept(one)).map(|one| (one.result, one)).collect();
        *tentative = tentative.drain(..).filter_map(kept).collect();
    }

    /// Where a message in memory begins in the view.
    fn byte_of(&self, message: usize) -> usize {
        let base = &self.log.base;
        // What precedes a message is part of it.
        base.view_bytes + self.bytes_between(base.messages, message) + 1
    }

    /// Bytes of the first messages in memory, as the view shows them.
    pub(super) fn shown_bytes(&self, count: usize) -> usize {
        let gone = self.log.base.messages;
        self.bytes_between(gone, gone + count)
    }

    /// Bytes of messages in the view, each with what precedes it.
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
            self.view.changed = Some((same, Some(start(&after_outline, after, same))));
        } else if let Some((message, byte @ None)) = &mut self.view.changed {
            *byte = Some(start(&before_outline, before, *message));
        }
    }

    /// The first message that changed in the view last, and its byte.
    #[must_use]
    pub fn changed(&self) -> Option<(usize, usize)> {
        let (message, byte) = self.view.changed?;
        let before = || {
            if self.log.base.messages > 0 {
                return self.byte_of(message);
            }
            let chunks = self.view.chunk_ends.partition_point(|(end, _)| *end <= message);
            let (start, bytes) = chunks.checked_sub(1).map_or((0, 0), |last| self.view.chunk_ends[last]);
            bytes + self.bytes_between(start, message) + 1
        };
        Some((message, byte.unwrap_or_else(before)))
    }

    /// The chunks of the view, once it was made. Evicted messages are read from the store.
    ///
    /// # Errors
    /// Those of the store; then no chunk stands.
    pub fn chunks(&mut self, store: Option<&mut Store>) -> Result<Chunks> {
        if let Form::Planned(view, ..) = &self.view.form {
            let open = view.clone();
            self.forget_chunks();
            return Ok(Chunks { stand: 0, done: vec![], open });
        }
        let stand = self.view.chunk_ends.partition_point(|(end, _)| *end <= self.view.chunks_from);
        self.view.chunk_ends.truncate(stand);
        self.view.chunks_from = usize::MAX;
        let mut done = vec![];
        if self.next_chunk() < self.log.base.messages {
            let read = store.ok_or(Failure::Closed).and_then(|store| self.evicted_chunks(store, &mut done));
            read.inspect_err(|_| self.forget_chunks())?;
        }
        let (mut start, end) = (self.next_chunk(), self.log.end());
        let mut bytes = 0;
        for message in self.next_chunk()..end {
            bytes += self.bytes_of(message - self.log.base.messages);
            if bytes >= CHUNK_BYTES {
                let chunk = self.render(start, message + 1);
                self.add_chunk(message + 1, chunk, &mut done);
                (start, bytes) = (message + 1, 0);
            }
        }
        let is_turns = self.log.text() == Text::Turns;
        let mut open = if start < end || (start == 0 && !is_turns) { self.render(start, end) } else { vec![] };
        if !is_turns {
            open.push(b']');
        }
        Ok(Chunks { stand, done, open })
    }

    /// The first message after the chunks that are done.
    fn next_chunk(&self) -> usize {
        self.view.chunk_ends.last().map_or(2 * self.ends().0, |(end, _)| *end)
    }

    fn add_chunk(&mut self, end: usize, chunk: Vec<u8>, done: &mut Vec<Vec<u8>>) {
        let before = self.view.chunk_ends.last().map_or(0, |(_, bytes)| *bytes);
        self.view.chunk_ends.push((end, before + chunk.len()));
        done.push(chunk);
    }

    /// The chunks of evicted messages.
    fn evicted_chunks(&mut self, store: &mut Store, done: &mut Vec<Vec<u8>>) -> Result<()> {
        let (start, end) = (self.next_chunk(), self.log.base.messages);
        let (mut chunk, mut left) = (vec![], store.most_bytes()?);
        let is_turns = self.log.text() == Text::Turns;
        for message in (start..end).step_by(if is_turns { 2 } else { 1 }) {
            let read = if is_turns {
                self.write_stored_turn(store, message / 2 + 1, &mut chunk)?
            } else {
                write_shown(store, message, &mut chunk)?
            };
            left = left.checked_sub(read as u64).ok_or_else(too_long)?;
            let next = message + if is_turns { 2 } else { 1 };
            if chunk.len() >= CHUNK_BYTES || next == end {
                self.add_chunk(next, core::mem::take(&mut chunk), done);
            }
        }
        Ok(())
    }

    /// Readers need not keep what they read of the view: it is too long for that.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.log.base.view_bytes > MOST_BYTES_KEPT
    }

    /// The next chunks, and the next list, are read from the first message on.
    pub fn forget(&mut self) {
        self.forget_chunks();
        self.view.list_from = 0;
    }

    pub(super) fn forget_chunks(&mut self) {
        self.view.chunk_ends.clear();
        self.view.chunks_from = 0;
    }

    /// About how many bytes a message that is there has in the view.
    fn bytes_of(&self, message: usize) -> usize {
        let outline = &self.log.outline;
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
        let outline = &self.log.outline;
        if !matches!(self.view.form, Form::Masked) {
            return vec![];
        }
        let results = || outline.results_before(start)..outline.results_before(end);
        let mut masked = masked_in(&self.log.fold.masked, results()).to_vec();
        let tentative = masked_in(&self.view.tentative, results());
        if !tentative.is_empty() {
            masked.extend_from_slice(tentative);
            masked.sort_unstable_by_key(|one| one.result);
        }
        masked
    }

    /// What the fold masks, and what is masked tentatively.
    fn all_masked(&self) -> Vec<Masked> {
        let mut masked = [&self.log.fold.masked[..], &self.view.tentative].concat();
        masked.sort_unstable_by_key(|one| one.result);
        masked
    }

    /// Messages as the view shows them, each with what precedes it. They must be in memory.
    fn render(&self, start: usize, end: usize) -> Vec<u8> {
        let gone = self.log.base.messages;
        let (start, end, mut out) = (start - gone, end - gone, vec![]);
        self.log.render(&self.policy, start, end, &self.masked(start, end), &mut out);
        out
    }

    /// A message in memory as the view shows it.
    pub(super) fn shown_message(&self, message: usize) -> Vec<u8> {
        let mut shown = vec![];
        self.log.render(&self.policy, message, message + 1, &self.masked(message, message + 1), &mut shown);
        shown.split_off(1)
    }

    /// The view of so many messages, with these observations masked.
    fn whole(&self, messages: usize, masked: &[Masked]) -> Vec<u8> {
        let mut view = vec![];
        self.log.render(&self.policy, 0, messages, masked, &mut view);
        view.push(b']');
        view
    }

    /// What changed in the view since the list was read last.
    ///
    /// # Errors
    /// Those of the store, which is asked for evicted messages; then nothing was read.
    pub fn changes(&mut self, mut store: Option<&mut Store>) -> Result<Change> {
        if let Form::Planned(view, ..) = &self.view.form {
            self.view.list_from = 0;
            return Ok(Change::All(view.clone()));
        }
        let (from, gone) = (self.view.list_from, self.log.base.messages);
        let mut items = vec![];
        for message in from..gone {
            let mut shown = vec![];
            write_shown(store.as_deref_mut().ok_or(Failure::Closed)?, message, &mut shown)?;
            items.push(Shown::Bytes(shown.split_off(1)));
        }
        let first = from.saturating_sub(gone);
        let masked = self.masked(first, self.log.len());
        let results = &self.log.outline.results;
        let mut masked = masked.iter().map(|one| results[one.result as usize].message as usize).peekable();
        for message in first..self.log.len() {
            let is_masked = masked.peek() == Some(&message);
            while masked.next_if_eq(&message).is_some() {}
            let index = match self.origins.get(gone + message) {
                Some(Origin::New) => None,
                // Of a message that the store alone has as it was appended, the session has the bytes.
                Some(Origin::Message(index)) => Some(*index as usize).filter(|index| *index >= self.past.first),
                None => Some(self.past.end() + gone + message - self.origins.len()),
            };
            items.push(match index {
                Some(index) if is_masked => Shown::Masked(index, self.shown_message(message)),
                None if is_masked => Shown::Bytes(self.shown_message(message)),
                Some(index) => Shown::Appended(index),
                None => Shown::Bytes(self.log.message(message).to_vec()),
            });
        }
        self.view.list_from = self.log.end();
        Ok(Change::From(from, items))
    }

    /// What the view counts, once it was looked at.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let Log { chars, fold, .. } = &self.log;
        let messages = self.log.end();
        match &self.view.form {
            Form::Raw => Counts { messages, chars: *chars, masked: 0 },
            Form::Masked => {
                let tentative: usize = self.view.tentative.iter().map(|one| one.removed).sum();
                let masked = fold.masked_count() + self.view.tentative.len();
                Counts { messages, chars: chars.saturating_sub(fold.removed() + tentative), masked }
            }
            Form::Planned(_, counts, _) => *counts,
        }
    }

    /// How the boundary came to where it is, as far as that is in memory.
    pub(super) fn newest_moves(&self) -> Vec<Move> {
        let remembers = self.policy.boundary.remembers();
        let step = match &self.view.form {
            Form::Planned(_, _, Some(moves)) => return moves.clone(),
            Form::Planned(_, _, None) if remembers && self.policy.observation_masking => self.view.tentative_move,
            Form::Masked if remembers => self.view.tentative_move.filter(|_| !self.view.tentative.is_empty()),
            _ => return vec![],
        };
        self.log.fold.moves.iter().copied().chain(step).collect()
    }
}
