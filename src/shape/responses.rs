//! Items of `OpenAI`'s Responses: a call and its output are known by the end of their `type`.

use super::value::{Id, Place, RawCall, RawResult, Sink, Value, get_present, object};
use super::words::{ItemType, Key};
use super::{Head, PART_KEYS, Path, observation};

pub(super) const PATH: Path = Path { blocks: None, fields: &[&[Key::Output]] };

pub(super) fn read<V: Value>(head: &Head<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    match head.item {
        ItemType::Call => {
            let Some(id) = get_present::<V>(head.message, Key::CallId)? else { return Ok(false) };
            head.content(sink)?;
            let mut arguments = None;
            for key in [Key::Arguments, Key::Input, Key::Action] {
                arguments = get_present::<V>(head.message, key)?;
                if arguments.is_some() {
                    break;
                }
            }
            let name = V::get(head.message, Key::Name)?;
            sink.call(&RawCall {
                id: Id::of(Some(&id)),
                name: name.as_ref(),
                arguments: arguments.as_ref(),
                block: 0,
                depth: 1,
            })?;
        }
        ItemType::CallOutput => {
            head.content(sink)?;
            let (id, value) = (V::get(head.message, Key::CallId)?, V::get(head.message, Key::Output)?);
            let result = RawResult::of(id.as_ref(), value.as_ref(), 0, false);
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
