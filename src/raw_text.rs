//! The raw text of observations: read by characters, with its escapes.

use crate::clip::Clip;
use crate::dispatch::{dispatch_blocks, dispatch_head};
use crate::json::{decode, skip_chars};
use crate::outline::{Outline, Span};
use crate::text::{count_chars, encode_text};

/// A reader of raw text. Characters are counted per piece: the halves of a surrogate pair in two pieces are two.
pub(crate) struct RawText<'a> {
    data: &'a [u8],
    pieces: &'a [Span],
    /// Bytes of the first piece already read.
    at: usize,
}

impl<'a> RawText<'a> {
    /// The characters of these pieces.
    pub(crate) fn of(data: &'a [u8], pieces: &'a [Span]) -> Self {
        RawText { data, pieces, at: 0 }
    }

    /// The characters of an observation.
    pub(crate) fn of_result(data: &'a [u8], outline: &'a Outline, result: usize) -> Self {
        RawText::of(data, outline.pieces_of_result(result))
    }

    /// How many characters it has.
    pub(crate) fn chars(&self) -> usize {
        self.pieces.iter().map(|piece| usize::MAX - skip_chars(piece.of(self.data), usize::MAX).1).sum()
    }

    pub(crate) fn copy(&mut self, mut chars: usize, out: &mut Vec<u8>) {
        while let Some(piece) = self.pieces.first() {
            let rest = &piece.of(self.data)[self.at..];
            let (length, lacking) = skip_chars(rest, chars);
            out.extend_from_slice(&rest[..length]);
            self.at += length;
            if lacking == 0 {
                return;
            }
            chars = lacking;
            (self.pieces, self.at) = (&self.pieces[1..], 0);
        }
    }

    /// Copies a cut text, of which this many characters are omitted.
    pub(crate) fn clip(mut self, omitted: usize, clip: &Clip, out: &mut Vec<u8>) {
        self.copy(clip.beginning, out);
        out.extend_from_slice(clip.marker().as_bytes());
        self.copy(omitted, &mut Vec::new());
        self.copy(clip.end, out);
    }

    /// Copies its dispatch blocks, joined by line feeds.
    pub(crate) fn blocks(mut self, with_head: bool, out: &mut Vec<u8>) {
        let mut text = Vec::new();
        self.pieces.iter().for_each(|piece| decode(piece.of(self.data), &mut text));
        let blocks = dispatch_blocks(&text);
        if with_head {
            encode_text(dispatch_head(&text, &blocks).as_bytes(), out);
        }
        let (mut at, mut skipped) = (0, Vec::new());
        for (place, (start, end)) in blocks.into_iter().enumerate() {
            if place > 0 || with_head {
                out.extend_from_slice(b"\\n");
            }
            self.copy(count_chars(&text[at..start]), &mut skipped);
            skipped.clear();
            self.copy(count_chars(&text[start..end]), out);
            at = end;
        }
    }
}
