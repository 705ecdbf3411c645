//! (dicts, Plan) -> dicts. The input is never changed; messages that are not are the caller's own objects.

use super::convert::to_str;
use super::dicts::Dicts;
use super::placeholders::Texts;
use super::premask::Ahead;
use super::values::get;
use crate::outline::{Outline, Shape};
use crate::placeholder::Form;
use crate::plan::{Masked, Plan, facts};
use crate::policy::Policy;
use crate::source::Source;
use crate::turns::Turns;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// The view; the caller's own list where nothing changed.
pub fn apply<'py>(
    dicts: &Dicts<'py>,
    outline: &Outline,
    policy: &Policy,
    plan: &Plan,
    ahead: Option<Ahead<'_, 'py>>,
) -> PyResult<Bound<'py, PyList>> {
    if !plan.changes() {
        return Ok(dicts.given.clone());
    }
    let py = dicts.list.py();
    let texts = Texts::of(py, policy);
    let turns = texts.placeholder.names_turn().then_some(&plan.turns);
    let mut masker = Masker { dicts, outline, plan, turns, texts };
    let (view, made) = ahead.map_or((None, vec![]), |ahead| (ahead.view, ahead.masked));
    // Our own list may become the view: of each message that is masked there, nothing is read afterwards.
    let view = view.unwrap_or_else(|| dicts.list.clone());
    let mut made = made.into_iter().peekable();
    let message_of = |result: u32| outline.results[result as usize].message as usize;
    let restore = |result: u32| view.set_item(message_of(result), dicts.list.get_item(message_of(result))?);
    for masked in plan.masked.chunk_by(|one, next| message_of(one.result) == message_of(next.result)) {
        let first = &masked[0];
        while let Some(result) = made.next_if(|result| *result < first.result) {
            restore(result)?;
        }
        let is_made = made.next_if_eq(&first.result).is_some() && first.form == Form::Placeholder;
        let index = message_of(first.result);
        if !is_made && plan.keeps(index) {
            view.set_item(index, masker.message(index, masked)?)?;
        }
    }
    made.try_for_each(restore)?;
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

/// Makes the messages that are masked.
struct Masker<'a, 'py> {
    dicts: &'a Dicts<'py>,
    outline: &'a Outline,
    plan: &'a Plan,
    turns: Option<&'a Turns>,
    texts: Texts<'a, 'py>,
}

impl<'py> Masker<'_, 'py> {
    fn text(&mut self, masked: &Masked) -> PyResult<Bound<'py, PyString>> {
        let result = masked.result as usize;
        let facts = facts(self.outline, &self.plan.pairs, self.turns, result);
        if masked.form == Form::Placeholder
            && let Some(text) = self.texts.around_number(&facts)?
        {
            return Ok(text);
        }
        let placeholder = &self.texts.placeholder;
        let text = placeholder.render(&masked.form, &facts, || self.dicts.observation(self.outline, result));
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
