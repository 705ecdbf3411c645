//! The fast path: the most common layouts of messages, matched by whole literals and written to the Outline directly. Their
//! fields are in the usual order, compact or spaced as by `json.dumps`.
//!
//! Anything else, valid or not, is read from its start by the general path. So the fast path must not accept what the general
//! path refuses, or read it differently.

use super::Scan;
use super::write::CALL_CHARS;
use crate::json::Counted;
use crate::outline::{Call, Message, Role, Shape, Span, ToolResult};
use crate::shape::Frame;

/// Whether colons and commas are followed by a space.
trait Style {
    const ROLE: &'static [u8];
    const TOOL_CALL_ID: &'static [u8];
    const CONTENT: &'static [u8];
    const TOOL_TEXT: &'static [u8];
    const ASSISTANT: &'static [u8];
    const USER: &'static [u8];
    const SYSTEM: &'static [u8];
    const DEVELOPER: &'static [u8];
    const COMMA: &'static [u8];
    const TOOL_CALLS: &'static [u8];
    const CALL_ID: &'static [u8];
    const CALL_NAME: &'static [u8];
    const CALL_FUNCTION: &'static [u8];
    const CALL_ARGUMENTS: &'static [u8];
    const PAIR_CALL: &'static [u8];
    const PAIR_RESULT: &'static [u8];
    const TEXT_BLOCK: &'static [u8];
    const USE_BLOCK: &'static [u8];
    const USE_NAME: &'static [u8];
    const USE_INPUT: &'static [u8];
    const RESULT_BLOCK: &'static [u8];
}

macro_rules! style {
    ($name:ident, $space:literal) => {
        struct $name;

        impl Style for $name {
            const ROLE: &'static [u8] = concat!(r#"{"role":"#, $space, r#"""#).as_bytes();
            const TOOL_CALL_ID: &'static [u8] =
                concat!(r#"tool","#, $space, r#""tool_call_id":"#, $space, r#"""#).as_bytes();
            const CONTENT: &'static [u8] = concat!(r#"","#, $space, r#""content":"#, $space, r#"""#).as_bytes();
            const TOOL_TEXT: &'static [u8] = concat!(r#"tool","#, $space, r#""content":"#, $space, r#"""#).as_bytes();
            const ASSISTANT: &'static [u8] = concat!(r#"assistant","#, $space, r#""content":"#, $space).as_bytes();
            const USER: &'static [u8] = concat!(r#"user","#, $space, r#""content":"#, $space).as_bytes();
            const SYSTEM: &'static [u8] = concat!(r#"system","#, $space, r#""content":"#, $space).as_bytes();
            const DEVELOPER: &'static [u8] = concat!(r#"developer","#, $space, r#""content":"#, $space).as_bytes();
            const COMMA: &'static [u8] = concat!(",", $space).as_bytes();
            const TOOL_CALLS: &'static [u8] = concat!(",", $space, r#""tool_calls":"#, $space, "[").as_bytes();
            const CALL_ID: &'static [u8] = concat!(r#"{"id":"#, $space, r#"""#).as_bytes();
            const CALL_NAME: &'static [u8] = concat!(
                r#"","#,
                $space,
                r#""type":"#,
                $space,
                r#""function","#,
                $space,
                r#""function":"#,
                $space,
                r#"{"name":"#,
                $space,
                r#"""#
            )
            .as_bytes();
            const CALL_FUNCTION: &'static [u8] =
                concat!(r#"","#, $space, r#""function":"#, $space, r#"{"name":"#, $space, r#"""#).as_bytes();
            const CALL_ARGUMENTS: &'static [u8] =
                concat!(r#"","#, $space, r#""arguments":"#, $space, r#"""#).as_bytes();
            const PAIR_CALL: &'static [u8] = concat!(
                r#"","#,
                $space,
                r#""pairRole":"#,
                $space,
                r#""call","#,
                $space,
                r#""pairId":"#,
                $space,
                r#"""#
            )
            .as_bytes();
            const PAIR_RESULT: &'static [u8] = concat!(
                r#"","#,
                $space,
                r#""pairRole":"#,
                $space,
                r#""result","#,
                $space,
                r#""pairId":"#,
                $space,
                r#"""#
            )
            .as_bytes();
            const TEXT_BLOCK: &'static [u8] = concat!(r#"text","#, $space, r#""text":"#, $space, r#"""#).as_bytes();
            const USE_BLOCK: &'static [u8] = concat!(r#"tool_use","#, $space, r#""id":"#, $space, r#"""#).as_bytes();
            const USE_NAME: &'static [u8] = concat!(r#"","#, $space, r#""name":"#, $space, r#"""#).as_bytes();
            const USE_INPUT: &'static [u8] = concat!(r#"","#, $space, r#""input":"#, $space).as_bytes();
            const RESULT_BLOCK: &'static [u8] =
                concat!(r#"tool_result","#, $space, r#""tool_use_id":"#, $space, r#"""#).as_bytes();
        }
    };
}
style!(Compact, "");
style!(Spaced, " ");

/// The position after the literal, if it is at `at`.
#[inline]
fn after(data: &[u8], at: usize, literal: &[u8]) -> Option<usize> {
    data.get(at..)?.starts_with(literal).then_some(at + literal.len())
}

/// What was read of a message.
struct Quick {
    chars: usize,
    blocks: u32,
    role: Role,
    shape: Shape,
    end: usize,
}

impl Scan<'_> {
    /// Reads the message at the cursor if it has a common layout; otherwise nothing changes.
    #[inline]
    pub(super) fn quick_message(&mut self) -> bool {
        let (data, start) = (self.cursor.data, self.cursor.at);
        let (first_call, first_result) = (self.outline.calls.len(), self.outline.results.len());
        let first_piece = self.outline.pieces.len();
        let read = if let Some(at) = after(data, start, Compact::ROLE) {
            self.quick::<Compact>(at)
        } else if let Some(at) = after(data, start, Spaced::ROLE) {
            self.quick::<Spaced>(at)
        } else {
            return false;
        };
        let Some(Quick { chars, blocks, role, shape, end }) = read else {
            self.outline.calls.truncate(first_call);
            self.outline.results.truncate(first_result);
            self.outline.pieces.truncate(first_piece);
            return false;
        };
        let message = Message {
            chars,
            images: 0,
            first_call: first_call as u32,
            first_result: first_result as u32,
            first_piece: first_piece as u32,
            blocks,
            role,
            shape,
            is_agent_made: role == Role::Assistant,
            is_responses_item: false,
        };
        self.outline.push(message, Span { start, end });
        self.cursor.at = end;
        true
    }

    /// Continues at the value of `role`.
    #[inline]
    fn quick<S: Style>(&mut self, at: usize) -> Option<Quick> {
        let data = self.cursor.data;
        match data.get(at)? {
            b't' => self.quick_result::<S>(at),
            b'a' => self.quick_content::<S>(after(data, at, S::ASSISTANT)?, Role::Assistant),
            b'u' => self.quick_content::<S>(after(data, at, S::USER)?, Role::User),
            b's' => self.quick_content::<S>(after(data, at, S::SYSTEM)?, Role::System),
            b'd' => self.quick_content::<S>(after(data, at, S::DEVELOPER)?, Role::System),
            _ => None,
        }
    }

    /// A message that is one result: `OpenAI` chat, or `ChatMessage`.
    #[inline]
    fn quick_result<S: Style>(&mut self, at: usize) -> Option<Quick> {
        let data = self.cursor.data;
        if let Some(id) = after(data, at, S::TOOL_CALL_ID) {
            let id = self.quick_id(id)?;
            let text = self.quick_text(after(data, id.end, S::CONTENT)?)?;
            let end = after(data, text.end, b"\"}")?;
            let chars = self.quick_observation(id, &text, 0);
            return Some(Quick { chars, blocks: 0, role: Role::Other, shape: Shape::OpenAi, end });
        }
        let text = self.quick_text(after(data, at, S::TOOL_TEXT)?)?;
        let id = self.quick_id(after(data, text.end, S::PAIR_RESULT)?)?;
        let end = after(data, id.end, b"\"}")?;
        let chars = self.quick_observation(id, &text, 0);
        Some(Quick { chars, blocks: 0, role: Role::Other, shape: Shape::ChatMessage, end })
    }

    /// A message of another role, at the value of its `content`.
    #[inline]
    fn quick_content<S: Style>(&mut self, at: usize, role: Role) -> Option<Quick> {
        let data = self.cursor.data;
        let (chars, at) = match data.get(at)? {
            b'"' => {
                let text = self.quick_text(at + 1)?;
                let chars = self.quick_piece(&text);
                if let Some(id) = after(data, text.end, S::PAIR_CALL) {
                    let id = self.quick_id(id)?;
                    let end = after(data, id.end, b"\"}")?;
                    let chars = chars + CALL_CHARS;
                    self.quick_call(id, None, 0);
                    return Some(Quick { chars, blocks: 0, role, shape: Shape::ChatMessage, end });
                }
                (chars, text.end + 1)
            }
            b'[' => return self.quick_blocks::<S>(at + 1, role),
            _ => (0, after(data, at, b"null")?),
        };
        if let Some(end) = after(data, at, b"}") {
            return Some(Quick { chars, blocks: 0, role, shape: Shape::Plain, end });
        }
        if role != Role::Assistant {
            return None;
        }
        self.quick_tool_calls::<S>(after(data, at, S::TOOL_CALLS)?, chars)
    }

    /// The calls of `OpenAI` chat, after the bracket that opens their list.
    #[inline]
    fn quick_tool_calls<S: Style>(&mut self, mut at: usize, mut chars: usize) -> Option<Quick> {
        let data = self.cursor.data;
        for block in 0.. {
            let id = self.quick_id(after(data, at, S::CALL_ID)?)?;
            // Some clients omit the type, which is always the same.
            let name = after(data, id.end, S::CALL_NAME).or_else(|| after(data, id.end, S::CALL_FUNCTION))?;
            let name = self.quick_id(name)?;
            let arguments = self.quick_text(after(data, name.end, S::CALL_ARGUMENTS)?)?;
            at = after(data, arguments.end, b"\"}}")?;
            chars += name.end - name.start + arguments.chars() + CALL_CHARS;
            self.quick_call(id, Some(name), block);
            match after(data, at, S::COMMA) {
                Some(next) => at = next,
                None => break,
            }
        }
        let end = after(data, at, b"]}")?;
        Some(Quick { chars, blocks: 0, role: Role::Assistant, shape: Shape::OpenAi, end })
    }

    /// The blocks of a content, after the bracket that opens their list.
    #[inline]
    fn quick_blocks<S: Style>(&mut self, mut at: usize, role: Role) -> Option<Quick> {
        let data = self.cursor.data;
        let (mut chars, mut blocks, mut shape) = (0, 0, Shape::Plain);
        loop {
            at = after(data, at, b"{\"type\":")?;
            at = after(data, at, &S::COMMA[1..])?;
            at = after(data, at, b"\"")?;
            if let Some(result) = after(data, at, S::RESULT_BLOCK) {
                let id = self.quick_id(result)?;
                let text = self.quick_text(after(data, id.end, S::CONTENT)?)?;
                at = after(data, text.end, b"\"}")?;
                chars += self.quick_observation(id, &text, blocks);
                shape = Shape::Anthropic;
            } else if let Some(text) = after(data, at, S::TEXT_BLOCK) {
                let text = self.quick_text(text)?;
                at = after(data, text.end, b"\"}")?;
                chars += self.quick_piece(&text);
            } else {
                let id = self.quick_id(after(data, at, S::USE_BLOCK)?)?;
                let name = self.quick_id(after(data, id.end, S::USE_NAME)?)?;
                let input = after(data, name.end, S::USE_INPUT)?;
                if data.get(input) != Some(&b'{') {
                    return None;
                }
                // Three levels deep: message, content, block.
                let (size, end) = self.cursor.value_at(input, 3)?;
                at = after(data, end, b"}")?;
                chars += name.end - name.start + size + CALL_CHARS;
                self.quick_call(id, Some(name), blocks);
                shape = Shape::Anthropic;
            }
            blocks += 1;
            match after(data, at, S::COMMA) {
                Some(next) => at = next,
                None => break,
            }
        }
        let end = after(data, at, b"]}")?;
        Some(Quick { chars, blocks, role, shape, end })
    }

    /// A string of plain ASCII without escapes.
    #[inline]
    fn quick_id(&mut self, start: usize) -> Option<Span> {
        let text = self.quick_text(start)?;
        (text.minus == 0).then_some(Span { start, end: text.end })
    }

    #[inline]
    fn quick_text(&mut self, start: usize) -> Option<Counted> {
        self.cursor.find(start)
    }

    #[inline]
    fn quick_piece(&mut self, text: &Counted) -> usize {
        self.outline.pieces.push(Span { start: text.start, end: text.end });
        text.chars()
    }

    #[inline]
    fn quick_call(&mut self, id: Span, name: Option<Span>, block: u32) {
        let data = self.cursor.data;
        let id = Some(self.outline.keep_from(data, id));
        let name = name.map(|name| self.outline.intern(name.of(data)));
        let message = self.outline.messages.len() as u32;
        self.outline.calls.push(Call { id, name, message, block });
    }

    /// A result whose observation is one string. Returns its characters.
    #[inline]
    fn quick_observation(&mut self, id: Span, text: &Counted, block: u32) -> usize {
        let data = self.cursor.data;
        let first_piece = self.outline.pieces.len() as u32;
        let chars = self.quick_piece(text);
        let result = ToolResult {
            id: Some(self.outline.keep_from(data, id)),
            name: None,
            value: Span { start: text.start - 1, end: text.end + 1 },
            chars,
            newlines: 0,
            message: self.outline.messages.len() as u32,
            block,
            images: 0,
            first_piece,
            pieces: 1,
            first_byte: data[text.start],
            is_error: false,
            is_pinned: false,
            frame: Frame::Text,
            may_hold_dispatch: text.may_hold_needle,
        };
        self.outline.results.push(result);
        chars
    }
}
