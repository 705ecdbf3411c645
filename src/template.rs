//! Templates of placeholders: the built-in ones, and whether a text was written by one.

use crate::handle::HANDLE_CHARS;
use crate::policy::{Field, OWN_PLACEHOLDER, Template};
use crate::text::count_chars;
use std::sync::OnceLock;

/// Digits of the largest number.
const MAX_DIGITS: usize = usize::MAX.ilog10() as usize + 1;

fn template(parts: &[(&str, Option<Field>)]) -> Template {
    parts.iter().map(|(literal, field)| (literal.as_bytes().to_vec(), *field)).collect()
}

/// The built-in templates: of the published designs with characters or lines, without images and with; and recede's own, the last
/// one with a handle.
pub(crate) fn built_ins() -> &'static [Template; 6] {
    const HEAD: &str = "[observation masked — ";
    const CHARS: Option<Field> = Some(Field::Chars);
    const LINES: Option<Field> = Some(Field::Lines);
    const IMAGES: Option<Field> = Some(Field::Images);
    static TEMPLATES: OnceLock<[Template; 6]> = OnceLock::new();
    TEMPLATES.get_or_init(|| {
        [
            template(&[(HEAD, CHARS), (" chars]", None)]),
            template(&[(HEAD, CHARS), (" chars, ", IMAGES), (" images]", None)]),
            template(&[(HEAD, LINES), (" lines omitted]", None)]),
            template(&[(HEAD, LINES), (" lines, ", IMAGES), (" images omitted]", None)]),
            template(&[(OWN_PLACEHOLDER, None)]),
            template(&[("[old tool output cleared to save context, recall ", Some(Field::Handle)), ("]", None)]),
        ]
    })
}

/// Characters outside of the fields that vary in length.
pub(crate) fn constant_chars(template: &[(Vec<u8>, Option<Field>)]) -> usize {
    let handle_chars = |field: Option<Field>| if field == Some(Field::Handle) { HANDLE_CHARS } else { 0 };
    template.iter().map(|(literal, field)| count_chars(literal) + handle_chars(*field)).sum()
}

/// Whether a template may have written this many characters, if no number in it has more digits than recede writes.
pub(crate) fn may_have(template: &Template, chars: usize) -> bool {
    let is_number = |field: &Field| !matches!(field, Field::Tool | Field::Id);
    let fields = || template.iter().filter_map(|(_, field)| field.as_ref()).filter(|field| **field != Field::Handle);
    let numbers = fields().filter(|field| is_number(field)).count();
    let least = constant_chars(template) + numbers;
    chars >= least && (numbers < fields().count() || chars <= least + numbers * (MAX_DIGITS - 1))
}

/// An element of a template to match.
#[derive(Clone, Copy, PartialEq)]
enum TemplatePart {
    Byte(u8),
    Digit,
    /// A digit of a handle.
    Hex,
    Digits,
    Any,
}

/// Whether the whole text matches a template with its fields as wildcards. Simulates an NFA over the bytes, whose states are
/// places in the template; no backtracking.
pub(crate) fn matches(template: &[(Vec<u8>, Option<Field>)], text: &[u8]) -> bool {
    let mut wanted = vec![];
    for (literal, field) in template {
        wanted.extend(literal.iter().copied().map(TemplatePart::Byte));
        match field {
            Some(Field::Tool | Field::Id) => wanted.push(TemplatePart::Any),
            Some(Field::Handle) => wanted.extend([TemplatePart::Hex; HANDLE_CHARS]),
            Some(_) => wanted.extend([TemplatePart::Digit, TemplatePart::Digits]),
            None => {}
        }
    }
    // The byte before which each place was last reached.
    let mut reached = vec![usize::MAX; wanted.len() + 1];
    let mut reach = |mut place: usize, at: usize, places: &mut Vec<usize>| {
        while core::mem::replace(&mut reached[place], at) != at {
            places.push(place);
            if matches!(wanted.get(place), Some(TemplatePart::Digits | TemplatePart::Any)) {
                place += 1;
            }
        }
    };
    let (mut now, mut next) = (vec![], vec![]);
    reach(0, 0, &mut now);
    for (at, byte) in text.iter().enumerate() {
        // A wildcard matches any text, so the places before it can be dropped.
        let first = now.iter().rposition(|place| wanted.get(*place) == Some(&TemplatePart::Any));
        for &place in &now[first.unwrap_or(0)..] {
            match wanted.get(place) {
                Some(TemplatePart::Byte(other)) if other == byte => reach(place + 1, at + 1, &mut next),
                Some(TemplatePart::Digit) if byte.is_ascii_digit() => reach(place + 1, at + 1, &mut next),
                Some(TemplatePart::Hex) if matches!(byte, b'0'..=b'9' | b'a'..=b'f') => {
                    reach(place + 1, at + 1, &mut next);
                }
                Some(TemplatePart::Digits) if byte.is_ascii_digit() => reach(place, at + 1, &mut next),
                Some(TemplatePart::Any) => reach(place, at + 1, &mut next),
                _ => {}
            }
        }
        if next.is_empty() {
            return false;
        }
        core::mem::swap(&mut now, &mut next);
        next.clear();
    }
    now.last() == Some(&wanted.len())
}
