//! Items of `OpenAI`'s Responses: calls and outputs are identified by the end of their `type`.

use super::parts::{count, observation, size_of};
use super::value::{Place, RawCall, RawResult, Sink, Value, get_present, object, part, present, refuse_repeated};
use super::words::{ItemType, Keys, PartType, ToolKind};
use super::{CONTENT_DEPTH, Frame, Key, PART_KEYS, Path, RawMessage, part_type};

pub(super) const PATH: Path = Path { blocks: None, fields: &[&[Key::Output]] };

const ARGUMENTS: [Key; 5] = [Key::Arguments, Key::Input, Key::Action, Key::Operation, Key::Actions];
/// The fields with the output of a shell, in the order in which they form one text.
pub(crate) const STREAMS: [Key; 2] = [Key::Stdout, Key::Stderr];
const STREAM_KEYS: Keys = Keys::of(&[Key::Type, Key::Text, Key::Stdout, Key::Stderr]);

pub(super) fn read<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    match message.item {
        ItemType::Call(_) => {
            let Some(id) = get_present::<V>(message.object, Key::CallId)? else { return Ok(false) };
            message.content(sink)?;
            let mut arguments = None;
            for key in ARGUMENTS {
                arguments = get_present::<V>(message.object, key)?;
                if arguments.is_some() {
                    break;
                }
            }
            let name = V::get(message.object, Key::Name)?;
            sink.call(&RawCall {
                id: Some(&id),
                name: name.as_ref(),
                arguments: arguments.as_ref(),
                block: 0,
                depth: 1,
            })?;
        }
        ItemType::CallOutput(_) => {
            message.content(sink)?;
            let (mut id, value) = (V::get(message.object, Key::CallId)?, V::get(message.object, Key::Output)?);
            if id.is_none() && message.item == ItemType::CallOutput(ToolKind::LocalShell) {
                refuse_repeated::<V>(message.object, Keys::of(&[Key::Id]), None)?;
                id = V::get(message.object, Key::Id)?;
            }
            let result = RawResult::of(id.as_ref(), value.as_ref(), 0, message.is_error);
            read_output(&result, sink)?;
        }
        ItemType::ToolSearchOutput => {
            let Some(id) = get_present::<V>(message.object, Key::CallId)? else { return Ok(false) };
            sink.begin_observation();
            sink.result(&RawResult::of(Some(&id), None, 0, false))?;
            count(size_of::<V>(message.object, 0)?, sink);
        }
        ItemType::ApprovalRequest => {
            refuse_repeated::<V>(message.object, Keys::of(&[Key::Id]), None)?;
            let (id, name) = (V::get(message.object, Key::Id)?, V::get(message.object, Key::Name)?);
            let arguments = get_present::<V>(message.object, Key::Arguments)?;
            let (id, name, arguments) = (id.as_ref(), name.as_ref(), arguments.as_ref());
            sink.call(&RawCall { id, name, arguments, block: 0, depth: 1 })?;
        }
        ItemType::ApprovalResponse => {
            let id = V::get(message.object, Key::ApprovalRequestId)?;
            sink.begin_observation();
            sink.result(&RawResult::of(id.as_ref(), None, 0, false))?;
            count(size_of::<V>(message.object, 0)?, sink);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn read_output<V: Value>(result: &RawResult<V>, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    let place = Place::of(Key::Output);
    match present(result.value) {
        Some(output) if are_streams(output)? => {
            sink.begin_observation();
            let chars = read_streams(output, sink)?;
            sink.result(&RawResult { frame: Frame::Streams, ..*result })?;
            count(output.size(1)? - chars, sink);
            Ok(())
        }
        Some(output) if is_opaque(output, &place)? => {
            object(Some(output), &place)?;
            sink.begin_observation();
            sink.result(result)?;
            match output.object() {
                Some(object) if part_type::<V>(object)? == PartType::Image => sink.image(),
                _ => {
                    sink.unread();
                    sink.opaque(output.size(1)?);
                }
            }
            Ok(())
        }
        _ => observation(result, PART_KEYS, &place, CONTENT_DEPTH, sink),
    }
}

/// Whether an output is a shell's: an object with such a field, or a list of such objects.
fn are_streams<V: Value>(output: &V) -> Result<bool, V::Stop> {
    if let Some(object) = output.object() {
        return has_streams::<V>(object);
    }
    let mut are_streams = output.length() > 0;
    for item in output.items().into_iter().flatten() {
        are_streams = are_streams && item.object().map_or(Ok(false), has_streams::<V>)?;
    }
    Ok(are_streams)
}

fn has_streams<V: Value>(object: &V::Object) -> Result<bool, V::Stop> {
    if V::repeated(object, STREAM_KEYS).is_some() || V::get(object, Key::Type)?.is_some() {
        return Ok(false);
    }
    let mut has_text = false;
    for key in STREAMS {
        has_text |= V::get(object, key)?.is_some_and(|value| value.text().is_some());
    }
    Ok(has_text)
}

/// Reads the output of a shell. Returns its characters.
pub(super) fn read_streams<V: Value>(output: &V, sink: &mut impl Sink<V>) -> Result<usize, V::Stop> {
    let mut chars = 0;
    let mut read = |object: &V::Object| -> Result<(), V::Stop> {
        for key in STREAMS {
            if let Some(value) = V::get(object, key)?
                && let Some(text) = value.text()
            {
                sink.text(text)?;
                chars += value.size(0)?;
            }
        }
        Ok(())
    };
    output.object().map_or(Ok(()), &mut read)?;
    for item in output.items().into_iter().flatten() {
        item.object().map_or(Ok(()), &mut read)?;
    }
    Ok(chars)
}

/// Whether an output has an unknown form, which no placeholder may replace: no text, and no list of typed parts.
fn is_opaque<V: Value>(output: &V, place: &Place) -> Result<bool, V::Stop> {
    let Some(parts) = output.items() else { return Ok(output.text().is_none()) };
    let mut is_opaque = false;
    for (index, item) in parts.enumerate() {
        is_opaque |= V::get(part(&item, PART_KEYS, &place.index(index))?, Key::Type)?.is_none();
    }
    Ok(is_opaque)
}
