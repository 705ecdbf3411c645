//! The session of turns for Python.

use super::shared::{Shared, moves_of};
use crate::py::convert::{PyPolicy, bytes_of, text_of, to_str};
use crate::py::guard::guarded;
use crate::py::named::{NamedTuple, named};
use crate::py::store::PyStore;
use crate::session::{Failure, Figures, RequestTokens, Session, TurnTokens};
use crate::store::Store;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

static TURN_SESSION_STATS: NamedTuple = NamedTuple::new("recede.turns._turns", "TurnSessionStats");
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
            let session = Session::of_turns(policy.policy.clone());
            Ok(PyTurnSession { shared: Shared::of(session, store) })
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(|| Ok(self.shared.look(py, Session::turn_count)))
    }

    /// Resumes its store; returns how many of its turns are evicted, or None if it has no snapshot of turns. The caller appends the
    /// others.
    fn open(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        guarded(|| {
            self.shared.change(py, |session, store| {
                let store = store.ok_or(Failure::Closed)?;
                let is_resumed = session.open_turns(store)?;
                mask_stored(session, Some(store));
                Ok(is_resumed.then(|| session.evicted_turns()))
            })
        })
    }

    /// Appends a turn: its text in a context without the observation, and that; masks in the store what the next request masks.
    /// Tokens are those of the two, and of the placeholder.
    #[pyo3(signature = (own, observation, tokens=None))]
    fn append(
        &self,
        own: &Bound<'_, PyString>,
        observation: &Bound<'_, PyString>,
        tokens: Option<(usize, usize, usize)>,
    ) -> PyResult<usize> {
        guarded(|| {
            let tokens = tokens.map(|(own, observation, masked)| TurnTokens { own, observation, masked });
            let (own_text, observation) = (bytes_of(own), bytes_of(observation));
            self.shared.change(own.py(), |session, store| {
                session.add_turn(&own_text, &observation, tokens);
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

    /// The evicted turns after the first `start` ones, up to and with `end`, as contexts show them; without their times.
    fn shown_turns<'py>(&self, py: Python<'py>, start: usize, end: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        guarded(|| {
            let turns = self
                .shared
                .read(py, |session, store| Ok(session.shown_turns(start, end, store.ok_or(Failure::Closed)?)?))?;
            let text = |text: &[u8]| PyResult::Ok(self.shared.text(py, text)?.into_any());
            let made = |([reasoning, action, observation], turn): (&[Vec<u8>; 3], usize)| {
                let (reasoning, action, observation) = (text(reasoning)?, text(action)?, text(observation)?);
                named!(
                    TURN,
                    py,
                    turn = turn,
                    reasoning = reasoning,
                    action = action,
                    observation = observation,
                    timestamp = 0.0
                )
            };
            turns.iter().zip(start + 1..).map(made).collect()
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

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (summarized, figures, sums) = self
                .shared
                .change(py, |session, _| Ok((session.summarized_turns(), session.figures(), session.sums())))?;
            let Figures { masked_turns, observation_tokens, masked_tokens, placeholder_tokens, .. } = figures;
            named!(
                TURN_SESSION_STATS,
                py,
                summarized_turns = summarized,
                masked_turns = masked_turns,
                observation_tokens = observation_tokens,
                masked_tokens = masked_tokens,
                placeholder_tokens = placeholder_tokens,
                raw_tokens = sums.raw,
                sent_tokens = sums.sent
            )
        })
    }

    /// The moves of the boundary since this was called last.
    fn new_moves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| moves_of(py, &self.shared.change(py, |session, _| Ok(session.new_turn_moves()))?))
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

    /// Stores a snapshot, and evicts the turns whose rendering is final; returns how many.
    fn evict(&self, py: Python<'_>, options: &[u8]) -> PyResult<usize> {
        guarded(|| {
            self.shared.change(py, |session, store| Ok(session.evict_turns(store.ok_or(Failure::Closed)?, options)?))
        })
    }
}

/// Masks in the store what the next request masks. The change itself is done, so an error is left to the next one, which repeats
/// this.
fn mask_stored(session: &mut Session, store: Option<&mut Store>) {
    if let Some(store) = store {
        let _ = session.mask_stored(store);
    }
}
