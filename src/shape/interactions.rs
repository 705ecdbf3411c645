//! Steps of Gemini's Interactions: each message is one, which its `type` tells. Results may also be parts of a `user_input`.

use super::parts::{count, observation, size_of, text_or_image};
use super::value::{Place, RawCall, RawResult, Sink, Value, get_present, object, part, present, refuse_repeated};
use super::words::{Besides, ItemType, Keys, PartType, RoleName, StepType, ToolKind};
use super::{CONTENT_DEPTH, Frame, Key, PART_KEYS, Path, RawMessage, Shape, part_type};

pub(super) const PATH: Path = Path { blocks: None, fields: &[&[Key::Result]] };
pub(super) const INPUT_PATH: Path = Path { blocks: Some(Key::Content), fields: &[&[Key::Result]] };

const BLOCK_KEYS: Keys = Keys::of(&[Key::Type, Key::Text, Key::CallId, Key::Name, Key::Result, Key::IsError]);

/// Nesting of a result that is a part: message, content, part.
const NESTED_DEPTH: usize = 3;

/// Reads a step. Returns its shape; None if the message is none.
pub(super) fn read<V: Value>(message: &mut RawMessage<V>, sink: &mut impl Sink<V>) -> Result<Option<Shape>, V::Stop> {
    let Some(step) = step_of(message)? else {
        message.item = if message.item.is_step() { ItemType::Other } else { message.item };
        return Ok(None);
    };
    message.role = match step {
        StepType::UserInput => RoleName::User,
        StepType::FunctionResult => RoleName::Other,
        _ => RoleName::Assistant,
    };
    let mut shape = Shape::Interactions;
    match step {
        StepType::UserInput => shape = read_input(message, sink)?,
        StepType::ModelOutput => message.content(sink)?,
        StepType::Thought => {} // its reasoning is counted apart
        StepType::FunctionCall => {
            refuse_repeated::<V>(message.object, Keys::of(&[Key::Id]), None)?;
            let (id, name) = (V::get(message.object, Key::Id)?, V::get(message.object, Key::Name)?);
            let arguments = V::get(message.object, Key::Arguments)?;
            let (id, name, arguments) = (id.as_ref(), name.as_ref(), arguments.as_ref());
            sink.call(&RawCall { id, name, arguments, block: 0, depth: 1 })?;
        }
        StepType::FunctionResult => {
            if read_result::<V>(message.object, (0, message.is_error), &Place::of(Key::Result), 1, sink)? {
                message.item = ItemType::ToolDefinitions;
            }
        }
        StepType::ProviderCall | StepType::ProviderResult => {
            let is_result = step == StepType::ProviderResult;
            let id = V::get(message.object, if is_result { Key::CallId } else { Key::Id })?;
            sink.half(id.as_ref(), 0, is_result)?;
            sink.besides(Besides::Something);
            count(size_of::<V>(message.object, 0)?, sink);
        }
    }
    Ok(Some(shape))
}

/// What a message is as a step. Items of Responses of the same type have a `call_id`, a `status`, or arguments as text.
fn step_of<V: Value>(message: &RawMessage<V>) -> Result<Option<StepType>, V::Stop> {
    if message.role != RoleName::Other {
        return Ok(None);
    }
    let tool = match message.item {
        ItemType::Step(step) => return Ok(Some(step)),
        ItemType::ToolDefinitions => return Ok(Some(StepType::ProviderResult)),
        ItemType::Call(tool) => tool,
        _ => return Ok(None),
    };
    let has = |key: Key| get_present::<V>(message.object, key).map(|value| value.is_some());
    let is_step = match tool {
        ToolKind::Function => V::get(message.object, Key::Arguments)?.is_some_and(|value| value.is_object()),
        ToolKind::Search | ToolKind::OfGemini => !has(Key::Status)?,
        _ => false,
    };
    let step = if tool == ToolKind::Function { StepType::FunctionCall } else { StepType::ProviderCall };
    Ok((is_step && !has(Key::CallId)?).then_some(step))
}

/// Reads a `user_input`, of which results may be parts.
fn read_input<V: Value>(message: &mut RawMessage<V>, sink: &mut impl Sink<V>) -> Result<Shape, V::Stop> {
    let Some(parts) = message.content.as_ref().and_then(V::items) else {
        message.content(sink)?;
        return Ok(Shape::Interactions);
    };
    let (content, mut shape) = (Place::of(Key::Content), Shape::Interactions);
    for (block, item) in parts.enumerate() {
        let place = content.index(block);
        let fields = part(&item, BLOCK_KEYS, &place)?;
        let kind = part_type::<V>(fields)?;
        if kind == PartType::FunctionResult {
            shape = Shape::InteractionsInput;
            let is_error = V::get(fields, Key::IsError)?.is_some_and(|flag| flag.is_true());
            if read_result::<V>(fields, (block, is_error), &place.key(Key::Result), NESTED_DEPTH, sink)? {
                message.item = ItemType::ToolDefinitions;
            }
        } else {
            message.note_users(sink);
            count(text_or_image::<V>(fields, kind, CONTENT_DEPTH, sink)?, sink);
        }
    }
    Ok(shape)
}

/// Reads a result with these fields, at a block. Returns whether it defines tools, which the model may then call.
fn read_result<V: Value>(
    fields: &V::Object,
    (block, is_error): (usize, bool),
    place: &Place,
    depth: usize,
    sink: &mut impl Sink<V>,
) -> Result<bool, V::Stop> {
    let (id, name) = (V::get(fields, Key::CallId)?, V::get(fields, Key::Name)?);
    let value = V::get(fields, Key::Result)?;
    let mut is_pinned = false;
    for item in value.as_ref().and_then(V::items).into_iter().flatten() {
        is_pinned |= item.object().map_or(Ok(PartType::Other), part_type::<V>)? == PartType::Function;
    }
    let result = RawResult::of(id.as_ref(), value.as_ref(), block, is_error);
    let result = RawResult { name: name.as_ref(), is_pinned, ..result };
    match present(value.as_ref()) {
        Some(value) if value.text().is_none() && value.items().is_none() => {
            object(Some(value), place)?;
            sink.begin_observation();
            sink.result(&RawResult { frame: Frame::Json, chars: value.size(depth)?, ..result })?;
        }
        _ => observation(&result, PART_KEYS, place, depth + 1, sink)?,
    }
    Ok(is_pinned)
}
