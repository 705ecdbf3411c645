//! Plain values between Python and the core.

use super::guard::guarded;
use super::named::named;
use crate::error::Error;
use crate::fingerprint::Digest;
use crate::outline::Outline;
use crate::patterns::{ByTool, TextPatterns};
use crate::plan::{Cache, Costs, Remembered, Rule, SummaryInput};
use crate::policy::{
    Boundary, Due, Field, Goal, Measured, Model, Policy, Requests, Summaries, SummaryPrices, Template, Terms, Tokens,
    parameters,
};
use crate::provider::{CacheRule, ProviderCache};
use crate::shape::Shape;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyBytes, PyDict, PyString};

/// Validated options, and what they say of single requests; opaque to Python.
#[pyclass(frozen, name = "Policy", module = "recede._core")]
#[derive(Default)]
pub struct PyPolicy {
    pub policy: Policy,
    pub requests: Requests,
}

#[pymethods]
impl PyPolicy {
    /// The parameters by name; missing ones have their default.
    #[new]
    fn new(parameters: &Bound<'_, PyDict>) -> PyResult<Self> {
        guarded(|| policy_of(parameters))
    }

    /// That of `recede.reduce(messages, keep=results, provider="none")`, as the core has it.
    #[staticmethod]
    fn keep(results: usize) -> PyResult<Self> {
        guarded(|| Ok(PyPolicy { policy: Policy::keep(results), ..PyPolicy::default() }))
    }
}

impl<'py> FromPyObject<'_, 'py> for Cache {
    type Error = PyErr;

    /// A provider's prompt cache and the requests to it, as the attributes of an object.
    fn extract(cache: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let rule = match &*cache.getattr("rule")?.extract::<PyBackedStr>()? {
            "breakpoints" => Rule::Breakpoints { lookback: cache.getattr("lookback_blocks")?.extract()? },
            "entries" => Rule::Entries {
                lookback: cache.getattr("lookback_blocks")?.extract()?,
                shares_prefixes: cache.getattr("shares_prefixes")?.extract()?,
            },
            _ => Rule::Prefix { step: cache.getattr("step_tokens")?.extract()? },
        };
        Ok(Cache {
            rule,
            min_tokens: cache.getattr("min_tokens")?.extract()?,
            ttl: cache.getattr("ttl_seconds")?.extract()?,
            chars_per_token: cache.getattr("chars_per_token")?.extract()?,
            system_chars: cache.getattr("system_chars")?.extract()?,
            input: cache.getattr("input_price")?.extract()?,
            times: cache.getattr("times")?.extract()?,
        })
    }
}

macro_rules! read {
    ($($name:ident => $($place:ident).+,)*) => {
        /// The policy of a door, with these parameters in place of its own.
        fn policy_of(parameters: &Bound<'_, PyDict>) -> PyResult<PyPolicy> {
            let mut options = PyPolicy::default();
            for (name, value) in parameters {
                match &*name.extract::<PyBackedStr>()? {
                    $(stringify!($name) => options.$($place).+ = Parameter::read(&value)?,)*
                    other => return Err(PyTypeError::new_err(format!("unknown parameter {other}"))),
                }
            }
            Ok(options)
        }
    };
}
parameters!(read);

/// A parameter that Python can pass.
trait Parameter: Sized {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

macro_rules! plain_parameters {
    ($($kind:ty),*) => {
        $(impl Parameter for $kind {
            fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                value.extract()
            }
        })*
    };
}
plain_parameters!(bool, usize, f64, String, Vec<usize>, Vec<(usize, usize)>, Vec<String>, Vec<(String, String)>);

impl<T: Parameter> Parameter for Option<T> {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { T::read(value).map(Some) }
    }
}

impl Parameter for ByTool<Option<usize>> {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let rules: Vec<(Text, Option<usize>)> = value.extract()?;
        Ok(rules.into_iter().map(|(Text(tool), newest)| (tool, newest)).collect())
    }
}

impl Parameter for ByTool<()> {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let tools: Vec<Text> = value.extract()?;
        Ok(tools.into_iter().map(|Text(tool)| (tool, ())).collect())
    }
}

impl Parameter for TextPatterns {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let patterns: Vec<Text> = value.extract()?;
        Ok(TextPatterns(patterns.into_iter().map(|Text(pattern)| pattern).collect()))
    }
}

impl Parameter for Goal {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        match &*value.extract::<PyBackedStr>()? {
            "reduce" => Ok(Goal::Reduce),
            "mask" => Ok(Goal::Mask),
            "summarize" => Ok(Goal::Summarize),
            "truncate" => Ok(Goal::Truncate),
            other => Err(PyValueError::new_err(format!("unknown goal {other:?}"))),
        }
    }
}

impl Parameter for Boundary {
    /// Reads a name and its numbers.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (name, first, second): (PyBackedStr, f64, f64) = value.extract()?;
        Boundary::of(&name, first, second)
            .ok_or_else(|| PyValueError::new_err(format!("unknown boundary {:?}", &*name)))
    }
}

impl Parameter for ProviderCache {
    /// Reads a rule and its numbers.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        type Raw = (PyBackedStr, usize, usize, usize, usize, usize, bool);
        let (rule, min_tokens, step_tokens, lookback_blocks, most_marks, system_chars, shares_prefixes): Raw =
            value.extract()?;
        let rule = match &*rule {
            "ideal" => CacheRule::Ideal,
            "prefix" => CacheRule::Prefix,
            "breakpoints" => CacheRule::Breakpoints,
            "entries" => CacheRule::Entries,
            other => return Err(PyValueError::new_err(format!("unknown cache {other:?}"))),
        };
        Ok(ProviderCache { rule, min_tokens, step_tokens, lookback_blocks, most_marks, system_chars, shares_prefixes })
    }
}

/// Thousandths of its scale, and quarter tokens of a call.
type RawTokens = Option<(usize, usize)>;

impl Parameter for Tokens {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (scale, call) = value.extract()?;
        Ok(Tokens { scale, call })
    }
}

impl Parameter for Vec<(usize, Measured)> {
    /// Reads what was measured, each after how many messages.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let measured: Vec<(usize, usize, usize)> = value.extract()?;
        Ok(measured.into_iter().map(|(since, chars, beside)| (since, Measured { chars, beside })).collect())
    }
}

impl Parameter for Vec<(Shape, Terms)> {
    /// Reads the name of each shape, and the parameters that are different for it.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        type Raw<'py> = (
            PyBackedStr,
            (String, Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, bool, bool, RawTokens),
        );
        let shapes: Vec<Raw<'_>> = value.extract()?;
        let read =
            |(name, (provider, boundary, cache, summaries, pins_boundary, verifies_reasoning, tokens)): Raw<'_>| {
                let unknown = || PyValueError::new_err(format!("unknown shape {:?}", &*name));
                let shape = Shape::of_provider(&name).ok_or_else(unknown)?;
                let (boundary, cache) = (Parameter::read(&boundary)?, Parameter::read(&cache)?);
                let summaries = summaries.as_ref().map(Parameter::read).transpose()?;
                let tokens = tokens.map(|(scale, call)| Tokens { scale, call });
                Ok((shape, Terms { provider, boundary, cache, summaries, pins_boundary, verifies_reasoning, tokens }))
            };
        shapes.into_iter().map(read).collect()
    }
}

impl Parameter for Model {
    /// Reads the characters of its summaries, and of its prompt.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (summary_chars, prompt_chars) = value.extract()?;
        Ok(Model { summary_chars, prompt_chars })
    }
}

impl Parameter for Summaries {
    /// After how many turns the first and each later one are due (None: by their prices), the prices, the tail, and the characters
    /// of the model's summaries and prompt.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        type Raw = (Option<(usize, usize)>, (f64, f64, f64, f64), usize, Option<(usize, usize)>);
        let (turns, (read, write, input, output), tail, model): Raw = value.extract()?;
        let due = turns.map_or(Due::BreakEven, |(first, every)| Due::Turns { first, every });
        let prices = SummaryPrices { read, write, input, output };
        let model = model.map(|(summary_chars, prompt_chars)| Model { summary_chars, prompt_chars });
        Ok(Summaries { due, prices, tail, model })
    }
}

impl Parameter for Template {
    /// Pairs of literal text and the name of the following field; "" for none.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let field = |name: &str| match name {
            "" => Ok(None),
            "chars" => Ok(Some(Field::Chars)),
            "lines" => Ok(Some(Field::Lines)),
            "images" => Ok(Some(Field::Images)),
            "turn" => Ok(Some(Field::Turn)),
            "number" => Ok(Some(Field::Number)),
            "tool" => Ok(Some(Field::Tool)),
            "id" => Ok(Some(Field::Id)),
            "handle" => Ok(Some(Field::Handle)),
            other => Err(PyValueError::new_err(format!("unknown placeholder field {other:?}"))),
        };
        let parts: Vec<(Text, String)> = value.extract()?;
        parts.into_iter().map(|(Text(literal), name)| Ok((literal, field(&name)?))).collect()
    }
}

/// Decoded text, which is a str in Python: UTF-8, lone surrogates in three bytes each.
pub(super) struct Text(pub Vec<u8>);

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(text: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Text(bytes_of(&*text.cast::<PyString>()?)))
    }
}

impl<'py> IntoPyObject<'py> for Text {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        to_str(py, &self.0)
    }
}

/// Texts that the caller has counted, and their costs.
pub(super) type CountedTexts = Vec<(Text, usize)>;

/// The same for the core.
pub(super) fn text_costs(counted: CountedTexts) -> impl Iterator<Item = (Vec<u8>, usize)> {
    counted.into_iter().map(|(Text(text), cost)| (text, cost))
}

impl<'py> FromPyObject<'_, 'py> for Costs {
    type Error = PyErr;

    /// The costs of each message, of each observation raw and masked, and of texts that were asked for.
    fn extract(costs: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (messages, observations, texts): (_, _, Bound<'py, PyDict>) = costs.extract()?;
        let counted = |(text, cost): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
            let Text(text) = text.extract()?;
            Ok((text, cost.extract()?))
        };
        Ok(Costs { messages, observations, texts: texts.iter().map(counted).collect::<PyResult<_>>()?, tokens: None })
    }
}

/// Refuses costs of another history.
pub(super) fn check_costs(costs: Option<&Costs>, outline: &Outline) -> PyResult<()> {
    let counted = costs.map(|costs| (costs.messages.len(), costs.observations.len()));
    if counted.is_none_or(|counted| counted == (outline.messages.len(), outline.results.len())) {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "the messages were changed while their tokens were counted: a token_counter and other threads must leave them as \
         they are until the call returns",
    ))
}

impl<'py> FromPyObject<'_, 'py> for SummaryInput {
    type Error = PyErr;

    /// `False`, `True` if an answer was unfinished, or the text of a summary and its cost.
    fn extract(summary: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if summary.is_instance_of::<PyBool>() {
            return Ok(if summary.is_truthy()? { SummaryInput::Unfinished } else { SummaryInput::Failed });
        }
        let (Text(text), cost) = summary.extract()?;
        Ok(SummaryInput::Given(text, cost))
    }
}

/// Passes the decoded text of a str to `read`, without a copy if it has no lone surrogates.
#[inline]
pub(super) fn with_text<T>(text: &Bound<'_, PyString>, read: impl FnOnce(&[u8]) -> T) -> T {
    match text.to_str() {
        Ok(text) => read(text.as_bytes()),
        Err(_) => read(&bytes_of(text)),
    }
}

/// The decoded text of a str: UTF-8, lone surrogates in three bytes each.
pub(super) fn bytes_of(text: &Bound<'_, PyString>) -> Vec<u8> {
    if let Ok(text) = text.to_str() {
        return text.as_bytes().to_vec();
    }
    let encoded = text.call_method1("encode", ("utf-8", "surrogatepass"));
    // This encoding fails only if memory runs out.
    encoded.and_then(|bytes| Ok(bytes.cast_into::<PyBytes>()?.as_bytes().to_vec())).unwrap_or_default()
}

/// A Python str of decoded text.
pub(super) fn to_str<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    match core::str::from_utf8(text) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => Ok(PyBytes::new(py, text).call_method1("decode", ("utf-8", "surrogatepass"))?.cast_into()?),
    }
}

/// A request for a summary: the messages that it will replace, the previous summary, the built-in one.
pub(super) fn summary_request<'py, T: IntoPyObjectExt<'py>>(
    py: Python<'py>,
    dropped: T,
    previous: Option<Vec<u8>>,
    built_in: Vec<u8>,
    key: u64,
    told: Option<Digest>,
) -> PyResult<Bound<'py, PyAny>> {
    let (previous, built_in) = (previous.map(Text), Text(built_in));
    let told = told.map(|told| PyBytes::new(py, &told));
    named!("recede.reduction._exchange.SummaryRequest", py, dropped, previous, built_in, key, told)
}

/// The texts of a summarizer, an object of Python.
pub(super) struct Texts(pub Py<PyAny>);

impl Remembered for Texts {
    fn text(&self, told: Digest) -> Option<Vec<u8>> {
        Python::attach(|py| {
            let text = self.0.bind(py).call_method1("text_of", (PyBytes::new(py, &told),)).ok()?;
            text.cast::<PyString>().ok().map(bytes_of)
        })
    }
}

/// The request for the costs of these texts.
pub(super) fn count_request(py: Python<'_>, texts: Vec<Vec<u8>>) -> PyResult<Bound<'_, PyAny>> {
    let texts: Vec<Text> = texts.into_iter().map(Text).collect();
    named!("recede.reduction._exchange.CountRequest", py, texts)
}

/// Makes a `recede.TranscriptError`, which is defined in Python, for both engines.
pub(super) fn transcript_error(py: Python<'_>, error: &Error) -> PyErr {
    let make = || {
        let class = py.import("recede._errors")?.getattr("TranscriptError")?;
        let places = PyDict::new(py);
        places.set_item("offset", error.offset)?;
        places.set_item("message_index", error.message_index)?;
        places.set_item("field", error.field.as_deref())?;
        class.call((error.kind.name(),), Some(&places))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}

/// An error that stops a walk.
pub enum Stopped {
    /// A shape that is no history.
    Shape(Error),
    Python(PyErr),
}

impl From<PyErr> for Stopped {
    fn from(error: PyErr) -> Self {
        Stopped::Python(error)
    }
}
pub(super) type Walked<T> = Result<T, Stopped>;

impl From<Stopped> for PyErr {
    fn from(stopped: Stopped) -> PyErr {
        match stopped {
            Stopped::Python(error) => error,
            Stopped::Shape(error) => Python::attach(|py| transcript_error(py, &error)),
        }
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Stopped::Shape(error)
    }
}
