//! The warning of what is not understood: messages of unknown shapes and roles, and results that therefore stay.

use super::values::{Any, Dict, cast, name};
use crate::outline::{Message, Outline, Span};
use crate::policy::Policy;
use crate::scan::{member, text};
use crate::shape::{ItemType, Key, Role};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::collections::BTreeSet;

/// The most types, and the most roles, that are named.
const MAX_NAMES: usize = 12;

/// The word in a field of a dict.
fn word_of_dict(message: PyResult<Dict<'_>>, key: Key) -> Option<String> {
    let message = message.ok()?;
    let word = message.get_item(name(message.py(), key)).ok()??;
    Some(cast::<PyString>(&word)?.to_string_lossy().into_owned())
}

/// The word in a field of serialized input.
fn word_in(data: &[u8], message: Span, key: Key) -> Option<String> {
    let word = member(data, message, key.name().as_bytes())?;
    Some(String::from_utf8_lossy(&text(word.of(data))?).into_owned())
}

/// Warns once of what is not understood in a list of dicts.
pub(super) fn warn_dicts<'py>(
    given: &Any<'py>,
    outline: &Outline,
    policy: &Policy,
    message: impl Fn(usize) -> PyResult<Dict<'py>>,
) -> PyResult<()> {
    warn(given, outline, policy, |index, key| word_of_dict(message(index), key))
}

/// The warning about serialized input.
pub(super) fn warn_json(data: &Bound<'_, PyBytes>, outline: &Outline, policy: &Policy) -> PyResult<()> {
    warn(data.as_any(), outline, policy, |index, key| word_in(data.as_bytes(), outline.spans[index], key))
}

/// Warns once of the role of a message that a session has taken, unless rules know it.
pub(super) fn warn_appended(py: Python<'_>, data: &[u8]) -> PyResult<()> {
    let role = word_in(data, Span { start: 0, end: data.len() }, Key::Role);
    warn_roles(py, &first_names(role.into_iter()))
}

/// Warns once of the roles of dicts that a session takes, as far as rules do not know them.
pub(super) fn warn_taken<'py>(
    py: Python<'py>,
    outline: &Outline,
    message: impl Fn(usize) -> PyResult<Dict<'py>>,
) -> PyResult<()> {
    warn_roles(py, &roles_in(outline, |index| word_of_dict(message(index), Key::Role)))
}

fn warn_roles(py: Python<'_>, roles: &[String]) -> PyResult<()> {
    if roles.is_empty() {
        return Ok(());
    }
    py.import("recede.reduction._unrecognized")?.call_method1(intern!(py, "warn_of_roles"), (roles,)).map(drop)
}

fn roles_in(outline: &Outline, role_of: impl Fn(usize) -> Option<String>) -> Vec<String> {
    let unknown = (0..outline.messages.len()).filter(|message| is_of_unknown_role(&outline.messages[*message]));
    first_names(unknown.filter_map(role_of))
}

#[inline]
fn warn(
    history: &Any<'_>,
    outline: &Outline,
    policy: &Policy,
    word_of: impl Fn(usize, Key) -> Option<String>,
) -> PyResult<()> {
    let has_roles = outline.messages.iter().any(is_of_unknown_role);
    let is_unrecognized = outline.is_unrecognized();
    if outline.unread.is_empty() && !has_roles && !is_unrecognized || policy.is_off {
        return Ok(());
    }
    let of_results = outline.unread.iter().map(|message| *message as usize).filter(|one| outline.holds_results(*one));
    let types = first_names(of_results.filter_map(|message| word_of(message, Key::Type)));
    let roles = roles_in(outline, |message| word_of(message, Key::Role));
    let module = history.py().import("recede.reduction._unrecognized")?;
    module.call_method1(intern!(history.py(), "warn"), (history, is_unrecognized, types, roles)).map(drop)
}

/// Whether a message has text, but neither calls nor results nor a role that rules know; it may have no role.
pub(super) fn is_of_unknown_role(message: &Message) -> bool {
    let is_plain = message.shape.is_plain() && matches!(message.item, ItemType::Other | ItemType::Unknown);
    is_plain && message.role == Role::Other && message.chars > 0
}

fn first_names(names: impl Iterator<Item = String>) -> Vec<String> {
    names.collect::<BTreeSet<_>>().into_iter().take(MAX_NAMES).collect()
}
