//! Cache marks: the `cache_control` of a block or of a part, after which a provider writes an entry of its prompt cache.
//!
//! A mark inside of an observation moves when that is replaced: to the block of its result; where the message itself is the
//! result, to the one part that has the new text. So no mark is lost.

use crate::outline::{Outline, Span};
use crate::scan::{elements, member, member_around};
use crate::shape::{Frame, Key, Shape};

/// The field of a mark.
pub const FIELD: &str = "cache_control";

/// Where a mark goes whose observation is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// After the observation, as a new field of its block.
    After(Span),
    /// Over the null that the block has in its place.
    Over(Span, Span),
    /// Around the new text, in a part of this type.
    Around(Span, &'static str),
}

/// The type of a part with text in a message of this shape.
#[must_use]
pub fn part_type(shape: Shape) -> &'static str {
    if shape == Shape::Responses { "input_text" } else { "text" }
}

/// The mark in the observation of a result, and where it goes; None if there is none, or its block has one.
#[must_use]
pub fn moved(data: &[u8], outline: &Outline, result: usize) -> Option<Moved> {
    let facts = &outline.results[result];
    let pieces = &outline.pieces[facts.first_piece as usize..(facts.first_piece + facts.pieces) as usize];
    if facts.frame != Frame::Text || !may_hold_mark(data, facts.value, pieces) {
        return None;
    }
    let mark = marked_in(data, facts.value).pop()?;
    let message = &outline.messages[facts.message as usize];
    let Some(blocks) = message.shape.path().blocks else {
        return Some(Moved::Around(mark, part_type(message.shape)));
    };
    let block = block_at(data, message.span, blocks, facts.block as usize)?;
    match member(data, block, FIELD.as_bytes()) {
        None => Some(Moved::After(mark)),
        Some(own) if is_null(data, own) => Some(Moved::Over(mark, own)),
        Some(_) => None,
    }
}

/// The field of a mark, after others.
#[must_use]
pub fn next_field(mark: &[u8]) -> Vec<u8> {
    [b",\"", FIELD.as_bytes(), b"\":", mark].concat()
}

fn is_null(data: &[u8], value: Span) -> bool {
    value.of(data) == b"null"
}

fn block_at(data: &[u8], message: Span, blocks: Key, place: usize) -> Option<Span> {
    elements(data, member(data, message, blocks.name().as_bytes())?)?.get(place).copied()
}

/// False only if a value with these texts has no mark: only what is between the texts is searched, which mostly is short.
fn may_hold_mark(data: &[u8], value: Span, texts: &[Span]) -> bool {
    if data[value.start] != b'[' {
        return false;
    }
    let starts = core::iter::once(value.start).chain(texts.iter().map(|text| text.end));
    let ends = texts.iter().map(|text| text.start).chain([value.end]);
    starts.zip(ends).any(|(start, end)| {
        let between = &data[start..end];
        // A key may be written with escapes.
        memchr::memchr(b'\\', between).is_some() || memchr::memmem::find(between, FIELD.as_bytes()).is_some()
    })
}

/// A block that has marks: its own, or those of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    /// Its message.
    pub message: usize,
    /// Its place in the content.
    pub block: usize,
    /// How many marks it has.
    pub count: usize,
}

/// The marks of a request.
#[derive(Debug, Default)]
pub struct Marks {
    /// The blocks of messages that have some, in order.
    pub blocks: Vec<Marked>,
    /// Marks outside of messages, those on tools included.
    pub elsewhere: usize,
    /// Marks on tools, where the system prompt has one as well, which covers them.
    pub on_tools: usize,
}

/// What a plan changes about marks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// Blocks that get a mark, in order: message, place, and the marked block whose mark is copied.
    pub added: Vec<(usize, usize, usize)>,
    /// Marked blocks that lose theirs.
    pub removed: Vec<usize>,
    /// Whether tools lose theirs.
    pub clears_tools: bool,
}

/// Changes of the input that write marks, in order; and the blocks that lose theirs.
#[derive(Debug, Default)]
pub struct MarkEdits {
    /// A span of the input and what replaces it; none of them in an observation that is replaced.
    pub edits: Vec<(Span, Vec<u8>)>,
    /// Message and place of blocks that lose their marks.
    pub cleared: Vec<(usize, usize)>,
}

impl Marks {
    /// The marks of serialized input. A list of messages is reckoned to have `elsewhere` marks around it.
    #[must_use]
    pub fn of(data: &[u8], outline: &Outline, elsewhere: usize) -> Self {
        let mut marks = Marks { elsewhere, ..Marks::default() };
        let (mut at, field) = (0, memchr::memmem::Finder::new(FIELD));
        for between in between_texts(data, outline) {
            at = at.max(between.start);
            while let Some(found) = data.get(at..between.end).and_then(|bytes| field.find(bytes)) {
                let message = outline.messages.partition_point(|message| message.span.end <= at + found);
                let span = outline.messages.get(message).map(|message| message.span);
                at = match span {
                    None => data.len(),
                    Some(span) if at + found < span.start => span.start,
                    Some(span) => {
                        marks.add_message(data, span, message);
                        span.end
                    }
                };
            }
        }
        let is_body = outline.array_start > 0 && data.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        if is_body {
            let (tools, system) = (around(data, outline, b"tools"), around(data, outline, b"system"));
            let count = |value: Option<Span>| value.map_or(0, |list| marked_in(data, list).len());
            let own = around(data, outline, FIELD.as_bytes()).filter(|mark| !is_null(data, *mark));
            marks.elsewhere = count(tools) + count(system) + usize::from(own.is_some());
            marks.on_tools = if count(system) > 0 { count(tools) } else { 0 };
        }
        marks
    }

    fn add_message(&mut self, data: &[u8], span: Span, message: usize) {
        let Some(content) = member(data, span, b"content").filter(|content| data[content.start] == b'[') else {
            return;
        };
        for (block, span) in elements(data, content).unwrap_or_default().into_iter().enumerate() {
            let count = marks_in(data, span).len();
            if count > 0 {
                self.blocks.push(Marked { message, block, count });
            }
        }
    }

    /// The changes of the input that these pins are.
    #[must_use]
    pub fn edits(
        &self,
        data: &[u8],
        outline: &Outline,
        pins: &Pins,
        is_masked: impl Fn(usize, usize) -> bool,
    ) -> MarkEdits {
        let block_of =
            |message: usize, block: usize| block_at(data, outline.messages[message].span, Key::Content, block);
        let mut edits = vec![];
        for (message, block, source) in &pins.added {
            let source = self.blocks[*source];
            let mark = block_of(source.message, source.block).and_then(|block| marks_in(data, block).last().copied());
            let (Some(block), Some(mark)) = (block_of(*message, *block), mark) else { continue };
            let mark = mark.of(data);
            edits.push(match member(data, block, FIELD.as_bytes()) {
                Some(null) => (null, mark.to_vec()),
                None => (Span { start: block.end - 1, end: block.end - 1 }, next_field(mark)),
            });
        }
        let removed = pins.removed.iter().map(|one| self.blocks[*one]);
        for Marked { message, block: place, .. } in removed.clone() {
            let Some(block) = block_of(message, place) else { continue };
            let own = member(data, block, FIELD.as_bytes());
            let nested = if is_masked(message, place) { vec![] } else { marked_in(data, parts_of(data, block)) };
            edits.extend(nested.into_iter().chain(own).map(|mark| (field_around(data, mark), vec![])));
        }
        if pins.clears_tools
            && let Some(tools) = around(data, outline, b"tools")
        {
            edits.extend(marked_in(data, tools).into_iter().map(|mark| (field_around(data, mark), vec![])));
        }
        edits.sort_unstable_by_key(|(span, _)| span.start);
        MarkEdits { edits, cleared: removed.map(|one| (one.message, one.block)).collect() }
    }
}

/// The input without its texts, which are most of it.
fn between_texts<'a>(data: &'a [u8], outline: &'a Outline) -> impl Iterator<Item = Span> + 'a {
    let is_in_order = outline.pieces.windows(2).all(|pair| pair[0].end <= pair[1].start);
    let texts = if is_in_order { &outline.pieces[..] } else { &[] };
    let starts = core::iter::once(0).chain(texts.iter().map(|text| text.end));
    let ends = texts.iter().map(|text| text.start).chain([data.len()]);
    starts.zip(ends).map(|(start, end)| Span { start, end })
}

/// The value of a field of the request body around the messages.
fn around(data: &[u8], outline: &Outline, field: &[u8]) -> Option<Span> {
    let end = outline.messages.last().map(|last| last.span.end);
    member_around(data, field, (outline.array_start, end.unwrap_or(outline.array_start)))
}

/// The values of all marks of a block, the newest last: those of its parts, then its own.
fn marks_in(data: &[u8], block: Span) -> Vec<Span> {
    if data[block.start] != b'{' {
        return vec![];
    }
    let own = member(data, block, FIELD.as_bytes()).filter(|mark| !is_null(data, *mark));
    marked_in(data, parts_of(data, block)).into_iter().chain(own).collect()
}

/// The content of a block that is a result; empty for others.
fn parts_of(data: &[u8], block: Span) -> Span {
    let is_result = member(data, block, b"type").is_some_and(|kind| kind.of(data) == b"\"tool_result\"");
    let content = if is_result { member(data, block, b"content") } else { None };
    content.unwrap_or(Span { start: block.start, end: block.start })
}

/// The values of the marks on elements of a list, if it is one.
fn marked_in(data: &[u8], list: Span) -> Vec<Span> {
    let elements = elements(data, list).unwrap_or_default();
    let objects = elements.into_iter().filter(|element| data[element.start] == b'{');
    objects.filter_map(|object| member(data, object, FIELD.as_bytes())).filter(|mark| !is_null(data, *mark)).collect()
}

/// The field with this value, and a comma beside it.
fn field_around(data: &[u8], value: Span) -> Span {
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    let back = |from: usize| data[..from].iter().rposition(|byte| !is_space(byte)).unwrap_or(0);
    let colon = back(value.start);
    let quote = back(colon);
    let start = memchr::memrchr(b'"', &data[..quote]).unwrap_or(quote);
    let next = value.end + data[value.end..].iter().take_while(|byte| is_space(byte)).count();
    if data[next] == b',' {
        return Span { start, end: next + 1 };
    }
    let before = back(start);
    Span { start: if data[before] == b',' { before } else { start }, end: value.end }
}
