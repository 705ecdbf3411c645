//! The session class for Python: frozen, its state guarded by a lock. No Python code runs while the lock is held.

use super::convert::{PyPolicy, RawCosts, bytes_of, costs_of, summary_of, text_of, to_str, transcript_error};
use super::facts::{MoveNumbers, PyMask, masks_of};
use super::guard::guarded;
use super::store::PyStore;
use super::values::number;
use crate::plan::Move;
use crate::session::{
    Chunks, Counts, Failure, Figures, MessageCosts, RequestTokens, Result, Session, TextFormat, TurnTokens, Update,
    ViewMessage, stored_moves,
};
use crate::store::Store;
use crate::store::file::FileName;
use crate::store::memory::Memory;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use std::sync::{Mutex, MutexGuard, PoisonError};

type PyTexts<'py> = (Bound<'py, PyString>, Bound<'py, PyString>, Bound<'py, PyString>);
/// How many chunks are reused, the closed chunks after them, the open one, and whether to cache them.
type ChunksOf<'py> = (usize, Vec<Bound<'py, PyAny>>, Bound<'py, PyAny>, bool);

/// Called by `recede.History` and the managers of turns only.
#[pyclass(frozen, name = "Session", module = "recede._core")]
pub struct PySession {
    session: Mutex<Session>,
    store: Option<Py<PyStore>>,
}

#[pymethods]
impl PySession {
    #[new]
    #[pyo3(signature = (policy, *, raw_cost_at_most=0, turns=false, calibrates=false, store=None))]
    fn new(
        policy: &PyPolicy,
        raw_cost_at_most: usize,
        turns: bool,
        calibrates: bool,
        store: Option<Py<PyStore>>,
    ) -> PyResult<Self> {
        guarded(|| {
            let text = if turns { TextFormat::Turns } else { TextFormat::Json };
            let session = Session::new(policy.policy.clone(), raw_cost_at_most, text);
            let session = if calibrates { session.calibrating() } else { session };
            Ok(PySession { session: Mutex::new(session), store })
        })
    }

    // Messages

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(|| Ok(self.look(py, |session| if session.is_turns() { session.turn_count() } else { session.len() })))
    }

    /// The placeholder of each observation of a message, or of the observation of a turn, if it were appended now.
    fn masked_texts<'py>(
        &self,
        py: Python<'py>,
        message: &[u8],
        surrogates: bool,
    ) -> PyResult<Vec<Option<Bound<'py, PyString>>>> {
        guarded(|| {
            let texts = self.change(py, |session, _| {
                let is_turns = session.is_turns();
                if is_turns {
                    Ok(vec![session.masked_text(message)])
                } else {
                    session.masked_texts(message, surrogates)
                }
            })?;
            texts.iter().map(|text| text_of(py, text.as_deref())).collect()
        })
    }

    /// Appends a message; returns the first one in memory.
    #[pyo3(signature = (message, surrogates, costs=None))]
    fn append(&self, py: Python<'_>, message: &[u8], surrogates: bool, costs: MessageCosts) -> PyResult<usize> {
        guarded(|| {
            self.change(py, |session, store| {
                session.append(message, surrogates, costs, store)?;
                Ok(session.first_message_in_memory())
            })
        })
    }

    fn message<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let data = self.read(py, |session, store| session.message(index, store))?;
            Ok(PyBytes::new(py, &data))
        })
    }

    /// The text of an observation, by its number or the id of its call.
    fn recall<'py>(&self, observation: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
        guarded(|| {
            let py = observation.py();
            let text = if let Ok(id) = observation.cast::<PyString>() {
                let id = bytes_of(id);
                self.read(py, |session, mut store| match session.number_of(&id, store.as_deref_mut())? {
                    Some(number) => session.recall(number, store),
                    None => Ok(None),
                })?
            } else {
                let number = usize::try_from(number(observation)?).unwrap_or(usize::MAX);
                self.read(py, |session, store| session.recall(number, store))?
            };
            text_of(py, text.as_deref())
        })
    }

    // Views

    /// Makes the view current. Returns None; or ("summary", messages, earlier summary, built-in summary), to be called again
    /// with a summary; or ("texts", texts), to be called again with each and its costs; or ("costs", messages, numbers of their
    /// observations), to be called again with the costs.
    #[pyo3(signature = (summary=None, texts=None, costs=None))]
    fn update_view<'py>(
        &self,
        py: Python<'py>,
        summary: Option<&Bound<'py, PyAny>>,
        texts: Option<Vec<(Bound<'py, PyString>, usize)>>,
        costs: Option<RawCosts>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        guarded(|| {
            let summary = summary_of(summary)?;
            if let Some(texts) = texts {
                let texts: Vec<(Vec<u8>, usize)> = texts.iter().map(|(text, cost)| (bytes_of(text), *cost)).collect();
                self.change(py, |session, _| {
                    session.set_text_costs(texts);
                    Ok(())
                })?;
            }
            if costs.is_some() {
                let costs = costs_of(costs);
                self.change(py, |session, store| session.apply_compaction(costs, store))?;
                return Ok(None);
            }
            let list =
                |messages: Vec<Vec<u8>>| PyList::new(py, messages.iter().map(|message| PyBytes::new(py, message)));
            Ok(Some(match self.change(py, |session, store| session.update_view(&summary, store))? {
                Update::Done => return Ok(None),
                Update::AskSummary(messages, previous, built_in) => {
                    ("summary", list(messages)?, text_of(py, previous.as_deref())?, to_str(py, &built_in)?)
                        .into_pyobject(py)?
                }
                Update::AskTextCosts(texts) => {
                    let texts = texts.iter().map(|text| to_str(py, text)).collect::<PyResult<Vec<_>>>()?;
                    ("texts", texts).into_pyobject(py)?
                }
                Update::AskCosts => {
                    let (messages, numbers) = self.look(py, Session::pending_messages);
                    ("costs", list(messages)?, numbers).into_pyobject(py)?
                }
            }))
        })
    }

    /// The last block of each view has this mark, and no other is sent but those at the boundary, besides so many around them.
    fn mark_newest(&self, py: Python<'_>, value: &[u8], elsewhere: usize) -> PyResult<()> {
        guarded(|| {
            self.change(py, |session, _| {
                session.mark_newest(value, elsewhere);
                Ok(())
            })
        })
    }

    /// Nothing of the view is cached.
    fn forget(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.forget_view(py))
    }

    /// The chunks of the view, or of the turns in the context of the next request. Bytes, or str of turns.
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<ChunksOf<'py>> {
        guarded(|| {
            let (Chunks { reused, closed, open }, keeps, is_turns) = self.change(py, |session, store| {
                let is_turns = session.is_turns();
                if is_turns {
                    session.figures(); // the request is made
                }
                let (chunks, keeps) = keeping(Session::chunks)(session, store)?;
                Ok((chunks, keeps, is_turns))
            })?;
            let read = |chunk: &Vec<u8>| {
                Ok(if is_turns { self.text(py, chunk)?.into_any() } else { PyBytes::new(py, chunk).into_any() })
            };
            let closed = closed.iter().map(read).collect::<PyResult<_>>();
            let read = closed.and_then(|closed| Ok((reused, closed, read(&open)?, keeps)));
            // A damaged text reaches no reader, so none has cached it.
            read.or_else(|error| self.forget_view(py).and(Err(error)))
        })
    }

    /// The changes of the view's list: the first changed message, and from there on each as its index, its bytes, or if it is
    /// masked both; and whether to cache it.
    fn changes<'py>(&self, py: Python<'py>) -> PyResult<(usize, Bound<'py, PyList>, bool)> {
        guarded(|| {
            let ((from, items), keeps) = self.change(py, keeping(Session::changes))?;
            let list = PyList::empty(py);
            for item in items {
                match item {
                    ViewMessage::Appended(index) => list.append(index)?,
                    ViewMessage::Rendered(index, bytes) => list.append((index, PyBytes::new(py, &bytes)))?,
                    ViewMessage::Bytes(bytes) => list.append(PyBytes::new(py, &bytes))?,
                }
            }
            Ok((from, list, keeps))
        })
    }

    /// The first message that changed since this was called last, and the masked results from there on, or from `since` on.
    fn masks<'py>(&self, py: Python<'py>, since: usize) -> PyResult<(usize, Vec<PyMask<'py>>)> {
        guarded(|| {
            let masks = self.change(py, |session, store| session.masks(since, store))?;
            masks_of(py, masks)
        })
    }

    /// Of messages: (characters, turns, orphans), sizes of the view (messages, characters, masked), most recent change
    /// (message, byte), stored moves, moves in memory. Of turns: (summarized, evicted), (masked turns, tokens of all, masked
    /// observations and placeholders), sum of the requests (raw, sent).
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        guarded(|| {
            if self.look(py, Session::is_turns) {
                let (ends, figures, sums) =
                    self.change(py, |session, _| Ok((session.ends(), session.figures(), session.sums())))?;
                let Figures { masked_turns, observation_tokens, masked_tokens, placeholder_tokens, .. } = figures;
                let figures = (masked_turns, observation_tokens, masked_tokens, placeholder_tokens);
                return (ends, figures, (sums.raw, sums.sent)).into_pyobject(py);
            }
            let (totals, counts, changed, (stored, newest)) =
                self.look(py, |session| (session.totals(), session.counts(), session.changed(), session.moves()));
            let Counts { messages, chars, masked } = counts;
            let newest: Vec<MoveNumbers> = newest.into_iter().map(numbers_of).collect();
            (totals, (messages, chars, masked), changed, stored, newest).into_pyobject(py)
        })
    }

    fn stored_moves(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<Vec<MoveNumbers>> {
        guarded(|| {
            let moves = self.read(py, |_, store| match store {
                Some(store) => Ok(stored_moves(store, start..end)?),
                None => Err(Failure::Closed),
            })?;
            Ok(moves.into_iter().map(numbers_of).collect())
        })
    }

    /// The moves of the boundary that are in memory.
    fn newest_moves(&self, py: Python<'_>) -> PyResult<Vec<MoveNumbers>> {
        guarded(|| Ok(self.look(py, |session| session.moves().1).into_iter().map(numbers_of).collect()))
    }

    fn move_count(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(|| Ok(self.look(py, Session::move_count)))
    }

    // What the caller reports of the provider

    fn tell_cold(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.change(py, Session::tell_cold))
    }

    /// A thousand tokens have so many characters, from the next request on.
    fn calibrate(&self, py: Python<'_>, chars: usize) -> PyResult<()> {
        guarded(|| self.change(py, |session, store| session.calibrate(chars, store)))
    }

    fn set_sums(&self, py: Python<'_>, sums: Vec<usize>) -> PyResult<()> {
        guarded(|| self.change(py, |session, store| session.set_sums(sums, store)))
    }

    /// The requests with a cold cache, and the sums.
    fn reports(&self, py: Python<'_>) -> PyResult<(Vec<usize>, Vec<usize>)> {
        guarded(|| Ok(self.look(py, |session| (session.cold_requests(), session.reports().sums.clone()))))
    }

    // Files and stores

    fn first_in_memory(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(|| Ok(self.look(py, Session::first_in_memory)))
    }

    /// Resumes its store, or for a session in memory another one; returns how many messages or turns the session has. The
    /// caller appends the others. None if a store has no snapshot of turns.
    #[pyo3(signature = (options=None, counts=false, evict_after=None, source=None))]
    fn open(
        &self,
        py: Python<'_>,
        options: Option<&[u8]>,
        counts: bool,
        evict_after: Option<(usize, usize)>,
        source: Option<&PyStore>,
    ) -> PyResult<Option<usize>> {
        guarded(|| {
            let Some(source) = source else {
                return self.change(py, |session, store| match store {
                    Some(store) if session.is_turns() => Ok(session.open_turns(store)?.then(|| session.turn_count())),
                    Some(store) => {
                        let (options, evict_after) = (options.unwrap_or_default(), evict_after.unwrap_or_default());
                        session.open(store, options, counts, evict_after).map(Some)
                    }
                    None => Err(Failure::Closed),
                });
            };
            let loaded = source.with_any(py, |source| {
                let source = source.ok_or(Failure::Closed)?;
                let snapshot = Session::snapshot_of(source)?.unwrap_or_default();
                self.held().change(|session| session.load(source, snapshot, counts))
            });
            loaded.map(Some).map_err(|failure| match failure {
                Failure::Store(error) => source.raised(py, &error),
                other => self.raised(py, other),
            })
        })
    }

    /// Drops all but the first messages; False if the session must be rebuilt.
    fn rewind(&self, py: Python<'_>, messages: usize) -> PyResult<bool> {
        guarded(|| self.change(py, |session, store| session.rewind(messages, store)))
    }

    /// The first messages of the session as the bytes of a closed store.
    fn save<'py>(&self, py: Python<'py>, options: &[u8], messages: usize) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let files = Memory::default();
            self.read(py, |session, store| {
                let mut target = Store::open(Box::new(files.clone()))?;
                session.save(&mut target, options, messages, store)?;
                Ok(target.close()?)
            })?;
            Ok(PyBytes::new(py, &files.bytes(FileName::Store).unwrap_or_default()))
        })
    }

    // Turns

    /// Tokens are those of the turn without its observation, of the observation, and of its placeholder.
    #[pyo3(signature = (reasoning, action, observation, timestamp, tokens=None))]
    fn add_turn(
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
            self.change(py, |session, _| {
                session.add_turn((&reasoning, &action, &observation), timestamp, tokens);
                Ok(session.turn_count())
            })
        })
    }

    fn turn<'py>(&self, py: Python<'py>, turn: usize) -> PyResult<Option<(PyTexts<'py>, f64)>> {
        guarded(|| {
            let texts = self.look(py, |session| {
                let ((one, two, three), timestamp) = session.turn(turn)?;
                Some(([one, two, three].map(<[u8]>::to_vec), timestamp))
            });
            texts.map(|(texts, timestamp)| Ok((self.texts_of(py, &texts)?, timestamp))).transpose()
        })
    }

    fn summary_due(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        guarded(|| self.change(py, |session, _| Ok(session.summary_due())))
    }

    /// Replaces the turns up to this one by a summary of so many characters and tokens; None: the due summary failed.
    #[pyo3(signature = (turn=None, chars=0, tokens=0))]
    fn summarized(&self, py: Python<'_>, turn: Option<usize>, chars: usize, tokens: usize) -> PyResult<()> {
        guarded(|| {
            self.change(py, |session, _| {
                match turn {
                    Some(turn) => session.summarize_through(turn, chars, tokens),
                    None => session.summary_failed(),
                }
                Ok(())
            })
        })
    }

    /// Characters of the context that a summary of the turns up to this one replaces.
    fn replaced_chars(&self, py: Python<'_>, turn: usize) -> PyResult<usize> {
        guarded(|| self.change(py, |session, _| Ok(session.replaced_chars(turn))))
    }

    fn masked_turns<'py>(&self, py: Python<'py>, from: usize) -> PyResult<Vec<(usize, Bound<'py, PyString>)>> {
        guarded(|| {
            let masked = self.change(py, |session, _| Ok(session.masked_turns(from)))?;
            masked.into_iter().map(|(turn, text)| Ok((turn, to_str(py, &text)?))).collect()
        })
    }

    /// (raw, sent) of the requests before the turns after the first `start` ones, up to that after turn `end`.
    fn requests(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<Vec<(usize, usize)>> {
        guarded(|| {
            let requests = self.change(py, |session, store| {
                let evicted = session.ends().1;
                let mut requests = match store {
                    Some(store) if start < evicted => Session::stored_requests(store, start, end.min(evicted))?,
                    None if start < evicted => return Err(Failure::Closed),
                    _ => vec![],
                };
                let here = session.requests();
                let range =
                    start.saturating_sub(evicted).min(here.len())..(end.saturating_sub(evicted)).min(here.len());
                requests.extend_from_slice(&here[range]);
                Ok(requests)
            })?;
            Ok(requests.into_iter().map(|RequestTokens { raw, sent }| (raw, sent)).collect())
        })
    }

    /// The texts in a context of evicted turns.
    fn stored_turns<'py>(&self, py: Python<'py>, start: usize, end: usize) -> PyResult<Vec<PyTexts<'py>>> {
        guarded(|| {
            let turns = self.read(py, |session, store| match store {
                Some(store) => Ok(session.stored_turns(store, start, end)?),
                None => Err(Failure::Closed),
            })?;
            turns.iter().map(|texts| self.texts_of(py, texts)).collect()
        })
    }

    /// Masks in the store what the next request masks.
    fn mask_stored(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| {
            self.change(py, |session, store| match store {
                Some(store) => Ok(session.mask_stored(store)?),
                None => Err(Failure::Closed),
            })
        })
    }

    /// Stores a snapshot, and evicts the turns whose rendering is final.
    fn evict_turns(&self, py: Python<'_>, options: &[u8]) -> PyResult<()> {
        guarded(|| {
            self.change(py, |session, store| match store {
                Some(store) => Ok(session.evict_turns(store, options)?),
                None => Err(Failure::Closed),
            })
        })
    }
}

/// The options of the session in a store.
#[pyfunction]
pub fn stored_options<'py>(py: Python<'py>, store: &PyStore) -> PyResult<Option<Bound<'py, PyBytes>>> {
    guarded(|| {
        let snapshot = store.with(py, Session::snapshot_of)?;
        Ok(snapshot.map(|snapshot| PyBytes::new(py, &snapshot.options)))
    })
}

/// What was read of a view, and whether to cache it; if not, the next read is complete.
fn keeping<T>(
    read: impl FnOnce(&mut Session, Option<&mut Store>) -> Result<T>,
) -> impl FnOnce(&mut Session, Option<&mut Store>) -> Result<(T, bool)> {
    |session, store| {
        let done = read(session, store)?;
        let keeps = !session.is_long();
        if !keeps {
            session.forget();
        }
        Ok((done, keeps))
    }
}

fn numbers_of(step: Move) -> MoveNumbers {
    step.numbers().into()
}

impl PySession {
    /// A text, which a damaged store may have made invalid.
    fn text<'py>(&self, py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
        match &self.store {
            Some(store) => store.get().text(py, text),
            None => to_str(py, text),
        }
    }

    fn texts_of<'py>(&self, py: Python<'py>, [one, two, three]: &[Vec<u8>; 3]) -> PyResult<PyTexts<'py>> {
        Ok((self.text(py, one)?, self.text(py, two)?, self.text(py, three)?))
    }

    fn held(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the session alone.
    fn look<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Session) -> T + Send) -> T {
        py.detach(|| work(&self.held()))
    }

    /// Reads the session and its store.
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Session, Option<&mut Store>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let done = match &self.store {
            None => py.detach(|| work(&self.held(), None)),
            Some(store) => store.get().with_any(py, |store| work(&self.held(), store)),
        };
        done.map_err(|failure| self.raised(py, failure))
    }

    /// Changes the session and its store; see [`Session::change`].
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Session, Option<&mut Store>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let done = match &self.store {
            None => py.detach(|| self.held().change(|session| work(session, None))),
            Some(store) => store.get().with_any(py, |store| self.held().change(|session| work(session, store))),
        };
        done.map_err(|failure| self.raised(py, failure))
    }

    fn forget_view(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |session, _| {
            session.forget();
            Ok(())
        })
    }

    fn raised(&self, py: Python<'_>, failure: Failure) -> PyErr {
        match (failure, &self.store) {
            (Failure::Message(error), _) => transcript_error(py, &error),
            (Failure::Store(error), Some(store)) => store.get().raised(py, &error),
            (Failure::Store(error), None) => PyRuntimeError::new_err(error.to_string()),
            (Failure::Closed, Some(store)) => store.get().closed(py),
            (Failure::Closed, None) => PyRuntimeError::new_err("the session has no store"),
            (Failure::Interrupted, _) => PyRuntimeError::new_err(
                "an earlier bug of recede interrupted a change of this session, so that it can only be read: continue with a \
                 new session of its messages, its turns or its store, and report that bug with its message",
            ),
            (Failure::OtherWriter, store) => {
                let path = store.as_ref().map_or(String::new(), |store| store.get().path().display().to_string());
                let words = "has messages that this history did not append: make the history again";
                PyRuntimeError::new_err(format!("{path} {words}"))
            }
        }
    }
}
