//! Cache marks: the `cache_control` of a block or of a part, or its `prompt_cache_breakpoint`, after which a provider writes an entry of its
//! prompt cache. Both move; only the first is written by us, and counted.
//!
//! A mark inside of an observation moves when that is replaced: to the block of its result; where the message itself is the
//! result, to the one part that has the new text. So no mark is lost.

use crate::outline::{Outline, Span};
use crate::scan::{elements, field, is_body, member, text};
use crate::shape::{Key, REFERENCE};

/// The field of a mark.
pub(crate) const FIELD: &str = "cache_control";

/// All names of the field of a mark.
pub(crate) const FIELDS: [&str; 2] = ["prompt_cache_breakpoint", FIELD];

/// How deep parts of a block may have marks: a result has documents, and these have texts.
pub(crate) const LEVELS: usize = 2;

/// A mark in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The name of its field.
    pub field: &'static str,
    pub value: Span,
}

/// The new place of a mark whose observation is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// After the observation, as a new field of its block.
    After(Mark),
    /// Over the null that the block has in its place.
    Over(Mark, Span),
    /// Around the new text, in its part.
    Around(Mark),
}

/// The mark of a part, null or not: of both names that which moves.
pub(crate) fn mark_of(data: &[u8], part: Span) -> Option<Mark> {
    let mark = |field: &&'static str| Some(Mark { field, value: member(data, part, field.as_bytes())? });
    FIELDS.iter().rev().find_map(mark)
}

/// The mark in the observation of a result, and where it goes; None if there is none, or its block has one.
pub(crate) fn moved(data: &[u8], outline: &Outline, result: usize) -> Option<Moved> {
    let facts = &outline.results[result];
    let is_list = facts.frame.may_hold_marks() && data[facts.value.start] == b'[';
    if is_list { moved_from_list(data, outline, result) } else { None }
}

fn moved_from_list(data: &[u8], outline: &Outline, result: usize) -> Option<Moved> {
    let facts = &outline.results[result];
    if !may_hold_mark(data, facts.value, outline.pieces_of_result(result)) {
        return None;
    }
    let mark = marks_on(data, facts.value, LEVELS - 1, &FIELDS).pop()?;
    let message = &outline.messages[facts.message as usize];
    let Some(blocks) = message.shape.path().blocks else {
        return Some(Moved::Around(mark));
    };
    let block = block_at(data, outline.spans[facts.message as usize], blocks, facts.block as usize)?;
    match member(data, block, mark.field.as_bytes()) {
        None => Some(Moved::After(mark)),
        Some(own) if is_null(data, own) => Some(Moved::Over(mark, own)),
        Some(_) => None,
    }
}

impl Mark {
    /// The same field, after others.
    pub(crate) fn next_field(self, data: &[u8]) -> Vec<u8> {
        next_field(self.field, self.value.of(data))
    }
}

fn next_field(field: &str, value: &[u8]) -> Vec<u8> {
    [b",\"", field.as_bytes(), b"\":", value].concat()
}

fn is_null(data: &[u8], value: Span) -> bool {
    value.of(data) == b"null"
}

fn block_at(data: &[u8], message: Span, blocks: Key, place: usize) -> Option<Span> {
    elements(data, member(data, message, blocks.name().as_bytes())?)?.get(place).copied()
}

/// False only if a value with these texts has no mark: only what is between the texts is searched, which mostly is short.
fn may_hold_mark(data: &[u8], value: Span, texts: &[Span]) -> bool {
    let is_in_order = texts.windows(2).all(|pair| pair[0].end <= pair[1].start);
    let texts = if is_in_order { texts } else { &[] };
    let starts = core::iter::once(value.start).chain(texts.iter().map(|text| text.end));
    let ends = texts.iter().map(|text| text.start).chain([value.end]);
    starts.zip(ends).any(|(start, end)| may_name_mark(&data[start..end]))
}

/// The messages that may have marks, in order.
pub(crate) fn may_be_marked(data: &[u8], outline: &Outline) -> impl DoubleEndedIterator<Item = usize> {
    let messages = outline.uncommon.iter().map(|message| *message as usize);
    messages.filter(|one| may_hold_mark(data, outline.spans[*one], &outline.pieces[outline.pieces_of(*one)]))
}

/// False only if no key in these bytes is that of a mark, whose letters may be written as escapes.
fn may_name_mark(bytes: &[u8]) -> bool {
    let is_letter = |at: usize| bytes[at..].starts_with(b"\\u00");
    memchr::memmem::find(bytes, b"cache_").is_some() || memchr::memchr_iter(b'\\', bytes).any(is_letter)
}

/// A block that has marks: its own, or those of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marked {
    pub message: usize,
    /// The place in the content.
    pub block: usize,
    /// How many marks it has; 0: the mark of the body is for it.
    pub count: usize,
    /// Whether it keeps them in any case.
    pub stays: bool,
}

/// The marks of a request.
#[derive(Debug, Default, Clone)]
pub(crate) struct Marks {
    /// The blocks of messages that have some, in order.
    pub blocks: Vec<Marked>,
    /// Marks outside of messages, those on tools included.
    pub elsewhere: usize,
    /// Marks on tools, where the system prompt has one as well, which covers them.
    pub on_tools: usize,
}

/// The changes that a plan makes to marks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pins {
    /// Blocks that get a mark, in order: message, place, and the marked block whose oldest mark is copied.
    pub added: Vec<(usize, usize, usize)>,
    /// The marked block that loses its marks.
    pub removed: Option<usize>,
    pub clears_tools: bool,
}

/// Changes of the input that write marks, in order; and the blocks that lose theirs.
#[derive(Debug, Default)]
pub(crate) struct MarkEdits {
    /// A span of the input and what replaces it; none of them in an observation that is replaced.
    pub edits: Vec<(Span, Vec<u8>)>,
    /// Message and place of blocks that lose their marks.
    pub cleared: Vec<(usize, usize)>,
}

impl Marks {
    /// The marks of serialized input. A list of messages is assumed to have `elsewhere` marks around it.
    pub(crate) fn of(data: &[u8], outline: &Outline, elsewhere: usize) -> Self {
        let mut marks = Marks { elsewhere, ..Marks::default() };
        for message in may_be_marked(data, outline) {
            marks.add_message(data, outline.spans[message], message);
        }
        if is_body(data, outline) {
            let (tools, system) = (field(data, outline, "tools"), field(data, outline, "system"));
            let count = |value: Option<Span>| value.map_or(0, |list| marked_in(data, list, 0).len());
            let own = field(data, outline, FIELD).filter(|mark| !is_null(data, *mark));
            marks.elsewhere = count(tools) + count(system) + usize::from(own.is_some());
            marks.on_tools = if count(system) > 0 { count(tools) } else { 0 };
            marks = if own.is_some() { marks.with_automatic(outline) } else { marks };
        }
        marks
    }

    /// Those of a request whose body has a mark for the last block, besides the one that the block may have.
    pub(crate) fn with_automatic(mut self, outline: &Outline) -> Self {
        let Some(message) = outline.messages.len().checked_sub(1) else { return self };
        let block = (outline.messages[message].blocks as usize).saturating_sub(1);
        if self.blocks.last().is_none_or(|newest| (newest.message, newest.block) != (message, block)) {
            self.blocks.push(Marked { message, block, count: 0, stays: true });
        }
        self
    }

    fn add_message(&mut self, data: &[u8], span: Span, message: usize) {
        let Some(content) = member(data, span, b"content").filter(|content| data[content.start] == b'[') else {
            return;
        };
        for (block, span) in elements(data, content).unwrap_or_default().into_iter().enumerate() {
            let count = marks_in(data, span).len();
            if count > 0 {
                self.blocks.push(Marked { message, block, count, stays: false });
            }
        }
    }

    /// The changes of the input that these pins are.
    pub(crate) fn edits(
        &self,
        data: &[u8],
        outline: &Outline,
        pins: &Pins,
        is_masked: impl Fn(usize, usize) -> bool,
    ) -> MarkEdits {
        let block_of = |message: usize, block: usize| block_at(data, outline.spans[message], Key::Content, block);
        let mut edits = vec![];
        for (message, block, source) in &pins.added {
            let source = self.blocks[*source];
            let mark = if source.count == 0 {
                field(data, outline, FIELD)
            } else {
                block_of(source.message, source.block).and_then(|block| marks_in(data, block).first().copied())
            };
            let (Some(block), Some(mark)) = (block_of(*message, *block), mark) else { continue };
            edits.push(added(data, block, mark.of(data)));
        }
        let removed = pins.removed.iter().map(|one| self.blocks[*one]);
        for Marked { message, block: place, .. } in removed.clone() {
            let Some(block) = block_of(message, place) else { continue };
            let own = member(data, block, FIELD.as_bytes());
            let nested =
                if is_masked(message, place) { vec![] } else { marked_in(data, parts_of(data, block), LEVELS - 1) };
            edits.extend(nested.into_iter().chain(own).map(|mark| (field_around(data, mark), vec![])));
        }
        if pins.clears_tools
            && let Some(tools) = field(data, outline, "tools")
        {
            edits.extend(marked_in(data, tools, 0).into_iter().map(|mark| (field_around(data, mark), vec![])));
        }
        edits.sort_unstable_by_key(|(span, _)| span.start);
        MarkEdits { edits, cleared: removed.map(|one| (one.message, one.block)).collect() }
    }
}

/// The parts of a list that name tools, each without its newest mark: one in an observation that is replaced has moved.
pub(crate) fn references(data: &[u8], list: Span) -> Vec<Vec<u8>> {
    let is_reference = |part: &Span| {
        let kind = member(data, *part, b"type").and_then(|kind| text(kind.of(data)));
        kind.as_deref() == Some(REFERENCE.as_bytes())
    };
    let unmarked = |part: Span| {
        let mark = marks_within(data, part, 0, &FIELDS).pop();
        let gone = mark.map_or(Span { start: part.end, end: part.end }, |mark| field_around(data, mark.value));
        [&data[part.start..gone.start], &data[gone.end..part.end]].concat()
    };
    elements(data, list).unwrap_or_default().into_iter().filter(is_reference).map(unmarked).collect()
}

/// The block of a message that has its newest mark, and the value of that; None if the message has none.
pub(crate) fn newest(data: &[u8], message: Span) -> Option<(usize, Span)> {
    if !may_name_mark(message.of(data)) {
        return None;
    }
    let blocks = elements(data, member(data, message, b"content")?)?;
    let marks = |(place, block): (usize, &Span)| Some((place, *marks_in(data, *block).last()?));
    blocks.iter().enumerate().rev().find_map(marks)
}

/// The value of the newest mark of a request body: of its own, which is for its end, else the last one of its messages, of its
/// system prompt, or of its tools.
pub(crate) fn newest_in_body(data: &[u8], outline: &Outline) -> Option<Span> {
    let in_list = |name: &str| marked_in(data, field(data, outline, name)?, 0).pop();
    let in_message = |message: usize| newest(data, outline.spans[message]).map(|(_, mark)| mark);
    let own = field(data, outline, FIELD).filter(|mark| !is_null(data, *mark));
    own.or_else(|| may_be_marked(data, outline).rev().find_map(in_message))
        .or_else(|| in_list("system"))
        .or_else(|| in_list("tools"))
}

/// Whether a request has its messages cached: one of them has a mark, or the body has one, for its end.
pub(crate) fn caches_messages(data: &[u8], outline: &Outline) -> bool {
    let own = field(data, outline, FIELD).filter(|mark| !is_null(data, *mark));
    own.is_some() || may_be_marked(data, outline).rev().any(|message| newest(data, outline.spans[message]).is_some())
}

/// The last block of a message that a provider takes a mark on: no thinking, and no blank text.
pub(crate) fn last_markable(message: &[u8]) -> Option<usize> {
    let content = member(message, Span { start: 0, end: message.len() }, b"content")?;
    let is = |object: Span, key: &str, is: &dyn Fn(&[u8]) -> bool| {
        member(message, object, key.as_bytes()).is_some_and(|value| is(value.of(message)))
    };
    let is_blank = |value: &[u8]| text(value).is_some_and(|text| text.trim_ascii().is_empty());
    if message[content.start] == b'"' {
        return (!is_blank(content.of(message))).then_some(0);
    }
    let takes_mark = |block: &Span| {
        let is_thinking = |kind: &[u8]| kind.ends_with(b"thinking\"");
        message[block.start] == b'{'
            && !is(*block, "type", &is_thinking)
            && !(is(*block, "type", &|kind| kind == b"\"text\"") && is(*block, "text", &is_blank))
    };
    elements(message, content)?.iter().rposition(takes_mark)
}

/// A mark that a message is to have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedMark<'a> {
    pub block: usize,
    pub value: &'a [u8],
    /// Whether the newest mark that the block has stays instead.
    pub is_own: bool,
}

/// A message with these marks only. A text that gets one becomes a part.
pub(crate) fn remarked(message: &[u8], marks: &[WantedMark]) -> Vec<u8> {
    let whole = Span { start: 0, end: message.len() };
    let mut edits = vec![];
    match member(message, whole, b"content") {
        Some(content) if message[content.start] == b'[' => {
            for (place, block) in elements(message, content).unwrap_or_default().into_iter().enumerate() {
                let wanted = marks.iter().find(|wanted| wanted.block == place);
                let mut own = marks_in(message, block);
                if let Some(wanted) = wanted
                    && (!wanted.is_own || own.pop().is_none())
                {
                    edits.push(added(message, block, wanted.value));
                }
                edits.extend(own.into_iter().map(|mark| (field_around(message, mark), vec![])));
            }
        }
        Some(content) if message[content.start] == b'"' => {
            let part = |mark: &WantedMark| {
                let (text, end) = (content.of(message), [&next_field(FIELD, mark.value)[..], b"}]"].concat());
                (content, [b"[{\"type\":\"text\",\"text\":", text, &end].concat())
            };
            edits.extend(marks.first().map(part));
        }
        _ => {}
    }
    edits.sort_unstable_by_key(|(span, _)| span.start);
    let (mut out, mut at) = (Vec::with_capacity(message.len()), 0);
    for (span, text) in edits {
        out.extend_from_slice(&message[at..span.start]);
        out.extend_from_slice(&text);
        at = span.end;
    }
    out.extend_from_slice(&message[at..]);
    out
}

/// The change that gives a block a mark.
fn added(data: &[u8], block: Span, mark: &[u8]) -> (Span, Vec<u8>) {
    let end = Span { start: block.end - 1, end: block.end - 1 };
    let null = member(data, block, FIELD.as_bytes()).filter(|own| is_null(data, *own));
    null.map_or((end, next_field(FIELD, mark)), |null| (null, mark.to_vec()))
}

/// The values of all marks of a block, the newest last: those of its parts, then its own.
fn marks_in(data: &[u8], block: Span) -> Vec<Span> {
    marks_within(data, block, LEVELS, &[FIELD]).into_iter().map(|mark| mark.value).collect()
}

fn marks_within(data: &[u8], block: Span, levels: usize, fields: &[&'static str]) -> Vec<Mark> {
    if data[block.start] != b'{' {
        return vec![];
    }
    let mark = |field: &&'static str| Some(Mark { field, value: member(data, block, field.as_bytes())? });
    let own = fields.iter().filter_map(mark).filter(|mark| !is_null(data, mark.value));
    let inner = if levels > 0 { marks_on(data, parts_of(data, block), levels - 1, fields) } else { vec![] };
    inner.into_iter().chain(own).collect()
}

/// The parts of a block that may have marks: the content of a result or a document; empty for others.
fn parts_of(data: &[u8], block: Span) -> Span {
    let content = match member(data, block, b"type").map_or(&b""[..], |kind| kind.of(data)) {
        b"\"tool_result\"" | b"\"mcp_tool_result\"" | b"\"search_result\"" => member(data, block, b"content"),
        b"\"document\"" => member(data, block, b"source")
            .filter(|source| data[source.start] == b'{')
            .and_then(|source| member(data, source, b"content")),
        _ => None,
    };
    content.unwrap_or(Span { start: block.start, end: block.start })
}

/// The values of the marks on elements of a list, if it is one, and on their parts for so many levels.
fn marked_in(data: &[u8], list: Span, levels: usize) -> Vec<Span> {
    marks_on(data, list, levels, &[FIELD]).into_iter().map(|mark| mark.value).collect()
}

/// The marks of these names on elements of a list, if it is one, and on their parts for so many levels.
fn marks_on(data: &[u8], list: Span, levels: usize, fields: &[&'static str]) -> Vec<Mark> {
    let elements = elements(data, list).unwrap_or_default();
    elements.into_iter().flat_map(|element| marks_within(data, element, levels, fields)).collect()
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
