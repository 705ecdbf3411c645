//! Placeholders as Python strings.

use super::convert::to_str;
use super::cpython;
use crate::placeholder::{ObservationFacts, Placeholder};
use crate::policy::Policy;
use crate::text::count_chars;
use pyo3::prelude::*;
use pyo3::types::PyString;

pub(super) struct PlaceholderTexts<'a, 'py> {
    py: Python<'py>,
    pub placeholder: Placeholder<'a>,
    /// Placeholders by number of digits: one with a number and an extra character, and the end of the number.
    models: [Option<(Bound<'py, PyString>, usize)>; MAX_DIGITS + 1],
    /// The placeholder without a number.
    constant: Option<Bound<'py, PyString>>,
}

const MAX_DIGITS: usize = usize::MAX.ilog10() as usize + 1;

impl<'a, 'py> PlaceholderTexts<'a, 'py> {
    pub(super) fn of(py: Python<'py>, policy: &'a Policy) -> Self {
        let models = [const { None }; MAX_DIGITS + 1];
        PlaceholderTexts { py, placeholder: Placeholder::of(policy), models, constant: None }
    }

    /// The placeholder without fields; None if it has some.
    pub(super) fn whole(&mut self) -> PyResult<Option<Bound<'py, PyString>>> {
        if self.constant.is_none() {
            self.constant = self.placeholder.whole().map(|text| to_str(self.py, text)).transpose()?;
        }
        Ok(self.constant.clone())
    }

    /// A placeholder with one number and no text; None if it has other fields.
    pub(super) fn around_number(&mut self, facts: &ObservationFacts) -> PyResult<Option<Bound<'py, PyString>>> {
        let Some((before, number, after)) = self.placeholder.around_number(facts) else { return Ok(None) };
        let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
        let (model, end) = match &mut self.models[digits] {
            Some(model) => model,
            none => {
                let model = [before, &[b'0'; MAX_DIGITS][..digits], after, b"."].concat();
                none.insert((to_str(self.py, &model)?, count_chars(before) + digits))
            }
        };
        cpython::with_number(model, *end, number).map(Some)
    }
}
