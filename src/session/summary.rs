//! Stages 2 and 3 of a session: a summary is requested, and the session continues with it and the messages that it kept.

use super::log::{Log, TextFormat};
use super::snapshot::{Base, Summarized};
use super::stored::mismatched_summary;
use super::view::Counts;
use super::{Result, Session, Update};
use crate::outline::Span;
use crate::plan::{Costs, Outcome, Peek, Plan, Stage, Summary, SummaryInput, plan};
use crate::scan::scan;
use crate::source::Bytes;
use crate::splice::{splice, summary_message};
use crate::store::Store;

/// The messages before the last summary: how many of them are evicted, and the others.
#[derive(Debug, Default)]
pub struct Past {
    pub first: usize,
    data: Vec<u8>,
    messages: Vec<Span>,
}

impl Past {
    pub fn end(&self) -> usize {
        self.first + self.messages.len()
    }

    pub fn bytes(&self) -> usize {
        self.data.len()
    }

    pub fn message(&self, message: usize) -> Option<&[u8]> {
        Some(self.messages.get(message.checked_sub(self.first)?)?.of(&self.data))
    }

    pub fn push(&mut self, message: &[u8]) {
        let start = self.data.len();
        self.data.extend_from_slice(message);
        self.messages.push(Span { start, end: self.data.len() });
    }

    pub fn evict(&mut self) {
        *self = Past { first: self.end(), ..Past::default() };
    }
}

/// The origin of a message of the log after a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The appended message of this index.
    Message(u32),
    /// A summary, or a message of a resumed session.
    New,
}

/// A new summary whose costs may still be unknown.
#[derive(Debug)]
pub struct PendingSummary {
    log: Log,
    origins: Vec<Origin>,
    pub needs_costs: bool,
    /// The message of the summary; None if it is stored already.
    summary: Option<Vec<u8>>,
    summarized: Summarized,
}

enum SummaryAttempt {
    Made,
    Asked(Update),
    Failed,
}

impl Session {
    /// The later stages: a summary if it may help and may be requested, else the fallback.
    pub(super) fn update_later_stages(&mut self, masks: Option<Peek>, summary: &SummaryInput) -> Option<Update> {
        let (masks, step) = masks.map_or((vec![], None), |peek| (peek.masked, Some(peek.step)));
        let (turns, cost) = (self.log.turns.count(), self.log.cost);
        if self.attempts().may_ask(turns, cost, self.policy.max_cost.unwrap_or(0)) && self.summary_may_help(&masks) {
            match self.summarize(summary) {
                SummaryAttempt::Made => return None,
                SummaryAttempt::Asked(update) => return Some(update),
                SummaryAttempt::Failed => self.fail(turns, cost),
            }
        }
        self.show_fallback(&masks, step);
        None
    }

    /// Stage 2, over the whole session.
    fn summarize(&mut self, summary: &SummaryInput) -> SummaryAttempt {
        if *summary == SummaryInput::Failed {
            return SummaryAttempt::Failed;
        }
        self.whole_plans += 1;
        let Log { data, outline, costs, .. } = &mut self.log;
        let closed = Closed::of(data);
        let planned = plan(outline, &Bytes(closed.0), &self.policy, costs.as_ref(), summary);
        let view = match &planned {
            Outcome::Plan(plan) => splice(closed.0, outline, &self.policy, plan).to_vec(closed.0),
            Outcome::AskSummary { .. } => vec![],
        };
        drop(closed);
        let plan = match planned {
            Outcome::AskSummary { dropped, previous, built_in } => {
                let messages = dropped.into_iter().map(|message| self.log.message(message).to_vec()).collect();
                return SummaryAttempt::Asked(Update::AskSummary(messages, previous, built_in));
            }
            Outcome::Plan(plan) => plan,
        };
        let (Some(Stage::Summarization), Some(summary)) = (plan.stage, &plan.summary) else {
            return SummaryAttempt::Failed;
        };
        let kept = |message: &usize| plan.keeps(*message);
        let results = &self.log.outline.results;
        let masked = plan.masked.iter().filter(|one| kept(&(results[one.result as usize].message as usize))).count();
        let messages = (0..self.log.len()).filter(kept).count() + 1;
        let counts = Counts { messages, chars: plan.chars.1, masked };
        self.prepare_summary(&plan, summary, view.clone(), counts);
        self.show_planned(view, counts, Some(plan.moves));
        SummaryAttempt::Made
    }

    fn prepare_summary(&mut self, plan: &Plan, summary: &Summary, view: Vec<u8>, counts: Counts) {
        let before = &self.log;
        let kept: Vec<usize> = (0..before.len()).filter(|message| plan.keeps(*message)).collect();
        let place = kept.partition_point(|message| *message < summary.before);
        let mut message = vec![];
        summary_message(summary, &mut message);
        let bytes: Vec<&[u8]> = kept.iter().map(|message| before.message(*message)).collect();
        let messages = [&bytes[..place], &[&message[..]], &bytes[place..]].concat();
        let new = |message: usize| Origin::Message((self.past.end() + message - self.origins.len()) as u32);
        let origin = |message: &usize| self.origins.get(*message).copied().unwrap_or_else(|| new(*message));
        let mut origins: Vec<Origin> = kept.iter().map(origin).collect();
        origins.insert(place, Origin::New);
        let results = kept.iter().flat_map(|message| before.outline.results_of(*message));
        let numbers = results.map(|result| before.outline.numbers[result]).collect();
        let summarized = Summarized {
            past: self.len(),
            messages: messages.into_iter().map(<[u8]>::to_vec).collect(),
            numbers,
            view,
            counts,
            moves: plan.moves.clone(),
        };
        self.pending = Some(self.pending_summary(summarized, origins, Some(message)));
    }

    fn pending_summary(
        &self,
        summarized: Summarized,
        origins: Vec<Origin>,
        summary: Option<Vec<u8>>,
    ) -> PendingSummary {
        let mut log = Log::after(Base::default(), TextFormat::Json);
        let mut numbers = summarized.numbers.iter().copied();
        for message in &summarized.messages {
            // Only messages of a damaged snapshot fail; `resume_summarized` finds that by their number.
            let _ = log.push(message, true, &self.policy, &mut numbers);
        }
        PendingSummary { log, origins, needs_costs: self.log.costs.is_some(), summary, summarized }
    }

    /// The messages of the session after a new summary, and the numbers of their observations.
    #[must_use]
    pub fn pending_messages(&self) -> (Vec<Vec<u8>>, Vec<u32>) {
        let Some(PendingSummary { summarized, .. }) = &self.pending else { return (vec![], vec![]) };
        (summarized.messages.clone(), summarized.numbers.clone())
    }

    /// Continues with the new summary, with the costs of the messages if they are not characters.
    ///
    /// # Errors
    /// Those of the store; the session has continued, and the summary is written with the next message.
    pub fn apply_summary(&mut self, costs: Option<Costs>, store: Option<&mut Store>) -> Result<()> {
        let Some(PendingSummary { log, origins, summary, summarized, .. }) = self.pending.take() else { return Ok(()) };
        let before = core::mem::replace(&mut self.log, log);
        if let Some(costs) = costs {
            self.log.cost = costs.total();
            self.log.costs = Some(costs);
        }
        self.log.request_from(&self.policy, 0);
        for message in self.origins.len()..before.len() {
            self.past.push(before.message(message));
        }
        self.origins = origins;
        if !summarized.view.is_empty() {
            self.show_again(summarized.view.clone(), summarized.counts, summarized.moves.clone());
        }
        if let Some(message) = summary {
            self.succeed();
            self.stored.summaries.push([summarized.bytes(), message]);
        }
        self.summarized = Some(summarized);
        match store {
            Some(store) if !self.stored.summaries.is_empty() => self.store_snapshot(store),
            _ => Ok(()),
        }
    }

    /// Continues after a stored summary.
    pub(super) fn resume_summarized(&mut self, summarized: Summarized, needs_costs: bool) -> Result<()> {
        let (origins, numbers) = (vec![Origin::New; summarized.messages.len()], &summarized.numbers);
        let is_known = |number: &u32| (1..=self.observations).contains(&(*number as usize));
        let is_view = summarized.view.is_empty() || scan(&summarized.view, true).is_ok();
        if !is_view || !numbers.iter().all(is_known) {
            return Err(mismatched_summary());
        }
        let (messages, results) = (summarized.messages.len(), numbers.len());
        let pending = PendingSummary { needs_costs, ..self.pending_summary(summarized, origins, None) };
        if pending.log.len() != messages || pending.log.outline.results.len() != results {
            return Err(mismatched_summary());
        }
        self.pending = Some(pending);
        if needs_costs { Ok(()) } else { self.apply_summary(None, None) }
    }
}

/// Closes the array of a session until it is dropped, also by a panic.
struct Closed<'a>(&'a mut Vec<u8>);

impl<'a> Closed<'a> {
    fn of(data: &'a mut Vec<u8>) -> Self {
        data.push(b']');
        Closed(data)
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.pop();
    }
}
