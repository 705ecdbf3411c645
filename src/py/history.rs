//! The append-only session as Python holds it.

use super::RawCosts;
use super::convert::{PyPolicy, bytes_of, costs_of, summary_of, text_of, to_str, transcript_error};
use super::guard::guarded;
use super::store::PyStore;
use crate::history::{Counts, History, Look, MessageCosts, stored_message, stored_moves, write_shown};
use crate::plan::Move;
use crate::store::{self, Store};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

/// Bytes of messages that were let go in a view that is kept.
const MOST_BYTES_KEPT: usize = 2 << 20;

type MoveNumbers = (usize, usize, usize, usize);

fn numbers_of(step: Move) -> MoveNumbers {
    (step.request, step.masked, step.removed, step.written_again)
}

type Change<'py> = (usize, Bound<'py, PyBytes>);

/// See `recede.History`, which is all that calls it.
#[pyclass(name = "History", module = "recede._core")]
pub struct PyHistory {
    history: History,
    store: Option<Py<PyStore>>,
    /// The chunks of the view that are done, and what is open, as they were read last.
    chunks: Vec<Py<PyBytes>>,
    open: Option<Py<PyBytes>>,
}

#[pymethods]
impl PyHistory {
    #[new]
    fn new(policy: &PyPolicy, raw_cost_at_most: usize) -> PyResult<Self> {
        guarded(|| {
            let history = History::new(policy.policy.clone(), raw_cost_at_most);
            Ok(PyHistory { history, store: None, chunks: vec![], open: None })
        })
    }

    fn __len__(&self) -> PyResult<usize> {
        guarded(|| Ok(self.history.len()))
    }

    /// What masking would put in the place of each observation of a message, if that were appended now.
    fn masked_texts<'py>(
        &mut self,
        py: Python<'py>,
        message: &[u8],
        surrogates: bool,
    ) -> PyResult<Vec<Option<Bound<'py, PyString>>>> {
        guarded(|| {
            let texts = self.history.masked_texts(message, surrogates).map_err(|error| transcript_error(py, &error))?;
            texts.iter().map(|text| text_of(py, text.as_deref())).collect()
        })
    }

    #[pyo3(signature = (message, surrogates, costs=None))]
    fn append(&mut self, py: Python<'_>, message: &[u8], surrogates: bool, costs: MessageCosts) -> PyResult<()> {
        guarded(|| {
            let asks = self.history.first_here() > 0;
            let done = self.with(py, asks, |history, store| history.append(message, surrogates, costs, store))?;
            done.map_err(|error| transcript_error(py, &error))?;
            self.open = None;
            Ok(())
        })
    }

    /// The messages of the session that is to begin, and the numbers of its observations.
    fn anew<'py>(&self, py: Python<'py>) -> PyResult<(Vec<Bound<'py, PyBytes>>, Vec<u32>)> {
        guarded(|| {
            let (messages, numbers) = self.history.anew();
            Ok((messages.into_iter().map(|message| PyBytes::new(py, message)).collect(), numbers.to_vec()))
        })
    }

    #[pyo3(signature = (costs=None))]
    fn begin_anew(&mut self, costs: Option<RawCosts>) -> PyResult<()> {
        guarded(|| {
            self.history.begin_anew(costs_of(costs));
            Ok(())
        })
    }

    /// Makes the view that of the history. None; or what a summary is asked for; or how the session begins anew.
    #[pyo3(signature = (summary=None))]
    fn look<'py>(
        &mut self,
        py: Python<'py>,
        summary: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        guarded(|| {
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
        })
    }

    fn chunks<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            if self.open.is_none() {
                let asks = self.history.first_here() > 0;
                let (stand, done, open) = self.with(py, asks, History::chunks).inspect_err(|_| self.chunks.clear())?;
                self.chunks.truncate(stand);
                self.chunks.extend(done.iter().map(|chunk| PyBytes::new(py, chunk).unbind()));
                self.open = Some(PyBytes::new(py, &open).unbind());
            }
            let open = self.open.iter().map(|open| open.clone_ref(py));
            let chunks =
                PyList::new(py, self.chunks.iter().map(|chunk| chunk.clone_ref(py)).chain(open).collect::<Vec<_>>());
            if self.history.bytes_let_go() > MOST_BYTES_KEPT {
                self.history.forget_chunks();
                (self.chunks, self.open) = (vec![], None);
            }
            chunks
        })
    }

    /// Messages that were let go as a view shows them: an array.
    fn settled<'py>(&mut self, py: Python<'py>, start: usize, end: usize) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let mut array = self.with_store(py, |_, store| {
                let mut array = vec![];
                for message in start..end {
                    write_shown(store, message, &mut array)?;
                }
                Ok(array)
            })?;
            match array.first_mut() {
                Some(first) => *first = b'[',
                None => array.push(b'['),
            }
            array.push(b']');
            Ok(PyBytes::new(py, &array))
        })
    }

    fn changes<'py>(&mut self, py: Python<'py>) -> PyResult<Option<(usize, Vec<Change<'py>>)>> {
        guarded(|| {
            let Some((from, changes)) = self.history.changes() else { return Ok(None) };
            if self.history.bytes_let_go() > MOST_BYTES_KEPT {
                self.history.forget_list();
            }
            Ok(Some((from, changes.into_iter().map(|(index, bytes)| (index, PyBytes::new(py, &bytes))).collect())))
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives a list as a Vec")]
    fn restore(
        &mut self,
        py: Python<'_>,
        past: Vec<PyBackedBytes>,
        session: Vec<PyBackedBytes>,
        numbers: Vec<u32>,
    ) -> PyResult<()> {
        guarded(|| {
            let (past, session) = (past.iter().map(|message| &**message), session.iter().map(|message| &**message));
            self.history.restore(past, session, numbers).map_err(|error| transcript_error(py, &error))
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives a list as a Vec")]
    fn restore_stored(
        &mut self,
        py: Python<'_>,
        past: usize,
        later: Vec<PyBackedBytes>,
        session: Vec<PyBackedBytes>,
        numbers: Vec<u32>,
    ) -> PyResult<()> {
        guarded(|| {
            let (later, session) = (later.iter().map(|message| &**message), session.iter().map(|message| &**message));
            let done = self.history.restore_stored(past, later, session, numbers);
            done.map_err(|error| transcript_error(py, &error))
        })
    }

    /// Shows the view again with which the session began anew.
    fn show_again(&mut self, view: &[u8], counts: (usize, usize, usize), moves: Vec<MoveNumbers>) -> PyResult<()> {
        guarded(|| {
            let (messages, chars, masked) = counts;
            let step = |(request, masked, removed, written_again)| Move { request, masked, removed, written_again };
            self.history.show_again(view, Counts { messages, chars, masked }, moves.into_iter().map(step).collect());
            Ok(())
        })
    }

    /// Notes a message that is not of the session any more.
    fn note(&mut self, py: Python<'_>, message: &[u8]) -> PyResult<()> {
        guarded(|| self.history.note(message).map_err(|error| transcript_error(py, &error)))
    }

    /// The first message of the session that is not in the store alone.
    fn first_here(&self) -> PyResult<usize> {
        guarded(|| Ok(self.history.first_here()))
    }

    /// Takes this store for its own, which has all messages, and goes on with what it knows: of how many messages it has
    /// the observations, and how many are in the session.
    fn resume(&mut self, py: Python<'_>, store: Py<PyStore>, tag: &[u8]) -> PyResult<(usize, usize)> {
        guarded(|| {
            let resumed = store.get().with(py, |store| self.history.resume(store, tag))?;
            self.store = Some(store);
            Ok(resumed)
        })
    }

    fn is_full(&self, messages: usize, bytes: usize) -> PyResult<bool> {
        guarded(|| Ok(self.history.is_full(messages, bytes)))
    }

    /// Lets go of what the store has; how many messages of the session are there alone now.
    fn let_go(&mut self, py: Python<'_>, tag: &[u8]) -> PyResult<usize> {
        guarded(|| {
            self.with_store(py, |history, store| history.let_go(store, tag))?;
            Ok(self.history.first_here())
        })
    }

    /// Whether the view is too long to be kept: it would be held for ever.
    fn is_long(&self) -> PyResult<bool> {
        guarded(|| Ok(self.history.bytes_let_go() > MOST_BYTES_KEPT))
    }

    fn counts(&self) -> PyResult<(usize, usize, usize)> {
        guarded(|| {
            let counts = self.history.counts();
            Ok((counts.messages, counts.chars, counts.masked))
        })
    }

    fn totals(&self) -> PyResult<(usize, usize, usize)> {
        guarded(|| Ok(self.history.totals()))
    }

    /// From which message and byte on the view changed last.
    fn changed(&mut self, py: Python<'_>) -> PyResult<Option<(usize, usize)>> {
        guarded(|| {
            if self.history.first_here() == 0 {
                self.chunks(py)?;
            }
            let Some((message, chunks, behind)) = self.history.changed() else { return Ok(None) };
            let before: usize = self.chunks[..chunks].iter().map(|chunk| chunk.bind(py).as_bytes().len()).sum();
            Ok(Some((message, before + behind)))
        })
    }

    /// How the boundary moved: how many moves are in the store alone, and those behind them.
    fn moves(&self) -> PyResult<(usize, Vec<MoveNumbers>)> {
        guarded(|| {
            let (stored, newest) = self.history.moves();
            Ok((stored, newest.into_iter().map(numbers_of).collect()))
        })
    }

    fn stored_moves(&mut self, py: Python<'_>, start: usize, end: usize) -> PyResult<Vec<MoveNumbers>> {
        guarded(|| {
            let moves = self.with_store(py, |_, store| stored_moves(store, start..end))?;
            Ok(moves.into_iter().map(numbers_of).collect())
        })
    }

    fn message<'py>(&mut self, py: Python<'py>, message: usize) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            if let Some(data) = self.history.message(message) {
                return Ok(PyBytes::new(py, data));
            }
            let data = self.with_store(py, |_, store| stored_message(store, message))?;
            Ok(PyBytes::new(py, &data))
        })
    }

    fn session_message<'py>(&self, py: Python<'py>, message: usize) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| Ok(PyBytes::new(py, self.history.session_message(message))))
    }

    fn number_of(&mut self, id: &Bound<'_, PyString>) -> PyResult<Option<usize>> {
        guarded(|| {
            let (bytes, asks) = (bytes_of(id), self.history.has_let_go());
            self.with(id.py(), asks, |history, store| history.number_of(&bytes, store))
        })
    }

    fn recall<'py>(&mut self, py: Python<'py>, number: usize) -> PyResult<Option<Bound<'py, PyString>>> {
        guarded(|| {
            let asks = self.history.has_let_go();
            let text = self.with(py, asks, |history, store| history.recall(number, store))?;
            text.map(|text| to_str(py, &text)).transpose()
        })
    }
}

impl PyHistory {
    /// Does something with the history and its store.
    fn with_store<T: Send>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut History, &mut Store) -> store::Result<T> + Send,
    ) -> PyResult<T> {
        let history = &mut self.history;
        let store = self.store.as_ref().ok_or_else(|| PyRuntimeError::new_err("the history has no store"))?;
        store.get().with(py, |store| work(history, store))
    }

    /// Does something that may have to ask the store: what was let go is only there.
    fn with<T: Send>(
        &mut self,
        py: Python<'_>,
        asks_the_store: bool,
        work: impl FnOnce(&mut History, Option<&mut Store>) -> store::Result<T> + Send,
    ) -> PyResult<T> {
        if asks_the_store {
            return self.with_store(py, |history, store| work(history, Some(store)));
        }
        work(&mut self.history, None).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}
