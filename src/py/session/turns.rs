//! The session of turns for Python.

use super::shared::{MoveNumbers, Shared, numbers_of};
use crate::py::convert::{PyPolicy, bytes_of, field_of, text_of, to_str};
use crate::py::guard::guarded;
use crate::py::named::NamedTuple;
use crate::py::store::PyStore;
use crate::session::{Chunks, Failure, Figures, RequestTokens, Session, TextFormat, TurnTokens};
use pyo3::prelude::*;
use pyo3::types::PyString;

type PyTexts<'py> = (Bound<'py, PyString>, Bound<'py, PyString>, Bound<'py, PyString>);

static TURN_SESSION_STATS: NamedTuple = NamedTuple::new("recede.turns._log", "TurnSessionStats");

/// Called by the managers of turns only.
#[pyclass(frozen, name = "TurnSession", module = "recede._core")]
pub struct PyTurnSession {
    shared: Shared,
}

#[pymethods]
impl PyTurnSession {
    #[new]
    #[pyo3(signature = (policy, store=None))]
    fn new(policy: &PyPolicy, store: Option<Py<PyStore>>) -> PyResult<Self> {
        guarded(|| {
            let session = Session::new(policy.policy.clone(), 0, TextFormat::Turns);
            Ok(PyTurnSession { shared: Shared::of(session, store) })
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(|| Ok(self.shared.look(py, Session::turn_count)))
    }

    /// Resumes its store; False if that has no snapshot of turns. The caller appends the others.
    fn open(&self, py: Python<'_>) -> PyResult<bool> {
        guarded(|| self.shared.change(py, |session, store| Ok(session.open_turns(store.ok_or(Failure::Closed)?)?)))
    }

    /// Tokens are those of the turn without its observation, of the observation, and of its placeholder.
    #[pyo3(signature = (reasoning, action, observation, timestamp, tokens=None))]
    fn append(
        &self,
        reasoning: &Bound<'_, PyString>,
        action: &Bound<'_, PyString>,
        observation: &Bound<'_, PyString>,
        timestamp: f64,
        tokens: Option<(usize, usize, usize)>,
    ) -> PyResult<usize> {
        guarded(|| {
            let py = reasoning.py();
            let tokens = tokens.map(|(own, observation, masked)| TurnTokens { own, observation, masked });
            let [reasoning, action, observation] = [reasoning, action, observation].map(bytes_of);
            self.shared.change(py, |session, _| {
                session.add_turn((&reasoning, &action, &observation), timestamp, tokens);
                Ok(session.turn_count())
            })
        })
    }

    /// The placeholder of an observation, if it were appended now.
    fn masked_text<'py>(&self, observation: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyString>>> {
        guarded(|| {
            let (py, observation) = (observation.py(), bytes_of(observation));
            text_of(py, self.shared.look(py, |session| session.masked_text(&observation)).as_deref())
        })
    }

    /// A turn in memory as it was appended, with its timestamp.
    fn turn<'py>(&self, py: Python<'py>, turn: usize) -> PyResult<Option<(PyTexts<'py>, f64)>> {
        guarded(|| {
            let texts = self.shared.look(py, |session| {
                let ((one, two, three), timestamp) = session.turn(turn)?;
                Some(([one, two, three].map(<[u8]>::to_vec), timestamp))
            });
            texts.map(|(texts, timestamp)| Ok((self.texts_of(py, &texts)?, timestamp))).transpose()
        })
    }

    /// The texts in the context of the next request of the turns after the first `start` ones, up to and with `end`.
    fn shown_turns<'py>(&self, py: Python<'py>, start: usize, end: usize) -> PyResult<Vec<PyTexts<'py>>> {
        guarded(|| {
            let turns = self.shared.change(py, |session, store| session.shown_turns(start, end, store))?;
            turns.iter().map(|texts| self.texts_of(py, texts)).collect()
        })
    }

    /// The masked turns in memory after the first so many, and their placeholders.
    fn masked_turns<'py>(&self, py: Python<'py>, from: usize) -> PyResult<Vec<(usize, Bound<'py, PyString>)>> {
        guarded(|| {
            let masked = self.shared.change(py, |session, _| Ok(session.masked_turns(from)))?;
            masked.into_iter().map(|(turn, text)| Ok((turn, to_str(py, &text)?))).collect()
        })
    }

    /// The chunks of the turns in the context of the next request; see `Session.chunks`.
    #[expect(clippy::type_complexity, reason = "as Python takes it")]
    fn chunks<'py>(
        &self,
        py: Python<'py>,
        known: usize,
    ) -> PyResult<(usize, Vec<Bound<'py, PyString>>, Bound<'py, PyString>, bool)> {
        guarded(|| {
            let (Chunks { reused, closed, open }, keeps) = self.shared.change(py, |session, store| {
                session.figures(); // the request is made
                Ok((session.chunks(known, store)?, !session.is_long()))
            })?;
            let closed = closed.iter().map(|chunk| self.shared.text(py, chunk)).collect::<PyResult<_>>();
            let read = closed.and_then(|closed| Ok((reused, closed, self.shared.text(py, &open)?, keeps)));
            read.or_else(|error| {
                // A damaged text reaches no reader, so none has cached it.
                self.shared.change(py, |session, _| {
                    session.forget_chunks();
                    Ok(())
                })?;
                Err(error)
            })
        })
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (ends, figures, sums) =
                self.shared.change(py, |session, _| Ok((session.ends(), session.figures(), session.sums())))?;
            let Figures { masked_turns, observation_tokens, masked_tokens, placeholder_tokens, .. } = figures;
            let fields = [
                ("summarized_turns", field_of(py, ends.0)?),
                ("masked_turns", field_of(py, masked_turns)?),
                ("observation_tokens", field_of(py, observation_tokens)?),
                ("masked_tokens", field_of(py, masked_tokens)?),
                ("placeholder_tokens", field_of(py, placeholder_tokens)?),
                ("raw_tokens", field_of(py, sums.raw)?),
                ("sent_tokens", field_of(py, sums.sent)?),
            ];
            TURN_SESSION_STATS.make(py, &fields)
        })
    }

    /// The moves of the boundary since the last eviction.
    fn moves(&self, py: Python<'_>) -> PyResult<Vec<MoveNumbers>> {
        guarded(|| Ok(numbers_of(self.shared.look(py, |session| session.moves_from(0).1))))
    }

    /// (raw, sent) of the requests before the turns after the first `start` ones, up to that after turn `end`.
    fn requests(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<Vec<(usize, usize)>> {
        guarded(|| {
            let requests = self.shared.change(py, |session, store| session.requests(start, end, store))?;
            Ok(requests.into_iter().map(|RequestTokens { raw, sent }| (raw, sent)).collect())
        })
    }

    // Summaries

    fn summary_due(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        guarded(|| self.shared.change(py, |session, _| Ok(session.summary_due())))
    }

    /// Characters of the context that a summary of the turns up to this one replaces.
    fn replaced_chars(&self, py: Python<'_>, turn: usize) -> PyResult<usize> {
        guarded(|| self.shared.change(py, |session, _| Ok(session.replaced_chars(turn))))
    }

    /// Replaces the turns up to this one by a summary of so many characters and tokens; None: the due summary failed.
    #[pyo3(signature = (turn=None, chars=0, tokens=0))]
    fn summarized(&self, py: Python<'_>, turn: Option<usize>, chars: usize, tokens: usize) -> PyResult<()> {
        guarded(|| {
            self.shared.change(py, |session, _| {
                match turn {
                    Some(turn) => session.summarize_through(turn, chars, tokens),
                    None => session.summary_failed(),
                }
                Ok(())
            })
        })
    }

    // The store

    /// Masks in the store what the next request masks.
    fn mask_stored(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.shared.change(py, |session, store| Ok(session.mask_stored(store.ok_or(Failure::Closed)?)?)))
    }

    /// Stores a snapshot, and evicts the turns whose rendering is final.
    fn evict(&self, py: Python<'_>, options: &[u8]) -> PyResult<()> {
        guarded(|| {
            self.shared.change(py, |session, store| Ok(session.evict_turns(store.ok_or(Failure::Closed)?, options)?))
        })
    }
}

impl PyTurnSession {
    fn texts_of<'py>(&self, py: Python<'py>, [one, two, three]: &[Vec<u8>; 3]) -> PyResult<PyTexts<'py>> {
        let text = |text| self.shared.text(py, text);
        Ok((text(one)?, text(two)?, text(three)?))
    }
}
