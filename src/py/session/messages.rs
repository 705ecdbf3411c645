//! The session of messages for Python.

use super::shared::{Observation, Shared, chunks_of, moves_of, texts_of};
use crate::py::convert::{
    PyPolicy, RawCosts, bytes_of, costs_of, count_request, summary_of, summary_request, text_of, to_str,
};
use crate::py::guard::guarded;
use crate::py::named::{NamedTuple, named};
use crate::py::reduction::unmasked_of;
use crate::py::store::PyStore;
use crate::py::values::Any;
use crate::session::{Failure, MessageCosts, Session, TextFormat, TextsToCount, Update, ViewMessage};
use crate::store::Store;
use crate::store::file::FileName;
use crate::store::memory::Memory;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

/// The text of an observation after a cut, and its placeholder.
type PyTextsToCount<'py> = (Option<Bound<'py, PyString>>, Option<Bound<'py, PyString>>);

static SESSION_STATS: NamedTuple = NamedTuple::new("recede.session._stats", "SessionStats");
static RECOUNT_REQUEST: NamedTuple = NamedTuple::of_exchange("RecountRequest");
static CHANGES: NamedTuple = NamedTuple::of_exchange("Changes");
static RENDERED: NamedTuple = NamedTuple::of_exchange("Rendered");
static MASKS: NamedTuple = NamedTuple::new("recede.reduction._masks", "Masks");
static MASK: NamedTuple = NamedTuple::new("recede.reduction._masks", "Mask");

/// Called by `recede.History` only.
#[pyclass(frozen, name = "Session", module = "recede._core")]
pub struct PySession {
    shared: Shared,
}

#[pymethods]
impl PySession {
    #[new]
    #[pyo3(signature = (policy, *, raw_cost_at_most=0, calibrates=false, store=None))]
    fn new(policy: &PyPolicy, raw_cost_at_most: usize, calibrates: bool, store: Option<Py<PyStore>>) -> PyResult<Self> {
        guarded(|| {
            let session = Session::new(policy.policy.clone(), raw_cost_at_most, TextFormat::Json);
            let session = if calibrates { session.calibrating() } else { session };
            Ok(PySession { shared: Shared::of(session, store) })
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(|| Ok(self.shared.look(py, Session::len)))
    }

    /// Resumes its store, or for a session in memory another one; returns how many messages the session has. The caller
    /// appends the others.
    #[pyo3(signature = (options=None, counts=false, evict_after=None, source=None))]
    fn open(
        &self,
        py: Python<'_>,
        options: Option<&[u8]>,
        counts: bool,
        evict_after: Option<(usize, usize)>,
        source: Option<&PyStore>,
    ) -> PyResult<usize> {
        guarded(|| {
            let Some(source) = source else {
                let (options, evict_after) = (options.unwrap_or_default(), evict_after.unwrap_or_default());
                return self.shared.change(py, |session, store| {
                    session.open(store.ok_or(Failure::Closed)?, options, counts, evict_after)
                });
            };
            let loaded = source.with_any(py, |source| {
                let source = source.ok_or(Failure::Closed)?;
                let snapshot = Session::snapshot_of(source)?.unwrap_or_default();
                self.shared.held().change(|session| session.load(source, snapshot, counts))
            });
            loaded.map_err(|failure| match failure {
                Failure::Store(error) => source.raised(py, &error),
                other => self.shared.raised(py, other),
            })
        })
    }

    /// Texts to count of each observation of a message, if it were appended now: after a cut, and the placeholder; None if its costs are
    /// no longer needed.
    fn texts_to_count<'py>(
        &self,
        py: Python<'py>,
        message: &[u8],
        surrogates: bool,
    ) -> PyResult<Option<Vec<PyTextsToCount<'py>>>> {
        guarded(|| {
            let texts = self.shared.change(py, |session, _| {
                let is_needed = session.first_in_memory() == 0; // after an eviction no view is raw again
                is_needed.then(|| session.texts_to_count(message, surrogates)).transpose()
            })?;
            let both =
                |(cut, masked): &TextsToCount| Ok((text_of(py, cut.as_deref())?, text_of(py, masked.as_deref())?));
            texts.map(|texts| texts.iter().map(both).collect()).transpose()
        })
    }

    /// Appends a message, with its costs and those of its results as a limit cuts them; returns the first one in memory,
    /// and the new moves of the boundary.
    #[pyo3(signature = (message, surrogates, costs=None, texts=None))]
    fn append<'py>(
        &self,
        py: Python<'py>,
        message: &[u8],
        surrogates: bool,
        costs: MessageCosts,
        texts: Option<Vec<(Bound<'py, PyString>, usize)>>,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        guarded(|| {
            let texts = texts.unwrap_or_default().into_iter();
            let texts: Vec<_> = texts.map(|(text, cost)| (bytes_of(&text), cost)).collect();
            let (first, moves) = self.shared.change(py, |session, mut store| {
                if !texts.is_empty() {
                    session.set_text_costs(texts);
                }
                session.append(message, surrogates, costs, store.as_deref_mut())?;
                Ok((session.first_message_in_memory(), session.new_moves(store)?))
            })?;
            Ok((first, moves_of(py, &moves)?))
        })
    }

    /// Takes reports of the provider: new sums, how many characters a thousand tokens have, that the cache is cold.
    #[pyo3(signature = (sums=None, calibrated_chars=None, is_cold=false))]
    fn report(
        &self,
        py: Python<'_>,
        sums: Option<Vec<usize>>,
        calibrated_chars: Option<usize>,
        is_cold: bool,
    ) -> PyResult<()> {
        guarded(|| self.shared.change(py, |session, store| session.report(sums, calibrated_chars, is_cold, store)))
    }

    /// Drops all but the first messages; False if the session must be rebuilt.
    fn rewind(&self, py: Python<'_>, messages: usize) -> PyResult<bool> {
        guarded(|| self.shared.change(py, |session, store| session.rewind(messages, store)))
    }

    /// The first messages of the session as the bytes of a closed store.
    fn save<'py>(&self, py: Python<'py>, options: &[u8], messages: usize) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let files = Memory::default();
            self.shared.read(py, |session, store| {
                let mut target = Store::open(Box::new(files.clone()))?;
                target.hold();
                session.save(&mut target, options, messages, store)?;
                Ok(target.close()?)
            })?;
            Ok(PyBytes::new(py, &files.bytes(FileName::Store).unwrap_or_default()))
        })
    }

    // What was appended

    fn message<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let data = self.shared.read(py, |session, store| session.message(index, store))?;
            Ok(PyBytes::new(py, &data))
        })
    }

    /// The text of an observation, by its number, its handle or the id of its call; and how many images it has.
    fn recall<'py>(&self, observation: &Any<'py>) -> PyResult<Option<(Bound<'py, PyString>, usize)>> {
        guarded(|| {
            let (py, observation) = (observation.py(), Observation::of(observation)?);
            let found = self.shared.read(py, |session, mut store| {
                let number = match observation {
                    Observation::Number(number) => Some(number),
                    Observation::Id(id) => match session.number_of_handle(&id, store.as_deref_mut())? {
                        None => session.number_of(&id, store.as_deref_mut())?,
                        number => number,
                    },
                };
                number.map_or(Ok(None), |number| session.recall(number, store))
            })?;
            found.map(|(text, images)| Ok((to_str(py, &text)?, images))).transpose()
        })
    }

    // Views

    /// Makes the view current. Returns the new moves of the boundary; or a `SummaryRequest`, to be called again with a summary; or a
    /// `CountRequest`, to be called again with each text and its costs; or a `RecountRequest`, to be called again with the costs. With
    /// a mark, the last block of each view has that, no other is sent but those at the boundary, and this many are around the messages.
    #[pyo3(signature = (summary=None, texts=None, costs=None, mark=None))]
    fn update_view<'py>(
        &self,
        py: Python<'py>,
        summary: Option<&Any<'py>>,
        texts: Option<Vec<(Bound<'py, PyString>, usize)>>,
        costs: Option<RawCosts>,
        mark: Option<(Vec<u8>, usize)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let summary = summary_of(summary)?;
            let texts = texts.unwrap_or_default();
            let texts: Vec<(Vec<u8>, usize)> = texts.iter().map(|(text, cost)| (bytes_of(text), *cost)).collect();
            let costs = costs_of(costs);
            let (update, moves) = self.shared.change(py, |session, mut store| {
                if let Some((value, elsewhere)) = mark {
                    session.mark_newest(value, elsewhere);
                }
                if !texts.is_empty() {
                    session.set_text_costs(texts);
                }
                let update = match costs {
                    None => session.update_view(&summary, store.as_deref_mut())?,
                    costs => session.apply_compaction(costs, store.as_deref_mut()).map(|()| Update::Done)?,
                };
                let is_done = matches!(update, Update::Done);
                Ok((update, if is_done { session.new_moves(store)? } else { vec![] }))
            })?;
            let list =
                |messages: Vec<Vec<u8>>| PyList::new(py, messages.iter().map(|message| PyBytes::new(py, message)));
            match update {
                Update::Done => Ok(moves_of(py, &moves)?.into_any()),
                Update::AskSummary(messages, previous, built_in) => {
                    summary_request(list(messages)?.into_any(), previous.as_deref(), &built_in)
                }
                Update::AskTextCosts(texts) => count_request(py, &texts),
                Update::AskCosts => {
                    let (messages, numbers) = self.shared.look(py, Session::pending_messages);
                    named!(RECOUNT_REQUEST, py, messages = list(messages)?, numbers = numbers)
                }
            }
        })
    }

    /// The chunks of the view, for a reader that has this many of the closed ones.
    fn chunks<'py>(&self, py: Python<'py>, known: usize) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (chunks, is_kept) =
                self.shared.change(py, |session, store| Ok((session.chunks(known, store)?, !session.is_long())))?;
            chunks_of(py, &chunks, is_kept, |chunk| Ok(PyBytes::new(py, chunk).into_any()))
        })
    }

    /// The changes of the view's list, for a reader that has this many of its messages.
    fn changes<'py>(&self, py: Python<'py>, known: usize) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let ((first, items), is_kept) =
                self.shared.change(py, |session, store| Ok((session.changes(known, store)?, !session.is_long())))?;
            let list = PyList::empty(py);
            for item in items {
                match item {
                    ViewMessage::Appended(index) => list.append(index)?,
                    ViewMessage::Rendered(index, bytes) => {
                        list.append(named!(RENDERED, py, message_index = index, data = PyBytes::new(py, &bytes))?)?;
                    }
                    ViewMessage::Bytes(bytes) => list.append(PyBytes::new(py, &bytes))?,
                }
            }
            named!(CHANGES, py, first = first, messages = list, is_kept = is_kept)
        })
    }

    /// The first message that changed since this was called last, and the masked results from there on, or from `since` on.
    fn masks<'py>(&self, py: Python<'py>, since: usize) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (first, masks) = self.shared.change(py, |session, store| session.masks(since, store))?;
            let list = PyList::empty(py);
            for (((message, place), _), text) in masks.iter().zip(texts_of(py, &masks)?) {
                list.append(named!(MASK, py, message_index = *message, result_index = *place, text = text)?)?;
            }
            named!(MASKS, py, first_changed = first, masks = list)
        })
    }

    // Figures

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (evicted, totals, counts, changed, moves, reports, (observations, unmasked), needs) =
                self.shared.look(py, |session| {
                    let reports =
                        (session.cold_requests(), session.reports().sums.clone(), session.provider().to_owned());
                    (
                        session.first_in_memory(),
                        session.totals(),
                        session.counts(),
                        session.changed(),
                        session.move_counts(),
                        reports,
                        session.unmasked(),
                        session.needs(),
                    )
                });
            named!(
                SESSION_STATS,
                py,
                evicted_messages = evicted,
                raw_chars = totals.0,
                turns = totals.1,
                orphans = totals.2,
                view_messages = counts.messages,
                view_chars = counts.chars,
                masked_count = counts.masked,
                observations = observations,
                unmasked = unmasked_of(py, unmasked)?,
                changed = changed,
                stored_moves = moves.0,
                moves = moves.1,
                cold_requests = reports.0,
                provider = reports.2,
                reported_sums = reports.1,
                needs = needs
            )
        })
    }

    /// The moves of the boundary from one on, up to another or the last.
    #[pyo3(signature = (start, end=None))]
    fn moves<'py>(&self, py: Python<'py>, start: usize, end: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let end = end.unwrap_or(usize::MAX);
            moves_of(py, &self.shared.read(py, |session, store| session.moves(start..end, store))?)
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
