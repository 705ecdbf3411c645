//! Stage 3, and the keep set that stages 2 and 3 share.

use super::{Ground, Plan, Planner, Stage};
use crate::outline::{Outline, Role};
use crate::plan::mask::Masking;
use crate::plan::summarize::earlier_summaries;
use std::collections::{BTreeSet, HashSet};

/// The messages that are kept wherever they are, gathered as a history grows, so that nobody walks it for them.
#[derive(Debug, Default)]
pub struct Landmarks {
    /// System messages.
    systems: Vec<u32>,
    /// User messages that are no results and part of no run: the first one that is no summary either is the task.
    tasks: Vec<u32>,
}

impl Landmarks {
    pub(super) fn of(outline: &Outline, end: usize) -> Self {
        let mut landmarks = Landmarks::default();
        (0..end).for_each(|message| landmarks.push(outline, message));
        landmarks
    }

    /// The next message comes.
    pub fn push(&mut self, outline: &Outline, message: usize) {
        match outline.messages[message].role {
            Role::System => self.systems.push(message as u32),
            Role::User
                if !outline.messages[message].is_agent_made
                    && outline.calls_of(message).is_empty()
                    && !outline.holds_results(message) =>
            {
                self.tasks.push(message as u32);
            }
            _ => {}
        }
    }

    /// Only so many messages have come.
    pub fn truncate(&mut self, messages: usize) {
        for list in [&mut self.systems, &mut self.tasks] {
            list.truncate(list.partition_point(|message| (*message as usize) < messages));
        }
    }

    /// The user messages before the first run that are no earlier summaries; where there is none, the first after it.
    pub(super) fn whole_task(&self, first_run: usize, summaries: &[usize]) -> Vec<usize> {
        let tasks = self.tasks.iter().map(|message| *message as usize);
        let mut tasks: Vec<usize> = tasks.filter(|message| summaries.binary_search(message).is_err()).collect();
        let before = tasks.partition_point(|message| *message < first_run);
        tasks.truncate(before.max(1));
        tasks
    }

    /// The first user message that is neither result, part of a run, nor one of the earlier summaries.
    fn task(&self, summaries: &[usize]) -> Option<usize> {
        let mut tasks = self.tasks.iter().map(|message| *message as usize);
        tasks.find(|message| summaries.binary_search(message).is_err())
    }
}

/// What stages 2 and 3 keep of the first `end` messages. To find it costs what is kept, however long the history is.
pub struct Keeping<'a> {
    /// The history.
    pub ground: Ground<'a>,
    /// How many messages there are.
    pub end: usize,
    /// The first message of the window.
    pub window_start: usize,
    /// Those of these messages.
    pub landmarks: &'a Landmarks,
}

impl Planner<'_> {
    /// Stage 3: the keep set and the first user message, even where that does not fit.
    pub(super) fn truncate(&self, masking: Masking) -> Plan {
        self.finish(Some(Stage::Fallback), masking, Some(self.truncated()), None, None)
    }

    /// What stage 3 keeps.
    pub(super) fn truncated(&self) -> Vec<bool> {
        let landmarks = Landmarks::of(self.outline, self.end);
        self.flags(&self.keeping(&landmarks).truncated())
    }

    /// What stage 2 keeps beside its summary.
    pub(super) fn keep_set(&self, left_out: &[usize]) -> Vec<bool> {
        let landmarks = Landmarks::of(self.outline, self.end);
        self.flags(&self.keeping(&landmarks).keep_set(left_out))
    }

    pub(super) fn keeping<'b>(&'b self, landmarks: &'b Landmarks) -> Keeping<'b> {
        Keeping { ground: self.ground(), end: self.end, window_start: self.window.start, landmarks }
    }

    /// Of each message whether it is one of these.
    pub(super) fn flags(&self, messages: &BTreeSet<usize>) -> Vec<bool> {
        let mut flags = vec![false; self.end];
        for message in messages {
            flags[*message] = true;
        }
        flags
    }

    /// The task: the first user message that is neither result, part of a run, nor one of the earlier summaries.
    pub(super) fn first_user_message(&self, summaries: &[usize]) -> Option<usize> {
        Landmarks::of(self.outline, self.end).task(summaries)
    }
}

impl Keeping<'_> {
    /// Summaries that earlier reductions left, ascending.
    #[must_use]
    pub fn earlier_summaries(&self) -> Vec<usize> {
        earlier_summaries(self.ground, self.end)
    }

    /// What stage 3 keeps.
    #[must_use]
    pub fn truncated(&self) -> BTreeSet<usize> {
        let mut kept = self.keep_set(&[]);
        let summaries = self.earlier_summaries();
        kept.extend(self.landmarks.task(&summaries));
        kept.extend(summaries);
        kept
    }

    /// Every system message, every message of the window, and what belongs to a kept one, again and again: the whole of
    /// its run, and every message that holds the other half of one of its pairs. Never one of `left_out`.
    #[must_use]
    pub fn keep_set(&self, left_out: &[usize]) -> BTreeSet<usize> {
        let systems = self.landmarks.systems.iter().map(|message| *message as usize);
        self.whole(systems.chain(self.window_start..self.end), left_out)
    }

    /// These messages, and what belongs to them.
    pub(super) fn whole(&self, messages: impl Iterator<Item = usize>, left_out: &[usize]) -> BTreeSet<usize> {
        let Ground { outline, pairs, turns, .. } = self.ground;
        let mut keep = Keep { end: self.end, kept: BTreeSet::new(), to_visit: vec![], left_out };
        messages.for_each(|message| keep.add(message));
        let mut is_seen = HashSet::new();
        // Each message and each run is visited once, so this is linear in messages, calls and results.
        while let Some(message) = keep.to_visit.pop() {
            for call in outline.calls_of(message) {
                for result in pairs.results_of(call) {
                    keep.add(outline.results[result].message as usize);
                }
            }
            for call in outline.results_of(message).filter_map(|result| pairs.call_of(result)) {
                keep.add(outline.calls[call].message as usize);
            }
            if outline.messages[message].is_agent_made
                && let run = turns.at(message) - 1
                && is_seen.insert(run)
            {
                // Providers refuse a part of one answer: reasoning without its message, or one of two parallel calls.
                for message in turns.starts[run]..turns.ends[run] {
                    keep.add(message as usize);
                }
            }
        }
        keep.kept
    }
}

struct Keep<'a> {
    /// A mate that comes later is none yet.
    end: usize,
    kept: BTreeSet<usize>,
    to_visit: Vec<usize>,
    /// Ascending.
    left_out: &'a [usize],
}

impl Keep<'_> {
    fn add(&mut self, message: usize) {
        if message < self.end && self.left_out.binary_search(&message).is_err() && self.kept.insert(message) {
            self.to_visit.push(message);
        }
    }
}
