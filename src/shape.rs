//! Which fields make a call, a result and an observation: the one place that knows the shapes of messages.

use crate::outline::{Role, Shape};

/// `pairRole` of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PairRole {
    /// Anything else, or none.
    #[default]
    Other,
    /// `"call"`.
    Call,
    /// `"result"`.
    Result,
}

/// `type` of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Type {
    /// Anything else, or none.
    #[default]
    Other,
    /// Ends in `_call`.
    Call,
    /// Ends in `_call_output`.
    CallOutput,
    /// `reasoning`.
    Reasoning,
}

/// `type` of a part or block of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartType {
    /// Anything else, or none.
    #[default]
    Other,
    /// A text part.
    Text,
    /// An image or a document.
    Image,
    /// `tool_use`.
    ToolUse,
    /// `tool_result`.
    ToolResult,
}

/// `role` of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RoleName {
    /// Anything else, or none.
    #[default]
    Other,
    /// `system`.
    System,
    /// `developer`.
    Developer,
    /// `user`.
    User,
    /// `assistant`.
    Assistant,
    /// `tool`.
    Tool,
}

impl RoleName {
    /// As far as rules beside the table of shapes ask for it.
    #[must_use]
    pub fn role(self) -> Role {
        match self {
            RoleName::System | RoleName::Developer => Role::System,
            RoleName::User => Role::User,
            RoleName::Assistant => Role::Assistant,
            RoleName::Tool | RoleName::Other => Role::Other,
        }
    }
}

/// What a `role` says.
#[must_use]
pub fn role(name: &[u8]) -> RoleName {
    match name {
        b"system" => RoleName::System,
        b"developer" => RoleName::Developer,
        b"user" => RoleName::User,
        b"assistant" => RoleName::Assistant,
        b"tool" => RoleName::Tool,
        _ => RoleName::Other,
    }
}

/// What a `pairRole` says.
#[must_use]
pub fn pair_role(name: &[u8]) -> PairRole {
    match name {
        b"call" => PairRole::Call,
        b"result" => PairRole::Result,
        _ => PairRole::Other,
    }
}

/// What the `type` of a message says.
#[must_use]
pub fn message_type(name: &[u8]) -> Type {
    if name.ends_with(b"_call") {
        Type::Call
    } else if name.ends_with(b"_call_output") {
        Type::CallOutput
    } else if name == b"reasoning" {
        Type::Reasoning
    } else {
        Type::Other
    }
}

/// What the `type` of a part says.
#[must_use]
pub fn part_type(name: &[u8]) -> PartType {
    match name {
        b"text" | b"input_text" | b"output_text" => PartType::Text,
        b"image" | b"image_url" | b"input_image" | b"document" | b"file" | b"input_file" => PartType::Image,
        b"tool_use" => PartType::ToolUse,
        b"tool_result" => PartType::ToolResult,
        _ => PartType::Other,
    }
}

/// What a message is: its row in the table of shapes, and what it holds by that row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// Neither calls nor results.
    Plain,
    /// One call, by `pairId`.
    ChatCall,
    /// One result, by `pairId`; `content` is the observation.
    ChatResult,
    /// Calls in `tool_calls`.
    OpenAiCalls,
    /// One result, by `tool_call_id`; `content` is the observation.
    OpenAiResult,
    /// Calls and results among the blocks of `content`.
    Blocks,
    /// One call, by `call_id`.
    ResponsesCall,
    /// One result, by `call_id`; `output` is the observation.
    ResponsesResult,
}

impl Row {
    /// The first row that fits. What costs a look at more of the message is asked for only when it counts.
    pub fn of(
        pair_role: PairRole,
        role: RoleName,
        has_tool_calls: impl FnOnce() -> bool,
        has_tool_blocks: impl FnOnce() -> bool,
        item: Type,
        has_call_id: impl FnOnce() -> bool,
    ) -> Row {
        match pair_role {
            PairRole::Call => return Row::ChatCall,
            PairRole::Result if !matches!(role, RoleName::System | RoleName::User | RoleName::Assistant) => {
                return Row::ChatResult;
            }
            _ => {}
        }
        match role {
            RoleName::Assistant if has_tool_calls() => return Row::OpenAiCalls,
            RoleName::Tool => return Row::OpenAiResult,
            _ => {}
        }
        if has_tool_blocks() {
            return Row::Blocks;
        }
        match item {
            Type::Call if has_call_id() => Row::ResponsesCall,
            Type::CallOutput => Row::ResponsesResult,
            _ => Row::Plain,
        }
    }

    /// The shape that the row belongs to.
    #[must_use]
    pub fn shape(self) -> Shape {
        match self {
            Row::Plain => Shape::Plain,
            Row::ChatCall | Row::ChatResult => Shape::ChatMessage,
            Row::OpenAiCalls | Row::OpenAiResult => Shape::OpenAi,
            Row::Blocks => Shape::Anthropic,
            Row::ResponsesCall | Row::ResponsesResult => Shape::Responses,
        }
    }
}
