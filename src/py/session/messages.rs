//! The session of messages for Python.

use super::facts::facts_of;
use super::shared::{Observation, Shared, texts_of};
use crate::plan::{Costs, SummaryInput};
use crate::policy::Policy;
use crate::py::apply::masked_message;
use crate::py::convert::{CountedTexts, PyPolicy, Text, bytes_of, count_request, summary_request, text_costs};
use crate::py::dicts::{Dicts, plain_copy};
use crate::py::guard::guarded;
use crate::py::named::{field_of, named};
use crate::py::reduction::{moves_of, unmasked_of};
use crate::py::store::PyStore;
use crate::py::unread;
use crate::py::values::Any;
use crate::session::{Chunks, Counted, Failure, Mask, Session, Update, ViewMessage};
use crate::store::Store;
use crate::store::file::FileName;
use crate::store::memory::Memory;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type PyChunks<'py> = (usize, Vec<Bound<'py, PyBytes>>, Bound<'py, PyBytes>);
/// The costs of a message and of its reasoning, and of its observations, raw and masked.
type MessageCosts = ((usize, usize), Vec<(usize, usize)>);
/// What identifies a view: the moves of the boundary, and the message and the byte of its last change.
type ViewIdentity = (usize, Option<(usize, usize)>);

/// Called by `recede.History` only.
#[pyclass(frozen, name = "Session", module = "recede._core")]
pub struct PySession {
    shared: Shared,
    policy: Arc<Policy>,
    /// Copies of the newest messages, whose texts are not written.
    unwritten: Mutex<Vec<Py<PyAny>>>,
}

/// More levels of a message are read in its text.
const MOST_LEVELS: usize = 64;

impl PySession {
    fn unwritten(&self) -> MutexGuard<'_, Vec<Py<PyAny>>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session with the texts of all messages.
    fn texts(&self, py: Python<'_>) -> PyResult<&Shared> {
        let messages: Vec<Py<PyAny>> = self.unwritten().iter().map(|message| message.clone_ref(py)).collect();
        if messages.is_empty() {
            return Ok(&self.shared);
        }
        let dumps = py.import("recede._bodies")?.getattr("dumps")?;
        let written = |message| Ok(bytes_of(dumps.call1((message,))?.cast::<PyString>()?));
        let texts = messages.into_iter().map(written).collect::<PyResult<Vec<_>>>()?;
        self.shared.change(py, |session, _| session.write_texts(session.len() - texts.len(), &texts))?;
        self.unwritten().drain(..texts.len());
        Ok(&self.shared)
    }

    /// A copy of an unwritten message with these texts for its results, perhaps without its signed reasoning.
    fn masked<'py>(&self, py: Python<'py>, index: usize, masks: &[Mask], drops_reasoning: bool) -> PyResult<Any<'py>> {
        let first = self.shared.look(py, Session::len) - self.unwritten().len();
        let message = self.unwritten()[index - first].clone_ref(py).into_bound(py);
        let texts = masks.iter().zip(texts_of(py, masks)?).map(|(((_, place), _), text)| (*place, text)).collect();
        let masked = masked_message(message.cast()?, texts, drops_reasoning)?.into_any();
        Ok(plain_copy(&masked, MOST_LEVELS)?.unwrap_or(masked))
    }
}

#[pymethods]
impl PySession {
    #[new]
    #[pyo3(signature = (policy, *, raw_cost_at_most=0, calibrates=false, store=None))]
    fn new(policy: &PyPolicy, raw_cost_at_most: usize, calibrates: bool, store: Option<Py<PyStore>>) -> PyResult<Self> {
        guarded(|| {
            let (requests, policy) = (policy.requests.clone(), Arc::new(policy.policy.clone()));
            let session = Session::new(policy.clone(), raw_cost_at_most).with_requests(requests).voiding_unnoted();
            let shared = Shared::of(if calibrates { session.calibrating() } else { session }, store);
            Ok(PySession { shared, policy, unwritten: Mutex::default() })
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(|| Ok(self.shared.look(py, Session::len)))
    }

    /// Resumes its store, or for a session in memory another one; returns how many messages that has, which the caller appends.
    #[pyo3(signature = (options=None, source=None))]
    fn open(&self, py: Python<'_>, options: Option<&[u8]>, source: Option<&PyStore>) -> PyResult<usize> {
        guarded(|| {
            let shared = self.texts(py)?;
            let Some(source) = source else {
                let options = options.unwrap_or_default();
                return shared.change(py, |session, store| session.open(store.ok_or(Failure::Closed)?, options));
            };
            let loaded = source.with_any(py, |source| {
                let source = source.ok_or(Failure::Closed)?;
                shared.held().change(|session| session.load(source))
            });
            loaded.map_err(|failure| match failure {
                Failure::Store(error) => source.raised(py, &error),
                other => shared.raised(py, other),
            })
        })
    }

    /// Texts to count of each observation of a message, if it were appended now: after a cut, and the placeholder.
    fn texts_to_count(
        &self,
        py: Python<'_>,
        message: &[u8],
        surrogates: bool,
    ) -> PyResult<Vec<(Option<Text>, Option<Text>)>> {
        guarded(|| {
            let texts = self.texts(py)?.change(py, |session, _| session.texts_to_count(message, surrogates))?;
            Ok(texts.into_iter().map(|(cut, masked)| (cut.map(Text), masked.map(Text))).collect())
        })
    }

    /// Appends a message, with its costs and those of its results as a limit cuts them; returns the new moves of the boundary.
    #[pyo3(signature = (message, surrogates, costs=None, texts=None))]
    fn append<'py>(
        &self,
        py: Python<'py>,
        message: &[u8],
        surrogates: bool,
        costs: Option<MessageCosts>,
        texts: Option<CountedTexts>,
    ) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let texts = || text_costs(texts.unwrap_or_default()).collect();
            let costs = costs.map(|(own, observations)| Costs {
                messages: vec![own],
                observations,
                texts: texts(),
                tokens: None,
            });
            let (moves, is_of_unknown_role) = self.texts(py)?.change(py, |session, store| {
                session.append(message, surrogates, costs, store)?;
                Ok((session.new_moves(), session.newest().is_some_and(unread::is_of_unknown_role)))
            })?;
            if is_of_unknown_role {
                unread::warn_appended(py, message)?;
            }
            Ok(moves_of(py, &moves)?.to_list())
        })
    }

    /// Appends a message by what a walk finds in it; its text is written once that is read. Returns the new moves; None, and nothing has
    /// happened, where the text is needed at once, or the walk does not read the message.
    fn append_dict<'py>(&self, message: &Any<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        guarded(|| {
            let py = message.py();
            if self.shared.look(py, Session::asks_texts) {
                return Ok(None);
            }
            let Some(copy) = plain_copy(message, MOST_LEVELS)? else { return Ok(None) };
            let mut dicts = Dicts::of(PyList::new(py, [&copy])?.as_any())?;
            let Ok((outline, texts)) = facts_of(&mut dicts, &self.policy) else { return Ok(None) };
            let (moves, asks_texts) = self.shared.change(py, |session, _| {
                session.append_facts(&outline, texts);
                Ok((session.new_moves(), session.asks_texts()))
            })?;
            self.unwritten().push(copy.unbind());
            if asks_texts {
                self.texts(py)?;
            }
            unread::warn_taken(py, &outline, |index| dicts.message(index))?;
            Ok(Some(moves_of(py, &moves)?.to_list()))
        })
    }

    /// Takes the terms of a model in this policy, which these options have, until the boundary has moved. Returns whether it did.
    fn take_terms(&self, py: Python<'_>, policy: &PyPolicy, keeps_prices: bool, options: &[u8]) -> PyResult<bool> {
        guarded(|| {
            let policy = &policy.policy;
            self.shared.change(py, |session, store| session.take_terms(policy, keeps_prices, options, store))
        })
    }

    /// Takes reports of the provider: new sums, what was counted for a request, that the cache is cold.
    #[pyo3(signature = (sums=None, counted=None, is_cold=false))]
    fn report(
        &self,
        py: Python<'_>,
        sums: Option<Vec<usize>>,
        counted: Option<(usize, usize, (usize, usize))>,
        is_cold: bool,
    ) -> PyResult<()> {
        guarded(|| {
            let counted = counted.map(|(input, view, growth)| Counted { input, view, growth });
            self.shared.change(py, |session, store| session.report(sums, counted, is_cold, store))
        })
    }

    /// Drops all but the first messages.
    fn rewind(&self, py: Python<'_>, messages: usize) -> PyResult<()> {
        guarded(|| {
            let before = self.shared.look(py, Session::len);
            self.shared.change(py, |session, store| session.rewind(messages, store))?;
            let mut unwritten = self.unwritten();
            let written = before - unwritten.len();
            unwritten.truncate(messages.saturating_sub(written));
            Ok(())
        })
    }

    /// The first messages of the session as the bytes of a closed store.
    fn save<'py>(&self, py: Python<'py>, options: &[u8], messages: usize) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let files = Memory::default();
            let saved = self.texts(py)?.look(py, |session| {
                let mut target = Store::open(Box::new(files.clone()))?;
                target.hold();
                session.save(&mut target, options, messages)?;
                Ok(target.close()?)
            });
            saved.map_err(|failure| self.shared.raised(py, failure))?;
            Ok(PyBytes::new(py, &files.bytes(FileName::Store).unwrap_or_default()))
        })
    }

    // What was appended

    fn message<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let data = self.texts(py)?.look(py, |session| session.message(index).to_vec());
            Ok(PyBytes::new(py, &data))
        })
    }

    /// The text of an observation, by its number, its handle or the id of its call; and how many images it has.
    fn recall(&self, observation: &Any<'_>) -> PyResult<Option<(Text, usize)>> {
        guarded(|| {
            let (py, observation) = (observation.py(), Observation::of(observation)?);
            let found = self.texts(py)?.look(py, |session| {
                let number = match observation {
                    Observation::Number(number) => Some(number),
                    Observation::Id(id) => session.number_of_handle(&id).or_else(|| session.number_of(&id)),
                };
                number.and_then(|number| session.recall(number))
            });
            Ok(found.map(|(text, images)| (Text(text), images)))
        })
    }

    /// Whether there is an observation.
    fn has_results(&self, py: Python<'_>) -> PyResult<bool> {
        guarded(|| Ok(self.shared.look(py, |session| session.unmasked().0 > 0)))
    }

    /// Whether nothing in it is of a known shape.
    fn is_unrecognized(&self, py: Python<'_>) -> PyResult<bool> {
        guarded(|| Ok(self.shared.look(py, Session::is_unrecognized)))
    }

    // Views

    /// Whether the view is within the limit, if there is one.
    fn is_within_limit(&self, py: Python<'_>) -> PyResult<bool> {
        guarded(|| Ok(self.shared.look(py, Session::is_within_limit)))
    }

    /// Makes the view current. Returns the new moves of the boundary; or a `SummaryRequest`, to be called again with a summary; or a
    /// `CountRequest`, to be called again with each text and its costs. With a mark, the last block of each view has that, no other is
    /// sent but those at the boundary, and this many are around the messages.
    #[pyo3(signature = (summary=None, texts=None, mark=None))]
    fn update_view<'py>(
        &self,
        py: Python<'py>,
        summary: Option<SummaryInput>,
        texts: Option<CountedTexts>,
        mark: Option<(Vec<u8>, usize)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let summary = summary.unwrap_or_default();
            let texts = texts.unwrap_or_default();
            let (update, moves, told) = self.shared.change(py, |session, store| {
                if let Some((value, elsewhere)) = mark {
                    session.mark_newest(value, elsewhere);
                }
                if !texts.is_empty() {
                    session.set_text_costs(text_costs(texts));
                }
                let update = session.update_view(&summary, store)?;
                let moves = if matches!(update, Update::Done) { session.new_moves() } else { vec![] };
                let told = session.told(&update);
                Ok((update, moves, told))
            })?;
            match update {
                Update::Done => Ok(moves_of(py, &moves)?.to_list().into_any()),
                Update::AskSummary(asked) => {
                    let messages = PyList::new(py, told.iter().map(|message| PyBytes::new(py, message)))?;
                    summary_request(py, messages, asked.previous, vec![], asked.key, None)
                }
                Update::AskTextCosts(texts) => count_request(py, texts),
                Update::AskTexts => {
                    self.texts(py)?;
                    self.update_view(py, Some(summary), None, None)
                }
            }
        })
    }

    /// The chunks of the view, for a reader that has this many of the closed ones: how many of these are still valid, the closed
    /// ones after them, and the end of the view, which still grows.
    fn chunks<'py>(&self, py: Python<'py>, known: usize) -> PyResult<PyChunks<'py>> {
        guarded(|| {
            let Chunks { reused, closed, open } = self.texts(py)?.edit(py, |session| session.chunks(known))?;
            let closed = closed.iter().map(|chunk| PyBytes::new(py, chunk)).collect();
            Ok((reused, closed, PyBytes::new(py, &open)))
        })
    }

    /// The changes of the view's list, for a reader that has this many of its messages: the first message that changed, and from
    /// there on the place of an unchanged one, a masked one as a dict or its place and bytes, or the bytes of another one.
    fn changes<'py>(&self, py: Python<'py>, known: usize) -> PyResult<(usize, Vec<Any<'py>>)> {
        guarded(|| {
            let (first, items) = self.shared.edit(py, |session| session.changes(known))?;
            let to_python = |item| match item {
                ViewMessage::Unchanged(index) => field_of(py, index),
                ViewMessage::Rendered(index, bytes) => field_of(py, (index, PyBytes::new(py, &bytes))),
                ViewMessage::Masked(index, masks, drops) => field_of(py, self.masked(py, index, &masks, drops)?),
                ViewMessage::Bytes(bytes) => field_of(py, PyBytes::new(py, &bytes)),
            };
            Ok((first, items.into_iter().map(to_python).collect::<PyResult<_>>()?))
        })
    }

    /// The first message that changed since this was called last, and the masked results from there on, or from `since` on.
    fn masks<'py>(&self, py: Python<'py>, since: usize) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let ((first, masks), unsigned) =
                self.shared.change(py, |session, _| Ok((session.masks(since), session.layout().unsigned.to_vec())))?;
            let list = PyList::empty(py);
            for (((message, place), _), text) in masks.iter().zip(texts_of(py, &masks)?) {
                list.append(named!(
                    "recede.reduction._masks.Mask",
                    py,
                    message_index = *message,
                    result_index = *place,
                    text
                )?)?;
            }
            let (hidden, summary) = (PyTuple::empty(py), py.None()); // of a history whose views drop nothing
            let unsigned = PyTuple::new(py, unsigned)?;
            named!("recede.reduction._masks.Masks", py, first_changed = first, masks = list, hidden, summary, unsigned)
        })
    }

    // Figures

    /// The `HistoryStats`, with what only Python counts: failures of the summarizer, and the sums of what was reported.
    fn stats<'py>(&self, py: Python<'py>, summary_failures: usize, reported: Any<'py>) -> PyResult<Any<'py>> {
        guarded(|| {
            let (
                messages,
                totals,
                counts,
                changed,
                moves,
                (observations, unmasked),
                provider,
                needs,
                reasoning_dropped,
            ) = self.texts(py)?.look(py, |session| {
                let (counts, changed) = (session.counts(), session.changed());
                let (moves, provider) = (session.moves_from(0), session.provider().to_owned());
                let (totals, unmasked) = (session.totals(), session.unmasked());
                let dropped = session.layout().reasoning_dropped();
                (session.len(), totals, counts, changed, moves, unmasked, provider, session.needs(), dropped)
            });
            let (raw_chars, turns, orphans) = totals;
            let [masks, cuts, summary, truncation] = needs;
            let over_limit = named!("recede._report.OverLimit", py, masks, cuts, summary, truncation)?;
            named!(
                "recede.session._stats.HistoryStats",
                py,
                messages,
                turns,
                raw_chars,
                view_messages = counts.messages,
                view_chars = counts.chars,
                masked_count = counts.masked,
                orphans,
                changed_message = changed.map(|(message, _)| message),
                changed_byte = changed.map(|(_, byte)| byte),
                boundary_moves = moves_of(py, &moves)?,
                provider,
                summary_failures,
                observations,
                unmasked = unmasked_of(py, unmasked)?,
                reported,
                over_limit,
                reasoning_dropped
            )
        })
    }

    /// The sums of what was reported, and how many messages came before each request with a cold cache.
    fn reported(&self, py: Python<'_>) -> PyResult<(Vec<usize>, Vec<usize>)> {
        guarded(|| Ok(self.shared.look(py, |session| (session.sums().to_vec(), session.cold_requests()))))
    }

    /// What is the same as long as views only grow, the characters of the view, and what it counts to limits.
    fn view_identity(&self, py: Python<'_>) -> PyResult<(ViewIdentity, usize, usize)> {
        guarded(|| {
            let identity = |session: &Session| (session.moves_from(0).len(), session.changed());
            Ok(self.texts(py)?.look(py, |session| (identity(session), session.counts().chars, session.view_cost())))
        })
    }
}
