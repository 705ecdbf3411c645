//! The shapes of messages: which fields make a call, a result and an observation, and where a placeholder goes. Each shape is a
//! module with one `read`, which returns false if the message has another shape; the first match counts. The same code reads
//! bytes and Python objects. No code outside of this folder depends on the shape of a message.

mod again;
mod answer;
mod anthropic;
mod chat_message;
mod converse;
mod frame;
mod gemini;
mod interactions;
mod message;
mod openai;
mod parts;
mod quick;
mod reasoning;
mod responses;
mod signed;
mod value;
mod words;

pub(crate) use again::read_observation;
pub(crate) use answer::{answer, answering_message, json_string};
pub use frame::Frame;
pub(crate) use frame::Wrap;
pub(crate) use quick::{QuickMessage, Recorder, quick_message};
pub(crate) use responses::STREAMS;
pub(crate) use signed::{BLOCKS, NO_REASONING, SIGNED_FIELDS, is_signed_block};
pub use value::NameUse;
pub(crate) use value::{RawCall, RawResult, Sink, Value};
pub(crate) use words::Keys;
pub use words::{Besides, ItemType, Role, ToolKind};

use message::RawMessage;
use parts::{count, member_chars, size_of};
use signed::{has_signed_fields, is_thinking};
use value::{present, refuse_repeated, word};
use words::{PartType, RoleName};

// Compared in this order, so the most common ones come first.
words::keys! {
    Role "role", Content "content", Type "type", Id "id", Name "name",
    Text "text", CallId "call_id", ToolCallId "tool_call_id",
    Function "function", Arguments "arguments", ToolCalls "tool_calls",
    Output "output", Input "input", ToolUseId "tool_use_id",
    IsError "is_error", PairRole "pairRole", PairId "pairId",
    Action "action", Tags "tags", Custom "custom",
    Parts "parts", FunctionCall "functionCall",
    FunctionCallSnake "function_call", FunctionResponse "functionResponse",
    FunctionResponseSnake "function_response", Args "args",
    Response "response", Error "error", Thought "thought",
    InlineData "inlineData", InlineDataSnake "inline_data",
    FileData "fileData", FileDataSnake "file_data",
    ToolUse "toolUse", ToolResult "toolResult", ToolUseIdCamel "toolUseId",
    Status "status", Json "json", Image "image", Document "document",
    Video "video", Audio "audio", ReasoningContent "reasoningContent",
    CachePoint "cachePoint", Source "source", CacheControl "cache_control",
    PromptCacheBreakpoint "prompt_cache_breakpoint",
    Stdout "stdout", Stderr "stderr", Operation "operation", Actions "actions",
    ToolName "tool_name", ApprovalRequestId "approval_request_id",
    Approve "approve", Reason "reason", Result "result",
    ThinkingBlocks "thinking_blocks", ReasoningDetails "reasoning_details", Format "format",
    Data "data", Blob "blob", Resource "resource", Images "images",
    MimeType "mimeType", MimeTypeSnake "mime_type", MediaType "mediaType", MediaTypeSnake "media_type",
    ReasoningContentSnake "reasoning_content", Reasoning "reasoning", ReasoningWords "reasoning_text",
    Thinking "thinking", ReasoningText "reasoningText", RedactedContent "redactedContent", Signature "signature",
    ThoughtSignature "thoughtSignature", ThoughtSignatureSnake "thought_signature",
    EncryptedContent "encrypted_content", Summary "summary",
    ToolCall "toolCall", ToolCallSnake "tool_call", ToolResponse "toolResponse", ToolResponseSnake "tool_response",
    ExecutableCode "executableCode", ExecutableCodeSnake "executable_code",
    CodeExecutionResult "codeExecutionResult", CodeExecutionResultSnake "code_execution_result",
}

impl Key {
    /// Whether containers in it are recorded; others are skipped.
    #[inline]
    pub(crate) fn is_opened(self) -> bool {
        OPENED.has(self)
    }
}

const OPENED: Keys = Keys::of(&[
    Key::Content,
    Key::ToolCalls,
    Key::Function,
    Key::Custom,
    Key::Output,
    Key::Parts,
    Key::FunctionCall,
    Key::FunctionCallSnake,
    Key::FunctionResponse,
    Key::FunctionResponseSnake,
    Key::Response,
    Key::Result,
    Key::ToolUse,
    Key::ToolResult,
    Key::Document,
    Key::Source,
    Key::ThinkingBlocks,
    Key::ReasoningDetails,
    Key::Resource,
    Key::Images,
    Key::ReasoningContent,
    Key::ReasoningText,
    Key::Summary,
]);

/// The shape of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Shape {
    /// A message without calls and results.
    #[default]
    Plain,
    /// `pairRole` and `pairId`.
    ChatMessage,
    OpenAi,
    Anthropic,
    /// An item of `OpenAI`'s Responses.
    Responses,
    Converse,
    Gemini,
    /// A step of Gemini's Interactions.
    Interactions,
    /// A `user_input` of these with results.
    InteractionsInput,
    /// Unknown: its owner gives the facts.
    Facts,
}

/// The path from a message to the value of an observation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    /// The list of its blocks, if results are blocks.
    pub blocks: Option<Key>,
    /// Fields from the block, or from the message; each in all its spellings.
    pub fields: &'static [&'static [Key]],
}

impl Shape {
    /// The path to the value of an observation.
    pub(crate) fn path(self) -> Path {
        match self {
            Shape::Plain | Shape::ChatMessage | Shape::OpenAi | Shape::Facts => {
                Path { blocks: None, fields: &[&[Key::Content]] }
            }
            Shape::Anthropic => anthropic::PATH,
            Shape::Responses => responses::PATH,
            Shape::Converse => converse::PATH,
            Shape::Gemini => gemini::PATH,
            Shape::Interactions => interactions::PATH,
            Shape::InteractionsInput => interactions::INPUT_PATH,
        }
    }

    /// The field with the text of a message that recede writes, and its frame.
    pub(crate) fn text(self) -> (Key, Frame) {
        match self {
            Shape::Converse => (Key::Content, Frame::TextBlocks),
            Shape::Gemini => (Key::Parts, Frame::TextBlocks),
            Shape::Interactions | Shape::InteractionsInput => (Key::Content, Frame::TypedParts),
            _ => (Key::Content, Frame::Text),
        }
    }

    /// The first field of a message that recede writes: its role; of a step its type, which is the user's.
    pub(crate) fn head(self, role: &str) -> (Key, &str) {
        if self.family() == Shape::Interactions { (Key::Type, "user_input") } else { (Key::Role, role) }
    }

    /// The shape of the calls that results of this shape answer.
    pub(crate) fn family(self) -> Shape {
        if self == Shape::InteractionsInput { Shape::Interactions } else { self }
    }

    /// The shape of the messages that answer several calls of this shape, if there are such.
    pub(crate) fn answered_in(self) -> Option<Shape> {
        match self {
            Shape::Interactions => Some(Shape::InteractionsInput),
            shape => shape.has_blocks().then_some(shape),
        }
    }

    /// Whether a message has neither calls nor results.
    pub(crate) fn is_plain(self) -> bool {
        self == Shape::Plain
    }

    /// Whether results are blocks of a message, which may have several of them and other blocks.
    pub(crate) fn has_blocks(self) -> bool {
        self.path().blocks.is_some()
    }

    /// Whether each message is at most one call.
    pub(crate) fn is_one_call(self) -> bool {
        matches!(self, Shape::ChatMessage | Shape::Responses | Shape::Interactions)
    }

    /// The path from a result to its id: from its block, or from its message.
    pub(crate) fn id_path(self, item: ItemType) -> &'static [Key] {
        match self {
            Shape::ChatMessage => &[Key::PairId],
            Shape::Anthropic => &[Key::ToolUseId],
            Shape::Responses if item == ItemType::ApprovalResponse => &[Key::ApprovalRequestId],
            Shape::Responses | Shape::Interactions | Shape::InteractionsInput => &[Key::CallId],
            Shape::Converse => &[Key::ToolResult, Key::ToolUseIdCamel],
            Shape::Gemini => &[],
            Shape::Plain | Shape::OpenAi | Shape::Facts => &[Key::ToolCallId],
        }
    }

    /// Whether results must come before all other blocks of their message.
    pub(crate) fn wants_results_first(self) -> bool {
        matches!(self, Shape::Anthropic | Shape::Converse)
    }

    /// Whether results without an id name their tool.
    pub(crate) fn names_results(self) -> bool {
        self == Shape::Gemini
    }

    /// Whether results may name their tool, which is then known without their call.
    pub(crate) fn may_name_results(self) -> bool {
        matches!(self.family(), Shape::OpenAi | Shape::Interactions | Shape::Facts)
    }

    /// Whether a call that has a name can be answered without an id.
    pub(crate) fn takes_names_for_ids(self) -> bool {
        matches!(self, Shape::OpenAi | Shape::Gemini)
    }

    /// The shape of this name, among the shapes that name their provider.
    pub(crate) fn of_provider(name: &str) -> Option<Self> {
        match name {
            "anthropic" => Some(Shape::Anthropic),
            "converse" => Some(Shape::Converse),
            "gemini" => Some(Shape::Gemini),
            "interactions" => Some(Shape::Interactions),
            "responses" => Some(Shape::Responses),
            _ => None,
        }
    }

    /// Whether the shape names the provider, whose prompt cache is assumed; a message without calls and results does not.
    pub(crate) fn decides_provider(self) -> bool {
        self != Shape::Plain
    }

    /// Whether the results of a turn must be in one message. Anthropic joins messages of the user before it reads them.
    pub(crate) fn wants_one_message(self) -> bool {
        matches!(self, Shape::Converse | Shape::Gemini)
    }

    /// Whether a call takes outputs of its own kind only.
    pub(crate) fn has_kinds(self) -> bool {
        self == Shape::Responses
    }

    /// Whether no two calls of a history may have the same id.
    pub(crate) fn wants_unique_ids(self) -> bool {
        matches!(self, Shape::Anthropic | Shape::Converse)
    }

    /// Whether blocks may have cache marks.
    pub(crate) fn takes_marks(self) -> bool {
        self == Shape::Anthropic
    }

    /// The type of a part with text in an observation.
    pub(crate) fn part_type(self) -> &'static str {
        if self == Shape::Responses { "input_text" } else { "text" }
    }

    /// Whether an API of this shape accepts system messages among the others.
    pub(crate) fn takes_system_messages(self) -> bool {
        !matches!(self.family(), Shape::Anthropic | Shape::Converse | Shape::Gemini | Shape::Interactions)
    }

    /// Whether an API of this shape refuses messages of one role in a row.
    pub(crate) fn alternates_roles(self) -> bool {
        self == Shape::Converse
    }
}

/// The type of a part that names a tool, and stays where its observation is replaced.
pub(crate) const REFERENCE: &str = "tool_reference";

/// Fields of a request body that may be the history, by precedence.
pub(crate) const BODY_KEYS: [&str; 3] = ["messages", "input", "contents"];

/// Keys that must not be repeated in a message, in a block, and in a part of an observation.
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
    Key::Operation,
    Key::Output,
    Key::Tags,
    Key::Parts,
    Key::IsError,
    Key::Status,
    Key::FunctionCallSnake,
    Key::Actions,
    Key::ToolName,
    Key::ApprovalRequestId,
    Key::ThinkingBlocks,
    Key::ReasoningDetails,
    Key::Result,
]);
const BLOCK_KEYS: Keys =
    Keys::of(&[Key::Type, Key::Text, Key::Id, Key::Name, Key::Input, Key::ToolUseId, Key::Content, Key::IsError]);
const PART_KEYS: Keys = Keys::of(&[Key::Type, Key::Text]);

/// Nesting of the parts of a content: message, content.
const CONTENT_DEPTH: usize = 2;

/// The role that has a name.
pub(crate) fn role_of(name: &[u8]) -> Role {
    RoleName::of(name).role()
}

/// The facts of a message of any shape.
pub(crate) struct MessageFacts {
    pub role: Role,
    pub shape: Shape,
    /// Blocks of its content, if that is a list.
    pub blocks: u32,
    /// Made by the agent: an assistant message, a `…_call` item or a reasoning item.
    pub is_agent_made: bool,
    /// The type of an item of `OpenAI`'s Responses; or that a block is a compaction.
    pub item: ItemType,
    /// What a message of a common layout has besides; of others the sink is told.
    pub besides: Besides,
}

impl MessageFacts {
    /// The facts of a message that is no item of Responses.
    #[inline]
    fn of(role: Role, shape: Shape, blocks: u32) -> Self {
        let is_agent_made = role == Role::Assistant;
        MessageFacts { role, shape, blocks, is_agent_made, item: ItemType::Other, besides: Besides::Nothing }
    }

    /// The facts of a message of unknown shape, as its owner gives them.
    pub(crate) fn given(role: Role, blocks: u32) -> Self {
        MessageFacts::of(role, Shape::Facts, blocks)
    }
}

#[inline]
pub(crate) fn read<V: Value, S: Sink<V>>(object: &V::Object, sink: &mut S) -> Result<MessageFacts, V::Stop> {
    refuse_repeated::<V>(object, MESSAGE_KEYS, None)?;
    let mut message = RawMessage::<V>::of(object, sink)?;
    sink.role(message.role.role());
    let is_chat = message.role == RoleName::Assistant; // a step gets a role below
    let shape = if chat_message::read(&message, sink)? {
        Shape::ChatMessage
    } else if openai::read(&message, sink)? {
        Shape::OpenAi
    } else if let Some(shape) = interactions::read(&mut message, sink)? {
        shape
    } else if anthropic::read(&mut message, sink)? {
        Shape::Anthropic
    } else if responses::read(&message, sink)? {
        Shape::Responses
    } else if converse::read(&message, sink)? {
        Shape::Converse
    } else if gemini::read(&message, sink)? {
        Shape::Gemini
    } else {
        match message.content {
            _ if message.item == ItemType::Reasoning => {} // counted below
            Some(_) => message.content(sink)?,
            None => {
                if opaque(&message, sink)? && message.item == ItemType::Other {
                    message.item = ItemType::Unknown;
                }
            }
        }
        if let Some(call) = present(message.function_call.as_ref()).filter(|_| message.content.is_some()) {
            count(call.size(1)?, sink);
        }
        Shape::Plain
    };
    if message.has_more {
        if is_chat && has_signed_fields::<V>(message.object)? {
            sink.signed();
        }
        if message.is_reasoning() {
            reasoning::of_item::<V>(message.object, sink)?;
        } else if message.role == RoleName::Assistant {
            reasoning::of_message::<V>(message.object, sink)?;
        } else if matches!(shape, Shape::Plain | Shape::OpenAi) {
            message.images_beside(sink)?;
        }
    }
    sink.besides(message.item.besides(shape));
    let facts = MessageFacts::of(message.role.role(), shape, message.blocks.get() as u32);
    Ok(MessageFacts { is_agent_made: facts.is_agent_made || message.item.is_agent_made(), item: message.item, ..facts })
}

#[inline]
fn part_type<V: Value>(part: &V::Object) -> Result<PartType, V::Stop> {
    Ok(word(V::get(part, Key::Type)?.as_ref(), PartType::of))
}

/// Counts a message of an unknown shape as JSON, or as the image that it is. Returns whether it has something unknown.
#[cold]
fn opaque<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    let kind = V::get(message.object, Key::Type)?;
    if word(kind.as_ref(), |kind| kind == b"image_generation_call") {
        sink.image();
        return Ok(false);
    }
    let role = V::get(message.object, Key::Role)?.map_or(Ok(0), |role| member_chars(Key::Role, &role))?;
    let chars = size_of::<V>(message.object, 0)?.saturating_sub(role);
    if chars > "{}".len() {
        sink.opaque(chars);
        if kind.as_ref().and_then(V::text).is_none() {
            sink.unread();
        }
    }
    Ok(chars > "{}".len())
}
