//! Gemini's contents: calls and results are parts. Fields are read in the spelling of the API and of its Python library.

use super::parts::size_of;
use super::signed::is_thought;
use super::value::{
    NameUse, Place, RawCall, RawResult, Sink, Value, get_present, object, part, refuse_repeated, wrong_content,
};
use super::words::{Besides, Keys};
use super::{Frame, Key, Path, RawMessage, reasoning};

const CALL: &[Key] = &[Key::FunctionCall, Key::FunctionCallSnake];
const RESULT: &[Key] = &[Key::FunctionResponse, Key::FunctionResponseSnake];
const MEDIA: &[Key] = &[Key::InlineData, Key::InlineDataSnake, Key::FileData, Key::FileDataSnake];

/// Calls of tools that the provider runs, and what they gave.
const OF_PROVIDER: &[Key] = &[
    Key::ToolCall,
    Key::ToolCallSnake,
    Key::ToolResponse,
    Key::ToolResponseSnake,
    Key::ExecutableCode,
    Key::ExecutableCodeSnake,
    Key::CodeExecutionResult,
    Key::CodeExecutionResultSnake,
];

const PART_KEYS: Keys = Keys::of(&[
    Key::Text,
    Key::FunctionCall,
    Key::FunctionCallSnake,
    Key::FunctionResponse,
    Key::FunctionResponseSnake,
]);
const CALL_KEYS: Keys = Keys::of(&[Key::Id, Key::Name, Key::Args]);
const RESULT_KEYS: Keys = Keys::of(&[Key::Id, Key::Name, Key::Response]);

/// Nesting of a part: message, parts.
const PART_DEPTH: usize = 2;
/// Nesting of the arguments of a call and of a response: message, parts, part, field.
const DEPTH: usize = 4;

pub(super) const PATH: Path = Path { blocks: Some(Key::Parts), fields: &[RESULT, &[Key::Response]] };

#[inline(never)]
pub(super) fn read<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    if message.content.is_some() {
        return Ok(false);
    }
    let Some(value) = get_present::<V>(message.object, Key::Parts)? else { return Ok(false) };
    let parts = Place::of(Key::Parts);
    let Some(items) = value.items() else { return Err(wrong_content(&value, &parts)) };
    message.blocks.set(value.length());
    for (block, item) in items.enumerate() {
        let place = parts.index(block);
        let fields = part(&item, PART_KEYS, &place)?;
        if let Some((field, value)) = first::<V>(fields, CALL)?
            && let Some(call) = object(Some(&value), &place.key(field))?
        {
            reasoning::sealed::<V>(fields, sink)?;
            refuse_repeated::<V>(call, CALL_KEYS, Some(&place.key(field)))?;
            let (id, name) = (V::get(call, Key::Id)?, V::get(call, Key::Name)?);
            let arguments = get_present::<V>(call, Key::Args)?;
            let (id, name, arguments) = (id.as_ref(), name.as_ref(), arguments.as_ref());
            sink.call(&RawCall { id, name, arguments, block, depth: DEPTH })?;
        } else if let Some((field, value)) = first::<V>(fields, RESULT)?
            && let Some(result) = object(Some(&value), &place.key(field))?
        {
            let place = place.key(field);
            refuse_repeated::<V>(result, RESULT_KEYS, Some(&place))?;
            media_beside::<V>(result, sink)?;
            let (id, name) = (V::get(result, Key::Id)?, V::get(result, Key::Name)?);
            let response = get_present::<V>(result, Key::Response)?;
            let name_use = if name.is_some() { NameUse::AsId } else { NameUse::BesideId };
            let result = RawResult::of(id.as_ref(), response.as_ref(), block, false);
            read_response(&RawResult { name: name.as_ref(), name_use, ..result }, &place, sink)?;
        } else if first::<V>(fields, MEDIA)?.is_some() {
            sink.besides(Besides::Something);
            sink.image();
        } else if V::get(fields, Key::Thought)?.is_some_and(|thought| thought.is_true()) {
            if is_thought::<V>(fields)? {
                sink.signed();
            }
            reasoning::of_block::<V>(fields, sink)?;
        } else {
            match V::get(fields, Key::Text)?.as_ref().and_then(V::text) {
                Some(text) => {
                    message.note_users(sink);
                    sink.text(text)?;
                    reasoning::sealed::<V>(fields, sink)?;
                }
                None => other::<V>(fields, sink)?,
            }
        }
    }
    Ok(true)
}

/// Counts a part of another kind: what the provider runs, or what nobody knows.
#[cold]
fn other<V: Value>(part: &V::Object, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    let is_of_provider = first::<V>(part, OF_PROVIDER)?.is_some();
    sink.besides(if is_of_provider { Besides::Something } else { Besides::Lasting });
    sink.opaque(size_of::<V>(part, PART_DEPTH)?);
    Ok(())
}

/// The observation is the only string of the response, or the whole response.
fn read_response<V: Value>(result: &RawResult<V>, place: &Place, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    sink.begin_observation();
    let Some(response) = result.value else { return sink.result(result) };
    let place = place.key(Key::Response);
    let Some(object) = response.object() else { return Err(wrong_content(response, &place)) };
    let only = V::only(object);
    let is_error = only.is_some() && V::get(object, Key::Error)?.is_some();
    if let Some(value) = &only
        && let Some(text) = value.text()
    {
        sink.text(text)?;
        return sink.result(&RawResult { value: Some(value), is_error, frame: Frame::Only, ..*result });
    }
    let chars = response.size(DEPTH)?;
    sink.result(&RawResult { is_error, frame: Frame::Output, chars, ..*result })
}

/// Counts the media that a response has beside its JSON, and that stay where the JSON is replaced.
fn media_beside<V: Value>(result: &V::Object, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    let is_repeated = V::repeated(result, Keys::of(&[Key::Parts])).is_some();
    let parts = if is_repeated { None } else { V::get(result, Key::Parts)? };
    for part in parts.as_ref().and_then(V::items).into_iter().flatten() {
        if let Some(part) = part.object()
            && first::<V>(part, MEDIA)?.is_some()
        {
            sink.image();
        }
    }
    Ok(())
}

fn first<V: Value>(object: &V::Object, keys: &[Key]) -> Result<Option<(Key, V)>, V::Stop> {
    for key in keys {
        if let Some(value) = get_present::<V>(object, *key)? {
            return Ok(Some((*key, value)));
        }
    }
    Ok(None)
}
