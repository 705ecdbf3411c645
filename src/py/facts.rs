//! Sessions of facts for Python: of messages that stay with their owner. Frozen, its state guarded by a lock; no Python code runs
//! while the lock is held.

use super::convert::{PyPolicy, Stopped, bytes_of, to_str, with_text};
use super::dicts::Dicts;
use super::guard::guarded;
use super::marks::{marked_blocks, write_pins};
use super::values::{Any, number};
use super::walk::walk;
use crate::error::Error;
use crate::marks::Marks;
use crate::outline::{Call, Message, Name, Outline, Role, Shape, Span, TextSpan, ToolResult};
use crate::placeholder::Placeholder;
use crate::policy::Policy;
use crate::scan::CALL_CHARS;
use crate::session::{Failure, Mask, ResultPlace, Session, TextFormat};
use crate::shape::{Frame, role_of};
use crate::source::Source;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, PoisonError};

/// More characters mean the same; sums do not overflow.
const MOST_CHARS: usize = 1 << 40;

/// A masked result: message, place among its results, text.
pub type PyMask<'py> = (usize, usize, Bound<'py, PyString>);

/// Numbers as an array in bytes.
type Column<'py> = Bound<'py, PyBytes>;

/// See `BoundaryMove` in Python.
pub type MoveNumbers = (usize, usize, usize, usize);

/// Called by `recede.Masker` only.
#[pyclass(frozen, name = "FactsSession", module = "recede._core")]
pub struct PyFactsSession {
    session: Mutex<Session>,
    policy: Policy,
    /// Whether texts may have dispatch blocks.
    dispatch: bool,
}

#[pymethods]
impl PyFactsSession {
    #[new]
    fn new(policy: &PyPolicy, dispatch: bool) -> PyResult<Self> {
        guarded(|| {
            let policy = policy.policy.clone();
            let session = Mutex::new(Session::new(policy.clone(), 0, TextFormat::Facts));
            Ok(PyFactsSession { session, policy, dispatch })
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(|| self.change(py, |session| Ok(session.len())))
    }

    /// Another one that continues as this one would.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        guarded(|| {
            let session = Mutex::new(self.change(py, |session| Ok(session.fork()))?);
            Ok(PyFactsSession { session, policy: self.policy.clone(), dispatch: self.dispatch })
        })
    }

    /// Appends messages by their facts; returns the places of the results whose texts are to be given.
    fn extend_facts(&self, facts: &Bound<'_, PyList>) -> PyResult<Vec<ResultPlace>> {
        guarded(|| {
            let outline = outline_of_facts(facts, self.dispatch)?;
            self.change(facts.py(), |session| {
                session.extend(&outline, vec![]);
                Ok(session.texts_needed())
            })
        })
    }

    fn give_texts(&self, py: Python<'_>, texts: Vec<(ResultPlace, Bound<'_, PyString>)>) -> PyResult<()> {
        guarded(|| {
            // One at a time: copies of all of them would take their whole memory.
            texts.into_iter().try_for_each(|(place, text)| {
                let text = bytes_of(&text);
                self.change(py, |session| {
                    session.give_text(place, text);
                    Ok(())
                })
            })
        })
    }

    /// Appends messages that are dicts; `first` is the place of the first one in errors.
    fn extend_dicts(&self, messages: &Bound<'_, PyList>, first: usize) -> PyResult<()> {
        guarded(|| {
            let mut dicts = Dicts::of(messages.as_any())?;
            let in_history = |error: Error| Error { message_index: error.message_index.map(|at| at + first), ..error };
            let mut outline = walk(&mut dicts, self.policy.names_lines(), None).map_err(|stopped| match stopped {
                Stopped::Shape(error) => Stopped::Shape(in_history(error)),
                Stopped::Python(_) => stopped,
            })?;
            let placeholder = Placeholder::of(&self.policy);
            let reads_all = self.policy.max_observation_chars.is_some() || !self.policy.keep_matching.0.is_empty();
            let is_needed = |result: &usize| {
                (self.dispatch && dicts.observation_may_hold_dispatch(&outline, *result))
                    || reads_all
                    || placeholder.is_placeholder(&outline, &dicts, *result)
            };
            let needed = (0..outline.results.len()).filter(is_needed);
            let texts = needed.map(|result| (result, dicts.observation(&outline, result))).collect();
            outline.results.iter_mut().for_each(|result| result.may_hold_dispatch = false);
            self.change(messages.py(), |session| {
                session.extend(&outline, texts);
                Ok(())
            })
        })
    }

    /// Keeps the first messages only.
    fn rewind(&self, py: Python<'_>, messages: usize) -> PyResult<()> {
        guarded(|| self.change(py, |session| session.rewind(messages, None).map(drop)))
    }

    /// The first message that changed since this was called last, and from there on the masked results: their messages, their
    /// places, both as arrays of `u32`, and their texts.
    fn masks<'py>(&self, py: Python<'py>) -> PyResult<(usize, Column<'py>, Column<'py>, Vec<Bound<'py, PyString>>)> {
        guarded(|| {
            let (first, masks) = self.change(py, |session| {
                session.update_facts();
                session.masks(usize::MAX, None)
            })?;
            let column = |number: fn(&Mask) -> usize| {
                let bytes: Vec<u8> = masks.iter().flat_map(|mask| (number(mask) as u32).to_ne_bytes()).collect();
                PyBytes::new(py, &bytes)
            };
            let (messages, places) = (column(|((message, _), _)| *message), column(|((_, place), _)| *place));
            Ok((first, messages, places, texts_of(py, &masks)?))
        })
    }

    /// Characters of the view, and of the messages.
    fn sizes(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        guarded(|| self.change(py, |session| Ok((session.counts().chars, session.raw_chars()))))
    }

    /// How many moves the boundary made before the current request; and those from this one on, with that of the request.
    fn moves(&self, py: Python<'_>, first: usize) -> PyResult<(usize, Vec<MoveNumbers>)> {
        guarded(|| {
            self.change(py, |session| {
                let (before, moves) = session.moves_from(first);
                Ok((before, moves.into_iter().map(|step| step.numbers().into()).collect()))
            })
        })
    }

    /// The place of an observation, by its number or the id of its call.
    fn place(&self, observation: &Bound<'_, PyAny>) -> PyResult<Option<ResultPlace>> {
        guarded(|| {
            let py = observation.py();
            if let Ok(id) = observation.cast::<PyString>() {
                let id = bytes_of(id);
                return self.change(py, |session| Ok(session.place_by_id(&id)));
            }
            let number = usize::try_from(number(observation)?).unwrap_or(usize::MAX);
            self.change(py, |session| Ok(session.place(number)))
        })
    }

    /// Pins the boundary in a view of these messages, of which those at `marked` have marks, besides so many elsewhere. Returns
    /// which messages still have marks.
    fn pin(
        &self,
        view: &Bound<'_, PyList>,
        messages: &Bound<'_, PyList>,
        marked: Vec<usize>,
        elsewhere: usize,
    ) -> PyResult<Vec<usize>> {
        guarded(|| {
            let message_at = |message: usize| Ok(messages.get_item(message)?.cast_into::<PyDict>()?);
            let mut marks = Marks { elsewhere, ..Marks::default() };
            for message in marked {
                marks.blocks.extend(marked_blocks(&message_at(message)?, message)?);
            }
            let mut marked: Vec<usize> = marks.blocks.iter().map(|one| one.message).collect();
            marked.dedup();
            let (marks, pins) = self.change(view.py(), |session| Ok(session.pins(marks)))?;
            if let Some(pins) = pins {
                write_pins(view, &marks, pins, message_at)?;
            }
            Ok(marked)
        })
    }

    fn tell_cold(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.change(py, |session| session.tell_cold(None)))
    }
}

impl PyFactsSession {
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Session) -> crate::session::Result<T> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| self.session.lock().unwrap_or_else(PoisonError::into_inner).change(work));
        done.map_err(|failure| match failure {
            Failure::Interrupted => {
                PyRuntimeError::new_err("an earlier bug of recede interrupted a change of this session")
            }
            other => PyRuntimeError::new_err(format!("{other:?}")),
        })
    }
}

/// Masks for Python.
pub fn masks_of(py: Python<'_>, (first, masks): (usize, Vec<Mask>)) -> PyResult<(usize, Vec<PyMask<'_>>)> {
    let texts = texts_of(py, &masks)?.into_iter();
    Ok((first, masks.iter().zip(texts).map(|(((message, place), _), text)| (*message, *place, text)).collect()))
}

/// The texts of masks; placeholders repeat, so there is one object for equal ones.
fn texts_of<'py>(py: Python<'py>, masks: &[Mask]) -> PyResult<Vec<Bound<'py, PyString>>> {
    let mut texts: HashMap<&[u8], Bound<'_, PyString>> = HashMap::new();
    masks
        .iter()
        .map(|(_, text)| {
            Ok(match texts.entry(text) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => new.insert(to_str(py, text)?).clone(),
            })
        })
        .collect()
}

/// Reads the facts of messages.
fn outline_of_facts(list: &Bound<'_, PyList>, dispatch: bool) -> PyResult<Outline> {
    let mut outline = Outline::default();
    for (index, facts) in list.iter().enumerate() {
        let facts = tuple(&facts, "Facts")?;
        let role = text(facts, 0)?.ok_or_else(|| PyTypeError::new_err("facts begin with a role"))?;
        let role = with_text(&role, role_of);
        let (first_call, first_result) = (outline.calls.len() as u32, outline.results.len() as u32);
        let (mut chars, mut images) = (count(facts, 1)?, count(facts, 4)?);
        let mut block = 1 + images as u32;
        for call in items(facts, 2)? {
            let call = tuple(&call, "CallFacts")?;
            let (id, name) = (kept(call, 0, &mut outline)?, interned(call, 1, &mut outline)?);
            let name_chars = text(call, 1)?.map_or(Ok(0), |name| name.len())?;
            chars += CALL_CHARS + name_chars + count(call, 2)?;
            outline.calls.push(Call { id, name, message: index as u32, block });
            block += 1;
        }
        for result in items(facts, 3)? {
            let result = tuple(&result, "ResultFacts")?;
            let (id, name) = (kept(result, 0, &mut outline)?, interned(result, 1, &mut outline)?);
            let (result_chars, result_images) = (count(result, 2)?, count(result, 4)?);
            (chars, images) = (chars + result_chars, images + result_images);
            outline.results.push(ToolResult {
                id,
                name,
                value: Span::default(),
                chars: result_chars,
                newlines: count(result, 3)?.saturating_sub(1),
                message: index as u32,
                block,
                images: result_images as u32,
                first_piece: 0,
                pieces: 0,
                first_byte: 0,
                is_error: flag(result, 5, false)?,
                is_pinned: flag(result, 6, false)?,
                frame: Frame::Text,
                may_hold_dispatch: dispatch && flag(result, 7, true)?,
            });
            block += 1;
        }
        outline.messages.push(Message {
            chars,
            images: images as u32,
            first_call,
            first_result,
            blocks: block,
            role,
            shape: Shape::Facts,
            is_agent_made: role == Role::Assistant,
            ..Message::default()
        });
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
    Ok(text(tuple, place)?.map(|id| with_text(&id, |id| outline.keep(id))))
}

fn interned(tuple: &Bound<'_, PyTuple>, place: usize, outline: &mut Outline) -> PyResult<Name> {
    Ok(text(tuple, place)?.map(|name| with_text(&name, |name| outline.intern(name))))
}
