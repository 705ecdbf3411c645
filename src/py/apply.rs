//! (dicts, Plan) -> dicts. The input is never changed; messages that are not are the caller's own objects.

use super::convert::to_str;
use super::dicts::Dicts;
use super::raw;
use super::values::get;
use crate::outline::{Outline, Shape};
use crate::placeholder::{Form, Placeholder};
use crate::plan::{Masked, Plan, facts};
use crate::policy::Policy;
use crate::source::Source;
use crate::text::count_chars;
use crate::turns::Turns;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// The view; the caller's own list where nothing changed.
pub fn apply<'py>(dicts: &Dicts<'py>, outline: &Outline, policy: &Policy, plan: &Plan) -> PyResult<Bound<'py, PyList>> {
    if !plan.changes() {
        return Ok(dicts.list.clone());
    }
    let py = dicts.list.py();
    let placeholder = Placeholder::of(policy);
    let turns = placeholder.names_turn().then_some(&plan.turns);
    let mut texts = Texts { dicts, outline, plan, placeholder, turns, models: [const { None }; MAX_DIGITS + 1] };
    let view = dicts.list.get_slice(0, dicts.list.len());
    let result_message = |masked: &Masked| outline.results[masked.result as usize].message;
    for masked in plan.masked.chunk_by(|one, next| result_message(one) == result_message(next)) {
        let index = result_message(&masked[0]) as usize;
        if plan.keeps(index) {
            view.set_item(index, texts.message(index, masked)?)?;
        }
    }
    let Some(kept) = &plan.kept else { return Ok(view) };
    let summary = match &plan.summary {
        None => None,
        Some(summary) => {
            let message = PyDict::new(py);
            message.set_item(intern!(py, "role"), &summary.role)?;
            message.set_item(intern!(py, "content"), to_str(py, &summary.text)?)?;
            Some((summary.before, message))
        }
    };
    let shorter = PyList::empty(py);
    let mut summary = summary;
    for (index, _) in kept.iter().enumerate().filter(|(_, is_kept)| **is_kept) {
        if let Some((_, message)) = summary.take_if(|(before, _)| index >= *before) {
            shorter.append(message)?;
        }
        shorter.append(view.get_item(index)?)?;
    }
    if let Some((_, message)) = summary {
        shorter.append(message)?;
    }
    Ok(shorter)
}

/// Makes the texts that are put in the place of observations.
struct Texts<'a, 'py> {
    dicts: &'a Dicts<'py>,
    outline: &'a Outline,
    plan: &'a Plan,
    placeholder: Placeholder<'a>,
    turns: Option<&'a Turns>,
    /// By its digits: a placeholder that names one number, with one character more, and where the number ends.
    models: [Option<(Bound<'py, PyString>, usize)>; MAX_DIGITS + 1],
}

const MAX_DIGITS: usize = usize::MAX.ilog10() as usize + 1;

impl<'py> Texts<'_, 'py> {
    fn text(&mut self, masked: &Masked) -> PyResult<Bound<'py, PyString>> {
        let result = masked.result as usize;
        let facts = facts(self.outline, &self.plan.pairs, self.turns, result);
        if masked.form == Form::Placeholder
            && let Some((before, number, after)) = self.placeholder.around_number(&facts)
        {
            let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
            let (model, end) = match &mut self.models[digits] {
                Some(model) => model,
                none => {
                    let model = [before, &[b'0'; MAX_DIGITS][..digits], after, b"."].concat();
                    none.insert((to_str(self.dicts.list.py(), &model)?, count_chars(before) + digits))
                }
            };
            return raw::with_number(model, *end, number);
        }
        let text = self.placeholder.render(&masked.form, &facts, || self.dicts.observation(self.outline, result));
        to_str(self.dicts.list.py(), &text.unwrap_or_default())
    }

    /// A copy of a message with some of its observations masked.
    fn message(&mut self, index: usize, masked: &[Masked]) -> PyResult<Bound<'py, PyDict>> {
        let py = self.dicts.list.py();
        let message = self.dicts.message(index)?.copy()?;
        match self.outline.messages[index].shape {
            Shape::Responses => message.set_item(intern!(py, "output"), self.text(&masked[0])?)?,
            Shape::Anthropic => {
                let content = get!(message, "content")?;
                let Some(Ok(content)) = content.map(Bound::cast_into::<PyList>) else { return Ok(message) };
                let content = content.get_slice(0, content.len());
                for masked in masked {
                    let block = self.outline.results[masked.result as usize].block as usize;
                    let copy = content.get_item(block)?.cast::<PyDict>()?.copy()?;
                    copy.set_item(intern!(py, "content"), self.text(masked)?)?;
                    content.set_item(block, copy)?;
                }
                message.set_item(intern!(py, "content"), content)?;
            }
            _ => message.set_item(intern!(py, "content"), self.text(&masked[0])?)?,
        }
        Ok(message)
    }
}
