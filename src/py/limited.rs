//! Histories over their limit: dicts as JSON, and the caller's token counter.

use super::convert::{RawCosts, bytes_of, costs_of, count_request};
use super::dicts::Dicts;
use super::named::{NamedTuple, named};
use crate::plan::Costs;
use crate::session::Question;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

static RECOUNT_REQUEST: NamedTuple = NamedTuple::of_exchange("RecountRequest");

/// The caller's counter, and the error that it raised.
pub struct Asked {
    answer: Option<Py<PyAny>>,
    pub error: Option<PyErr>,
}

impl Asked {
    pub fn of(answer: Option<&Bound<'_, PyAny>>) -> Self {
        Asked { answer: answer.map(|answer| answer.clone().unbind()), error: None }
    }

    /// The costs that are asked for; None if the counter raised an error.
    pub fn costs(&mut self, question: Question) -> Option<Costs> {
        let found = Python::attach(|py| self.answered(py, question));
        found.map_err(|error| self.error = Some(error)).ok().flatten()
    }

    fn answered(&self, py: Python<'_>, question: Question) -> PyResult<Option<Costs>> {
        let Some(answer) = &self.answer else { return Ok(None) };
        match question {
            Question::Texts(texts) => {
                let counted: Vec<(Bound<'_, PyString>, usize)> =
                    answer.bind(py).call1((count_request(py, &texts)?,))?.extract()?;
                let texts = counted.into_iter().map(|(text, cost)| (bytes_of(&text), cost)).collect();
                Ok(Some(Costs { texts, ..Costs::default() }))
            }
            Question::Messages(messages, numbers) => {
                let messages = PyList::new(py, messages.iter().map(|message| PyBytes::new(py, message)))?;
                let asked = named!(RECOUNT_REQUEST, py, messages = messages, numbers = numbers)?;
                let costs: RawCosts = answer.bind(py).call1((asked,))?.extract()?;
                Ok(costs_of(Some(costs)))
            }
        }
    }

    /// The answer to a caller where planning was stopped.
    pub fn raised(self) -> PyErr {
        self.error.unwrap_or_else(|| {
            pyo3::exceptions::PyRuntimeError::new_err(
                "the messages were changed while they were reduced: other threads must leave them as they are until the \
                 call returns",
            )
        })
    }
}

/// The messages as JSON.
pub fn serialized(dicts: &Dicts<'_>) -> PyResult<Vec<Vec<u8>>> {
    let py = dicts.list.py();
    let dumps = py.import("recede._bodies")?.getattr("dumps")?;
    let text = |message: Bound<'_, PyAny>| Ok(bytes_of(dumps.call1((message,))?.cast::<PyString>()?));
    dicts.list.iter().map(text).collect()
}

/// A message that was serialized.
pub fn parsed<'py>(py: Python<'py>, message: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let text = super::convert::to_str(py, message)?;
    py.import("json")?.call_method1("loads", (text,))
}
