//! A text cut to its beginning and its end, around a marker that says how much is left out.

use crate::text::{clip, count_chars};
use memchr::memmem;

const HEAD: &str = "[… ";
const TAIL: &str = " chars omitted …]";
/// Characters of the marker beside its number.
const MARKER_CHARS: usize = 20;
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
                let beginning = if kept == chars { chars } else { kept.div_ceil(2) };
                return Clip { beginning, omitted, end: kept - beginning };
            }
            digits += 1;
        }
    }

    /// How many characters there are then.
    #[must_use]
    pub fn chars(&self) -> usize {
        self.beginning + MARKER_CHARS + digits_of(self.omitted) + self.end
    }

    /// What stands between beginning and end.
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

/// Whether decoded text was cut before: the marker stands where it would, in the middle.
#[must_use]
pub fn is_clipped(text: &[u8]) -> bool {
    if memmem::find(text, TAIL.as_bytes()).is_none() {
        return false;
    }
    let chars = count_chars(text);
    (1..=digits_of(usize::MAX)).any(|digits| {
        let Some(kept) = chars.checked_sub(MARKER_CHARS + digits) else { return false };
        let middle = &text[clip(text, kept.div_ceil(2))..];
        let number = middle.strip_prefix(HEAD.as_bytes()).and_then(|rest| rest.split_at_checked(digits));
        number.is_some_and(|(number, rest)| number.iter().all(u8::is_ascii_digit) && rest.starts_with(TAIL.as_bytes()))
    })
}
