//! Stages 2 and 3 with `fill`: the task and the summary have shares of the budget; the rest holds the keep set and the newest units.
//!
//! Shares are exact, in four-millionths of the budget's unit. With rounding, a larger budget could leave less room.

use super::context::{Uncounted, view_cost};
use super::outcome::{Cut, Masking, Outcome, Plan, Stage, SummaryInput, masked_in};
use super::planner::Planner;
use super::summarize::{built_in_summary, with_first_line};
use super::truncate::{Keeping, Landmarks};
use crate::clip::{Clip, MIN_CLIP_CHARS};
use crate::text::{clip, count_chars};
use core::iter::once;
use std::collections::BTreeSet;

const SCALE: i128 = 4_000_000;
/// The task gets half of the filled part of the budget, up to half of this part, in millionths.
const MOST_FILLED_FOR_TASK: i128 = 500_000;
/// Minimum characters of the newest message of the task.
const LEAST_TASK: usize = 220;
/// Shorter summaries would lose the first line, by which they are recognized.
const LEAST_SUMMARY: usize = 30;

/// A history that fills a part of its budget.
struct Filling<'a> {
    planner: &'a Planner<'a>,
    masking: Masking,
    budget: i128,
    /// The share of the budget, in millionths.
    filled: i128,
    /// Messages of the task, oldest first, with their costs.
    task: Vec<(usize, usize)>,
    /// Summaries of earlier reductions.
    earlier: Vec<usize>,
    landmarks: Landmarks,
}

/// The messages that are kept.
struct Kept {
    messages: BTreeSet<usize>,
    /// The cut message of the task.
    cut: Option<Cut>,
    cost: usize,
}

/// The replacement of the rest.
enum Replacement {
    Nothing,
    /// A summary that the caller must make.
    Asked(Outcome),
    /// A text, with its cost.
    Summary(Vec<u8>, usize),
}

impl Planner<'_> {
    /// Stages 2 and 3 by the filled part of the budget, in millionths, and the budget.
    pub(super) fn fill(
        &self,
        masking: Masking,
        input: &SummaryInput,
        (filled, budget): (usize, usize),
    ) -> Result<Outcome, Uncounted> {
        let landmarks = Landmarks::of(self.outline, self.end);
        let earlier = self.earlier_summaries();
        let first_run = self.turns.starts.first().map_or(self.end, |start| *start as usize);
        let task_end = if self.outline.task_end > 0 { self.outline.task_end } else { first_run };
        let task = landmarks.whole_task(task_end, &earlier);
        let task_end = task.last().map_or(0, |last| last + 1);
        let task = task.into_iter().map(|message| (message, self.size(once(message), &masking))).collect();
        let (budget, filled) = (budget as i128, filled as i128);
        let filling = Filling { planner: self, masking, budget, filled, task, earlier, landmarks };

        let mut kept = filling.kept()?;
        let summary = match filling.replacement(&kept, input)? {
            Replacement::Asked(outcome) => return Ok(outcome),
            Replacement::Summary(text, cost) => Some((self.summary(text), cost)),
            Replacement::Nothing => {
                filling.keep_earlier_summaries(&mut kept);
                None
            }
        };
        let stage = if summary.is_some() { Stage::Summarization } else { Stage::Fallback };
        let flags = self.flags(&kept.messages);
        let plan = self.finish(Some(stage), filling.masking, Some(flags), kept.cut, summary);
        Ok(Outcome::Plan(Box::new(Plan { task_end, ..plan })))
    }

    /// The cost of these messages.
    fn size(&self, messages: impl Iterator<Item = usize> + Clone, masking: &Masking) -> usize {
        let masked = messages.clone().flat_map(|message| masked_in(&masking.masked, self.outline.results_of(message)));
        view_cost(self.context(), messages, masked).0
    }
}

impl Filling<'_> {
    /// Whether a message belongs to a unit or the keep set.
    fn is_in_unit(&self, message: usize) -> bool {
        let of_task = self.task.binary_search_by_key(&message, |(message, _)| *message);
        of_task.is_err() && self.earlier.binary_search(&message).is_err()
    }

    fn size(&self, messages: &BTreeSet<usize>) -> usize {
        self.planner.size(messages.iter().copied(), &self.masking)
    }

    /// The share of the summary, scaled.
    fn summary_share(&self) -> i128 {
        (self.filled * self.budget).min(self.planner.policy.summary_max_chars as i128 * SCALE)
    }

    /// The share of the task besides a keep set of this cost, scaled.
    fn task_share(&self, cost: i128) -> i128 {
        let whole = self.task.iter().fold(0, |sum, (_, size)| sum + *size as i128);
        let least = self.task.last().map_or(0, |(_, newest)| (*newest).min(LEAST_TASK));
        let share = 2 * self.budget * self.filled.min(MOST_FILLED_FOR_TASK);
        share.min((self.budget - cost) * SCALE).max(least as i128 * SCALE).min(whole * SCALE)
    }

    /// The keep set, the newest units that fit, and the task.
    fn kept(&self) -> Result<Kept, Uncounted> {
        let mut keeping = self.planner.keeping(&self.landmarks);
        let keep_set = |keeping: &Keeping| {
            let mut messages = keeping.keep_set(&self.earlier);
            messages.retain(|message| self.is_in_unit(*message));
            (self.size(&messages), messages)
        };
        let (mut cost, mut messages) = keep_set(&keeping);
        if self.planner.policy.is_session && cost as i128 * SCALE > 4 * self.filled * self.budget {
            keeping.window_start = (0..self.planner.end).rfind(|message| self.is_in_unit(*message)).unwrap_or(0);
            (cost, messages) = keep_set(&keeping);
        }
        let task_share = self.task_share(cost as i128);
        let mut room = 4 * self.filled * self.budget - cost as i128 * SCALE - task_share - self.summary_share();
        for newest in (0..self.planner.end).rev() {
            if messages.contains(&newest) || !self.is_in_unit(newest) {
                continue;
            }
            let unit = keeping.whole(once(newest), &self.earlier);
            let unit_cost = self.size(&unit);
            room -= unit_cost as i128 * SCALE;
            if room < 0 {
                break;
            }
            messages.extend(unit);
            cost = cost.saturating_add(unit_cost);
        }
        let mut kept = Kept { messages, cut: None, cost };
        self.keep_task(&mut kept, whole(task_share))?;
        Ok(kept)
    }

    /// Keeps what fits this share of the task, newest message first, and always a part of that one.
    fn keep_task(&self, kept: &mut Kept, mut share: usize) -> Result<(), Uncounted> {
        for (place, (message, size)) in self.task.iter().rev().enumerate() {
            let is_newest = place == 0;
            let cut = if *size <= share {
                None
            } else {
                let cut = self.cut(*message, *size, share, if is_newest { LEAST_TASK } else { 0 })?;
                if cut.is_none() && !is_newest {
                    break;
                }
                cut
            };
            kept.messages.insert(*message);
            kept.cost = kept.cost.saturating_add(cut.map_or(*size, |cut| cut.cost));
            kept.cut = cut;
            if *size > share {
                break;
            }
            share -= size;
        }
        Ok(())
    }

    /// Cuts a message of this size to a share, but not to fewer than `least` characters; None if it cannot be cut.
    fn cut(&self, message: usize, size: usize, share: usize, least: usize) -> Result<Option<Cut>, Uncounted> {
        let Planner { outline, policy, .. } = self.planner;
        let (text_chars, chars) =
            (count_chars(&self.planner.text_of(message)), outline.chars_of(message, policy.image_chars));
        if text_chars == 0 && outline.messages[message].blocks == 0 {
            return Ok(None); // it has no content
        }
        // Until the caller has counted, a character costs as much as on average in the message.
        let mut most = part_of(chars, share, size).max(least);
        while (MIN_CLIP_CHARS..chars).contains(&most) {
            let clip = Clip::of(text_chars, chars - text_chars, most, None);
            let cost = self.planner.cost_of(clip.chars(), || clip.apply(&self.planner.text_of(message)))?;
            if cost <= share || most == least {
                return Ok(Some(Cut { message, clip, cost }));
            }
            most = shorter(most, share, cost).max(least);
        }
        Ok(None)
    }

    /// The summary of what is dropped, if one helps.
    fn replacement(&self, kept: &Kept, input: &SummaryInput) -> Result<Replacement, Uncounted> {
        let planner = self.planner;
        let is_dropped = |message: &usize| self.is_in_unit(*message) && !kept.messages.contains(message);
        let dropped: Vec<usize> = (0..planner.end).filter(is_dropped).collect();
        let limit = whole(self.summary_share().min((self.budget - kept.cost as i128) * SCALE));
        let holds_pairs = planner.holds_pairs(|message| kept.messages.contains(&message));
        if dropped.is_empty() || limit < LEAST_SUMMARY || !holds_pairs || *input == SummaryInput::Failed {
            return Ok(Replacement::Nothing);
        }
        let text = if let SummaryInput::Given(text, _) = input {
            with_first_line(text)
        } else {
            let previous = (!self.earlier.is_empty()).then(|| planner.body_of(&self.earlier));
            let objective_from = self.task.is_empty().then_some(&self.earlier[..]);
            let built_in = built_in_summary(planner, &dropped, objective_from, previous.as_deref());
            if planner.policy.ask_summary {
                return Ok(Replacement::Asked(Outcome::AskSummary { dropped, previous, built_in }));
            }
            built_in
        };
        let mut most = limit;
        while most >= LEAST_SUMMARY {
            let text = &text[..clip(&text, most)];
            let chars = count_chars(text);
            let cost = planner.cost_of(chars, || text.to_vec())?;
            if cost <= limit {
                let helps = chars < (planner.chars - self.masking.removed).saturating_sub(self.chars_of(kept));
                return Ok(if helps { Replacement::Summary(text.to_vec(), cost) } else { Replacement::Nothing });
            }
            most = shorter(chars, limit, cost);
        }
        Ok(Replacement::Nothing)
    }

    /// Without a new summary, earlier ones stay if they fit the budget, or are all there is.
    fn keep_earlier_summaries(&self, kept: &mut Kept) {
        let size = self.planner.size(self.earlier.iter().copied(), &self.masking);
        let is_all = self.earlier.len() == self.planner.end;
        if is_all || kept.cost.saturating_add(size) as i128 <= self.budget {
            kept.messages.extend(&self.earlier);
        }
    }

    /// Characters of the kept messages.
    fn chars_of(&self, kept: &Kept) -> usize {
        let Planner { outline, policy, .. } = self.planner;
        let (_, chars) = self.planner.view_cost(|message| kept.messages.contains(&message), &self.masking);
        let cut_off = |cut: Cut| outline.chars_of(cut.message, policy.image_chars) - cut.clip.chars();
        chars.saturating_sub(kept.cut.map_or(0, cut_off))
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

/// A shorter length for a text that costs more than its share.
fn shorter(chars: usize, share: usize, cost: usize) -> usize {
    part_of(chars, share, cost).min(chars.saturating_sub(chars / 4 + 1))
}
