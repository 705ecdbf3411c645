//! Replays for Python.

use super::convert::{PyPolicy, RawCache, field_of, transcript_error};
use super::dicts::Dicts;
use super::guard::guarded;
use super::named::NamedTuple;
use super::walk;
use crate::outline::Outline;
use crate::plan;
use crate::policy::Policy;
use crate::scan::scan;
use crate::source::{Bytes, Source, count_newlines};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

static REQUEST: NamedTuple = NamedTuple::of_report("ReplayedRequest");
static SENT_VIEW: NamedTuple = NamedTuple::of_report("SentView");

/// The requests of a session, and what each policy would have sent, and what of it a prompt cache would have served.
type Replay = (Vec<plan::Request>, Vec<Vec<(plan::Sent, plan::Served)>>);

/// The requests of a session and what each policy would have sent; see `recede.replay`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives a list as a Vec")]
pub fn replay<'py>(
    messages: &Bound<'py, PyAny>,
    policies: Vec<PyRef<'py, PyPolicy>>,
    image_chars: usize,
    cache: RawCache,
) -> PyResult<Bound<'py, PyTuple>> {
    guarded(|| {
        let mut dicts = Dicts::of(messages)?;
        let outline = walk::walk(&mut dicts, policies.iter().any(|policy| policy.policy.names_lines()), None)?;
        let policies = policies.iter().map(|policy| &policy.policy);
        replayed(messages.py(), replay_outline(&outline, &dicts, policies, image_chars, &cache.into()))
    })
}

/// The same for serialized input.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives a list as a Vec")]
pub fn replay_json<'py>(
    data: &Bound<'py, PyBytes>,
    surrogates: bool,
    policies: Vec<PyRef<'py, PyPolicy>>,
    image_chars: usize,
    cache: RawCache,
) -> PyResult<Bound<'py, PyTuple>> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let policies: Vec<&Policy> = policies.iter().map(|policy| &policy.policy).collect();
        let cache = cache.into();
        let sent = py.detach(|| {
            let mut outline = scan(bytes, surrogates)?;
            if policies.iter().any(|policy| policy.names_lines()) {
                count_newlines(bytes, &mut outline, 0);
            }
            Ok(replay_outline(&outline, &Bytes(bytes), policies.into_iter(), image_chars, &cache))
        });
        replayed(py, sent.map_err(|error| transcript_error(py, &error))?)
    })
}

fn replay_outline<'a>(
    outline: &Outline,
    source: &dyn Source,
    policies: impl Iterator<Item = &'a Policy>,
    image_chars: usize,
    cache: &plan::Cache,
) -> Replay {
    let requests = plan::requests(outline, image_chars);
    let ends: Vec<usize> = requests.iter().map(|request| request.messages).collect();
    let of_policy = |policy: &Policy| {
        let sent = plan::replay(outline, source, policy, cache);
        let served = cache.serve(&ends, &sent, policy.pins_boundary);
        sent.into_iter().zip(served).collect()
    };
    let sent = policies.map(of_policy).collect();
    (requests, sent)
}

fn replayed(py: Python<'_>, (requests, by_policy): Replay) -> PyResult<Bound<'_, PyTuple>> {
    let request = |request: plan::Request| {
        let plan::Request { messages, answer_chars } = request;
        REQUEST.make(py, &[("messages", field_of(py, messages)?), ("answer_chars", field_of(py, answer_chars)?)])
    };
    let sent = |(sent, served): (plan::Sent, plan::Served)| {
        let (input, output) = sent.summary;
        let fields = [
            ("view_chars", field_of(py, served.view)?),
            ("cached_chars", field_of(py, served.read)?),
            ("written_chars", field_of(py, served.written)?),
            ("masked_count", field_of(py, sent.masked)?),
            ("summarized_turns", field_of(py, sent.summarized)?),
            ("summary_input_chars", field_of(py, input)?),
            ("summary_output_chars", field_of(py, output)?),
        ];
        SENT_VIEW.make(py, &fields)
    };
    let requests = requests.into_iter().map(request).collect::<PyResult<Vec<_>>>()?;
    let of_policy = |views: Vec<(plan::Sent, plan::Served)>| views.into_iter().map(sent).collect::<PyResult<Vec<_>>>();
    let by_policy = by_policy.into_iter().map(of_policy).collect::<PyResult<Vec<_>>>()?;
    (requests, by_policy).into_pyobject(py)
}
