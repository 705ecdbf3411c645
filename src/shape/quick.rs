//! The most common layouts of messages, matched by whole literals: their fields are in the usual order, compact or spaced as by
//! `json.dumps`.
//!
//! Anything else, valid or not, is read from its start by the general path. So the layouts must not accept what the general
//! path refuses, or read it differently.

use super::{Besides, MessageFacts, Role, Shape};
use crate::text::Counted;

/// Reads values of the message, and receives what is found in it, in document order.
pub(crate) trait Recorder {
    /// The string after the quote before `start`, if it is valid.
    fn string(&mut self, start: usize) -> Option<Counted>;
    /// The size of the value at `at` as the arguments of a call, nested this deep in its message, and its end.
    fn size(&mut self, at: usize, depth: usize) -> Option<(usize, usize)>;
    /// Reads the arguments of a call that are a string. Returns their characters, as the next three functions do.
    fn arguments(&mut self, arguments: &Counted) -> usize;
    /// Reads a text.
    fn text(&mut self, text: &Counted) -> usize;
    /// A call, whose arguments are counted by its caller.
    fn call(&mut self, id: &Counted, name: Option<&Counted>, block: u32) -> usize;
    /// A result whose observation is one string.
    fn result(&mut self, id: &Counted, text: &Counted, block: u32) -> usize;
}

/// A message of a common layout.
pub(crate) struct QuickMessage {
    pub facts: MessageFacts,
    pub chars: usize,
    pub end: usize,
}

impl QuickMessage {
    #[inline]
    fn of(role: Role, shape: Shape, chars: usize, end: usize) -> Self {
        QuickMessage { facts: MessageFacts::of(role, shape, 0), chars, end }
    }
}

/// Reads the message at `start` if it has a common layout. Otherwise the caller discards what was recorded.
#[inline]
pub(crate) fn quick_message<R: Recorder>(data: &[u8], start: usize, recorder: &mut R) -> Option<QuickMessage> {
    let mut quick = Quick { data, recorder };
    if let Some(at) = after(data, start, Compact::ROLE) {
        quick.message::<Compact>(at)
    } else {
        quick.message::<Spaced>(after(data, start, Spaced::ROLE)?)
    }
}

/// Each literal without spaces, and with one wherever a comma or colon is followed by one.
macro_rules! styles {
    ($($name:ident = $first:literal $($rest:literal)*;)*) => {
        trait Style {
            $(const $name: &'static [u8];)*
        }

        struct Compact;

        impl Style for Compact {
            $(const $name: &'static [u8] = concat!($first, $($rest),*).as_bytes();)*
        }

        struct Spaced;

        impl Style for Spaced {
            $(const $name: &'static [u8] = concat!($first $(, " ", $rest)*).as_bytes();)*
        }
    };
}
styles! {
    ROLE = r#"{"role":"# r#"""#;
    TOOL_CALL_ID = r#"tool","# r#""tool_call_id":"# r#"""#;
    CONTENT = r#"","# r#""content":"# r#"""#;
    TOOL_TEXT = r#"tool","# r#""content":"# r#"""#;
    ASSISTANT = r#"assistant","# r#""content":"# "";
    USER = r#"user","# r#""content":"# "";
    SYSTEM = r#"system","# r#""content":"# "";
    DEVELOPER = r#"developer","# r#""content":"# "";
    COMMA = "," "";
    TOOL_CALLS = "," r#""tool_calls":"# "[";
    CALL_ID = r#"{"id":"# r#"""#;
    CALL_NAME = r#"","# r#""type":"# r#""function","# r#""function":"# r#"{"name":"# r#"""#;
    CALL_FUNCTION = r#"","# r#""function":"# r#"{"name":"# r#"""#;
    CALL_ARGUMENTS = r#"","# r#""arguments":"# r#"""#;
    PAIR_CALL = r#"","# r#""pairRole":"# r#""call","# r#""pairId":"# r#"""#;
    PAIR_RESULT = r#"","# r#""pairRole":"# r#""result","# r#""pairId":"# r#"""#;
    BLOCK = r#"{"type":"# r#"""#;
    TEXT_BLOCK = r#"text","# r#""text":"# r#"""#;
    USE_BLOCK = r#"tool_use","# r#""id":"# r#"""#;
    USE_NAME = r#"","# r#""name":"# r#"""#;
    USE_INPUT = r#"","# r#""input":"# "";
    RESULT_BLOCK = r#"tool_result","# r#""tool_use_id":"# r#"""#;
}

/// The position after the literal, if it is at `at`.
#[inline]
fn after(data: &[u8], at: usize, literal: &[u8]) -> Option<usize> {
    data.get(at..)?.starts_with(literal).then_some(at + literal.len())
}

struct Quick<'a, R> {
    data: &'a [u8],
    recorder: &'a mut R,
}

impl<R: Recorder> Quick<'_, R> {
    /// Continues at the value of `role`.
    #[inline]
    fn message<S: Style>(&mut self, at: usize) -> Option<QuickMessage> {
        let data = self.data;
        match data.get(at)? {
            b't' => self.result::<S>(at),
            b'a' => self.content::<S>(after(data, at, S::ASSISTANT)?, Role::Assistant),
            b'u' => self.content::<S>(after(data, at, S::USER)?, Role::User),
            b's' => self.content::<S>(after(data, at, S::SYSTEM)?, Role::System),
            b'd' => self.content::<S>(after(data, at, S::DEVELOPER)?, Role::System),
            _ => None,
        }
    }

    /// A message that is one result: `OpenAI` chat, or `ChatMessage`.
    #[inline]
    fn result<S: Style>(&mut self, at: usize) -> Option<QuickMessage> {
        let data = self.data;
        if let Some(id) = after(data, at, S::TOOL_CALL_ID) {
            let id = self.id(id)?;
            let text = self.recorder.string(after(data, id.end, S::CONTENT)?)?;
            let end = after(data, text.end, b"\"}")?;
            let chars = self.recorder.result(&id, &text, 0);
            return Some(QuickMessage::of(Role::Other, Shape::OpenAi, chars, end));
        }
        let text = self.recorder.string(after(data, at, S::TOOL_TEXT)?)?;
        let id = self.id(after(data, text.end, S::PAIR_RESULT)?)?;
        let end = after(data, id.end, b"\"}")?;
        let chars = self.recorder.result(&id, &text, 0);
        Some(QuickMessage::of(Role::Other, Shape::ChatMessage, chars, end))
    }

    /// A message of another role, at the value of its `content`.
    #[inline]
    fn content<S: Style>(&mut self, at: usize, role: Role) -> Option<QuickMessage> {
        let data = self.data;
        let (chars, at) = match data.get(at)? {
            b'"' => {
                let text = self.recorder.string(at + 1)?;
                let chars = self.recorder.text(&text);
                if let Some(id) = after(data, text.end, S::PAIR_CALL) {
                    let id = self.id(id)?;
                    let end = after(data, id.end, b"\"}")?;
                    let chars = chars + self.recorder.call(&id, None, 0);
                    return Some(QuickMessage::of(role, Shape::ChatMessage, chars, end));
                }
                (chars, text.end + 1)
            }
            b'[' => return self.blocks::<S>(at + 1, role),
            _ => (0, after(data, at, b"null")?),
        };
        if let Some(end) = after(data, at, b"}") {
            return Some(QuickMessage::of(role, Shape::Plain, chars, end));
        }
        if role != Role::Assistant {
            return None;
        }
        self.tool_calls::<S>(after(data, at, S::TOOL_CALLS)?, chars)
    }

    /// The calls of `OpenAI` chat, after the bracket that opens their list.
    #[inline]
    fn tool_calls<S: Style>(&mut self, mut at: usize, mut chars: usize) -> Option<QuickMessage> {
        let data = self.data;
        for block in 0.. {
            let id = self.id(after(data, at, S::CALL_ID)?)?;
            // Some clients omit the type, which is always the same.
            let name = after(data, id.end, S::CALL_NAME).or_else(|| after(data, id.end, S::CALL_FUNCTION))?;
            let name = self.id(name)?;
            let arguments = self.recorder.string(after(data, name.end, S::CALL_ARGUMENTS)?)?;
            at = after(data, arguments.end, b"\"}}")?;
            chars += self.recorder.arguments(&arguments) + self.recorder.call(&id, Some(&name), block);
            match after(data, at, S::COMMA) {
                Some(next) => at = next,
                None => break,
            }
        }
        let end = after(data, at, b"]}")?;
        Some(QuickMessage::of(Role::Assistant, Shape::OpenAi, chars, end))
    }

    /// The blocks of a content, after the bracket that opens their list.
    #[inline]
    fn blocks<S: Style>(&mut self, mut at: usize, role: Role) -> Option<QuickMessage> {
        let data = self.data;
        let (mut chars, mut blocks, mut shape, mut has_text) = (0, 0, Shape::Plain, false);
        loop {
            at = after(data, at, S::BLOCK)?;
            if let Some(result) = after(data, at, S::RESULT_BLOCK) {
                let id = self.id(result)?;
                let text = self.recorder.string(after(data, id.end, S::CONTENT)?)?;
                at = after(data, text.end, b"\"}")?;
                chars += self.recorder.result(&id, &text, blocks);
                shape = Shape::Anthropic;
            } else if let Some(text) = after(data, at, S::TEXT_BLOCK) {
                let text = self.recorder.string(text)?;
                at = after(data, text.end, b"\"}")?;
                chars += self.recorder.text(&text);
                has_text = true;
            } else {
                let id = self.id(after(data, at, S::USE_BLOCK)?)?;
                let name = self.id(after(data, id.end, S::USE_NAME)?)?;
                let input = after(data, name.end, S::USE_INPUT)?;
                if data.get(input) != Some(&b'{') {
                    return None;
                }
                // Three levels deep: message, content, block.
                let (size, end) = self.recorder.size(input, 3)?;
                at = after(data, end, b"}")?;
                chars += size + self.recorder.call(&id, Some(&name), blocks);
                shape = Shape::Anthropic;
            }
            blocks += 1;
            match after(data, at, S::COMMA) {
                Some(next) => at = next,
                None => break,
            }
        }
        let end = after(data, at, b"]}")?;
        let is_beside = has_text && role == Role::User && shape == Shape::Anthropic;
        let besides = if is_beside { Besides::Something } else { Besides::Nothing };
        Some(QuickMessage { facts: MessageFacts { besides, ..MessageFacts::of(role, shape, blocks) }, chars, end })
    }

    /// A string of plain ASCII without escapes.
    #[inline]
    fn id(&mut self, start: usize) -> Option<Counted> {
        self.recorder.string(start).filter(|text| text.minus == 0)
    }
}
