//! What raw text weighs: its bytes, and its escapes.

use super::strings::{Escape, escape};
use crate::text::quarters;

/// What valid raw text weighs: its bytes, and what each of its escapes stands for instead of its own bytes. For each set of instructions.
macro_rules! raw_weight_body {
    ($raw:ident) => {{
        let (mut sum, mut carry, mut after_high) = (weight($raw), 0, usize::MAX);
        for (place, bytes) in $raw.chunks(64).enumerate() {
            let mut pad = [b' '; 64];
            let block = bytes.first_chunk::<64>().unwrap_or_else(|| {
                pad[..bytes.len()].copy_from_slice(bytes);
                &pad
            });
            let slash = equal(block, b'\\');
            if slash | carry == 0 {
                continue;
            }
            let mut letters = find_escaped(slash, &mut carry);
            while letters != 0 {
                let letter = letters.trailing_zeros() as usize;
                letters &= letters - 1;
                let (less, more) = match ESCAPES[usize::from(block[letter])] {
                    0 => unit_weight($raw, 64 * place + letter, &mut after_high),
                    more => (1, usize::from(more - 1)),
                };
                sum = sum + more - less;
            }
        }
        sum
    }};
}
pub(super) use raw_weight_body;

/// By the letter of an escape: what it weighs more than its two bytes, and 2; 0 of a code point.
pub(super) const ESCAPES: [u8; 256] = {
    let mut more = [1; 256]; // a mark, and a backslash: the backslash before it has no weight
    let letters = b"bfnrt";
    let mut place = 0;
    while place < letters.len() {
        more[letters[place] as usize] = 3; // a control character
        place += 1;
    }
    more[b'u' as usize] = 0;
    more
};

/// What the bytes of an escape weigh whose `u` is here, and its code point; the second half of a pair, what the pair weighs more.
#[cold]
pub(super) fn unit_weight(raw: &[u8], at: usize, after_high: &mut usize) -> (usize, usize) {
    let Ok(Escape::Unicode(unit)) = escape(raw, at - 1) else { return (0, 0) }; // unreachable: the text is valid
    let less = raw[at - 1..at + 5].iter().map(|byte| usize::from(quarters(*byte))).sum();
    let is_second = matches!(unit, 0xDC00..=0xDFFF) && *after_high == at;
    *after_high = if matches!(unit, 0xD800..=0xDBFF) { at + 6 } else { usize::MAX };
    let more = match unit {
        _ if is_second => 1,
        0..0x80 => usize::from(quarters(unit as u8)),
        0x80..0x800 => 2,
        _ => 3,
    };
    (less, more)
}
