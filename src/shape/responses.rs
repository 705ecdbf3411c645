//! Items of `OpenAI`'s Responses: calls and outputs are identified by the end of their `type`.

use super::value::{Place, RawCall, RawResult, Sink, Value, get_present, object, part, present};
use super::words::{ItemType, PartType};
use super::{CONTENT_DEPTH, Key, PART_KEYS, Path, RawMessage, observation, part_type};

pub(super) const PATH: Path = Path { blocks: None, fields: &[&[Key::Output]] };

pub(super) fn read<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    match message.item {
        ItemType::Call => {
            let Some(id) = get_present::<V>(message.object, Key::CallId)? else { return Ok(false) };
            message.content(sink)?;
            let mut arguments = None;
            for key in [Key::Arguments, Key::Input, Key::Action] {
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
        ItemType::CallOutput => {
            message.content(sink)?;
            let (id, value) = (V::get(message.object, Key::CallId)?, V::get(message.object, Key::Output)?);
            let result = RawResult::of(id.as_ref(), value.as_ref(), 0, message.is_error);
            let place = Place::of(Key::Output);
            match present(value.as_ref()) {
                Some(output) if is_opaque(output, &place)? => {
                    object(Some(output), &place)?;
                    sink.begin_observation();
                    sink.result(&result)?;
                    count(output, sink)?;
                }
                _ => observation(&result, PART_KEYS, &place, CONTENT_DEPTH, sink)?,
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Whether an output is of an unknown form, which no placeholder may replace: no text, and no list of parts with types.
fn is_opaque<V: Value>(output: &V, place: &Place) -> Result<bool, V::Stop> {
    let Some(parts) = output.items() else { return Ok(output.text().is_none()) };
    let mut is_opaque = false;
    for (index, item) in parts.enumerate() {
        is_opaque |= V::get(part(&item, PART_KEYS, &place.index(index))?, Key::Type)?.is_none();
    }
    Ok(is_opaque)
}

#[cold]
fn count<V: Value>(output: &V, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    match output.object() {
        Some(object) if part_type::<V>(object)? == PartType::Image => sink.image(),
        _ => sink.opaque(output.size(1)?),
    }
    Ok(())
}
