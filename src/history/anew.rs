//! How a session begins anew, after a summary or with what was kept of one elsewhere.

use super::session::Session;
use super::{History, scanned};
use crate::error::Error;
use crate::outline::Span;
use crate::plan::Costs;

/// Messages before the last summary: how many of the first are in the store alone, and the others.
#[derive(Debug, Default)]
pub struct Past {
    pub first: usize,
    pub data: Vec<u8>,
    pub messages: Vec<Span>,
}

impl Past {
    pub fn end(&self) -> usize {
        self.first + self.messages.len()
    }

    pub fn push(&mut self, message: &[u8]) {
        let start = self.data.len();
        self.data.extend_from_slice(message);
        self.messages.push(Span { start, end: self.data.len() });
    }

    pub fn let_go(&mut self) {
        *self = Past { first: self.end(), ..Past::default() };
    }
}

/// A session that begins anew: with these messages of the one before, and before one of them a summary.
#[derive(Debug)]
pub struct Anew {
    pub kept: Vec<usize>,
    pub place: usize,
    pub summary: Vec<u8>,
    pub session: Session,
}

impl History {
    /// The session will be the summary and the rest.
    pub(super) fn prepare_anew(&mut self, kept: &[usize], place: usize, summary: &[u8]) {
        let before = &self.session;
        let messages: Vec<&[u8]> = kept.iter().map(|message| before.message(*message)).collect();
        let results = kept.iter().flat_map(|message| before.outline.results_of(*message));
        let mut numbers = results.map(|result| before.outline.numbers[result]);
        let mut session = Session::new();
        for message in messages[..place].iter().chain([&summary]).chain(&messages[place..]) {
            // Each was read before, or was written as JSON, so this cannot fail.
            let _ = session.push(message, true, &self.policy, &mut numbers);
        }
        self.anew = Some(Anew { kept: kept.to_vec(), place, summary: summary.to_vec(), session });
    }

    /// The messages of the session that is to begin, and the numbers of its observations.
    #[must_use]
    pub fn anew(&self) -> (Vec<&[u8]>, &[u32]) {
        let Some(Anew { session, .. }) = &self.anew else { return (vec![], &[]) };
        ((0..session.len()).map(|message| session.message(message)).collect(), &session.outline.numbers)
    }

    /// The session begins anew, with these costs of its messages where they are not their characters; all that came
    /// before is the past.
    pub fn begin_anew(&mut self, costs: Option<Costs>) {
        let Some(Anew { session, .. }) = self.anew.take() else { return };
        let before = core::mem::replace(&mut self.session, session);
        if let Some(costs) = costs {
            self.session.cost = costs.total();
            self.session.costs = Some(costs);
        }
        if self.policy.boundary.remembers() {
            self.session.with_rules(&self.policy, |ground, fold| {
                for start in &ground.turns.starts {
                    fold.request(ground, *start as usize, false);
                }
            });
        }
        if self.past.end() == 0 {
            self.past.messages = before.outline.messages.iter().map(|message| message.span).collect();
            self.past.data = before.data;
        } else {
            for message in self.new_from..before.len() {
                self.past.push(before.message(message));
            }
        }
        self.new_from = self.session.len();
    }

    /// What was appended before the last summary, and the session that it left, with the numbers of its observations,
    /// of a history that was kept elsewhere.
    ///
    /// # Errors
    /// Malformed JSON, or a shape that is no message.
    pub fn restore<'a>(
        &mut self,
        past: impl Iterator<Item = &'a [u8]>,
        session: impl Iterator<Item = &'a [u8]>,
        kept_numbers: Vec<u32>,
    ) -> Result<(), Error> {
        for message in past {
            self.note(message)?;
            self.past.push(message);
        }
        self.numbered = self.ledger.observations();
        self.restore_session(session, kept_numbers)
    }

    /// The same, where a store has what was appended: so many messages, which were noted. Later ones, too, if these are
    /// given.
    ///
    /// # Errors
    /// Malformed JSON, or a shape that is no message.
    pub fn restore_stored<'a>(
        &mut self,
        past: usize,
        later: impl Iterator<Item = &'a [u8]>,
        session: impl Iterator<Item = &'a [u8]>,
        kept_numbers: Vec<u32>,
    ) -> Result<(), Error> {
        self.past.first = past;
        self.numbered = self.ledger.observations();
        for message in later {
            self.numbered -= scanned(message)?.results.len();
        }
        self.restore_session(session, kept_numbers)
    }

    /// Notes a message that is not of the session any more.
    ///
    /// # Errors
    /// Malformed JSON, or a shape that is no message.
    pub fn note(&mut self, message: &[u8]) -> Result<(), Error> {
        self.ledger.note(&scanned(message)?, 0, self.policy.image_chars);
        Ok(())
    }

    fn restore_session<'a>(
        &mut self,
        session: impl Iterator<Item = &'a [u8]>,
        kept_numbers: Vec<u32>,
    ) -> Result<(), Error> {
        let (mut anew, mut numbers) = (Session::new(), kept_numbers.into_iter());
        for message in session {
            anew.push(message, true, &self.policy, &mut numbers)?;
        }
        self.anew = Some(Anew { kept: vec![], place: 0, summary: vec![], session: anew });
        Ok(())
    }
}
