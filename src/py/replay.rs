//! What each request of a finished session would have sent under a policy.

use super::convert::{PyPolicy, transcript_error};
use super::dicts::Dicts;
use super::guard::guarded;
use super::walk;
use crate::outline::Outline;
use crate::plan;
use crate::policy::{Model, Policy};
use crate::scan::scan;
use crate::session::{self, Failure};
use crate::source::{Bytes, Source, count_newlines};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A request: characters, cached ones, masked observations, summarized turns, characters that a summary replaced and its own.
type RawSent = (usize, usize, usize, usize, usize, usize);
type Replay = (Vec<(usize, usize)>, Vec<Vec<RawSent>>);

/// The requests of a session and what each policy would have sent; see `recede.replay`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives a list as a Vec")]
pub fn replay(messages: &Bound<'_, PyAny>, policies: Vec<PyRef<'_, PyPolicy>>, image_chars: usize) -> PyResult<Replay> {
    guarded(|| {
        let mut dicts = Dicts::of(messages)?;
        let outline = walk::walk(&mut dicts, policies.iter().any(|policy| policy.policy.names_lines()), None)?;
        Ok(replay_outline(&outline, &dicts, policies.iter().map(|policy| &policy.policy), image_chars))
    })
}

/// The same for serialized input.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives a list as a Vec")]
pub fn replay_json(
    data: &Bound<'_, PyBytes>,
    surrogates: bool,
    policies: Vec<PyRef<'_, PyPolicy>>,
    image_chars: usize,
) -> PyResult<Replay> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let policies: Vec<&Policy> = policies.iter().map(|policy| &policy.policy).collect();
        let replayed = py.detach(|| {
            let mut outline = scan(bytes, surrogates)?;
            if policies.iter().any(|policy| policy.names_lines()) {
                count_newlines(bytes, &mut outline, 0);
            }
            Ok(replay_outline(&outline, &Bytes(bytes), policies.into_iter(), image_chars))
        });
        replayed.map_err(|error| transcript_error(py, &error))
    })
}

/// What each request of a session with a budget would have sent. Of a model: the characters of its summaries, and of its prompt
/// besides turns and previous summary.
#[pyfunction]
#[pyo3(signature = (data, surrogates, policy, model=None))]
pub fn replay_session(
    data: &Bound<'_, PyBytes>,
    surrogates: bool,
    policy: &PyPolicy,
    model: Option<(usize, usize)>,
) -> PyResult<Vec<RawSent>> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let model = model.map(|(summary_chars, prompt_chars)| Model { summary_chars, prompt_chars });
        let replayed = py.detach(|| {
            let outline = scan(bytes, surrogates)?;
            session::replay(bytes, surrogates, &outline, &policy.policy, model)
        });
        match replayed {
            Ok(sent) => Ok(sent.into_iter().map(fields).collect()),
            Err(Failure::Message(error)) => Err(transcript_error(py, &error)),
            Err(failure) => Err(PyRuntimeError::new_err(format!("a session in memory failed: {failure:?}"))),
        }
    })
}

fn replay_outline<'a>(
    outline: &Outline,
    source: &dyn Source,
    policies: impl Iterator<Item = &'a Policy>,
    image_chars: usize,
) -> Replay {
    let requests = plan::requests(outline, image_chars);
    let of_policy = |policy| {
        let sent = plan::replay(outline, source, policy);
        sent.into_iter().map(fields).collect()
    };
    let requests = requests.into_iter().map(|request| (request.messages, request.answer_chars)).collect();
    (requests, policies.map(of_policy).collect())
}

fn fields(sent: plan::Sent) -> RawSent {
    let (input, output) = sent.summary;
    (sent.chars, sent.cached_chars, sent.masked, sent.summarized, input, output)
}
