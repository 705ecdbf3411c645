//! What a view shows, in order: messages, and the summary that stands for those that it hides. Bytes, lists and masks are rendered
//! in this order.

use super::hidden::Hidden;
use super::masked::Cut;
use super::sent::{START, mixed, mixed_bytes};
use crate::outline::{Outline, Shape};
use core::iter::from_fn;
use core::ops::Range;
use std::sync::Arc;

/// The text of a summary, and how a message has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The decoded text, including the first line.
    pub text: Vec<u8>,
    /// The role of its message.
    pub role: String,
    /// The shape of its message.
    pub shape: Shape,
    /// The message that has the text as its last block; None: the summary is a message of its own.
    pub joins: Option<usize>,
}

/// The order of a view. Its places count from 0, its summary included.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Layout {
    pub hidden: Hidden,
    pub summary: Option<Summary>,
    /// How many messages the history has.
    pub messages: usize,
    /// The messages that are shown without their signed reasoning, in order: all before `reasoning_from` that have some.
    pub unsigned: Arc<Vec<u32>>,
    /// The items of signed reasoning before it, which stay, and which the provider drops.
    pub unread: Arc<Vec<u32>>,
    pub reasoning_from: usize,
}

/// What is at a place of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    Message(usize),
    Summary,
}

/// A stretch of a view.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    /// Messages in a row, which only masks and marks change.
    Messages(Range<usize>),
    /// A message that is cut, has the text of the summary, or is shown without its reasoning.
    Rewritten(usize, Option<&'a Cut>, Option<&'a Summary>),
    Summary(&'a Summary),
}

impl Layout {
    /// The order of all messages.
    pub(crate) fn whole(messages: usize) -> Self {
        Layout { messages, ..Layout::default() }
    }

    /// Shows no signed reasoning before this message.
    pub(crate) fn drop_reasoning(&mut self, outline: &Outline, before: usize) {
        let signed = (0..before as u32).filter(|message| outline.messages[*message as usize].is_signed);
        let (unsigned, unread) = signed.partition(|message| outline.messages[*message as usize].can_lose_reasoning());
        (self.unsigned, self.unread, self.reasoning_from) = (Arc::new(unsigned), Arc::new(unread), before);
    }

    /// Shows no other signed reasoning than an earlier layout.
    pub(crate) fn keep_reasoning_of(&mut self, before: &Layout) {
        self.unsigned = before.unsigned.clone();
        self.unread = before.unread.clone();
        self.reasoning_from = before.reasoning_from;
    }

    /// Whether a message is shown without its signed reasoning.
    pub(crate) fn drops_reasoning_of(&self, message: usize) -> bool {
        self.unsigned.binary_search(&(message as u32)).is_ok()
    }

    /// How many messages are shown without their signed reasoning, or have some that the provider drops.
    pub(crate) fn reasoning_dropped(&self) -> usize {
        let dropped = self.unsigned.iter().chain(&*self.unread);
        dropped.filter(|message| !self.hidden.has(**message as usize)).count()
    }

    /// The digest of what it hides, cuts and inserts before a message.
    pub(crate) fn digest_before(&self, messages: usize) -> u64 {
        let Layout { hidden, summary, .. } = self;
        if hidden.is_empty() && hidden.cuts.is_empty() && summary.is_none() {
            return START;
        }
        let gone = hidden.messages().take_while(|message| *message < messages);
        let mut digest = gone.fold(START, |digest, message| mixed(digest, message as u64));
        for cut in hidden.cuts.iter().filter(|cut| cut.message < messages) {
            digest = mixed_bytes(mixed(digest, cut.message as u64), format!("{:?}", cut.clip).as_bytes());
        }
        if let Some((standing, summary)) = hidden.summary.zip(summary.as_ref()) {
            digest = mixed_bytes(mixed(digest, standing.place as u64), &summary.text);
            digest = mixed(digest, summary.joins.map_or(0, |message| message as u64 + 1));
        }
        digest
    }

    /// Whether it has all messages as they are, but for masks, marks and reasoning.
    pub(crate) fn is_whole(&self) -> bool {
        self.hidden.is_empty() && self.hidden.cuts.is_empty() && self.summary.is_none()
    }

    /// The place of its summary.
    pub(crate) fn summary_place(&self) -> Option<usize> {
        let summary = self.summary.as_ref().filter(|summary| summary.joins.is_none());
        let standing = self.hidden.summary.filter(|_| summary.is_some())?;
        Some(self.hidden.shown_before(standing.place.min(self.messages)))
    }

    /// The summary whose text this message has.
    pub(crate) fn joined_to(&self, message: usize) -> Option<&Summary> {
        self.summary.as_ref().filter(|summary| summary.joins == Some(message))
    }

    /// Whether a message is shown otherwise than masks and marks make it.
    pub(crate) fn is_rewritten(&self, message: usize) -> bool {
        self.is_joined_or_cut(message) || self.drops_reasoning_of(message)
    }

    /// Whether a message is cut, or has the text of the summary.
    pub(crate) fn is_joined_or_cut(&self, message: usize) -> bool {
        self.hidden.cut_of(message).is_some() || self.joined_to(message).is_some()
    }

    /// How many places it has.
    pub(crate) fn len(&self) -> usize {
        self.hidden.shown_before(self.messages) + usize::from(self.summary_place().is_some())
    }

    /// What is at a place.
    pub(crate) fn item(&self, place: usize) -> Item {
        match self.summary_place() {
            Some(summary) if place == summary => Item::Summary,
            Some(summary) if place > summary => Item::Message(self.hidden.shown_at(place - 1)),
            _ => Item::Message(self.hidden.shown_at(place)),
        }
    }

    /// The first message at this place or after it.
    pub(crate) fn message_from(&self, place: usize) -> usize {
        match self.item(place) {
            Item::Message(message) => message,
            Item::Summary => self.hidden.summary.map_or(0, |summary| summary.place),
        }
    }

    /// The place of a message, or where it would be.
    pub(crate) fn place_of(&self, message: usize) -> usize {
        let place = self.hidden.shown_before(message);
        place + usize::from(self.summary_place().is_some_and(|summary| summary <= place))
    }

    /// The first place that differs from that of an earlier layout, if of the messages this is the first that is masked otherwise.
    pub(crate) fn first_change(&self, before: &Layout, changed: Option<usize>) -> usize {
        let key = |layout: &Layout| layout.hidden.summary.map(|standing| standing.key);
        let is_same_summary = self.summary == before.summary && key(self) == key(before);
        let (now, then) = (&self.unsigned, &before.unsigned);
        let is_shared = Arc::ptr_eq(now, then);
        let same =
            if is_shared { now.len() } else { now.iter().zip(&**then).take_while(|(now, then)| now == then).count() };
        let unsigned = now[same..].first().into_iter().chain(then[same..].first()).map(|message| *message as usize);
        let first = unsigned.chain(changed).min();
        let is_same = |place: usize| {
            let item = self.item(place);
            item == before.item(place)
                && match item {
                    Item::Summary => is_same_summary,
                    Item::Message(message) => {
                        Some(message) != changed
                            && self.hidden.cut_of(message) == before.hidden.cut_of(message)
                            && self.joined_to(message) == before.joined_to(message)
                            && self.drops_reasoning_of(message) == before.drops_reasoning_of(message)
                    }
                }
        };
        let both = before.len().min(self.len());
        if self.hidden == before.hidden && is_same_summary {
            return first.map_or(both, |first| self.place_of(first).min(both));
        }
        (0..both).find(|place| !is_same(*place)).unwrap_or(both)
    }

    /// The parts from one place up to another, in order.
    pub(crate) fn parts(&self, mut places: Range<usize>) -> impl Iterator<Item = Part<'_>> {
        let summary_place = self.summary_place().unwrap_or(usize::MAX);
        from_fn(move || {
            let place = places.next()?;
            if place == summary_place {
                return self.summary.as_ref().map(Part::Summary);
            }
            let shown = place - usize::from(place > summary_place);
            let first = self.hidden.shown_at(shown);
            if self.is_rewritten(first) {
                return Some(Part::Rewritten(first, self.hidden.cut_of(first), self.joined_to(first)));
            }
            let end = if place < summary_place { places.end.min(summary_place) } else { places.end };
            let mut in_row = 1;
            while place + in_row < end
                && self.hidden.shown_at(shown + in_row) == first + in_row
                && !self.is_rewritten(first + in_row)
            {
                in_row += 1;
            }
            places.start = place + in_row;
            Some(Part::Messages(first..first + in_row))
        })
    }
}
