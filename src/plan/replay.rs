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

/// A policy of a door, and what is known of its requests: of those after at most so many messages, and after those of the part before.
pub type Period<'a> = (&'a Policy, &'a Requests, usize);

/// Replays the requests of a session at a door whose policy may change: each sends the view of the state that its policy makes of the
/// whole history. Other goals than masking and reducing leave views unchanged, or truncate them.
pub fn replay(outline: &Outline, source: &dyn Source, door: &[Period<'_>]) -> Replayed {
    let starts: Vec<usize> = Turns::of(outline).starts.into_iter().map(|start| start as usize).collect();
    let mut replayed = Replayed::default();
    for (policy, requests, last) in door {
        let outline = &*arrived(outline, source, policy);
        let policy = &*policy.of(outline);
        let planner = Planner::of(outline, source, policy, Given { requests, ..Given::default() });
        if replayed.sent.is_empty() {
            replayed = Replayed::of(outline, &starts);
        }
        replayed = planner.replay_goal(&starts[..starts.partition_point(|start| start <= last)], replayed);
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
    /// Makes these requests, of which the first may have been made by another policy.
    pub(super) fn replay(&self, requests: &[usize], mut replayed: Replayed) -> Replayed {
        let mut played = Played {
            planner: self,
            state: State::default(),
            layout: Layout::default(),
            blocks: vec![],
            summary_chars: 0,
        };
        for (number, end) in requests.iter().enumerate() {
            check();
            let other = if number == replayed.sent.len() { replayed.last.take() } else { None };
            let is_other = other.is_some();
            let hidden_before = played.state.gone.hidden.clone();
            let (sent, step, text) = played.request(*end, other);
            if number < replayed.sent.len() {
                continue;
            }
            replayed.summaries.extend(text.map(|text| (replayed.sent.len() as u32, text)));
            if is_other || hidden_before != played.state.gone.hidden {
                let (forms, hidden) = (played.forms(), &played.state.gone.hidden);
                let has_form = |result: usize| forms.binary_search(&(result as u32)).is_ok();
                let is_gone = |result: usize| hidden.has(self.outline.results[result].message as usize);
                replayed.push_whole(sent, |result| has_form(result) || is_gone(result));
            } else {
                replayed.push(sent, step.changes().map(|one| one.result as usize));
            }
        }
        replayed.last = Some((played.layout.clone(), played.forms()));
        replayed
    }
}

/// The first number that is in one of two ascending lists.
fn first_difference(one: &[u32], other: &[u32]) -> Option<u32> {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    one[same..].first().into_iter().chain(other[same..].first()).min().copied()
}

impl Played<'_> {
    /// The results of the view that are masked or cut.
    fn forms(&self) -> Vec<u32> {
        self.state.forms(&Step::default()).into_iter().map(|one| one.result).collect()
    }

    /// Makes a request after this many messages; `other` is the view before it, if that is one of another policy. Returns what is
    /// sent, its step, and the text of a new built-in summary.
    fn request(&mut self, end: usize, other: Option<(Layout, Vec<u32>)>) -> (Sent, Step, Option<Vec<u8>>) {
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
        let own_before = core::mem::replace(&mut self.layout, layout);
        let own_change = step.first_change();
        let (layout_before, first_changed) = match other {
            Some((layout, forms)) => (layout, first_difference(&forms, &self.forms())),
            None => (own_before, own_change),
        };
        for place in self.blocks.len()..self.state.gone.hidden.shown_before(end) {
            let blocks = blocks_of(context.outline, self.state.gone.hidden.shown_at(place));
            self.blocks.push(self.blocks.last().copied().unwrap_or(0) + blocks);
        }
        let text = self.write_summary(end);
        // The first place of the previous view that is another one now, or gone.
        let changed = first_changed.filter(|first| message_of(context.outline, *first) < before);
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
