//! Replay of a finished session: what each of its requests would have sent under a policy, and how much of that is a prefix
//! shared with the previous request, which a prompt cache serves.
//!
//! There is a request before each run of agent messages, its answer. It sends the plan of the messages before it. Plans are
//! computed incrementally, since observations are never unmasked.

use super::arrival::arrived;
use super::cache::{CachePlace, Sent};
use super::context::Given;
use super::hidden::Hidden;
use super::layout::{Item, Layout};
use super::planner::Planner;
use super::replayed::Replayed;
use super::state::State;
use super::step::{Point, Step};
use super::summarize::{SummaryForm, SummaryWriter};
use super::units::{blocks_of, message_of};
use crate::outline::Outline;
use crate::policy::{Policy, Requests};
use crate::source::Source;
use crate::stop::check;
use crate::text::count_chars;
use crate::turns::Turns;

/// A request that a session made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub messages: usize,
    pub answer_chars: usize,
}

/// The requests of a session.
pub fn requests(outline: &Outline, image_chars: usize) -> Vec<Request> {
    let turns = Turns::of(outline);
    let answer = |start: u32, end: u32| {
        let answer_chars = (start as usize..end as usize).map(|message| outline.chars_of(message, image_chars)).sum();
        Request { messages: start as usize, answer_chars }
    };
    turns.starts.iter().zip(&turns.ends).map(|(start, end)| answer(*start, *end)).collect()
}

/// Replays the requests of a session: each sends the view of its state. Other goals than masking and reducing leave views unchanged,
/// or truncate them.
pub fn replay(outline: &Outline, source: &dyn Source, policy: &Policy, requests: &Requests) -> Replayed {
    let outline = &*arrived(outline, source, policy);
    let planner = Planner::of(outline, source, policy, Given { requests, ..Given::default() });
    let requests: Vec<usize> = planner.turns.starts.iter().map(|start| *start as usize).collect();
    let mut replayed = planner.replay_goal(&requests);
    let cut = outline.cuts.iter().map(|(result, _)| *result);
    for result in cut.chain(outline.cleared.iter().map(|(result, _)| *result)) {
        let message = outline.results[result as usize].message as usize;
        let first = requests.partition_point(|end| *end <= message) as u32;
        let hidden = &mut replayed.hidden_from[result as usize];
        *hidden = if (first as usize) < requests.len() { first.min(*hidden) } else { *hidden };
    }
    replayed
}

/// A session that is played again: its state, and what its last view has besides.
struct Played<'a> {
    planner: &'a Planner<'a>,
    state: State,
    /// The order of its last view. Of the summary it has no text.
    layout: Layout,
    /// Content blocks of the view after each of its messages, its summary not counted.
    blocks: Vec<usize>,
    /// Characters of the text of its summary.
    summary_chars: usize,
}

impl Planner<'_> {
    pub(super) fn replay(&self, requests: &[usize]) -> Replayed {
        let mut played = Played {
            planner: self,
            state: State::default(),
            layout: Layout::default(),
            blocks: vec![],
            summary_chars: 0,
        };
        let mut replayed = Replayed::of(self.outline);
        for end in requests {
            check();
            let (sent, step, text) = played.request(*end);
            let results = |message: &u32| self.outline.results_of(*message as usize);
            let hidden = step.hiding.iter().flat_map(|hiding| hiding.messages.iter().flat_map(results));
            let changed = step.changes().map(|one| one.result as usize);
            replayed.summaries.extend(text.map(|text| (replayed.sent.len() as u32, text)));
            replayed.push(sent, changed.chain(hidden));
        }
        replayed
    }
}

impl Played<'_> {
    /// Makes a request after this many messages. Returns what is sent, its step, and the text of a new built-in summary.
    fn request(&mut self, end: usize) -> (Sent, Step, Option<Vec<u8>>) {
        let (context, before) = (self.planner.context(), self.state.rule.before);
        self.state.grow(context, end);
        let is_said = |message: &usize| !context.outline.messages[*message].is_agent_made;
        let answered = (before..end).find(is_said).unwrap_or(end);
        let step = self.state.step(context, end, Point::Past);
        let call = self.call(&step, end);
        self.state.take_request(context, end, &step);
        let hidden = self.state.gone.hidden.clone();
        if hidden != self.layout.hidden {
            self.blocks.clear();
        }
        let summary = hidden.summary.map(|_| SummaryForm::default().summary(context.policy, vec![]));
        let layout = Layout { hidden, summary, ..Layout::whole(end) };
        let layout_before = core::mem::replace(&mut self.layout, layout);
        for place in self.blocks.len()..self.state.gone.hidden.shown_before(end) {
            let blocks = blocks_of(context.outline, self.state.gone.hidden.shown_at(place));
            self.blocks.push(self.blocks.last().copied().unwrap_or(0) + blocks);
        }
        let text = self.write_summary(end);
        // The first place of the previous view that is another one now, or gone.
        let changed = step.first_change().filter(|first| message_of(context.outline, *first) < before);
        let changed_message = changed.map(|first| message_of(context.outline, first));
        let first = self.layout.first_change(&layout_before, changed_message);
        let same = self.at(first);
        let mut same_blocks = same.blocks;
        if let Some((changed, message)) = changed.zip(changed_message)
            && [self.layout.item(first), layout_before.item(first)] == [Item::Message(message); 2]
        {
            let block = context.outline.results[changed as usize].block as usize;
            same_blocks += block.min(blocks_of(context.outline, message).saturating_sub(1));
        }
        let sent = Sent {
            view: self.place(end),
            same,
            same_blocks,
            earlier: self.place(before),
            answered: self.place(answered),
            boundary: self.boundary(),
            masked: self.state.results.masked.len(),
            summarized: self.summarized(&self.state.gone.hidden, end),
            need: self.state.need(context, &Step::default()),
            summary: call,
        };
        (sent, step, text)
    }

    /// Writes the summary that this request has made: as long as a model's, or the built-in one, which is returned.
    fn write_summary(&mut self, end: usize) -> Option<Vec<u8>> {
        let summary = self.state.gone.hidden.summary.filter(|summary| summary.request == end)?;
        let policy = self.planner.policy;
        if let Some(model) = policy.terms.summaries.map_or(policy.limit.model, |rules| rules.model) {
            self.summary_chars = summary.share.min(model.summary_chars);
            return None;
        }
        let writer = SummaryWriter::of(self.planner.context(), &self.state, &Step::default(), summary);
        let built_in = writer.built_in(&writer.tagged());
        let text = SummaryWriter::clipped(&built_in, summary.share, self.planner.costs.as_deref()).ok()?;
        self.summary_chars = count_chars(&text);
        Some(text)
    }

    /// The place in the view before a message, and after the summary that stands there.
    fn place(&self, message: usize) -> CachePlace {
        self.at(self.layout.place_of(message))
    }

    /// A place of the view.
    fn at(&self, place: usize) -> CachePlace {
        let summary = usize::from(self.layout.summary_place().is_some_and(|summary| summary < place));
        let before = (place - summary).checked_sub(1);
        CachePlace {
            chars: before.map_or(0, |before| self.state.sums.view_chars[before]) + summary * self.summary_chars,
            blocks: before.map_or(0, |before| self.blocks[before]) + summary,
        }
    }

    /// The end of the last masked result.
    fn boundary(&self) -> CachePlace {
        let Some(last) = self.state.results.masked.last() else { return CachePlace::default() };
        let (outline, result) = (self.planner.outline, last.result as usize);
        let message = message_of(outline, last.result);
        let later = outline.later_chars(result, self.planner.policy.text.image_chars);
        let block = (outline.results[result].block as usize + 1).min(blocks_of(outline, message));
        let shown = self.state.view_chars_before(message + 1) - self.state.view_chars_before(message);
        let before = self.place(message);
        CachePlace { chars: before.chars + shown.saturating_sub(later), blocks: before.blocks + block }
    }

    /// Characters of input and output of a model that writes a summary for this request.
    fn call(&self, step: &Step, end: usize) -> (usize, usize) {
        let (context, Some(hiding)) = (self.planner.context(), &step.hiding) else { return (0, 0) };
        let made = hiding.summary.filter(|summary| summary.request == end);
        let (Some(model), Some(made), None) = (context.policy.limit.model, made, hiding.call) else {
            return hiding.call.unwrap_or((0, 0));
        };
        let writer = SummaryWriter::of(context, &self.state, step, made);
        let (messages, known) = writer.untold(&self.state, step, |_| true);
        let of = messages.iter().map(|message| context.outline.chars_of(*message, context.policy.text.image_chars));
        let earlier = || writer.previous().map_or(0, |text| count_chars(&text));
        let previous = known.map_or_else(earlier, |_| SummaryWriter::body_chars(self.summary_chars));
        (of.sum::<usize>() + previous + model.prompt_chars, model.summary_chars)
    }

    /// How many turns before this message the view no longer has.
    fn summarized(&self, hidden: &Hidden, end: usize) -> usize {
        if hidden.is_empty() {
            return 0;
        }
        let starts = &self.planner.turns.starts;
        let starts = &starts[..starts.partition_point(|start| (*start as usize) < end)];
        let mut shown = hidden.shown(0..end).filter(|message| self.planner.outline.messages[*message].is_agent_made);
        let mut count = 0;
        let mut last = usize::MAX;
        for message in shown.by_ref() {
            let turn = self.planner.turns.at(message);
            count += usize::from(turn != last);
            last = turn;
        }
        starts.len() - count
    }
}
