//! The view of a session: what of the state and of the current step its readers have seen, and the first message that changed.

pub(crate) mod marks;
mod output;

pub(crate) use output::Mask;
pub use output::{Chunks, ViewMessage};

use crate::clip::Clip;
use crate::plan::{
    Alone, Layout, Masked, Move, START, Step, Summary, SummaryForm, masked_in, shown, texts_of, with_arrivals,
    with_form,
};
use crate::session::Session;
use crate::text::count_chars;
use core::ops::Range;
use marks::SentMark;
use std::sync::Arc;

/// The last view, and what its readers have cached.
#[derive(Debug, Default, Clone)]
pub(crate) struct View {
    pub layout: Layout,
    /// The text of the summary of the view that is made next.
    pub next_summary: Option<Vec<u8>>,
    /// Masks and cuts, in order: the results, of those that are cut how, and the digest of all up to each.
    pub forms: Vec<(u32, Option<Clip>, u64)>,
    pub alone: Alone,
    /// No earlier message has other masks or cuts since.
    pub touched: usize,
    /// Whether no message was appended since.
    pub is_current: bool,
    /// The first place that changed since the chunks and the list were read last; and the first message, for the masks.
    chunks_from: usize,
    list_from: usize,
    masks_from: usize,
    /// The ends of the closed chunks: place, byte.
    chunk_ends: Vec<(usize, usize)>,
    /// The place of the most recent change.
    changed: Option<usize>,
    /// The marks of ours and the newest one, which is the first.
    pub marks: Vec<SentMark>,
    /// Whether it is masked up to the window, whatever the boundary.
    pub is_masked_to_window: bool,
    /// The form of a summary, and how many messages it is read from.
    form: SummaryForm,
    form_of: usize,
    /// Whether it has masks and cuts; see [`Session::is_masked`].
    is_masked: bool,
}

impl View {
    /// How many forms are of results before this one.
    pub(super) fn forms_before(&self, result: usize) -> usize {
        self.forms.partition_point(|(other, ..)| (*other as usize) < result)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub messages: usize,
    pub chars: usize,
    pub masked: usize,
}

impl Session {
    /// These results may be shown otherwise now.
    pub(super) fn touch_results(&mut self, changes: &[Masked]) {
        if let Some(first) = changes.first() {
            self.touch(first.result);
        }
    }

    /// What the one of two steps changes and the other does not may be shown otherwise now.
    pub(super) fn touch_difference(&mut self, one: &Step, other: &Step) {
        let first = |one: &[Masked], other: &[Masked]| {
            let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
            one[same..].first().into_iter().chain(other[same..].first()).map(|one| one.result).min()
        };
        let changed = [first(&one.masked, &other.masked), first(&one.cuts, &other.cuts)];
        if let Some(first) = changed.into_iter().flatten().min() {
            self.touch(first);
        }
    }

    fn touch(&mut self, result: u32) {
        let message = self.log.outline.results.get(result as usize).map_or(0, |result| result.message as usize);
        self.view.touched = self.view.touched.min(message);
    }

    /// Makes the view that the state and the current step give, and finds the first place that changed.
    pub(super) fn show(&mut self) {
        let is_masked = self.is_masked();
        if core::mem::replace(&mut self.view.is_masked, is_masked) != is_masked {
            self.view.touched = 0;
        }
        let outline = &self.log.outline;
        let first = outline.results_before(self.view.touched.min(outline.messages.len()));
        let now = self.masked_results(first..outline.results.len());
        let known = self.view.forms_before(first);
        let forms = &mut self.view.forms;
        let mut digest = match known.checked_sub(1) {
            Some(last) => forms[last].2,
            None if now.is_empty() => START,
            None => texts_of(&self.policy),
        };
        let form = |one: &Masked| {
            digest = with_form(digest, one);
            (one.result, one.clip().copied(), digest)
        };
        let now: Vec<_> = now.iter().map(form).collect();
        let hidden =
            if self.step.hiding.is_some() { self.state.hidden_after(&self.step) } else { self.state.hidden().clone() };
        let Layout { messages, hidden: hidden_before, .. } = &self.view.layout;
        let message_of = |result: u32| outline.results.get(result as usize).map(|result| result.message as usize);
        // Of messages that both views show.
        let is_shown = |(result, ..): &&(u32, Option<Clip>, u64)| {
            message_of(*result).is_none_or(|message| !hidden.has(message) && !hidden_before.has(message))
        };
        let (mut old, mut new) = (forms[known..].iter().filter(is_shown), now.iter().filter(is_shown));
        let differing = loop {
            match (old.next(), new.next()) {
                (Some(before), Some(now)) if (before.0, before.1) == (now.0, now.1) => {}
                pair => break pair,
            }
        };
        let other = [differing.0, differing.1].into_iter().flatten().map(|(result, ..)| *result).min();
        let changed = other.and_then(message_of).filter(|message| message < messages);
        forms.truncate(known);
        self.view.forms.extend(now);
        self.view.form.read(&outline.messages[self.view.form_of..]);
        self.view.form_of = outline.messages.len();
        let (text, messages) = (self.view.next_summary.take(), self.log.len());
        let summary = text.map(|text| Summary {
            joins: self.with_context(|context| hidden.joined(context, messages)),
            ..self.view.form.summary(&self.policy, text)
        });
        let mut layout = Layout { hidden, summary, ..Layout::whole(messages) };
        layout.keep_reasoning_of(&self.view.layout);
        let (mut place, places_before) = (layout.first_change(&self.view.layout, changed), self.view.layout.len());
        let is_edited = core::mem::take(&mut self.view.alone.is_rewound) || place < places_before;
        let from = self.reasoning_from(&layout, is_edited);
        if from != layout.reasoning_from {
            layout.drop_reasoning(&self.log.outline, from);
            place = layout.first_change(&self.view.layout, changed);
        }
        self.view.layout = layout;
        if place < places_before {
            self.view.changed = Some(place);
            self.invalidate_from(place);
            let first = self.view.layout.message_from(place);
            self.view.masks_from = self.view.masks_from.min(first).min(changed.unwrap_or(first));
        }
        (self.view.touched, self.view.is_current) = (self.log.len(), true);
    }

    /// Readers must read the view again from this place on.
    fn invalidate_from(&mut self, place: usize) {
        self.view.chunks_from = self.view.chunks_from.min(place);
        self.view.list_from = self.view.list_from.min(place);
    }

    /// After a rewind to this many messages: the view ends with them at most.
    pub(super) fn forget_view_after(&mut self, messages: usize) {
        let results = self.log.outline.results.len();
        let view = &mut self.view;
        view.forms.truncate(view.forms_before(results));
        view.alone.truncate(messages);
        view.is_current = false;
        if view.layout.messages > messages {
            let before = view.layout.clone();
            view.layout.truncate(messages);
            let place = view.layout.first_change(&before, None);
            (view.form, view.form_of) = (SummaryForm::default(), 0);
            if place < before.len() {
                view.changed = Some(place);
            }
            self.view.masks_from = self.view.masks_from.min(messages).min(self.view.layout.message_from(place));
            self.invalidate_from(place);
        }
    }

    /// The place of the most recent change in the view, and its byte.
    pub(crate) fn changed(&self) -> Option<(usize, usize)> {
        let place = self.view.changed?;
        let valid = place.min(self.view.chunks_from);
        let chunks = self.view.chunk_ends.partition_point(|(end, _)| *end <= valid);
        let (start, bytes) = chunks.checked_sub(1).map_or((0, 0), |last| self.view.chunk_ends[last]);
        let between = if start < place { self.render(start, place).len() } else { 0 };
        Some((place, bytes + between + 1))
    }

    /// The masked and cut results among these, those that arrived as another text included.
    pub(super) fn masked_results(&self, results: Range<usize>) -> Vec<Masked> {
        let outline = &self.log.outline;
        if !self.is_masked() {
            return with_arrivals(outline, vec![], results);
        }
        let (masked, cuts) = self.state.masked();
        let layers = [cuts, masked, &self.step.cuts, &self.step.masked];
        let [cuts, masked, new_cuts, new_masked] = layers.map(|layer| masked_in(layer, results.clone()).to_vec());
        with_arrivals(outline, shown(shown(shown(cuts, masked), new_cuts), new_masked), results)
    }

    /// Those of the view that was shown last, without their texts.
    fn changed_results(&self, results: Range<usize>) -> &[(u32, Option<Clip>, u64)] {
        &self.view.forms[self.view.forms_before(results.start)..self.view.forms_before(results.end)]
    }

    pub(super) fn masked(&self, messages: Range<usize>) -> Vec<Masked> {
        let outline = &self.log.outline;
        self.masked_results(outline.results_before(messages.start)..outline.results_before(messages.end))
    }

    /// The cost of the current view.
    pub(crate) fn view_cost(&self) -> usize {
        if self.is_masked() { self.step.cost } else { self.log.cost }
    }

    /// Sizes of the current view.
    pub fn counts(&self) -> Counts {
        let layout = &self.view.layout;
        let messages = layout.len();
        if !self.is_masked() {
            let cleared = self.log.outline.cleared.len();
            return Counts { messages, chars: self.log.chars, masked: cleared };
        }
        let share = layout.hidden.summary.map_or(0, |summary| summary.share);
        let summary = layout.summary.as_ref().map_or(0, |summary| count_chars(&summary.text));
        let chars = self.state.chars_after(self.log.len(), &self.step).saturating_sub(share).saturating_add(summary);
        let is_shown = |result: u32| !layout.hidden.has(self.log.outline.results[result as usize].message as usize);
        let masked = self.view.forms.iter().filter(|(result, clip, _)| clip.is_none() && is_shown(*result)).count();
        Counts { messages, chars, masked }
    }

    /// The moves of the boundary, with that of the current request.
    pub fn moves_from(&self, first: usize) -> Vec<Move> {
        if !self.policy.remembers() || !self.is_masked() {
            return vec![];
        }
        let newest = self.state.moved_by(&self.log.outline, &self.step);
        self.state.moves().iter().copied().chain(newest).skip(first).collect()
    }

    /// How many moves the boundary made before the current request.
    pub(crate) fn settled_moves(&self) -> usize {
        if self.policy.remembers() { self.state.moves().len() } else { 0 }
    }

    /// The moves since this was called last.
    pub(crate) fn new_moves(&mut self) -> Vec<Move> {
        let moves = self.moves_from(self.known_moves);
        self.known_moves += moves.len();
        moves
    }
}

impl Layout {
    /// Ends with the first messages at most.
    fn truncate(&mut self, messages: usize) {
        self.messages = self.messages.min(messages);
        self.reasoning_from = self.reasoning_from.min(messages);
        for reasoning in [&mut self.unsigned, &mut self.unread] {
            if reasoning.last().is_some_and(|last| *last as usize >= messages) {
                Arc::make_mut(reasoning).retain(|message| (*message as usize) < messages);
            }
        }
        if self.hidden.reaches(messages) {
            *self = Layout::whole(self.messages);
        }
    }
}
