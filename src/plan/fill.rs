//! What a view over its limit keeps, where masks and cuts are not enough: system messages and the keep set; the task and the user's
//! words, which have shares of the limit; the share of a summary; and the newest units that fit the rest. All else is hidden.
//!
//! Shares are exact, in four-millionths of the limit's unit. With rounding, a larger limit could leave less room.

use super::context::{PlanContext, view_cost};
use super::hidden::{Hiding, Standing, key_of, share_of};
use super::keep::{Keeping, Landmarks};
use super::masked::{Cut, Masked, masked_in};
use super::state::State;
use super::step::Step;
use super::summarize::{earlier_summaries, leading_system_messages, text_of};
use super::window::last_answer;
use crate::clip::{Clip, MIN_CLIP_CHARS};
use crate::outline::Outline;
use crate::text::count_chars;
use core::cmp::Reverse;
use core::iter::once;
use std::collections::{BTreeSet, HashSet};

const SCALE: i128 = 4_000_000;
/// The task gets half of the filled part of the limit, up to half of this part, in millionths.
const MOST_FILLED_FOR_TASK: i128 = 500_000;
/// Minimum characters of the newest message of the task.
const LEAST_TASK: usize = 220;
/// Shorter summaries would lose the first line, by which they are recognized: in characters or tokens, and in weighed quarters of these.
const LEAST_SUMMARY: usize = 30;
const LEAST_WEIGHED_SUMMARY: usize = 90;

/// A history that fills a part of its limit.
pub(super) struct Filling<'a> {
    state: &'a State,
    context: PlanContext<'a>,
    end: usize,
    budget: i128,
    /// The share of the limit, in millionths.
    filled: i128,
    /// Masks and cuts of the view.
    forms: Vec<Masked>,
    /// Messages of the task in the view, oldest first, with their costs.
    task: Vec<(usize, usize)>,
    /// Summaries of earlier reductions in the view.
    earlier: Vec<usize>,
    landmarks: Landmarks,
    /// Roles must alternate in its views.
    alternates: bool,
    /// The first system message inside of the view.
    system_inside: Option<usize>,
    /// The messages after the last answer, which no request has shown.
    first_unseen: usize,
}

/// Shares of the limit, scaled.
pub(super) struct Room {
    task: i128,
    /// Of what the user has said.
    words: i128,
    /// Of the other units.
    units: i128,
}

/// The messages that are kept, in order; what is left of those of the task, and the cost of all.
#[derive(Default)]
pub(super) struct Kept {
    messages: BTreeSet<usize>,
    cuts: Vec<Cut>,
    cost: usize,
}

impl State {
    /// Hides messages of a view that does not fit, even after this step; None if nothing helps.
    pub(super) fn hide(&self, context: PlanContext, end: usize, max: usize, exhausted: Step) -> Option<Step> {
        let mut filling = Filling::of(self, context, end, max, &exhausted, true)?;
        if self.unseen_cost(context, end, &exhausted) > max {
            // It is sent whole, the task and a summary too, and all else gives way.
            let is_seen = |message: usize| message < filling.first_unseen;
            filling.task.retain(|(message, _)| is_seen(*message));
            filling.earlier.retain(|message| is_seen(*message));
        }
        let mut kept = filling.keep_set();
        let mut room = filling.room(&kept);
        filling.keep_words(&mut kept, &mut room);
        filling.step(filling.with_units(kept, &room), exhausted)
    }

    /// The cost of what no request has shown, after a step.
    fn unseen_cost(&self, context: PlanContext, end: usize, step: &Step) -> usize {
        let first = first_unseen(context.outline, end);
        let results = context.outline.results_before(first)..context.outline.results_before(end);
        let unseen = step.changes().filter(|one| results.contains(&(one.result as usize)));
        view_cost(context, self.gone.hidden.shown(first..end), unseen).0
    }

    /// Whether nothing would fit, since what is never hidden is over the limit alone, and this was so before: until the view has grown
    /// by a quarter since then, nothing more is hidden. Else each request would look at all that is never hidden.
    pub(super) fn is_least(&self, max: usize, exhausted: &Step) -> bool {
        let is_grown = exhausted.cost > self.rule.least + self.rule.least / 4;
        !is_grown && self.sums.fixed_cost > max
    }
}

/// The first message after the last answer, which no request has shown.
fn first_unseen(outline: &Outline, end: usize) -> usize {
    last_answer(outline, 0..end).map_or(0, |last| last + 1)
}

impl<'a> Filling<'a> {
    /// That of a view after a step; None where the limit is not filled.
    pub(super) fn of(
        state: &'a State,
        context: PlanContext<'a>,
        end: usize,
        max: usize,
        step: &Step,
        is_own: bool,
    ) -> Option<Self> {
        let filled = context.policy.limit.fill?;
        let PlanContext { outline, source, turns, .. } = context;
        let is_shown = |message: &usize| !state.gone.hidden.has(*message);
        let landmarks = Landmarks::of(outline, state.gone.hidden.shown(0..end));
        let earlier: Vec<usize> = earlier_summaries(outline, source, end).into_iter().filter(is_shown).collect();
        let first_run = turns.starts.first().map_or(end, |start| (*start as usize).min(end));
        let task = landmarks.whole_task(first_run, &earlier).into_iter().filter(is_shown);
        let mut filling = Filling {
            state,
            context,
            end,
            budget: max as i128,
            filled: filled as i128,
            forms: state.forms(step),
            task: vec![],
            earlier,
            alternates: is_own && outline.alternates_roles(),
            system_inside: outline.system_inside(end).filter(|_| is_own),
            landmarks,
            first_unseen: first_unseen(outline, end),
        };
        filling.task = task.map(|message| (message, filling.size(once(message)))).collect();
        Some(filling)
    }

    /// The messages of the view.
    fn shown(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.state.gone.hidden.shown(0..self.end)
    }

    /// Whether a message belongs to a unit or the keep set.
    fn is_in_unit(&self, message: usize) -> bool {
        let of_task = self.task.binary_search_by_key(&message, |(message, _)| *message);
        of_task.is_err() && self.earlier.binary_search(&message).is_err() && !self.state.gone.hidden.has(message)
    }

    /// Cost and characters of these messages in the view.
    fn sizes(&self, messages: impl Iterator<Item = usize>) -> (usize, usize) {
        messages.fold((0, 0), |(cost, chars): (usize, usize), message| {
            let own = || {
                let masked = masked_in(&self.forms, self.context.outline.results_of(message)).iter();
                let (cost, chars) = view_cost(self.context, once(message), masked);
                (cost.saturating_add(self.state.reasoning_cost(self.context, message, Some(0))), chars)
            };
            let cut = self.state.gone.hidden.cut_of(message).map(|cut| (cut.cost, cut.clip.chars()));
            let (own_cost, own_chars) = cut.unwrap_or_else(own);
            (cost.saturating_add(own_cost), chars.saturating_add(own_chars))
        })
    }

    fn size(&self, messages: impl Iterator<Item = usize>) -> usize {
        self.sizes(messages).0
    }

    /// The share of the summary, scaled.
    fn summary_share(&self) -> i128 {
        (self.filled * self.budget).min(self.context.policy.limit.summary_chars as i128 * SCALE)
    }

    /// The share of the task besides a keep set of this cost, scaled.
    fn task_share(&self, cost: i128) -> i128 {
        let whole = self.task.iter().fold(0, |sum, (_, size)| sum + *size as i128);
        let least = self.task.last().map_or(0, |(_, newest)| (*newest).min(LEAST_TASK));
        let share = 2 * self.budget * self.filled.min(MOST_FILLED_FOR_TASK);
        share.min((self.budget - cost) * SCALE).max(least as i128 * SCALE).min(whole * SCALE)
    }

    /// The messages that are kept whatever their size is: what no request has shown, open calls, and of a window that is larger than
    /// what is to be filled its newest unit.
    fn keep_set(&self) -> Kept {
        let start = self.state.results.window.start(self.context);
        let open_calls = self.keeping().open_calls();
        let kept = self.in_window(start.min(self.first_unseen), &open_calls);
        if kept.cost as i128 * SCALE <= self.filled_part() {
            return kept;
        }
        let newest = self.shown().rfind(|message| self.is_in_unit(*message)).unwrap_or(0);
        self.in_window(newest.min(self.first_unseen), &open_calls)
    }

    /// The keep set of a window that begins there, with these messages besides.
    pub(super) fn in_window(&self, start: usize, besides: &[usize]) -> Kept {
        let window = self.shown().filter(|message| *message >= start).chain(besides.iter().copied());
        let mut messages = self.keeping().keep_set(window, |message| self.is_in_unit(message));
        messages.retain(|message| self.is_in_unit(*message));
        Kept { cost: self.size(messages.iter().copied()), messages, cuts: vec![] }
    }

    fn keeping(&self) -> Keeping<'_> {
        let Filling { context, end, landmarks, state, alternates, system_inside, .. } = self;
        let (context, end, references) = (*context, *end, Some(&state.results.references));
        Keeping { context, end, landmarks, references, alternates: *alternates, system_inside: *system_inside }
    }

    /// The unit of a message.
    fn unit(&self, message: usize) -> BTreeSet<usize> {
        self.keeping().whole(once(message), |message| self.is_in_unit(message))
    }

    /// The part of the limit that is filled, scaled.
    fn filled_part(&self) -> i128 {
        4 * self.filled * self.budget
    }

    /// The shares of what is kept besides this keep set.
    pub(super) fn room(&self, kept: &Kept) -> Room {
        let task = self.task_share(kept.cost as i128);
        let left = |of: i128| of - kept.cost as i128 * SCALE - task - self.summary_share();
        let words = (self.filled_part() / 3).min(left(self.budget * SCALE));
        Room { task, words, units: left(self.filled_part()) }
    }

    /// Adds the newest units that fit, and the task.
    pub(super) fn with_units(&self, mut kept: Kept, room: &Room) -> Kept {
        let mut left = room.units;
        for newest in self.shown().rev() {
            if kept.messages.contains(&newest) || !self.is_in_unit(newest) {
                continue;
            }
            if newest < self.landmarks.compacted() {
                break;
            }
            let unit = self.unit(newest);
            let cost = self.size(unit.iter().copied());
            left -= cost as i128 * SCALE;
            if left < 0 {
                break;
            }
            kept.messages.extend(unit);
            kept.cost = kept.cost.saturating_add(cost);
        }
        self.keep_task(&mut kept, whole(room.task));
        kept
    }

    /// Keeps what the user has said since, as much as fits this share: what the view shows already before what is new, then the
    /// shortest first, since a short message is an instruction and a long one data; equal texts once. What it takes is taken from the
    /// room of units.
    fn keep_words(&self, kept: &mut Kept, room: &mut Room) {
        if room.words <= 0 {
            return;
        }
        let has_words = |message| self.has_exempt(message) || self.context.outline.has_words_beside(message);
        let is_word = |message: &usize| self.landmarks.is_said(*message) || has_words(*message);
        let words = self.shown().filter(|message| is_word(message) && self.is_in_unit(*message));
        let words = words.filter(|message| *message >= self.landmarks.compacted());
        let text = |message: usize| self.landmarks.is_said(message).then(|| text_of(self.context, message));
        let mut said: HashSet<Vec<u8>> = HashSet::new();
        let mut others: Vec<(bool, usize, Reverse<usize>)> = vec![];
        for message in words {
            if kept.messages.contains(&message) {
                said.extend(text(message));
            } else {
                let size = self.size(self.unit(message).into_iter());
                others.push((message >= self.state.rule.before, size, Reverse(message)));
            }
        }
        others.sort_unstable();
        let mut left = room.words;
        for (_, _, Reverse(message)) in others {
            if kept.messages.contains(&message) {
                continue;
            }
            let unit: Vec<usize> = self.unit(message).into_iter().filter(|one| !kept.messages.contains(one)).collect();
            let cost = self.size(unit.iter().copied());
            if cost as i128 * SCALE > left {
                continue;
            }
            let is_new = text(message).is_none_or(|text| said.insert(text));
            if unit.len() == 1 && !is_new {
                continue;
            }
            kept.messages.extend(unit);
            kept.cost = kept.cost.saturating_add(cost);
            left -= cost as i128 * SCALE;
        }
        room.units -= room.words - left;
    }

    /// Whether a message has a result that is exempt.
    fn has_exempt(&self, message: usize) -> bool {
        let tools = &self.state.results.tools;
        self.context.outline.results_of(message).any(|result| tools.exemption(self.context, result).is_some())
    }

    /// Keeps what fits this share of the task, newest message first, and always a part of that one.
    fn keep_task(&self, kept: &mut Kept, mut share: usize) {
        for (place, (message, size)) in self.task.iter().rev().enumerate() {
            let is_newest = place == 0;
            let cut = if *size <= share {
                self.state.gone.hidden.cut_of(*message).copied()
            } else {
                let cut = self.cut(*message, *size, share, if is_newest { LEAST_TASK } else { 0 });
                if cut.is_none() && !is_newest {
                    break;
                }
                cut
            };
            kept.messages.insert(*message);
            kept.cost = kept.cost.saturating_add(cut.map_or(*size, |cut| cut.cost));
            kept.cuts.extend(cut);
            if *size > share {
                break;
            }
            share -= size;
        }
        kept.cuts.reverse();
    }

    /// Cuts a message that costs so much in the view to a share, but not to fewer than `least` characters; None if it cannot be cut.
    fn cut(&self, message: usize, size: usize, share: usize, least: usize) -> Option<Cut> {
        let PlanContext { outline, policy, .. } = self.context;
        let text_chars = count_chars(&text_of(self.context, message));
        let chars = outline.chars_of(message, policy.text.image_chars);
        if text_chars == 0 && outline.messages[message].blocks == 0 {
            return None; // it has no content
        }
        let before = self.state.gone.hidden.cut_of(message).map_or(chars, |cut| cut.clip.chars());
        // A character costs as much as on average in the message.
        let most = part_of(before, share, size).max(least);
        (MIN_CLIP_CHARS..before).contains(&most).then(|| {
            let clip = Clip::of(text_chars, chars - text_chars, most, None);
            Cut { message, clip, cost: part_of(clip.chars(), size, before) }
        })
    }

    /// The step that hides all that is not kept.
    pub(super) fn step(&self, mut kept: Kept, exhausted: Step) -> Option<Step> {
        let is_dropped = |message: &usize| self.is_in_unit(*message) && !kept.messages.contains(message);
        let drops = self.shown().any(|message| message >= self.landmarks.compacted() && is_dropped(&message));
        let share = whole(self.summary_share().min((self.budget - kept.cost as i128) * SCALE));
        let is_asked = self.context.requests.failed_summaries.binary_search(&self.end).is_err();
        let helps = kept.cost.saturating_add(share) < exhausted.cost;
        let standing = self.state.gone.hidden.summary;
        let place = kept.messages.range(leading_system_messages(self.context.outline, self.end)..).next();
        let place = place.map_or(self.end, |place| *place);
        let is_weighed = self.context.costs.is_some_and(|costs| !costs.are_given());
        let least = if is_weighed { LEAST_WEIGHED_SUMMARY } else { LEAST_SUMMARY };
        let summary = if drops && is_asked && share >= least && helps {
            let compacted = self.state.gone.hidden.compacted;
            Some(Standing { place, share, request: self.end, compacted, key: 0, is_forced: true })
        } else {
            self.keep_earlier_summaries(&mut kept);
            let standing = standing.filter(|standing| kept.cost.saturating_add(standing.share) as i128 <= self.budget);
            standing.map(|standing| Standing { place, ..standing })
        };
        let is_hidden = |message: &usize| !kept.messages.contains(message);
        let hidden: Vec<u32> = self.shown().filter(is_hidden).map(|message| message as u32).collect();
        let summary = summary.map(|made| match standing {
            Some(before) if made.request != self.end => Standing { key: before.key, ..made },
            _ => Standing { key: key_of(standing, &hidden), ..made },
        });
        if hidden.is_empty() && kept.cuts == self.state.gone.hidden.cuts && summary == standing {
            return None;
        }
        let cost = kept.cost.saturating_add(share_of(summary));
        let cut_chars =
            |message: &usize| kept.cuts.iter().find(|cut| cut.message == *message).map(|cut| cut.clip.chars());
        let own = |message: &usize| cut_chars(message).unwrap_or_else(|| self.sizes(once(*message)).1);
        let chars = kept.messages.iter().map(own).fold(share_of(summary), usize::saturating_add);
        let hiding = Hiding { messages: hidden, cuts: kept.cuts, summary, chars, is_forced: true, ..Hiding::default() };
        Some(Step {
            hiding: Some(Box::new(hiding)),
            cost,
            is_over: cost as i128 > self.budget,
            is_forced: true,
            ..exhausted
        })
    }

    /// Without a new summary, earlier ones stay if they fit the limit, or are all there is.
    fn keep_earlier_summaries(&self, kept: &mut Kept) {
        let size = self.size(self.earlier.iter().copied());
        let is_all = self.earlier.len() == self.end;
        if is_all || kept.cost.saturating_add(size) as i128 <= self.budget {
            kept.messages.extend(&self.earlier);
            kept.cost = kept.cost.saturating_add(size);
        }
    }
}

/// A share, rounded down to units.
fn whole(scaled: i128) -> usize {
    usize::try_from(scaled / SCALE).unwrap_or(0)
}

/// `number * share / whole`.
fn part_of(number: usize, share: usize, whole: usize) -> usize {
    (number as u128 * share as u128 / whole.max(1) as u128).try_into().unwrap_or(usize::MAX)
}
