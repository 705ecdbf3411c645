//! How a session continues after a view that dropped messages, with a summary or without: with what that view shows.

use super::evict::not_of_it;
use super::log::{Log, Text};
use super::snapshot::{Base, Compaction};
use super::{Result, Session};
use crate::outline::Span;
use crate::plan::{Costs, Plan};
use crate::scan::scan;
use crate::splice::masked_in;
use crate::store::Store;

/// Messages before the last summary or cut: how many of the first are in the store alone, and the others.
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

/// Where a message of a session comes from that a summary or a cut left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was appended as the message of this index.
    Message(u32),
    /// It is the summary, or a message that the view changed, or one that was kept of an earlier session.
    New,
}

/// A session that is about to continue after a summary or a cut.
#[derive(Debug)]
pub struct Restart {
    log: Log,
    origins: Vec<Origin>,
    pub wants_costs: bool,
    /// Where it was just made: the message of the summary, which is empty without one.
    made: Option<Vec<u8>>,
    compaction: Compaction,
}

impl Session {
    /// The view of this plan will be the session.
    pub(super) fn prepare_restart(&mut self, plan: &Plan, view: &[u8]) {
        let before = &self.log;
        let kept: Vec<usize> = (0..before.len()).filter(|message| plan.keeps(*message)).collect();
        let outline = scan(view, true).unwrap_or_default(); // it was written as JSON
        let messages: Vec<&[u8]> = outline.messages.iter().map(|message| message.span.of(view)).collect();
        let mut summary = vec![];
        let mut origins: Vec<Option<usize>> = kept.iter().copied().map(Some).collect();
        if let Some(made) = &plan.summary {
            let place = kept.partition_point(|message| *message < made.before);
            origins.insert(place, None);
            summary = messages[place].to_vec();
        }
        let new = |message: usize| Origin::Message((self.past.end() + message - self.origins.len()) as u32);
        let origin = |(message, shown): (&Option<usize>, &&[u8])| match message {
            Some(message) if before.message(*message) == *shown => {
                self.origins.get(*message).copied().unwrap_or_else(|| new(*message))
            }
            _ => Origin::New,
        };
        let origins = origins.iter().zip(&messages).map(origin).collect();
        let results = kept.iter().flat_map(|message| before.outline.results_of(*message));
        let is_masked = |result: usize, number: &u32| {
            !masked_in(&plan.masked, result..result + 1).is_empty()
                || self.compaction.as_ref().is_some_and(|compaction| compaction.masked.binary_search(number).is_ok())
        };
        let numbers: Vec<(usize, u32)> = results.map(|result| (result, before.outline.numbers[result])).collect();
        let compaction = Compaction {
            past: self.len(),
            messages: messages.into_iter().map(<[u8]>::to_vec).collect(),
            masked: numbers.iter().filter(|(result, number)| is_masked(*result, number)).map(|one| one.1).collect(),
            numbers: numbers.into_iter().map(|(_, number)| number).collect(),
        };
        self.restart = Some(self.restarting(compaction, origins, Some(summary)));
    }

    fn restarting(&self, compaction: Compaction, origins: Vec<Origin>, made: Option<Vec<u8>>) -> Restart {
        let mut log = Log::after(Base::default(), Text::Json);
        let mut numbers = compaction.numbers.iter().copied();
        for message in &compaction.messages {
            // Each was read before, or was written as JSON; one of a snapshot may be none, and is counted there.
            let _ = log.push(message, true, &self.policy, &mut numbers);
        }
        Restart { log, origins, wants_costs: self.log.costs.is_some(), made, compaction }
    }

    /// The messages of the session that is about to continue, and the numbers of its observations.
    #[must_use]
    pub fn restarting_messages(&self) -> (Vec<Vec<u8>>, Vec<u32>) {
        let Some(Restart { compaction, .. }) = &self.restart else { return (vec![], vec![]) };
        (compaction.messages.clone(), compaction.numbers.clone())
    }

    /// The session continues after its summary or cut, with these costs of its messages where they are not their
    /// characters.
    ///
    /// # Errors
    /// Those of the store; the session has continued, and what was made is stored with the next message.
    pub fn restart(&mut self, costs: Option<Costs>, store: Option<&mut Store>) -> Result<()> {
        let Some(Restart { log, origins, made, compaction, .. }) = self.restart.take() else { return Ok(()) };
        let view = self.last_view();
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
        self.show_from_scratch(&view);
        if let Some(summary) = made {
            if summary.is_empty() {
                self.rebase_attempts(before.cost);
            } else {
                self.succeed();
            }
            self.stored.compactions.push([compaction.bytes(), summary]);
        }
        self.compaction = Some(compaction);
        match store {
            Some(store) if !self.stored.compactions.is_empty() => self.store_snapshot(store),
            _ => Ok(()),
        }
    }

    /// Continues after what a snapshot has of the last summary or cut; what came before it is the past.
    pub(super) fn resume_compacted(&mut self, compaction: Compaction, wants_costs: bool) -> Result<()> {
        let origins = vec![Origin::New; compaction.messages.len()];
        let is_known = |number: &u32| (1..=self.numbered).contains(&(*number as usize));
        if !compaction.numbers.iter().all(is_known) {
            return Err(not_of_it());
        }
        let (messages, results) = (compaction.messages.len(), compaction.numbers.len());
        let restart = Restart { wants_costs, ..self.restarting(compaction, origins, None) };
        // Fewer messages came where one of them is none.
        if restart.log.len() != messages || restart.log.outline.results.len() != results {
            return Err(not_of_it());
        }
        self.restart = Some(restart);
        if wants_costs { Ok(()) } else { self.restart(None, None) }
    }
}
