//! A rendered message without its signed reasoning.

use crate::outline::Span;
use crate::scan;
use crate::shape::{BLOCKS, Key, NO_REASONING, SIGNED_FIELDS};

/// Writes a message without its signed reasoning. One that has nothing else keeps its place with a short text.
pub(crate) fn unsigned_message(message: &[u8]) -> Vec<u8> {
    let members = scan::members(message, Span { start: 0, end: message.len() });
    let is_signed = |key: &[u8]| SIGNED_FIELDS.iter().any(|field| key == field.name().as_bytes());
    let fields: Vec<_> = members.iter().map(|member| (member.field, !is_signed(&member.key))).collect();
    let value_of = |key: Key| members.iter().rfind(|member| member.key == key.name().as_bytes()).map(|one| one.value);
    let found = BLOCKS.into_iter().find_map(|field| Some((field, value_of(field)?)));
    let Some((field, content)) = found else { return without(message, &[&fields]) };
    let blocks = scan::elements(message, content);
    let is_kept = |block: &Span| (*block, !scan::is_signed_block(message, *block, field));
    let kept: Vec<_> = blocks.iter().flatten().map(is_kept).collect();
    let left = without(message, &[&fields, &kept]);
    let is_empty = blocks.is_some() || matches!(content.of(message), b"null" | b"\"\"");
    let calls = value_of(Key::ToolCalls).and_then(|calls| scan::elements(message, calls)).unwrap_or_default();
    if !is_empty || !calls.is_empty() || kept.iter().any(|(_, stays)| *stays) {
        return left;
    }
    let has_types = kept.iter().all(|(block, _)| scan::member(message, *block, b"type").is_some());
    let text = match (blocks.is_some(), has_types) {
        (false, _) => format!("\"{NO_REASONING}\""),
        (true, true) => format!(r#"[{{"type":"text","text":"{NO_REASONING}"}}]"#),
        (true, false) => format!(r#"[{{"text":"{NO_REASONING}"}}]"#),
    };
    let whole = Span { start: 0, end: left.len() };
    let Some(content) = scan::member(&left, whole, field.name().as_bytes()) else { return left };
    [&left[..content.start], text.as_bytes(), &left[content.end..]].concat()
}

/// Bytes without some items of these lists, each cut with the comma after it, or at the end of its list with the one before it.
fn without(bytes: &[u8], lists: &[&[(Span, bool)]]) -> Vec<u8> {
    let mut cuts = vec![];
    for list in lists {
        let (mut last, mut first_gone) = (None, None);
        for (item, is_kept) in *list {
            if *is_kept {
                cuts.extend(first_gone.take().map(|start| (start, item.start)));
                last = Some(item.end);
            } else {
                first_gone.get_or_insert(item.start);
            }
        }
        let end = list.last().map_or(0, |(item, _)| item.end);
        cuts.extend(first_gone.map(|start| (last.unwrap_or(start), end)));
    }
    cuts.sort_unstable();
    let (mut out, mut at) = (vec![], 0);
    for (start, end) in cuts {
        out.extend_from_slice(&bytes[at..start]);
        at = end;
    }
    out.extend_from_slice(&bytes[at..]);
    out
}
