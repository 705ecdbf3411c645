//! Fingerprints of grams: a rolling hash over code points.

use super::GRAM_CHARS;

/// An odd number with no structure.
const BASE: u64 = 0x9E6C_63D0_876A_3F6B;
/// The factor of the oldest code point of a gram when the next one arrives.
const BASE_TO_GRAM: u64 = BASE.wrapping_pow(GRAM_CHARS as u32 + 1);

/// The last code points of a text, and the hash of their polynomial in [`BASE`].
#[derive(Default)]
pub(super) struct Grams {
    last: [u32; GRAM_CHARS],
    count: usize,
    hash: u64,
}

impl Grams {
    /// Adds a code point. Returns the gram that it ends, once there are enough: an odd number whose first bits depend on all code
    /// points.
    #[inline]
    pub fn push(&mut self, char: u32) -> Option<u64> {
        let oldest = core::mem::replace(&mut self.last[self.count % GRAM_CHARS], char);
        let doubled = |char: u32| u64::from(char) * 2;
        let gone = doubled(oldest).wrapping_mul(BASE_TO_GRAM);
        self.hash = self.hash.wrapping_add(doubled(char)).wrapping_mul(BASE).wrapping_sub(gone);
        self.count += 1;
        (self.count >= GRAM_CHARS).then_some(self.hash | 1)
    }

    /// A reader of code points that passes each gram on.
    pub fn each(mut visit: impl FnMut(u64)) -> impl FnMut(u32) {
        let mut grams = Grams::default();
        move |char| {
            if let Some(gram) = grams.push(char) {
                visit(gram);
            }
        }
    }
}
