//! The raw text of a string -> its decoded form: UTF-8 in which a lone surrogate is three bytes.

use super::strings::{Escape, escape};

/// Appends the decoded form of valid raw text.
pub fn decode(raw: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(length) = memchr::memchr(b'\\', &raw[at..]) {
        out.extend_from_slice(&raw[at..at + length]);
        at += length;
        at += match escape(raw, at) {
            Ok(Escape::Short(letter)) => {
                out.push(match letter {
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => other,
                });
                2
            }
            Ok(Escape::Unicode(high @ 0xD800..=0xDBFF)) => {
                let next = if raw.get(at + 6) == Some(&b'\\') { escape(raw, at + 6).ok() } else { None };
                if let Some(Escape::Unicode(low @ 0xDC00..=0xDFFF)) = next {
                    push_code_point(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00), out);
                    12
                } else {
                    push_code_point(high, out);
                    6
                }
            }
            Ok(Escape::Unicode(unit)) => {
                push_code_point(unit, out);
                6
            }
            Err(_) => break, // unreachable: the text is valid
        };
    }
    out.extend_from_slice(&raw[at..]);
}

/// Newlines in the decoded form of valid raw text.
pub fn newlines(raw: &[u8]) -> usize {
    let (mut at, mut newlines) = (0, 0);
    while let Some(length) = memchr::memchr(b'\\', &raw[at..]) {
        at += length + 1;
        newlines += usize::from([&b"n"[..], b"u000a", b"u000A"].iter().any(|escape| raw[at..].starts_with(escape)));
        at += 1;
    }
    newlines
}

/// Appends a code point, which may be a lone surrogate.
pub(crate) fn push_code_point(code: u32, out: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        // A lone surrogate, encoded as three bytes.
        None => out.extend_from_slice(&[
            0xE0 | (code >> 12) as u8,
            0x80 | (code >> 6 & 0x3F) as u8,
            0x80 | (code & 0x3F) as u8,
        ]),
    }
}

/// The bytes of the first `chars` code points of raw text, and how many of them are missing.
pub fn skip_chars(raw: &[u8], chars: usize) -> (usize, usize) {
    let mut at = 0;
    for skipped in 0..chars {
        at += match raw.get(at) {
            None => return (at, chars - skipped),
            Some(b'\\') => match escape(raw, at) {
                Ok(Escape::Unicode(0xD800..=0xDBFF))
                    if raw.get(at + 6) == Some(&b'\\')
                        && matches!(escape(raw, at + 6), Ok(Escape::Unicode(0xDC00..=0xDFFF))) =>
                {
                    12
                }
                Ok(Escape::Unicode(_)) => 6,
                _ => 2,
            },
            Some(0..0xC0) => 1,
            Some(0xC0..0xE0) => 2,
            Some(0xE0..0xF0) => 3,
            Some(0xF0..) => 4,
        };
    }
    (at, 0)
}
