//! (bytes, Outline, Plan) -> bytes: whatever is not replaced is copied unchanged.

mod parts;
mod reasoning;
mod summary;

pub(crate) use reasoning::unsigned_message;
pub(crate) use summary::{joined_message, summary_message};

use crate::clip::{Clip, CutParts};
use crate::marks::{self, MarkEdits, Moved};
use crate::outline::{Outline, Span};
use crate::pairs::Pairs;
use crate::placeholder::{Form, Placeholder};
use crate::plan::{Cut, Masked, Part, Plan, PlanContext, Summary, facts, masked_in};
use crate::policy::Policy;
use crate::raw_text::RawText;
use crate::scan;
use crate::shape::{Frame, Key};
use crate::source::Bytes;
use crate::text::encode_text;
use crate::turns::Turns;
use core::ops::Range;
use parts::{framed_text, part_of};
use std::mem::MaybeUninit;

/// The view of serialized input, as stretches of the input and of new text. Its length is known before it is written in place.
#[derive(Debug, Default)]
pub struct Spliced {
    stretches: Vec<Stretch>,
    text: Vec<u8>,
    length: usize,
}

#[derive(Debug)]
enum Stretch {
    Input(Span),
    Text(Span),
}

impl Spliced {
    /// A view that equals the input.
    pub(crate) fn unchanged(data: &[u8]) -> Self {
        let mut view = Spliced::default();
        view.input(0, data.len());
        view
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// Writes the view over `out`, which has its length. Returns the number of bytes written.
    pub(crate) fn write(&self, data: &[u8], out: &mut [MaybeUninit<u8>]) -> usize {
        let mut written = 0;
        for bytes in self.bytes(data) {
            let place = &mut out[written..written + bytes.len()];
            place.iter_mut().zip(bytes).for_each(|(place, byte)| _ = place.write(*byte)); // a plain copy
            written += bytes.len();
        }
        written
    }

    pub fn to_vec(&self, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.length);
        self.bytes(data).for_each(|bytes| out.extend_from_slice(bytes));
        out
    }

    fn bytes<'a>(&'a self, data: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.stretches.iter().map(move |stretch| match stretch {
            Stretch::Input(span) => span.of(data),
            Stretch::Text(span) => span.of(&self.text),
        })
    }

    fn input(&mut self, start: usize, end: usize) {
        self.length += end - start;
        self.stretches.push(Stretch::Input(Span { start, end }));
    }

    fn text(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        write(&mut self.text);
        self.length += self.text.len() - start;
        // Consecutive text is one stretch.
        if let Some(Stretch::Text(before)) = self.stretches.last_mut() {
            before.end = self.text.len();
        } else {
            self.stretches.push(Stretch::Text(Span { start, end: self.text.len() }));
        }
    }
}

/// The view of serialized input.
pub(crate) fn splice(data: &[u8], outline: &Outline, policy: &Policy, plan: &Plan, marks: MarkEdits) -> Spliced {
    // Room for each masked observation's text and the input before it, so that nothing is reallocated.
    let out = Spliced {
        stretches: Vec::with_capacity(2 * plan.masked.len() + 1),
        text: Vec::with_capacity(48 * plan.masked.len()),
        length: 0,
    };
    let mut writer = ViewWriter::of(data, outline, policy, (&plan.pairs, &plan.turns), marks, out);
    writer.view(plan);
    writer.out
}

/// Appends a stretch of the input to `out`, with some of its observations masked.
pub(crate) fn splice_stretch(
    data: &[u8],
    context: PlanContext,
    stretch: Span,
    masked: &[Masked],
    marks: MarkEdits,
    out: &mut Vec<u8>,
) {
    let PlanContext { outline, policy, pairs, turns, .. } = context;
    let mut writer = ViewWriter::of(data, outline, policy, (pairs, turns), marks, Spliced::default());
    writer.stretch(stretch, masked);
    out.reserve(writer.out.length());
    writer.out.bytes(data).for_each(|bytes| out.extend_from_slice(bytes));
}

/// Appends a message of the task that is cut to `out`.
pub(crate) fn splice_cut(data: &[u8], context: PlanContext, cut: &Cut, out: &mut Vec<u8>) {
    let PlanContext { outline, policy, pairs, turns, .. } = context;
    let mut writer = ViewWriter::of(data, outline, policy, (pairs, turns), MarkEdits::default(), Spliced::default());
    writer.cut(cut);
    writer.out.bytes(data).for_each(|bytes| out.extend_from_slice(bytes));
}

struct ViewWriter<'a> {
    data: &'a [u8],
    outline: &'a Outline,
    placeholder: Placeholder<'a>,
    encoded: Placeholder<'static>,
    pairs: &'a Pairs,
    turns: Option<&'a Turns>,
    marks: MarkEdits,
    /// The number of edits that are written so far.
    edited: usize,
    out: Spliced,
}

impl<'a> ViewWriter<'a> {
    fn of(
        data: &'a [u8],
        outline: &'a Outline,
        policy: &'a Policy,
        (pairs, turns): (&'a Pairs, &'a Turns),
        marks: MarkEdits,
        out: Spliced,
    ) -> Self {
        let placeholder = Placeholder::of(policy);
        let turns = placeholder.names_turn().then_some(turns);
        let encoded = placeholder.encoded();
        ViewWriter { data, outline, placeholder, encoded, pairs, turns, marks, edited: 0, out }
    }

    fn view(&mut self, plan: &Plan) {
        let spans = &self.outline.spans;
        if plan.layout.is_whole() {
            return self.whole(plan);
        }
        let (mut last, mut summary_before) = (None, None);
        for part in plan.layout.parts(0..plan.layout.len()) {
            let (first, end) = match &part {
                Part::Summary(summary) => {
                    summary_before = Some(*summary);
                    continue;
                }
                Part::Messages(messages) => (messages.start, messages.end),
                Part::Rewritten(message, ..) => (*message, *message + 1),
            };
            // A message is dropped with the comma after it, so the bytes before the first dropped one are unchanged.
            let (start, next) = last.map_or((0, 0), |last: usize| (spans[last].end, last + 1));
            self.out.input(start, spans[next].start);
            if let Some(summary) = summary_before.take() {
                self.out.text(|out| summary_message(summary, out));
                self.out.text(|out| out.push(b','));
                self.white_space_before(first);
            }
            match part {
                Part::Rewritten(message, cut, summary) => self.rewritten(plan, message, cut, summary),
                _ => self.messages(plan, first..end),
            }
            last = Some(end - 1);
        }
        if last.is_none() {
            self.out.input(0, spans.first().map_or(self.data.len(), |first| first.start));
        }
        if let Some(summary) = summary_before {
            if let Some(last) = last {
                self.out.text(|out| out.push(b','));
                self.white_space_before(last);
            }
            self.out.text(|out| summary_message(summary, out));
        }
        self.out.input(spans.last().map_or(self.data.len(), |last| last.end), self.data.len());
    }

    /// All messages, some of them without their reasoning.
    fn whole(&mut self, plan: &Plan) {
        let (mut at, mut first) = (0, 0);
        for message in plan.layout.unsigned.iter().map(|message| *message as usize) {
            let results = self.outline.results_before(first)..self.outline.results_before(message);
            let span = self.outline.spans[message];
            self.stretch(Span { start: at, end: span.start }, masked_in(&plan.masked, results));
            self.rewritten(plan, message, None, None);
            (at, first) = (span.end, message + 1);
        }
        let results = self.outline.results_before(first)..self.outline.results.len();
        self.stretch(Span { start: at, end: self.data.len() }, masked_in(&plan.masked, results));
    }

    fn message(&mut self, plan: &Plan, message: usize, cut: Option<&Cut>) {
        match cut {
            Some(cut) => self.cut(cut),
            None => self.messages(plan, message..message + 1),
        }
    }

    /// A message that may be cut, have the text of a summary, and lose its reasoning.
    fn rewritten(&mut self, plan: &Plan, message: usize, cut: Option<&Cut>, summary: Option<&Summary>) {
        let drops_reasoning = plan.layout.drops_reasoning_of(message);
        if !drops_reasoning && summary.is_none() {
            return self.message(plan, message, cut);
        }
        let before = core::mem::take(&mut self.out);
        self.message(plan, message, cut);
        let mut shown = core::mem::replace(&mut self.out, before).to_vec(self.data);
        if drops_reasoning {
            shown = unsigned_message(&shown);
        }
        match summary {
            Some(summary) => self.out.text(|out| joined_message(&shown, summary, out)),
            None => self.out.text(|out| out.extend_from_slice(&shown)),
        }
    }

    /// Messages in a row, which are not cut.
    fn messages(&mut self, plan: &Plan, messages: Range<usize>) {
        let (spans, outline) = (&self.outline.spans, self.outline);
        let span = Span { start: spans[messages.start].start, end: spans[messages.end - 1].end };
        let results = outline.results_before(messages.start)..outline.results_before(messages.end);
        self.stretch(span, masked_in(&plan.masked, results));
    }

    /// Copies the white space right before a message.
    fn white_space_before(&mut self, message: usize) {
        let before = message.checked_sub(1).map_or(self.outline.array_start, |before| self.outline.spans[before].end);
        let end = self.outline.spans[message].start;
        let comma = memchr::memchr(b',', &self.data[before..end]).map_or(0, |comma| comma + 1);
        self.out.input(before + comma, end);
    }

    /// Writes a message of the task that is cut. All but its text and images is copied.
    fn cut(&mut self, cut: &Cut) {
        let pieces = self.outline.pieces_of(cut.message);
        let (key, frame) = self.outline.messages[cut.message].shape.text();
        let span = self.outline.spans[cut.message];
        let value = Bytes(self.data).value_of(span, key.name());
        let raw = RawText::of(self.data, &self.outline.pieces[pieces]);
        let mut text = vec![b'"'];
        let chars = raw.chars();
        raw.clip(chars - cut.clip.beginning - cut.clip.end, &cut.clip, &mut text);
        text.push(b'"');
        self.out.input(span.start, value.start);
        if !self.cut_parts(key.name(), frame, value, &text) {
            self.out.text(|out| frame.write(out, |out| out.extend_from_slice(&text)));
        }
        self.out.input(value.end, span.end);
    }

    /// Writes a list of parts with this text. Returns false if no part has text.
    fn cut_parts(&mut self, key: &str, frame: Frame, value: Span, text: &[u8]) -> bool {
        let (data, spans) = (self.data, scan::elements(self.data, value).unwrap_or_default());
        let part = |span: &Span| part_of(key, frame, span.of(data));
        let Some(parts) = CutParts::of(&spans.iter().map(part).collect::<Vec<_>>()) else { return false };
        for (place, index) in parts.kept.iter().enumerate() {
            self.out.text(|out| out.push(if place == 0 { b'[' } else { b',' }));
            let mut part = spans[*index];
            if *index == parts.text {
                let before = Bytes(data).value_of(part, Key::Text.name());
                self.out.input(part.start, before.start);
                self.out.text(|out| out.extend_from_slice(text));
                part.start = before.end;
                if let Some(mark) = parts.mark_of.and_then(|place| marks::mark_of(data, spans[place])) {
                    self.out.input(part.start, part.end - 1);
                    self.out.text(|out| out.extend(mark.next_field(data)));
                    part.start = part.end - 1;
                }
            }
            self.out.input(part.start, part.end);
        }
        self.out.text(|out| out.push(b']'));
        true
    }

    /// A stretch of the input with some of its observations masked.
    fn stretch(&mut self, span: Span, masked: &[Masked]) {
        let mut at = span.start;
        for masked in masked {
            let result = &self.outline.results[masked.result as usize];
            let (value, block) = (result.value, (result.message as usize, result.block as usize));
            let moved = marks::moved(self.data, self.outline, masked.result as usize);
            let moved = moved.filter(|_| !self.marks.cleared.contains(&block));
            if let Some(Moved::Over(mark, null)) = moved
                && null.start < value.start
            {
                self.copy(at, null.start);
                self.out.input(mark.value.start, mark.value.end);
                at = null.end;
            }
            self.copy(at, value.start);
            self.replacement(masked, moved);
            at = value.end;
            match moved {
                Some(Moved::After(mark)) => self.out.text(|out| out.extend(mark.next_field(self.data))),
                Some(Moved::Over(mark, null)) if null.start > value.start => {
                    self.copy(at, null.start);
                    self.out.input(mark.value.start, mark.value.end);
                    at = null.end;
                }
                _ => {}
            }
        }
        self.copy(at, span.end);
    }

    /// Copies input, with the marks that are written there.
    fn copy(&mut self, mut at: usize, end: usize) {
        while let Some((span, text)) = self.marks.edits.get(self.edited).filter(|(span, _)| span.start < end) {
            self.out.input(at, span.start);
            self.out.text(|out| out.extend_from_slice(text));
            at = span.end;
            self.edited += 1;
        }
        self.out.input(at, end);
    }

    /// Writes the string that replaces a masked observation. Kept text is copied raw, with its escapes.
    fn replacement(&mut self, masked: &Masked, moved: Option<Moved>) {
        let result = masked.result as usize;
        let facts = facts(self.outline, self.pairs, self.turns, result);
        let facts = self.placeholder.with_handle(facts, self.outline, &Bytes(self.data), result);
        let raw = |result, clip: Option<&Clip>, out: &mut Vec<u8>| {
            let mut raw = RawText::of_result(self.data, self.outline, result);
            match clip {
                Some(clip) => raw.clip(clip.omitted, clip, out),
                None => raw.copy(usize::MAX, out),
            }
        };
        let text = |out: &mut Vec<u8>| {
            out.push(b'"');
            match masked.form {
                Form::Placeholder => self.encoded.write(&facts, out),
                Form::Cut { text_chars } => {
                    RawText::of_result(self.data, self.outline, result).copy(text_chars, out);
                    let mut text = Vec::new();
                    self.placeholder.write_clipped(&facts, &mut text);
                    encode_text(&text, out);
                }
                Form::Clip(ref counted) => {
                    raw(counted.source.map_or(result, |source| source as usize), Some(&counted.clip), out);
                }
                Form::Arrival(ref clip) => raw(result, Some(clip), out),
                Form::Restored { source } => raw(source as usize, self.outline.cut_of(source as usize), out),
                Form::Dispatch { with_head } => {
                    RawText::of_result(self.data, self.outline, result).blocks(with_head, out);
                }
            }
            out.push(b'"');
        };
        if self.outline.results[result].frame == Frame::Streams {
            streams(self.outline, result, &mut self.out, text);
        } else {
            self.out.text(|out| framed_text(self.data, self.outline, result, moved, out, text));
        }
    }
}

/// Writes the output of a shell with this string as its first text, and the other texts empty.
fn streams(outline: &Outline, result: usize, out: &mut Spliced, text: impl FnOnce(&mut Vec<u8>)) {
    let value = outline.results[result].value;
    let mut texts = outline.pieces_of_result(result).to_vec();
    let (first, mut text, mut at) = (texts.first().copied(), Some(text), value.start);
    texts.sort_unstable_by_key(|piece| piece.start);
    for piece in texts {
        out.input(at, piece.start - 1);
        match text.take_if(|_| Some(piece) == first) {
            Some(text) => out.text(text),
            None => out.text(|out| out.extend_from_slice(b"\"\"")),
        }
        at = piece.end + 1;
    }
    out.input(at, value.end);
}
