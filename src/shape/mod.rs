//! The shapes of messages: which fields make a call, a result and an observation, and where a placeholder goes. Each
//! shape is a module with one `read`, which says no where its fields are not there; the first that says yes counts.
//! Bytes and Python objects are read by the same code. Nothing outside of this folder asks which shape a message has.

mod anthropic;
mod chat_message;
mod converse;
mod gemini;
mod openai;
mod responses;
mod value;
mod words;

pub use value::{Id, RawCall, RawResult, Sink, Value};
pub use words::{Key, Keys, Role};

use core::cell::Cell;
use value::{Place, part, present, refuse_repeated, word, wrong_content};
use words::{ItemType, PairRole, PartType, RoleName};

/// Which row of the table of shapes a message fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// Neither calls nor results.
    #[default]
    Plain,
    /// `pairRole` and `pairId`.
    ChatMessage,
    /// `OpenAI` chat.
    OpenAi,
    /// Anthropic blocks.
    Anthropic,
    /// An item of `OpenAI`'s Responses.
    Responses,
    /// Bedrock's Converse.
    Converse,
    /// Gemini's contents.
    Gemini,
}

/// What stands around the text that takes the place of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Frame {
    /// Nothing: it is a string.
    #[default]
    Text,
    /// Nothing: it is the string that is the only member of an object, which is the observation's value to dicts.
    Only,
    /// It is the `text` of the one block of a list.
    TextBlocks,
    /// The same, in the place of a list that holds more than text.
    Blocks,
    /// It is the `output` of an object, in the place of one that is no text.
    Output,
}

/// A container of a [`Frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrap {
    /// A list with one element.
    List,
    /// An object with one member.
    Member(Key),
}

impl Frame {
    /// Its containers, from the outside in.
    #[must_use]
    pub fn wraps(self) -> &'static [Wrap] {
        match self {
            Frame::Text | Frame::Only => &[],
            Frame::TextBlocks | Frame::Blocks => &[Wrap::List, Wrap::Member(Key::Text)],
            Frame::Output => &[Wrap::Member(Key::Output)],
        }
    }

    /// Whether the observation is text; else it is JSON, which has characters but no text.
    #[must_use]
    pub fn holds_text(self) -> bool {
        !matches!(self, Frame::Output | Frame::Blocks)
    }

    /// Writes a string, which `text` writes with its quotes, in its frame.
    pub fn write(self, out: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>)) {
        for wrap in self.wraps() {
            match wrap {
                Wrap::List => out.push(b'['),
                Wrap::Member(key) => out.extend([b"{\"", key.name().as_bytes(), b"\":"].concat()),
            }
        }
        text(out);
        out.extend(self.wraps().iter().rev().map(|wrap| if *wrap == Wrap::List { b']' } else { b'}' }));
    }
}

/// The way from a message to the value of an observation.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// The list of its blocks, if results are blocks.
    pub blocks: Option<Key>,
    /// From the block, or else from the message; each in all its spellings.
    pub fields: &'static [&'static [Key]],
}

impl Shape {
    /// The way to the value of an observation.
    #[must_use]
    pub fn path(self) -> Path {
        match self {
            Shape::Plain | Shape::ChatMessage | Shape::OpenAi => Path { blocks: None, fields: &[&[Key::Content]] },
            Shape::Anthropic => anthropic::PATH,
            Shape::Responses => responses::PATH,
            Shape::Converse => converse::PATH,
            Shape::Gemini => gemini::PATH,
        }
    }

    /// The field of a summary's message that holds its text, and what stands around that.
    #[must_use]
    pub fn summary(self) -> (Key, Frame) {
        match self {
            Shape::Converse => (Key::Content, Frame::TextBlocks),
            Shape::Gemini => (Key::Parts, Frame::TextBlocks),
            _ => (Key::Content, Frame::Text),
        }
    }

    /// Whether results are blocks of a message, which may hold many of them and something else.
    #[must_use]
    pub fn has_blocks(self) -> bool {
        self.path().blocks.is_some()
    }

    /// Whether results must come before all other blocks of their message.
    #[must_use]
    pub fn wants_results_first(self) -> bool {
        matches!(self, Shape::Anthropic | Shape::Converse)
    }

    /// Whether an API of this shape takes system messages among the others.
    #[must_use]
    pub fn takes_system_messages(self) -> bool {
        !matches!(self, Shape::Anthropic | Shape::Converse | Shape::Gemini)
    }
}

/// Fields of a request body that may be the history; the first that is a list is.
pub const BODY_KEYS: [&str; 3] = ["messages", "input", "contents"];

/// Keys that must not stand twice in a message, and in a part of a content or of an observation.
const MESSAGE_KEYS: Keys = Keys::of(&[
    Key::Role,
    Key::Content,
    Key::Type,
    Key::ToolCalls,
    Key::ToolCallId,
    Key::PairRole,
    Key::PairId,
    Key::CallId,
    Key::Name,
    Key::Arguments,
    Key::Input,
    Key::Action,
    Key::Output,
    Key::Tags,
    Key::Parts,
]);
const BLOCK_KEYS: Keys =
    Keys::of(&[Key::Type, Key::Text, Key::Id, Key::Name, Key::Input, Key::ToolUseId, Key::Content, Key::IsError]);
const PART_KEYS: Keys = Keys::of(&[Key::Type, Key::Text]);

/// What every message has, and what it is known by.
pub struct Facts {
    /// Its role.
    pub role: Role,
    /// The row that it fits.
    pub shape: Shape,
    /// Blocks of its content, where that is a list.
    pub blocks: u32,
    /// Made by the agent: an assistant message, a `…_call` item or a reasoning item.
    pub is_agent_made: bool,
    /// An item that only `OpenAI`'s Responses know.
    pub is_responses_item: bool,
}

/// A message, and the fields by which its shape is known.
struct Head<'a, V: Value> {
    message: &'a V::Object,
    role: RoleName,
    pair_role: PairRole,
    item: ItemType,
    content: Option<V>,
    /// How many blocks it has.
    blocks: Cell<usize>,
    tool_calls: Option<V>,
    tool_call_id: Option<V>,
}

/// Reads a message.
#[inline]
pub fn read<V: Value, S: Sink<V>>(message: &V::Object, sink: &mut S) -> Result<Facts, V::Stop> {
    refuse_repeated::<V>(message, MESSAGE_KEYS, None)?;
    let head = Head::<V>::of(message, sink)?;
    let shape = if chat_message::read(&head, sink)? {
        Shape::ChatMessage
    } else if openai::read(&head, sink)? {
        Shape::OpenAi
    } else if anthropic::read(&head, sink)? {
        Shape::Anthropic
    } else if responses::read(&head, sink)? {
        Shape::Responses
    } else if converse::read(&head, sink)? {
        Shape::Converse
    } else if gemini::read(&head, sink)? {
        Shape::Gemini
    } else {
        head.content(sink)?;
        Shape::Plain
    };
    let role = head.role.role();
    Ok(Facts {
        role,
        shape,
        blocks: head.blocks.get() as u32,
        is_agent_made: role == Role::Assistant || matches!(head.item, ItemType::Call | ItemType::Reasoning),
        is_responses_item: head.item != ItemType::Other,
    })
}

impl<'a, V: Value> Head<'a, V> {
    #[inline]
    fn of(message: &'a V::Object, sink: &mut impl Sink<V>) -> Result<Self, V::Stop> {
        // As soon as all fields that it has were seen, no other is looked up.
        let mut unseen = V::members(message);
        let mut get = |key: Key| -> Result<Option<V>, V::Stop> {
            if unseen == 0 {
                return Ok(None);
            }
            let value = V::get(message, key)?;
            unseen -= usize::from(value.is_some());
            Ok(value)
        };
        let role = word(get(Key::Role)?.as_ref(), RoleName::of);
        let content = get(Key::Content)?;
        if role == RoleName::Tool
            && let Some(content) = &content
        {
            sink.observation_ahead(content);
        }
        let tool_call_id = if role == RoleName::Tool { get(Key::ToolCallId)? } else { None };
        let tool_calls = if role == RoleName::Assistant { get(Key::ToolCalls)? } else { None };
        let pair_role = word(get(Key::PairRole)?.as_ref(), PairRole::of);
        let item = word(get(Key::Type)?.as_ref(), ItemType::of);
        let blocks = Cell::new(content.as_ref().map_or(0, V::length));
        Ok(Head { message, role, pair_role, item, content, blocks, tool_calls, tool_call_id })
    }

    /// The content, where it is no observation.
    fn content(&self, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
        texts(self.content.as_ref(), BLOCK_KEYS, &Place::of(Key::Content), sink)
    }

    /// The content as the observation of the result with this id.
    #[inline]
    fn content_result(&self, id: Option<&V>, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
        let result = RawResult::of(id, self.content.as_ref(), 0, false);
        observation(&result, BLOCK_KEYS, &Place::of(Key::Content), sink)
    }
}

/// A result, whose observation is text, parts or null.
#[inline]
fn observation<V: Value>(
    result: &RawResult<V>,
    keys: Keys,
    place: &Place,
    sink: &mut impl Sink<V>,
) -> Result<(), V::Stop> {
    sink.begin_observation();
    texts(result.value, keys, place, sink)?;
    sink.result(result)
}

/// Reads the value of an observation again.
pub fn read_observation<V: Value>(value: &V, frame: Frame, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    let place = Place::of(Key::Content);
    match frame {
        Frame::TextBlocks => converse::read_parts(value, &place, sink).map(drop),
        Frame::Text | Frame::Only if value.text().is_some() || value.items().is_some() => {
            texts(Some(value), PART_KEYS, &place, sink)
        }
        _ => Ok(()),
    }
}

/// Text, or parts of which only texts and images count, or null.
#[inline]
fn texts<V: Value>(value: Option<&V>, keys: Keys, place: &Place, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    match present(value) {
        None => Ok(()),
        Some(value) => text_or_parts(value, keys, place, sink),
    }
}

fn text_or_parts<V: Value>(value: &V, keys: Keys, place: &Place, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    if let Some(text) = value.text() {
        return sink.text(text);
    }
    let Some(parts) = value.items() else { return Err(wrong_content(value, place)) };
    for (index, item) in parts.enumerate() {
        let object = part(&item, keys, &place.index(index))?;
        text_or_image::<V>(object, part_type::<V>(object)?, sink)?;
    }
    Ok(())
}

fn text_or_image<V: Value>(object: &V::Object, kind: PartType, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    match kind {
        PartType::Text => match V::get(object, Key::Text)?.as_ref().and_then(V::text) {
            Some(text) => sink.text(text),
            None => Ok(()),
        },
        PartType::Image => {
            sink.image();
            Ok(())
        }
        _ => Ok(()),
    }
}

#[inline]
fn part_type<V: Value>(part: &V::Object) -> Result<PartType, V::Stop> {
    Ok(word(V::get(part, Key::Type)?.as_ref(), PartType::of))
}
