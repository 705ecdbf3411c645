//! What a message holds, field by field, before its row is known.

use super::{Scan, Text};
use crate::error::Kind;
use crate::json::{Counted, Cursor, Read, Token};
use crate::outline::Span;
use crate::shape::{self, PairRole, PartType, RoleName, Type};

/// What is wrong in a list of parts, or in an object that is read.
#[derive(Clone, Copy)]
pub(super) struct PartFault {
    pub kind: Kind,
    pub at: usize,
    /// The repeated key; empty where the part is no object.
    pub key: &'static str,
    /// The part, where it stands in a list.
    pub index: usize,
}

impl PartFault {
    pub fn field(&self, list: &str) -> String {
        let (index, key) = (self.index, self.key);
        if key.is_empty() { format!("{list}[{index}]") } else { format!("{list}[{index}].{key}") }
    }
}

/// Which of an object's keys are watched, and which came already.
#[derive(Default, Clone, Copy)]
pub(super) struct Seen {
    pub keys: u32,
    pub repeated: Option<(&'static str, usize)>,
}

impl Seen {
    /// The watched key that this one is; None if it is none, or stands there again.
    #[inline]
    pub fn key<K: Watched>(&mut self, cursor: &Cursor, key: Token) -> Option<K> {
        let watched = K::of(Text::last(cursor, key).bytes())?;
        if self.keys & watched.bit() != 0 {
            self.repeated.get_or_insert((watched.name(), key.start() - 1));
            return None;
        }
        self.keys |= watched.bit();
        Some(watched)
    }

    pub fn fault(&self, index: usize) -> Option<PartFault> {
        self.repeated.map(|(key, at)| PartFault { kind: Kind::DuplicateKey, at, key, index })
    }
}

/// An id: what has no string is not the same as what is not there.
#[derive(Default, Clone, Copy)]
pub(super) enum Id {
    #[default]
    Missing,
    NoText,
    Text(Token),
}

impl Id {
    pub fn token(self) -> Option<Token> {
        if let Id::Text(token) = self { Some(token) } else { None }
    }
}

/// A value that holds an observation, or a content.
#[derive(Default, Clone, Copy)]
pub(super) enum Body {
    #[default]
    Empty,
    Text(Counted),
    /// The list's parts are in the scratch of the scan.
    List,
    Wrong(usize),
}

/// `content` of a `tool_result`, or `output`: only its text and images count.
#[derive(Default, Clone, Copy)]
pub(super) struct Observation {
    pub body: Body,
    pub span: Span,
    pub first_piece: usize,
    pub end_piece: usize,
    pub images: u32,
    pub fault: Option<PartFault>,
}

/// A part or block of `content`.
#[derive(Default, Clone, Copy)]
pub(super) struct Part {
    pub kind: PartType,
    pub text: Option<Counted>,
    pub id: Option<Token>,
    pub name: Option<Token>,
    pub tool_use_id: Option<Token>,
    pub input: usize,
    pub content: Observation,
    pub is_error: bool,
    pub fault: Option<PartFault>,
}

/// An element of `tool_calls` that is an object.
#[derive(Clone, Copy)]
pub(super) struct ToolCall {
    pub id: Option<Token>,
    pub function: Option<Function>,
    pub custom: Option<Function>,
    pub fault: Option<PartFault>,
    pub block: u32,
}

/// `function` or `custom` of a tool call.
#[derive(Clone, Copy)]
pub(super) struct Function {
    pub name: Option<Token>,
    pub arguments: usize,
    pub repeated: Option<(&'static str, usize)>,
}

/// What the fields of a message hold, before its row is known.
#[derive(Default)]
pub(super) struct Draft {
    pub seen: Seen,
    pub role: RoleName,
    pub kind: Type,
    pub pair_role: PairRole,
    pub pair_id: Option<Token>,
    pub tool_call_id: Option<Token>,
    pub call_id: Id,
    pub name: Option<Token>,
    /// `arguments`, `input`, `action`
    pub arguments: [Option<usize>; 3],
    pub content: Body,
    pub content_span: Span,
    pub output: Observation,
}

/// The keys of one kind of object that are watched: each is read, and must not stand twice.
pub(super) trait Watched: Copy {
    fn of(key: &[u8]) -> Option<Self>;
    fn name(self) -> &'static str;
    fn bit(self) -> u32;
}

macro_rules! watched {
    ($(#[$doc:meta])* $kind:ident { $($key:ident $text:literal $bytes:literal),* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) enum $kind { $($key),* }

        impl Watched for $kind {
            #[inline]
            fn of(key: &[u8]) -> Option<Self> {
                match key {
                    $($bytes => Some($kind::$key),)*
                    _ => None,
                }
            }

            fn name(self) -> &'static str {
                match self { $($kind::$key => $text),* }
            }

            #[inline]
            fn bit(self) -> u32 {
                1 << self as u32
            }
        }
    };
}

watched!(BodyKey { Messages "messages" b"messages", Input "input" b"input" });
watched!(MessageKey {
    Role "role" b"role", Content "content" b"content", Type "type" b"type", ToolCalls "tool_calls" b"tool_calls",
    ToolCallId "tool_call_id" b"tool_call_id", PairRole "pairRole" b"pairRole", PairId "pairId" b"pairId",
    CallId "call_id" b"call_id", Name "name" b"name", Arguments "arguments" b"arguments", Input "input" b"input",
    Action "action" b"action", Output "output" b"output", Tags "tags" b"tags"
});
watched!(BlockKey {
    Type "type" b"type", Text "text" b"text", Id "id" b"id", Name "name" b"name", Input "input" b"input",
    ToolUseId "tool_use_id" b"tool_use_id", Content "content" b"content", IsError "is_error" b"is_error"
});
watched!(PartKey { Type "type" b"type", Text "text" b"text" });
watched!(ToolCallKey { Id "id" b"id", Function "function" b"function", Custom "custom" b"custom" });
watched!(FunctionKey { Name "name" b"name", Arguments "arguments" b"arguments" });
watched!(CustomKey { Name "name" b"name", Input "input" b"input" });

impl Scan<'_> {
    #[inline]
    pub(super) fn message_field(&mut self, draft: &mut Draft, key: Token) -> Read<()> {
        let Some(name) = draft.seen.key(&self.cursor, key) else {
            return self.cursor.value().map(drop);
        };
        match name {
            MessageKey::Role => draft.role = self.word(shape::role)?,
            MessageKey::Content => self.content(draft)?,
            MessageKey::Type => draft.kind = self.word(shape::message_type)?,
            MessageKey::ToolCalls => self.tool_calls()?,
            MessageKey::ToolCallId => draft.tool_call_id = self.text()?,
            MessageKey::PairRole => draft.pair_role = self.word(shape::pair_role)?,
            MessageKey::PairId => draft.pair_id = self.text()?,
            MessageKey::CallId => {
                draft.call_id = match self.cursor.peek() {
                    b'"' => Id::Text(self.cursor.string()?),
                    b'n' => {
                        self.cursor.value()?;
                        Id::Missing
                    }
                    _ => {
                        self.cursor.value()?;
                        Id::NoText
                    }
                }
            }
            MessageKey::Name => draft.name = self.text()?,
            MessageKey::Arguments => draft.arguments[0] = self.arguments()?,
            MessageKey::Input => draft.arguments[1] = self.arguments()?,
            MessageKey::Action => draft.arguments[2] = self.arguments()?,
            MessageKey::Output => draft.output = self.observation()?,
            MessageKey::Tags => {
                self.cursor.value()?;
            }
        }
        Ok(())
    }

    /// A string, or nothing.
    #[inline]
    fn text(&mut self) -> Read<Option<Token>> {
        if self.cursor.peek() == b'"' {
            return self.cursor.string().map(Some);
        }
        self.cursor.value()?;
        Ok(None)
    }

    /// A string with its counts, or nothing.
    #[inline]
    fn counted_text(&mut self) -> Read<Option<Counted>> {
        Ok(self.text()?.map(|_| self.cursor.counted))
    }

    /// A string that is one of a few words.
    #[inline]
    fn word<T: Default>(&mut self, meaning: fn(&[u8]) -> T) -> Read<T> {
        let token = self.text()?;
        Ok(token.map_or_else(T::default, |token| meaning(Text::last(&self.cursor, token).bytes())))
    }

    /// The characters of a call's arguments; None for null.
    #[inline]
    fn arguments(&mut self) -> Read<Option<usize>> {
        match self.cursor.peek() {
            b'"' => {
                self.cursor.string()?;
                Ok(Some(self.cursor.counted.chars()))
            }
            b'n' => {
                self.cursor.value()?;
                Ok(None)
            }
            _ => self.cursor.value().map(Some),
        }
    }

    fn content(&mut self, draft: &mut Draft) -> Read<()> {
        let byte = self.cursor.peek();
        let start = self.cursor.at;
        draft.content = match byte {
            b'"' => {
                self.cursor.string()?;
                Body::Text(self.cursor.counted)
            }
            b'[' => {
                self.elements(Self::block)?;
                Body::List
            }
            _ => {
                self.cursor.value()?;
                if byte == b'n' { Body::Empty } else { Body::Wrong(start) }
            }
        };
        draft.content_span = Span { start, end: self.cursor.at };
        Ok(())
    }

    fn block(&mut self, index: usize) -> Read<()> {
        let mut part = Part::default();
        let byte = self.cursor.peek();
        let at = self.cursor.at;
        if byte == b'{' {
            let mut seen = Seen::default();
            self.members(|scan, key| {
                match seen.key(&scan.cursor, key) {
                    Some(BlockKey::Type) => part.kind = scan.word(shape::part_type)?,
                    Some(BlockKey::Text) => part.text = scan.counted_text()?,
                    Some(BlockKey::Id) => part.id = scan.text()?,
                    Some(BlockKey::Name) => part.name = scan.text()?,
                    Some(BlockKey::Input) => part.input = scan.arguments()?.unwrap_or(0),
                    Some(BlockKey::ToolUseId) => part.tool_use_id = scan.text()?,
                    Some(BlockKey::Content) => part.content = scan.observation()?,
                    Some(BlockKey::IsError) => {
                        part.is_error = scan.cursor.peek() == b't';
                        scan.cursor.value()?;
                    }
                    _ => {
                        scan.cursor.value()?;
                    }
                }
                Ok(())
            })?;
            part.fault = seen.fault(index);
        } else {
            self.cursor.value()?;
            part.fault = Some(PartFault { kind: Kind::Part, at, key: "", index });
        }
        self.parts.push(part);
        Ok(())
    }

    /// A string, or a list of parts of which only texts and images count.
    fn observation(&mut self) -> Read<Observation> {
        let byte = self.cursor.peek();
        let start = self.cursor.at;
        let mut seen = Observation { first_piece: self.pieces.len(), ..Observation::default() };
        seen.body = match byte {
            b'"' => {
                self.cursor.string()?;
                Body::Text(self.cursor.counted)
            }
            b'[' => {
                self.elements(|scan, index| {
                    if scan.cursor.peek() != b'{' {
                        let at = scan.cursor.at;
                        seen.fault = seen.fault.or(Some(PartFault { kind: Kind::Part, at, key: "", index }));
                        return scan.cursor.value().map(drop);
                    }
                    let (mut keys, mut kind, mut text) = (Seen::default(), PartType::Other, None);
                    scan.members(|scan, key| {
                        match keys.key(&scan.cursor, key) {
                            Some(PartKey::Type) => kind = scan.word(shape::part_type)?,
                            Some(PartKey::Text) => text = scan.counted_text()?,
                            _ => {
                                scan.cursor.value()?;
                            }
                        }
                        Ok(())
                    })?;
                    seen.fault = seen.fault.or(keys.fault(index));
                    match (kind, text) {
                        (PartType::Text, Some(text)) => scan.pieces.push(text),
                        (PartType::Image, _) => seen.images += 1,
                        _ => {}
                    }
                    Ok(())
                })?;
                Body::List
            }
            _ => {
                self.cursor.value()?;
                if byte == b'n' { Body::Empty } else { Body::Wrong(start) }
            }
        };
        seen.end_piece = self.pieces.len();
        seen.span = Span { start, end: self.cursor.at };
        Ok(seen)
    }

    fn tool_calls(&mut self) -> Read<()> {
        if self.cursor.peek() != b'[' {
            return self.cursor.value().map(drop);
        }
        self.elements(|scan, index| {
            if scan.cursor.peek() != b'{' {
                return scan.cursor.value().map(drop);
            }
            let mut seen = Seen::default();
            let mut call = ToolCall { id: None, function: None, custom: None, fault: None, block: index as u32 };
            scan.members(|scan, key| {
                match seen.key(&scan.cursor, key) {
                    Some(ToolCallKey::Id) => call.id = scan.text()?,
                    Some(ToolCallKey::Function) => {
                        call.function = scan.function(|key| matches!(key, FunctionKey::Name))?;
                    }
                    Some(ToolCallKey::Custom) => call.custom = scan.function(|key| matches!(key, CustomKey::Name))?,
                    _ => {
                        scan.cursor.value()?;
                    }
                }
                Ok(())
            })?;
            call.fault = seen.fault(index);
            scan.tool_calls.push(call);
            Ok(())
        })
    }

    /// The object that names the function of a call: one key is its name, the other watched one its arguments.
    fn function<K: Watched>(&mut self, is_name: fn(K) -> bool) -> Read<Option<Function>> {
        if self.cursor.peek() != b'{' {
            self.cursor.value()?;
            return Ok(None);
        }
        let mut seen = Seen::default();
        let mut function = Function { name: None, arguments: 0, repeated: None };
        self.members(|scan, key| {
            match seen.key(&scan.cursor, key) {
                Some(key) if is_name(key) => function.name = scan.text()?,
                Some(_) => function.arguments = scan.arguments()?.unwrap_or(0),
                None => {
                    scan.cursor.value()?;
                }
            }
            Ok(())
        })?;
        function.repeated = seen.repeated;
        Ok(Some(function))
    }
}
