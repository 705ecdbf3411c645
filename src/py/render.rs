//! The log of turns as Python holds it.

use super::convert::{PyPolicy, bytes_of, text_of, to_str};
use super::guard::guarded;
use super::store::PyStore;
use super::stored;
use crate::render::{Checkpoint, Request, Row, TurnLog, TurnTokens};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyString};

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
    fn new(policy: &PyPolicy) -> PyResult<Self> {
        guarded(|| Ok(PyTurnLog { log: TurnLog::new(policy.policy.clone()), chunks: vec![] }))
    }

    fn __len__(&self) -> PyResult<usize> {
        guarded(|| Ok(self.log.len()))
    }

    fn masked_text<'py>(&self, observation: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyString>>> {
        guarded(|| text_of(observation.py(), self.log.masked_text(&bytes_of(observation)).as_deref()))
    }

    /// Tokens are those of the turn without its observation, of that, and of what masking puts in its place.
    #[pyo3(signature = (reasoning, action, observation, tokens=None))]
    fn add(
        &mut self,
        reasoning: &Bound<'_, PyString>,
        action: &Bound<'_, PyString>,
        observation: &Bound<'_, PyString>,
        tokens: Option<(usize, usize, usize)>,
    ) -> PyResult<()> {
        guarded(|| {
            let tokens = tokens.map(|(own, observation, masked)| TurnTokens { own, observation, masked });
            let [reasoning, action, observation] = [reasoning, action, observation].map(bytes_of);
            self.log.add((&reasoning, &action, &observation), tokens);
            Ok(())
        })
    }

    fn summary_due(&mut self) -> PyResult<Option<usize>> {
        guarded(|| Ok(self.log.summary_due()))
    }

    fn summarize_through(&mut self, turn: usize, chars: usize, tokens: usize) -> PyResult<()> {
        guarded(|| {
            self.log.summarize_through(turn, chars, tokens);
            Ok(())
        })
    }

    /// The context of the next request, behind what stands before its turns, and the text of those that were let go.
    #[pyo3(signature = (before, settled=vec![]))]
    fn context<'py>(
        &mut self,
        py: Python<'py>,
        before: Bound<'py, PyString>,
        settled: Vec<Bound<'py, PyString>>,
    ) -> PyResult<Bound<'py, PyString>> {
        guarded(|| {
            let (stand, done, open) = self.log.chunks();
            self.chunks.truncate(stand);
            for chunk in done {
                self.chunks.push(to_str(py, &chunk)?.unbind());
            }
            let chunks = self.chunks.iter().map(|chunk| chunk.bind(py).clone());
            let parts: Vec<_> = [before].into_iter().chain(settled).chain(chunks).chain([to_str(py, &open)?]).collect();
            Ok(PyString::new(py, "").call_method1("join", (parts,))?.cast_into()?)
        })
    }

    fn masked<'py>(&mut self, py: Python<'py>, start: usize) -> PyResult<Vec<Masked<'py>>> {
        guarded(|| {
            let masked = self.log.masked(start);
            masked.into_iter().map(|(turn, text)| Ok((turn, to_str(py, &text)?))).collect()
        })
    }

    fn turn<'py>(&self, py: Python<'py>, turn: usize) -> PyResult<Option<Turn<'py>>> {
        guarded(|| {
            let Some((reasoning, action, observation)) = self.log.turn(turn) else { return Ok(None) };
            Ok(Some((to_str(py, reasoning)?, to_str(py, action)?, to_str(py, observation)?)))
        })
    }

    fn figures(&mut self) -> PyResult<(usize, usize, usize, usize)> {
        guarded(|| {
            let figures = self.log.figures();
            Ok((figures.masked_turns, figures.observation_tokens, figures.masked_tokens, figures.placeholder_tokens))
        })
    }

    fn requests(&mut self) -> PyResult<Vec<(usize, usize)>> {
        guarded(|| Ok(self.log.requests().iter().map(|request| (request.raw_tokens, request.sent_tokens)).collect()))
    }

    // Where turns are stored elsewhere too

    /// How many turns a summary stands for, and how many were let go.
    fn ends(&self) -> PyResult<(usize, usize)> {
        guarded(|| Ok(self.log.ends()))
    }

    /// The sums of `requests`, but for the next one.
    fn sums(&self) -> PyResult<(usize, usize)> {
        guarded(|| {
            let Request { raw_tokens, sent_tokens } = self.log.sums();
            Ok((raw_tokens, sent_tokens))
        })
    }

    /// The log at the next request, by name, and what is known of the turns since the last time that turns were let go.
    fn checkpoint<'py>(&mut self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyBytes>)> {
        guarded(|| {
            let numbers = Checkpoint::NAMES.into_iter().zip(self.log.checkpoint().numbers()).into_py_dict(py)?;
            let rows: Vec<u8> = self.log.rows().flat_map(|row| row.bytes()).collect();
            Ok((numbers, PyBytes::new(py, &rows)))
        })
    }

    /// Lets go of the turns that no later request shows otherwise.
    fn forget(&mut self) -> PyResult<()> {
        guarded(|| {
            self.log.forget();
            self.chunks.clear();
            Ok(())
        })
    }

    /// A log that goes on from a checkpoint: see `TurnLog::resumed` of the core for the turns, and the rows of these.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives a list as a Vec")]
    fn resumed(policy: &PyPolicy, checkpoint: &Bound<'_, PyDict>, rows: &[u8], turns: Vec<Turn>) -> PyResult<Self> {
        guarded(|| {
            let mut numbers = [0; Checkpoint::NAMES.len()];
            for (number, name) in numbers.iter_mut().zip(Checkpoint::NAMES) {
                *number = checkpoint.as_any().get_item(name)?.extract()?;
            }
            let turns: Vec<[Vec<u8>; 3]> =
                turns.iter().map(|(one, two, three)| [one, two, three].map(bytes_of)).collect();
            let texts = turns.iter().map(|[reasoning, action, observation]| (&**reasoning, &**action, &**observation));
            let log = TurnLog::resumed(policy.policy.clone(), &Checkpoint::of(numbers), Row::all(rows), texts);
            Ok(PyTurnLog { log, chunks: vec![] })
        })
    }

    /// Turns that were let go, as a context shows them: from the one on that is the first of `rows`.
    fn settled_text<'py>(
        &self,
        store: &Bound<'py, PyStore>,
        first: usize,
        rows: &[u8],
    ) -> PyResult<Bound<'py, PyString>> {
        guarded(|| {
            let mut text = vec![];
            for turn in stored::turns(store, first, rows)? {
                self.log.write_settled(turn.number, &turn.row, turn.texts(), &mut text);
            }
            to_str(store.py(), &text)
        })
    }

    /// The same turns, each as reasoning, action, and what is shown as the observation.
    fn settled<'py>(&self, store: &Bound<'py, PyStore>, first: usize, rows: &[u8]) -> PyResult<Vec<Turn<'py>>> {
        guarded(|| {
            let py = store.py();
            let shown = |turn: &stored::StoredTurn| {
                let (reasoning, action, observation) = turn.texts();
                let mut shown = vec![];
                self.log.write_shown(turn.number, &turn.row, observation, &mut shown);
                Ok((to_str(py, reasoning)?, to_str(py, action)?, to_str(py, &shown)?))
            };
            stored::turns(store, first, rows)?.iter().map(shown).collect()
        })
    }
}
