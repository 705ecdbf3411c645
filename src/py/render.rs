//! The log of turns as Python holds it.

use super::convert::{PyPolicy, bytes_of, text_of, to_str};
use crate::render::{TurnLog, TurnTokens};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

type Masked<'py> = (usize, Bound<'py, PyString>);
type Turn<'py> = (Bound<'py, PyString>, Bound<'py, PyString>, Bound<'py, PyString>);

/// See `recede.ObservationMaskingContextManager`.
#[pyclass(name = "TurnLog", module = "recede._core")]
pub struct PyTurnLog {
    log: TurnLog,
    /// The chunks of the context that are done.
    chunks: Vec<Py<PyString>>,
}

#[pymethods]
impl PyTurnLog {
    #[new]
    fn new(policy: &PyPolicy) -> Self {
        PyTurnLog { log: TurnLog::new(policy.policy.clone()), chunks: vec![] }
    }

    fn __len__(&self) -> usize {
        self.log.len()
    }

    fn masked_text<'py>(&self, observation: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyString>>> {
        text_of(observation.py(), self.log.masked_text(&bytes_of(observation)).as_deref())
    }

    /// Tokens are those of the turn without its observation, of that, and of what masking puts in its place.
    #[pyo3(signature = (reasoning, action, observation, tokens=None))]
    fn add(
        &mut self,
        reasoning: &Bound<'_, PyString>,
        action: &Bound<'_, PyString>,
        observation: &Bound<'_, PyString>,
        tokens: Option<(usize, usize, usize)>,
    ) {
        let tokens = tokens.map(|(own, observation, masked)| TurnTokens { own, observation, masked });
        let [reasoning, action, observation] = [reasoning, action, observation].map(bytes_of);
        self.log.add((&reasoning, &action, &observation), tokens);
    }

    fn summary_due(&mut self) -> Option<usize> {
        self.log.summary_due()
    }

    fn summarize_through(&mut self, turn: usize, chars: usize, tokens: usize) {
        self.log.summarize_through(turn, chars, tokens);
    }

    fn chunks<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (stand, done, open) = self.log.chunks();
        self.chunks.truncate(stand);
        for chunk in done {
            self.chunks.push(to_str(py, &chunk)?.unbind());
        }
        let open = to_str(py, &open)?.unbind();
        PyList::new(py, self.chunks.iter().chain([&open]).map(|chunk| chunk.clone_ref(py)))
    }

    fn masked<'py>(&mut self, py: Python<'py>, start: usize) -> PyResult<Vec<Masked<'py>>> {
        let masked = self.log.masked(start);
        masked.into_iter().map(|(turn, text)| Ok((turn, to_str(py, &text)?))).collect()
    }

    fn turn<'py>(&self, py: Python<'py>, turn: usize) -> PyResult<Option<Turn<'py>>> {
        let Some((reasoning, action, observation)) = self.log.turn(turn) else { return Ok(None) };
        Ok(Some((to_str(py, reasoning)?, to_str(py, action)?, to_str(py, observation)?)))
    }

    fn figures(&mut self) -> (usize, usize, usize, usize) {
        let figures = self.log.figures();
        (figures.masked_turns, figures.observation_tokens, figures.masked_tokens, figures.placeholder_tokens)
    }

    fn requests(&mut self) -> Vec<(usize, usize)> {
        self.log.requests().iter().map(|request| (request.raw_tokens, request.sent_tokens)).collect()
    }
}
