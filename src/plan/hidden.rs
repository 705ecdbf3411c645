//! The messages that a view does not show, and what stands for them.

use super::context::PlanContext;
use super::masked::Cut;
use crate::outline::Role;
use core::ops::Range;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A summary in a view. It counts its share of the view, whatever its text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The message of the view before which it stands.
    pub place: usize,
    /// Its share, in the unit of the limit.
    pub share: usize,
    /// How many messages preceded the request that made it.
    pub request: usize,
    /// Of the messages before this one a compaction of the provider told then.
    pub compacted: usize,
    /// The same for summaries of the same messages, in the same steps.
    pub key: u64,
    /// Whether a limit needed it.
    pub is_forced: bool,
}

/// The share of a summary, if there is one.
pub(super) fn share_of(summary: Option<Standing>) -> usize {
    summary.map_or(0, |summary| summary.share)
}

/// See the module. What once is hidden stays hidden, unless a result that comes late would be torn from its call.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Hidden {
    /// Messages before this one may be hidden, later ones are shown.
    settled: usize,
    /// Those of the messages before it that are shown, ascending: few, however many are hidden.
    shown: Arc<Vec<u32>>,
    /// What is left of messages of the task, in order.
    pub cuts: Vec<Cut>,
    /// The summary that stands for the hidden messages.
    pub summary: Option<Standing>,
    /// Of the messages before this one a compaction of the provider tells.
    pub compacted: usize,
}

/// The key of a summary that takes the place of another one, and tells of these messages besides.
pub(super) fn key_of(before: Option<Standing>, messages: &[u32]) -> u64 {
    let start = before.map_or(0xcbf2_9ce4_8422_2325, |before| before.key);
    messages.iter().fold(start, |key, message| (key ^ u64::from(*message)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl Hidden {
    /// All but these of so many messages.
    pub(super) fn all_but(shown: BTreeSet<usize>, settled: usize) -> Self {
        Hidden {
            settled,
            shown: Arc::new(shown.into_iter().map(|message| message as u32).collect()),
            ..Hidden::default()
        }
    }

    /// Whether no message is hidden.
    pub(crate) fn is_empty(&self) -> bool {
        self.settled == self.shown.len()
    }

    /// Whether it lacks messages of which no compaction tells.
    pub(crate) fn is_cut_off(&self) -> bool {
        let told = self.compacted.min(self.settled);
        self.count() > told - self.shown_before(told)
    }

    /// Whether a message is hidden.
    pub(crate) fn has(&self, message: usize) -> bool {
        message < self.settled && self.shown.binary_search(&(message as u32)).is_err()
    }

    /// How many messages of the view precede this one, its summary not counted.
    pub(crate) fn shown_before(&self, message: usize) -> usize {
        if message >= self.settled {
            return message - self.settled + self.shown.len();
        }
        self.shown.partition_point(|shown| (*shown as usize) < message)
    }

    /// The message at a place of the view, its summary not counted.
    pub(crate) fn shown_at(&self, place: usize) -> usize {
        self.shown.get(place).map_or_else(|| place - self.shown.len() + self.settled, |message| *message as usize)
    }

    /// These messages, as far as they are shown.
    pub(crate) fn shown(&self, messages: Range<usize>) -> impl DoubleEndedIterator<Item = usize> + Clone + '_ {
        let early =
            self.shown_before(messages.start.min(self.settled))..self.shown_before(messages.end.min(self.settled));
        let late = messages.start.max(self.settled)..messages.end.max(self.settled);
        self.shown[early].iter().map(|message| *message as usize).chain(late)
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = usize> + '_ {
        let mut shown = self.shown.iter().peekable();
        (0..self.settled).filter(move |message| shown.next_if(|shown| **shown as usize == *message).is_none())
    }

    /// The last hidden message.
    pub(crate) fn last(&self) -> Option<usize> {
        (0..self.settled).rev().find(|message| self.has(*message))
    }

    /// How many of the messages are hidden.
    pub(crate) fn count(&self) -> usize {
        self.settled - self.shown.len()
    }

    /// Whether it depends on messages from this one on.
    pub(crate) fn reaches(&self, message: usize) -> bool {
        self.settled > message
    }

    /// The cut of a message of the task.
    pub(crate) fn cut_of(&self, message: usize) -> Option<&Cut> {
        let place = self.cuts.binary_search_by_key(&message, |cut| cut.message).ok()?;
        Some(&self.cuts[place])
    }

    /// The message that has the text of the summary as its last block, of a history of so many: where the provider refuses messages of
    /// one role in a row, the one of the user right before the summary's place, or else the one after it.
    pub(crate) fn joined(&self, context: PlanContext, messages: usize) -> Option<usize> {
        let PlanContext { outline, policy, .. } = context;
        let is_of_user = policy.limit.summary_role.as_deref().is_none_or(|role| role == "user");
        let place = self.summary.filter(|_| is_of_user && outline.alternates_roles())?.place.min(messages);
        let takes_it = |message: &usize| {
            let message = &outline.messages[*message];
            message.role == Role::User && message.shape.alternates_roles()
        };
        let (before, after) = (self.shown(0..place).next_back(), self.shown(place..messages).next());
        before.filter(takes_it).or(after.filter(takes_it))
    }

    /// Characters of the summary, if it precedes this message of so many; the end of the view has it in any case.
    pub(super) fn summary_chars_before(&self, message: usize, end: usize) -> usize {
        share_of(self.summary.filter(|summary| summary.place < message || message == end))
    }

    /// Whether a new message has results or halves of hidden calls: it is shown, as no request has shown it, and must not be torn from
    /// these.
    pub(super) fn is_torn_by(&self, context: PlanContext, message: usize) -> bool {
        let PlanContext { outline, pairs, .. } = context;
        let calls = outline.results_of(message).filter_map(|result| pairs.call_of(result));
        let mut others = calls.map(|call| outline.calls[call].message as usize).chain(pairs.links.before(message));
        !self.is_empty() && others.any(|other| self.has(other))
    }

    /// Hides these of the messages before `end`.
    pub(super) fn hide(&mut self, hidden: &[u32], end: usize) {
        let is_left = |message: &usize| hidden.binary_search(&(*message as u32)).is_err();
        self.shown = Arc::new(self.shown(0..end).filter(is_left).map(|message| message as u32).collect());
        self.settled = self.settled.max(end);
    }

    /// Takes over what a request hides of the messages before `end`.
    pub(super) fn take(&mut self, hiding: &Hiding, end: usize) {
        self.hide(&hiding.messages, end);
        (self.cuts, self.summary) = (hiding.cuts.clone(), hiding.summary);
        self.compacted = self.compacted.max(hiding.compacted);
    }
}

/// What a request hides besides.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Hiding {
    pub messages: Vec<u32>,
    /// What is left of messages of the task, instead of what was left of them.
    pub cuts: Vec<Cut>,
    /// The summary that stands from now on.
    pub summary: Option<Standing>,
    /// The compaction of the provider that tells of all before it; 0 without a new one.
    pub compacted: usize,
    /// Characters of input and output of a model that writes a summary because it pays.
    pub call: Option<(usize, usize)>,
    /// Whether a limit needs it.
    pub is_forced: bool,
    /// Characters of the view with all that.
    pub chars: usize,
}

impl Hiding {
    /// Whether it hides messages of which no compaction tells.
    pub(crate) fn cuts_off(&self, before: &Hidden) -> bool {
        let compacted = self.compacted.max(before.compacted);
        self.messages.last().is_some_and(|message| *message as usize >= compacted)
    }

    /// Whether it hides a message that was shown before.
    pub(crate) fn has(&self, message: usize) -> bool {
        self.messages.binary_search(&(message as u32)).is_ok()
    }
}
