//! Replays for Python.

use super::convert::{PyPolicy, Text, transcript_error};
use super::dicts::Dicts;
use super::guard::guarded;
use super::named::named;
use super::signals::until_signal;
use super::values::Any;
use super::walk;
use crate::misses::MOST_GRAMS;
use crate::outline::Outline;
use crate::plan::{self, HiddenChange, Need, Period};
use crate::policy::{Policy, Requests};
use crate::quoted::{Examined, FromResult};
use crate::scan::{scan, scan_weighing};
use crate::source::{Bytes, Source, count_newlines};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// A request as sent, what of it a prompt cache would have served, and what it hides besides.
type SentView = (plan::Sent, plan::Served, HiddenChange);
/// The requests of a session, and what each policy would have sent.
type Replay = (Vec<plan::Request>, Vec<Vec<SentView>>);

/// A policy, or those of a door: each with the requests that find a cold cache besides its own, and how many messages precede its last
/// request.
#[derive(FromPyObject)]
pub(super) enum PyDoor<'py> {
    Policy(PyRef<'py, PyPolicy>),
    Parts(Vec<(PyRef<'py, PyPolicy>, Vec<usize>, usize)>),
}

impl PyDoor<'_> {
    fn parts(&self) -> Vec<(&Policy, Requests, usize)> {
        match self {
            PyDoor::Policy(one) => vec![(&one.policy, one.requests.clone(), usize::MAX)],
            PyDoor::Parts(parts) => parts
                .iter()
                .map(|(one, cold, last)| {
                    let mut requests = one.requests.clone();
                    requests.cold.extend(cold);
                    requests.cold.sort_unstable();
                    requests.cold.dedup();
                    (&one.policy, requests, *last)
                })
                .collect(),
        }
    }
}

/// The doors, as parts that own what is known of their requests.
type Doors<'a> = Vec<Vec<(&'a Policy, Requests, usize)>>;

fn borrowed<'a>(doors: &'a Doors<'_>) -> Vec<Vec<Period<'a>>> {
    let part = |(policy, requests, last): &'a (&Policy, Requests, usize)| (*policy, requests, *last);
    doors.iter().map(|parts| parts.iter().map(part).collect()).collect()
}

/// The requests of a session and what each door would have sent; see `recede.replay`.
#[pyfunction]
pub(super) fn replay<'py>(
    messages: &Bound<'py, PyAny>,
    doors: Vec<PyDoor<'py>>,
    image_chars: usize,
    cache: plan::Cache,
) -> PyResult<Vec<Vec<Any<'py>>>> {
    guarded(|| {
        let mut dicts = Dicts::of(messages)?;
        let doors: Doors<'_> = doors.iter().map(PyDoor::parts).collect();
        let outline = walk::walk(&mut dicts, &doors.iter().flatten().map(|(policy, ..)| *policy).collect::<Vec<_>>())?;
        let found = until_signal(|| replay_outline(&outline, &dicts, &borrowed(&doors), image_chars, &cache));
        replayed(messages.py(), found)
    })
}

#[pyfunction]
pub(super) fn replay_json<'py>(
    data: &Bound<'py, PyBytes>,
    surrogates: bool,
    doors: Vec<PyDoor<'py>>,
    image_chars: usize,
    cache: plan::Cache,
) -> PyResult<Vec<Vec<Any<'py>>>> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let doors: Doors<'_> = doors.iter().map(PyDoor::parts).collect();
        let sent = py.detach(|| {
            let policies = || doors.iter().flatten().map(|(policy, ..)| *policy);
            let mut outline = scan_weighing(bytes, surrogates, policies().any(Policy::weighs))?;
            if policies().any(Policy::names_lines) {
                count_newlines(bytes, &mut outline, 0);
            }
            let replay = || replay_outline(&outline, &Bytes(bytes), &borrowed(&doors), image_chars, &cache);
            Ok(until_signal(replay))
        });
        replayed(py, sent.map_err(|error| transcript_error(py, &error))?)
    })
}

/// Finds what the requests of a context quote from results, and for each policy which of them quote what it had hidden; see
/// `recede.costs.misses`. The first `shown` messages are those of an earlier context; `all` masks whatever is ever masked.
/// Returns how many requests it made, how many results it got, how many of the requests were examined, the fields of each
/// quotation, and the requests by policy.
#[pyfunction]
#[pyo3(signature = (data, surrogates, all, doors, shown, most_grams=None))]
pub(super) fn quoted<'py>(
    data: &Bound<'py, PyBytes>,
    surrogates: bool,
    all: &PyPolicy,
    doors: Vec<PyDoor<'py>>,
    shown: usize,
    most_grams: Option<usize>,
) -> PyResult<Bound<'py, PyTuple>> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let all = [(&all.policy, &all.requests, usize::MAX)];
        let doors: Doors<'_> = doors.iter().map(PyDoor::parts).collect();
        let most_grams = most_grams.unwrap_or(MOST_GRAMS);
        let found = py.detach(|| {
            let outline = scan(bytes, surrogates)?;
            let examined = Examined { data: bytes, outline: &outline, shown, most_grams };
            Ok(until_signal(|| examined.quoted(&all, &borrowed(&doors))))
        });
        let found = found.map_err(|error| transcript_error(py, &error))?;
        let quotation = |one: FromResult| (one.request, one.result, one.tool.map(Text), one.distance, Text(one.text));
        let quotations: Vec<_> = found.quotations.into_iter().map(quotation).collect();
        (found.requests, found.results, found.examined, quotations, found.by_policy).into_pyobject(py)
    })
}

fn replay_outline(
    outline: &Outline,
    source: &dyn Source,
    doors: &[Vec<Period<'_>>],
    image_chars: usize,
    cache: &plan::Cache,
) -> Replay {
    let requests = plan::requests(outline, image_chars);
    let ends: Vec<usize> = requests.iter().map(|request| request.messages).collect();
    let views = doors.iter().map(|door| {
        let replayed = plan::replay(outline, source, door);
        let is_pinned = door.last().is_some_and(|(policy, ..)| policy.of(outline).terms.pins_boundary);
        let served = cache.serve(&ends, &replayed.sent, is_pinned);
        let both = replayed.sent.into_iter().zip(served).zip(replayed.changes);
        both.map(|((sent, served), change)| (sent, served, change)).collect()
    });
    let views = views.collect();
    (requests, views)
}

/// A list of `ReplayedTurn`s for each policy.
fn replayed(py: Python<'_>, (requests, by_policy): Replay) -> PyResult<Vec<Vec<Any<'_>>>> {
    let of_policy = |views: Vec<SentView>| {
        py.check_signals()?;
        let both = requests.iter().zip(views);
        both.map(|(request, view)| replayed_turn(py, request, view)).collect::<PyResult<Vec<_>>>()
    };
    by_policy.into_iter().map(of_policy).collect()
}

fn replayed_turn<'py>(
    py: Python<'py>,
    request: &plan::Request,
    (sent, served, change): SentView,
) -> PyResult<Any<'py>> {
    let (input, output) = sent.summary;
    let (hidden, shown) = (PyTuple::new(py, change.hidden)?, PyTuple::new(py, change.shown)?);
    named!(
        "recede.costs._turn.ReplayedTurn",
        py,
        messages = request.messages,
        view_chars = served.view,
        cached_chars = served.read,
        written_chars = served.written,
        answer_chars = request.answer_chars,
        masked_count = sent.masked,
        summarized_turns = sent.summarized,
        summary_input_chars = input,
        summary_output_chars = output,
        needed = sent.need.map_or("", Need::name),
        branch = 0,
        hidden = hidden,
        shown = shown
    )
}
