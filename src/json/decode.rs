//! Between the raw text of a string and its decoded form: UTF-8 that may hold lone surrogates in three bytes each.

use super::strings::{Escape, escape};

/// Appends the decoded form of raw text that was read before, and so holds no fault.
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
            Err(_) => break, // never: the text was read before
        };
    }
    out.extend_from_slice(&raw[at..]);
}

fn push_code_point(code: u32, out: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        // A lone surrogate: the three bytes that UTF-8 would have for it.
        None => out.extend_from_slice(&[
            0xE0 | (code >> 12) as u8,
            0x80 | (code >> 6 & 0x3F) as u8,
            0x80 | (code & 0x3F) as u8,
        ]),
    }
}

/// Appends decoded text as the inside of a JSON string: what must be escaped is, lone surrogates too.
pub fn encode_text(text: &[u8], out: &mut Vec<u8>) {
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        // 0xED leads the code points from U+D000; from U+D800 on they are surrogates.
        let is_surrogate = byte == 0xED && text[at + 1] >= 0xA0;
        if byte >= 0x20 && byte != b'"' && byte != b'\\' && !is_surrogate {
            at += 1;
            continue;
        }
        out.extend_from_slice(&text[copied..at]);
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0xED => push_escape(0xD000 | u32::from(text[at + 1] & 0x3F) << 6 | u32::from(text[at + 2] & 0x3F), out),
            _ => push_escape(u32::from(byte), out),
        }
        at += if is_surrogate { 3 } else { 1 };
        copied = at;
    }
    out.extend_from_slice(&text[copied..]);
}

fn push_escape(unit: u32, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u");
    out.extend([12, 8, 4, 0].map(|shift| DIGITS[(unit >> shift & 15) as usize]));
}

/// How many bytes of raw text the first `chars` code points take.
#[must_use]
pub fn skip_chars(raw: &[u8], chars: usize) -> usize {
    let mut at = 0;
    for _ in 0..chars {
        at += match raw.get(at) {
            None => return raw.len(),
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
    at
}
