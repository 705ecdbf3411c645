//! Frames: what surrounds the text of an observation.

use super::Key;

/// The frame of a text that replaces an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Frame {
    /// Nothing: the text is a string.
    #[default]
    Text,
    /// Nothing: the text is the only member of an object, which is the observation's value in dicts.
    Only,
    /// Nothing: the text is a string, for a list with parts of unknown types.
    Json,
    /// The text is a part before the `tool_reference` parts of its list, which stay: the model may call the tools that they name.
    Beside,
    /// A frame of a list with parts of unknown types.
    BesideJson,
    /// The text is the first output of a shell; the others become empty.
    Streams,
    /// The text is the `text` of the one block of a list.
    TextBlocks,
    /// The text is the one part of a list, with its type.
    TypedParts,
    /// A frame of a list that contained more than text.
    Blocks,
    /// The text is the `output` of an object, for an observation that was no text.
    Output,
}

const TEXT_PART: &[u8] = br#"{"type":"text","text":"#;

/// A container of a [`Frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrap {
    /// A list with one element.
    List,
    /// An object with one member.
    Member(Key),
    /// A part of the type `text`.
    TextPart,
}

impl Frame {
    pub(crate) fn wraps(self) -> &'static [Wrap] {
        match self {
            Frame::Text | Frame::Only | Frame::Json | Frame::Beside | Frame::BesideJson | Frame::Streams => &[],
            Frame::TextBlocks | Frame::Blocks => &[Wrap::List, Wrap::Member(Key::Text)],
            Frame::TypedParts => &[Wrap::List, Wrap::TextPart],
            Frame::Output => &[Wrap::Member(Key::Output)],
        }
    }

    /// Whether the observation is text; otherwise it is JSON, which has characters but no text.
    pub fn holds_text(self) -> bool {
        !matches!(self, Frame::Output | Frame::Blocks | Frame::Json | Frame::BesideJson)
    }

    /// Characters that it adds to the text that replaces JSON, quotes included.
    pub(crate) fn added_chars(self) -> usize {
        let chars = |wrap: &Wrap| match wrap {
            Wrap::List => 2,
            Wrap::Member(key) => key.name().len() + r#"{"":}"#.len(),
            Wrap::TextPart => TEXT_PART.len() + 1,
        };
        if self.holds_text() { 0 } else { 2 + self.wraps().iter().map(chars).sum::<usize>() }
    }

    /// Whether parts of the observation stay.
    pub(crate) fn keeps_references(self) -> bool {
        matches!(self, Frame::Beside | Frame::BesideJson)
    }

    /// Whether the observation may be a list of parts with cache marks.
    pub(crate) fn may_hold_marks(self) -> bool {
        matches!(self, Frame::Text | Frame::Json) || self.keeps_references()
    }

    /// Writes a string in its frame; `text` writes it with its quotes.
    pub(crate) fn write(self, out: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>)) {
        let wraps = self.wraps();
        for wrap in wraps {
            match wrap {
                Wrap::List => out.push(b'['),
                Wrap::Member(key) => out.extend([b"{\"", key.name().as_bytes(), b"\":"].concat()),
                Wrap::TextPart => out.extend_from_slice(TEXT_PART),
            }
        }
        text(out);
        for wrap in wraps.iter().rev() {
            out.push(if *wrap == Wrap::List { b']' } else { b'}' });
        }
    }
}
