//! Speculative masking. A long history has left the CPU cache when it is planned, so messages that will probably be masked are
//! masked right after they are read; `apply` corrects the view if the plan differs.

use super::cpython;
use super::dicts::{Dicts, may_hold_dispatch};
use super::placeholders::PlaceholderTexts;
use super::values::name;
use super::values::{Any, Dict, cast};
use crate::outline::Outline;
use crate::placeholder::ObservationFacts;
use crate::policy::{Field, Goal, Policy};
use crate::shape::{Frame, Path};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

/// Shorter histories stay in the cache.
const MIN_MESSAGES: usize = 3_000;

/// Whether a message alone decides what a placeholder says, which begins like the built-in ones.
fn is_early(template: &[(Vec<u8>, Option<Field>)]) -> bool {
    template[0].0.starts_with(b"[")
        && template.iter().all(|(_, field)| matches!(field, None | Some(Field::Chars | Field::Lines)))
}

/// See the module.
pub struct Premask<'a, 'py> {
    policy: &'a Policy,
    messages: Bound<'py, PyList>,
    texts: PlaceholderTexts<'a, 'py>,
    /// Messages from here on are in the window.
    window: usize,
    /// Characters read so far.
    chars: usize,
    /// The view so far, once something in it is masked.
    pub view: Option<Bound<'py, PyList>>,
    /// The masked results in it.
    pub masked: Vec<u32>,
}

impl<'a, 'py> Premask<'a, 'py> {
    /// Predicts the plan; None if that is impossible, or masking early saves nothing.
    pub fn of(dicts: &Dicts<'py>, policy: &'a Policy, has_costs: bool) -> Option<Self> {
        let masks = match policy.goal {
            Goal::Mask => true,
            Goal::Reduce => policy.masks() && !has_costs,
            Goal::Summarize | Goal::Truncate => false,
        };
        let has_own_rules = !policy.keep_by_tool.is_empty()
            || !policy.exclude_tools.is_empty()
            || !policy.keep_matching.0.is_empty()
            || !policy.placeholder.as_deref().is_none_or(is_early)
            || policy.max_observation_chars.is_some()
            || policy.max_result_chars.is_some();
        let messages = dicts.list.clone();
        if messages.len() < MIN_MESSAGES || !masks || has_own_rules {
            return None;
        }
        // A turn or a result is a message at least.
        let recent = [policy.keep_messages, policy.keep_turns, policy.keep_results].into_iter().flatten().max();
        let window = messages.len().saturating_sub(recent.unwrap_or(0));
        let texts = PlaceholderTexts::of(messages.py(), policy);
        Some(Premask { policy, messages, texts, window, chars: 0, view: None, masked: vec![] })
    }

    /// Adds the message just read; the values of its observations are at the end of `values`.
    pub fn add(
        &mut self,
        index: usize,
        message: &Dict<'py>,
        outline: &Outline,
        values: &mut [Option<Any<'py>>],
    ) -> PyResult<()> {
        self.chars = self.chars.saturating_add(outline.chars_of(index, self.policy.image_chars));
        let masked = if index < self.window && self.will_mask(index) {
            self.mask(index, message, outline, values)?
        } else {
            None
        };
        match (&self.view, masked) {
            (Some(view), Some(masked)) => view.append(masked),
            (Some(view), None) => view.append(message),
            (None, Some(masked)) => {
                let view = self.messages.get_slice(0, index);
                view.append(masked)?;
                self.view = Some(view);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Whether the history will come close to the budget, extrapolated from what was read.
    fn will_mask(&self, index: usize) -> bool {
        let Some(max) = self.policy.max_cost else { return true };
        let foreseen = self.chars as u128 * self.messages.len() as u128 / (index as u128 + 1);
        foreseen >= (max - max / 16) as u128
    }

    fn mask(
        &mut self,
        index: usize,
        message: &Dict<'py>,
        outline: &Outline,
        values: &mut [Option<Any<'py>>],
    ) -> PyResult<Option<Dict<'py>>> {
        let py = message.py();
        let Path { blocks: None, fields: [[field]] } = outline.messages[index].shape.path() else { return Ok(None) };
        let (Some(result), Some(value)) = (outline.results.last(), values.last_mut()) else { return Ok(None) };
        let Some(text) = value.as_ref().and_then(cast::<PyString>) else { return Ok(None) };
        // Text that begins as a placeholder may be one.
        if result.message as usize != index
            || cpython::first_char(text).is_none_or(|first| first == u32::from(b'['))
            || may_hold_dispatch(text)
        {
            return Ok(None);
        }
        let newlines = result.newlines as usize;
        let facts = ObservationFacts { chars: result.chars, newlines, ..ObservationFacts::default() };
        let masked_chars = self.texts.placeholder.chars(&facts);
        if !self.texts.placeholder.removes_enough(facts.chars, masked_chars, Frame::Text) {
            return Ok(None);
        }
        let Some(text) = self.texts.around_number(&facts)? else { return Ok(None) };
        let masked = message.copy()?;
        masked.set_item(name(py, *field), text)?;
        self.masked.push(outline.results.len() as u32 - 1);
        // The text is not needed again, and dropping it later would load it into the cache again.
        *value = None;
        Ok(Some(masked))
    }
}
