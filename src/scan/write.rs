//! From the draft of a message to the Outline.

use super::draft::{Body, Draft, Id, Observation, Part};
use super::{Scan, Text};
use crate::error::Kind;
use crate::json::{Counted, Token};
use crate::outline::{Call, Message, Name, Outline, Role, Span, ToolResult};
use crate::shape::{PartType, Row, Type};
use crate::text::count_chars;

/// Besides its name and arguments, a call counts this many characters.
pub const CALL_CHARS: usize = 20;

impl Scan<'_> {
    /// Reads what a message holds by its row. Gives what is wrong with its shape.
    pub(super) fn read_draft(&mut self, draft: &Draft, span: Span) -> Option<(Kind, usize, String)> {
        let data = self.cursor.data;
        let row = Row::of(
            draft.pair_role,
            draft.role,
            || !self.tool_calls.is_empty(),
            || self.parts.iter().any(|part| matches!(part.kind, PartType::ToolUse | PartType::ToolResult)),
            draft.kind,
            || !matches!(draft.call_id, Id::Missing),
        );
        let fault = self.fault_of(draft, row);
        if fault.is_some() {
            return fault;
        }
        let outline = &mut self.outline;
        let role = draft.role.role();
        let index = outline.messages.len() as u32;
        outline.messages.push(Message {
            span,
            chars: 0,
            images: 0,
            first_call: outline.calls.len() as u32,
            first_result: outline.results.len() as u32,
            first_piece: outline.pieces.len() as u32,
            blocks: self.parts.len() as u32,
            role,
            shape: row.shape(),
            is_agent_made: role == Role::Assistant || matches!(draft.kind, Type::Call | Type::Reasoning),
            is_responses_item: draft.kind != Type::Other,
        });
        let mut writer = Writer { data, outline, message: index, chars: 0, images: 0, may_hold_dispatch: false };
        writer.content(draft, row, &self.parts, &self.pieces);
        match row {
            Row::ChatCall => writer.call(draft.pair_id, None, 0, 0),
            Row::OpenAiCalls => {
                for call in &self.tool_calls {
                    let function = call.function.or(call.custom);
                    let name = function.and_then(|function| function.name);
                    writer.call(call.id, name, function.map_or(0, |function| function.arguments), call.block);
                }
            }
            Row::ResponsesCall => {
                let [arguments, input, action] = draft.arguments;
                let arguments = arguments.or(input).or(action).unwrap_or(0);
                writer.call(draft.call_id.token(), draft.name, arguments, 0);
            }
            Row::ResponsesResult => writer.observation(draft.call_id.token(), &draft.output, &self.pieces, 0, false),
            Row::Plain | Row::ChatResult | Row::OpenAiResult | Row::Blocks => {}
        }
        let (chars, images) = (writer.chars, writer.images);
        let message = &mut self.outline.messages[index as usize];
        (message.chars, message.images) = (chars, images);
        None
    }

    fn fault_of(&self, draft: &Draft, row: Row) -> Option<(Kind, usize, String)> {
        if let Some((key, at)) = draft.seen.repeated {
            return Some((Kind::DuplicateKey, at, key.to_owned()));
        }
        if let Body::Wrong(at) = draft.content {
            return Some((Kind::Content, at, "content".to_owned()));
        }
        for (index, part) in self.parts.iter().enumerate() {
            if let Some(fault) = part.fault {
                return Some((fault.kind, fault.at, fault.field("content")));
            }
            if row == Row::Blocks && part.kind == PartType::ToolResult {
                if let Body::Wrong(at) = part.content.body {
                    return Some((Kind::Content, at, format!("content[{index}].content")));
                }
                if let Some(fault) = part.content.fault {
                    return Some((fault.kind, fault.at, fault.field(&format!("content[{index}].content"))));
                }
            }
        }
        if row == Row::ResponsesResult
            && let Some(fault) = draft.output.fault
        {
            return Some((fault.kind, fault.at, fault.field("output")));
        }
        if row == Row::OpenAiCalls {
            for call in &self.tool_calls {
                let index = call.block;
                if let Some(fault) = call.fault {
                    return Some((fault.kind, fault.at, fault.field("tool_calls")));
                }
                for (name, function) in [("function", call.function), ("custom", call.custom)] {
                    if let Some((key, at)) = function.and_then(|function| function.repeated) {
                        return Some((Kind::DuplicateKey, at, format!("tool_calls[{index}].{name}.{key}")));
                    }
                }
            }
        }
        None
    }
}

/// Writes one message into the Outline.
struct Writer<'a> {
    data: &'a [u8],
    outline: &'a mut Outline,
    message: u32,
    chars: usize,
    images: u32,
    /// Of the pieces of the observation at hand.
    may_hold_dispatch: bool,
}

impl Writer<'_> {
    fn content(&mut self, draft: &Draft, row: Row, parts: &[Part], pieces: &[Counted]) {
        let id = match row {
            Row::ChatResult => Some(draft.pair_id),
            Row::OpenAiResult => Some(draft.tool_call_id),
            _ => None,
        };
        let first_piece = self.outline.pieces.len();
        match draft.content {
            Body::Text(text) => self.piece(text),
            Body::List => {
                for (block, part) in parts.iter().enumerate() {
                    match (part.kind, part.text) {
                        (PartType::Text, Some(text)) => self.piece(text),
                        (PartType::Image, _) => self.images += 1,
                        (PartType::ToolUse, _) if row == Row::Blocks => {
                            self.call(part.id, part.name, part.input, block as u32);
                        }
                        (PartType::ToolResult, _) if row == Row::Blocks => {
                            self.observation(part.tool_use_id, &part.content, pieces, block as u32, part.is_error);
                        }
                        _ => {}
                    }
                }
            }
            Body::Empty | Body::Wrong(_) => {}
        }
        if let Some(id) = id {
            self.result(id, draft.content_span, (0, 0, first_piece), 0, false);
        }
    }

    fn piece(&mut self, text: Counted) {
        self.outline.pieces.push(Span { start: text.start, end: text.end });
        self.chars += text.chars();
        self.may_hold_dispatch |= text.may_hold_needle;
    }

    fn observation(&mut self, id: Option<Token>, seen: &Observation, pieces: &[Counted], block: u32, is_error: bool) {
        let before = (self.chars, self.images, self.outline.pieces.len());
        self.may_hold_dispatch = false;
        match seen.body {
            Body::Text(text) => self.piece(text),
            Body::List => pieces[seen.first_piece..seen.end_piece].iter().for_each(|text| self.piece(*text)),
            Body::Empty | Body::Wrong(_) => {}
        }
        self.images += seen.images;
        self.result(id, seen.span, before, block, is_error);
    }

    /// A result, whose text and images were just read; `before` are the counts before that.
    fn result(&mut self, id: Option<Token>, value: Span, before: (usize, u32, usize), block: u32, is_error: bool) {
        let (chars, images, first_piece) = before;
        let result = ToolResult {
            id: self.id(id),
            value,
            chars: self.chars - chars,
            newlines: 0,
            message: self.message,
            block,
            images: self.images - images,
            first_piece: first_piece as u32,
            pieces: (self.outline.pieces.len() - first_piece) as u32,
            first_byte: self.outline.pieces.get(first_piece).map_or(0, |piece| self.data[piece.start]),
            is_error,
            may_hold_dispatch: self.may_hold_dispatch,
        };
        self.outline.results.push(result);
    }

    fn call(&mut self, id: Option<Token>, name: Option<Token>, arguments: usize, block: u32) {
        let (id, name) = (self.id(id), self.name(name));
        self.chars += name.map_or(0, |name| count_chars(self.outline.name(name))) + arguments + CALL_CHARS;
        self.outline.calls.push(Call { id, name, message: self.message, block });
    }

    fn id(&mut self, id: Option<Token>) -> Option<Span> {
        let text = Text::of(self.data, id?);
        Some(self.outline.keep(text.bytes()))
    }

    fn name(&mut self, name: Option<Token>) -> Name {
        let text = Text::of(self.data, name?);
        Some(self.outline.intern(text.bytes()))
    }
}
