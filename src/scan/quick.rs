//! The fast path: messages of common layouts, written to the Outline directly.

use super::Scan;
use crate::json::{Counted, decode, json_weight, string_weight};
use crate::outline::{CALL_CHARS, Call, Message, NameUse, Role, Span, SystemText, ToolResult};
use crate::shape::{Frame, QuickMessage, Recorder, quick_message};

impl Scan<'_> {
    /// Reads the message at the cursor if it has a common layout; otherwise nothing changes.
    pub(super) fn quick_message(&mut self) -> bool {
        let (data, start) = (self.cursor.data, self.cursor.at);
        let (first_call, first_result) = (self.outline.calls.len(), self.outline.results.len());
        let first_piece = self.outline.pieces.len();
        self.weight = 0;
        let Some(QuickMessage { facts, chars, end }) = quick_message(data, start, self) else {
            self.outline.calls.truncate(first_call);
            self.outline.results.truncate(first_result);
            self.outline.pieces.truncate(first_piece);
            return false;
        };
        let mut message = Message {
            chars,
            weight: self.weight,
            first_call: first_call as u32,
            first_result: first_result as u32,
            first_piece: first_piece as u32,
            ..Message::default()
        };
        message.take(&facts);
        self.outline.push(message, Span { start, end });
        self.cursor.at = end;
        if facts.role == Role::System {
            self.note_system_text();
        }
        true
    }

    /// Adds what a text of the message weighs, where that is asked.
    #[inline]
    fn weigh(&mut self, text: &Counted) {
        if self.weighs {
            self.weight += string_weight(self.cursor.data, text);
        }
    }

    /// Notes what the newest message says, which is one of the system.
    #[cold]
    fn note_system_text(&mut self) {
        let (message, mut text) = (self.outline.messages.len() - 1, SystemText::default());
        for piece in &self.outline.pieces[self.outline.pieces_of(message)] {
            let mut decoded = vec![];
            decode(piece.of(self.cursor.data), &mut decoded);
            text.add(&decoded);
        }
        self.outline.system_texts.extend(text.digest().map(|digest| (message as u32, digest)));
    }
}

impl Recorder for Scan<'_> {
    fn string(&mut self, start: usize) -> Option<Counted> {
        self.cursor.find(start)
    }

    fn size(&mut self, at: usize, depth: usize) -> Option<(usize, usize)> {
        let (size, end) = self.cursor.value_at(at, depth)?;
        if self.weighs {
            self.weight += json_weight(&self.cursor.data[at..end]);
        }
        Some((size, end))
    }

    fn arguments(&mut self, arguments: &Counted) -> usize {
        self.weigh(arguments);
        arguments.chars()
    }

    fn text(&mut self, text: &Counted) -> usize {
        self.outline.pieces.push(Span { start: text.start, end: text.end });
        self.weigh(text);
        text.chars()
    }

    fn call(&mut self, id: &Counted, name: Option<&Counted>, block: u32) -> usize {
        let data = self.cursor.data;
        let id = self.outline.keep_id_from(data, id);
        if let Some(name) = name {
            self.weigh(name);
        }
        let interned = name.map(|name| self.outline.intern(name.raw(data)));
        let message = self.outline.messages.len() as u32;
        self.outline.calls.push(Call { id, name: interned, message, block });
        name.map_or(0, Counted::chars) + CALL_CHARS
    }

    fn result(&mut self, id: &Counted, text: &Counted, block: u32) -> usize {
        let data = self.cursor.data;
        let (first_piece, weight) = (self.outline.pieces.len() as u32, self.weight);
        let chars = self.text(text);
        let result = ToolResult {
            id: self.outline.keep_id_from(data, id),
            name: None,
            value: Span { start: text.start - 1, end: text.end + 1 },
            chars,
            weight: self.weight - weight,
            newlines: 0,
            message: self.outline.messages.len() as u32,
            block,
            images: 0,
            first_piece,
            pieces: 1,
            first_byte: data[text.start],
            is_error: false,
            is_pinned: false,
            name_use: NameUse::BesideId,
            frame: Frame::Text,
            may_hold_dispatch: text.may_hold_needle,
        };
        self.outline.results.push(result);
        chars
    }
}
