//! The log of turns as Python holds it.

use super::convert::{PyPolicy, bytes_of, text_of, to_str};
use super::raw;
use crate::render::{TurnLog, TurnTokens};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::VecDeque;

/// Contexts that are larger are not kept to be written over.
const MOST_CHARS_KEPT: usize = 16 << 20;

type Masked<'py> = (usize, Bound<'py, PyString>);
type Turn<'py> = (Bound<'py, PyString>, Bound<'py, PyString>, Bound<'py, PyString>);

/// See `recede.ObservationMaskingContextManager`.
#[pyclass(name = "TurnLog", module = "recede._core")]
pub struct PyTurnLog {
    log: TurnLog,
    /// The chunks of the context that are done.
    chunks: Vec<Py<PyString>>,
    /// The last two contexts: the caller has let go of the older one, mostly, so the next is written over it, and what
    /// both begin with is not copied again. docs/decisions/0013-a-context-is-written-over-an-old-one.md has what it gains.
    given: VecDeque<Given>,
}

/// A context that was handed out.
struct Given {
    text: Py<PyString>,
    /// What stands before the turns, and how many characters that and the first chunks have.
    before: Py<PyString>,
    chars: usize,
    chunks: usize,
}

#[pymethods]
impl PyTurnLog {
    #[new]
    fn new(policy: &PyPolicy) -> Self {
        PyTurnLog { log: TurnLog::new(policy.policy.clone()), chunks: vec![], given: VecDeque::new() }
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

    /// The context of the next request, behind what stands before its turns.
    fn context<'py>(&mut self, py: Python<'py>, before: Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
        let (stand, done, open) = self.log.chunks();
        if stand < self.chunks.len() {
            self.chunks.truncate(stand);
            self.given.clear();
        }
        for chunk in done {
            self.chunks.push(to_str(py, &chunk)?.unbind());
        }
        let open = to_str(py, &open)?;
        let old = if self.given.len() < 2 { None } else { self.given.pop_front() };
        let old = old.filter(|old| old.before.bind(py).as_any().eq(&before).unwrap_or(false));
        let (mut chars, chunks) = old.as_ref().map_or((before.len()?, 0), |old| (old.chars, old.chunks));
        let stable = chars;
        let mut behind: Vec<Bound<'py, PyString>> = vec![];
        for chunk in &self.chunks[chunks..] {
            chars += chunk.bind(py).len()?;
            behind.push(chunk.bind(py).clone());
        }
        behind.push(open);
        let text = if let Some(Given { text, .. }) = old {
            raw::rewritten(text.into_bound(py), stable, &behind)?
        } else {
            behind.insert(0, before.clone());
            PyString::new(py, "").call_method1("join", (behind,))?.cast_into()?
        };
        if text.len()? <= MOST_CHARS_KEPT {
            let text = text.clone().unbind();
            self.given.push_back(Given { text, before: before.unbind(), chars, chunks: self.chunks.len() });
        }
        Ok(text)
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
