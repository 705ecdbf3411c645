//! The string core: finds the closing quote, refuses what JSON refuses, counts code points.
//!
//! Agent text has an escape every few dozen bytes, so stopping at each one is slow. The scanners of [`super::block`]
//! process 64 bytes at a time without stopping: a branch-free mask (simdjson's) marks the escaped bytes, and its
//! population count gives the bytes that are not code points. UTF-8 is validated in a second pass, only for strings with
//! a byte of 0x80 or more, while they are still in the cache.
//!
//! A scanner only detects invalid strings. [`plain`] then reads the string again, byte by byte, and reports the first fault; it
//! is also the test oracle.

use super::needle::Needle;
use crate::error::Kind;
use crate::text::Counted;

/// The result of a scanner: two words, to be returned in registers.
pub(super) struct Found {
    /// After the closing quote; 0 if the string is invalid.
    pub next: usize,
    /// [`Counted::minus`] twice, and one more for [`Counted::may_hold_needle`].
    pub facts: usize,
}

impl Found {
    pub(crate) const FAULT: Found = Found { next: 0, facts: 0 };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    /// The first offending byte.
    pub at: usize,
}

/// Reads a string byte by byte: slow, but authoritative.
///
/// `surrogates` accepts surrogates encoded in three bytes, as `surrogatepass` writes them.
pub fn plain(data: &[u8], start: usize, surrogates: bool) -> Result<Counted, Fault> {
    let mut counted = Counted { start, end: start, minus: 0, may_hold_needle: true };
    let mut at = start;
    let mut after_high = usize::MAX; // where a low surrogate would complete the pair
    loop {
        let Some(&byte) = data.get(at) else { return Err(Fault { kind: Kind::Eof, at: data.len() }) };
        match byte {
            b'"' => {
                counted.end = at;
                return Ok(counted);
            }
            b'\\' => match escape(data, at)? {
                Escape::Short(_) => {
                    counted.minus += 1;
                    at += 2;
                }
                Escape::Unicode(unit) => {
                    counted.minus += 5;
                    match unit {
                        0xD800..=0xDBFF => after_high = at + 6,
                        0xDC00..=0xDFFF if after_high == at => counted.minus += 1,
                        _ => {}
                    }
                    at += 6;
                }
            },
            0..0x20 => return Err(Fault { kind: Kind::Control, at }),
            0x20..0x80 => at += 1,
            _ => {
                let Some(width) = character_width(&data[at..], surrogates) else {
                    return Err(Fault { kind: Kind::Utf8, at });
                };
                counted.minus += width - 1;
                at += width;
            }
        }
    }
}

pub(super) enum Escape {
    Short(u8),
    Unicode(u32),
}

/// Reads the escape whose backslash is at `at`.
pub(super) fn escape(data: &[u8], at: usize) -> Result<Escape, Fault> {
    let eof = Fault { kind: Kind::Eof, at: data.len() };
    match data.get(at + 1) {
        None => Err(eof),
        Some(b'u') => {
            let mut unit = 0;
            for place in at + 2..at + 6 {
                let byte = data.get(place).ok_or(eof)?;
                let digit = (*byte as char).to_digit(16).ok_or(Fault { kind: Kind::Escape, at })?;
                unit = unit << 4 | digit;
            }
            Ok(Escape::Unicode(unit))
        }
        Some(letter @ (b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => Ok(Escape::Short(*letter)),
        Some(_) => Err(Fault { kind: Kind::Escape, at }),
    }
}

/// The length of the first character; None if it is not UTF-8.
fn character_width(data: &[u8], surrogates: bool) -> Option<usize> {
    if surrogates && matches!(data, [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..]) {
        return Some(3);
    }
    let some = &data[..data.len().min(4)];
    let valid = match core::str::from_utf8(some) {
        Ok(valid) => valid,
        Err(error) => core::str::from_utf8(&some[..error.valid_up_to()]).ok()?,
    };
    valid.chars().next().map(char::len_utf8)
}

/// Marks the bytes that follow an odd run of backslashes; branch-free, with a carry from block to block.
pub(super) fn find_escaped(slash: u64, carry: &mut u64) -> u64 {
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    let starts = slash & !*carry;
    let runs = ((starts << 1 | ODD).wrapping_sub(starts)) ^ ODD;
    let escaped = runs ^ (slash | *carry);
    *carry = (runs & slash) >> 63;
    escaped
}

/// Handles the uncommon escapes, besides the 1 that each subtracts from the count of characters.
pub(super) struct Rare {
    pub minus: usize,
    pub may_hold_needle: bool,
    /// The place where the low half of a surrogate pair would be.
    after_high: usize,
}

impl Rare {
    pub(crate) fn new() -> Self {
        Rare { minus: 0, may_hold_needle: false, after_high: usize::MAX }
    }

    /// Reads the escapes whose letters are at `bits`; None if one is wrong.
    #[inline(never)]
    pub(crate) fn read(&mut self, data: &[u8], base: usize, mut bits: u64, needle: &Needle) -> Option<()> {
        while bits != 0 {
            let at = base + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            match data.get(at)? {
                b'u' => {
                    let digits = data.get(at + 1..)?.first_chunk::<4>()?;
                    let [a, b, c, d] = digits.map(|digit| u32::from(HEX[usize::from(digit)]));
                    // Any byte that is no digit makes this large.
                    if (a | b | c | d) > 0xF {
                        return None;
                    }
                    self.minus += 4;
                    let unit = a << 12 | b << 8 | c << 4 | d;
                    self.may_hold_needle |= needle.may_contain(unit);
                    self.unit(unit, at - 1);
                }
                b'/' | b'b' | b'f' | b'r' => {}
                _ => return None,
            }
        }
        Some(())
    }

    fn unit(&mut self, unit: u32, at: usize) {
        match unit {
            0xD800..=0xDBFF => self.after_high = at + 6,
            0xDC00..=0xDFFF if self.after_high == at => self.minus += 1,
            _ => {}
        }
    }
}

/// The values of hexadecimal digits; 0xFF for all other bytes.
const HEX: [u8; 256] = {
    let mut values = [0xFF; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// The body of every scanner, over blocks of 64 bytes; `masks`, `special` and `Gathered` depend on the instruction set.
macro_rules! scan_body {
    ($data:ident, $start:ident, $needle:ident) => {{
        let (mut carry, mut minus) = (0u64, 0usize);
        let (mut gathered, mut rare) = (Gathered::new(), Rare::new());
        let mut pad = [0u8; 64];
        let mut rest = &$data[$start..];
        loop {
            let (block, escaped, stop, uncommon) = 'event: {
                // Blocks of plain text. There are no calls here, so everything stays in registers.
                while let Some((block, after)) = rest.split_first_chunk::<64>() {
                    let masks = masks(block);
                    let escaped = find_escaped(masks.slash, &mut carry);
                    let (stop, uncommon) = (masks.quote & !escaped, escaped & !masks.common);
                    gathered.add_hints(block, $needle);
                    if stop | uncommon != 0 {
                        break 'event (block, escaped, stop, uncommon);
                    }
                    minus += escaped.count_ones() as usize;
                    gathered.add_special(block);
                    rest = after;
                }
                // The last block of the input.
                pad[..rest.len()].copy_from_slice(rest);
                let masks = masks(&pad);
                let escaped = find_escaped(masks.slash, &mut carry);
                gathered.add_hints(&pad, $needle);
                (&pad, escaped, masks.quote & !escaped, escaped & !masks.common)
            };
            let at = $data.len() - rest.len();
            let inside = stop.wrapping_sub(1) & !stop; // the bits below the closing quote, or all
            minus += (escaped & inside).count_ones() as usize;
            if uncommon & inside != 0 && rare.read($data, at, uncommon & inside, $needle).is_none() {
                return Found::FAULT;
            }
            if stop != 0 {
                let end = at + stop.trailing_zeros() as usize;
                if gathered.has_special() || special(block) & inside != 0 {
                    let Some(continuations) = count_continuations(&$data[$start..end]) else { return Found::FAULT };
                    minus += continuations;
                }
                let may_hold_needle =
                    rare.may_hold_needle || (gathered.has_hints() && $needle.is_in(&$data[$start..end]));
                return Found { next: end + 1, facts: (minus + rare.minus) << 1 | usize::from(may_hold_needle) };
            }
            gathered.add_special(block);
            let Some(after) = rest.get(64..) else { return Found::FAULT };
            rest = after;
        }
    }};
}
pub(super) use scan_body;

/// For strings with a byte below 0x20 or above 0x7F: the number of continuation bytes; None if the string is invalid. Used by
/// instruction sets without their own version.
macro_rules! count_continuations_body {
    ($text:ident) => {{
        let (mut continuations, mut controls) = (0, 0);
        for bytes in $text.chunks(64) {
            let mut pad = [b' '; 64];
            let block = bytes.first_chunk::<64>().unwrap_or_else(|| {
                pad[..bytes.len()].copy_from_slice(bytes);
                &pad
            });
            continuations += continuation(block).count_ones() as usize;
            controls |= control(block);
        }
        (controls == 0 && simdutf8::basic::from_utf8($text).is_ok()).then_some(continuations)
    }};
}
pub(super) use count_continuations_body;
