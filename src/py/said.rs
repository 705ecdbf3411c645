//! What messages say, part by part, for the question to a model that writes a summary: reasoning is none of it.

use super::convert::{Text, Walked};
use super::dicts::Dicts;
use super::guard::guarded;
use super::values::Any;
use crate::shape::{self, RawCall, RawResult, Sink, Value};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

const IMAGE: &[u8] = b"[image]";

/// `"said"`, `"call"` or `"result"`; of the latter two the tool and the id; the text, the arguments, or what was returned.
type Part<'py> = (&'static str, Option<Any<'py>>, Option<Any<'py>>, Any<'py>);

/// A part whose text is not an object of Python yet, or its value.
struct Found<'py> {
    kind: &'static str,
    name: Option<Any<'py>>,
    id: Option<Any<'py>>,
    value: Option<Any<'py>>,
    text: Vec<u8>,
}

#[derive(Default)]
struct Parts<'py> {
    parts: Vec<Found<'py>>,
    /// The text of the current observation.
    observation: Option<Vec<u8>>,
}

impl Parts<'_> {
    fn add(&mut self, text: &[u8]) {
        match &mut self.observation {
            Some(observation) => observation.extend_from_slice(text),
            None => self.parts.push(Found { kind: "said", name: None, id: None, value: None, text: text.to_vec() }),
        }
    }
}

impl<'py> Sink<Any<'py>> for Parts<'py> {
    fn text(&mut self, text: &Bound<'py, PyString>) -> Walked<()> {
        Any::read(text, |text| self.add(text));
        Ok(())
    }

    fn image(&mut self) {
        self.add(IMAGE);
    }

    fn call(&mut self, call: &RawCall<Any<'py>>) -> Walked<()> {
        let (name, id, value) = (call.name.cloned(), call.id.cloned(), call.arguments.cloned());
        self.parts.push(Found { kind: "call", name, id, value, text: vec![] });
        Ok(())
    }

    fn begin_observation(&mut self) {
        self.observation = Some(vec![]);
    }

    fn result(&mut self, result: &RawResult<Any<'py>>) -> Walked<()> {
        let text = self.observation.take().unwrap_or_default();
        let value = result.value.filter(|_| !result.frame.holds_text()).cloned();
        self.parts.push(Found { kind: "result", name: result.name.cloned(), id: result.id.cloned(), value, text });
        Ok(())
    }
}

/// What each message says.
#[pyfunction]
pub(super) fn said<'py>(messages: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    guarded(|| {
        let (py, dicts) = (messages.py(), Dicts::of(messages)?);
        let of_message = |message: usize| -> Walked<Vec<Part<'py>>> {
            let mut found = Parts::default();
            shape::read::<Any, _>(&dicts.message(message)?, &mut found)?;
            let part = |Found { kind, name, id, value, text }| {
                let value = value.map_or_else(|| Text(text).into_bound_py_any(py), Ok)?;
                Ok((kind, name, id, value))
            };
            Ok(found.parts.into_iter().map(part).collect::<PyResult<_>>()?)
        };
        let said = (0..dicts.list.len()).map(of_message).collect::<Walked<Vec<_>>>()?;
        PyList::new(py, said)
    })
}
