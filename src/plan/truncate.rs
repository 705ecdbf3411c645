//! Stage 3, and the keep set that stages 2 and 3 share.

use super::{Plan, Planner, Stage};
use crate::outline::Role;
use crate::plan::mask::Masking;

impl Planner<'_> {
    /// Stage 3: the keep set and the first user message, even where that does not fit.
    pub(super) fn truncate(&self, masking: Masking) -> Plan {
        self.finish(Some(Stage::Fallback), masking, Some(self.truncated()), None)
    }

    /// What stage 3 keeps.
    pub(super) fn truncated(&self) -> Vec<bool> {
        let mut kept = self.keep_set(&[]);
        let summaries = self.earlier_summaries();
        for message in &summaries {
            kept[*message] = true;
        }
        if let Some(message) = self.first_user_message(&summaries) {
            kept[message] = true;
        }
        kept
    }

    /// Every system message, every message of the window, and what belongs to a kept one, again and again: the whole of
    /// its run, and every message that holds the other half of one of its pairs. Never one of `left_out`.
    pub(super) fn keep_set(&self, left_out: &[usize]) -> Vec<bool> {
        let outline = self.outline;
        let mut keep = Keep { kept: vec![false; self.end], to_visit: vec![], left_out };
        for (index, message) in outline.messages[..self.end].iter().enumerate() {
            if message.role == Role::System || index >= self.window.start {
                keep.add(index);
            }
        }
        let mut is_seen = vec![false; self.turns.count()];
        // Each message and each run is visited once, so this is linear in messages, calls and results.
        while let Some(message) = keep.to_visit.pop() {
            for call in outline.calls_of(message) {
                for result in self.pairs.results_of(call) {
                    keep.add(outline.results[result].message as usize);
                }
            }
            for call in outline.results_of(message).filter_map(|result| self.pairs.call_of(result)) {
                keep.add(outline.calls[call].message as usize);
            }
            if outline.messages[message].is_agent_made
                && let run = self.turns.at(message) - 1
                && !core::mem::replace(&mut is_seen[run], true)
            {
                // Providers refuse a part of one answer: reasoning without its message, or one of two parallel calls.
                for message in self.turns.starts[run]..self.turns.ends[run] {
                    keep.add(message as usize);
                }
            }
        }
        keep.kept
    }

    /// The task: the first user message that is neither result, part of a run, nor one of the earlier summaries.
    pub(super) fn first_user_message(&self, summaries: &[usize]) -> Option<usize> {
        (0..self.end).find(|message| {
            self.outline.messages[*message].role == Role::User
                && !self.outline.messages[*message].is_agent_made
                && self.outline.calls_of(*message).is_empty()
                && !self.outline.holds_results(*message)
                && summaries.binary_search(message).is_err()
        })
    }
}

struct Keep<'a> {
    /// Of each message so far; a mate that comes later is none yet.
    kept: Vec<bool>,
    to_visit: Vec<usize>,
    /// Ascending.
    left_out: &'a [usize],
}

impl Keep<'_> {
    fn add(&mut self, message: usize) {
        if self.kept.get(message) == Some(&false) && self.left_out.binary_search(&message).is_err() {
            self.kept[message] = true;
            self.to_visit.push(message);
        }
    }
}
