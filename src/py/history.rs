//! The append-only session as Python holds it.

use super::RawCosts;
use super::convert::{PyPolicy, bytes_of, costs_of, summary_of, text_of, to_str, transcript_error};
use crate::history::{History, Look, MessageCosts};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

type Change<'py> = (usize, Bound<'py, PyBytes>);

/// See `recede.History`, which is all that calls it.
#[pyclass(name = "History", module = "recede._core")]
pub struct PyHistory {
    history: History,
    /// The chunks of the view that are done, and what is open, as they were read last.
    chunks: Vec<Py<PyBytes>>,
    open: Option<Py<PyBytes>>,
}

#[pymethods]
impl PyHistory {
    #[new]
    fn new(policy: &PyPolicy, raw_cost_at_most: usize) -> Self {
        PyHistory { history: History::new(policy.policy.clone(), raw_cost_at_most), chunks: vec![], open: None }
    }

    fn __len__(&self) -> usize {
        self.history.len()
    }

    /// What masking would put in the place of each observation of a message, if that were appended now.
    fn masked_texts<'py>(
        &mut self,
        py: Python<'py>,
        message: &[u8],
        surrogates: bool,
    ) -> PyResult<Vec<Option<Bound<'py, PyString>>>> {
        let texts = self.history.masked_texts(message, surrogates).map_err(|error| transcript_error(py, &error))?;
        texts.iter().map(|text| text_of(py, text.as_deref())).collect()
    }

    #[pyo3(signature = (message, surrogates, costs=None))]
    fn append(&mut self, py: Python<'_>, message: &[u8], surrogates: bool, costs: MessageCosts) -> PyResult<()> {
        self.history.append(message, surrogates, costs).map_err(|error| transcript_error(py, &error))?;
        self.open = None;
        Ok(())
    }

    /// The messages of the session that is to begin, and the numbers of its observations.
    fn anew<'py>(&self, py: Python<'py>) -> (Vec<Bound<'py, PyBytes>>, Vec<u32>) {
        let (messages, numbers) = self.history.anew();
        (messages.into_iter().map(|message| PyBytes::new(py, message)).collect(), numbers.to_vec())
    }

    #[pyo3(signature = (costs=None))]
    fn begin_anew(&mut self, costs: Option<RawCosts>) {
        self.history.begin_anew(costs_of(costs));
    }

    /// Makes the view that of the history. None; or what a summary is asked for; or how the session begins anew.
    #[pyo3(signature = (summary=None))]
    fn look<'py>(
        &mut self,
        py: Python<'py>,
        summary: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let answer = match self.history.look(&summary_of(summary)?) {
            Look::Ready => return Ok(None),
            Look::AskSummary(dropped, previous, built_in) => {
                ("ask", dropped, text_of(py, previous.as_deref())?, to_str(py, &built_in)?).into_pyobject(py)?
            }
            Look::Summarized(kept, place, message) => {
                ("anew", kept, place, PyBytes::new(py, &message)).into_pyobject(py)?
            }
        };
        self.open = None;
        Ok(Some(answer))
    }

    fn chunks<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        if self.open.is_none() {
            let (stand, done, open) = self.history.chunks();
            self.chunks.truncate(stand);
            self.chunks.extend(done.iter().map(|chunk| PyBytes::new(py, chunk).unbind()));
            self.open = Some(PyBytes::new(py, &open).unbind());
        }
        let open = self.open.iter().map(|open| open.clone_ref(py));
        PyList::new(py, self.chunks.iter().map(|chunk| chunk.clone_ref(py)).chain(open).collect::<Vec<_>>())
    }

    fn changes<'py>(&mut self, py: Python<'py>) -> Option<(usize, Vec<Change<'py>>)> {
        let (from, changes) = self.history.changes()?;
        Some((from, changes.into_iter().map(|(index, bytes)| (index, PyBytes::new(py, &bytes))).collect()))
    }

    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives a list as a Vec")]
    fn restore(
        &mut self,
        py: Python<'_>,
        past: Vec<PyBackedBytes>,
        session: Vec<PyBackedBytes>,
        numbers: Vec<u32>,
    ) -> PyResult<()> {
        let (past, session) = (past.iter().map(|message| &**message), session.iter().map(|message| &**message));
        self.history.restore(past, session, numbers).map_err(|error| transcript_error(py, &error))
    }

    fn counts(&self) -> (usize, usize, usize) {
        let counts = self.history.counts();
        (counts.messages, counts.chars, counts.masked)
    }

    fn totals(&self) -> (usize, usize, usize) {
        self.history.totals()
    }

    /// From which message and byte on the view changed last.
    fn changed(&mut self, py: Python<'_>) -> PyResult<Option<(usize, usize)>> {
        self.chunks(py)?;
        let Some((message, chunks, behind)) = self.history.changed() else { return Ok(None) };
        let before: usize = self.chunks[..chunks].iter().map(|chunk| chunk.bind(py).as_bytes().len()).sum();
        Ok(Some((message, before + behind)))
    }

    fn moves(&self) -> Vec<(usize, usize, usize, usize)> {
        let moves = self.history.moves();
        moves.into_iter().map(|step| (step.request, step.masked, step.removed, step.written_again)).collect()
    }

    fn message<'py>(&self, py: Python<'py>, message: usize) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.history.message(message))
    }

    fn session_message<'py>(&self, py: Python<'py>, message: usize) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.history.session_message(message))
    }

    fn number_of(&self, id: &Bound<'_, PyString>) -> Option<usize> {
        self.history.number_of(&bytes_of(id))
    }

    fn recall<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Option<Bound<'py, PyString>>> {
        self.history.recall(number).map(|text| to_str(py, &text)).transpose()
    }
}
