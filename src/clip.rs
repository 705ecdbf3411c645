//! A text cut to its beginning and its end, around a marker that says how much is left out.

use crate::text::{clip, count_chars};
use memchr::memmem;

const HEAD: &str = "[… ";
const TAIL: &str = " chars omitted …]";
/// Characters of the marker beside its number.
const MARKER_CHARS: usize = 20;
const MOST_DIGITS: usize = 20;
/// A text is not cut to fewer characters: it would be little but its marker.
pub const LEAST_CHARS: usize = 60;

/// What a text is cut to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clip {
    /// Characters of its beginning.
    pub beginning: usize,
    /// Characters that are left out, those that images count included.
    pub omitted: usize,
    /// Characters of its end.
    pub end: usize,
}

impl Clip {
    /// A text of `chars`, with images that count `images`, cut to `most`, of which there are at least [`LEAST_CHARS`]. It
    /// has exactly so many, unless the text is that short and only the images are left out.
    #[must_use]
    pub fn of(chars: usize, images: usize, most: usize) -> Self {
        // The marker names what it leaves out, which depends on its own length.
        let mut digits = 1;
        loop {
            let kept = most.saturating_sub(MARKER_CHARS + digits).min(chars);
            let omitted = (chars - kept).saturating_add(images);
            if digits_of(omitted) <= digits {
                let end = if kept < chars { kept / 2 } else { 0 };
                return Clip { beginning: kept - end, omitted, end };
            }
            digits += 1;
        }
    }

    /// How many characters there are then.
    #[must_use]
    pub fn chars(&self) -> usize {
        self.beginning + MARKER_CHARS + digits_of(self.omitted) + self.end
    }

    /// The text between beginning and end.
    #[must_use]
    pub fn marker(&self) -> String {
        format!("{HEAD}{}{TAIL}", self.omitted)
    }

    /// Cuts decoded text.
    #[must_use]
    pub fn apply(&self, text: &[u8]) -> Vec<u8> {
        let beginning = clip(text, self.beginning);
        let end = clip(text, count_chars(text) - self.end);
        [&text[..beginning], self.marker().as_bytes(), &text[end..]].concat()
    }
}

fn digits_of(number: usize) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Whether decoded text was cut before: a marker is in its middle.
#[must_use]
pub fn is_clipped(text: &[u8]) -> bool {
    let chars = count_chars(text);
    let (mut at, mut before) = (0, 0);
    memmem::find_iter(text, HEAD).any(|start| {
        before += count_chars(&text[at..start]);
        at = start;
        let Some(digits) = digits_of_marker(&text[start..]) else { return false };
        let after = chars - before - MARKER_CHARS - digits;
        before == after || before == after + 1
    })
}

/// Of the marker that a text begins with, how many digits its number has.
fn digits_of_marker(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(HEAD.as_bytes())?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_marker = (1..=MOST_DIGITS).contains(&digits) && rest[digits..].starts_with(TAIL.as_bytes());
    is_marker.then_some(digits)
}
