//! A word to find while strings are scanned, since a separate search would cost as much as the scan.

/// A word, and two pairs of its bytes as hints: one at an even index of the word, one at an odd index. Wherever the word is, one
/// of them is at an even index of its block, so the scan compares only even indices.
#[derive(Debug)]
pub struct Needle {
    word: &'static str,
    /// Either pair, masked: the bits in which the pairs differ are cleared.
    pub(super) hint: u16,
    pub(super) mask: u16,
    /// The lowest and the highest byte of the word.
    letters: (u8, u8),
}

impl Needle {
    /// A needle whose hints are the pairs at `even` and `odd`. The rarer these are in text, the faster is the scan.
    ///
    /// # Panics
    /// Unless `word` is of ASCII letters, digits and underscores, and has the pairs there.
    pub(crate) const fn new(word: &'static str, even: usize, odd: usize) -> Self {
        assert!(even.is_multiple_of(2) && !odd.is_multiple_of(2));
        let bytes = word.as_bytes();
        let first = u16::from_le_bytes([bytes[even], bytes[even + 1]]);
        let second = u16::from_le_bytes([bytes[odd], bytes[odd + 1]]);
        let mask = !(first ^ second);
        let (mut lowest, mut highest, mut place) = (u8::MAX, 0, 0);
        while place < bytes.len() {
            let byte = bytes[place];
            assert!(byte.is_ascii_alphanumeric() || byte == b'_');
            lowest = if byte < lowest { byte } else { lowest };
            highest = if byte > highest { byte } else { highest };
            place += 1;
        }
        Needle { word, hint: first & mask, mask, letters: (lowest, highest) }
    }

    /// Whether the word may contain this code point.
    #[inline]
    pub(super) fn may_contain(&self, unit: u32) -> bool {
        (u32::from(self.letters.0)..=u32::from(self.letters.1)).contains(&unit)
    }

    /// Whether a string in which a hint was found contains the word.
    #[cold]
    #[inline(never)]
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        memchr::memmem::find(text, self.word.as_bytes()).is_some()
    }
}
