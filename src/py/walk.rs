//! dicts -> Outline. The same rows as in `scan`, read lazily: most messages need three look-ups.

use super::convert::{Walked, with_text};
use super::cpython;
use super::dicts::Dicts;
use super::premask::Ahead;
use super::values::{
    Any, Dict, RawCall, cast, compact_chars, for_each_call, get, part_type, present, string, tool_use,
};
use crate::error::{Error, Kind};
use crate::outline::{Call, Message, Name, Outline, Role, Shape, Span, ToolResult};
use crate::scan::CALL_CHARS;
use crate::shape::{self, PairRole, PartType, RoleName, Row, Type};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString};

/// Bytes of an observation to ask for before it is searched: most have no more.
const BYTES_AHEAD: usize = 2048;

/// The fields of a message that are looked up in any case: as soon as all that it has were seen, no other is.
struct Fields<'a, 'py> {
    dict: &'a Dict<'py>,
    unseen: usize,
}

impl<'py> Fields<'_, 'py> {
    fn get(&mut self, name: &Bound<'py, PyString>) -> PyResult<Option<Any<'py>>> {
        if self.unseen == 0 {
            return Ok(None);
        }
        let value = self.dict.get_item(name)?;
        self.unseen -= usize::from(value.is_some());
        Ok(value)
    }
}

macro_rules! field {
    ($fields:expr, $name:literal) => {
        $fields.get(intern!($fields.dict.py(), $name))?
    };
}

/// Reads a history. `needs_lines` counts the newlines of observations; `ahead` sees each message that was read.
pub fn walk<'py>(dicts: &mut Dicts<'py>, needs_lines: bool, mut ahead: Option<&mut Ahead<'_, 'py>>) -> Walked<Outline> {
    let mut outline = Outline::default();
    // About as many calls and results as messages: a guess too high costs nothing, and growing costs copies.
    let length = dicts.list.len();
    outline.messages.reserve(length);
    outline.calls.reserve(length);
    outline.results.reserve(length);
    dicts.values.reserve(length);
    for (index, message) in dicts.list.iter().enumerate() {
        let Some(message) = cast::<PyDict>(&message) else {
            return Err(Error::in_message(Kind::Message, None, index, None).into());
        };
        let values = &mut dicts.values;
        Walk { outline: &mut outline, values, index, chars: 0, images: 0, needs_lines, is_ahead: ahead.is_some() }
            .message(message)?;
        if let Some(ahead) = &mut ahead {
            ahead.see(index, message, &outline, values)?;
        }
    }
    Ok(outline)
}

struct Walk<'a, 'py> {
    outline: &'a mut Outline,
    values: &'a mut Vec<Option<Any<'py>>>,
    index: usize,
    chars: usize,
    images: u32,
    needs_lines: bool,
    is_ahead: bool,
}

impl<'py> Walk<'_, 'py> {
    fn message(&mut self, dict: &Dict<'py>) -> Walked<()> {
        let mut fields = Fields { dict, unseen: dict.len() };
        let role = string(field!(fields, "role")).map_or(RoleName::Other, |role| with_text(&role, shape::role));
        let content = field!(fields, "content");
        if self.is_ahead
            && role == RoleName::Tool
            && let Some(content) = &content
        {
            // It will soon be searched.
            cpython::prefetch(content, BYTES_AHEAD);
        }
        let tool_call_id = if role == RoleName::Tool { field!(fields, "tool_call_id") } else { None };
        let tool_calls = if role == RoleName::Assistant { field!(fields, "tool_calls") } else { None };
        let pair_role =
            string(field!(fields, "pairRole")).map_or(PairRole::Other, |name| with_text(&name, shape::pair_role));
        let item = string(field!(fields, "type")).map_or(Type::Other, |name| with_text(&name, shape::message_type));
        let row = Row::of(
            pair_role,
            role,
            || {
                let calls = tool_calls.as_ref().and_then(|calls| cast::<PyList>(calls));
                calls.is_some_and(|calls| calls.iter().any(|call| cast::<PyDict>(&call).is_some()))
            },
            || content.as_ref().is_some_and(has_tool_blocks),
            item,
            || get!(dict, "call_id").is_ok_and(|id| present(id.as_ref()).is_some()),
        );
        let role = role.role();
        let blocks = content.as_ref().and_then(|content| cast::<PyList>(content)).map_or(0, PyListMethods::len);
        self.outline.messages.push(Message {
            first_call: self.outline.calls.len() as u32,
            first_result: self.outline.results.len() as u32,
            blocks: blocks as u32,
            role,
            shape: row.shape(),
            is_agent_made: role == Role::Assistant || matches!(item, Type::Call | Type::Reasoning),
            is_responses_item: item != Type::Other,
            ..Message::default()
        });
        match row {
            Row::ChatResult => {
                let id = string(get!(dict, "pairId")?);
                self.observation(id, content.as_ref(), 0, false, "content", true)?;
            }
            Row::OpenAiResult => {
                let id = string(tool_call_id);
                self.observation(id, content.as_ref(), 0, false, "content", true)?;
            }
            _ => self.content(content.as_ref(), row)?,
        }
        match row {
            Row::ResponsesResult => {
                let id = string(get!(dict, "call_id")?);
                self.observation(id, get!(dict, "output")?.as_ref(), 0, false, "output", false)?;
            }
            Row::ChatCall | Row::OpenAiCalls | Row::ResponsesCall => {
                for_each_call(dict, row.shape(), content.as_ref(), tool_calls, &mut |call| self.call(call))?;
            }
            _ => {}
        }
        let message = &mut self.outline.messages[self.index];
        (message.chars, message.images) = (self.chars, self.images);
        Ok(())
    }

    fn fault<T>(&self, kind: Kind, field: String) -> Walked<T> {
        Err(Error::in_message(kind, None, self.index, Some(field)).into())
    }

    /// A content that is no observation.
    fn content(&mut self, content: Option<&Any<'py>>, row: Row) -> Walked<()> {
        let Some(content) = present(content) else { return Ok(()) };
        if let Some(text) = cast::<PyString>(content) {
            self.chars += text.len()?;
            return Ok(());
        }
        let Some(parts) = cast::<PyList>(content) else { return self.fault(Kind::Content, "content".to_owned()) };
        for (place, part) in parts.iter().enumerate() {
            let Some(part) = cast::<PyDict>(&part) else { return self.fault(Kind::Part, format!("content[{place}]")) };
            match part_type(part)? {
                PartType::Text => {
                    if let Some(text) = string(get!(part, "text")?) {
                        self.chars += text.len()?;
                    }
                }
                PartType::Image => self.images += 1,
                PartType::ToolUse if row == Row::Blocks => self.call(tool_use(part, place)?)?,
                PartType::ToolResult if row == Row::Blocks => {
                    let id = string(get!(part, "tool_use_id")?);
                    let is_error = get!(part, "is_error")?
                        .is_some_and(|flag| flag.cast::<PyBool>().is_ok_and(PyBoolMethods::is_true));
                    let field = format!("content[{place}].content");
                    self.observation(id, get!(part, "content")?.as_ref(), place, is_error, &field, true)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A result. What is neither string, list nor None is a fault in a content, and left alone in an output.
    fn observation(
        &mut self,
        id: Option<Bound<PyString>>,
        value: Option<&Any<'py>>,
        block: usize,
        is_error: bool,
        field: &str,
        is_content: bool,
    ) -> Walked<()> {
        let id = id.map(|id| self.outline.keep_text(|out| with_text(&id, |id| out.extend_from_slice(id))));
        let mut result = ToolResult {
            id,
            value: Span::default(),
            chars: 0,
            newlines: 0,
            message: self.index as u32,
            block: block as u32,
            images: 0,
            first_piece: 0,
            pieces: 0,
            first_byte: 0,
            is_error,
            may_hold_dispatch: false,
        };
        if let Some(value) = present(value) {
            if let Some(text) = cast::<PyString>(value) {
                self.piece(text, &mut result)?;
            } else if let Some(parts) = cast::<PyList>(value) {
                for (place, part) in parts.iter().enumerate() {
                    let Some(part) = cast::<PyDict>(&part) else {
                        return self.fault(Kind::Part, format!("{field}[{place}]"));
                    };
                    match part_type(part)? {
                        PartType::Text => {
                            if let Some(text) = string(get!(part, "text")?) {
                                self.piece(&text, &mut result)?;
                            }
                        }
                        PartType::Image => result.images += 1,
                        _ => {}
                    }
                }
            } else if is_content {
                return self.fault(Kind::Content, field.to_owned());
            }
        }
        self.chars += result.chars;
        self.images += result.images;
        self.outline.results.push(result);
        self.values.push(value.cloned());
        Ok(())
    }

    fn piece(&self, text: &Bound<PyString>, result: &mut ToolResult) -> PyResult<()> {
        result.chars += text.len()?;
        if self.needs_lines {
            let count = text.call_method1(intern!(text.py(), "count"), (intern!(text.py(), "\n"),))?;
            result.newlines += count.extract::<usize>()?;
        }
        Ok(())
    }

    fn call(&mut self, call: RawCall) -> Walked<()> {
        self.chars += CALL_CHARS;
        let name: Name = match call.name {
            Some(name) => {
                self.chars += name.len()?;
                Some(self.outline.intern_name(|out| with_text(&name, |name| out.extend_from_slice(name))))
            }
            None => None,
        };
        if let Some(arguments) = call.arguments {
            self.chars += match cast::<PyString>(&arguments) {
                Some(text) => text.len()?,
                None => compact_chars(&arguments, self.depth_of(call.block))
                    .map_err(|()| Error::in_message(Kind::Depth, None, self.index, None))?,
            };
        }
        let id = string(call.id).map(|id| self.outline.keep_text(|out| with_text(&id, |id| out.extend_from_slice(id))));
        self.outline.calls.push(Call { id, name, message: self.index as u32, block: call.block as u32 });
        Ok(())
    }

    /// How many containers are open around the arguments of a call of the message at hand.
    fn depth_of(&self, _block: usize) -> usize {
        const HISTORY_AND_MESSAGE: usize = 2;
        HISTORY_AND_MESSAGE
            + match self.outline.messages[self.index].shape {
                Shape::OpenAi => 3,    // tool_calls, the call, its function
                Shape::Anthropic => 2, // content, the block
                _ => 0,
            }
    }
}

fn has_tool_blocks(content: &Any) -> bool {
    let is_tool_block = |part: Any| {
        let Some(part) = cast::<PyDict>(&part) else { return false };
        part_type(part).is_ok_and(|kind| matches!(kind, PartType::ToolUse | PartType::ToolResult))
    };
    content.cast::<PyList>().is_ok_and(|parts| parts.iter().any(is_tool_block))
}
