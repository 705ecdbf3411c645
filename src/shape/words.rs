//! The vocabulary of messages: sets of keys, and the meanings of roles and types.

use super::{Key, Shape};

/// The meaning of a word. `==` compares machine words, where the arms of a `match` would compare byte by byte.
macro_rules! meaning {
    ($word:expr, $($($text:literal)|+ => $meaning:expr,)* _ => $other:expr $(,)?) => {{
        $(if $($word == $text)||+ {
            return $meaning;
        })*
        $other
    }};
}

macro_rules! keys {
    ($($key:ident $text:literal),* $(,)?) => {
        /// A key that some shape reads.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Key {
            $(#[doc = concat!("`", $text, "`.")] $key,)*
        }

        impl Key {
            pub(crate) const ALL: &[Key] = &[$(Key::$key),*];

            /// Finds the key with this text.
            #[inline]
            pub(crate) fn of(key: &[u8]) -> Option<Key> {
                $(if key == $text.as_bytes() {
                    return Some(Key::$key);
                })*
                None
            }

            pub(crate) fn name(self) -> &'static str {
                match self { $(Key::$key => $text),* }
            }
        }
    };
}

pub(super) use keys;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Keys(u128);

impl Keys {
    /// The set of these keys.
    pub(crate) const fn of(keys: &[Key]) -> Keys {
        let (mut set, mut place) = (0, 0);
        while place < keys.len() {
            set |= 1 << keys[place] as u32;
            place += 1;
        }
        Keys(set)
    }

    /// Adds a key. Returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, key: Key) -> bool {
        let before = self.0;
        self.0 |= 1 << key as u32;
        self.0 != before
    }

    /// Whether it holds a key.
    #[inline]
    pub(crate) fn has(self, key: Key) -> bool {
        self.0 >> key as u32 & 1 == 1
    }
}

/// The role of a message, as rules distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    System,
    User,
    Assistant,
    #[default]
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RoleName {
    #[default]
    Other,
    System,
    Developer,
    User,
    Assistant,
    Model,
    Tool,
}

impl RoleName {
    /// The meaning of a `role`.
    pub(crate) fn of(name: &[u8]) -> RoleName {
        meaning! { name,
            b"system" => RoleName::System,
            b"developer" => RoleName::Developer,
            b"user" => RoleName::User,
            b"assistant" => RoleName::Assistant,
            b"model" => RoleName::Model,
            b"tool" => RoleName::Tool,
            _ => RoleName::Other,
        }
    }

    /// The role as rules distinguish it.
    pub(crate) fn role(self) -> Role {
        match self {
            RoleName::System | RoleName::Developer => Role::System,
            RoleName::User => Role::User,
            RoleName::Assistant | RoleName::Model => Role::Assistant,
            RoleName::Tool | RoleName::Other => Role::Other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PairRole {
    #[default]
    Other,
    Call,
    Result,
}

impl PairRole {
    /// The meaning of a `pairRole`.
    pub(crate) fn of(name: &[u8]) -> PairRole {
        meaning! { name,
            b"call" => PairRole::Call,
            b"result" => PairRole::Result,
            _ => PairRole::Other,
        }
    }
}

/// The tool of a call that the client runs: an output of another kind is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolKind {
    #[default]
    Other,
    Function,
    Custom,
    Computer,
    LocalShell,
    Shell,
    ApplyPatch,
    /// `tool_search`.
    Search,
    /// A tool that Gemini runs itself.
    OfGemini,
}

impl ToolKind {
    fn of(name: &[u8]) -> ToolKind {
        meaning! { name,
            b"function" => ToolKind::Function,
            b"custom_tool" => ToolKind::Custom,
            b"computer" => ToolKind::Computer,
            b"local_shell" => ToolKind::LocalShell,
            b"shell" => ToolKind::Shell,
            b"apply_patch" => ToolKind::ApplyPatch,
            b"tool_search" => ToolKind::Search,
            b"code_execution" | b"google_search" | b"google_maps" | b"url_context" => ToolKind::OfGemini,
            b"file_search" | b"retrieval" | b"processing" | b"mcp_server_tool" => ToolKind::OfGemini,
            _ => ToolKind::Other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ItemType {
    #[default]
    Other,
    /// Ends in `_call`.
    Call(ToolKind),
    /// Ends in `_call_output`.
    CallOutput(ToolKind),
    /// `tool_search_output`: tools that a search of the client has found, which the model may then call.
    ToolSearchOutput,
    Reasoning,
    /// `mcp_approval_request`: a call that the user has to permit.
    ApprovalRequest,
    ApprovalResponse,
    /// `compaction`: what the provider has made of all that precedes it.
    Compaction,
    /// A step of Gemini's Interactions; its calls are [`ItemType::Call`].
    Step(StepType),
    /// `tool_search_result`, and a result with functions: tools that the model may call later.
    ToolDefinitions,
    /// Of no known type, and without a content.
    Unknown,
}

/// A kind of step of Gemini's Interactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepType {
    UserInput,
    ModelOutput,
    Thought,
    FunctionCall,
    FunctionResult,
    /// A call of a tool that the provider runs.
    ProviderCall,
    ProviderResult,
}

impl ItemType {
    /// The meaning of the `type` of a message.
    pub(crate) fn of(name: &[u8]) -> ItemType {
        if let Some(tool) = name.strip_suffix(b"_call") {
            return ItemType::Call(ToolKind::of(tool));
        }
        if let Some(tool) = name.strip_suffix(b"_call_output") {
            return ItemType::CallOutput(ToolKind::of(tool));
        }
        if let Some(tool) = name.strip_suffix(b"_result") {
            return match ToolKind::of(tool) {
                ToolKind::Function => ItemType::Step(StepType::FunctionResult),
                ToolKind::OfGemini => ItemType::Step(StepType::ProviderResult),
                ToolKind::Search => ItemType::ToolDefinitions,
                _ => ItemType::Other,
            };
        }
        meaning! { name,
            b"user_input" => ItemType::Step(StepType::UserInput),
            b"model_output" => ItemType::Step(StepType::ModelOutput),
            b"thought" => ItemType::Step(StepType::Thought),
            b"tool_search_output" => ItemType::ToolSearchOutput,
            b"reasoning" => ItemType::Reasoning,
            b"mcp_approval_request" => ItemType::ApprovalRequest,
            b"mcp_approval_response" => ItemType::ApprovalResponse,
            b"compaction" | b"compaction_summary" => ItemType::Compaction,
            _ => ItemType::Other,
        }
    }

    /// Whether it is of Gemini's Interactions alone.
    pub(super) fn is_step(self) -> bool {
        matches!(self, ItemType::Step(_) | ItemType::ToolDefinitions)
    }

    /// Whether the model makes it, whatever its role is.
    pub(crate) fn is_agent_made(self) -> bool {
        matches!(self, ItemType::Call(_) | ItemType::Reasoning | ItemType::ApprovalRequest)
    }

    /// What an item or a step of this type is besides: calls that the client does not answer, and what is found and permitted.
    pub(super) fn besides(self, shape: Shape) -> Besides {
        match self {
            ItemType::ToolSearchOutput | ItemType::ToolDefinitions => Besides::Lasting,
            ItemType::Call(ToolKind::Search) if shape.is_plain() => Besides::Lasting,
            ItemType::Call(_) if shape.is_plain() => Besides::Something,
            ItemType::ApprovalRequest | ItemType::ApprovalResponse | ItemType::Compaction => Besides::Something,
            _ => Besides::Nothing,
        }
    }

    /// Whether this call takes an output of that type, as far as its type is known. Codex answers a local shell like a function.
    pub(crate) fn takes(self, output: ItemType) -> bool {
        use ToolKind::{Function, LocalShell, Other, Search};
        match (self, output) {
            (ItemType::Call(LocalShell), ItemType::CallOutput(Function))
            | (ItemType::Call(Search), ItemType::ToolSearchOutput)
            | (ItemType::ApprovalRequest, ItemType::ApprovalResponse) => true,
            (ItemType::Call(tool), ItemType::CallOutput(other)) => tool == other || tool == Other || other == Other,
            _ => false,
        }
    }
}

/// `type` of a part or block of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PartType {
    #[default]
    Other,
    Text,
    /// An image or other binary data.
    Image,
    /// `document`: binary data, or text.
    Document,
    /// Thoughts of the model: counted apart, as `reasoning`.
    Thinking,
    ToolUse,
    ToolResult,
    /// `tool_reference`: a tool that a search has found, which the model may then call.
    ToolReference,
    /// A call of a tool that the provider runs: `server_tool_use`, `mcp_tool_use`.
    ServerUse,
    /// Its result: `…_tool_result`.
    ServerResult,
    /// `compaction`: what the provider has made of all that precedes it.
    Compaction,
    /// `function_result`: a result in a step of Gemini's Interactions.
    FunctionResult,
    /// `function`: a tool in such a result, which the model may then call.
    Function,
    /// `tool_search_tool_result`: tools that a search of the provider has found, which the model may then call.
    LoadedTools,
    /// Text, reasoning or a call of the agent, in another form.
    OfAgent,
    /// Of another known type.
    Known,
}

/// What a message has besides calls, results, and the text and reasoning of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Besides {
    #[default]
    Nothing,
    /// Words or a picture of the user beside results; in an answer a picture, or what the provider has run.
    Something,
    /// What loads tools, and what is of an unknown type.
    Lasting,
}

impl PartType {
    /// The meaning of the `type` of a part.
    pub(crate) fn of(name: &[u8]) -> PartType {
        meaning! { name,
            b"text" | b"input_text" | b"output_text" => PartType::Text,
            b"image" | b"image_url" | b"input_image" | b"file" | b"input_file" => PartType::Image,
            b"input_audio" | b"audio" | b"video" | b"video_url" | b"computer_screenshot" => PartType::Image,
            b"media" | b"image-data" | b"image-url" | b"file-data" | b"file-url" => PartType::Image,
            b"document" => PartType::Document,
            b"tool_use" => PartType::ToolUse,
            b"tool_result" => PartType::ToolResult,
            b"tool_reference" => PartType::ToolReference,
            b"thinking" | b"redacted_thinking" => PartType::Thinking,
            b"compaction" => PartType::Compaction,
            b"function_result" => PartType::FunctionResult,
            b"function" => PartType::Function,
            _ => PartType::of_server(name),
        }
    }

    #[cold]
    fn of_server(name: &[u8]) -> PartType {
        match name {
            b"tool_search_tool_result" => PartType::LoadedTools,
            b"refusal" | b"reasoning" | b"function_call" | b"tool_call" | b"tool-call" => PartType::OfAgent,
            b"fallback" | b"search_result" | b"container_upload" => PartType::Known,
            _ if name.ends_with(b"_tool_use") => PartType::ServerUse,
            _ if name.ends_with(b"_tool_result") => PartType::ServerResult,
            _ => PartType::Other,
        }
    }

    /// Whether a message with such a part is one of Anthropic.
    pub(crate) fn is_of_anthropic(self) -> bool {
        use PartType::{Compaction, LoadedTools, ServerResult, ServerUse, ToolResult, ToolUse};
        matches!(self, ToolUse | ToolResult | ServerUse | ServerResult | LoadedTools | Compaction)
    }

    /// What a message of the agent with such a part has besides.
    pub(crate) fn besides(self) -> Besides {
        use PartType::{Function, LoadedTools, OfAgent, Other, Text, Thinking, ToolReference, ToolResult, ToolUse};
        match self {
            Text | Thinking | ToolUse | ToolResult | OfAgent => Besides::Nothing,
            ToolReference | Function | LoadedTools | Other => Besides::Lasting,
            _ => Besides::Something,
        }
    }
}
