//! Answers to calls without a result, in the shape of the call.

use super::value::{Value, get_present};
use super::{Frame, Key, Shape};
use crate::text::{encode_text, is_blank};

const NO_RESULT: &[u8] = b"[no result recorded]";

/// The JSON of an answer to a call of this message: a block where results are blocks, else a message.
pub(crate) fn answer<V: Value>(shape: Shape, message: &V::Object, block: usize) -> Result<Vec<u8>, V::Stop> {
    let no_result = json_string(NO_RESULT);
    let role = (Key::Role, json_string(b"tool"));
    Ok(match shape {
        Shape::Plain | Shape::Facts => object(&[]),
        Shape::ChatMessage => {
            let id = text::<V>(message, Key::PairId)?;
            object(&[
                role,
                (Key::PairRole, json_string(b"result")),
                (Key::PairId, json_string(&id)),
                (Key::Content, no_result),
            ])
        }
        Shape::OpenAi => {
            let call = element::<V>(message, Key::ToolCalls, block)?;
            let named =
                match member(call.as_ref(), Key::Id)?.filter(|id| id.text().is_some_and(|id| !V::read(id, is_blank))) {
                    Some(id) => (Key::ToolCallId, json_string(&read(&id))),
                    None => (Key::ToolName, json_string(&tool_of_call(call.as_ref())?)),
                };
            object(&[role, named, (Key::Content, no_result)])
        }
        Shape::Responses if message_type::<V>(message)? == b"mcp_approval_request" => {
            let id = text::<V>(message, Key::Id)?;
            // It was not approved.
            let response =
                [(Key::Type, json_string(b"mcp_approval_response")), (Key::ApprovalRequestId, json_string(&id))];
            object(&[&response[..], &[(Key::Approve, b"false".to_vec()), (Key::Reason, no_result)]].concat())
        }
        Shape::Responses => {
            let kind = message_type::<V>(message)?;
            let named = match &kind[..] {
                b"tool_search_call" => b"tool_search_output".to_vec(),
                kind => [kind, b"_output"].concat(),
            };
            let id = json_string(&text::<V>(message, Key::CallId)?);
            [b"{\"type\":", &json_string(&named)[..], b",\"call_id\":", &id, b",", fields_of_output(&kind), b"}"]
                .concat()
        }
        Shape::Interactions | Shape::InteractionsInput => {
            let (id, name) = (text::<V>(message, Key::Id)?, text::<V>(message, Key::Name)?);
            object(&[
                (Key::Type, json_string(b"function_result")),
                (Key::CallId, json_string(&id)),
                (Key::Name, json_string(&name)),
                (Key::Result, no_result),
            ])
        }
        Shape::Anthropic => {
            let id = text_in(element::<V>(message, Key::Content, block)?.as_ref(), Key::Id)?;
            object(&[
                (Key::Type, json_string(b"tool_result")),
                (Key::ToolUseId, json_string(&id)),
                (Key::Content, no_result),
            ])
        }
        Shape::Converse => {
            let call = member(element::<V>(message, Key::Content, block)?.as_ref(), Key::ToolUse)?;
            let id = text_in(call.as_ref(), Key::ToolUseIdCamel)?;
            let result = object(&[
                (Key::ToolUseIdCamel, json_string(&id)),
                (Key::Content, framed(Frame::TextBlocks, &no_result)),
            ]);
            object(&[(Key::ToolResult, result)])
        }
        Shape::Gemini => {
            let part = element::<V>(message, Key::Parts, block)?;
            let (call, key) = match member(part.as_ref(), Key::FunctionCall)? {
                Some(call) => (Some(call), Key::FunctionResponse),
                None => (member(part.as_ref(), Key::FunctionCallSnake)?, Key::FunctionResponseSnake),
            };
            let mut fields = vec![];
            for key in [Key::Id, Key::Name] {
                if let Some(value) = member(call.as_ref(), key)? {
                    fields.push((key, json_string(&read(&value))));
                }
            }
            fields.push((Key::Response, framed(Frame::Output, &no_result)));
            object(&[(key, object(&fields))])
        }
    })
}

/// The other fields of an output that is none, as the type of its call has them.
fn fields_of_output(kind: &[u8]) -> &'static [u8] {
    match kind {
        b"tool_search_call" => br#""execution":"client","tools":[]"#,
        b"shell_call" => br#""output":[{"stdout":"","stderr":"[no result recorded]","outcome":{"type":"timeout"}}]"#,
        b"apply_patch_call" => br#""status":"failed","output":"[no result recorded]""#,
        _ => br#""output":"[no result recorded]""#,
    }
}

/// The JSON of a message with these answers, for a shape whose results are blocks.
pub(crate) fn answering_message(shape: Shape, answers: &[Vec<u8>]) -> Vec<u8> {
    let blocks = [b"[", &answers.join(&b',')[..], b"]"].concat();
    object(&[(Key::Role, json_string(b"user")), (shape.text().0, blocks)])
}

fn message_type<V: Value>(message: &V::Object) -> Result<Vec<u8>, V::Stop> {
    text::<V>(message, Key::Type)
}

/// The tool of a call of chat.
fn tool_of_call<V: Value>(call: Option<&V>) -> Result<Vec<u8>, V::Stop> {
    let function = match member(call, Key::Function)?.filter(|function| function.object().is_some()) {
        None => member(call, Key::Custom)?,
        function => function,
    };
    text_in(function.as_ref(), Key::Name)
}

fn element<V: Value>(message: &V::Object, list: Key, place: usize) -> Result<Option<V>, V::Stop> {
    let list = V::get(message, list)?;
    Ok(list.as_ref().and_then(V::items).and_then(|mut items| items.nth(place)))
}

fn member<V: Value>(value: Option<&V>, key: Key) -> Result<Option<V>, V::Stop> {
    value.and_then(V::object).map_or(Ok(None), |object| get_present::<V>(object, key))
}

fn text_in<V: Value>(value: Option<&V>, key: Key) -> Result<Vec<u8>, V::Stop> {
    Ok(member(value, key)?.as_ref().map(read).unwrap_or_default())
}

fn text<V: Value>(message: &V::Object, key: Key) -> Result<Vec<u8>, V::Stop> {
    Ok(get_present::<V>(message, key)?.as_ref().map(read).unwrap_or_default())
}

fn read<V: Value>(value: &V) -> Vec<u8> {
    value.text().map(|text| V::read(text, <[u8]>::to_vec)).unwrap_or_default()
}

/// A text as a string of JSON.
pub(crate) fn json_string(text: &[u8]) -> Vec<u8> {
    let mut json = vec![b'"'];
    encode_text(text, &mut json);
    json.push(b'"');
    json
}

fn framed(frame: Frame, json: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    frame.write(&mut out, |out| out.extend_from_slice(json));
    out
}

fn object(members: &[(Key, Vec<u8>)]) -> Vec<u8> {
    let members: Vec<Vec<u8>> =
        members.iter().map(|(key, value)| [b"\"", key.name().as_bytes(), b"\":", value].concat()).collect();
    [b"{", &members.join(&b',')[..], b"}"].concat()
}
