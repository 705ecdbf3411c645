//! The view as readers get it: in chunks of bytes, as the changed part of a list, or as masks.

use crate::placeholder::Form;
use crate::plan::{Cut, Item, Part, Summary, facts};
use crate::session::Session;
use crate::session::log::ResultPlace;
use crate::splice::{joined_message, summary_message, unsigned_message};
use core::ops::Range;

/// A chunk is closed at about this many bytes: a view of 40 MB is a few hundred chunks, and the open one is copied in
/// microseconds.
const CHUNK_BYTES: usize = 64 << 10;

/// Approximate bytes of a placeholder.
const PLACEHOLDER_BYTES: usize = 48;

/// Changes of the view's list since it was read last: the messages from this place on.
pub(crate) type Change = (usize, Vec<ViewMessage>);

/// A message of a view.
#[derive(Debug)]
pub enum ViewMessage {
    /// The appended message of this index.
    Unchanged(usize),
    /// The appended message of this index, with its rendering.
    Rendered(usize, Vec<u8>),
    /// The appended message of this index, whose text is not written, with the texts of its masked results, and whether it loses its
    /// signed reasoning.
    Masked(usize, Vec<Mask>, bool),
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
pub(crate) type Mask = (ResultPlace, Vec<u8>);

impl Session {
    /// The chunks of the current view, for a reader that has this many of the closed ones.
    pub fn chunks(&mut self, known: usize) -> Chunks {
        self.log.is_read = true;
        let reused = self.view.chunk_ends.partition_point(|(end, _)| *end <= self.view.chunks_from).min(known);
        self.view.chunk_ends.truncate(reused);
        self.view.chunks_from = usize::MAX;
        let mut start = self.view.chunk_ends.last().map_or(0, |(end, _)| *end);
        let (mut closed, end, mut bytes) = (vec![], self.view.layout.len(), 0);
        let known = start;
        for place in known..end {
            bytes += self.bytes_at(place);
            if bytes >= CHUNK_BYTES {
                let before = self.view.chunk_ends.last().map_or(0, |(_, bytes)| *bytes);
                let plain = self.render(start, place + 1).len();
                closed.push(self.render_sent(start, place + 1));
                self.view.chunk_ends.push((place + 1, before + plain));
                (start, bytes) = (place + 1, 0);
            }
        }
        let mut open = self.render_sent(start, end);
        if end == 0 {
            open.push(b'[');
        }
        open.push(b']');
        Chunks { reused, closed, open }
    }

    /// Approximate bytes of the message at a place.
    fn bytes_at(&self, place: usize) -> usize {
        let Item::Message(message) = self.view.layout.item(place) else {
            return self.view.layout.summary.as_ref().map_or(0, |summary| summary.text.len());
        };
        let outline = &self.log.outline;
        let of_result = |result: usize| {
            let value = outline.results[result].value;
            (value.end - value.start).saturating_sub(PLACEHOLDER_BYTES)
        };
        let changed = self.changed_results(outline.results_of(message));
        let removed: usize = changed.iter().map(|(result, ..)| of_result(*result as usize)).sum();
        let span = outline.spans[message];
        (span.end - span.start).saturating_sub(removed) + 1
    }

    /// Changes of the view since this was called last, for a reader that has this many of its messages.
    pub fn changes(&mut self, known: usize) -> Change {
        self.log.is_read = false;
        let (from, end) = (self.view.list_from.min(known), self.view.layout.len());
        let items = (from..end).map(|place| self.shown(place)).collect();
        self.view.list_from = end;
        (from, items)
    }

    /// The message at a place.
    fn shown(&self, place: usize) -> ViewMessage {
        let message = match self.view.layout.item(place) {
            Item::Summary => return ViewMessage::Bytes(self.summary_message()),
            Item::Message(message) => message,
        };
        if message >= self.log.outline.spans.len() {
            let masks = self.masks_of(message..message + 1);
            let drops_reasoning = self.view.layout.drops_reasoning_of(message);
            return if masks.is_empty() && !drops_reasoning {
                ViewMessage::Unchanged(message)
            } else {
                ViewMessage::Masked(message, masks, drops_reasoning)
            };
        }
        let is_marked = self.is_marked(message);
        let is_changed = self.view.layout.is_rewritten(message) || !self.masked(message..message + 1).is_empty();
        if !is_changed && !is_marked {
            return ViewMessage::Unchanged(message);
        }
        let sent = self.sent_message(message);
        if is_changed || sent != self.log.message(message) {
            ViewMessage::Rendered(message, sent)
        } else {
            ViewMessage::Unchanged(message)
        }
    }

    /// The first message that changed in the current view since this was called last; and the masked results from there on, or from
    /// this message on if it is earlier.
    pub(crate) fn masks(&mut self, since: usize) -> (usize, Vec<Mask>) {
        let first = self.view.masks_from;
        let masks = self.masks_of(first.min(since).min(self.log.len())..self.log.len());
        self.view.masks_from = self.log.len();
        (first, masks)
    }

    /// The masked results of these messages.
    fn masks_of(&self, messages: Range<usize>) -> Vec<Mask> {
        let masked = self.masked(messages);
        self.with_context(|context| {
            let placeholder = context.placeholder;
            let text = |one: &crate::plan::Masked| {
                let result = one.result as usize;
                let facts = facts(context.outline, context.pairs, Some(context.turns), result);
                let facts = placeholder.with_handle(facts, context.outline, context.source, result);
                let text = match &one.form {
                    Form::Clip(cut) => context.source.clipped(context.outline, result, &cut.clip),
                    form => placeholder.render(form, &facts, || context.source.observation(context.outline, result)),
                };
                (self.place_of(result), text)
            };
            masked.iter().map(text).collect()
        })
    }

    /// The message of the summary in the view.
    pub(in crate::session) fn summary_message(&self) -> Vec<u8> {
        let mut out = vec![];
        self.view.layout.summary.iter().for_each(|summary| summary_message(summary, &mut out));
        out
    }

    /// Renders places of the view, each with the bracket or comma before it.
    pub(super) fn render(&self, start: usize, end: usize) -> Vec<u8> {
        let mut out = vec![];
        for (number, part) in self.view.layout.parts(start..end).enumerate() {
            out.push(if start + number == 0 { b'[' } else { b',' });
            match part {
                Part::Messages(messages) => {
                    self.log.render(&self.policy, messages.clone(), &self.masked(messages), &[], &mut out);
                }
                Part::Rewritten(message, cut, summary) => out.extend(self.rewritten(message, cut, summary)),
                Part::Summary(summary) => summary_message(summary, &mut out),
            }
        }
        out
    }

    pub(super) fn rendered_message(&self, message: usize) -> Vec<u8> {
        let layout = &self.view.layout;
        self.rewritten(message, layout.hidden.cut_of(message), layout.joined_to(message))
    }

    /// A message that may be cut, and have the text of a summary.
    fn rewritten(&self, message: usize, cut: Option<&Cut>, summary: Option<&Summary>) -> Vec<u8> {
        let (mut out, messages) = (vec![], message..message + 1);
        match cut {
            Some(cut) => self.log.render_cut(&self.policy, cut, &mut out),
            None => self.log.render(&self.policy, messages.clone(), &self.masked(messages), &[], &mut out),
        }
        if self.view.layout.drops_reasoning_of(message) {
            out = unsigned_message(&out);
        }
        if let Some(summary) = summary {
            let alone = core::mem::take(&mut out);
            joined_message(&alone, summary, &mut out);
        }
        out
    }
}
