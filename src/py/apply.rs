//! (dicts, Plan) -> dicts. The input is never changed; unchanged messages of the view are the caller's objects.

use super::convert::to_str;
use super::dicts::Dicts;
use super::guard::guarded;
use super::marks::{NamedMark, marks_on, marks_within};
use super::placeholders::PlaceholderTexts;
use super::reasoning::unsigned;
use super::values::Any;
use super::values::name;
use super::walk::walk;
use crate::clip::{CutParts, PartFacts};
use crate::marks::{FIELDS, LEVELS};
use crate::outline::{Message, Outline};
use crate::placeholder::Form;
use crate::plan::{Cut, Masked, Part, Plan, Summary, facts};
use crate::policy::Policy;
use crate::shape::{Frame, Key, Path, REFERENCE, STREAMS, Shape, Wrap};
use crate::source::Source;
use crate::turns::Turns;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// The view; the caller's list if nothing changed.
pub(super) fn apply<'py>(
    dicts: &Dicts<'py>,
    outline: &Outline,
    policy: &Policy,
    plan: &Plan,
) -> PyResult<Bound<'py, PyList>> {
    if !plan.changes() {
        return Ok(dicts.given.clone());
    }
    let py = dicts.list.py();
    let texts = PlaceholderTexts::of(py, policy);
    let turns = texts.placeholder.names_turn().then_some(&plan.turns);
    let mut masker = MessageMasker { dicts, outline, plan, turns, texts };
    // Our list becomes the view: a message is not read after it was masked there.
    let view = dicts.list.clone();
    let message_of = |result: u32| outline.results[result as usize].message as usize;
    for masked in plan.masked.chunk_by(|one, next| message_of(one.result) == message_of(next.result)) {
        let index = message_of(masked[0].result);
        if plan.keeps(index) {
            view.set_item(index, masker.message(index, masked)?)?;
        }
    }
    for message in plan.layout.unsigned.iter().map(|message| *message as usize) {
        view.set_item(message, unsigned(view.get_item(message)?.cast()?)?)?;
    }
    if plan.layout.is_whole() {
        return Ok(view);
    }
    let shown = PyList::empty(py);
    for part in plan.layout.parts(0..plan.layout.len()) {
        match part {
            Part::Messages(messages) => {
                for message in messages {
                    shown.append(view.get_item(message)?)?;
                }
            }
            Part::Rewritten(message, cut, summary) => {
                let cut = cut.map(|cut| masker.cut(cut)).transpose()?;
                let message = cut.map_or_else(|| view.get_item(message), |cut| Ok(cut.into_any()))?;
                shown.append(summary.map_or_else(|| Ok(message.clone()), |summary| joined(&message, summary))?)?;
            }
            Part::Summary(summary) => {
                let message = PyDict::new(py);
                let (head, word) = summary.shape.head(&summary.role);
                message.set_item(name(py, head), word)?;
                message.set_item(name(py, summary.shape.text().0), content_of(py, summary)?)?;
                shown.append(message)?;
            }
        }
    }
    Ok(shown)
}

/// The content of a summary's message.
fn content_of<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Any<'py>> {
    framed((summary.shape, summary.shape.text().1), to_str(py, &summary.text)?, None)
}

/// A copy of a message with the text of a summary as its last block.
fn joined<'py>(message: &Any<'py>, summary: &Summary) -> PyResult<Any<'py>> {
    let (py, joined) = (message.py(), message.cast::<PyDict>()?.copy()?);
    let field = name(py, summary.shape.text().0);
    let blocks = joined.get_item(field)?.map(|blocks| blocks.try_iter()).transpose()?;
    let blocks = blocks.into_iter().flatten().chain(content_of(py, summary)?.try_iter()?);
    joined.set_item(field, PyList::new(py, blocks.collect::<PyResult<Vec<_>>>()?)?)?;
    Ok(joined.into_any())
}

struct MessageMasker<'a, 'py> {
    dicts: &'a Dicts<'py>,
    outline: &'a Outline,
    plan: &'a Plan,
    turns: Option<&'a Turns>,
    texts: PlaceholderTexts<'a, 'py>,
}

impl<'py> MessageMasker<'_, 'py> {
    fn text(&mut self, masked: &Masked) -> PyResult<Bound<'py, PyString>> {
        if masked.form == Form::Placeholder
            && let Some(text) = self.texts.whole()?
        {
            return Ok(text);
        }
        let result = masked.result as usize;
        let facts = facts(self.outline, &self.plan.pairs, self.turns, result);
        if masked.form == Form::Placeholder
            && let Some(text) = self.texts.around_number(&facts)?
        {
            return Ok(text);
        }
        let placeholder = &self.texts.placeholder;
        let facts = placeholder.with_handle(facts, self.outline, self.dicts, result);
        let text = placeholder.render(&masked.form, &facts, || match masked.form {
            Form::Restored { source } => {
                let text = self.dicts.observation(self.outline, source as usize);
                self.outline.cut_of(source as usize).map_or_else(|| text.clone(), |clip| clip.apply(&text))
            }
            Form::Clip(ref counted) => {
                self.dicts.observation(self.outline, counted.source.map_or(result, |source| source as usize))
            }
            _ => self.dicts.observation(self.outline, result),
        });
        to_str(self.dicts.list.py(), &text)
    }

    /// A copy of a message of the task with its text cut, and without images.
    fn cut(&self, cut: &Cut) -> PyResult<Bound<'py, PyDict>> {
        let py = self.dicts.list.py();
        let text = cut.clip.apply(&self.dicts.pieces(self.outline, cut.message).concat());
        let message = self.dicts.message(cut.message)?.copy()?;
        let shape = self.outline.messages[cut.message].shape;
        let (field, frame) = shape.text();
        let (field, text) = (name(py, field), to_str(py, &text)?);
        let content = message.get_item(field)?.map(Bound::cast_into::<PyList>);
        let parts = match &content {
            Some(Ok(parts)) => cut_parts(field, frame, parts, &text)?,
            _ => None,
        };
        message
            .set_item(field, parts.map_or_else(|| framed((shape, frame), text, None), |parts| Ok(parts.into_any()))?)?;
        Ok(message)
    }

    /// A copy of a message with some of its observations masked.
    fn message(&mut self, index: usize, masked: &[Masked]) -> PyResult<Bound<'py, PyDict>> {
        let (dicts, outline) = (self.dicts, self.outline);
        with_texts(dicts, outline, index, masked.iter().map(|one| Ok((one.result as usize, self.text(one)?))))
    }
}

/// A copy of a message with these texts for its results, by their place among them, perhaps without its signed reasoning.
#[pyfunction]
#[pyo3(signature = (message, texts, drops_reasoning=false))]
pub(super) fn masked_message<'py>(
    message: &Bound<'py, PyDict>,
    texts: Vec<(usize, Bound<'py, PyString>)>,
    drops_reasoning: bool,
) -> PyResult<Bound<'py, PyDict>> {
    guarded(|| {
        let mut dicts = Dicts::of(PyList::new(message.py(), [message])?.as_any())?;
        let outline = walk(&mut dicts, &[])?;
        if texts.iter().any(|(place, _)| *place >= outline.results.len()) {
            return Err(PyRuntimeError::new_err("the messages were changed while they were masked"));
        }
        let masked = with_texts(&dicts, &outline, 0, texts.into_iter().map(Ok))?;
        if drops_reasoning { unsigned(&masked) } else { Ok(masked) }
    })
}

/// A copy of a message with these texts for some of its results, in order.
fn with_texts<'py>(
    dicts: &Dicts<'py>,
    outline: &Outline,
    index: usize,
    mut texts: impl Iterator<Item = PyResult<(usize, Bound<'py, PyString>)>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = dicts.list.py();
    let message = dicts.message(index)?.copy()?;
    let shape = outline.messages[index].shape;
    let Path { blocks, fields } = shape.path();
    let frame_of = |result: usize| outline.results[result].frame;
    // The mark in an observation that is masked.
    let mark_in = |result: usize| match &dicts.values[result] {
        Some(value) if frame_of(result).may_hold_marks() => mark_in_parts(value),
        _ => Ok(None),
    };
    let Some(list) = blocks.map(|key| name(py, key)) else {
        if let Some((result, text)) = texts.next().transpose()? {
            match mark_in(result)? {
                Some(mark) => {
                    let references = dicts.values[result].as_ref().filter(|_| frame_of(result).keeps_references());
                    message.set_item(name(py, fields[0][0]), parts_with(shape, &text, Some(mark), references)?)?;
                }
                None => set(dicts, &message, fields, (shape, frame_of(result)), text)?,
            }
        }
        return Ok(message);
    };
    let Some(Ok(blocks)) = message.get_item(list)?.map(Bound::cast_into::<PyList>) else { return Ok(message) };
    let blocks = blocks.get_slice(0, blocks.len());
    for one in texts {
        let (result, text) = one?;
        let block = outline.results[result].block as usize;
        let copy = blocks.get_item(block)?.cast::<PyDict>()?.copy()?;
        set(dicts, &copy, fields, (shape, frame_of(result)), text)?;
        if let Some((field, mark)) = mark_in(result)?
            && copy.get_item(field)?.is_none_or(|own| own.is_none())
        {
            copy.set_item(field, mark)?;
        }
        blocks.set_item(block, copy)?;
    }
    message.set_item(list, blocks)?;
    Ok(message)
}

/// A list of parts with this text; None if no part has text.
fn cut_parts<'py>(
    field: &Bound<'py, PyString>,
    frame: Frame,
    parts: &Bound<'py, PyList>,
    text: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyList>>> {
    let facts = parts.iter().map(|part| part_of(field, frame, &part)).collect::<PyResult<Vec<_>>>()?;
    let Some(cut) = CutParts::of(&facts) else { return Ok(None) };
    let kept = PyList::empty(text.py());
    for index in cut.kept {
        let mut part = parts.get_item(index)?;
        if index == cut.text {
            let copy = part.cast::<PyDict>()?.copy()?;
            copy.set_item(name(text.py(), Key::Text), text)?;
            if let Some(marked) = cut.mark_of.map(|place| parts.get_item(place)).transpose()? {
                let field = if marked.contains(FIELDS[1])? { FIELDS[1] } else { FIELDS[0] };
                copy.set_item(field, marked.get_item(field)?)?;
            }
            part = copy.into_any();
        }
        kept.append(part)?;
    }
    Ok(Some(kept))
}

/// The facts of a part, which was read before.
fn part_of<'py>(field: &Bound<'py, PyString>, frame: Frame, part: &Any<'py>) -> PyResult<PartFacts> {
    let py = part.py();
    let is_marked = part.contains(FIELDS[0])? || part.contains(FIELDS[1])?;
    let (message, first) = (PyDict::new(py), PyDict::new(py));
    // The first part decides on the shape.
    first.set_item(
        name(py, if frame == Frame::TextBlocks { Key::Text } else { Key::Type }),
        if frame == Frame::TextBlocks { "" } else { "text" },
    )?;
    message.set_item(name(py, Key::Role), intern!(py, "user"))?;
    message.set_item(field, PyList::new(py, [first.as_any(), part])?)?;
    let mut dicts = Dicts::of(&PyList::new(py, [message])?.into_any())?;
    let outline = walk(&mut dicts, &[])?;
    let Message { chars, images, .. } = outline.messages[0];
    let has_text = !dicts.pieces(&outline, 0).concat().is_empty();
    Ok(PartFacts { has_text, is_image: !has_text && (chars > 0 || images > 0), is_marked })
}

/// The mark of the last part that has one, of a value that may be a list of parts.
fn mark_in_parts<'py>(value: &Any<'py>) -> PyResult<Option<NamedMark<'py>>> {
    let Ok(parts) = value.cast::<PyList>() else { return Ok(None) };
    Ok(marks_on(parts, LEVELS - 1, &FIELDS)?.pop())
}

/// A list of a part with this text and this mark, and of the references in a list, without their marks.
fn parts_with<'py>(
    shape: Shape,
    text: &Bound<'py, PyString>,
    mark: Option<NamedMark<'py>>,
    references: Option<&Any<'py>>,
) -> PyResult<Any<'py>> {
    let part = PyDict::new(text.py());
    part.set_item("type", shape.part_type())?;
    part.set_item("text", text)?;
    mark.map_or(Ok(()), |(field, mark)| part.set_item(field, mark))?;
    let parts = PyList::new(text.py(), [part])?;
    let Some(Ok(references)) = references.map(Bound::cast::<PyList>) else { return Ok(parts.into_any()) };
    for one in references.iter() {
        let Ok(dict) = one.cast::<PyDict>() else { continue };
        if !dict.get_item(name(text.py(), Key::Type))?.is_some_and(|kind| kind.eq(REFERENCE).unwrap_or(false)) {
            continue;
        }
        let unmarked = dict.copy()?;
        if let Some((field, _)) = marks_within(dict, 0, &FIELDS)?.pop() {
            unmarked.del_item(field)?;
        }
        parts.append(unmarked)?;
    }
    Ok(parts.into_any())
}

/// A copy of what a shell has written with this text as its first, and without the others.
fn streams<'py>(output: &Any<'py>, text: Bound<'py, PyString>) -> PyResult<Any<'py>> {
    let (py, mut text) = (text.py(), Some(text));
    let mut changed = |object: &Any<'py>| -> PyResult<Bound<'py, PyDict>> {
        let copy = object.cast::<PyDict>()?.copy()?;
        for key in STREAMS {
            if copy.get_item(name(py, key))?.is_some_and(|value| value.is_instance_of::<PyString>()) {
                copy.set_item(name(py, key), text.take().unwrap_or_else(|| PyString::new(py, "")))?;
            }
        }
        Ok(copy)
    };
    match output.cast::<PyList>() {
        Ok(list) => {
            Ok(PyList::new(py, list.iter().map(|one| changed(&one)).collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        Err(_) => Ok(changed(output)?.into_any()),
    }
}

/// Sets a nested field of a dict that is ours; containers on the path are copied.
fn set<'py>(
    dicts: &Dicts<'py>,
    dict: &Bound<'py, PyDict>,
    fields: &[&[Key]],
    form: (Shape, Frame),
    text: Bound<'py, PyString>,
) -> PyResult<()> {
    if let ([[field]], (_, Frame::Text)) = (fields, form) {
        return dicts.names.set(dict, *field, text); // mostly: nothing has to be looked up
    }
    let [field, inner @ ..] = fields else { return Ok(()) };
    let (mut field, mut value) = (name(dict.py(), field[0]), None);
    for key in fields[0] {
        let found = dict.get_item(name(dict.py(), *key))?.filter(|value| !value.is_none());
        if found.is_some() {
            (field, value) = (name(dict.py(), *key), found);
            break;
        }
    }
    if inner.is_empty() {
        return dict.set_item(field, framed(form, text, value)?);
    }
    let Some(value) = value else { return Ok(()) };
    let copy = value.cast::<PyDict>()?.copy()?;
    set(dicts, &copy, inner, form, text)?;
    dict.set_item(field, copy)
}

/// A text in its frame.
fn framed<'py>(
    (shape, frame): (Shape, Frame),
    text: Bound<'py, PyString>,
    value: Option<Any<'py>>,
) -> PyResult<Any<'py>> {
    let py = text.py();
    match (frame, &value) {
        (Frame::Streams, Some(value)) => return streams(value, text),
        (Frame::Beside | Frame::BesideJson, Some(_)) => return parts_with(shape, &text, None, value.as_ref()),
        _ => {}
    }
    if let (Frame::Only, Some(Ok(object))) = (frame, value.map(Bound::cast_into::<PyDict>)) {
        let copy = object.copy()?;
        if let Some((key, _)) = object.iter().next() {
            copy.set_item(key, text)?;
        }
        return Ok(copy.into_any());
    }
    frame.wraps().iter().rev().try_fold(text.into_any(), |inner, wrap| match wrap {
        Wrap::List => Ok(PyList::new(py, [inner])?.into_any()),
        Wrap::Member(key) => {
            let object = PyDict::new(py);
            object.set_item(name(py, *key), inner)?;
            Ok(object.into_any())
        }
        Wrap::TextPart => {
            let part = PyDict::new(py);
            part.set_item(name(py, Key::Type), intern!(py, "text"))?;
            part.set_item(name(py, Key::Text), inner)?;
            Ok(part.into_any())
        }
    })
}
