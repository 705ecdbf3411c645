//! Decoded text: UTF-8 in which a lone surrogate is three bytes; and its form inside a JSON string, with its counts.

/// A half-open range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    pub start: usize,
    /// The end: one past the last byte.
    pub end: usize,
}

impl Span {
    pub fn of<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        &data[self.start..self.end]
    }
}

/// A string, without its quotes, and its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// After the opening quote.
    pub start: usize,
    /// At the closing quote.
    pub end: usize,
    /// Bytes minus code points of the decoded text; 0 for plain ASCII without escapes.
    pub minus: usize,
    /// False only if it does not contain the needle: neither the word, nor a `\uXXXX` escape of one of its letters.
    /// Strings of [`Counted::plain`] are not searched.
    pub may_hold_needle: bool,
}

impl Counted {
    /// A short string of plain ASCII without escapes.
    #[inline]
    pub(crate) fn plain(start: usize, end: usize) -> Self {
        Counted { start, end, minus: 0, may_hold_needle: false }
    }

    #[inline]
    pub(crate) fn raw<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        &data[self.start..self.end]
    }

    /// Code points of the decoded text.
    #[inline]
    pub fn chars(&self) -> usize {
        self.end - self.start - self.minus
    }
}

/// Whether bytes are decoded text.
pub(crate) fn is_text(mut bytes: &[u8]) -> bool {
    while let Err(error) = core::str::from_utf8(bytes) {
        let [0xED, 0xA0..=0xBF, 0x80..=0xBF, rest @ ..] = &bytes[error.valid_up_to()..] else { return false };
        bytes = rest;
    }
    true
}

/// Whether a text is empty, or white space of ASCII.
#[inline]
pub(crate) fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

/// Code points of decoded text.
pub fn count_chars(text: &[u8]) -> usize {
    text.iter().filter(|byte| !(0x80..0xC0).contains(*byte)).count()
}

/// What decoded text weighs, see [`crate::json::weight`], for each set of instructions.
#[inline(always)]
#[allow(clippy::inline_always, reason = "each set of instructions has its own")]
pub(crate) fn weight_body(text: &[u8]) -> usize {
    // Counts of a byte each, until one of them could overflow: so the compiler adds 32 of them at once.
    let (blocks, rest) = text.as_chunks::<32>();
    let mut sum = rest.iter().map(|byte| usize::from(quarters(*byte))).sum();
    for blocks in blocks.chunks(u8::MAX as usize) {
        let (mut low, mut spaces) = ([0u8; 32], [0u8; 32]);
        for block in blocks {
            for lane in 0..32 {
                low[lane] += u8::from(block[lane] < b'@');
                spaces[lane] += u8::from(block[lane] == b' ');
            }
        }
        let count = |counts: [u8; 32]| counts.into_iter().map(usize::from).sum::<usize>();
        sum += 32 * blocks.len() + 2 * count(low) - usize::from(LOW) * count(spaces);
    }
    sum
}

/// Quarter tokens of an ASCII character below `@`, but the space.
pub(crate) const LOW: u8 = 3;

/// What a byte of decoded text weighs.
#[inline]
pub(crate) fn quarters(byte: u8) -> u8 {
    if byte == b' ' {
        0
    } else if byte < b'@' {
        LOW
    } else {
        1
    }
}

/// Whether two texts are equal. They are mostly ids or names, short and with a common prefix, and compared so often that the
/// call of `memcmp` would cost more than the comparison.
#[inline]
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && match one.len() {
            16.. => have_same_ends::<16>(one, other) && (one.len() <= 32 || one == other),
            8.. => have_same_ends::<8>(one, other),
            4.. => have_same_ends::<4>(one, other),
            _ => one.iter().zip(other).all(|(byte, of_other)| byte == of_other),
        }
}

/// Whether two texts have the same first and last bytes; they overlap if the texts have fewer than both.
#[inline]
fn have_same_ends<const WIDTH: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<WIDTH>() == other.first_chunk() && one.last_chunk::<WIDTH>() == other.last_chunk()
}

/// How many bytes the first `chars` code points of decoded text take.
pub fn clip(text: &[u8], chars: usize) -> usize {
    let starts = text.iter().enumerate().filter(|(_, byte)| !(0x80..0xC0).contains(*byte));
    starts.map(|(at, _)| at).nth(chars).unwrap_or(text.len())
}

/// White space, as by Python's `str.split`.
pub(crate) fn is_space(character: &[u8]) -> bool {
    match character {
        [byte] => matches!(byte, 9..=13 | 28..=32),
        _ => core::str::from_utf8(character).is_ok_and(|text| {
            text.chars().all(|character| {
                matches!(
                    character,
                    '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'
                        ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
                )
            })
        }),
    }
}

/// Appends decoded text as the inside of a JSON string; lone surrogates are escaped.
pub fn encode_text(text: &[u8], out: &mut Vec<u8>) {
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        // 0xED leads the code points from U+D000; from U+D800 on they are surrogates.
        let is_surrogate = byte == 0xED && text[at + 1] >= 0xA0;
        if byte >= 0x20 && byte != b'"' && byte != b'\\' && !is_surrogate {
            at += 1;
            continue;
        }
        out.extend_from_slice(&text[copied..at]);
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0xED => push_escape(0xD000 | u32::from(text[at + 1] & 0x3F) << 6 | u32::from(text[at + 2] & 0x3F), out),
            _ => push_escape(u32::from(byte), out),
        }
        at += if is_surrogate { 3 } else { 1 };
        copied = at;
    }
    out.extend_from_slice(&text[copied..]);
}

fn push_escape(unit: u32, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u");
    out.extend([12, 8, 4, 0].map(|shift| DIGITS[(unit >> shift & 15) as usize]));
}
