//! How a session continues after a summary: with that, and the messages that it kept.

use super::evict::not_of_it;
use super::log::{Log, Text};
use super::snapshot::{Base, Summarized};
use super::view::Counts;
use super::{Result, Session};
use crate::outline::Span;
use crate::plan::{Costs, Plan, Summary};
use crate::scan::scan;
use crate::splice::summary_message;
use crate::store::Store;

/// Messages before the last summary: how many of the first are in the store alone, and the others.
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

/// Where a message of a session comes from that a summary left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was appended as the message of this index.
    Message(u32),
    /// It is the summary, or one that was kept of an earlier session.
    New,
}

/// A session that is about to continue after a summary.
#[derive(Debug)]
pub struct Restart {
    log: Log,
    origins: Vec<Origin>,
    pub wants_costs: bool,
    /// The message of a summary that was just made.
    summary: Option<Vec<u8>>,
    summarized: Summarized,
}

impl Session {
    /// The session will be the summary and what the plan keeps.
    pub(super) fn prepare_restart(&mut self, plan: &Plan, summary: &Summary, view: Vec<u8>, counts: Counts) {
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
        self.restart = Some(self.restarting(summarized, origins, Some(message)));
    }

    fn restarting(&self, summarized: Summarized, origins: Vec<Origin>, summary: Option<Vec<u8>>) -> Restart {
        let mut log = Log::after(Base::default(), Text::Json);
        let mut numbers = summarized.numbers.iter().copied();
        for message in &summarized.messages {
            // Each was read before, or was written as JSON; one of a snapshot may be none, and is counted there.
            let _ = log.push(message, true, &self.policy, &mut numbers);
        }
        Restart { log, origins, wants_costs: self.log.costs.is_some(), summary, summarized }
    }

    /// The messages of the session that is about to continue, and the numbers of its observations.
    #[must_use]
    pub fn restarting_messages(&self) -> (Vec<Vec<u8>>, Vec<u32>) {
        let Some(Restart { summarized, .. }) = &self.restart else { return (vec![], vec![]) };
        (summarized.messages.clone(), summarized.numbers.clone())
    }

    /// The session continues after its summary, with these costs of its messages where they are not their characters.
    ///
    /// # Errors
    /// Those of the store; the session has continued, and the summary is stored with the next message.
    pub fn restart(&mut self, costs: Option<Costs>, store: Option<&mut Store>) -> Result<()> {
        let Some(Restart { log, origins, summary, summarized, .. }) = self.restart.take() else { return Ok(()) };
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

    /// Continues after the summary of a snapshot; what came before it is the past.
    pub(super) fn resume_summarized(&mut self, summarized: Summarized, wants_costs: bool) -> Result<()> {
        let (origins, numbers) = (vec![Origin::New; summarized.messages.len()], &summarized.numbers);
        let is_known = |number: &u32| (1..=self.numbered).contains(&(*number as usize));
        let is_view = summarized.view.is_empty() || scan(&summarized.view, true).is_ok();
        if !is_view || !numbers.iter().all(is_known) {
            return Err(not_of_it());
        }
        let (messages, results) = (summarized.messages.len(), numbers.len());
        let restart = Restart { wants_costs, ..self.restarting(summarized, origins, None) };
        // Fewer messages came where one of them is none.
        if restart.log.len() != messages || restart.log.outline.results.len() != results {
            return Err(not_of_it());
        }
        self.restart = Some(restart);
        if wants_costs { Ok(()) } else { self.restart(None, None) }
    }
}
