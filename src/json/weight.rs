//! What raw text and raw JSON weigh: as much as their decoded forms, see [`weight`].

use super::block::Scanner;
use crate::text::{Counted, LOW};

/// What the compact form of a number, of `true` or `null`, and of `false` weighs. Numbers differ in how they are written.
pub(crate) const NUMBER: usize = 4 * LOW as usize;
pub(crate) const WORD: usize = 4;
pub(crate) const FALSE: usize = 5;
/// What a bracket, a comma, a colon or a quote weighs.
pub(crate) const MARK: usize = LOW as usize;

/// Quarter tokens of decoded text, before the scale of its model: a space none, any other ASCII below `@` (digits, punctuation, line
/// ends) three, any other byte one. See docs/budgets.md for how near that comes.
pub(crate) fn weight(text: &[u8]) -> usize {
    Scanner::detect().weight(text)
}

/// What a string weighs: without its quotes, and decoded.
pub(crate) fn string_weight(data: &[u8], text: &Counted) -> usize {
    let raw = text.raw(data);
    if text.minus == 0 { weight(raw) } else { Scanner::detect().raw_weight(raw) }
}

/// What the JSON that begins at `data` weighs, which is valid: compact, and each number as if it had four digits.
pub(crate) fn json_weight(data: &[u8]) -> usize {
    let (mut at, mut sum) = (0, 0);
    while let Some(byte) = data.get(at) {
        let length = match byte {
            b' ' | b'\n' | b'\r' | b'\t' => 1,
            b'"' => {
                let end = string_end(data, at + 1);
                sum += 2 * MARK + Scanner::detect().raw_weight(&data[at + 1..end]);
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
