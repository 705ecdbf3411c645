//! The text that replaces an observation: placeholders and cuts; and whether one is a placeholder already.

use crate::clip::Clip;
use crate::dispatch::{dispatch_blocks, dispatch_form, dispatch_head, is_dispatch_form};
use crate::handle::Handle;
use crate::outline::Outline;
use crate::policy::{Field, Policy, Template};
use crate::shape::Frame;
use crate::source::{OneText, Source};
use crate::template::{self, built_ins, constant_chars};
use crate::text::{clip, count_chars, encode_text};
use std::borrow::Cow;

/// How masking replaces an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    Placeholder,
    /// The first characters and the placeholder; without such characters, the placeholder is clipped.
    Cut {
        text_chars: usize,
    },
    /// The beginning and the end; boxed, since there are few, and many placeholders.
    Clip(Box<CountedClip>),
    /// The beginning and the end, cut when it arrived.
    Arrival(Box<Clip>),
    /// The text of an earlier result, to which it refers.
    Restored {
        source: u32,
    },
    /// The dispatch blocks, with or without the line that reports what is omitted.
    Dispatch {
        /// Whether it has the line.
        with_head: bool,
    },
}

/// A cut and its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedClip {
    /// How much of beginning and end, of the whole text.
    pub clip: Clip,
    pub cost: usize,
    /// The result whose text it is, if that is another one.
    pub source: Option<u32>,
}

/// The values of a template's fields.
#[derive(Debug, Clone, Default)]
pub struct ObservationFacts<'a> {
    /// Characters of the text or JSON.
    pub chars: usize,
    /// Whether it is JSON, of which a cut keeps nothing.
    pub is_json: bool,
    pub newlines: usize,
    pub images: usize,
    pub turn: usize,
    /// The number among all observations, from 1.
    pub number: usize,
    pub tool: &'a [u8],
    pub id: &'a [u8],
    /// The handle, where the placeholder names it.
    pub handle: Handle,
}

/// The placeholder of a policy.
pub struct Placeholder<'a> {
    templates: Cow<'a, Template>,
    with_images: Option<Cow<'a, Template>>,
    /// Characters outside of the fields that vary in length: of `templates`, and of `with_images`.
    constant_chars: (usize, usize),
    is_custom: bool,
    is_encoded: bool,
    max_chars: Option<usize>,
    image_chars: usize,
    least_removed: Option<usize>,
    keeps_dispatch: bool,
}

impl<'a> Placeholder<'a> {
    /// The placeholder of a policy.
    pub fn of(policy: &'a Policy) -> Self {
        let [chars, chars_images, lines, lines_images, ..] = built_ins();
        let (templates, with_images) = match &policy.text.placeholder {
            Some(own) => (own, None),
            None if policy.text.counts_lines => (lines, Some(lines_images)),
            None => (chars, Some(chars_images)),
        };
        Placeholder {
            templates: Cow::Borrowed(templates),
            with_images: with_images.map(Cow::Borrowed),
            constant_chars: (constant_chars(templates), with_images.map_or(0, |template| constant_chars(template))),
            is_custom: policy.text.placeholder.is_some(),
            is_encoded: false,
            max_chars: policy.text.max_old_chars,
            image_chars: policy.text.image_chars,
            least_removed: policy.text.least_removed,
            keeps_dispatch: policy.text.keeps_dispatch,
        }
    }

    /// Whether the template names the turn.
    pub(crate) fn names_turn(&self) -> bool {
        self.templates.iter().any(|(_, field)| *field == Some(Field::Turn))
    }

    /// Whether the template names the handle.
    pub(crate) fn names_handle(&self) -> bool {
        self.templates.iter().any(|(_, field)| *field == Some(Field::Handle))
    }

    /// The values of an observation with the handle, where the template names it.
    pub(crate) fn with_handle<'f>(
        &self,
        facts: ObservationFacts<'f>,
        outline: &Outline,
        source: &dyn Source,
        result: usize,
    ) -> ObservationFacts<'f> {
        if !self.names_handle() {
            return facts;
        }
        ObservationFacts { handle: source.handle(outline, result), ..facts }
    }

    /// The template for an observation, and its characters outside of the fields that vary in length.
    fn template(&self, facts: &ObservationFacts) -> (&Template, usize) {
        match &self.with_images {
            Some(with_images) if facts.images > 0 => (with_images, self.constant_chars.1),
            _ => (&self.templates, self.constant_chars.0),
        }
    }

    pub(crate) fn chars(&self, facts: &ObservationFacts) -> usize {
        let field_chars = |field: &Field| match facts.field(*field) {
            FieldValue::Number(number) => number.checked_ilog10().unwrap_or(0) as usize + 1,
            FieldValue::Text(_) if *field == Field::Handle => 0,
            FieldValue::Text(text) => count_chars(text),
        };
        let (template, constant_chars) = self.template(facts);
        if let [(_, None)] = template.as_slice() {
            return constant_chars;
        }
        constant_chars + template.iter().filter_map(|(_, field)| field.as_ref()).map(field_chars).sum::<usize>()
    }

    /// The placeholder, where it has no fields.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        match self.templates.as_slice() {
            [(text, None)] if self.with_images.is_none() => Some(text),
            _ => None,
        }
    }

    /// The placeholder as a number and the text around it, where it names one number and no text.
    pub(crate) fn around_number(&self, facts: &ObservationFacts) -> Option<(&[u8], usize, &[u8])> {
        let (before, field, after) = match self.template(facts).0.as_slice() {
            [(before, Some(field))] => (before, *field, &[][..]),
            [(before, Some(field)), (after, None)] => (before, *field, after.as_slice()),
            _ => return None,
        };
        match facts.field(field) {
            FieldValue::Number(number) => Some((before, number, after)),
            FieldValue::Text(_) => None,
        }
    }

    pub fn write(&self, facts: &ObservationFacts, out: &mut Vec<u8>) {
        for (literal, field) in self.template(facts).0 {
            out.extend_from_slice(literal);
            match field.map(|field| facts.field(field)) {
                Some(FieldValue::Number(number)) => write_number(number, out),
                Some(FieldValue::Text(text)) if self.is_encoded => encode_text(text, out),
                Some(FieldValue::Text(text)) => out.extend_from_slice(text),
                None => {}
            }
        }
    }

    /// Appends the placeholder of a text that is cut, within the limit for that.
    pub(crate) fn write_clipped(&self, facts: &ObservationFacts, out: &mut Vec<u8>) {
        let start = out.len();
        self.write(facts, out);
        out.truncate(start + clip(&out[start..], self.max_chars.unwrap_or(usize::MAX)));
    }

    /// The placeholder, written as the inside of a JSON string.
    pub(crate) fn encoded(&self) -> Placeholder<'static> {
        let encode = |template: &Template| -> Template {
            let literal = |literal: &[u8]| {
                let mut encoded = Vec::new();
                encode_text(literal, &mut encoded);
                encoded
            };
            template.iter().map(|(text, field)| (literal(text), *field)).collect()
        };
        Placeholder {
            templates: Cow::Owned(encode(&self.templates)),
            with_images: self.with_images.as_ref().map(|template| Cow::Owned(encode(template))),
            is_encoded: true,
            ..*self
        }
    }

    /// How masking replaces an observation, and the characters it then has; None if it stays.
    pub(crate) fn form(
        &self,
        outline: &Outline,
        source: &dyn Source,
        result: usize,
        facts: &ObservationFacts,
    ) -> Option<(Form, usize)> {
        let before = facts.chars.saturating_add(facts.images.saturating_mul(self.image_chars));
        if before == 0 || self.is_placeholder(outline, source, result) {
            return None;
        }
        if self.keeps_dispatch && source.observation_may_hold_dispatch(outline, result) {
            let text = source.observation(outline, result);
            let blocks = dispatch_blocks(&text);
            if !blocks.is_empty() {
                return dispatch_form(&text, &blocks, |chars| self.removes_enough(before, chars, Frame::Text))
                    .map(|(with_head, chars)| (Form::Dispatch { with_head }, chars));
            }
        }
        let placeholder_chars = self.chars(facts);
        let text_chars = if facts.is_json { 0 } else { facts.chars };
        let (form, after) = match self.max_chars {
            None => (Form::Placeholder, placeholder_chars),
            Some(max) => {
                let text_chars = max.saturating_sub(placeholder_chars).min(text_chars);
                (Form::Cut { text_chars }, text_chars + placeholder_chars.min(max))
            }
        };
        let frame = outline.results.get(result).map_or(Frame::Text, |result| result.frame);
        self.removes_enough(before, after, frame).then_some((form, after))
    }

    /// Whether an observation is replaced by a text of so many characters.
    pub(crate) fn removes_enough(&self, before: usize, after: usize, frame: Frame) -> bool {
        match self.least_removed {
            None => after < before,
            Some(least) => before >= after.saturating_add(frame.added_chars()).saturating_add(least),
        }
    }

    /// The decoded text that replaces an observation. `text` is its own, or that of the result that it refers to.
    pub fn render(&self, form: &Form, facts: &ObservationFacts, text: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        let mut out = Vec::new();
        match form {
            Form::Placeholder => self.write(facts, &mut out),
            Form::Cut { text_chars } => {
                let text = text();
                out.extend_from_slice(&text[..clip(&text, *text_chars)]);
                self.write_clipped(facts, &mut out);
            }
            Form::Clip(counted) => out = counted.clip.apply(&text()),
            Form::Arrival(clip) => out = clip.apply(&text()),
            Form::Restored { .. } => out = text(),
            Form::Dispatch { with_head } => {
                let text = text();
                let blocks = dispatch_blocks(&text);
                let mut lines: Vec<&[u8]> = blocks.iter().map(|(start, end)| &text[*start..*end]).collect();
                let head = dispatch_head(&text, &blocks);
                if *with_head {
                    lines.insert(0, head.as_bytes());
                }
                out = lines.join(&b"\n"[..]);
            }
        }
        out
    }

    /// The decoded text of an observation with these values, masked; None if it stays.
    pub(crate) fn masked(
        &self,
        outline: &Outline,
        source: &dyn Source,
        result: usize,
        facts: ObservationFacts,
    ) -> Option<Vec<u8>> {
        let facts = self.with_handle(facts, outline, source, result);
        let (form, _) = self.form(outline, source, result, &facts)?;
        Some(self.render(&form, &facts, || source.observation(outline, result)))
    }

    /// Whether a placeholder may have this many characters, if no number in it has more digits than recede writes.
    pub(crate) fn may_have(&self, chars: usize) -> bool {
        built_ins().iter().chain([&*self.templates]).any(|template| template::may_have(template, chars))
    }

    /// Whether a whole observation is a placeholder: a built-in one, or one of the policy.
    pub(crate) fn is_placeholder(&self, outline: &Outline, source: &dyn Source, result: usize) -> bool {
        let begins = |prefix: &[u8]| prefix.is_empty() || source.observation_begins(outline, result, prefix);
        let has_bracket = begins(b"[");
        let own = &self.templates[0].0;
        let may_be_own = self.is_custom && (has_bracket || !own.starts_with(b"[")) && begins(own);
        let may_be_built_in = has_bracket && (begins(b"[observation masked") || begins(b"[old tool output"));
        let may_be_dispatch = self.keeps_dispatch && has_bracket && begins(b"[dispatch output masked");
        if !may_be_built_in && !may_be_own && !may_be_dispatch {
            return false;
        }
        let text = source.observation(outline, result);
        (may_be_built_in && built_ins().iter().any(|template| template::matches(template, &text)))
            || (may_be_own && template::matches(&self.templates, &text))
            || (may_be_dispatch && is_dispatch_form(&text))
    }
}

enum FieldValue<'a> {
    Number(usize),
    Text(&'a [u8]),
}

impl ObservationFacts<'_> {
    fn field(&self, field: Field) -> FieldValue<'_> {
        match field {
            Field::Chars => FieldValue::Number(self.chars),
            Field::Lines => FieldValue::Number(self.newlines + 1),
            Field::Images => FieldValue::Number(self.images),
            Field::Turn => FieldValue::Number(self.turn),
            Field::Number => FieldValue::Number(self.number),
            Field::Tool => FieldValue::Text(self.tool),
            Field::Id => FieldValue::Text(self.id),
            Field::Handle => FieldValue::Text(&self.handle),
        }
    }
}

fn write_number(mut number: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] += (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

impl OneText {
    /// Masks it; None if it stays.
    pub fn mask(&self, policy: &Policy) -> Option<Vec<u8>> {
        let newlines = memchr::memchr_iter(b'\n', &self.0).count();
        let facts = ObservationFacts { chars: count_chars(&self.0), newlines, ..ObservationFacts::default() };
        Placeholder::of(policy).masked(&Outline::default(), self, 0, facts)
    }
}
