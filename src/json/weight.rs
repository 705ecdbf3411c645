//! What raw text and raw JSON weigh: as much as their decoded forms, see [`weight`].

use super::decode::decode;
use crate::text::{Counted, LOW, quarters, weight};

/// What the compact form of a number, of `true` or `null`, and of `false` weighs. Numbers differ in how they are written.
pub(crate) const NUMBER: usize = 4 * LOW as usize;
pub(crate) const WORD: usize = 4;
pub(crate) const FALSE: usize = 5;
/// What a bracket, a comma, a colon or a quote weighs.
pub(crate) const MARK: usize = LOW as usize;

/// Bytes that are summed at once: sums of a byte each do not overflow.
const PART: usize = 32 * (u8::MAX as usize / LOW as usize);

/// What a string weighs: without its quotes, and decoded.
pub(crate) fn string_weight(data: &[u8], text: &Counted) -> usize {
    let raw = text.raw(data);
    if text.minus == 0 { weight(raw) } else { raw_weight(raw) }
}

/// What valid raw text weighs. Escapes of one letter count where their backslash is: with the letter of a control character it weighs
/// two, so that both are three, and with a mark nothing. Parts with other escapes are decoded.
fn raw_weight(raw: &[u8]) -> usize {
    let (mut at, mut sum) = (0, 0);
    while at < raw.len() {
        let end = raw.len().min(at + PART);
        let (part, next) = (&raw[at..end], raw.get(at + 1..).unwrap_or_default());
        if let Some(part) = plain_weight(part, next) {
            sum += part;
            at = end;
        } else {
            let end = after_escapes(raw, at, end);
            let mut decoded = Vec::with_capacity(end - at);
            decode(&raw[at..end], &mut decoded);
            sum += weight(&decoded);
            at = end;
        }
    }
    sum
}

/// What a part weighs, of which `next` has the bytes from its second one on; None if it has escapes of more than a letter, or of a
/// backslash.
fn plain_weight(part: &[u8], next: &[u8]) -> Option<usize> {
    let (mut sums, mut others) = ([0u8; 32], [0u8; 32]);
    let (blocks, nexts) = (part.as_chunks::<32>().0, next.as_chunks::<32>().0);
    for (block, next) in blocks.iter().zip(nexts) {
        for lane in 0..32 {
            let (byte, next) = (block[lane], next[lane]);
            let is_escape = byte == b'\\';
            sums[lane] += if is_escape { escape_weight(next) } else { quarters(byte) };
            others[lane] |= u8::from(is_escape & is_other(next));
        }
    }
    if others.iter().any(|other| *other != 0) {
        return None;
    }
    let done = 32 * blocks.len().min(nexts.len());
    Some(sums.into_iter().map(usize::from).sum::<usize>() + plain_bytes(&part[done..], &next[done..])?)
}

/// The same, byte by byte.
fn plain_bytes(part: &[u8], next: &[u8]) -> Option<usize> {
    let mut sum = 0;
    for (place, byte) in part.iter().enumerate() {
        let next = next.get(place).copied().unwrap_or_default();
        if *byte == b'\\' && is_other(next) {
            return None;
        }
        sum += usize::from(if *byte == b'\\' { escape_weight(next) } else { quarters(*byte) });
    }
    Some(sum)
}

/// What the backslash before a letter or mark weighs.
#[inline]
fn escape_weight(next: u8) -> u8 {
    if next < b'@' { 0 } else { LOW - 1 }
}

#[inline]
fn is_other(next: u8) -> bool {
    next == b'u' || next == b'\\'
}

/// The first place from `end` on at which no escape, and no pair of surrogates, is parted; `at` is such a place.
fn after_escapes(raw: &[u8], mut at: usize, end: usize) -> usize {
    while at < end {
        at += match (raw[at], raw.get(at + 1)) {
            (b'\\', Some(b'u')) => {
                let begins = |at: usize, digits: &[u8]| {
                    let found = raw.get(at..at + 2).filter(|unit| unit[0].eq_ignore_ascii_case(&b'd'));
                    found.is_some_and(|unit| digits.contains(&unit[1].to_ascii_lowercase()))
                };
                let is_pair = begins(at + 2, b"89ab") && raw[at + 6..].starts_with(b"\\u") && begins(at + 8, b"cdef");
                if is_pair { 12 } else { 6 }
            }
            (b'\\', _) => 2,
            _ => 1,
        };
    }
    at.min(raw.len())
}

/// What the JSON that begins at `data` weighs, which is valid: compact, and each number as if it had four digits.
pub(crate) fn json_weight(data: &[u8]) -> usize {
    let (mut at, mut sum) = (0, 0);
    while let Some(byte) = data.get(at) {
        let length = match byte {
            b' ' | b'\n' | b'\r' | b'\t' => 1,
            b'"' => {
                let end = string_end(data, at + 1);
                sum += 2 * MARK + raw_weight(&data[at + 1..end]);
                end + 1 - at
            }
            b'-' | b'0'..=b'9' => {
                sum += NUMBER;
                data[at..].iter().take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)).count()
            }
            b't' | b'n' => {
                sum += WORD;
                WORD
            }
            b'f' => {
                sum += FALSE;
                FALSE
            }
            _ => {
                sum += MARK;
                1
            }
        };
        at += length;
    }
    sum
}

/// The closing quote of the string that begins here, after its quote.
fn string_end(data: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(length) = memchr::memchr2(b'"', b'\\', &data[at..]) {
        at += length;
        if data[at] == b'"' {
            return at;
        }
        at += 2;
    }
    data.len()
}
