//! What surrounds the text of an observation.

use super::Key;

/// What surrounds the text that replaces an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Frame {
    /// Nothing: it is a string.
    #[default]
    Text,
    /// Nothing: it is the string that is the only member of an object, which is the observation's value in dicts.
    Only,
    /// Nothing: it is a string, for a list with parts of unknown types.
    Json,
    /// It is never replaced: a list that the model needs, of tools that a search has found.
    Kept,
    /// It is the `text` of the one block of a list.
    TextBlocks,
    /// The same, for a list that contained more than text.
    Blocks,
    /// It is the `output` of an object, for an observation that was no text.
    Output,
}

/// A container of a [`Frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrap {
    /// A list with one element.
    List,
    /// An object with one member.
    Member(Key),
}

impl Frame {
    /// Its containers, outermost first.
    #[must_use]
    pub fn wraps(self) -> &'static [Wrap] {
        match self {
            Frame::Text | Frame::Only | Frame::Json | Frame::Kept => &[],
            Frame::TextBlocks | Frame::Blocks => &[Wrap::List, Wrap::Member(Key::Text)],
            Frame::Output => &[Wrap::Member(Key::Output)],
        }
    }

    /// Whether the observation is text; otherwise it is JSON, which has characters but no text.
    #[must_use]
    pub fn holds_text(self) -> bool {
        !matches!(self, Frame::Output | Frame::Blocks | Frame::Json | Frame::Kept)
    }

    /// Whether the observation may be a list of parts with cache marks.
    #[must_use]
    pub fn may_hold_marks(self) -> bool {
        matches!(self, Frame::Text | Frame::Json)
    }

    /// Writes a string in its frame; `text` writes it with its quotes.
    pub fn write(self, out: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>)) {
        let wraps = self.wraps();
        for wrap in wraps {
            match wrap {
                Wrap::List => out.push(b'['),
                Wrap::Member(key) => out.extend([b"{\"", key.name().as_bytes(), b"\":"].concat()),
            }
        }
        text(out);
        for wrap in wraps.iter().rev() {
            out.push(if *wrap == Wrap::List { b']' } else { b'}' });
        }
    }
}
