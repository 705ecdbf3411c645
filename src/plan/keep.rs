//! The keep set: what no stage drops.

use super::context::PlanContext;
use super::planner::Planner;
use super::references::References;
use crate::outline::{ItemType, Outline, Role};
use crate::pairs::open_from;
use std::collections::{BTreeSet, HashSet};

/// The messages that are kept wherever they are.
#[derive(Debug, Default)]
pub(super) struct Landmarks {
    /// System messages, and others that are never hidden.
    systems: Vec<u32>,
    /// The newest compaction of the provider.
    compaction: Option<u32>,
    /// User messages without results and outside of runs; the first one that is no summary is the task.
    tasks: Vec<u32>,
}

impl Landmarks {
    pub(super) fn of(outline: &Outline, messages: impl Iterator<Item = usize>) -> Self {
        let mut landmarks = Landmarks::default();
        messages.for_each(|message| landmarks.push(outline, message));
        landmarks
    }

    pub(super) fn push(&mut self, outline: &Outline, message: usize) {
        if outline.messages[message].item == ItemType::Compaction {
            self.compaction = Some(message as u32);
        }
        if is_fixed(outline, message) {
            self.systems.push(message as u32);
        }
        if outline.is_said_by_user(message) {
            self.tasks.push(message as u32);
        }
    }

    /// Of the messages before this one a compaction tells.
    pub(super) fn compacted(&self) -> usize {
        self.compaction.map_or(0, |message| message as usize)
    }

    /// Whether the user has said a message.
    pub(super) fn is_said(&self, message: usize) -> bool {
        self.tasks.binary_search(&(message as u32)).is_ok()
    }

    /// The user messages before the first run that are no earlier summaries; where there is none, the first after it.
    pub(super) fn whole_task(&self, first_run: usize, summaries: &[usize]) -> Vec<usize> {
        let mut tasks: Vec<usize> = self.said().filter(|message| summaries.binary_search(message).is_err()).collect();
        let before = tasks.partition_point(|message| *message < first_run);
        tasks.truncate(before.max(1));
        tasks
    }

    /// What the user has said, and no run has.
    pub(super) fn said(&self) -> impl Iterator<Item = usize> + '_ {
        self.tasks.iter().map(|message| *message as usize)
    }
}

/// Whether no rule hides a message, but for earlier summaries: one of the system, or one that is never hidden.
pub(super) fn is_fixed(outline: &Outline, message: usize) -> bool {
    outline.messages[message].role == Role::System || outline.is_never_hidden(message)
}

/// Computes what is kept of the first `end` messages, in O(kept).
pub(super) struct Keeping<'a> {
    pub context: PlanContext<'a>,
    pub end: usize,
    pub landmarks: &'a Landmarks,
    /// The references that are kept with what they refer to.
    pub references: Option<&'a References>,
    /// A message of the user stays with the answer before it: else two of the user would be in a row.
    pub alternates: bool,
    /// One behind this message with the results before it: else a system message would be right before it.
    pub system_inside: Option<usize>,
}

impl Planner<'_> {
    pub(super) fn keeping<'b>(&'b self, landmarks: &'b Landmarks) -> Keeping<'b> {
        let (context, end) = (self.context(), self.end);
        Keeping { context, end, landmarks, references: None, alternates: false, system_inside: None }
    }
}

impl Keeping<'_> {
    /// The closure of system messages, the newest compaction and these, such as the window: with a message its whole run, and all messages
    /// with the other half of one of its pairs or links; of the messages that `may_keep` allows.
    pub(super) fn keep_set(
        &self,
        messages: impl Iterator<Item = usize>,
        may_keep: impl Fn(usize) -> bool,
    ) -> BTreeSet<usize> {
        let systems = self.landmarks.systems.iter().chain(&self.landmarks.compaction).map(|message| *message as usize);
        self.whole(systems.chain(messages), may_keep)
    }

    /// The messages with open calls, whose results would come without them.
    pub(super) fn open_calls(&self) -> Vec<usize> {
        let PlanContext { outline, pairs, .. } = self.context;
        let first = open_from(outline, self.end, |message| outline.holds_results(message));
        let is_before = |result: usize| (outline.results[result].message as usize) < self.end;
        let is_answered = |call: usize| pairs.results_of(call).next().is_some_and(is_before);
        let open = (outline.calls_before(first)..outline.calls_before(self.end)).filter(|call| !is_answered(*call));
        let open = open.map(|call| outline.calls[call].message as usize);
        let halves = outline.halves_before(first)..outline.halves_before(self.end);
        let is_open = |half: &usize| {
            !outline.halves[*half].is_result && pairs.links.other(outline, *half).is_none_or(|other| other >= self.end)
        };
        open.chain(halves.filter(is_open).map(|half| outline.halves[half].message as usize)).collect()
    }

    /// Whether the user speaks in a message right after results or other words, behind a system message.
    fn is_behind_system(&self, message: usize) -> bool {
        let outline = self.context.outline;
        let is_after = |before: usize| {
            let before = &outline.messages[before];
            !before.is_agent_made && before.role != Role::System
        };
        self.system_inside.is_some_and(|system| message > system)
            && outline.is_said_by_user(message)
            && is_after(message - 1)
    }

    /// The closure of these messages.
    pub(super) fn whole(
        &self,
        messages: impl Iterator<Item = usize>,
        may_keep: impl Fn(usize) -> bool,
    ) -> BTreeSet<usize> {
        let PlanContext { outline, pairs, turns, .. } = self.context;
        let is_followed = |message: usize| {
            let follows = outline.messages[..self.end].get(message + 1).is_some_and(|next| next.role == Role::User);
            self.alternates && outline.messages[message].is_agent_made && follows
        };
        let mut keep = Keep { end: self.end, kept: BTreeSet::new(), to_visit: vec![], is_allowed: may_keep };
        messages.for_each(|message| keep.add(message));
        let (mut is_seen, mut groups) = (HashSet::new(), HashSet::new());
        // Each message and each run is visited once, so this is linear in messages, calls and results.
        while let Some(message) = keep.to_visit.pop() {
            for other in pairs.links.of(message) {
                keep.add(*other as usize);
            }
            for call in outline.calls_of(message) {
                for result in pairs.results_of(call) {
                    keep.add(outline.results[result].message as usize);
                }
            }
            for result in outline.results_of(message) {
                if let Some(call) = pairs.call_of(result) {
                    keep.add(outline.calls[call].message as usize);
                }
                if let Some(group) = self.references.and_then(|references| references.group_of(result as u32))
                    && groups.insert(group[0])
                {
                    for other in group {
                        keep.add(outline.results[*other as usize].message as usize);
                    }
                }
            }
            if is_followed(message) {
                keep.add(message + 1);
            }
            if self.is_behind_system(message) {
                keep.add(message - 1);
            }
            if message > 0 && is_followed(message - 1) {
                keep.add(message - 1);
            }
            if outline.messages[message].is_agent_made
                && let run = turns.at(message) - 1
                && is_seen.insert(run)
            {
                // Providers refuse partial answers: reasoning without its message, or one of two parallel calls.
                for message in turns.starts[run]..turns.ends[run] {
                    keep.add(message as usize);
                }
            }
        }
        keep.kept
    }
}

struct Keep<F> {
    /// The number of messages; later ones are ignored.
    end: usize,
    kept: BTreeSet<usize>,
    to_visit: Vec<usize>,
    is_allowed: F,
}

impl<F: Fn(usize) -> bool> Keep<F> {
    fn add(&mut self, message: usize) {
        if message < self.end && (self.is_allowed)(message) && self.kept.insert(message) {
            self.to_visit.push(message);
        }
    }
}
