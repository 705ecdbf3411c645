//! The shapes of messages: which fields make a call, a result and an observation, and where a placeholder goes. Each
//! shape is a module with one `read`, which says no where its fields are not there; the first that says yes counts.
//! Bytes and Python objects are read by the same code. Nothing outside of this folder asks which shape a message has.

mod anthropic;
mod chat_message;
mod openai;
mod responses;
mod value;
mod words;

pub use value::{RawCall, RawResult, Sink, Value};
pub use words::{Key, Keys, Role};

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
}

/// The way from a message to the value of an observation.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// The list of its blocks, if results are blocks.
    pub blocks: Option<Key>,
    /// From the block, or else from the message.
    pub fields: &'static [Key],
}

impl Shape {
    /// The way to the value of an observation.
    #[must_use]
    pub fn path(self) -> Path {
        match self {
            Shape::Plain | Shape::ChatMessage | Shape::OpenAi => Path { blocks: None, fields: &[Key::Content] },
            Shape::Anthropic => anthropic::PATH,
            Shape::Responses => responses::PATH,
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
        self == Shape::Anthropic
    }

    /// Whether an API of this shape takes system messages among the others.
    #[must_use]
    pub fn takes_system_messages(self) -> bool {
        self != Shape::Anthropic
    }
}

/// Fields of a request body that may be the history; the first that is a list is.
pub const BODY_KEYS: [&str; 2] = ["messages", "input"];

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
    } else {
        head.content(sink)?;
        Shape::Plain
    };
    let role = head.role.role();
    Ok(Facts {
        role,
        shape,
        blocks: head.content.as_ref().map_or(0, V::length) as u32,
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
        Ok(Head { message, role, pair_role, item, content, tool_calls, tool_call_id })
    }

    /// The content, where it is no observation.
    fn content(&self, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
        texts(self.content.as_ref(), BLOCK_KEYS, &Place::of(Key::Content), sink)
    }

    /// The content as the observation of the result with this id.
    #[inline]
    fn content_result(&self, id: Option<&V>, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
        let result = RawResult { id, value: self.content.as_ref(), block: 0, is_error: false };
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
pub fn read_observation<V: Value>(value: &V, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    if value.text().is_some() || value.items().is_some() {
        texts(Some(value), PART_KEYS, &Place::of(Key::Content), sink)?;
    }
    Ok(())
}

/// Text, or parts of which only texts and images count, or null.
#[inline]
fn texts<V: Value>(value: Option<&V>, keys: Keys, place: &Place, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    let Some(value) = present(value) else { return Ok(()) };
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
