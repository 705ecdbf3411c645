//! Contents: their texts and images, and parts of unknown types, which count as JSON.

use super::value::{Place, RawResult, Sink, Value, part, present, word, wrong_content};
use super::words::{Besides, Keys, PartType};
use super::{CONTENT_DEPTH, Frame, Key, is_thinking, part_type, reasoning};

/// Levels of parts below a part, on which there may be cache marks.
const MARKED_LEVELS: usize = 2;
const MARK_KEYS: Keys = Keys::of(&[Key::CacheControl, Key::PromptCacheBreakpoint, Key::Content, Key::Source]);
const SOURCE_KEYS: Keys = Keys::of(&[Key::Type, Key::Content]);
/// Where binary data is in a part, and what says that it is some.
const HOLDERS: [Key; 2] = [Key::Resource, Key::Source];
const BASE64: [Key; 2] = [Key::Blob, Key::Data];
const MEDIA_TYPES: [Key; 4] = [Key::MimeType, Key::MimeTypeSnake, Key::MediaType, Key::MediaTypeSnake];
const BASE64_KEYS: Keys = Keys::of(&[
    Key::Resource,
    Key::Source,
    Key::Blob,
    Key::Data,
    Key::MimeType,
    Key::MimeTypeSnake,
    Key::MediaType,
    Key::MediaTypeSnake,
]);

/// The facts of a content besides its texts and images.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    /// The frame of its text, if it is an observation.
    pub frame: Frame,
    /// Characters of parts of unknown types: an observation with one is no text.
    pub chars: usize,
    /// Characters of parts that stay where an observation is replaced.
    pub kept: usize,
}

/// Reads a result whose observation is text, parts or null.
#[inline]
pub(super) fn observation<V: Value>(
    result: &RawResult<V>,
    keys: Keys,
    place: &Place,
    depth: usize,
    sink: &mut impl Sink<V>,
) -> Result<(), V::Stop> {
    sink.begin_observation();
    let found = texts(result.value, keys, place, depth, sink)?;
    sink.result(&RawResult { frame: found.frame, chars: found.chars, ..*result })?;
    if found.kept > 0 {
        sink.besides(Besides::Lasting); // the model may call the tools that they name
    }
    count(found.kept, sink);
    Ok(())
}

/// Counts characters that are no text and are outside of observations.
#[inline]
pub(super) fn count<V: Value>(chars: usize, sink: &mut impl Sink<V>) {
    if chars > 0 {
        sink.opaque(chars);
    }
}

/// Reads text, parts, or null.
#[inline]
pub(super) fn texts<V: Value>(
    value: Option<&V>,
    keys: Keys,
    place: &Place,
    depth: usize,
    sink: &mut impl Sink<V>,
) -> Result<Found, V::Stop> {
    let Some(value) = present(value) else { return Ok(Found::default()) };
    match value.text() {
        Some(text) => sink.text(text).map(|()| Found::default()),
        None => parts(value, keys, place, depth, sink),
    }
}

fn parts<V: Value>(
    value: &V,
    keys: Keys,
    place: &Place,
    depth: usize,
    sink: &mut impl Sink<V>,
) -> Result<Found, V::Stop> {
    let Some(parts) = value.items() else { return Err(wrong_content(value, place)) };
    let (mut chars, mut kept) = (0, 0);
    for (index, item) in parts.enumerate() {
        let object = part(&item, keys, &place.index(index))?;
        let kind = part_type::<V>(object)?;
        let unknown = text_or_image::<V>(object, kind, depth, sink)?;
        *(if kind == PartType::ToolReference { &mut kept } else { &mut chars }) += unknown;
    }
    let frame = match (chars > 0, kept > 0) {
        (false, false) => Frame::Text,
        (true, false) => Frame::Json,
        (false, true) => Frame::Beside,
        (true, true) => Frame::BesideJson,
    };
    Ok(Found { frame, chars, kept })
}

/// Reads a part that is nested this deep in its message. Returns its characters if its type is unknown.
pub(super) fn text_or_image<V: Value>(
    object: &V::Object,
    kind: PartType,
    depth: usize,
    sink: &mut impl Sink<V>,
) -> Result<usize, V::Stop> {
    if kind.besides() == Besides::Something {
        sink.besides(Besides::Something);
    }
    match kind {
        PartType::Text => {
            if let Some(text) = V::get(object, Key::Text)?.as_ref().and_then(V::text) {
                sink.text(text)?;
            }
        }
        PartType::Image => sink.image(),
        PartType::Document => return document::<V>(object, depth, sink),
        PartType::Thinking => {
            if depth == CONTENT_DEPTH {
                sink.signed();
            }
            reasoning::of_block::<V>(object, sink)?;
        }
        PartType::Other if depth == CONTENT_DEPTH && is_thinking::<V>(object)? => {
            sink.signed();
            return size_of::<V>(object, depth);
        }
        _ if holds_base64::<V>(object)? => {
            sink.besides(Besides::Something);
            sink.image();
        }
        _ => {
            sink.besides(kind.besides());
            return size_of::<V>(object, depth);
        }
    }
    Ok(0)
}

/// Whether a part of an unknown type is binary data: base64 beside its media type, in the part or in its resource or source.
fn holds_base64<V: Value>(object: &V::Object) -> Result<bool, V::Stop> {
    if V::repeated(object, BASE64_KEYS).is_some() {
        return Ok(false);
    }
    for key in HOLDERS {
        let holder = V::get(object, key)?;
        if let Some(holder) = holder.as_ref().and_then(V::object)
            && V::repeated(holder, BASE64_KEYS).is_none()
            && is_base64::<V>(holder)?
        {
            return Ok(true);
        }
    }
    is_base64::<V>(object)
}

fn is_base64<V: Value>(object: &V::Object) -> Result<bool, V::Stop> {
    let has = |keys: &[Key]| -> Result<bool, V::Stop> {
        for key in keys {
            if V::get(object, *key)?.is_some_and(|value| value.text().is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    Ok(has(&BASE64)? && has(&MEDIA_TYPES)?)
}

/// Reads a document: an image, unless its source is text, or parts, of which those that are images count as such.
#[cold]
fn document<V: Value>(object: &V::Object, depth: usize, sink: &mut impl Sink<V>) -> Result<usize, V::Stop> {
    let source = V::get(object, Key::Source)?;
    let Some(source) = source.as_ref().and_then(V::object) else {
        if V::get(object, Key::Document)?.is_some_and(|own| own.object().is_some()) {
            return size_of::<V>(object, depth); // Cohere's, whose data is text
        }
        sink.image();
        return Ok(0);
    };
    let is_text = |kind: &[u8]| kind == b"text" || kind == b"content";
    if V::repeated(object, MARK_KEYS).is_some() || V::repeated(source, SOURCE_KEYS).is_some() {
        return size_of::<V>(object, depth);
    }
    if !word(V::get(source, Key::Type)?.as_ref(), is_text) {
        sink.image();
        return Ok(0);
    }
    let mut chars = size_of::<V>(object, depth)?;
    for item in V::get(source, Key::Content)?.iter().filter_map(V::items).flatten() {
        if let Some(part) = item.object()
            && part_type::<V>(part)? == PartType::Image
        {
            sink.image();
            chars -= size_of::<V>(part, depth)?;
        }
    }
    Ok(chars)
}

/// Counts an object as JSON, without its cache marks: they move while the history stays.
pub(super) fn size_of<V: Value>(object: &V::Object, depth: usize) -> Result<usize, V::Stop> {
    Ok(V::object_size(object, depth)?.saturating_sub(mark_chars::<V>(object, MARKED_LEVELS)?))
}

/// Characters of a member as JSON, with a comma.
pub(super) fn member_chars<V: Value>(key: Key, value: &V) -> Result<usize, V::Stop> {
    let quotes = if value.text().is_some() { 4 } else { 2 };
    Ok(key.name().len() + quotes + ":,".len() + value.size(0)?)
}

/// Characters of the cache marks of an object, and of its parts for so many levels; of repeated keys none is one.
fn mark_chars<V: Value>(object: &V::Object, levels: usize) -> Result<usize, V::Stop> {
    if V::repeated(object, MARK_KEYS).is_some() {
        return Ok(0);
    }
    let mut chars = 0;
    for key in [Key::CacheControl, Key::PromptCacheBreakpoint] {
        chars += V::get(object, key)?.map_or(Ok(0), |mark| member_chars(key, &mark))?;
    }
    if levels == 0 {
        return Ok(chars);
    }
    let source = V::get(object, Key::Source)?;
    let source = source.as_ref().and_then(V::object).filter(|source| V::repeated(source, SOURCE_KEYS).is_none());
    let nested = source.map_or(Ok(None), |source| V::get(source, Key::Content))?;
    for item in [V::get(object, Key::Content)?, nested].iter().flatten().filter_map(V::items).flatten() {
        if let Some(part) = item.object() {
            chars += mark_chars::<V>(part, levels - 1)?;
        }
    }
    Ok(chars)
}
