//! Items of `OpenAI`'s Responses: calls and outputs are identified by the end of their `type`.

use super::value::{Place, RawCall, RawResult, Sink, Value, get_present, object};
use super::words::ItemType;
use super::{Key, PART_KEYS, Path, RawMessage, observation};

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
            let is_left_alone = value.as_ref().is_some_and(|value| value.text().is_none() && value.items().is_none());
            if is_left_alone {
                object(value.as_ref(), &Place::of(Key::Output))?;
                sink.begin_observation();
                sink.result(&result)?;
            } else {
                observation(&result, PART_KEYS, &Place::of(Key::Output), sink)?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}
