//! The message on the tape -> Outline.

use super::Scan;
use super::tape::Node;
use crate::error::Error;
use crate::json::{Counted, json_weight, string_weight};
use crate::outline::{Outline, Span, Texts, ToolResult, write_message};
use crate::shape::RawResult;

impl Scan<'_> {
    /// Reads the message on the tape into the Outline.
    pub(super) fn write_message(&mut self, span: Span) -> Result<(), Error> {
        self.outline.uncommon.push(self.outline.messages.len() as u32);
        let pieces = Pieces { data: self.cursor.data, weighs: self.weighs, first: 0, may_hold_dispatch: false };
        write_message::<Node, _>(&mut self.outline, pieces, &Node::message(&self.tape), Some(span))
    }
}

/// Notes where texts are.
struct Pieces<'a> {
    data: &'a [u8],
    weighs: bool,
    /// The first piece of the current observation, and whether it may hold a dispatch block.
    first: usize,
    may_hold_dispatch: bool,
}

impl<'n> Texts<Node<'n>> for Pieces<'_> {
    fn text(&mut self, outline: &mut Outline, text: &Node<'n>) -> Result<usize, Error> {
        let text: Counted = text.counted();
        outline.pieces.push(Span { start: text.start, end: text.end });
        self.may_hold_dispatch |= text.may_hold_needle;
        Ok(text.chars())
    }

    fn weighs(&self) -> bool {
        self.weighs
    }

    fn weight(&self, text: &Node<'n>) -> usize {
        string_weight(self.data, &text.counted())
    }

    fn json_weight(&self, value: &Node<'n>) -> usize {
        json_weight(value.span().of(self.data))
    }

    fn begin_observation(&mut self, outline: &Outline) {
        (self.first, self.may_hold_dispatch) = (outline.pieces.len(), false);
    }

    fn end_observation(&mut self, outline: &mut Outline, result: &RawResult<Node<'n>>, facts: &mut ToolResult) {
        if !result.frame.holds_text() {
            outline.pieces.truncate(self.first); // it was counted, but is no text
        }
        let pieces = &outline.pieces[self.first..];
        facts.value = result.value.map_or(Span::default(), Node::span);
        facts.may_hold_dispatch = self.may_hold_dispatch;
        facts.first_byte = pieces.first().map_or(0, |piece| self.data[piece.start]);
        (facts.first_piece, facts.pieces) = (self.first as u32, pieces.len() as u32);
    }
}
