//! Cache marks of the views of a session: the newest of those that were appended, or the caller's own, and those at the boundary that
//! a plan of the whole history has. Only readers of a view see them: no other rule does, and a change of marks is no change of the
//! view.

use crate::marks::{Marked, Marks, Pins, WantedMark, last_markable, remarked};
use crate::outline::Span;
use crate::plan::{
    BlockPlace, Masked, PlanContext, Wanted, block_of, blocks_between, marks_in_view, older_end, previous_request,
};
use crate::session::base::{EvictedMarks, SentMark};
use crate::session::log::Log;
use crate::session::stored::write_rendered;
use crate::session::{InLog, InView, Result, Session};
use crate::store::Store;

impl Session {
    /// The last block of each view has this mark, sent with this many outside of the messages; those that were appended are not
    /// sent.
    pub fn mark_newest(&mut self, value: Vec<u8>, elsewhere: usize) {
        let own = Some((value, elsewhere));
        if self.own_mark != own {
            self.own_mark = own;
            self.renew_policy();
            self.view.is_current = false;
        }
    }

    /// Whether views have other marks than what was appended.
    fn writes_marks(&self) -> bool {
        self.policy.pins_boundary || self.own_mark.is_some() || (self.is_undecided() && self.policy.may_pin())
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
            self.invalidate_from(first);
        }
    }

    /// The newest mark, and those at the boundary.
    fn marks_of_view(&self) -> Vec<SentMark> {
        let Some(newest) = self.newest_mark() else { return vec![] };
        let one = Marked { message: newest.message.0, block: newest.block, count: 1, stays: true };
        let marks = Marks { blocks: vec![one], elsewhere: self.policy.marks_elsewhere, on_tools: 0 };
        let (places, cache) = (self.places(), self.policy.cache);
        let in_log = |(message, block): BlockPlace| (places.held(InView(message)).0, block);
        let between = |from: BlockPlace, to: BlockPlace| {
            blocks_between(&self.log.outline, in_log(from), in_log(to), cache.lookback_blocks)
        };
        let pins = self.wanted_marks().pins(&marks, cache, between);
        let added = pins.into_iter().flat_map(|pins| pins.added);
        let mark = |(message, block, _)| SentMark { message: InView(message), block, value: newest.value.clone() };
        let added: Vec<_> = added.map(mark).collect();
        core::iter::once(newest).chain(added).collect()
    }

    fn newest_mark(&self) -> Option<SentMark> {
        let Log { base, marks, .. } = &self.log;
        if let Some((value, _)) = &self.own_mark {
            if self.policy.marks_elsewhere >= self.policy.cache.most_marks {
                return None; // ours gives way to the client's
            }
            let block = |message| last_markable(self.log.message(message)).map(|block| (message, block));
            let (message, block) = (0..self.log.len()).rev().find_map(block)?;
            return Some(SentMark { message: self.places().of_log(InLog(message)), block, value: value.clone() });
        }
        marks.last().map(|mark| self.appended_mark(mark)).or_else(|| base.marks.newest.clone())
    }

    fn appended_mark(&self, (message, block, value): &(usize, usize, Span)) -> SentMark {
        let message = self.places().of_log(InLog(*message));
        SentMark { message, block: *block, value: value.of(&self.log.data).to_vec() }
    }

    /// The marks of a session of facts as its view has them, and the pins of that; see [`crate::plan::pins`].
    #[must_use]
    pub fn pins(&self, marks: Marks) -> (Marks, Option<Pins>) {
        let (outline, cache) = (&self.log.outline, self.policy.cache);
        let marks = marks_in_view(outline, &self.masked(0, self.log.len()), marks);
        let pins = self
            .wanted_marks()
            .pins(&marks, cache, |from, to| blocks_between(outline, from, to, cache.lookback_blocks));
        (marks, pins)
    }

    /// The blocks that marks at the boundary are wanted on.
    fn wanted_marks(&self) -> Wanted {
        let Log { base, outline, turns, fold, .. } = &self.log;
        let tentative = &self.view.tentative;
        if !self.policy.pins_boundary || !self.view.is_masked || (fold.masked_count() == 0 && tentative.is_empty()) {
            return Wanted::default();
        }
        let boundaries = self.boundaries();
        let last = |masked: &[Masked]| {
            let end = masked.partition_point(|one| (one.result as usize) < boundaries.0.min(boundaries.1));
            masked[..end].iter().rfind(|one| one.is_masked()).cloned()
        };
        let mut masked: Vec<Masked> = [last(&fold.masked), last(tentative)].into_iter().flatten().collect();
        masked.sort_unstable_by_key(|one| one.result);
        let wanted = Wanted::of(outline, turns, masked.iter(), boundaries);
        let in_view = |(message, block): BlockPlace| (self.places().of_log(InLog(message)).0, block);
        let pin = if masked.is_empty() { base.marks.pin } else { wanted.pin.map(in_view) };
        Wanted { pin, carried: wanted.carried.map(in_view) }
    }

    /// The boundary at the previous request, and now.
    pub(in crate::session) fn boundaries(&self) -> (usize, usize) {
        let Log { fold, .. } = &self.log;
        if let Some(planned) = self.view.planned_boundaries {
            return planned;
        }
        if self.policy.remembers() {
            return fold.boundaries(self.log.ends_with_run(), self.view.tentative_boundary);
        }
        self.log.with_context(&self.policy, |context| {
            let PlanContext { outline, policy, turns, .. } = context;
            let before = older_end(context, previous_request(outline, turns).unwrap_or(0));
            let now = older_end(context, self.log.len());
            let now = if self.view.is_masked_to_window { now } else { fold.rounded(policy, now) };
            (fold.rounded(policy, before), now)
        })
    }

    /// The marks of the evicted messages after evicting some more.
    pub(in crate::session) fn evicted_marks(&self, count: usize) -> EvictedMarks {
        let Log { base, outline, fold, marks, .. } = &self.log;
        let first = outline.results_before(count);
        let masked = &fold.masked[..fold.masked.partition_point(|one| (one.result as usize) < first)];
        let pin = masked.last().map(|last| block_of(outline, last.result as usize));
        let newest = marks[..marks.partition_point(|(message, ..)| *message < count)].last();
        let in_view = |(message, block): BlockPlace| (self.places().of_log(InLog(message)).0, block);
        EvictedMarks {
            pin: pin.map_or(base.marks.pin, |pin| pin.map(in_view)),
            newest: newest.map(|mark| self.appended_mark(mark)).or_else(|| base.marks.newest.clone()),
        }
    }

    /// Messages in memory before this one have no mark to come but the last masked one, which [`EvictedMarks`] remember.
    pub(in crate::session) fn final_marks(&self) -> usize {
        let Log { outline, turns, .. } = &self.log;
        if !self.writes_marks() {
            return usize::MAX;
        }
        let Some(before) = turns.starts.len().checked_sub(2).map(|run| turns.starts[run] as usize) else { return 0 };
        let of_request = |context: PlanContext| self.log.fold.rounded(&self.policy, older_end(context, before));
        let sent = if self.policy.remembers() {
            self.log.fold.boundaries(true, None).0
        } else {
            self.log.with_context(&self.policy, of_request)
        };
        let of_boundary = outline.results.get(sent).map_or(usize::MAX, |result| result.message as usize);
        before.saturating_sub(1).min(of_boundary)
    }

    /// Renders messages in memory as they are sent; returns also how many bytes they have without changes of marks.
    pub(in crate::session) fn render_sent(&self, start: InView, end: InView) -> (Vec<u8>, usize) {
        let marked = self.marked_messages(start, end);
        if marked.is_empty() {
            let out = self.render(start, end);
            let bytes = out.len();
            return (out, bytes);
        }
        let (mut out, mut bytes, mut at) = (vec![], 0, start);
        let render = |start, end, bytes: &mut usize| {
            let appended = self.render(start, end);
            *bytes += appended.len();
            appended
        };
        for message in marked {
            if at < message {
                out.extend(render(at, message, &mut bytes));
            }
            let next = InView(message.0 + 1);
            out.push(render(message, next, &mut bytes)[0]);
            out.extend(self.sent_message(self.places().held(message)));
            at = next;
        }
        if at < end {
            out.extend(render(at, end, &mut bytes));
        }
        (out, bytes)
    }

    /// Messages in memory that have marks, appended or sent.
    pub(in crate::session) fn marked_messages(&self, start: InView, end: InView) -> Vec<InView> {
        if !self.writes_marks() {
            return vec![];
        }
        let (marks, places) = (&self.log.marks, self.places());
        let first = marks.partition_point(|(message, ..)| places.of_log(InLog(*message)) < start);
        let appended = marks[first..].iter().map(|(message, ..)| places.of_log(InLog(*message)));
        let sent = self.view.marks.iter().map(|mark| mark.message).filter(|message| places.in_log(*message).is_some());
        let mut found: Vec<InView> = appended
            .take_while(|message| *message < end)
            .chain(sent.filter(|message| (start..end).contains(message)))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Renders a message in memory with the marks of the view.
    pub(in crate::session) fn sent_message(&self, message: InLog) -> Vec<u8> {
        if !self.writes_marks() {
            return self.rendered_message(message);
        }
        let (outline, InLog(here), message) = (&self.log.outline, message, self.places().of_log(message));
        let newest = self.view.marks.first().filter(|newest| newest.message == message);
        let has_blocks = outline.messages[here].shape.has_blocks();
        let is_newest = |block: usize| newest.is_some_and(|newest| !has_blocks || newest.block == block);
        let results = outline.results_of(here).map(|result| outline.results[result].block as usize);
        let cleared: Vec<BlockPlace> = results.filter(|block| !is_newest(*block)).map(|block| (here, block)).collect();
        let mut shown = vec![];
        self.log.render(&self.policy, (here, here + 1), &self.masked(here, here + 1), &cleared, &mut shown);
        remarked(&shown[1..], &self.marks_on(message))
    }

    fn marks_on<'a>(&'a self, message: InView) -> Vec<WantedMark<'a>> {
        let marks = self.view.marks.iter().enumerate().filter(|(_, mark)| mark.message == message);
        let wanted = |(place, mark): (usize, &'a SentMark)| WantedMark {
            block: mark.block,
            value: &mark.value,
            is_own: place == 0,
        };
        marks.map(wanted).collect()
    }

    /// Appends an evicted message, as it is sent, with the comma or bracket before it; returns how many bytes were read.
    pub(in crate::session) fn write_sent(
        &self,
        store: &mut Store,
        message: InView,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        let start = out.len() + 1;
        let read = write_rendered(store, message.0, out)?;
        if self.writes_marks() {
            let sent = remarked(&out[start..], &self.marks_on(message));
            out.truncate(start);
            out.extend(sent);
        }
        Ok(read)
    }
}
