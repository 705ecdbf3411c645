//! Dispatch blocks: the word that begins one, the search for it, and what replaces a text that has some.

use crate::json::Needle;
use crate::text::count_chars;
use memchr::memmem::Finder;
use std::sync::OnceLock;

/// The word that begins a dispatch block.
pub const BEGIN_DISPATCH: &str = "BEGIN_DISPATCH_RESULT";

const END: &str = "END_DISPATCH_RESULT";
const DISPATCH_HEAD: &str = "[dispatch output masked — ";
const DISPATCH_TAIL: &str = " chars]";

/// The scan looks for `N_` and `H_`, its rarest pairs of letters in text.
pub static NEEDLE: Needle = Needle::new(BEGIN_DISPATCH, 4, 13);

/// A finder of [`BEGIN_DISPATCH`]; built once, since every observation is searched.
pub(crate) fn begin_dispatch() -> &'static Finder<'static> {
    static FINDER: OnceLock<Finder> = OnceLock::new();
    FINDER.get_or_init(|| Finder::new(BEGIN_DISPATCH))
}

/// False only if no block begins in the raw text: an escaped capital or underscore is `\u004.` or `\u005.`.
pub(crate) fn may_begin_in(raw: &[u8]) -> bool {
    static ESCAPES: OnceLock<[Finder; 2]> = OnceLock::new();
    let escapes = ESCAPES.get_or_init(|| [Finder::new("\\u004"), Finder::new("\\u005")]);
    begin_dispatch().find(raw).is_some() || escapes.iter().any(|finder| finder.find(raw).is_some())
}

/// The dispatch blocks of a text, delimiters included: from each `BEGIN…` to the next `END…`.
pub fn dispatch_blocks(text: &[u8]) -> Vec<(usize, usize)> {
    let (begin, end) = (begin_dispatch(), memchr::memmem::Finder::new(END));
    let mut blocks = vec![];
    let mut at = 0;
    while let Some(start) = begin.find(&text[at..]).map(|found| at + found) {
        let inside = start + BEGIN_DISPATCH.len();
        let Some(length) = end.find(&text[inside..]) else { break };
        at = inside + length + END.len();
        blocks.push((start, at));
    }
    blocks
}

/// Whether a text has dispatch blocks.
pub(crate) fn has_dispatch(text: &[u8]) -> bool {
    !dispatch_blocks(text).is_empty()
}

/// How the blocks replace their text: whether with the line, and the characters then; None if neither is short enough.
pub(crate) fn dispatch_form(
    text: &[u8],
    blocks: &[(usize, usize)],
    is_short_enough: impl Fn(usize) -> bool,
) -> Option<(bool, usize)> {
    let alone = chars_inside(text, blocks) + blocks.len() - 1;
    let with_head = dispatch_head(text, blocks).chars().count() + 1 + alone;
    if is_short_enough(with_head) { Some((true, with_head)) } else { is_short_enough(alone).then_some((false, alone)) }
}

fn chars_inside(text: &[u8], blocks: &[(usize, usize)]) -> usize {
    blocks.iter().map(|(start, end)| count_chars(&text[*start..*end])).sum()
}

/// The line with the number of characters outside of the blocks.
pub(crate) fn dispatch_head(text: &[u8], blocks: &[(usize, usize)]) -> String {
    format!("{DISPATCH_HEAD}{}{DISPATCH_TAIL}", count_chars(text) - chars_inside(text, blocks))
}

/// Whether a whole text is such a line and such blocks.
pub(crate) fn is_dispatch_form(text: &[u8]) -> bool {
    let blocks = dispatch_blocks(text);
    let Some((first, _)) = blocks.first() else { return false };
    let head = text[..*first].strip_prefix(DISPATCH_HEAD.as_bytes());
    let digits =
        head.and_then(|rest| rest.strip_suffix(b"\n")).and_then(|rest| rest.strip_suffix(DISPATCH_TAIL.as_bytes()));
    let is_head = digits.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
    let is_joined = blocks.windows(2).all(|pair| &text[pair[0].1..pair[1].0] == b"\n");
    is_head && is_joined && blocks.last().is_some_and(|(_, end)| *end == text.len())
}
