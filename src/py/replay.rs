//! Replays for Python.

use super::convert::{PyPolicy, field_of, transcript_error};
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

/// The requests of a session, and what each policy would have sent.
type Replay = (Vec<plan::Request>, Vec<Vec<plan::Sent>>);

/// The requests of a session and what each policy would have sent; see `recede.replay`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives a list as a Vec")]
pub fn replay<'py>(
    messages: &Bound<'py, PyAny>,
    policies: Vec<PyRef<'py, PyPolicy>>,
    image_chars: usize,
) -> PyResult<Bound<'py, PyTuple>> {
    guarded(|| {
        let mut dicts = Dicts::of(messages)?;
        let outline = walk::walk(&mut dicts, policies.iter().any(|policy| policy.policy.names_lines()), None)?;
        let policies = policies.iter().map(|policy| &policy.policy);
        replayed(messages.py(), replay_outline(&outline, &dicts, policies, image_chars))
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
) -> PyResult<Bound<'py, PyTuple>> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let policies: Vec<&Policy> = policies.iter().map(|policy| &policy.policy).collect();
        let sent = py.detach(|| {
            let mut outline = scan(bytes, surrogates)?;
            if policies.iter().any(|policy| policy.names_lines()) {
                count_newlines(bytes, &mut outline, 0);
            }
            Ok(replay_outline(&outline, &Bytes(bytes), policies.into_iter(), image_chars))
        });
        replayed(py, sent.map_err(|error| transcript_error(py, &error))?)
    })
}

fn replay_outline<'a>(
    outline: &Outline,
    source: &dyn Source,
    policies: impl Iterator<Item = &'a Policy>,
    image_chars: usize,
) -> Replay {
    let of_policy = |policy| plan::replay(outline, source, policy);
    (plan::requests(outline, image_chars), policies.map(of_policy).collect())
}

fn replayed(py: Python<'_>, (requests, by_policy): Replay) -> PyResult<Bound<'_, PyTuple>> {
    let request = |request: plan::Request| {
        let plan::Request { messages, answer_chars } = request;
        REQUEST.make(py, &[("messages", field_of(py, messages)?), ("answer_chars", field_of(py, answer_chars)?)])
    };
    let sent = |sent: plan::Sent| {
        let plan::Sent { chars, cached_chars, masked, summarized, summary: (input, output) } = sent;
        let fields = [
            ("chars", field_of(py, chars)?),
            ("cached_chars", field_of(py, cached_chars)?),
            ("masked_count", field_of(py, masked)?),
            ("summarized_turns", field_of(py, summarized)?),
            ("summary_input_chars", field_of(py, input)?),
            ("summary_output_chars", field_of(py, output)?),
        ];
        SENT_VIEW.make(py, &fields)
    };
    let requests = requests.into_iter().map(request).collect::<PyResult<Vec<_>>>()?;
    let of_policy = |views: Vec<plan::Sent>| views.into_iter().map(sent).collect::<PyResult<Vec<_>>>();
    let by_policy = by_policy.into_iter().map(of_policy).collect::<PyResult<Vec<_>>>()?;
    (requests, by_policy).into_pyobject(py)
}
