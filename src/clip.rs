//! Cutting a text to its beginning and end, around a marker with the number of omitted characters.

use crate::text::{clip, count_chars};
use memchr::memmem;

const HEAD: &str = "[… ";
const TAIL: &str = " chars omitted …]";
/// Characters of the marker without its number.
const MARKER_CHARS: usize = 20;
const MOST_DIGITS: usize = 20;
/// The minimum length of a cut text, of which the marker is a large part.
pub const MIN_CLIP_CHARS: usize = 60;

/// A cut of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clip {
    /// Characters of its beginning.
    pub beginning: usize,
    /// Omitted characters, including those of images.
    pub omitted: usize,
    /// Characters of its end.
    pub end: usize,
}

impl Clip {
    /// A cut of a text of `chars`, with images that count `images`, to exactly `max_chars` characters, at least
    /// [`MIN_CLIP_CHARS`]; or if the text is no longer than that, a cut that omits only the images.
    #[must_use]
    pub fn of(chars: usize, images: usize, max_chars: usize) -> Self {
        // The marker names what it leaves out, which depends on its own length.
        let mut digits = 1;
        loop {
            let kept = max_chars.saturating_sub(MARKER_CHARS + digits).min(chars);
            let omitted = (chars - kept).saturating_add(images);
            if digits_of(omitted) <= digits {
                let end = if kept < chars { kept / 2 } else { 0 };
                return Clip { beginning: kept - end, omitted, end };
            }
            digits += 1;
        }
    }

    /// Characters after the cut.
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

/// The number of digits of the marker at the beginning of a text.
fn digits_of_marker(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(HEAD.as_bytes())?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_marker = (1..=MOST_DIGITS).contains(&digits) && rest[digits..].starts_with(TAIL.as_bytes());
    is_marker.then_some(digits)
}
