//! Access to the text of an Outline. Reading text costs a pass over it, so rules read only observations outside the window, and
//! messages that a summary replaces.

use crate::clip::{Clip, handle_of_whole};
use crate::dispatch::may_begin_in;
use crate::fingerprint::Fingerprint;
use crate::handle::Handle;
use crate::json::{decode, newlines, skip_chars};
use crate::outline::{Call, Outline, Span};
use crate::scan;
use crate::text::count_chars;

/// The text of a history. Decoded text is UTF-8 that may hold lone surrogates in three bytes each.
pub trait Source {
    /// The text of an observation.
    fn observation(&self, outline: &Outline, result: usize) -> Vec<u8>;
    /// An observation that is cut.
    fn clipped(&self, outline: &Outline, result: usize, clip: &Clip) -> Vec<u8> {
        clip.apply(&self.observation(outline, result))
    }
    /// Whether an observation begins with this.
    fn observation_begins(&self, outline: &Outline, result: usize, prefix: &[u8]) -> bool;
    /// False only if the observation does not end with this, of printable ASCII.
    fn observation_may_end(&self, _outline: &Outline, _result: usize, _suffix: &[u8]) -> bool {
        true
    }
    /// False only if the observation holds no dispatch block.
    fn observation_may_hold_dispatch(&self, _outline: &Outline, _result: usize) -> bool {
        true
    }
    /// The pieces of a message's text in order, observations included.
    fn pieces(&self, outline: &Outline, message: usize) -> Vec<Vec<u8>>;
    /// The handle of an observation; of one that is no text by its JSON.
    fn handle(&self, outline: &Outline, result: usize) -> Handle {
        let id = outline.results.get(result).and_then(|result| result.id);
        handle_of_whole(id.map_or(b"", |id| outline.text(id)), &self.observation(outline, result))
    }
    /// The arguments of a call as they were sent, where agents of its shape refer to earlier results; else None.
    fn arguments(&self, _outline: &Outline, _call: usize) -> Option<Vec<u8>> {
        None
    }
    /// Whether a message has a tag.
    fn has_tag(&self, outline: &Outline, message: usize, tag: &str) -> bool;
    /// Adds all that a message says to a fingerprint; false if that is not known.
    fn identify(&self, _outline: &Outline, _message: usize, _fingerprint: &mut Fingerprint) -> bool {
        false
    }
}

/// The text of serialized input.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// The place of a field's value in the message at `span`.
    pub(crate) fn value_of(&self, span: Span, key: &str) -> Span {
        scan::member(self.0, span, key.as_bytes()).unwrap_or(span)
    }

    fn raw_pieces(&self, outline: &Outline, result: usize) -> impl Iterator<Item = &[u8]> {
        outline.pieces_of_result(result).iter().map(|piece| piece.of(self.0))
    }
}

/// Counts the newlines of the observations of serialized input from `first` on, for placeholders that name them.
pub fn count_newlines(data: &[u8], outline: &mut Outline, first: usize) {
    for result in first..outline.results.len() {
        let newlines = outline.pieces_of_result(result).iter().map(|piece| newlines(piece.of(data)) as u32).sum();
        outline.results[result].newlines = newlines;
    }
}

impl Source for Bytes<'_> {
    fn identify(&self, outline: &Outline, message: usize, fingerprint: &mut Fingerprint) -> bool {
        fingerprint.add(outline.spans[message].of(self.0));
        true
    }

    fn observation(&self, outline: &Outline, result: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(outline.results[result].chars);
        for raw in self.raw_pieces(outline, result) {
            decode(raw, &mut text);
        }
        text
    }

    fn handle(&self, outline: &Outline, result: usize) -> Handle {
        let seen = &outline.results[result];
        let id = seen.id.map_or(&b""[..], |id| outline.text(id));
        if seen.frame.holds_text() {
            handle_of_whole(id, &self.observation(outline, result))
        } else {
            handle_of_whole(id, seen.value.of(self.0))
        }
    }

    fn observation_begins(&self, outline: &Outline, result: usize, prefix: &[u8]) -> bool {
        // An escape, or the quote that ends an empty piece, may begin any text.
        let first_byte = outline.results[result].first_byte;
        if !prefix.is_empty() && first_byte != prefix[0] && !matches!(first_byte, b'\\' | b'"') {
            return false;
        }
        let mut pieces = self.raw_pieces(outline, result);
        let first = pieces.next().unwrap_or_default();
        if first.starts_with(prefix) {
            return true;
        }
        // The beginning may have escapes, or continue in the next piece; an earlier difference decides.
        let differs = first.iter().zip(prefix).find(|(found, wanted)| found != wanted);
        match (differs, pieces.next()) {
            (Some((found, _)), _) if *found != b'\\' => false,
            (_, None) => {
                let mut head = Vec::with_capacity(prefix.len());
                decode(&first[..skip_chars(first, count_chars(prefix)).0], &mut head);
                head == prefix
            }
            _ => self.observation(outline, result).starts_with(prefix),
        }
    }

    fn observation_may_end(&self, outline: &Outline, result: usize, suffix: &[u8]) -> bool {
        let raw = self.raw_pieces(outline, result).last().unwrap_or_default();
        // The longest escape of such a character has six bytes.
        let tail = &raw[raw.len().saturating_sub(suffix.len() + 6)..];
        let has_escape = || tail.windows(2).any(|pair| matches!(pair, b"\\u" | b"\\/"));
        raw.len() < suffix.len() || tail.ends_with(suffix) || has_escape()
    }

    fn observation_may_hold_dispatch(&self, outline: &Outline, result: usize) -> bool {
        // A block may begin in one piece and continue in the next.
        let facts = &outline.results[result];
        facts.pieces > 1 || (facts.may_hold_dispatch && self.raw_pieces(outline, result).any(may_begin_in))
    }

    fn pieces(&self, outline: &Outline, message: usize) -> Vec<Vec<u8>> {
        let decoded = |piece: &Span| {
            let mut text = Vec::new();
            decode(piece.of(self.0), &mut text);
            text
        };
        outline.pieces[outline.pieces_of(message)].iter().map(decoded).collect()
    }

    fn arguments(&self, outline: &Outline, call: usize) -> Option<Vec<u8>> {
        let Call { message, block, .. } = outline.calls[call];
        let content = scan::member(self.0, outline.spans[message as usize], b"content")?;
        let block = *scan::elements(self.0, content)?.get(block as usize)?;
        Some(scan::member(self.0, block, b"input")?.of(self.0).to_vec())
    }

    fn has_tag(&self, outline: &Outline, message: usize, tag: &str) -> bool {
        scan::has_tag(self.0, outline.spans[message], tag.as_bytes())
    }
}

/// A text alone, as a history of one observation.
pub struct OneText(pub Vec<u8>);

impl Source for OneText {
    fn observation(&self, _: &Outline, _: usize) -> Vec<u8> {
        self.0.clone()
    }

    fn observation_begins(&self, _: &Outline, _: usize, prefix: &[u8]) -> bool {
        self.0.starts_with(prefix)
    }

    fn pieces(&self, _: &Outline, _: usize) -> Vec<Vec<u8>> {
        vec![self.0.clone()]
    }

    fn has_tag(&self, _: &Outline, _: usize, _: &str) -> bool {
        false
    }
}
