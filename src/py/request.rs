//! Request bodies, for a proxy.

use super::convert::{PyPolicy, Text, count_request, transcript_error};
use super::dicts::Dicts;
use super::guard::guarded;
use super::reduction::json_reduction;
use super::signals::until_signal;
use super::walk::walk;
use crate::fingerprint::Fingerprint;
use crate::marks::{caches_messages, may_be_marked, newest_in_body, remarked};
use crate::outline::{Message, Outline, Span};
use crate::plan::{Costs, Given, SentView, SentViews, SummaryInput, SummaryRequest};
use crate::points::{content_keys, request_points};
use crate::policy::Requests;
use crate::reduce::{Reduced, reduce_scanned};
use crate::scan::{field, has_field, member, scan, scan_bounded, text};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::{Mutex, PoisonError};

/// A key of what system prompt and tools of a request say, as a provider compares them that verifies reasoning.
#[pyfunction]
pub(super) fn said_around<'py>(data: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyBytes>> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let outline = scan(bytes, true).map_err(|error| transcript_error(py, &error))?;
        Ok(PyBytes::new(py, &content_keys(bytes, &outline, [0])[0]))
    })
}

/// The messages before each request that a history implies, with the key of these.
#[pyfunction]
pub(super) fn points<'py>(messages: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    guarded(|| {
        let mut dicts = Dicts::of(messages)?;
        points_of(messages.py(), &walk(&mut dicts, &[])?)
    })
}

fn points_of<'py>(py: Python<'py>, outline: &Outline) -> PyResult<Bound<'py, PyList>> {
    let points = request_points(outline).into_iter();
    PyList::new(py, points.map(|(messages, key)| (messages, PyBytes::new(py, &key.to_le_bytes()))).collect::<Vec<_>>())
}

/// A request body that was scanned, to be masked; see `recede.proxy.RequestMasker`.
#[pyclass(frozen, name = "Request", module = "recede._core")]
pub struct PyRequest {
    data: Py<PyBytes>,
    /// The facts of the body; None once it is masked without summaries.
    outline: Mutex<Option<Outline>>,
    /// Whether it has one of the fields of a history that the provider keeps.
    #[pyo3(get)]
    is_kept_by_provider: bool,
    /// How many messages it has.
    #[pyo3(get)]
    messages: usize,
    /// The model; None if the body names none.
    #[pyo3(get)]
    model: Option<String>,
    /// The time to live of the newest cache mark; None if that has none.
    #[pyo3(get)]
    ttl: Option<String>,
    /// Whether a message has a cache mark, or the body has one for its end.
    #[pyo3(get)]
    caches_messages: bool,
    #[pyo3(get)]
    retention: Option<String>,
    /// Whether a message has signed reasoning that can be left out.
    #[pyo3(get)]
    is_signed: bool,
    /// The noted views of its requests, if reasoning is judged by them.
    noted: Mutex<Option<SentViews>>,
    /// What there is to note of the view that was made last.
    sent: Mutex<Option<SentView>>,
}

/// The number of messages before a request, and of each of its noted views the digest and the first message with its reasoning.
type Noted = Vec<(usize, Vec<(u64, usize)>)>;

#[pymethods]
impl PyRequest {
    #[new]
    #[pyo3(signature = (data, kept_by_provider, weighs=false))]
    fn new(data: &Bound<'_, PyBytes>, kept_by_provider: Vec<String>, weighs: bool) -> PyResult<Self> {
        guarded(|| {
            let (py, bytes) = (data.py(), data.as_bytes());
            let outline = py.detach(|| scan_bounded(bytes, weighs)).map_err(|error| transcript_error(py, &error))?;
            Ok(PyRequest {
                data: data.clone().unbind(),
                is_kept_by_provider: kept_by_provider.into_iter().any(|name| has_field(bytes, &outline, &name)),
                messages: outline.messages.len(),
                model: text_field(bytes, &outline, "model"),
                ttl: newest_in_body(bytes, &outline).and_then(|mark| text_of(bytes, member(bytes, mark, b"ttl")?)),
                caches_messages: caches_messages(bytes, &outline),
                retention: text_field(bytes, &outline, "prompt_cache_retention"),
                is_signed: outline.messages.iter().any(Message::can_lose_reasoning),
                outline: Mutex::new(Some(outline)),
                noted: Mutex::default(),
                sent: Mutex::default(),
            })
        })
    }

    /// The messages before each request that it implies, with the key of these.
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| self.held().as_ref().map_or_else(|| Ok(PyList::empty(py)), |outline| points_of(py, outline)))
    }

    /// For each of its points the key of what system prompt, tools and messages say before it.
    fn content_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let (bytes, held) = (self.data.as_bytes(py), self.held());
            let outline = held.as_ref().ok_or_else(masked_once)?;
            let lengths = request_points(outline).into_iter().map(|(messages, _)| messages);
            let keys = py.detach(|| content_keys(bytes, outline, lengths));
            PyList::new(py, keys.iter().map(|key| PyBytes::new(py, key)))
        })
    }

    /// Judges reasoning by the noted views of its requests. One that has none was sent raw; that of others is void.
    fn judge_by(&self, noted: Noted) -> PyResult<()> {
        guarded(|| {
            let of = |(messages, views): (usize, Vec<(u64, usize)>)| {
                let raw = views.is_empty().then(|| SentView::raw(messages));
                let noted = move |(digest, reasoning_from)| SentView { messages, digest, reasoning_from };
                views.into_iter().map(noted).chain(raw)
            };
            let views = SentViews(noted.into_iter().flat_map(of).collect());
            self.noted.lock().unwrap_or_else(PoisonError::into_inner).replace(views);
            Ok(())
        })
    }

    /// The digest of what its view shows otherwise, and the first message with signed reasoning in it.
    fn sent(&self) -> PyResult<Option<(u64, usize)>> {
        guarded(|| {
            let sent = *self.sent.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(sent.map(|sent| (sent.digest, sent.reasoning_from)))
        })
    }

    /// Fingerprints of its first messages without cache marks, of so many for each of these ascending lengths.
    fn names<'py>(&self, py: Python<'py>, key: &[u8], lengths: Vec<usize>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let (bytes, held) = (self.data.as_bytes(py), self.held());
            let outline = held.as_ref().ok_or_else(masked_once)?;
            let names = py.detach(|| {
                let (mut fingerprint, mut first) = (Fingerprint::keyed(key), 0);
                let mut marked = may_be_marked(bytes, outline).peekable();
                let name = |end: usize| {
                    for (message, span) in outline.spans.iter().enumerate().take(end).skip(first) {
                        match marked.next_if_eq(&message) {
                            Some(_) => fingerprint.add(&remarked(span.of(bytes), &[])),
                            None => fingerprint.add(span.of(bytes)),
                        }
                    }
                    first = end;
                    fingerprint.digest()
                };
                lengths.into_iter().map(name).collect::<Vec<_>>()
            });
            PyList::new(py, names.iter().map(|name| PyBytes::new(py, name)))
        })
    }

    /// Masks it, where the cache was cold at these requests besides those of the options. `at` are the requests with summaries, as in
    /// [`Requests`]; of a body that has none it is masked once. `texts` are those of summaries, by their keys.
    ///
    /// Returns the reduction, and of the summary in it the request and the key. If the text of that is not known: None, the same, and
    /// what it has to tell, which is the messages, the key of the text before, that of an earlier reduction, and the number of messages
    /// up to the last one that is hidden. Or the texts whose costs are needed.
    #[pyo3(signature = (policy, cold, costs=None, at=None, texts=vec![]))]
    fn mask<'py>(
        &self,
        py: Python<'py>,
        policy: &PyPolicy,
        mut cold: Vec<usize>,
        costs: Option<Costs>,
        at: Option<Vec<(usize, usize)>>,
        texts: Vec<(u64, Text)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let data = self.data.bind(py);
            let bytes = data.as_bytes();
            let outline = if at.is_none() { self.held().take() } else { self.held().clone() };
            let outline = outline.ok_or_else(masked_once)?;
            let PyPolicy { policy, requests } = policy;
            cold.extend(&requests.cold);
            cold.sort_unstable();
            cold.dedup();
            let requests = &Requests { cold, summaries_at: at, ..requests.clone() };
            let texts = SummaryInput::Known(texts.into_iter().map(|(key, Text(text))| (key, text)).collect());
            let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let given =
                Given { requests, costs: costs.as_ref(), summary: &texts, sent: noted.as_ref(), ..Given::default() };
            let reduced = py.detach(|| until_signal(|| reduce_scanned(bytes, outline, policy, given)));
            match reduced {
                Reduced::View(view, outline, plan) => {
                    let sent = plan.sent(&outline, &policy.of(&outline));
                    self.sent.lock().unwrap_or_else(PoisonError::into_inner).replace(sent);
                    let reduction = json_reduction(data, view.as_ref(), outline, &plan, policy)?;
                    let standing = plan.layout.hidden.summary.map(|standing| (standing.request, standing.key));
                    Ok((reduction, standing, py.None()).into_pyobject(py)?.into_any())
                }
                Reduced::AskSummary(_, asked) => {
                    let SummaryRequest { untold, known, previous, dropped, standing, .. } = *asked;
                    let told = (untold, known, previous.map(Text), dropped.last().map_or(0, |last| last + 1));
                    Ok((py.None(), standing, told).into_pyobject(py)?.into_any())
                }
                Reduced::AskCosts(texts) => count_request(py, texts),
            }
        })
    }
}

/// The text of a field of a request beside its messages.
pub(super) fn text_field(data: &[u8], outline: &Outline, name: &str) -> Option<String> {
    text_of(data, field(data, outline, name)?)
}

fn text_of(data: &[u8], value: Span) -> Option<String> {
    Some(String::from_utf8_lossy(&text(value.of(data))?).into_owned())
}

fn masked_once() -> PyErr {
    PyTypeError::new_err("a request is masked once")
}

impl PyRequest {
    fn held(&self) -> std::sync::MutexGuard<'_, Option<Outline>> {
        self.outline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
