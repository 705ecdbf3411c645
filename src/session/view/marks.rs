//! Cache marks of the views of a session: the newest of those that were appended, or the caller's own, and those at the boundary that
//! a plan of the whole history has. Only readers of a view see them: no other rule does, and a change of marks is no change of the
//! view.

use crate::marks::{Marked, Marks, Pins, WantedMark, last_markable, remarked};
use crate::outline::Span;
use crate::plan::{
    BlockPlace, Item, Masked, PlanContext, Wanted, blocks_between, marks_in_view, older_end, previous_request,
};
use crate::session::Session;
use crate::session::log::Log;
use crate::splice::unsigned_message;

/// A mark of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentMark {
    pub message: usize,
    pub block: usize,
    pub value: Vec<u8>,
}

impl Session {
    /// The last block of each view has this mark, sent with this many outside of the messages; those that were appended are not
    /// sent.
    pub(crate) fn mark_newest(&mut self, value: Vec<u8>, elsewhere: usize) {
        let own = Some((value, elsewhere));
        if self.own_mark != own {
            self.own_mark = own;
            self.renew_requests();
            self.view.is_current = false;
        }
    }

    /// Whether views have other marks than what was appended.
    fn writes_marks(&self) -> bool {
        self.policy.terms.pins_boundary || self.own_mark.is_some() || (self.is_undecided() && self.policy.may_pin())
    }

    /// Decides the marks of the view that was just made.
    pub(in crate::session) fn update_marks(&mut self) {
        if !self.writes_marks() {
            return;
        }
        let marks = self.marks_of_view();
        let before = core::mem::replace(&mut self.view.marks, marks);
        let only_in = |one: &[SentMark], other: &[SentMark]| {
            one.iter().filter(|mark| !other.contains(mark)).map(|mark| mark.message).min()
        };
        let first = only_in(&before, &self.view.marks).into_iter().chain(only_in(&self.view.marks, &before)).min();
        if let Some(first) = first {
            self.invalidate_from(self.view.layout.place_of(first));
        }
    }

    /// The newest mark, and those at the boundary.
    fn marks_of_view(&self) -> Vec<SentMark> {
        let Some(newest) = self.newest_mark() else { return vec![] };
        let one = Marked { message: newest.message, block: newest.block, count: 1, stays: true };
        let marks = Marks { blocks: vec![one], elsewhere: self.requests.marks_elsewhere, on_tools: 0 };
        let lookback = self.policy.terms.cache.lookback_blocks;
        let between = |from, to| blocks_between(&self.log.outline, from, to, lookback);
        let pins = self.wanted_marks().pins(&marks, self.policy.terms.cache, between);
        let added = pins.into_iter().flat_map(|pins| pins.added);
        let mark = |(message, block, _)| SentMark { message, block, value: newest.value.clone() };
        let added: Vec<_> = added.map(mark).collect();
        core::iter::once(newest).chain(added).collect()
    }

    fn newest_mark(&self) -> Option<SentMark> {
        let hidden = &self.view.layout.hidden;
        if let Some((value, _)) = &self.own_mark {
            if self.requests.marks_elsewhere >= self.policy.terms.cache.most_marks {
                return None; // ours gives way to the client's
            }
            let block = |message| last_markable(self.log.message(message)).map(|block| (message, block));
            let (message, block) = hidden.shown(0..self.log.len()).rev().find_map(block)?;
            return Some(SentMark { message, block, value: value.clone() });
        }
        let newest = self.log.marks.iter().rfind(|(message, ..)| !hidden.has(*message))?;
        Some(self.appended_mark(newest))
    }

    fn appended_mark(&self, (message, block, value): &(usize, usize, Span)) -> SentMark {
        SentMark { message: *message, block: *block, value: value.of(&self.log.data).to_vec() }
    }

    /// The marks of a session of facts as its view has them, and the pins of that; see [`crate::plan::pins`].
    pub(crate) fn pins(&self, marks: Marks, is_automatic: bool) -> (Marks, Option<Pins>) {
        let (outline, cache) = (&self.log.outline, self.policy.terms.cache);
        let marks = if is_automatic { marks.with_automatic(outline) } else { marks };
        let marks = marks_in_view(outline, &self.masked(0..self.log.len()), marks);
        let between = |from, to| blocks_between(outline, from, to, cache.lookback_blocks);
        let pins = self.wanted_marks().pins(&marks, cache, between);
        (marks, pins)
    }

    /// The blocks that marks at the boundary are wanted on.
    fn wanted_marks(&self) -> Wanted {
        let (masked, new) = (self.state.masked().0, &self.step.masked[..]);
        let hidden = &self.view.layout.hidden;
        let is_whole = hidden.is_empty() && hidden.cuts.is_empty();
        if !self.policy.terms.pins_boundary || !is_whole || !self.is_masked() || (masked.is_empty() && new.is_empty()) {
            return Wanted::default();
        }
        let boundaries = self.boundaries();
        let last = |masked: &[Masked]| {
            let end = masked.partition_point(|one| (one.result as usize) < boundaries.0.min(boundaries.1));
            masked[..end].iter().rfind(|one| one.is_masked()).cloned()
        };
        let mut masked: Vec<Masked> = [last(masked), last(new)].into_iter().flatten().collect();
        masked.sort_unstable_by_key(|one| one.result);
        Wanted::of(&self.log.outline, &self.log.turns, masked.iter(), boundaries)
    }

    /// The boundary at the previous request, and now.
    fn boundaries(&self) -> (usize, usize) {
        if self.policy.remembers() {
            let now = (!self.step.changes_nothing()).then_some(self.step.boundary);
            return self.state.boundaries(self.log.ends_with_run(), now);
        }
        self.with_context(|context| {
            let PlanContext { outline, policy, turns, .. } = context;
            let before = older_end(context, previous_request(outline, turns).unwrap_or(0));
            let now = older_end(context, self.log.len());
            let now = if self.view.is_masked_to_window { now } else { policy.rounded(now) };
            (policy.rounded(before), now)
        })
    }

    /// Renders places of the view as they are sent.
    pub(in crate::session) fn render_sent(&self, start: usize, end: usize) -> Vec<u8> {
        let marked = self.marked_places(start, end);
        let (mut out, mut at) = (vec![], start);
        for place in marked {
            out.extend(self.render(at, place));
            out.push(if place == 0 { b'[' } else { b',' });
            if let Item::Message(message) = self.view.layout.item(place) {
                out.extend(self.sent_message(message));
            }
            at = place + 1;
        }
        out.extend(self.render(at, end));
        out
    }

    /// The places of messages that have marks, appended or sent.
    fn marked_places(&self, start: usize, end: usize) -> Vec<usize> {
        if !self.writes_marks() {
            return vec![];
        }
        let layout = &self.view.layout;
        let sent = self.view.marks.iter().map(|mark| mark.message);
        let marked = self.log.marks.iter().map(|(message, ..)| *message).chain(sent);
        let shown = marked.filter(|message| !layout.hidden.has(*message)).map(|message| layout.place_of(message));
        let mut found: Vec<usize> = shown.filter(|place| (start..end).contains(place)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether a message has marks, appended or sent.
    pub(in crate::session) fn is_marked(&self, message: usize) -> bool {
        self.writes_marks()
            && (self.log.marks.binary_search_by_key(&message, |(marked, ..)| *marked).is_ok()
                || self.view.marks.iter().any(|mark| mark.message == message))
    }

    /// Renders a message with the marks of the view.
    pub(in crate::session) fn sent_message(&self, message: usize) -> Vec<u8> {
        if !self.writes_marks() {
            return self.rendered_message(message);
        }
        if self.view.layout.is_joined_or_cut(message) {
            // The parts of a cut message are one text, which has the newest of its marks.
            let shown = self.rendered_message(message);
            let is_wanted = self.view.marks.iter().any(|mark| mark.message == message);
            return if is_wanted { shown } else { remarked(&shown, &[]) };
        }
        let Log { outline, .. } = &self.log;
        let newest = self.view.marks.first().filter(|newest| newest.message == message);
        let has_blocks = outline.messages[message].shape.has_blocks();
        let is_newest = |block: usize| newest.is_some_and(|newest| !has_blocks || newest.block == block);
        let results = outline.results_of(message).map(|result| outline.results[result].block as usize);
        let cleared: Vec<BlockPlace> =
            results.filter(|block| !is_newest(*block)).map(|block| (message, block)).collect();
        let mut shown = vec![];
        self.log.render(&self.policy, message..message + 1, &self.masked(message..message + 1), &cleared, &mut shown);
        let sent = remarked(&shown, &self.marks_on(message));
        if self.view.layout.drops_reasoning_of(message) { unsigned_message(&sent) } else { sent }
    }

    fn marks_on(&self, message: usize) -> Vec<WantedMark<'_>> {
        let marks = self.view.marks.iter().enumerate().filter(|(_, mark)| mark.message == message);
        let wanted = |(place, mark)| {
            let SentMark { block, value, .. }: &SentMark = mark;
            WantedMark { block: *block, value, is_own: place == 0 }
        };
        marks.map(wanted).collect()
    }
}
