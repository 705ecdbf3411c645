//! Cutting a text to its beginning and end, around a marker with the number of omitted characters.

use crate::handle::{HANDLE_CHARS, Handle, handle_of, is_handle};
use crate::text::{clip, count_chars};
use memchr::memmem;

const HEAD: &str = "[… ";
const OMITTED: &str = " chars omitted";
const RECALL: &str = ", recall ";
const TAIL: &str = " …]";
/// Characters of the marker without its numbers; and those with which it names a handle.
const MARKER_CHARS: usize = 20;
const RECALL_CHARS: usize = 9 + HANDLE_CHARS;
const MOST_DIGITS: usize = 20;
/// The minimum length of a cut text, of which the marker is a large part.
pub const MIN_CLIP_CHARS: usize = 60;

/// A cut of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clip {
    pub beginning: usize,
    /// Omitted characters, including those of images.
    pub omitted: usize,
    pub end: usize,
    /// The handle of the observation, if the marker names it.
    pub recall: Option<Handle>,
}

impl Clip {
    /// A cut of a text of `chars`, with images that count `images`, to exactly `max_chars` characters, at least
    /// [`MIN_CLIP_CHARS`]; or if the text is no longer than that, a cut that omits only the images.
    pub fn of(chars: usize, images: usize, max_chars: usize, recall: Option<Handle>) -> Self {
        let recall_chars = recall.map_or(0, |_| RECALL_CHARS);
        // The marker names what it leaves out, which depends on its own length.
        let mut digits = 1;
        loop {
            let kept = max_chars.saturating_sub(MARKER_CHARS + recall_chars + digits).min(chars);
            let omitted = (chars - kept).saturating_add(images);
            if digits_of(omitted) <= digits {
                let end = if kept < chars { kept / 2 } else { 0 };
                return Clip { beginning: kept - end, omitted, end, recall };
            }
            digits += 1;
        }
    }

    pub fn chars(&self) -> usize {
        self.beginning + count_chars(self.marker().as_bytes()) + self.end
    }

    /// Characters that it removes.
    pub(crate) fn removed(&self) -> usize {
        self.omitted - count_chars(self.marker().as_bytes())
    }

    /// The text between beginning and end.
    pub fn marker(&self) -> String {
        let recall =
            self.recall.map_or(String::new(), |handle| format!("{RECALL}{}", String::from_utf8_lossy(&handle)));
        format!("{HEAD}{}{OMITTED}{recall}{TAIL}", self.omitted)
    }

    pub fn apply(&self, text: &[u8]) -> Vec<u8> {
        let (beginning, end) = self.ends(text);
        [beginning, self.marker().as_bytes(), end].concat()
    }

    /// The part of decoded text that it keeps, of which [`Clip::apply`] makes the same.
    pub(crate) fn kept(&self, text: &[u8]) -> Vec<u8> {
        let (beginning, end) = self.ends(text);
        [beginning, end].concat()
    }

    fn ends<'a>(&self, text: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        (&text[..clip(text, self.beginning)], &text[clip(text, count_chars(text) - self.end)..])
    }
}

/// A part of a message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PartFacts {
    /// Whether it has text that counts.
    pub has_text: bool,
    /// Whether it counts, but has no text: an image, or a part of an unknown type.
    pub is_image: bool,
    /// Whether it has a cache mark of its own.
    pub is_marked: bool,
}

/// The parts that stay of a message that is cut: one part has all text, images and unknown parts go, and those that do not count stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CutParts {
    /// The part with the text: the first that had some.
    pub text: usize,
    pub kept: Vec<usize>,
    /// The part whose cache mark it takes over.
    pub mark_of: Option<usize>,
}

impl CutParts {
    /// The cut of these parts; None if none has text.
    pub(crate) fn of(parts: &[PartFacts]) -> Option<Self> {
        let text = parts.iter().position(|part| part.has_text)?;
        let stays = |place: &usize| *place == text || !(parts[*place].has_text || parts[*place].is_image);
        let mark_of = (0..parts.len()).rfind(|place| parts[*place].is_marked && !stays(place));
        let mark_of = mark_of.filter(|_| !parts[text].is_marked);
        Some(CutParts { text, kept: (0..parts.len()).filter(stays).collect(), mark_of })
    }
}

fn digits_of(number: usize) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// The handle of an observation; of one that was cut before, that of the whole text, if its marker names it.
pub(crate) fn handle_of_whole(id: &[u8], text: &[u8]) -> Handle {
    let digits = |marker: &[u8]| marker[..marker.len() - TAIL.len()].last_chunk().copied();
    let named = middle_marker(text).and_then(digits).filter(|handle| is_handle(handle));
    named.unwrap_or_else(|| handle_of(id, text))
}

/// The marker in the middle of a text.
fn middle_marker(text: &[u8]) -> Option<&[u8]> {
    let chars = count_chars(text);
    let (mut at, mut before) = (0, 0);
    memmem::find_iter(text, HEAD).find_map(|start| {
        before += count_chars(&text[at..start]);
        at = start;
        let marker = marker_of(&text[start..])?;
        let after = chars - before - count_chars(marker);
        (before == after || before == after + 1).then_some(marker)
    })
}

/// The marker at the beginning of a text.
fn marker_of(text: &[u8]) -> Option<&[u8]> {
    let rest = after_number(text.strip_prefix(HEAD.as_bytes())?)?.strip_prefix(OMITTED.as_bytes())?;
    let rest = rest.strip_prefix(RECALL.as_bytes()).map_or(Some(rest), after_handle)?;
    let rest = rest.strip_prefix(TAIL.as_bytes())?;
    Some(&text[..text.len() - rest.len()])
}

/// The text that follows a handle.
fn after_handle(text: &[u8]) -> Option<&[u8]> {
    text.split_at_checked(HANDLE_CHARS).filter(|(handle, _)| is_handle(handle)).map(|(_, rest)| rest)
}

/// The text that follows a number.
fn after_number(text: &[u8]) -> Option<&[u8]> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=MOST_DIGITS).contains(&digits).then(|| &text[digits..])
}
