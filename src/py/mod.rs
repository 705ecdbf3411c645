//! The only place that knows Python. It converts, and releases the GIL while it works on immutable bytes; it has no rules.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 gives values")]

mod apply;
mod column;
mod convert;
mod cpython;
mod dicts;
mod facts;
mod guard;
mod marks;
mod named;
mod new_bytes;
mod placeholders;
mod reasoning;
mod reduction;
mod replay;
mod request;
mod said;
mod session;
mod signals;
mod store;
mod sync;
mod unread;
mod values;
mod walk;

use crate::clip::Clip;
use crate::json::Scanner;
use crate::outline::Outline;
use crate::pairs;
use crate::placeholder::Placeholder;
use crate::plan::{self, Costs, Given, Outcome, Remembered, SummaryInput};
use crate::reduce::{Reduced, reduce_scanned};
use crate::repaired::{Added, IdStep, id_steps, repair_json, steps};
use crate::scan::{field, scan, scan_weighing};
use crate::shape;
use crate::source::OneText;
use convert::{PyPolicy, Text, Texts, Walked, check_costs, count_request, summary_request, to_str, transcript_error};
use dicts::Dicts;
use guard::guarded;
use marks::DictMarks;
use named::named;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyList, PyString};
use reduction::{json_reduction, reduction};
use signals::until_signal;
use std::sync::atomic::{AtomicBool, Ordering};
use values::Any;

/// Reduces a list of dicts; see `recede.reduce`.
#[pyfunction]
#[pyo3(signature = (messages, policy, costs=None, summary=None, texts=None))]
fn reduce<'py>(
    messages: &Bound<'py, PyAny>,
    policy: &PyPolicy,
    costs: Option<Costs>,
    summary: Option<SummaryInput>,
    texts: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| {
        let py = messages.py();
        let mut dicts = Dicts::of(messages)?;
        let mut outline = walk::walk(&mut dicts, &[&policy.policy])?;
        plan::arrive(&mut outline, &dicts, &policy.policy);
        check_costs(costs.as_ref(), &outline)?;
        let (policy, requests) = (&*policy.policy.of(&outline), &policy.requests);
        let texts = texts.map(Texts);
        let remembered = texts.as_ref().map(|texts| texts as &dyn Remembered);
        let given =
            Given { requests, costs: costs.as_ref(), summary: &summary.unwrap_or_default(), remembered, sent: None };
        match until_signal(|| plan::plan(&outline, &dicts, policy, given)) {
            Outcome::AskSummary(asked) => {
                summary_request(py, asked.dropped, asked.previous, asked.built_in, 0, asked.told)
            }
            Outcome::AskCosts(texts) => count_request(py, texts),
            Outcome::Plan(plan) => {
                unread::warn_dicts(messages, &outline, policy, |index| dicts.message(index))?;
                let marks = DictMarks::of(&dicts, &outline, (policy, requests), &plan)?;
                let view = apply::apply(&dicts, &outline, policy, &plan)?;
                if let Some(marks) = marks {
                    marks.pin(&view, &outline, policy, requests, &plan)?;
                }
                reduction(view, &outline, &plan, policy)
            }
        }
    })
}

/// Reduces serialized input; see `recede.reduce_json`. `of_model` is called with the model of a request that names one, and gives its
/// policy.
#[pyfunction]
#[pyo3(signature = (data, surrogates, policy, costs=None, summary=None, of_model=None, texts=None))]
fn reduce_json<'py>(
    data: &Bound<'py, PyBytes>,
    surrogates: bool,
    policy: &Bound<'py, PyPolicy>,
    costs: Option<Costs>,
    summary: Option<SummaryInput>,
    of_model: Option<&Bound<'py, PyAny>>,
    texts: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let weighs = policy.get().policy.weighs();
        let outline = py.detach(|| scan_weighing(bytes, surrogates, weighs));
        let outline = outline.map_err(|error| transcript_error(py, &error))?;
        let model = of_model.and_then(|of_model| Some((of_model, request::text_field(bytes, &outline, "model")?)));
        let own = model.map(|(of_model, model)| of_model.call((), Some(&[("model", model)].into_py_dict(py)?)));
        let own = own.transpose()?.map(Bound::cast_into::<PyPolicy>).transpose()?;
        let PyPolicy { policy: rules, requests } = own.as_ref().unwrap_or(policy).get();
        let (summary, texts) = (summary.unwrap_or_default(), texts.map(Texts));
        let remembered = texts.as_ref().map(|texts| texts as &dyn Remembered);
        let given = Given { requests, costs: costs.as_ref(), summary: &summary, remembered, sent: None };
        match py.detach(|| until_signal(|| reduce_scanned(bytes, outline, rules, given))) {
            Reduced::AskSummary(outline, asked) => {
                let span = |message: usize| (outline.spans[message].start, outline.spans[message].end);
                let spans: Vec<(usize, usize)> = asked.dropped.into_iter().map(span).collect();
                summary_request(py, spans, asked.previous, asked.built_in, 0, asked.told)
            }
            Reduced::AskCosts(texts) => count_request(py, texts),
            Reduced::View(view, outline, plan) => json_reduction(data, view.as_ref(), outline, &plan, rules),
        }
    })
}

/// The outline of a list of dicts, or of bytes, which are scanned with the GIL released.
fn outline_of(history: &Bound<'_, PyAny>, surrogates: bool) -> PyResult<Outline> {
    let py = history.py();
    let Ok(data) = history.cast::<PyBytes>() else { return Ok(walk::walk(&mut Dicts::of(history)?, &[])?) };
    let bytes = data.as_bytes();
    py.detach(|| scan(bytes, surrogates)).map_err(|error| transcript_error(py, &error))
}

/// The texts that a token counter counts, of each message: long results as they are cut on arrival, unless `whole`.
#[pyfunction]
#[pyo3(signature = (messages, policy, *, whole=false))]
fn texts<'py>(messages: &Bound<'py, PyAny>, policy: &PyPolicy, whole: bool) -> PyResult<Bound<'py, PyList>> {
    guarded(|| {
        let py = messages.py();
        let mut dicts = Dicts::of(messages)?;
        let mut outline = walk::walk(&mut dicts, &[&policy.policy])?;
        if !whole {
            plan::arrive(&mut outline, &dicts, &policy.policy);
        }
        let placeholder = Placeholder::of(&policy.policy);
        // Of every observation, so that the planner may choose any boundary.
        let (pairs, turns) = (pairs::Pairs::of(&outline), crate::turns::Turns::of(&outline));
        let list = PyList::empty(py);
        for message in 0..outline.messages.len() {
            let mut own = dicts.own_text(message)?;
            if !policy.policy.limit.counts_reasoning {
                (own.reasoning, own.sealed_chars) = (vec![], 0);
            }
            let results = outline.results_of(message);
            let of_results: u32 = outline.results[results.clone()].iter().map(|result| result.images).sum();
            let observations = PyList::empty(py);
            for result in results {
                let whole = dicts.counted_text(&outline, result)?;
                let text = outline.cut_of(result).map_or(whole.clone(), |clip| clip.apply(&whole));
                let facts = plan::facts(&outline, &pairs, Some(&turns), result);
                let facts = placeholder.with_handle(facts, &outline, &dicts, result);
                let form = placeholder.form(&outline, &dicts, result, &facts);
                let masked = form.map(|(form, _)| placeholder.render(&form, &facts, || text.clone()));
                let max_chars = policy.policy.limit.clip_of_requests().filter(|max| facts.chars > *max);
                let recall = placeholder.names_handle().then_some(facts.handle);
                let chars = facts.chars + outline.cut_of(result).map_or(0, Clip::removed);
                let cut = max_chars.map(|max| Clip::of(chars, 0, max, recall).apply(&whole));
                observations.append(named!(
                    "recede.reduction._exchange.ObservationTexts",
                    py,
                    text = Text(text),
                    images = outline.results[result].images,
                    masked = masked.map(Text),
                    cut = cut.map(Text)
                )?)?;
            }
            let own_images = outline.messages[message].images - of_results;
            list.append(named!(
                "recede.reduction._exchange.MessageTexts",
                py,
                text = Text(own.text),
                constant_chars = own.constant_chars,
                images = own_images,
                observations,
                reasoning = Text(own.reasoning),
                sealed_chars = own.sealed_chars
            )?)?;
        }
        Ok(list)
    })
}

/// Findings of the pairs, of a list of dicts or a serialized history.
#[pyfunction]
#[pyo3(signature = (history, surrogates=false))]
fn check_pairs<'py>(history: &Bound<'py, PyAny>, surrogates: bool) -> PyResult<Bound<'py, PyList>> {
    guarded(|| {
        let py = history.py();
        let outline = outline_of(history, surrogates)?;
        let list = PyList::empty(py);
        for (kind, message, id) in pairs::findings(&outline) {
            list.append(named!(
                "recede._report.Finding",
                py,
                kind = kind.name(),
                message_index = message,
                id = id.map(|id| Text(id.to_vec()))
            )?)?;
        }
        Ok(list)
    })
}

/// Steps that repair the orphans of a list of dicts, for `recede.repair_pairs`.
#[pyfunction]
fn repairs<'py>(messages: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    guarded(|| {
        let py = messages.py();
        let mut dicts = Dicts::of(messages)?;
        let outline = walk::walk(&mut dicts, &[])?;
        let answer = |call: usize| -> Walked<Vec<u8>> {
            let (call, message) = (&outline.calls[call], outline.calls[call].message as usize);
            shape::answer::<Any>(outline.messages[message].shape, &dicts.message(message)?, call.block as usize)
        };
        let list = PyList::empty(py);
        for IdStep { message, block, path, id } in id_steps(&outline) {
            list.append(named!(
                "recede.reduction._exchange.Repair",
                py,
                kind = "set_id",
                message,
                block = block.map(|(_, place)| place),
                field = block.map(|(field, _)| field),
                answer = PyBytes::new(py, &id),
                source = None::<(usize, usize)>,
                path
            )?)?;
        }
        for step in steps(&outline, answer)? {
            let kind = match (&step.block, &step.added) {
                (None, None) => "drop_message",
                (Some(_), None) => "drop_block",
                (Some(_), Some(_)) => "add_block",
                (None, Some(_)) => "add_message",
            };
            let (answer, source) = match step.added {
                None => (vec![], None),
                Some(Added::Json(answer)) => (answer, None),
                Some(Added::Block(message, block)) => (vec![], Some((message, block))),
                Some(Added::Message(message)) => (vec![], Some((message, 0))),
            };
            list.append(named!(
                "recede.reduction._exchange.Repair",
                py,
                kind,
                message = step.message,
                block = step.block.map(|(_, place)| place),
                field = step.block.map(|(field, _)| field),
                answer = PyBytes::new(py, &answer),
                source,
                path = Vec::<&str>::new()
            )?)?;
        }
        Ok(list)
    })
}

/// A serialized history with its orphans repaired; itself if it has none.
#[pyfunction]
fn repaired<'py>(data: &Bound<'py, PyBytes>, surrogates: bool) -> PyResult<Bound<'py, PyBytes>> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let repaired = py.detach(|| repair_json(bytes, surrogates)).map_err(|error| transcript_error(py, &error))?;
        Ok(repaired.map_or_else(|| data.clone(), |repaired| PyBytes::new(py, &repaired)))
    })
}

/// The values of these fields beside the messages of a serialized request; None for those that it lacks.
#[pyfunction]
fn fields<'py>(data: &Bound<'py, PyBytes>, surrogates: bool, names: Vec<String>) -> PyResult<Bound<'py, PyList>> {
    guarded(|| {
        let (py, bytes) = (data.py(), data.as_bytes());
        let outline = scan(bytes, surrogates).map_err(|error| transcript_error(py, &error))?;
        let value = |name: String| field(bytes, &outline, &name).map(|value| PyBytes::new(py, value.of(bytes)));
        PyList::new(py, names.into_iter().map(value).collect::<Vec<_>>())
    })
}

/// Characters of a list of dicts or a serialized history.
#[pyfunction]
#[pyo3(signature = (history, image_chars, surrogates=false))]
fn count_chars(history: &Bound<'_, PyAny>, image_chars: usize, surrogates: bool) -> PyResult<usize> {
    guarded(|| {
        let outline = outline_of(history, surrogates)?;
        let chars = outline.total_chars(image_chars);
        outline.recycle();
        Ok(chars)
    })
}

/// What a text weighs, in quarter tokens before the scale of its model.
#[pyfunction]
fn weight(text: &Bound<'_, PyString>) -> PyResult<usize> {
    guarded(|| Ok(values::text_weight(text)))
}

/// Whether nothing in a history is of a known shape.
#[pyfunction]
#[pyo3(signature = (history, surrogates=false))]
fn is_unrecognized(history: &Bound<'_, PyAny>, surrogates: bool) -> PyResult<bool> {
    guarded(|| Ok(outline_of(history, surrogates)?.is_unrecognized()))
}

#[pyfunction]
fn mask_observation<'py>(text: &Bound<'py, PyString>, policy: &PyPolicy) -> PyResult<Bound<'py, PyString>> {
    guarded(|| match OneText(convert::bytes_of(text)).mask(&policy.policy) {
        Some(masked) => to_str(text.py(), &masked),
        None => Ok(text.clone()),
    })
}

/// For how many turns or requests no summary is asked for after so many failures in a row.
#[pyfunction]
fn wait_after(failures: usize) -> PyResult<usize> {
    guarded(|| Ok(crate::session::wait_after(failures)))
}

/// The names that `RECEDE_SCANNER` can have on this CPU.
#[pyfunction]
fn scanners() -> PyResult<Vec<&'static str>> {
    guarded(|| Ok(Scanner::available().into_iter().map(|(name, _)| name).collect()))
}

/// Whether this is the first interpreter that imports the extension. Static objects, such as interned names and the classes of
/// errors, belong to that one and are freed with it.
fn is_first_interpreter(py: Python<'_>) -> PyResult<bool> {
    const NAME: &str = "recede._core";
    static HAS_INTERPRETER: AtomicBool = AtomicBool::new(false);
    // Interpreter ids are reused after Py_Finalize, so the mark is kept in the interpreter.
    let Some(interpreter) = cpython::interpreter_dict(py) else { return Ok(false) };
    if HAS_INTERPRETER.swap(true, Ordering::SeqCst) {
        return interpreter.contains(NAME);
    }
    guard::note_panics();
    interpreter.set_item(NAME, true)?;
    Ok(true)
}

/// The core of recede.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    guarded(|| {
        if !is_first_interpreter(module.py())? {
            return Err(PyImportError::new_err("the extension belongs to another interpreter of this process"));
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add_class::<PyPolicy>()?;
        module.add_class::<session::PySession>()?;
        module.add_class::<store::PyStore>()?;
        module.add_class::<session::PyFactsSession>()?;
        module.add_class::<request::PyRequest>()?;
        module.add_function(wrap_pyfunction!(reduce, module)?)?;
        module.add_function(wrap_pyfunction!(reduce_json, module)?)?;
        module.add_function(wrap_pyfunction!(column::reduce_column, module)?)?;
        module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
        module.add_function(wrap_pyfunction!(replay::replay_json, module)?)?;
        module.add_function(wrap_pyfunction!(replay::quoted, module)?)?;
        module.add_function(wrap_pyfunction!(request::said_around, module)?)?;
        module.add_function(wrap_pyfunction!(request::points, module)?)?;
        module.add_function(wrap_pyfunction!(session::stored_options, module)?)?;
        module.add_function(wrap_pyfunction!(texts, module)?)?;
        module.add_function(wrap_pyfunction!(said::said, module)?)?;
        module.add_function(wrap_pyfunction!(apply::masked_message, module)?)?;
        module.add_function(wrap_pyfunction!(sync::common_prefix, module)?)?;
        module.add_function(wrap_pyfunction!(check_pairs, module)?)?;
        module.add_function(wrap_pyfunction!(repairs, module)?)?;
        module.add_function(wrap_pyfunction!(repaired, module)?)?;
        module.add_function(wrap_pyfunction!(fields, module)?)?;
        module.add_function(wrap_pyfunction!(count_chars, module)?)?;
        module.add_function(wrap_pyfunction!(weight, module)?)?;
        module.add_function(wrap_pyfunction!(is_unrecognized, module)?)?;
        module.add_function(wrap_pyfunction!(mask_observation, module)?)?;
        module.add_function(wrap_pyfunction!(wait_after, module)?)?;
        module.add_function(wrap_pyfunction!(scanners, module)?)
    })
}
