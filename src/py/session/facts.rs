//! The session of facts for Python: of messages that stay with their owner.

use super::shared::{Observation, Shared};
use crate::error::Error;
use crate::outline::Outline;
use crate::placeholder::Placeholder;
use crate::plan::{Costs, Part, SummaryInput, begins_with_summary};
use crate::policy::Policy;
use crate::py::convert::{
    CountedTexts, PyPolicy, Stopped, Text, Walked, bytes_of, count_request, summary_request, text_costs,
};
use crate::py::dicts::Dicts;
use crate::py::facts::outline_of_facts;
use crate::py::guard::guarded;
use crate::py::marks::DictMarks;
use crate::py::named::named;
use crate::py::reduction::moves_of;
use crate::py::unread;
use crate::py::values::Any;
use crate::py::walk::walk;
use crate::session::{Asked, Counted, Mask, ResultPlace, Session, ShownSummary, Update};
use crate::source::Source;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use std::sync::Arc;

/// The hidden messages, and the summary: before which message it stands, its text, its message in JSON, and which message has the text
/// instead.
type HiddenForPython<'py> = (Vec<usize>, Option<(usize, Text, Bound<'py, PyBytes>, Option<usize>)>);

/// The messages of a view, and the place of the one that has the text of its summary.
type LaidOut<'py> = (Bound<'py, PyList>, Option<usize>);

/// Called by `recede.masker.Masker` only.
#[pyclass(frozen, name = "FactsSession", module = "recede._core")]
pub struct PyFactsSession {
    shared: Shared,
    policy: Arc<Policy>,
}

/// Texts of results, by their number among those that are given.
type ResultTexts = Vec<(usize, Vec<u8>)>;

/// The facts of messages, and those texts of results that rules read.
pub(super) fn facts_of(dicts: &mut Dicts, policy: &Policy) -> Walked<(Outline, ResultTexts)> {
    let outline = walk(dicts, &[policy])?;
    let placeholder = Placeholder::of(policy);
    let reads_all = !policy.exempt.texts.0.is_empty() || placeholder.names_handle();
    let cut_chars = policy.limit.clip_of_requests();
    let is_needed = |result: &usize| {
        let is_long = |max_chars| outline.results[*result].chars > max_chars;
        cut_chars.is_some_and(is_long)
            || policy.text.max_result_chars.is_some_and(is_long)
            || reads_all
            || placeholder.is_placeholder(&outline, dicts, *result)
    };
    let needed = (0..outline.results.len()).filter(is_needed);
    let text_of = |result| {
        if placeholder.names_handle() {
            dicts.counted_text(&outline, result).unwrap_or_default()
        } else {
            dicts.observation(&outline, result)
        }
    };
    let texts = needed.map(|result| (result, text_of(result))).collect();
    Ok((outline, texts))
}

#[pymethods]
impl PyFactsSession {
    #[new]
    #[pyo3(signature = (policy, *, calibrates=false))]
    fn new(policy: &PyPolicy, calibrates: bool) -> PyResult<Self> {
        guarded(|| {
            let (requests, policy) = (policy.requests.clone(), Arc::new(policy.policy.clone()));
            let session = Session::new(policy.clone(), 0).with_requests(requests);
            let shared = Shared::of(if calibrates { session.calibrating() } else { session }, None);
            Ok(PyFactsSession { shared, policy })
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(|| self.shared.edit(py, |session| session.len()))
    }

    /// Another one that continues as this one would.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        guarded(|| {
            let shared = Shared::of(self.shared.edit(py, |session| session.fork())?, None);
            Ok(PyFactsSession { shared, policy: self.policy.clone() })
        })
    }

    /// Takes over what another session has sent of the first messages, with another policy, before any is appended; it `is_void` where
    /// something else was around it.
    fn take_sent(&self, py: Python<'_>, other: &PyFactsSession, messages: usize, is_void: bool) -> PyResult<()> {
        guarded(|| {
            let sent = other.shared.edit(py, |session| session.sent_until(messages))?;
            self.shared.edit(py, |session| session.take_sent(sent, is_void))
        })
    }

    /// Leaves out the signed reasoning of the messages so far; if `for_good`, of those that are to come, too.
    fn leave_out_reasoning(&self, py: Python<'_>, for_good: bool) -> PyResult<()> {
        guarded(|| {
            self.shared.change(py, |session, _| {
                session.leave_out_reasoning(for_good);
                Ok(())
            })
        })
    }

    /// Appends messages by their facts; returns the places of the results whose texts are to be given.
    fn extend_facts(&self, facts: &Bound<'_, PyList>) -> PyResult<Vec<ResultPlace>> {
        guarded(|| {
            let outline = outline_of_facts(facts)?;
            self.shared.change(facts.py(), |session, _| {
                let first = session.len();
                session.extend(&outline, vec![]);
                Ok(session.texts_needed(first))
            })
        })
    }

    /// Gives the costs of the messages that were appended last, and those of cut results.
    fn give_costs(&self, py: Python<'_>, costs: Costs) -> PyResult<()> {
        guarded(|| self.shared.edit(py, |session| session.give_costs(costs)))
    }

    fn give_texts(&self, py: Python<'_>, texts: Vec<(ResultPlace, Bound<'_, PyString>)>) -> PyResult<()> {
        guarded(|| {
            // One at a time: copies of all of them would take their whole memory.
            texts.into_iter().try_for_each(|(place, text)| {
                let text = bytes_of(&text);
                self.shared.edit(py, |session| session.give_text(place, text))
            })
        })
    }

    /// Appends messages that are dicts; `first` is the place of the first one in errors.
    fn extend_dicts(&self, messages: &Bound<'_, PyList>, first: usize) -> PyResult<()> {
        guarded(|| {
            let mut dicts = Dicts::of(messages.as_any())?;
            let in_history = |error: Error| Error { message_index: error.message_index.map(|at| at + first), ..error };
            let (mut outline, texts) = facts_of(&mut dicts, &self.policy).map_err(|stopped| match stopped {
                Stopped::Shape(error) => Stopped::Shape(in_history(error)),
                Stopped::Python(_) => stopped,
            })?;
            if first == 0 && self.policy.limit.trigger > 0 {
                outline.begins_with_summary = begins_with_summary(&outline, &dicts);
            }
            unread::warn_taken(messages.py(), &outline, |index| dicts.message(index))?;
            self.shared.edit(messages.py(), |session| session.extend(&outline, texts))
        })
    }

    /// Keeps the first messages only.
    fn rewind(&self, py: Python<'_>, messages: usize) -> PyResult<()> {
        guarded(|| self.shared.change(py, |session, _| session.rewind(messages, None)))
    }

    /// Makes the view current, and returns what changed in it since this was called last; or a `SummaryRequest`, to be called again
    /// with the summary and the key of the request. A view that `is_sent` is noted.
    #[pyo3(signature = (summary=None, key=0, is_sent=false))]
    fn update<'py>(
        &self,
        py: Python<'py>,
        summary: Option<SummaryInput>,
        key: u64,
        is_sent: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let summary = summary.unwrap_or_default();
            let asked = self.shared.change(py, |session, _| session.update_facts(&summary, key))?;
            match asked {
                Update::Done | Update::AskTexts => {} // a session of facts has none to write
                Update::AskSummary(Asked { messages, previous, key }) => {
                    return summary_request(py, messages, previous, vec![], key, None);
                }
                Update::AskTextCosts(texts) => return count_request(py, texts),
            }
            let ((first, masks), sizes, settled_moves, (pins_boundary, within_limit), hiding, from) =
                self.shared.change(py, |session, _| {
                    if is_sent {
                        session.note_request();
                    }
                    let masks = session.masks(usize::MAX);
                    let decided = (session.pins_boundary(), session.is_within_limit());
                    let sizes = (session.counts().chars, session.view_cost(), session.raw_chars());
                    let from = session.layout().reasoning_from;
                    Ok((masks, sizes, session.settled_moves(), decided, session.hiding(), from))
                })?;
            let column = |number: fn(&Mask) -> usize| {
                let bytes: Vec<u8> = masks.iter().flat_map(|mask| (number(mask) as u32).to_ne_bytes()).collect();
                PyBytes::new(py, &bytes)
            };
            let texts: Vec<u8> = masks.iter().flat_map(|(_, text)| text).copied().collect();
            named!(
                "recede.reduction._exchange.FactsUpdate",
                py,
                first_changed = first,
                message_indices = column(|((message, _), _)| *message),
                result_indices = column(|((_, place), _)| *place),
                text_sizes = column(|(_, text)| text.len()),
                texts = PyBytes::new(py, &texts),
                settled_moves,
                view_chars = sizes.0,
                view_cost = sizes.1,
                raw_chars = sizes.2,
                pins_boundary,
                within_limit,
                hidden_count = hiding.0,
                summary_key = hiding.1,
                reasoning_from = from
            )
        })
    }

    /// The hidden messages of the view, and its summary; see [`HiddenForPython`].
    fn hidden<'py>(&self, py: Python<'py>) -> PyResult<HiddenForPython<'py>> {
        guarded(|| {
            let (hidden, summary) = self.shared.edit(py, |session| session.hidden())?;
            let to_python =
                |(place, text, message, joined): ShownSummary| (place, Text(text), PyBytes::new(py, &message), joined);
            Ok((hidden, summary.map(to_python)))
        })
    }

    /// The messages that the view shows without their signed reasoning.
    fn unsigned(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        guarded(|| self.shared.edit(py, |session| session.layout().unsigned.to_vec()))
    }

    /// A list that has these messages of a view as it shows them, and its summary; and the place of the message that has the text of
    /// that instead.
    fn laid_out<'py>(&self, messages: &Bound<'py, PyList>, summary: &Any<'py>) -> PyResult<LaidOut<'py>> {
        guarded(|| {
            let py = messages.py();
            let layout = self.shared.edit(py, |session| session.layout().clone())?;
            let (shown, mut joined) = (PyList::empty(py), None);
            for part in layout.parts(0..layout.len()) {
                match part {
                    Part::Messages(some) => {
                        some.into_iter().try_for_each(|message| shown.append(messages.get_item(message)?))?;
                    }
                    Part::Rewritten(message, _, summary) => {
                        joined = summary.map_or(joined, |_| Some(shown.len()));
                        shown.append(messages.get_item(message)?)?;
                    }
                    Part::Summary(_) => shown.append(summary)?,
                }
            }
            Ok((shown, joined))
        })
    }

    /// The moves of the boundary from this one on, with that of the current request.
    fn moves<'py>(&self, py: Python<'py>, first: usize) -> PyResult<Bound<'py, PyList>> {
        guarded(|| Ok(moves_of(py, &self.shared.edit(py, |session| session.moves_from(first))?)?.to_list()))
    }

    /// Whether nothing in it is of a known shape.
    fn is_unrecognized(&self, py: Python<'_>) -> PyResult<bool> {
        guarded(|| Ok(self.shared.look(py, Session::is_unrecognized)))
    }

    /// The place of an observation, by its number, its handle or the id of its call.
    fn place(&self, observation: &Any<'_>) -> PyResult<Option<ResultPlace>> {
        guarded(|| {
            let (py, observation) = (observation.py(), Observation::of(observation)?);
            self.shared.change(py, |session, _| {
                Ok(match observation {
                    Observation::Number(number) => session.place(number),
                    Observation::Id(id) => session.place_by_handle(&id).or_else(|| session.place_by_id(&id)),
                })
            })
        })
    }

    /// The place of an observation by its handle alone, whatever images others with this handle have.
    fn place_by_handle(&self, handle: &Bound<'_, PyString>) -> PyResult<Option<ResultPlace>> {
        guarded(|| {
            let (py, handle) = (handle.py(), bytes_of(handle));
            self.shared.edit(py, |session| session.newest_by_handle(&handle))
        })
    }

    /// Pins the boundary in a view of these messages, of which those at `marked` have marks, besides this many elsewhere, one of them
    /// perhaps `automatic`. Returns which messages still have marks.
    fn pin(
        &self,
        view: &Bound<'_, PyList>,
        messages: &Bound<'_, PyList>,
        marked: Vec<usize>,
        elsewhere: usize,
        automatic: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<usize>> {
        guarded(|| {
            let mut found = DictMarks::around(automatic);
            for message in marked {
                found.add(message, messages.get_item(message)?.cast::<PyDict>()?)?;
            }
            let (places, is_automatic) = (found.places(elsewhere), found.is_automatic());
            let pinned = self.shared.edit(view.py(), |session| session.pins(places, is_automatic));
            let (marks, pins) = pinned?;
            if let Some(pins) = pins {
                found.write(view, &marks, pins)?;
            }
            Ok(found.messages())
        })
    }

    fn give_text_costs(&self, py: Python<'_>, texts: CountedTexts) -> PyResult<()> {
        guarded(|| self.shared.edit(py, |session| session.set_text_costs(text_costs(texts))))
    }

    /// What was measured: from how many messages on, characters of a thousand tokens, and quarter tokens beside the view.
    fn measured(&self, py: Python<'_>) -> PyResult<Vec<(usize, usize, usize)>> {
        guarded(|| Ok(self.shared.look(py, Session::measured)))
    }

    /// What was counted for the request of the current view, as input, view and growth; and whether it found the cache cold.
    fn report(&self, py: Python<'_>, counted: Option<(usize, usize, (usize, usize))>, is_cold: bool) -> PyResult<()> {
        guarded(|| {
            let counted = counted.map(|(input, view, growth)| Counted { input, view, growth });
            self.shared.change(py, |session, _| session.report(None, counted, is_cold, None))
        })
    }
}
