//! The warning of what is not understood: messages of unknown shapes, and results that therefore stay.

use super::values::{Any, Dict, cast, name};
use crate::outline::Outline;
use crate::policy::Policy;
use crate::scan::{member, text};
use crate::shape::Key;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::collections::BTreeSet;

/// The most types that are named.
const MAX_TYPES: usize = 12;

/// Warns once of what is not understood in a list of dicts.
pub fn warn_dicts<'py>(
    given: &Any<'py>,
    outline: &Outline,
    policy: &Policy,
    message: impl Fn(usize) -> PyResult<Dict<'py>>,
) -> PyResult<()> {
    let type_of = |index| {
        let kind = message(index).ok()?.get_item(name(given.py(), Key::Type)).ok()??;
        Some(cast::<PyString>(&kind)?.to_string_lossy().into_owned())
    };
    warn(given, outline, policy, type_of)
}

/// The warning about serialized input.
pub fn warn_json(data: &Bound<'_, PyBytes>, outline: &Outline, policy: &Policy) -> PyResult<()> {
    let bytes = data.as_bytes();
    let type_of = |index: usize| {
        let kind = member(bytes, outline.spans[index], Key::Type.name().as_bytes())?;
        Some(String::from_utf8_lossy(&text(kind.of(bytes))?).into_owned())
    };
    warn(data.as_any(), outline, policy, type_of)
}

#[inline]
fn warn(
    history: &Any<'_>,
    outline: &Outline,
    policy: &Policy,
    type_of: impl Fn(usize) -> Option<String>,
) -> PyResult<()> {
    if outline.unread.is_empty() || !policy.enabled {
        return Ok(());
    }
    let of_results = outline.unread.iter().map(|message| *message as usize).filter(|one| outline.holds_results(*one));
    let types: BTreeSet<String> = of_results.filter_map(type_of).collect();
    let types: Vec<String> = types.into_iter().take(MAX_TYPES).collect();
    let module = history.py().import("recede.reduction._unrecognized")?;
    module.call_method1(intern!(history.py(), "warn"), (history, outline.is_unrecognized(), types)).map(drop)
}
