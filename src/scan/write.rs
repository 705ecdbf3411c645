//! The message on the tape -> Outline.

use super::Scan;
use super::tape::Node;
use crate::error::Error;
use crate::json::Counted;
use crate::outline::{Call, Half, Message, Name, Outline, Span, TextSpan, ToolResult};
use crate::shape::{self, RawCall, RawResult, Sink, Value};
use crate::text::count_chars;

/// Characters that a call counts besides its name and arguments.
pub(crate) const CALL_CHARS: usize = 20;

impl Scan<'_> {
    /// Reads the message on the tape into the Outline.
    pub(super) fn write_message(&mut self, span: Span) -> Result<(), Error> {
        let (data, outline) = (self.cursor.data, &mut self.outline);
        let index = outline.messages.len();
        outline.uncommon.push(index as u32);
        let message = Message {
            first_call: outline.calls.len() as u32,
            first_result: outline.results.len() as u32,
            first_piece: outline.pieces.len() as u32,
            ..Message::default()
        };
        outline.push(message, span);
        let node = Node::message(&self.tape);
        let mut writer = OutlineWriter {
            data,
            outline,
            message: index as u32,
            totals: TextTotals::default(),
            before: TextTotals::default(),
        };
        let facts = shape::read::<Node, _>(&node, &mut writer)?;
        let TextTotals { chars, images, .. } = writer.totals;
        let message = &mut self.outline.messages[index];
        (message.chars, message.images) = (chars, images);
        message.take(&facts);
        Ok(())
    }
}

/// Running totals of a message.
#[derive(Default, Clone, Copy)]
struct TextTotals {
    chars: usize,
    images: u32,
    pieces: u32,
}

/// Writes one message into the Outline.
struct OutlineWriter<'a> {
    data: &'a [u8],
    outline: &'a mut Outline,
    message: u32,
    totals: TextTotals,
    /// The totals before the current observation.
    before: TextTotals,
}

impl OutlineWriter<'_> {
    #[inline]
    fn id(&mut self, id: Option<&Node>) -> Option<TextSpan> {
        id.and_then(Value::text).map(|id| self.outline.keep(&id.decoded()))
    }

    /// Counts what was read of an observation that is no text.
    #[cold]
    fn forget_pieces(&mut self) {
        let pieces = (self.totals.pieces - self.before.pieces) as usize;
        self.outline.pieces.truncate(self.outline.pieces.len() - pieces);
        self.totals.pieces = self.before.pieces;
    }

    #[inline]
    fn name(&mut self, name: Option<&Node>) -> Name {
        name.and_then(Value::text).map(|name| self.outline.intern(&name.decoded()))
    }
}

impl<'a> Sink<Node<'a>> for OutlineWriter<'_> {
    #[inline]
    fn text(&mut self, text: &Node) -> Result<(), Error> {
        let text: Counted = text.counted();
        self.outline.pieces.push(Span { start: text.start, end: text.end });
        self.totals.chars += text.chars();
        self.totals.pieces += 1;
        Ok(())
    }

    fn image(&mut self) {
        self.totals.images += 1;
    }

    fn opaque(&mut self, chars: usize) {
        self.totals.chars += chars;
    }

    #[cold]
    fn unread(&mut self) {
        self.outline.unread.push(self.message);
    }

    #[cold]
    fn half(&mut self, id: Option<&Node<'a>>, block: usize, is_result: bool) -> Result<(), Error> {
        let half = self.id(id).map(|id| Half { id, message: self.message, block: block as u32, is_result });
        self.outline.halves.extend(half);
        Ok(())
    }

    fn call(&mut self, call: &RawCall<Node<'a>>) -> Result<(), Error> {
        let id = self.id(call.id);
        let name = self.name(call.name);
        let name_chars = name.map_or(0, |name| count_chars(self.outline.name(name)));
        let arguments = call.arguments.map_or(Ok(0), |arguments| arguments.size(call.depth))?;
        self.totals.chars += name_chars + arguments + CALL_CHARS;
        self.outline.calls.push(Call { id, name, message: self.message, block: call.block as u32 });
        Ok(())
    }

    #[inline]
    fn begin_observation(&mut self) {
        self.before = self.totals;
    }

    #[inline]
    fn result(&mut self, result: &RawResult<Node<'a>>) -> Result<(), Error> {
        self.totals.chars += result.chars;
        if !result.frame.holds_text() {
            self.forget_pieces();
        }
        let (totals, before) = (self.totals, self.before);
        let first_piece = self.outline.pieces.len() as u32 - (totals.pieces - before.pieces);
        let first_byte = self.outline.pieces.get(first_piece as usize).map_or(0, |piece| self.data[piece.start]);
        let result = ToolResult {
            id: self.id(result.id),
            name: self.name(result.name),
            value: result.value.map_or(Span::default(), Node::span),
            chars: totals.chars - before.chars,
            newlines: 0,
            message: self.message,
            block: result.block as u32,
            images: totals.images - before.images,
            first_piece,
            pieces: totals.pieces - before.pieces,
            first_byte,
            is_error: result.is_error,
            is_pinned: false,
            frame: result.frame,
        };
        self.outline.results.push(result);
        Ok(())
    }
}
