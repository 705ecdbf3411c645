//! Comparing a list of messages with the one before: what both begin with.

use super::cpython::first_not_identical;
use super::guard::guarded;
use super::values::{Any, cast};
use crate::marks::FIELDS;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Fields in which a message, a block and a part have their blocks and parts, which may be marked too.
const LISTS: [&str; 2] = ["content", "output"];
/// A message, a block, a part.
const MARKED_LEVELS: usize = 3;

/// How many of the first messages are the same; and which of these differ in their cache marks. `same` compares two messages;
/// without it they are the same if they are identical, equal, or equal but for cache marks.
#[pyfunction]
#[pyo3(signature = (old, new, same=None))]
pub(super) fn common_prefix(
    old: &Bound<'_, PyList>,
    new: &Bound<'_, PyList>,
    same: Option<&Bound<'_, PyAny>>,
) -> PyResult<(usize, Vec<usize>)> {
    guarded(|| {
        let (mut index, mut marked) = (0, vec![]);
        loop {
            index = first_not_identical(old, new, index);
            if index >= old.len().min(new.len()) {
                return Ok((index, marked));
            }
            let (one, other) = (old.get_item(index)?, new.get_item(index)?);
            let is_same = match same {
                Some(same) => same.call1((&one, &other))?.is_truthy()?,
                None if is_equal(&one, &other) => true,
                None => {
                    marked.push(index);
                    is_unmarked_equal(&one, &other, MARKED_LEVELS)
                }
            };
            if !is_same {
                marked.pop_if(|last| *last == index);
                return Ok((index, marked));
            }
            index += 1;
        }
    })
}

/// Values that cannot be compared are not equal.
fn is_equal(old: &Any<'_>, new: &Any<'_>) -> bool {
    old.eq(new).unwrap_or(false)
}

/// Whether two values are equal but for cache marks.
fn is_unmarked_equal(old: &Any<'_>, new: &Any<'_>, levels: usize) -> bool {
    if let (Some(old), Some(new)) = (cast::<PyDict>(old), cast::<PyDict>(new)) {
        let marks =
            |dict: &Bound<'_, PyDict>| FIELDS.iter().filter(|field| dict.contains(field).unwrap_or(false)).count();
        let fields = |dict: &Bound<'_, PyDict>| dict.len() - marks(dict);
        return fields(old) == fields(new)
            && old.iter().all(|(key, value)| {
                let is_list = LISTS.iter().any(|name| key.eq(name).unwrap_or(false));
                FIELDS.iter().any(|field| key.eq(field).unwrap_or(false))
                    || new.get_item(&key).ok().flatten().is_some_and(|other| {
                        is_equal(&value, &other) || (is_list && is_unmarked_list(&value, &other, levels - 1))
                    })
            });
    }
    false
}

fn is_unmarked_list(old: &Any<'_>, new: &Any<'_>, levels: usize) -> bool {
    let (Some(old), Some(new)) = (cast::<PyList>(old), cast::<PyList>(new)) else { return false };
    levels > 0
        && old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| is_equal(&old, &new) || is_unmarked_equal(&old, &new, levels))
}
