//! What the messages before a request say: its system prompt, its tools, and each message, as a provider compares them that verifies
//! reasoning. Left out are cache marks, the order of keys and tools, tools that are loaded later, and a block of the system prompt in
//! which Claude Code has a nonce. A string is the same as a list of one text.
//!
//! Each value is hashed once, and that of an object is the sum of its members. The text of strings is hashed as it is written.

use crate::dispatch::NEEDLE;
use crate::fingerprint::Fingerprint;
use crate::json::{Cursor, Read, Reader, Scanner};
use crate::outline::{Outline, Span};
use crate::scan::field;

/// Identifies what precedes a request. It is stored, so it must never change.
pub(crate) type ContentKey = [u8; 16];

const NONCE: &[u8] = b"x-anthropic-billing-header:";
/// Levels below a message, or a tool, on which values are compared; deeper ones are as they are written.
const LEVELS: usize = 64;

/// A value that was read.
#[derive(Clone, Copy)]
struct Hashed {
    hash: u128,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A block that is a text and nothing else; and whether it begins with the nonce.
    Text {
        is_nonce: bool,
    },
    /// A tool that is loaded later.
    Deferred,
    Other,
}

/// The key of what precedes each of these ascending numbers of messages.
pub(crate) fn content_keys(
    data: &[u8],
    outline: &Outline,
    lengths: impl IntoIterator<Item = usize>,
) -> Vec<ContentKey> {
    let mut chain = Fingerprint::keyed(b"");
    let mut reader = Content { cursor: Cursor::new(data, Scanner::detect(), true, &NEEDLE), begun: chain.clone() };
    for name in ["system", "tools"] {
        let value = field(data, outline, name).map(|span| reader.around(span, name == "tools"));
        chain.number_128(value.unwrap_or_default());
    }
    let mut spans = outline.spans.iter();
    let mut read = 0;
    let key = |length: usize| {
        for span in spans.by_ref().take(length - read) {
            chain.number_128(reader.at(*span, |reader| reader.value(0)).hash);
        }
        read = length;
        chain.digest()
    };
    lengths.into_iter().map(key).collect()
}

struct Content<'a> {
    cursor: Cursor<'a>,
    /// To which each value is added.
    begun: Fingerprint,
}

impl Content<'_> {
    /// Reads the value at a place that was scanned before; as it is written, should it be none.
    fn at(&mut self, span: Span, read: impl FnOnce(&mut Self) -> Read<Hashed>) -> Hashed {
        self.cursor.at = span.start;
        let written =
            |content: &Self| Hashed { hash: content.hash(b's', span.of(content.cursor.data)), kind: Kind::Other };
        read(self).unwrap_or_else(|_| written(self))
    }

    /// The system prompt, or the set of tools.
    fn around(&mut self, span: Span, is_set: bool) -> u128 {
        let read = |content: &mut Self| match content.cursor.peek() {
            b'[' => content.list(0, is_set, |kind| matches!(kind, Kind::Deferred | Kind::Text { is_nonce: true })),
            _ => content.value(0),
        };
        self.at(span, read).hash
    }

    fn hash(&self, tag: u8, text: &[u8]) -> u128 {
        let mut fingerprint = self.begun.clone();
        fingerprint.number(u64::from(tag));
        fingerprint.add(text);
        u128::from_le_bytes(fingerprint.digest())
    }

    fn value(&mut self, level: usize) -> Read<Hashed> {
        match self.cursor.peek() {
            b'{' if level < LEVELS => self.object(level + 1),
            b'[' if level < LEVELS => self.list(level + 1, false, |_| false),
            b'"' => {
                let (data, start) = (self.cursor.data, self.cursor.at + 1);
                let end = closing_quote(data, start);
                self.cursor.at = (end + 1).min(data.len());
                Ok(Hashed { hash: self.hash(b's', &data[start..end]), kind: Kind::Other })
            }
            _ => {
                let written = self.cursor.span()?.of(self.cursor.data);
                Ok(Hashed { hash: self.hash(b'v', written), kind: Kind::Other })
            }
        }
    }

    fn object(&mut self, level: usize) -> Read<Hashed> {
        let (mut sum, mut members, mut is_typed, mut is_deferred) = (0u128, 0, false, false);
        let mut text = None;
        self.each(b'}', |content, _| {
            let data = content.cursor.data;
            let key = content.cursor.key()?.raw(data);
            content.cursor.peek();
            let start = content.cursor.at;
            let value = content.value(level)?;
            let written = &data[start..content.cursor.at];
            match key {
                b"cache_control" => return Ok(()),
                b"type" => is_typed = matches!(written, br#""text""# | br#""input_text""# | br#""output_text""#),
                b"text" if written[0] == b'"' => text = Some((value.hash, written[1..].starts_with(NONCE))),
                b"defer_loading" => is_deferred = written == b"true",
                _ => {}
            }
            let mut member = content.begun.clone();
            member.add(key);
            member.number_128(value.hash);
            sum = sum.wrapping_add(u128::from_le_bytes(member.digest()));
            members += 1;
            Ok(())
        })?;
        let of_text = text.filter(|_| is_typed && members == 2);
        Ok(match of_text {
            Some((hash, is_nonce)) => Hashed { hash, kind: Kind::Text { is_nonce } },
            None if is_deferred => Hashed { hash: sum, kind: Kind::Deferred },
            None => Hashed { hash: sum, kind: Kind::Other },
        })
    }

    fn list(&mut self, level: usize, is_set: bool, is_left_out: impl Fn(Kind) -> bool) -> Read<Hashed> {
        let (mut sum, mut chain, mut count, mut alone) = (0u128, self.begun.clone(), 0, None);
        self.each(b']', |content, _| {
            let element = content.value(level)?;
            if is_left_out(element.kind) {
                return Ok(());
            }
            alone = Some(element).filter(|one| count == 0 && matches!(one.kind, Kind::Text { .. }));
            count += 1;
            sum = sum.wrapping_add(element.hash);
            chain.number_128(element.hash);
            Ok(())
        })?;
        let hash = match alone {
            _ if is_set => sum,
            Some(text) => text.hash,
            None => u128::from_le_bytes(chain.digest()),
        };
        Ok(Hashed { hash, kind: Kind::Other })
    }
}

/// Where a string ends that was scanned before: at the first quote after an even number of backslashes.
fn closing_quote(data: &[u8], start: usize) -> usize {
    const STEP: usize = 32;
    let mut at = start;
    loop {
        let has_quote = |chunk: &[u8; STEP]| chunk.iter().fold(0, |found, byte| found | u8::from(*byte == b'"')) > 0;
        let (chunks, _) = data[at..].as_chunks::<STEP>();
        at += STEP * chunks.iter().take_while(|chunk| !has_quote(chunk)).count();
        let Some(quote) = data[at..].iter().position(|byte| *byte == b'"').map(|found| at + found) else {
            return data.len();
        };
        let backslashes = data[start..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 0 {
            return quote;
        }
        at = quote + 1;
    }
}

impl<'a> Reader<'a> for Content<'a> {
    fn cursor(&mut self) -> &mut Cursor<'a> {
        &mut self.cursor
    }
}
