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
use crate::plan::{self, Need};
use crate::policy::Policy;
use crate::quoted::{Door, Examined, FromResult};
use crate::scan::{scan, scan_weighing};
use crate::source::{Bytes, Source, count_newlines};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// A request as sent, and what of it a prompt cache would have served.
type SentView = (plan::Sent, plan::Served);
/// The requests of a session, and what each policy would have sent.
type Replay = (Vec<plan::Request>, Vec<Vec<SentView>>);

/// The requests of a session and what each policy would have sent; see `recede.replay`.
#[pyfunction]
pub(super) fn replay<'py>(
    messages: &Bound<'py, PyAny>,
    policies: Vec<PyRef<'py, PyPolicy>>,
    image_chars: usize,
    cache: plan::Cache,
) -> PyResult<Vec<Vec<Any<'py>>>> {
    guarded(|| {
        let mut dicts = Dicts::of(messages)?;
        let policies = doors(&policies);
        let outline = walk::walk(&mut dicts, &policies.iter().map(|(policy, _)| *policy).collect::<Vec<_>>())?;
        let found = until_signal(|| replay_outline(&outline, &dicts, policies.into_iter(), image_chars, &cache));
        replayed(messages.py(), found)
    })
}

#[pyfunction]
pub(super) fn replay_json<'py>(
    data: &Bound<'py, PyBytes>,
    surrogates: bool,
    policies: Vec<PyRef<'py, PyPolicy>>,
    image_chars: usize,
    cache: plan::Cache,
) -> PyResult<Vec<Vec<Any<'py>>>> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let policies = doors(&policies);
        let sent = py.detach(|| {
            let mut outline = scan_weighing(bytes, surrogates, policies.iter().any(|(policy, _)| policy.weighs()))?;
            if policies.iter().any(|(policy, _)| policy.names_lines()) {
                count_newlines(bytes, &mut outline, 0);
            }
            let replay = || replay_outline(&outline, &Bytes(bytes), policies.into_iter(), image_chars, &cache);
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
#[pyo3(signature = (data, surrogates, all, policies, shown, most_grams=None))]
pub(super) fn quoted<'py>(
    data: &Bound<'py, PyBytes>,
    surrogates: bool,
    all: &PyPolicy,
    policies: Vec<PyRef<'py, PyPolicy>>,
    shown: usize,
    most_grams: Option<usize>,
) -> PyResult<Bound<'py, PyTuple>> {
    guarded(|| {
        let (py, bytes, all) = (data.py(), data.as_bytes(), all.door());
        let policies = doors(&policies);
        let most_grams = most_grams.unwrap_or(MOST_GRAMS);
        let found = py.detach(|| {
            let outline = scan(bytes, surrogates)?;
            let examined = Examined { data: bytes, outline: &outline, shown, most_grams };
            Ok(until_signal(|| examined.quoted(all, &policies)))
        });
        let found = found.map_err(|error| transcript_error(py, &error))?;
        let quotation = |one: FromResult| (one.request, one.result, one.tool.map(Text), one.distance, Text(one.text));
        let quotations: Vec<_> = found.quotations.into_iter().map(quotation).collect();
        (found.requests, found.results, found.examined, quotations, found.by_policy).into_pyobject(py)
    })
}

fn doors<'a>(policies: &'a [PyRef<'_, PyPolicy>]) -> Vec<Door<'a>> {
    policies.iter().map(|policy| policy.door()).collect()
}

fn replay_outline<'a>(
    outline: &Outline,
    source: &dyn Source,
    policies: impl Iterator<Item = Door<'a>>,
    image_chars: usize,
    cache: &plan::Cache,
) -> Replay {
    let requests = plan::requests(outline, image_chars);
    let of_policy =
        |(policy, known): Door<'_>| served(&requests, plan::replay(outline, source, policy, known).sent, policy, cache);
    let views = policies.map(of_policy).collect();
    (requests, views)
}

/// Requests, each with what the cache serves of it.
fn served(requests: &[plan::Request], sent: Vec<plan::Sent>, policy: &Policy, cache: &plan::Cache) -> Vec<SentView> {
    let ends: Vec<usize> = requests.iter().map(|request| request.messages).collect();
    let served = cache.serve(&ends, &sent, policy.terms.pins_boundary);
    sent.into_iter().zip(served).collect()
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

fn replayed_turn<'py>(py: Python<'py>, request: &plan::Request, (sent, served): SentView) -> PyResult<Any<'py>> {
    let (input, output) = sent.summary;
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
        branch = 0
    )
}
