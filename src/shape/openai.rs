//! `OpenAI` chat: an assistant's `tool_calls`, and messages of role `tool`. Ollama has both without ids, and names the tool.

use super::message::content_result;
use super::value::{NameUse, Place, RawCall, RawResult, Sink, Value, get_present, object, refuse_repeated};
use super::words::{Keys, RoleName};
use super::{Key, RawMessage};

const CALL_KEYS: Keys = Keys::of(&[Key::Id, Key::Function, Key::Custom]);
const FUNCTION_KEYS: Keys = Keys::of(&[Key::Name, Key::Arguments]);
const CUSTOM_KEYS: Keys = Keys::of(&[Key::Name, Key::Input]);

#[inline]
pub(super) fn read<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    match message.role {
        RoleName::Tool => read_result(message, sink)?,
        RoleName::Assistant => {
            let Some(calls) = message.tool_calls.as_ref().and_then(V::items) else { return Ok(false) };
            let place = Place::of(Key::ToolCalls);
            let mut has_calls = false;
            for (block, call) in calls.enumerate() {
                let place = place.index(block);
                let Some(call) = object(Some(&call), &place)? else { continue };
                if !has_calls {
                    message.content(sink)?;
                    has_calls = true;
                }
                read_call::<V>(call, block, &place, sink)?;
            }
            return Ok(has_calls);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn read_result<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    let result = message.result(message.tool_call_id.as_ref());
    if !message.has_more {
        return content_result(&result, sink);
    }
    let of_ollama = V::get(message.object, Key::ToolName)?.filter(|name| name.text().is_some());
    let (name, name_use) = match of_ollama {
        None => (V::get(message.object, Key::Name)?, NameUse::BesideId),
        name => (name, NameUse::AsId),
    };
    content_result(&RawResult { name: name.as_ref(), name_use, ..result }, sink)
}

#[inline]
fn read_call<V: Value>(call: &V::Object, block: usize, place: &Place, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    refuse_repeated::<V>(call, CALL_KEYS, Some(place))?;
    let id = sink.get(call, Key::Id)?;
    let function = sink.get(call, Key::Function)?;
    let (name, arguments) = if let Some(function) = object(function.as_ref(), &place.key(Key::Function))? {
        refuse_repeated::<V>(function, FUNCTION_KEYS, Some(&place.key(Key::Function)))?;
        (sink.get(function, Key::Name)?, sink.get(function, Key::Arguments)?.filter(|arguments| !arguments.is_null()))
    } else if let Some(custom) = object(V::get(call, Key::Custom)?.as_ref(), &place.key(Key::Custom))? {
        refuse_repeated::<V>(custom, CUSTOM_KEYS, Some(&place.key(Key::Custom)))?;
        (V::get(custom, Key::Name)?, get_present::<V>(custom, Key::Input)?)
    } else {
        (None, None)
    };
    sink.call(&RawCall {
        id: id.as_ref(),
        name: name.as_ref(),
        arguments: arguments.as_ref(),
        block,
        depth: 4, // the message, tool_calls, the call, its function
    })
}
