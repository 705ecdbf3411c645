//! Bedrock's Converse: calls and results are blocks of the content, which have no `type`.

use super::parts::{count, size_of};
use super::value::{
    Place, RawCall, RawResult, Sink, Value, get_present, object, part, refuse_repeated, word, wrong_content,
};
use super::words::{Besides, Keys};
use super::{Frame, Key, Path, RawMessage, is_thinking, reasoning};
use crate::text::count_chars;

const MEDIA: [Key; 4] = [Key::Image, Key::Document, Key::Video, Key::Audio];
const BLOCK_KEYS: Keys = Keys::of(&[Key::Text, Key::ToolUse, Key::ToolResult]);
const CALL_KEYS: Keys = Keys::of(&[Key::ToolUseIdCamel, Key::Name, Key::Input, Key::Type]);
const RESULT_KEYS: Keys = Keys::of(&[Key::ToolUseIdCamel, Key::Content, Key::Status, Key::Type]);
const PART_KEYS: Keys = Keys::of(&[Key::Text, Key::Json]);
const SOURCE_KEYS: Keys = Keys::of(&[Key::Document, Key::Source, Key::Text, Key::Content]);

/// Nesting of the arguments of a call: message, content, block, field.
const CALL_DEPTH: usize = 4;
/// Nesting of a block: message, content.
const BLOCK_DEPTH: usize = 2;
/// Nesting of a part of a result: message, content, block, field, content.
const PART_DEPTH: usize = 5;
/// Nesting of the JSON of a result: as above, then the part.
const JSON_DEPTH: usize = 6;

pub(super) const PATH: Path = Path { blocks: Some(Key::Content), fields: &[&[Key::ToolResult], &[Key::Content]] };

#[inline(never)]
pub(super) fn read<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    let Some(blocks) = message.content.as_ref().and_then(V::items) else { return Ok(false) };
    for block in blocks {
        let Some(object) = block.object() else { continue };
        if V::get(object, Key::Type)?.is_some() {
            return Ok(false);
        }
        for key in [Key::Text, Key::ToolUse, Key::ToolResult].into_iter().chain(MEDIA) {
            if get_present::<V>(object, key)?.is_some() {
                read_blocks(message, sink)?;
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn read_blocks<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    let content = Place::of(Key::Content);
    for (block, item) in message.content.as_ref().and_then(V::items).into_iter().flatten().enumerate() {
        let place = content.index(block);
        let fields = part(&item, BLOCK_KEYS, &place)?;
        if let Some(call) = object(V::get(fields, Key::ToolUse)?.as_ref(), &place.key(Key::ToolUse))? {
            refuse_repeated::<V>(call, CALL_KEYS, Some(&place.key(Key::ToolUse)))?;
            let (id, name) = (V::get(call, Key::ToolUseIdCamel)?, V::get(call, Key::Name)?);
            if is_of_server::<V>(call)? {
                sink.besides(Besides::Something);
                sink.half(id.as_ref(), block, false)?;
                count(size_of::<V>(fields, BLOCK_DEPTH)?, sink);
                continue;
            }
            let arguments = get_present::<V>(call, Key::Input)?;
            let (id, name, arguments) = (id.as_ref(), name.as_ref(), arguments.as_ref());
            sink.call(&RawCall { id, name, arguments, block, depth: CALL_DEPTH })?;
        } else if let Some(result) = object(V::get(fields, Key::ToolResult)?.as_ref(), &place.key(Key::ToolResult))? {
            let place = place.key(Key::ToolResult);
            refuse_repeated::<V>(result, RESULT_KEYS, Some(&place))?;
            if is_of_server::<V>(result)? {
                sink.besides(Besides::Something);
                sink.half(V::get(result, Key::ToolUseIdCamel)?.as_ref(), block, true)?;
                count(size_of::<V>(fields, BLOCK_DEPTH)?, sink);
                continue;
            }
            read_result::<V>(result, block, &place, sink)?;
        } else {
            if is_thinking::<V>(fields)? {
                sink.signed();
            }
            if V::get(fields, Key::CachePoint)?.is_none() {
                message.note_users(sink);
            }
            count(text_or_media::<V>(fields, BLOCK_DEPTH, sink)?, sink);
        }
    }
    Ok(())
}

/// Whether the provider runs the tool: the type says so, which others need not have.
fn is_of_server<V: Value>(object: &V::Object) -> Result<bool, V::Stop> {
    let kind = V::get(object, Key::Type)?;
    let is_own = |kind: &[u8]| matches!(kind, b"tool_use" | b"tool_result");
    Ok(kind.as_ref().and_then(V::text).is_some_and(|kind| !V::read(kind, is_own)))
}

fn read_result<V: Value>(
    result: &V::Object,
    block: usize,
    place: &Place,
    sink: &mut impl Sink<V>,
) -> Result<(), V::Stop> {
    let (id, value) = (V::get(result, Key::ToolUseIdCamel)?, get_present::<V>(result, Key::Content)?);
    let is_error = word(V::get(result, Key::Status)?.as_ref(), |status| status == b"error");
    let place = place.key(Key::Content);
    sink.begin_observation();
    let (frame, chars) = match &value {
        None => (Frame::Text, 0),
        Some(value) => read_parts(value, &place, sink)?,
    };
    let result = RawResult::of(id.as_ref(), value.as_ref(), block, is_error);
    sink.result(&RawResult { frame, chars, ..result })
}

/// Reads the content of a result. Returns its frame, and its characters besides text. Content with JSON has no text.
pub(super) fn read_parts<V: Value>(
    value: &V,
    place: &Place,
    sink: &mut impl Sink<V>,
) -> Result<(Frame, usize), V::Stop> {
    if let Some(text) = value.text() {
        return sink.text(text).map(|()| (Frame::Text, 0));
    }
    let Some(parts) = value.items() else { return Err(wrong_content(value, place)) };
    let (mut chars, mut json, mut texts) = (0, false, vec![]);
    for (index, item) in parts.enumerate() {
        let object = part(&item, PART_KEYS, &place.index(index))?;
        if let Some(value) = get_present::<V>(object, Key::Json)? {
            (json, chars) = (true, chars + value.size(JSON_DEPTH)?);
        } else if V::get(object, Key::Text)?.as_ref().and_then(V::text).is_some() {
            texts.extend(V::get(object, Key::Text)?);
        } else {
            let unknown = text_or_media::<V>(object, PART_DEPTH, sink)?;
            (json, chars) = (json || unknown > 0, chars + unknown);
        }
    }
    for text in texts.iter().filter_map(V::text) {
        if json {
            chars += V::read(text, count_chars);
        } else {
            sink.text(text)?;
        }
    }
    Ok((if json { Frame::Blocks } else { Frame::TextBlocks }, chars))
}

/// Reads a block or a part. Returns its characters if its kind is unknown.
fn text_or_media<V: Value>(object: &V::Object, depth: usize, sink: &mut impl Sink<V>) -> Result<usize, V::Stop> {
    if let Some(text) = V::get(object, Key::Text)?.as_ref().and_then(V::text) {
        return sink.text(text).map(|()| 0);
    }
    for key in MEDIA {
        if let Some(media) = get_present::<V>(object, key)? {
            if key == Key::Document && is_text::<V>(object, &media)? {
                break;
            }
            sink.besides(Besides::Something);
            sink.image();
            return Ok(0);
        }
    }
    if let Some(reasoning) = V::get(object, Key::ReasoningContent)? {
        return reasoning::of_converse(&reasoning, sink).map(|()| 0);
    }
    if V::get(object, Key::CachePoint)?.is_some() {
        return Ok(0);
    }
    let is_document = V::get(object, Key::Document)?.is_some();
    sink.besides(if is_document { Besides::Something } else { Besides::Lasting });
    size_of::<V>(object, depth)
}

/// Whether the source of a document is text, or parts with text; with repeated keys it may be.
fn is_text<V: Value>(object: &V::Object, document: &V) -> Result<bool, V::Stop> {
    let Some(fields) = document.object() else { return Ok(false) };
    let source = V::get(fields, Key::Source)?;
    let Some(source) = source.as_ref().and_then(V::object) else { return Ok(false) };
    let mut is_text = [object, fields, source].iter().any(|one| V::repeated(one, SOURCE_KEYS).is_some());
    for key in [Key::Text, Key::Content] {
        is_text |= get_present::<V>(source, key)?.is_some();
    }
    Ok(is_text)
}
