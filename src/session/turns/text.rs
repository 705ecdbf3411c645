//! The text of turns in a context.

use crate::outline::{Outline, Span, ToolResult};
use crate::shape::Frame;
use crate::source::Source;
use crate::text::count_chars;
use memchr::memchr_iter;

/// Written before the number, reasoning, action and observation of a turn.
pub const FRAME: [&[u8]; 4] = [b"\n\nTurn ", b":\nReasoning: ", b"\nAction: ", b"\nObservation: "];

/// Reasoning, action, observation.
pub type TurnTexts<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// Writes a turn.
pub fn write_turn(number: usize, (reasoning, action, observation): TurnTexts, out: &mut Vec<u8>) {
    let number = number.to_string();
    let parts = [number.as_bytes(), reasoning, action, observation];
    for (frame, part) in FRAME.iter().zip(parts) {
        out.extend_from_slice(frame);
        out.extend_from_slice(part);
    }
    out.push(b'\n');
}

/// A result with this span of a text as its observation.
pub fn result_of(text: &[u8], value: Span, message: u32) -> ToolResult {
    let observation = value.of(text);
    ToolResult {
        id: None,
        name: None,
        value,
        chars: count_chars(observation),
        newlines: memchr_iter(b'\n', observation).count() as u32,
        message,
        block: 0,
        images: 0,
        first_piece: 0,
        pieces: 0,
        first_byte: 0,
        is_error: false,
        is_pinned: false,
        frame: Frame::Text,
        may_hold_dispatch: false,
    }
}

/// The observations of turns; they are never parsed for dispatch blocks.
pub struct Observations<'a>(pub &'a [u8]);

impl Source for Observations<'_> {
    fn observation(&self, outline: &Outline, result: usize) -> Vec<u8> {
        outline.results[result].value.of(self.0).to_vec()
    }

    fn observation_begins(&self, outline: &Outline, result: usize, prefix: &[u8]) -> bool {
        outline.results[result].value.of(self.0).starts_with(prefix)
    }

    fn observation_may_hold_dispatch(&self, _: &Outline, _: usize) -> bool {
        false
    }

    fn pieces(&self, _: &Outline, _: usize) -> Vec<Vec<u8>> {
        vec![]
    }

    fn has_tag(&self, _: &Outline, _: usize, _: &str) -> bool {
        false
    }
}
