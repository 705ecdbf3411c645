//! `OpenAI` chat: an assistant's `tool_calls`, and messages of role `tool`.

use super::RawMessage;
use super::value::{Id, Place, RawCall, Sink, Value, get_present, refuse_repeated};
use super::words::{Key, Keys, RoleName};

const CALL_KEYS: Keys = Keys::of(&[Key::Id, Key::Function, Key::Custom]);
const FUNCTION_KEYS: Keys = Keys::of(&[Key::Name, Key::Arguments]);
const CUSTOM_KEYS: Keys = Keys::of(&[Key::Name, Key::Input]);

#[inline]
pub(super) fn read<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    match message.role {
        RoleName::Tool => message.content_result(message.tool_call_id.as_ref(), sink)?,
        RoleName::Assistant => {
            let is_call = |call: V| call.object().is_some();
            let has_calls = message.tool_calls.as_ref().and_then(V::items).is_some_and(|mut calls| calls.any(is_call));
            if !has_calls {
                return Ok(false);
            }
            message.content(sink)?;
            for (block, call) in message.tool_calls.as_ref().and_then(V::items).into_iter().flatten().enumerate() {
                if let Some(object) = call.object() {
                    read_call::<V>(object, block, sink)?;
                }
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

#[inline]
fn read_call<V: Value>(call: &V::Object, block: usize, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    let calls = Place::of(Key::ToolCalls);
    let place = calls.index(block);
    refuse_repeated::<V>(call, CALL_KEYS, Some(&place))?;
    let id = V::get(call, Key::Id)?;
    let function = V::get(call, Key::Function)?;
    let (name, arguments) = if let Some(function) = function.as_ref().and_then(V::object) {
        refuse_repeated::<V>(function, FUNCTION_KEYS, Some(&place.key(Key::Function)))?;
        (V::get(function, Key::Name)?, get_present::<V>(function, Key::Arguments)?)
    } else if let Some(custom) = V::get(call, Key::Custom)?.as_ref().and_then(V::object) {
        refuse_repeated::<V>(custom, CUSTOM_KEYS, Some(&place.key(Key::Custom)))?;
        (V::get(custom, Key::Name)?, get_present::<V>(custom, Key::Input)?)
    } else {
        (None, None)
    };
    sink.call(&RawCall {
        id: Id::of(id.as_ref()),
        name: name.as_ref(),
        arguments: arguments.as_ref(),
        block,
        depth: 4, // the message, tool_calls, the call, its function
    })
}
