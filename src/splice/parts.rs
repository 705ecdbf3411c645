//! Contents that are lists of parts.

use crate::clip::PartFacts;
use crate::marks::{self, FIELDS, Moved};
use crate::outline::{Outline, Span, ToolResult};
use crate::scan;
use crate::shape::Frame;

/// The facts of a part, which was scanned before.
pub(super) fn part_of(key: &str, frame: Frame, part: &[u8]) -> PartFacts {
    let whole = Span { start: 0, end: part.len() };
    let is_marked = FIELDS.iter().any(|field| scan::member(part, whole, field.as_bytes()).is_some());
    // The first part decides on the shape.
    let first: &[u8] = if frame == Frame::TextBlocks { b"{\"text\":\"\"}" } else { b"{\"type\":\"text\"}" };
    let message = [b"{\"role\":\"user\",\"", key.as_bytes(), b"\":[", first, b",", part, b"]}"].concat();
    let mut outline = Outline::default();
    let _ = scan::scan_message(&message, 0, (true, false), &mut outline);
    let has_text = outline.pieces.iter().any(|piece| piece.end > piece.start);
    let counts = outline.messages.first().is_some_and(|message| message.images > 0 || message.chars > 0);
    PartFacts { has_text, is_image: counts && !has_text, is_marked }
}

/// Writes a string in the frame of a result; in a part, if it has a mark around it or references beside it.
pub(super) fn framed_text(
    data: &[u8],
    outline: &Outline,
    result: usize,
    moved: Option<Moved>,
    out: &mut Vec<u8>,
    text: impl FnOnce(&mut Vec<u8>),
) {
    let ToolResult { frame, value, message, .. } = outline.results[result];
    let mark = if let Some(Moved::Around(mark)) = moved { Some(mark) } else { None };
    if mark.is_none() && !frame.keeps_references() {
        return frame.write(out, text);
    }
    let kind = outline.messages[message as usize].shape.part_type();
    out.extend([b"[{\"type\":\"", kind.as_bytes(), b"\",\"text\":"].concat());
    text(out);
    out.extend(mark.map(|mark| mark.next_field(data)).unwrap_or_default());
    out.push(b'}');
    for reference in if frame.keeps_references() { marks::references(data, value) } else { vec![] } {
        out.push(b',');
        out.extend(reference);
    }
    out.push(b']');
}
