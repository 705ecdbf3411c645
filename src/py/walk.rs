//! dicts -> Outline, and the text behind it. The same rows as in `scan`, read lazily: most messages need four look-ups.

use super::convert::{bytes_of, with_text};
use crate::error::{Error, Kind};
use crate::json::MAX_DEPTH;
use crate::outline::{Call, Message, Name, Outline, Role, Shape, Span, ToolResult};
use crate::scan::CALL_CHARS;
use crate::shape::{self, PairRole, PartType, RoleName, Row, Type};
use crate::source::{BEGIN_DISPATCH, Source, begin_dispatch};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};

/// What stops a walk.
pub enum Stopped {
    /// A shape that is no history.
    Shape(Error),
    /// Python itself.
    Python(PyErr),
}

impl From<PyErr> for Stopped {
    fn from(error: PyErr) -> Self {
        Stopped::Python(error)
    }
}

type Walked<T> = Result<T, Stopped>;
type Dict<'py> = Bound<'py, PyDict>;
type Any<'py> = Bound<'py, PyAny>;

/// A history as a list of dicts.
pub struct Dicts<'py> {
    pub list: Bound<'py, PyList>,
    /// The value of each observation, as the walk found it.
    values: Vec<Option<Any<'py>>>,
}

/// Looks up a field whose name is known at compile time.
macro_rules! get {
    ($dict:expr, $name:literal) => {
        $dict.get_item(intern!($dict.py(), $name))
    };
}
pub(super) use get;

impl<'py> Dicts<'py> {
    /// The history, if it is a list.
    pub fn of(messages: &Any<'py>) -> Walked<Self> {
        match messages.cast::<PyList>() {
            Ok(list) => Ok(Dicts { list: list.clone(), values: vec![] }),
            Err(_) => Err(Error { kind: Kind::History, offset: None, message_index: None, field: None }.into()),
        }
    }

    pub fn message(&self, index: usize) -> PyResult<Dict<'py>> {
        Ok(self.list.get_item(index)?.cast_into()?)
    }

    /// `type` of a message.
    pub fn type_of(&self, message: usize) -> PyResult<String> {
        get!(self.message(message)?, "type")?.map_or(Ok(String::new()), |value| value.extract())
    }

    /// Own text, names and arguments of calls for a token counter; and the characters that are constants.
    pub fn own_text(&self, outline: &Outline, message: usize) -> PyResult<(Vec<u8>, usize)> {
        let dict = self.message(message)?;
        let shape = outline.messages[message].shape;
        let is_observation = matches!(shape, Shape::ChatMessage | Shape::OpenAi) && outline.holds_results(message);
        let mut text = Vec::new();
        let content = get!(dict, "content")?;
        if let Some(content) = content.as_ref().filter(|_| !is_observation) {
            texts(content, &mut |piece| text.extend(bytes_of(piece)))?;
        }
        let mut constant_chars = 0;
        let tool_calls = get!(dict, "tool_calls")?.filter(|_| !is_observation);
        for_each_call(&dict, shape, content.as_ref(), tool_calls, &mut |call| {
            constant_chars += CALL_CHARS;
            if let Some(name) = call.name {
                text.extend(bytes_of(&name));
            }
            match call.arguments.as_ref().map(|value| (value, value.cast::<PyString>())) {
                Some((_, Ok(arguments))) => text.extend(bytes_of(arguments)),
                Some((value, Err(_))) => constant_chars += compact_chars(value, 0).unwrap_or(0),
                None => {}
            }
            Ok(())
        })
        .map_err(PyErr::from)?;
        Ok((text, constant_chars))
    }
}

/// Whether a value is there: neither missing nor None.
fn present<'a, 'py>(value: Option<&'a Any<'py>>) -> Option<&'a Any<'py>> {
    value.filter(|value| !value.is_none())
}

fn string(value: Option<Any<'_>>) -> Option<Bound<'_, PyString>> {
    value?.cast_into::<PyString>().ok()
}

fn part_type(part: &Dict) -> PyResult<PartType> {
    Ok(string(get!(part, "type")?).map_or(PartType::Other, |name| with_text(&name, shape::part_type)))
}

/// Calls `piece` with each text of a content: a string, or its text parts.
fn texts<'py>(content: &Any<'py>, piece: &mut dyn FnMut(&Bound<'py, PyString>)) -> PyResult<()> {
    if let Ok(text) = content.cast::<PyString>() {
        piece(text);
    } else if let Ok(parts) = content.cast::<PyList>() {
        for part in parts {
            let Ok(part) = part.cast::<PyDict>() else { continue };
            if part_type(part)? == PartType::Text
                && let Some(text) = string(get!(part, "text")?)
            {
                piece(&text);
            }
        }
    }
    Ok(())
}

/// One call as its message holds it.
struct RawCall<'py> {
    id: Option<Any<'py>>,
    name: Option<Bound<'py, PyString>>,
    arguments: Option<Any<'py>>,
    block: usize,
}

/// Calls `call` with each call of a message of this shape.
fn for_each_call<'py>(
    dict: &Dict<'py>,
    shape: Shape,
    content: Option<&Any<'py>>,
    tool_calls: Option<Any<'py>>,
    call: &mut dyn FnMut(RawCall<'py>) -> Walked<()>,
) -> Walked<()> {
    let not_none = |value: Option<Any<'py>>| value.filter(|value| !value.is_none());
    match shape {
        Shape::Plain => {}
        Shape::ChatMessage => {
            if pair_role(dict)? == PairRole::Call {
                call(RawCall { id: get!(dict, "pairId")?, name: None, arguments: None, block: 0 })?;
            }
        }
        Shape::OpenAi => {
            let Some(Ok(calls)) = tool_calls.map(Bound::cast_into::<PyList>) else { return Ok(()) };
            for (block, item) in calls.iter().enumerate() {
                let Ok(item) = item.cast::<PyDict>() else { continue };
                let id = get!(item, "id")?;
                let raw = if let Some(Ok(function)) = get!(item, "function")?.map(Bound::cast_into::<PyDict>) {
                    RawCall {
                        id,
                        name: string(get!(function, "name")?),
                        arguments: not_none(get!(function, "arguments")?),
                        block,
                    }
                } else if let Some(Ok(custom)) = get!(item, "custom")?.map(Bound::cast_into::<PyDict>) {
                    RawCall {
                        id,
                        name: string(get!(custom, "name")?),
                        arguments: not_none(get!(custom, "input")?),
                        block,
                    }
                } else {
                    RawCall { id, name: None, arguments: None, block }
                };
                call(raw)?;
            }
        }
        Shape::Anthropic => {
            let Some(blocks) = content.and_then(|content| content.cast::<PyList>().ok()) else { return Ok(()) };
            for (block, item) in blocks.iter().enumerate() {
                let Ok(item) = item.cast::<PyDict>() else { continue };
                if part_type(item)? == PartType::ToolUse {
                    call(tool_use(item, block)?)?;
                }
            }
        }
        Shape::Responses => {
            if item_type(dict)? == Type::Call {
                let mut arguments = not_none(get!(dict, "arguments")?);
                if arguments.is_none() {
                    arguments = not_none(get!(dict, "input")?);
                }
                if arguments.is_none() {
                    arguments = not_none(get!(dict, "action")?);
                }
                call(RawCall { id: get!(dict, "call_id")?, name: string(get!(dict, "name")?), arguments, block: 0 })?;
            }
        }
    }
    Ok(())
}

fn tool_use<'py>(block: &Dict<'py>, place: usize) -> PyResult<RawCall<'py>> {
    let arguments = get!(block, "input")?.filter(|value| !value.is_none());
    Ok(RawCall { id: get!(block, "id")?, name: string(get!(block, "name")?), arguments, block: place })
}

fn pair_role(dict: &Dict) -> PyResult<PairRole> {
    Ok(string(get!(dict, "pairRole")?).map_or(PairRole::Other, |name| with_text(&name, shape::pair_role)))
}

fn item_type(dict: &Dict) -> PyResult<Type> {
    Ok(string(get!(dict, "type")?).map_or(Type::Other, |name| with_text(&name, shape::message_type)))
}

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

/// Reads a history. `needs_lines` counts the newlines of observations.
pub fn walk(dicts: &mut Dicts, needs_lines: bool) -> Walked<Outline> {
    let mut outline = Outline::default();
    outline.messages.reserve(dicts.list.len());
    for (index, message) in dicts.list.iter().enumerate() {
        let Ok(message) = message.cast::<PyDict>() else {
            return Err(Error::in_message(Kind::Message, None, index, None).into());
        };
        let values = &mut dicts.values;
        Walk { outline: &mut outline, values, index, chars: 0, images: 0, needs_lines }.message(message)?;
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
}

impl<'py> Walk<'_, 'py> {
    fn message(&mut self, dict: &Dict<'py>) -> Walked<()> {
        let mut fields = Fields { dict, unseen: dict.len() };
        let role = string(field!(fields, "role")).map_or(RoleName::Other, |role| with_text(&role, shape::role));
        let content = field!(fields, "content");
        let tool_call_id = if role == RoleName::Tool { field!(fields, "tool_call_id") } else { None };
        let tool_calls = if role == RoleName::Assistant { field!(fields, "tool_calls") } else { None };
        let pair_role =
            string(field!(fields, "pairRole")).map_or(PairRole::Other, |name| with_text(&name, shape::pair_role));
        let item = string(field!(fields, "type")).map_or(Type::Other, |name| with_text(&name, shape::message_type));
        let row = Row::of(
            pair_role,
            role,
            || {
                let calls = tool_calls.as_ref().and_then(|calls| calls.cast::<PyList>().ok());
                calls.is_some_and(|calls| calls.iter().any(|call| call.is_instance_of::<PyDict>()))
            },
            || content.as_ref().is_some_and(has_tool_blocks),
            item,
            || get!(dict, "call_id").is_ok_and(|id| present(id.as_ref()).is_some()),
        );
        let role = role.role();
        let blocks = content.as_ref().and_then(|content| content.cast::<PyList>().ok()).map_or(0, PyListMethods::len);
        self.outline.messages.push(Message {
            first_call: self.outline.calls.len() as u32,
            first_result: self.outline.results.len() as u32,
            blocks: blocks as u32,
            role,
            shape: row.shape(),
            is_agent_made: role == Role::Assistant || matches!(item, Type::Call | Type::Reasoning),
            is_reasoning: item == Type::Reasoning,
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
        if let Ok(text) = content.cast::<PyString>() {
            self.chars += text.len()?;
            return Ok(());
        }
        let Ok(parts) = content.cast::<PyList>() else { return self.fault(Kind::Content, "content".to_owned()) };
        for (place, part) in parts.iter().enumerate() {
            let Ok(part) = part.cast::<PyDict>() else { return self.fault(Kind::Part, format!("content[{place}]")) };
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
            if let Ok(text) = value.cast::<PyString>() {
                self.piece(text, &mut result)?;
            } else if let Ok(parts) = value.cast::<PyList>() {
                for (place, part) in parts.iter().enumerate() {
                    let Ok(part) = part.cast::<PyDict>() else {
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
            self.chars += match arguments.cast::<PyString>() {
                Ok(text) => text.len()?,
                Err(_) => compact_chars(&arguments, self.depth_of(call.block))
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
        let Ok(part) = part.cast::<PyDict>() else { return false };
        part_type(part).is_ok_and(|kind| matches!(kind, PartType::ToolUse | PartType::ToolResult))
    };
    content.cast::<PyList>().is_ok_and(|parts| parts.iter().any(is_tool_block))
}

/// The size of a value as compact JSON, as counts go; without recursion, and an error over `MAX_DEPTH`.
fn compact_chars(value: &Any, depth: usize) -> Result<usize, ()> {
    const NUMBER_CHARS: usize = 4;
    let mut size = 0;
    let mut to_visit = vec![(value.clone(), depth)];
    let text_chars = |text: &Bound<PyString>| text.len().unwrap_or(0) + 2;
    while let Some((value, depth)) = to_visit.pop() {
        if let Ok(text) = value.cast::<PyString>() {
            size += text_chars(text);
        } else if let Ok(dict) = value.cast::<PyDict>() {
            size += container(dict.len(), depth)? + dict.len(); // a colon each
            for (key, value) in dict {
                size += key.cast::<PyString>().map_or(NUMBER_CHARS, text_chars);
                to_visit.push((value, depth + 1));
            }
        } else if let Ok(list) = value.cast::<PyList>() {
            size += container(list.len(), depth)?;
            to_visit.extend(list.iter().map(|value| (value, depth + 1)));
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            size += container(tuple.len(), depth)?;
            to_visit.extend(tuple.iter().map(|value| (value, depth + 1)));
        } else if let Ok(flag) = value.cast::<PyBool>() {
            size += if flag.is_true() { 4 } else { 5 };
        } else {
            size += NUMBER_CHARS; // null has four characters as well
        }
    }
    Ok(size)
}

/// Brackets and commas.
fn container(length: usize, depth: usize) -> Result<usize, ()> {
    if depth >= MAX_DEPTH { Err(()) } else { Ok(2 + length.saturating_sub(1)) }
}

/// Most texts differ from a placeholder in the first character, which is asked for without a call of a method.
fn begins(text: &Bound<PyString>, prefix: &str) -> PyResult<bool> {
    let py = text.py();
    if prefix.starts_with('[') && (text.is_empty()? || !text.get_item(0)?.eq(intern!(py, "["))?) {
        return Ok(false);
    }
    text.call_method1(intern!(py, "startswith"), (prefix,))?.is_truthy()
}

impl Source for Dicts<'_> {
    fn observation(&self, _: &Outline, result: usize) -> Vec<u8> {
        let mut text = Vec::new();
        if let Some(value) = &self.values[result] {
            // What was walked before is read again: it cannot fail.
            let _ = texts(value, &mut |piece| with_text(piece, |piece| text.extend_from_slice(piece)));
        }
        text
    }

    fn observation_begins(&self, outline: &Outline, result: usize, prefix: &[u8]) -> bool {
        let Some(value) = &self.values[result] else { return prefix.is_empty() };
        match (value.cast::<PyString>(), core::str::from_utf8(prefix)) {
            (Ok(text), Ok(prefix)) => begins(text, prefix).unwrap_or(true),
            _ => self.observation(outline, result).starts_with(prefix),
        }
    }

    fn observation_may_hold_dispatch(&self, _: &Outline, result: usize) -> bool {
        let Some(value) = &self.values[result] else { return false };
        let Ok(text) = value.cast::<PyString>() else { return true };
        let py = text.py();
        // An ASCII str is its own UTF-8; of others Python would keep a copy for good, so it searches them itself.
        let is_ascii = text.call_method0(intern!(py, "isascii")).is_ok_and(|flag| flag.is_truthy().unwrap_or(false));
        match if is_ascii { text.to_str().ok() } else { None } {
            Some(ascii) => begin_dispatch().find(ascii.as_bytes()).is_some(),
            None => text.contains(intern!(py, BEGIN_DISPATCH)).unwrap_or(true),
        }
    }

    fn pieces(&self, outline: &Outline, message: usize) -> Vec<(Vec<u8>, bool)> {
        let mut pieces = vec![];
        // What was walked before is read again: it cannot fail.
        let _ = self.collect_pieces(outline, message, &mut pieces);
        pieces
    }

    fn has_tag(&self, _: &Outline, message: usize, tag: &str) -> bool {
        let tags = self.message(message).and_then(|message| get!(message, "tags"));
        let Ok(Some(tags)) = tags else { return false };
        tags.cast::<PyList>()
            .is_ok_and(|tags| tags.iter().any(|other| other.cast::<PyString>().is_ok_and(|other| other == tag)))
    }
}

impl Dicts<'_> {
    fn collect_pieces(&self, outline: &Outline, message: usize, pieces: &mut Vec<(Vec<u8>, bool)>) -> PyResult<()> {
        let dict = self.message(message)?;
        let shape = outline.messages[message].shape;
        let holds_results = outline.holds_results(message);
        if let Some(content) = get!(dict, "content")? {
            let is_observation = holds_results && matches!(shape, Shape::ChatMessage | Shape::OpenAi);
            match content.cast::<PyList>() {
                Ok(parts) if shape == Shape::Anthropic => {
                    for part in parts {
                        let Ok(part) = part.cast::<PyDict>() else { continue };
                        match part_type(part)? {
                            PartType::Text => {
                                pieces.extend(string(get!(part, "text")?).map(|text| (bytes_of(&text), false)));
                            }
                            PartType::ToolResult => {
                                if let Some(content) = get!(part, "content")? {
                                    texts(&content, &mut |text| pieces.push((bytes_of(text), true)))?;
                                }
                            }
                            _ => {}
                        }
                    }
                }
                _ => texts(&content, &mut |text| pieces.push((bytes_of(text), is_observation)))?,
            }
        }
        if shape == Shape::Responses
            && holds_results
            && let Some(output) = get!(dict, "output")?
        {
            texts(&output, &mut |text| pieces.push((bytes_of(text), true)))?;
        }
        Ok(())
    }
}
