//! Decoded text: UTF-8 that may hold lone surrogates, in the three bytes that UTF-8 would have for them.

/// Code points of decoded text.
#[must_use]
pub fn count_chars(text: &[u8]) -> usize {
    text.iter().filter(|byte| !(0x80..0xC0).contains(*byte)).count()
}

/// How many bytes the first `chars` code points of decoded text take.
#[must_use]
pub fn clip(text: &[u8], chars: usize) -> usize {
    let starts = text.iter().enumerate().filter(|(_, byte)| !(0x80..0xC0).contains(*byte));
    starts.map(|(at, _)| at).nth(chars).unwrap_or(text.len())
}
