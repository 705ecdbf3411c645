//! The texts of system messages inside a conversation: which of them a later one replaces.

use std::hash::{DefaultHasher, Hasher};

/// Longer texts are instructions, of which none replaces another one: it takes no time to read them.
const MOST_BYTES: usize = 2_000;

/// What a system message says, without its digits: `14958271 tokens left` is replaced by `14949110 tokens left`.
#[derive(Default)]
pub(crate) struct SystemText {
    said: DefaultHasher,
    bytes: usize,
    is_number: bool,
}

impl SystemText {
    /// Adds a decoded text.
    pub(crate) fn add(&mut self, text: &[u8]) {
        self.bytes += text.len();
        if self.bytes > MOST_BYTES {
            return;
        }
        for byte in text {
            let is_digit = byte.is_ascii_digit();
            if !(is_digit && self.is_number) {
                self.said.write_u8(if is_digit { b'0' } else { *byte });
            }
            self.is_number = is_digit;
        }
    }

    /// The digest; None if nothing was said, or too much.
    pub(crate) fn digest(&self) -> Option<u64> {
        (1..=MOST_BYTES).contains(&self.bytes).then(|| self.said.finish())
    }
}
