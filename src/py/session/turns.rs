//! The session of turns for Python.

use super::shared::{Shared, chunks_of, moves_of};
use crate::py::convert::{PyPolicy, bytes_of, text_of, to_str};
use crate::py::guard::guarded;
use crate::py::named::{NamedTuple, named};
use crate::py::store::PyStore;
use crate::session::{Failure, Figures, RequestTokens, Session, TextFormat, TurnTokens};
use crate::store::Store;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

static TURN_SESSION_STATS: NamedTuple = NamedTuple::new("recede.turns._log", "TurnSessionStats");
static TURN: NamedTuple = NamedTuple::new("recede.turns._turn", "Turn");
static MASKED_TURN: NamedTuple = NamedTuple::new("recede.turns._turn", "MaskedTurn");
static TURN_TOKENS: NamedTuple = NamedTuple::new("recede.turns._report", "TurnTokens");

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
        guarded(|| {
            self.shared.change(py, |session, store| {
                let store = store.ok_or(Failure::Closed)?;
                let is_resumed = session.open_turns(store)?;
                mask_stored(session, Some(store));
                Ok(is_resumed)
            })
        })
    }

    /// Appends a turn, and masks in the store what the next request masks. Tokens are those of the turn without its observation,
    /// of the observation, and of its placeholder.
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
            self.shared.change(py, |session, store| {
                session.add_turn((&reasoning, &action, &observation), timestamp, tokens);
                mask_stored(session, store);
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

    /// A turn in memory as it was appended.
    fn turn<'py>(&self, py: Python<'py>, turn: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        guarded(|| {
            let found = self.shared.look(py, |session| {
                let ((one, two, three), timestamp) = session.turn(turn)?;
                Some(([one, two, three].map(<[u8]>::to_vec), timestamp))
            });
            found.map(|(texts, timestamp)| self.turn_of(py, turn, &texts, timestamp)).transpose()
        })
    }

    /// The turns after the first `start` ones, up to and with `end`, as the context of the next request shows them; without their
    /// times.
    fn shown_turns<'py>(&self, py: Python<'py>, start: usize, end: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        guarded(|| {
            let turns = self.shared.change(py, |session, store| session.shown_turns(start, end, store))?;
            turns.iter().zip(start + 1..).map(|(texts, turn)| self.turn_of(py, turn, texts, 0.0)).collect()
        })
    }

    /// The masked turns in memory, without the first ones.
    fn masked_turns<'py>(&self, py: Python<'py>, from: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        guarded(|| {
            let masked = self.shared.change(py, |session, _| Ok(session.masked_turns(from)))?;
            let made = |(turn, text): &(usize, Vec<u8>)| {
                named!(MASKED_TURN, py, turn = *turn, placeholder = to_str(py, text)?)
            };
            masked.iter().map(made).collect()
        })
    }

    /// The chunks of the turns in the context of the next request; see `Session.chunks`.
    fn chunks<'py>(&self, py: Python<'py>, known: usize) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (chunks, is_kept) = self.shared.change(py, |session, store| {
                session.figures(); // the request is made
                Ok((session.chunks(known, store)?, !session.is_long()))
            })?;
            chunks_of(py, &chunks, is_kept, |chunk| Ok(self.shared.text(py, chunk)?.into_any())).or_else(|error| {
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
            named!(
                TURN_SESSION_STATS,
                py,
                summarized_turns = ends.0,
                masked_turns = masked_turns,
                observation_tokens = observation_tokens,
                masked_tokens = masked_tokens,
                placeholder_tokens = placeholder_tokens,
                raw_tokens = sums.raw,
                sent_tokens = sums.sent
            )
        })
    }

    /// The moves of the boundary since the last eviction.
    fn moves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| moves_of(py, &self.shared.look(py, |session| session.moves_from(0))))
    }

    /// The tokens of the requests before the turns after the first `start` ones, up to that after turn `end`.
    fn requests<'py>(&self, py: Python<'py>, start: usize, end: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        guarded(|| {
            let requests = self.shared.change(py, |session, store| session.requests(start, end, store))?;
            let made = |(RequestTokens { raw, sent }, turn): (&RequestTokens, usize)| {
                named!(TURN_TOKENS, py, turn = turn, raw_tokens = *raw, sent_tokens = *sent)
            };
            requests.iter().zip(start + 1..).map(made).collect()
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

    /// Replaces the turns up to this one by a summary of this many characters and tokens; None: the due summary failed.
    #[pyo3(signature = (turn=None, chars=0, tokens=0))]
    fn summarized(&self, py: Python<'_>, turn: Option<usize>, chars: usize, tokens: usize) -> PyResult<()> {
        guarded(|| {
            self.shared.change(py, |session, store| {
                match turn {
                    Some(turn) => {
                        session.summarize_through(turn, chars, tokens);
                        mask_stored(session, store);
                    }
                    None => session.summary_failed(),
                }
                Ok(())
            })
        })
    }

    // The store

    /// Stores a snapshot, and evicts the turns whose rendering is final.
    fn evict(&self, py: Python<'_>, options: &[u8]) -> PyResult<()> {
        guarded(|| {
            self.shared.change(py, |session, store| Ok(session.evict_turns(store.ok_or(Failure::Closed)?, options)?))
        })
    }
}

impl PyTurnSession {
    fn turn_of<'py>(
        &self,
        py: Python<'py>,
        turn: usize,
        [reasoning, action, observation]: &[Vec<u8>; 3],
        timestamp: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let text = |text| PyResult::Ok(self.shared.text(py, text)?.into_any());
        named!(
            TURN,
            py,
            turn = turn,
            reasoning = text(reasoning)?,
            action = text(action)?,
            observation = text(observation)?,
            timestamp = timestamp
        )
    }
}

/// Masks in the store what the next request masks. The change itself is done, so an error is left to the next one, which repeats
/// this.
fn mask_stored(session: &mut Session, store: Option<&mut Store>) {
    if let Some(store) = store {
        let _ = session.mask_stored(store);
    }
}
