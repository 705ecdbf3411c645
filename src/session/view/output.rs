//! The view as readers get it: in chunks of bytes, as the changed part of a list, or as masks.

use crate::placeholder::Form;
use crate::plan::facts;
use crate::session::log::facts::ResultPlace;
use crate::session::places::Origin;
use crate::session::stored::{observation_of, stored_bytes, too_long, write_rendered};
use crate::session::{Appended, Failure, InLog, InView, Result, Session, scanned};
use crate::store::Store;

/// A chunk is closed at about this many bytes: a view of 40 MB is a few hundred chunks, and the open one is copied in
/// microseconds.
const CHUNK_BYTES: usize = 64 << 10;

/// Approximate bytes of a placeholder.
const PLACEHOLDER_BYTES: usize = 48;

/// Readers do not cache a view with more bytes of evicted messages, so that memory is bounded.
const MAX_CACHED_BYTES: usize = 2 << 20;

/// Changes of the view's list since it was read last: the messages from this one on.
pub type Change = (usize, Vec<ViewMessage>);

/// A message of a view.
#[derive(Debug)]
pub enum ViewMessage {
    /// The appended message of this index.
    Appended(usize),
    /// The appended message of this index, with its rendering.
    Rendered(usize, Vec<u8>),
    /// The rendering of another message.
    Bytes(Vec<u8>),
}

/// The chunks of a view.
#[derive(Debug)]
pub struct Chunks {
    /// How many of the chunks read last are still valid.
    pub reused: usize,
    /// The closed chunks after them.
    pub closed: Vec<Vec<u8>>,
    /// The end of the view.
    pub open: Vec<u8>,
}

/// A masked result, and the text that replaces its observation.
pub type Mask = (ResultPlace, Vec<u8>);

impl Session {
    /// The chunks of the current view, for a reader that has this many of the closed ones. Evicted messages are read from the
    /// store.
    ///
    /// # Errors
    /// Those of the store; the next call reads all chunks.
    pub fn chunks(&mut self, known: usize, store: Option<&mut Store>) -> Result<Chunks> {
        let reused = self.view.chunk_ends.partition_point(|(end, _)| *end <= self.view.chunks_from).min(known);
        self.view.chunk_ends.truncate(reused);
        self.view.chunks_from = InView(usize::MAX);
        let mut closed = vec![];
        if self.places().in_log(self.next_chunk()).is_none() {
            let read = store.ok_or(Failure::Closed).and_then(|store| self.evicted_chunks(store, &mut closed));
            read.inspect_err(|_| self.forget_chunks())?;
        }
        let (mut start, end) = (self.next_chunk(), self.view_end());
        let mut bytes = 0;
        for message in self.places().held(start).0..self.log.len() {
            bytes += self.bytes_of(message);
            if bytes >= CHUNK_BYTES {
                let next = self.places().of_log(InLog(message + 1));
                let (chunk, appended_bytes) = self.render_sent(start, next);
                self.add_chunk(next, appended_bytes, chunk, &mut closed);
                (start, bytes) = (next, 0);
            }
        }
        let mut open = if start < end || start == InView(0) { self.render_sent(start, end).0 } else { vec![] };
        open.push(b']');
        Ok(Chunks { reused, closed, open })
    }

    /// The first message after the closed chunks.
    fn next_chunk(&self) -> InView {
        self.view.chunk_ends.last().map_or(InView(0), |(end, _)| *end)
    }

    /// Closes a chunk, which has this many bytes without changes of marks.
    fn add_chunk(&mut self, end: InView, bytes: usize, chunk: Vec<u8>, closed: &mut Vec<Vec<u8>>) {
        let before = self.view.chunk_ends.last().map_or(0, |(_, bytes)| *bytes);
        self.view.chunk_ends.push((end, before + bytes));
        closed.push(chunk);
    }

    /// The chunks of evicted messages.
    fn evicted_chunks(&mut self, store: &mut Store, closed: &mut Vec<Vec<u8>>) -> Result<()> {
        let (InView(start), end) = (self.next_chunk(), self.log.base.messages);
        let (mut chunk, mut left) = (vec![], store.max_bytes()?);
        for message in start..end {
            let read = self.write_sent(store, InView(message), &mut chunk)?;
            left = left.checked_sub(read as u64).ok_or_else(too_long)?;
            if chunk.len() >= CHUNK_BYTES || message + 1 == end {
                self.add_chunk(InView(message + 1), chunk.len(), core::mem::take(&mut chunk), closed);
            }
        }
        Ok(())
    }

    /// Whether the view is too long for readers to cache.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.log.base.view_bytes > MAX_CACHED_BYTES
    }

    /// The chunks read last have reached no reader.
    pub fn forget_chunks(&mut self) {
        self.view.chunk_ends.clear();
        self.view.chunks_from = InView(0);
    }

    /// Approximate bytes of a message in memory in the view.
    fn bytes_of(&self, message: usize) -> usize {
        let outline = &self.log.outline;
        let span = outline.spans[message];
        let of_result = |result: usize| {
            let value = outline.results[result].value;
            (value.end - value.start).saturating_sub(PLACEHOLDER_BYTES)
        };
        let removed: usize = self.masked(message, message + 1).iter().map(|one| of_result(one.result as usize)).sum();
        (span.end - span.start).saturating_sub(removed) + 1
    }

    /// Changes of the view since this was called last, for a reader that has this many of its messages.
    ///
    /// # Errors
    /// Those of the store, which has the evicted messages; nothing counts as read then.
    pub fn changes(&mut self, known: usize, mut store: Option<&mut Store>) -> Result<Change> {
        let (from, evicted) = (self.view.list_from.0.min(known), self.log.base.messages);
        let mut items = vec![];
        for message in from..evicted {
            let mut shown = vec![];
            self.write_sent(store.as_deref_mut().ok_or(Failure::Closed)?, InView(message), &mut shown)?;
            items.push(ViewMessage::Bytes(shown.split_off(1)));
        }
        let first = from.saturating_sub(evicted);
        let masked = self.masked(first, self.log.len());
        let results = &self.log.outline.results;
        let mut masked = masked.iter().map(|one| results[one.result as usize].message as usize).peekable();
        let remarked = self.marked_messages(self.places().of_log(InLog(first)), self.view_end());
        for message in first..self.log.len() {
            let mut is_changed = masked.peek() == Some(&message);
            while masked.next_if_eq(&message).is_some() {}
            let (here, place) = (InLog(message), self.places().of_log(InLog(message)));
            let is_marked = remarked.binary_search(&place).is_ok();
            let sent = || if is_marked { self.sent_message(here) } else { self.rendered_message(here) };
            is_changed |= is_marked && sent() != self.log.message(message);
            let origin = self.origin(place);
            // If only the store has the appended message, the log has its bytes.
            items.push(match origin.appended().filter(|appended| appended.0 >= self.past.first) {
                Some(Appended(index)) if is_changed || matches!(origin, Origin::Rendered(_)) => {
                    ViewMessage::Rendered(index, sent())
                }
                Some(Appended(index)) => ViewMessage::Appended(index),
                None => ViewMessage::Bytes(sent()),
            });
        }
        self.view.list_from = self.view_end();
        Ok((from, items))
    }

    /// The first message that changed in the current view since this was called last; and the masked results from there on, or from
    /// this message on if it is earlier. For sessions without compaction.
    ///
    /// # Errors
    /// Those of the store, which has the evicted messages; nothing counts as read then.
    pub fn masks(&mut self, since: usize, store: Option<&mut Store>) -> Result<(usize, Vec<Mask>)> {
        let (InView(first), evicted) = (self.view.masks_from, self.log.base.messages);
        let from = first.min(since);
        let mut masks = match store {
            _ if from >= evicted => vec![],
            Some(store) => evicted_masks(store, from..evicted)?,
            None => return Err(Failure::Closed),
        };
        let masked = self.masked(from.saturating_sub(evicted), self.log.len());
        self.log.with_context(&self.policy, |context| {
            let placeholder = context.placeholder;
            for one in &masked {
                let result = one.result as usize;
                let facts = facts(context.outline, context.pairs, Some(context.turns), result);
                let facts = placeholder.with_handle(facts, context.outline, context.source, result);
                let observation = || context.source.observation(context.outline, result);
                let text = match &one.form {
                    Form::Clip(cut) => Some(context.source.clipped(context.outline, result, &cut.clip)),
                    form => placeholder.render(form, &facts, observation),
                };
                masks.extend(text.map(|text| (self.place_of(result), text)));
            }
        });
        self.view.masks_from = self.view_end();
        Ok((first, masks))
    }
}

fn evicted_masks(store: &mut Store, messages: core::ops::Range<usize>) -> Result<Vec<Mask>> {
    let mut masks = vec![];
    for message in messages {
        let mut shown = vec![];
        write_rendered(store, message, &mut shown)?;
        let (shown, raw) = (&shown[1..], stored_bytes(store, message)?);
        if shown == raw {
            continue;
        }
        for place in 0..scanned(shown)?.results.len() {
            let text = observation_of(shown, place).filter(|text| observation_of(&raw, place).as_ref() != Some(text));
            masks.extend(text.map(|text| ((message, place), text)));
        }
    }
    Ok(masks)
}
