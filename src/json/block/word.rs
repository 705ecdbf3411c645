//! Eight bytes at a time in a plain register: the portable fallback.

use super::{
    ESCAPES, Found, Masks, Needle, Rare, count_continuations_body, find_escaped, raw_weight_body, scan_body,
    unit_weight, weight_body as weight,
};

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = LOW << 7;
const PAIRS: u64 = 0x0001_0001_0001_0001;

#[inline]
fn words(block: &[u8; 64]) -> [u64; 8] {
    let words = block.as_chunks::<8>().0;
    core::array::from_fn(|place| u64::from_le_bytes(words[place]))
}

/// Sets the highest bit of each byte that differs from this one; the other bits are undefined.
#[inline]
pub(crate) fn other(word: u64, byte: u8) -> u64 {
    ((word & !HIGH) ^ (LOW * u64::from(byte))).wrapping_add(!HIGH) | word
}

/// The highest bit of each byte.
#[inline]
fn bits(flags: [u64; 8]) -> u64 {
    // Gather bit by bit, then transpose the 8 by 8 bits: multiplications would cost more.
    let mut all = 0;
    for (place, flags) in flags.into_iter().enumerate() {
        all |= flags >> (7 - place) & (LOW << place);
    }
    for (shift, half) in [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0xF0F0_F0F0)] {
        let swapped = (all ^ all >> shift) & half;
        all ^= swapped ^ swapped << shift;
    }
    all
}

#[inline]
fn equal(block: &[u8; 64], byte: u8) -> u64 {
    !bits(words(block).map(|word| other(word, byte)))
}

#[inline]
fn masks(block: &[u8; 64]) -> Masks {
    let (quote, slash) = (equal(block, b'"'), equal(block, b'\\'));
    let letters = !bits(words(block).map(|word| other(word, b'n') & other(word, b't')));
    Masks { quote, slash, common: quote | slash | letters }
}

/// The highest bit of each byte below 0x20 or above 0x7F.
#[inline]
pub(crate) fn special_of(word: u64) -> u64 {
    (!(word & !HIGH).wrapping_add(LOW * 0x60) | word) & HIGH
}

#[inline]
fn special(block: &[u8; 64]) -> u64 {
    bits(words(block).map(special_of))
}

#[inline]
fn control(block: &[u8; 64]) -> u64 {
    bits(words(block).map(|word| special_of(word) & !word))
}

#[inline]
fn continuation(block: &[u8; 64]) -> u64 {
    bits(words(block).map(|word| word & !word << 1 & HIGH))
}

struct Gathered {
    special: u64,
    has_hints: bool,
}

impl Gathered {
    #[inline]
    fn new() -> Self {
        Gathered { special: 0, has_hints: false }
    }

    #[inline]
    fn add_special(&mut self, block: &[u8; 64]) {
        for word in words(block) {
            self.special |= special_of(word);
        }
    }

    #[inline]
    fn add_hints(&mut self, block: &[u8; 64], needle: &Needle) {
        for word in words(block) {
            let other = (word & (PAIRS * u64::from(needle.mask))) ^ (PAIRS * u64::from(needle.hint));
            // Exact for the lowest pair that is zero, and so for whether there is one.
            self.has_hints |= other.wrapping_sub(PAIRS) & !other & (PAIRS << 15) != 0;
        }
    }

    #[inline]
    fn has_special(&self) -> bool {
        self.special != 0
    }

    #[inline]
    fn has_hints(&self) -> bool {
        self.has_hints
    }
}

fn count_continuations(text: &[u8]) -> Option<usize> {
    count_continuations_body!(text)
}

pub(crate) fn raw_weight(raw: &[u8]) -> usize {
    raw_weight_body!(raw)
}

pub(crate) fn scan(data: &[u8], start: usize, needle: &Needle) -> Found {
    scan_body!(data, start, needle)
}
