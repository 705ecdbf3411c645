//! The facts of messages, as an adapter gives them.

use super::convert::with_text;
use super::values::Any;
use crate::outline::{
    Besides, CALL_CHARS, Call, Message, Name, NameUse, Outline, Role, Span, TextSpan, ToolResult, opaque_weight,
};
use crate::shape::{Frame, MessageFacts, role_of};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

/// More characters mean the same; sums do not overflow.
const MOST_CHARS: usize = 1 << 40;

/// Reads the facts of messages.
pub(super) fn outline_of_facts(list: &Bound<'_, PyList>) -> PyResult<Outline> {
    let mut outline = Outline::default();
    for (index, facts) in list.iter().enumerate() {
        let facts = tuple(&facts, "Facts")?;
        let role = text(facts, 0)?.ok_or_else(|| PyTypeError::new_err("facts begin with a role"))?;
        let role = with_text(&role, role_of);
        let (first_call, first_result) = (outline.calls.len() as u32, outline.results.len() as u32);
        let (mut chars, mut images) = (count(facts, 1)?, count(facts, 4)?);
        let has_more = images > 0 || (chars > 0 && role == Role::User);
        let (mut block, mut weighed) = (1 + images as u32, chars);
        for call in items(facts, 2)? {
            let call = tuple(&call, "CallFacts")?;
            let (id, name) = (kept(call, 0, &mut outline)?, interned(call, 1, &mut outline)?);
            let name_chars = text(call, 1)?.map_or(Ok(0), |name| name.len())?;
            chars += CALL_CHARS + name_chars + count(call, 2)?;
            weighed += name_chars + count(call, 2)?;
            outline.calls.push(Call { id, name, message: index as u32, block });
            block += 1;
        }
        let mut weight = opaque_weight(weighed);
        for result in items(facts, 3)? {
            let result = tuple(&result, "ResultFacts")?;
            let (id, name) = (kept(result, 0, &mut outline)?, interned(result, 1, &mut outline)?);
            let (result_chars, result_images) = (count(result, 2)?, count(result, 4)?);
            (chars, images) = (chars + result_chars, images + result_images);
            weight += opaque_weight(result_chars);
            outline.results.push(ToolResult {
                id,
                name,
                value: Span::default(),
                chars: result_chars,
                weight: opaque_weight(result_chars),
                newlines: u32::try_from(count(result, 3)?.saturating_sub(1)).unwrap_or(u32::MAX),
                message: index as u32,
                block,
                images: result_images as u32,
                first_piece: 0,
                pieces: 0,
                first_byte: 0,
                is_error: flag(result, 5, false)?,
                is_pinned: flag(result, 6, false)?,
                name_use: NameUse::BesideId,
                may_hold_dispatch: false,
                frame: Frame::Text,
            });
            block += 1;
        }
        let mut message =
            Message { chars, weight, images: images as u32, first_call, first_result, ..Message::default() };
        message.take(&MessageFacts::given(role, block));
        message.is_signed = role == Role::Assistant && flag(facts, 5, false)?;
        message.besides = if has_more { Besides::Something } else { Besides::Nothing };
        outline.messages.push(message);
    }
    Ok(outline)
}

fn tuple<'a, 'py>(value: &'a Any<'py>, class: &str) -> PyResult<&'a Bound<'py, PyTuple>> {
    value.cast::<PyTuple>().map_err(|_| {
        let kind = value.get_type().name().map_or_else(|_| "another type".into(), |name| name.to_string());
        PyTypeError::new_err(format!("an adapter's facts must be {class}, or tuples of that form, not {kind}"))
    })
}

/// A field; None if the tuple ends before it, or it is None.
fn field<'py>(tuple: &Bound<'py, PyTuple>, place: usize) -> Option<Any<'py>> {
    let is_there = place < tuple.len(); // asking for one that is not makes an exception
    is_there.then(|| tuple.get_item(place).ok())?.filter(|value| !value.is_none())
}

fn items<'py>(tuple: &Bound<'py, PyTuple>, place: usize) -> PyResult<Vec<Any<'py>>> {
    match field(tuple, place) {
        None => Ok(vec![]),
        Some(value) if value.cast::<PyTuple>().is_ok_and(PyTupleMethods::is_empty) => Ok(vec![]),
        Some(value) => value.try_iter()?.collect(),
    }
}

fn count(tuple: &Bound<'_, PyTuple>, place: usize) -> PyResult<usize> {
    let value = field(tuple, place).map_or(Ok(0), |value| value.extract::<usize>());
    value
        .map(|count| count.min(MOST_CHARS))
        .map_err(|_| PyTypeError::new_err("counts in facts are whole numbers from 0"))
}

fn flag(tuple: &Bound<'_, PyTuple>, place: usize, default: bool) -> PyResult<bool> {
    field(tuple, place).map_or(Ok(default), |value| value.is_truthy())
}

fn text<'py>(tuple: &Bound<'py, PyTuple>, place: usize) -> PyResult<Option<Bound<'py, PyString>>> {
    let value = field(tuple, place).map(Bound::cast_into::<PyString>).transpose();
    value.map_err(|_| PyTypeError::new_err("roles, ids and names in facts are strings"))
}

fn kept(tuple: &Bound<'_, PyTuple>, place: usize, outline: &mut Outline) -> PyResult<Option<TextSpan>> {
    Ok(text(tuple, place)?.and_then(|id| with_text(&id, |id| outline.keep_id(id))))
}

fn interned(tuple: &Bound<'_, PyTuple>, place: usize, outline: &mut Outline) -> PyResult<Name> {
    Ok(text(tuple, place)?.map(|name| with_text(&name, |name| outline.intern(name))))
}
