//! Patterns of tool names, and of the texts of results.

use std::cell::LazyCell;
use std::collections::HashMap;

/// Values for single tools, by name or pattern. An exact name precedes patterns, an earlier pattern a later one.
#[derive(Debug, Clone)]
pub struct ByTool<T> {
    rules: Vec<(Vec<u8>, T)>,
    /// Indexes of rules by name; also of patterns, since a tool may have such a name.
    names: HashMap<Vec<u8>, usize>,
    /// Rules that are patterns, which are tried one by one; Python limits their number.
    patterns: Vec<usize>,
}

impl<T> ByTool<T> {
    /// Whether there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The value for a tool.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&T> {
        let by_pattern = || self.patterns.iter().find(|rule| matches(&self.rules[**rule].0, name));
        self.names.get(name).or_else(by_pattern).map(|rule| &self.rules[*rule].1)
    }
}

impl<T> Default for ByTool<T> {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl<T> FromIterator<(Vec<u8>, T)> for ByTool<T> {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, T)>>(rules: I) -> Self {
        let rules: Vec<(Vec<u8>, T)> = rules.into_iter().collect();
        let names = rules.iter().enumerate().map(|(rule, (tool, _))| (tool.clone(), rule)).collect();
        let patterns = (0..rules.len()).filter(|rule| is_pattern(&rules[*rule].0)).collect();
        ByTool { rules, names, patterns }
    }
}

/// Beginnings of texts, and patterns of whole texts in which `*` matches any text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextPatterns(pub Vec<Vec<u8>>);

impl TextPatterns {
    /// Whether one fits a text, as [`fits`] has it.
    pub(crate) fn fit(
        &self,
        begins: impl Fn(&[u8]) -> bool,
        may_end: impl Fn(&[u8]) -> bool,
        text: impl FnOnce() -> Vec<u8>,
    ) -> bool {
        let text = LazyCell::new(text);
        self.0.iter().any(|pattern| fits(pattern, &begins, &may_end, || &text))
    }
}

/// Whether a text begins so, or with `*` matches as a whole; `begins` decides how it begins, and `may_end` may know that it does not
/// end so, if that is printable ASCII. In linear time.
pub(crate) fn fits<'a>(
    pattern: &[u8],
    begins: impl Fn(&[u8]) -> bool,
    may_end: impl Fn(&[u8]) -> bool,
    text: impl FnOnce() -> &'a [u8],
) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let is_plain = |part: &[u8]| part.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
    begins(first)
        && parts
            .next_back()
            .is_none_or(|last| (!is_plain(last) || may_end(last)) && follow(&text()[first.len()..], parts, last))
}

/// Whether a text has these parts in order, and then ends so.
fn follow<'a>(text: &[u8], parts: impl Iterator<Item = &'a [u8]>, last: &[u8]) -> bool {
    let mut left = text;
    for part in parts {
        let Some(place) = memchr::memmem::find(left, part) else { return false };
        left = &left[place + part.len()..];
    }
    left.ends_with(last)
}

/// Whether a tool's name matches a pattern, in which `*` matches any text and `?` one character.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut star = None; // (after the last `*`, where its text ends so far)
    while place < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, place));
                continue;
            }
            Some(b'?') => {
                at += 1;
                place += character_width(name, place);
                continue;
            }
            Some(byte) if *byte == name[place] => {
                at += 1;
                place += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, end)) = star else { return false };
        let end = end + character_width(name, end);
        star = Some((after, end));
        (at, place) = (after, end);
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

fn character_width(text: &[u8], at: usize) -> usize {
    1 + text[at + 1..].iter().take_while(|byte| (0x80..0xC0).contains(*byte)).count()
}

fn is_pattern(tool: &[u8]) -> bool {
    tool.iter().any(|byte| matches!(byte, b'*' | b'?'))
}
