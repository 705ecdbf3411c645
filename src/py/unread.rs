//! The warning of what is not understood: messages of unknown shapes and roles, and results that therefore stay.

use super::values::{Any, Dict, cast, name};
use crate::outline::{Message, Outline};
use crate::policy::Policy;
use crate::scan::{member, text};
use crate::shape::{ItemType, Key, Role};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::collections::BTreeSet;

/// The most types, and the most roles, that are named.
const MAX_NAMES: usize = 12;

/// Warns once of what is not understood in a list of dicts.
pub fn warn_dicts<'py>(
    given: &Any<'py>,
    outline: &Outline,
    policy: &Policy,
    message: impl Fn(usize) -> PyResult<Dict<'py>>,
) -> PyResult<()> {
    let word_of = |index, key| {
        let word = message(index).ok()?.get_item(name(given.py(), key)).ok()??;
        Some(cast::<PyString>(&word)?.to_string_lossy().into_owned())
    };
    warn(given, outline, policy, word_of)
}

/// The warning about serialized input.
pub fn warn_json(data: &Bound<'_, PyBytes>, outline: &Outline, policy: &Policy) -> PyResult<()> {
    let bytes = data.as_bytes();
    let word_of = |index: usize, key: Key| {
        let word = member(bytes, outline.spans[index], key.name().as_bytes())?;
        Some(String::from_utf8_lossy(&text(word.of(bytes))?).into_owned())
    };
    warn(data.as_any(), outline, policy, word_of)
}

#[inline]
fn warn(
    history: &Any<'_>,
    outline: &Outline,
    policy: &Policy,
    word_of: impl Fn(usize, Key) -> Option<String>,
) -> PyResult<()> {
    let has_roles = outline.messages.iter().any(is_of_unknown_role);
    if outline.unread.is_empty() && !has_roles || !policy.enabled {
        return Ok(());
    }
    let of_results = outline.unread.iter().map(|message| *message as usize).filter(|one| outline.holds_results(*one));
    let types = first_names(of_results.filter_map(|message| word_of(message, Key::Type)));
    let of_roles = (0..outline.messages.len()).filter(|message| is_of_unknown_role(&outline.messages[*message]));
    let roles = first_names(of_roles.filter_map(|message| word_of(message, Key::Role)));
    let module = history.py().import("recede.reduction._unrecognized")?;
    module.call_method1(intern!(history.py(), "warn"), (history, outline.is_unrecognized(), types, roles)).map(drop)
}

/// Whether a message has text, but neither calls nor results nor a role that rules know; it may have no role.
fn is_of_unknown_role(message: &Message) -> bool {
    let is_plain = message.shape.is_plain() && message.item == ItemType::Other;
    is_plain && message.role == Role::Other && message.chars > 0
}

fn first_names(names: impl Iterator<Item = String>) -> Vec<String> {
    names.collect::<BTreeSet<_>>().into_iter().take(MAX_NAMES).collect()
}
