//! The Outline: all facts of a history that a planner may use. Data only; both entrances fill it.

mod arrivals;
mod system;
mod texts;
mod write;

use crate::clip::Clip;
pub use crate::shape::{Besides, ItemType, NameUse, Role, Shape, ToolKind};
use crate::shape::{Frame, MessageFacts};
pub use crate::text::Span;
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
pub(crate) use system::SystemText;
use texts::RecentNames;
pub use texts::TextSpan;
pub(crate) use write::{CALL_CHARS, Texts, opaque_weight, write_message};

/// The name of a tool, as an index for [`Outline::name`].
pub(crate) type Name = Option<u32>;

#[derive(Debug, Clone, Copy, Default)]
pub struct Message {
    /// Characters of its text and calls, without images.
    pub chars: usize,
    /// Images and documents in it.
    pub images: u32,
    /// What its text and calls weigh, where tokens are asked; else 0. Likewise what can be read of its reasoning weighs, which
    /// else has so many characters, and quarter tokens of reasoning that only the provider reads.
    pub weight: usize,
    pub reasoning: usize,
    pub sealed: usize,
    /// The first of its calls; they end at the `first_call` of the next message.
    pub first_call: u32,
    /// The first of its results.
    pub first_result: u32,
    /// The first of its pieces.
    pub first_piece: u32,
    /// Blocks of its content, if that is a list.
    pub blocks: u32,
    pub role: Role,
    pub shape: Shape,
    /// Made by the agent: an assistant message, a `…_call` item or a reasoning item.
    pub is_agent_made: bool,
    /// Whether the agent made it with reasoning that a provider may verify.
    pub is_signed: bool,
    /// The type of an item of `OpenAI`'s Responses; or that a block is a compaction.
    pub item: ItemType,
    /// What it has besides calls, results, and the agent's text and reasoning.
    pub besides: Besides,
}

impl Message {
    /// Takes over the facts that its shape has read.
    #[inline]
    pub(crate) fn take(&mut self, facts: &MessageFacts) {
        let MessageFacts { role, shape, blocks, is_agent_made, item, besides } = *facts;
        (self.role, self.shape, self.blocks) = (role, shape, blocks);
        (self.is_agent_made, self.item, self.besides) = (is_agent_made, item, besides);
    }

    /// Whether its signed reasoning can be left out; that of an item of Responses stays, and the provider drops it.
    pub(crate) fn can_lose_reasoning(&self) -> bool {
        self.is_signed && self.item != ItemType::Reasoning
    }

    /// Whether nothing in it is counted: neither text, calls nor images.
    pub(crate) fn is_empty(&self) -> bool {
        self.chars == 0 && self.images == 0
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The id in [`Outline::text`], if it has one.
    pub id: Option<TextSpan>,
    pub name: Name,
    /// The message that makes it.
    pub message: u32,
    /// The place among the blocks of its message.
    pub block: u32,
}

/// A half of a call that the provider runs: the use of its tool, or what that gave. Neither masks nor windows know of it, but no view
/// has one half alone, which the provider would refuse.
#[derive(Debug, Clone, Copy)]
pub struct Half {
    /// The id in [`Outline::text`] that both have.
    pub id: TextSpan,
    /// The message that has it.
    pub message: u32,
    /// The place among the blocks of its message.
    pub block: u32,
    /// Whether it is what the tool gave.
    pub is_result: bool,
}

/// A tool result, with its observation.
#[derive(Debug, Clone, Copy)]
pub struct ToolResult {
    /// The id in [`Outline::text`], if it has one.
    pub id: Option<TextSpan>,
    /// The tool, if its shape names it.
    pub name: Name,
    /// The observation's value, including quotes or brackets, if the input was bytes.
    pub value: Span,
    /// Characters of the observation's text.
    pub chars: usize,
    /// What it weighs, where tokens are asked; else 0.
    pub weight: usize,
    /// Newlines in it; counted only if the placeholder names them.
    pub newlines: u32,
    /// The message that holds it.
    pub message: u32,
    /// The place among the blocks of its message.
    pub block: u32,
    pub images: u32,
    /// The first piece of its text.
    pub first_piece: u32,
    /// How many pieces it has.
    pub pieces: u32,
    /// The first byte of its raw text, or 0 if that is not known: reading it from the text would miss the cache.
    pub first_byte: u8,
    pub is_error: bool,
    /// Never masked.
    pub is_pinned: bool,
    /// What its name is for.
    pub name_use: NameUse,
    /// The frame of its text.
    pub frame: Frame,
    /// False only if its text has no dispatch block.
    pub may_hold_dispatch: bool,
}

/// The facts of a history.
#[derive(Debug, Default, Clone)]
pub struct Outline {
    pub messages: Vec<Message>,
    /// The bytes of each, if the input was bytes; else empty.
    pub spans: Vec<Span>,
    pub calls: Vec<Call>,
    /// Results, in document order: the sequence of observations.
    pub results: Vec<ToolResult>,
    /// The halves of calls that the provider runs, in document order.
    pub halves: Vec<Half>,
    /// The raw text of each string, without quotes, if the input was bytes.
    pub pieces: Vec<Span>,
    /// The messages of no common layout, if the input was bytes: no other has cache marks.
    pub uncommon: Vec<u32>,
    /// The messages of unknown shapes, and those with results whose text is not understood.
    pub unread: Vec<u32>,
    /// The system messages that have nothing but text, in order, each with the digest of that without its digits.
    pub system_texts: Vec<(u32, u64)>,
    /// Whether it begins with a summary of an earlier reduction, whose text is not known here.
    pub begins_with_summary: bool,
    /// The position after the bracket that opens the array, if the input was bytes.
    pub array_start: usize,
    /// The results that were cut when they arrived, in order. All counts here are those of the cut texts.
    pub cuts: Vec<(u32, Clip)>,
    /// The results that an agent has cleared, in order, which arrived as placeholders; and the characters that this removed.
    pub cleared: Vec<(u32, usize)>,
    text: Vec<u8>,
    names: Vec<TextSpan>,
    names_by_text: HashMap<Vec<u8>, u32>,
    recent_names: RecentNames,
}

/// A position in a growing Outline; by default its beginning.
#[derive(Debug, Default)]
pub struct Mark {
    messages: usize,
    calls: usize,
    results: usize,
    halves: usize,
    pieces: usize,
    text: usize,
    names: usize,
}

// The memory of an Outline of about 20 MB of history.
const MAX_SPARE_BYTES: usize = 4 << 20;

thread_local! {
    /// The memory of the last Outline. Allocating it costs as much as the scan: a page fault every 4 KB, and copies.
    static SPARE: Cell<Option<Outline>> = const { Cell::new(None) };
}

/// Makes room for this many more, and few besides: most memory of a session is in vectors, and one that doubles is half empty.
pub(crate) fn reserve<T>(vec: &mut Vec<T>, more: usize) {
    if vec.capacity() < vec.len() + more {
        vec.reserve_exact(more + vec.len() / 8);
    }
}

impl Outline {
    /// An empty Outline, in recycled memory.
    pub(crate) fn spare() -> Self {
        SPARE.take().unwrap_or_default()
    }

    /// Keeps its memory for the next Outline of this thread.
    pub(crate) fn recycle(mut self) {
        let bytes = self.messages.capacity() * size_of::<Message>()
            + (self.pieces.capacity() + self.spans.capacity()) * size_of::<Span>()
            + self.calls.capacity() * size_of::<Call>()
            + self.results.capacity() * size_of::<ToolResult>()
            + self.text.capacity();
        if bytes <= MAX_SPARE_BYTES {
            self.names_by_text = HashMap::new();
            self.truncate(&Mark::default());
            self.begins_with_summary = false;
            SPARE.set(Some(self));
        }
    }

    /// The end before this message.
    pub fn mark_before(&self, message: usize) -> Mark {
        let (calls, results) = (self.calls_before(message), self.results_before(message));
        let pieces = self.pieces_before(message);
        let ids = self.calls[calls..].iter().map(|call| call.id);
        let ids = ids.chain(self.results[results..].iter().map(|result| result.id)).flatten();
        let halves = self.halves_before(message);
        let ids = ids.chain(self.halves[halves..].iter().map(|half| half.id));
        let text = ids.map(|id| id.range().start).min().unwrap_or(self.text.len());
        // A name that only dropped messages use may stay; an empty one begins where the next id does.
        let names = self.names.partition_point(|name| name.range().end <= text);
        Mark { messages: message, calls, results, halves, pieces, text, names }
    }

    /// Truncates it to a mark.
    pub fn truncate(&mut self, mark: &Mark) {
        self.messages.truncate(mark.messages);
        self.spans.truncate(mark.messages);
        self.calls.truncate(mark.calls);
        self.results.truncate(mark.results);
        self.halves.truncate(mark.halves);
        self.pieces.truncate(mark.pieces);
        self.cuts.truncate(self.cuts_before(mark.results));
        self.cleared.truncate(self.cleared_before(mark.results));
        self.uncommon.truncate(self.uncommon.partition_point(|message| (*message as usize) < mark.messages));
        self.unread.truncate(self.unread.partition_point(|message| (*message as usize) < mark.messages));
        self.system_texts
            .truncate(self.system_texts.partition_point(|(message, _)| (*message as usize) < mark.messages));
        for name in mark.names..self.names.len() {
            self.names_by_text.remove(&self.text[self.names[name].range()]);
        }
        self.names.truncate(mark.names);
        self.recent_names = RecentNames::default();
        self.text.truncate(mark.text);
    }

    /// The digest of the text of a system message without its digits; None if it is none, or has more than text.
    pub(crate) fn system_text(&self, message: usize) -> Option<u64> {
        let place = self.system_texts.binary_search_by_key(&(message as u32), |(message, _)| *message).ok()?;
        Some(self.system_texts[place].1)
    }

    /// Adds a message with these bytes.
    #[inline]
    pub(crate) fn push(&mut self, message: Message, span: Span) {
        self.messages.push(message);
        self.spans.push(span);
    }

    pub fn calls_of(&self, message: usize) -> Range<usize> {
        self.calls_before(message)..self.calls_before(message + 1)
    }

    pub fn results_of(&self, message: usize) -> Range<usize> {
        self.results_before(message)..self.results_before(message + 1)
    }

    /// How many calls precede this message.
    pub(crate) fn calls_before(&self, message: usize) -> usize {
        self.messages.get(message).map_or(self.calls.len(), |next| next.first_call as usize)
    }

    /// How many results precede this message.
    pub(crate) fn results_before(&self, message: usize) -> usize {
        self.messages.get(message).map_or(self.results.len(), |next| next.first_result as usize)
    }

    /// How many halves precede this message.
    pub(crate) fn halves_before(&self, message: usize) -> usize {
        self.halves.partition_point(|half| (half.message as usize) < message)
    }

    /// Pieces of a message's text, observations included.
    pub fn pieces_of(&self, message: usize) -> Range<usize> {
        self.messages[message].first_piece as usize..self.pieces_before(message + 1)
    }

    /// Pieces of an observation's text.
    pub(crate) fn pieces_of_result(&self, result: usize) -> &[Span] {
        let ToolResult { first_piece, pieces, .. } = self.results[result];
        &self.pieces[first_piece as usize..(first_piece + pieces) as usize]
    }

    /// How many pieces precede this message; all if its bytes are not known.
    fn pieces_before(&self, message: usize) -> usize {
        if message < self.spans.len() { self.messages[message].first_piece as usize } else { self.pieces.len() }
    }

    /// Whether a message has results.
    pub fn holds_results(&self, message: usize) -> bool {
        !self.results_of(message).is_empty()
    }

    /// Whether a message is the user's own: of a known shape, outside of runs, without calls and results.
    pub(crate) fn is_said_by_user(&self, message: usize) -> bool {
        let Message { role, is_agent_made, .. } = self.messages[message];
        let has_pairs = !self.calls_of(message).is_empty() || self.holds_results(message);
        role == Role::User && !is_agent_made && !has_pairs && !self.is_of_no_shape(message)
    }

    /// Whether a message is never hidden: it loads tools that may be called later, has a part of an unknown type, or is of no known
    /// shape.
    pub(crate) fn is_never_hidden(&self, message: usize) -> bool {
        self.messages[message].besides == Besides::Lasting || self.is_of_no_shape(message)
    }

    /// Whether no rule knows the type of a message, and it has no content, or no role that one knows.
    fn is_of_no_shape(&self, message: usize) -> bool {
        let Message { role, shape, item, .. } = self.messages[message];
        shape.is_plain() && (item == ItemType::Unknown || (item == ItemType::Other && role == Role::Other))
    }

    /// The first of so many messages that is one of the system behind another one.
    pub(crate) fn system_inside(&self, end: usize) -> Option<usize> {
        let is_system = |message: &usize| self.messages[*message].role == Role::System;
        (0..end).skip_while(is_system).find(is_system)
    }

    /// Whether a message has words or a picture of the user beside results.
    pub(crate) fn has_words_beside(&self, message: usize) -> bool {
        let Message { role, besides, .. } = self.messages[message];
        role == Role::User && besides == Besides::Something && self.holds_results(message)
    }

    /// Whether its provider refuses messages of one role in a row: the first message whose shape names one decides.
    pub(crate) fn alternates_roles(&self) -> bool {
        let deciding = self.messages.iter().find(|message| message.shape.decides_provider());
        deciding.is_some_and(|message| message.shape.alternates_roles())
    }

    /// Characters of a message, images included.
    pub fn chars_of(&self, message: usize, image_chars: usize) -> usize {
        let message = &self.messages[message];
        message.chars.saturating_add((message.images as usize).saturating_mul(image_chars))
    }

    /// Characters of an observation, images included.
    pub(crate) fn observation_chars(&self, result: usize, image_chars: usize) -> usize {
        let result = &self.results[result];
        result.chars.saturating_add((result.images as usize).saturating_mul(image_chars))
    }

    /// Characters of the observations after this one in its message.
    pub(crate) fn later_chars(&self, result: usize, image_chars: usize) -> usize {
        let later = result + 1..self.results_of(self.results[result].message as usize).end;
        later.fold(0, |sum, other| sum.saturating_add(self.observation_chars(other, image_chars)))
    }

    /// Whether there are characters, and all of them are those of messages without a content and of no known type.
    pub(crate) fn is_unrecognized(&self) -> bool {
        let mut counted = (0..self.messages.len()).filter(|message| self.chars_of(*message, 1) > 0).peekable();
        counted.peek().is_some() && counted.all(|message| self.messages[message].item == ItemType::Unknown)
    }

    /// Characters of the whole history.
    pub fn total_chars(&self, image_chars: usize) -> usize {
        (0..self.messages.len()).fold(0, |sum, message| sum.saturating_add(self.chars_of(message, image_chars)))
    }
}
