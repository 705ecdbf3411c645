//! Fingerprints of grams: a rolling hash over code points, with a base that is drawn when it is first needed, so that no text
//! can be made whose grams collide.

use super::GRAM_CHARS;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

static DRAWN: LazyLock<Base> = LazyLock::new(|| Base::of(RandomState::new().hash_one(GRAM_CHARS)));

/// The base of the polynomials.
#[derive(Clone, Copy)]
struct Base {
    base: u64,
    /// The factor of the oldest code point of a gram when the next one arrives.
    to_gram: u64,
}

impl Base {
    /// An odd number; its last bits are such that its powers repeat as late as they can.
    fn of(drawn: u64) -> Self {
        let base = drawn & !7 | 5;
        Base { base, to_gram: base.wrapping_pow(GRAM_CHARS as u32 + 1) }
    }
}

/// The last code points of a text, and the hash of their polynomial.
struct Grams {
    base: Base,
    last: [u32; GRAM_CHARS],
    count: usize,
    hash: u64,
}

impl Grams {
    fn new(base: Base) -> Self {
        Grams { base, last: [0; GRAM_CHARS], count: 0, hash: 0 }
    }

    /// Adds a code point. Returns the gram that it ends, once there are enough: an odd number whose first bits depend on all code
    /// points.
    fn push(&mut self, char: u32) -> Option<u64> {
        let oldest = core::mem::replace(&mut self.last[self.count % GRAM_CHARS], char);
        let doubled = |char: u32| u64::from(char) * 2;
        let gone = doubled(oldest).wrapping_mul(self.base.to_gram);
        self.hash = self.hash.wrapping_add(doubled(char)).wrapping_mul(self.base.base).wrapping_sub(gone);
        self.count += 1;
        (self.count >= GRAM_CHARS).then_some(self.hash | 1)
    }
}

/// A reader of code points that passes each gram on.
pub(super) fn each_gram(mut visit: impl FnMut(u64)) -> impl FnMut(u32) {
    let mut grams = Grams::new(*DRAWN);
    move |char| {
        if let Some(gram) = grams.push(char) {
            visit(gram);
        }
    }
}
