//! The append-only session of messages. Each message is processed once, when it is appended.
//!
//! ```text
//! append -> Log (text, facts, pairs, turns) -> fold of the boundary -> View (what changed, chunks)
//!                 |                                                       ^
//!                 +--- evict: messages whose rendering is final move to the store, where views read them
//! ```
//!
//! The views are those of the planner for the whole history. A view that drops messages, with a summary or without, is a
//! compaction: it becomes the session, and later messages follow it. The messages before it are the [`Past`], which is kept
//! but no longer planned.

mod base;
mod compaction;
mod limited;
mod log;
mod need;
mod places;
mod provider;
mod recall;
mod replay;
mod reports;
mod rewind;
mod stored;
mod view;

use crate::error::Error;
use crate::outline::Outline;
use crate::plan::{Answer, Attempt, Limits, Peek, SummaryInput, decide};
use crate::policy::{Goal, Policy};
use crate::scan::scan_message;
use crate::store::{RecordKind, Store, StoreError};
use base::Base;
pub use compaction::Attempts;
use compaction::{Past, PendingCompaction};
pub use limited::{Counter, Question, plan_limited};
use log::Log;
use log::ledger::Ledger;
pub use log::{MessageCosts, ResultPlace, TextFormat, TextsToCount};
use need::Needs;
use places::{Appended, InLog, InView, Origin};
use provider::Decided;
pub use replay::replay;
pub use reports::{Cold, Reports};
use std::sync::Arc;
use stored::snapshot;
use stored::{Stored, stored_message};
use view::View;
pub use view::{Chunks, Counts, Mask, ViewMessage};

/// An append-only session.
#[derive(Debug, Clone)]
pub struct Session {
    /// The policy that was given.
    given: Arc<Policy>,
    /// The policy of the next request; see [`Session::renew_policy`].
    policy: Policy,
    decided: Option<Decided>,
    raw_cost_at_most: usize,
    log: Log,
    /// The log after a new summary, until its costs are known.
    pending: Option<PendingCompaction>,
    past: Past,
    /// The origins of the first messages of the log: the last summary and what it kept.
    origins: Vec<Origin>,
    /// The last compaction.
    compaction: Option<snapshot::Compaction>,
    /// How many observations were appended.
    observations: usize,
    ledger: Ledger,
    stored: Stored,
    view: View,
    /// Failures of summaries, each with how many messages there were.
    attempts: Vec<(usize, Attempts)>,
    reports: Reports,
    needs: Needs,
    /// The mark of the last block of each view, if the caller marks that; and how many marks each request has elsewhere.
    own_mark: Option<(Vec<u8>, usize)>,
    /// The budget is one of tokens, of which characters may be measured.
    calibrates: bool,
    messages_planned: usize,
    /// How many moves of the boundary the caller knows.
    known_moves: usize,
    /// The appended messages that a summary was last asked for.
    asked: Vec<usize>,
    /// The first message of those, given as facts, whose requests are not made yet.
    unrequested: Option<usize>,
    /// Whether a change is running, or was interrupted by a panic; see [`Session::change`].
    is_changing: bool,
}

/// The result of [`Session::update_view`].
#[derive(Debug)]
pub enum Update {
    /// The view is current.
    Done,
    /// A summary is needed: messages to be summarized, earlier summary, built-in summary.
    AskSummary(Vec<Vec<u8>>, Option<Vec<u8>>, Vec<u8>),
    /// The costs of these texts are needed; see [`Session::set_text_costs`].
    AskTextCosts(Vec<Vec<u8>>),
    /// The costs of the messages after a compaction are needed; see [`Session::apply_compaction`].
    AskCosts,
}

/// An error of a session.
#[derive(Debug)]
pub enum Failure {
    /// A message is malformed.
    Message(Error),
    /// The store failed.
    Store(StoreError),
    /// The store has messages that another session appended.
    OtherWriter,
    /// The store is closed.
    Closed,
    /// A panic interrupted an earlier change.
    Interrupted,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Message(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}

/// A result with the error of a session.
pub type Result<T> = core::result::Result<T, Failure>;

impl Session {
    /// An empty session. A history that costs at most `raw_cost_at_most` is sent raw.
    #[must_use]
    pub fn new(policy: Policy, raw_cost_at_most: usize, format: TextFormat) -> Self {
        // The caller has the built-in summary, too. This way the session knows which views wanted a summary and failed.
        let policy = Policy { ask_summary: true, is_session: true, ..policy };
        Session {
            given: Arc::new(policy.clone()),
            policy,
            decided: None,
            raw_cost_at_most,
            log: Log::after(Base::default(), format),
            pending: None,
            past: Past::default(),
            origins: vec![],
            compaction: None,
            observations: 0,
            ledger: Ledger::default(),
            stored: Stored::default(),
            view: View::default(),
            attempts: vec![],
            reports: Reports::default(),
            needs: Needs::default(),
            own_mark: None,
            calibrates: false,
            messages_planned: 0,
            known_moves: 0,
            asked: vec![],
            unrequested: None,
            is_changing: false,
        }
    }

    /// The budget is one of tokens, of which characters may be measured.
    #[must_use]
    pub fn calibrating(self) -> Self {
        Session { calibrates: true, ..self }
    }

    /// Runs what changes the session. After a panic in it text, outline, pairs and view may be out of step, and the session
    /// can only be read.
    ///
    /// # Errors
    /// Those of `work`, or that an earlier change was interrupted.
    pub fn change<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if core::mem::replace(&mut self.is_changing, true) {
            return Err(Failure::Interrupted);
        }
        let done = work(self);
        self.is_changing = false;
        done
    }

    /// How many messages were appended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places().appended(self.view_end()).unwrap_or_default().0
    }

    /// Whether no message was appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An appended message, from memory or the store.
    ///
    /// # Errors
    /// Those of the store.
    pub fn message(&self, message: usize, store: Option<&mut Store>) -> Result<Vec<u8>> {
        Ok(match (self.message_in_memory(message), store) {
            (Some(data), _) => data.to_vec(),
            (None, Some(store)) => stored_message(store, message)?,
            (None, None) => return Err(Failure::Closed),
        })
    }

    /// Texts to count of each observation of a message, if it were appended now: after a cut, and the placeholder; None without.
    ///
    /// # Errors
    /// Those of [`Session::append`].
    pub fn texts_to_count(&mut self, message: &[u8], surrogates: bool) -> Result<Vec<TextsToCount>> {
        let numbers = self.observations as u32 + 1..;
        let texts = self.log.texts_to_count(message, surrogates, &self.policy, numbers);
        texts.map_err(|error| self.at_end(error))
    }

    /// Appends a message, with its costs if they are not characters, and writes it to the store.
    ///
    /// # Errors
    /// Malformed JSON or no message, and the session is unchanged. If only the write fails, the message is appended, and
    /// written with the next one.
    pub fn append(
        &mut self,
        message: &[u8],
        surrogates: bool,
        costs: MessageCosts,
        mut store: Option<&mut Store>,
    ) -> Result<()> {
        self.check_store(store.as_deref())?;
        let index = self.len();
        let numbers = self.observations as u32 + 1..;
        let was_run = self.log.ends_with_run();
        let mark = self.log.mark();
        self.log.scan(message, surrogates, &self.policy, numbers).map_err(|error| self.at_end(error))?;
        let late = self.late_calls(store.as_deref_mut()).inspect_err(|_| self.log.truncate(&mark))?;
        self.log.admit(&self.policy, &late);
        if let Some(costs) = costs {
            self.log.set_costs(&self.policy, costs);
        }
        let new = self.log.len() - 1;
        self.decide_provider(new, new);
        let outline = &self.log.outline;
        self.observations += outline.results_of(new).len();
        if index == self.ledger.messages {
            self.ledger.add(outline, new, self.policy.image_chars);
        }
        self.view.is_current = false;
        let is_request = self.log.ends_with_run() && !was_run;
        if is_request {
            self.settle_cold(index);
        }
        if is_request && self.policy.remembers() {
            let moved = self.log.with_fold(&self.policy, |context, fold| fold.request(context, new, false));
            self.commit_masks(&moved);
        }
        match store {
            Some(store) => self.store_messages(store),
            None => Ok(()),
        }
    }

    /// Refuses a store that is closed, or has messages of another session.
    fn check_store(&self, store: Option<&Store>) -> Result<()> {
        let stored = self.len().max(self.stored.replayed) - self.stored.missing;
        match store {
            None if self.stored.is_used => Err(Failure::Closed),
            Some(store) if store.is_usable() && store.last(RecordKind::Message) as usize != stored => {
                Err(Failure::OtherWriter)
            }
            _ => Ok(()),
        }
    }

    /// An error in the next message.
    fn at_end(&self, mut error: Error) -> Failure {
        error.message_index = error.message_index.map(|_| self.len());
        error.into()
    }

    /// Makes the view current. A new summary is stored before this returns.
    ///
    /// # Errors
    /// Those of the store; the view is current.
    pub fn update_view(&mut self, summary: &SummaryInput, mut store: Option<&mut Store>) -> Result<Update> {
        let attempts = self.attempts.len();
        if self.pending.is_none() && !self.view.is_current {
            self.renew_policy_for_cold();
            let asked = match self.policy.goal {
                Goal::Mask => {
                    self.update_masked();
                    None
                }
                _ if self.policy.is_limit => self.update_limited(summary, store.as_deref_mut())?,
                _ => self.update_reduced(summary, store.as_deref_mut())?,
            };
            if let Some(look) = asked {
                return Ok(look);
            }
            if self.pending.is_none() {
                self.record_change();
            }
        }
        match (&self.pending, store) {
            (Some(pending), _) if pending.needs_costs => return Ok(Update::AskCosts),
            (Some(_), store) => self.apply_compaction(None, store)?,
            (None, Some(store)) if self.attempts.len() != attempts => {
                let _ = self.store_snapshot(store); // if this is lost, a restart costs one call more
            }
            (None, _) => {}
        }
        self.update_marks();
        self.count_need();
        Ok(Update::Done)
    }

    /// Without a budget: raw while the history is small, else masked; over the limit, up to the window.
    fn update_masked(&mut self) {
        self.view.is_masked_to_window = false;
        if self.policy.remembers() {
            let step = self.next_step();
            if self.log.cost > self.raw_cost_at_most {
                self.show_step(&step);
            }
        } else if self.log.cost > self.raw_cost_at_most {
            let mut tentative = self.move_boundary();
            if !Limits::of(&self.policy, self.log.len()).fit(self.log.fold.cost()) {
                self.view.is_masked_to_window = true;
                tentative = self.log.with_fold(&self.policy, |ground, fold| fold.peek(ground, false));
            }
            self.show_peek(tentative);
        }
    }

    fn update_reduced(&mut self, summary: &SummaryInput, store: Option<&mut Store>) -> Result<Option<Update>> {
        let holds_pairs = !self.policy.strict_pairs || self.log.pairs.orphan_count(&self.log.outline) == 0;
        let (mut peek, mut is_to_window) = (None, false);
        let answer =
            decide(Limits::of(&self.policy, self.log.len()), self.log.cost, holds_pairs, |attempt| match attempt {
                Attempt::Boundary => {
                    peek = self.move_boundary();
                    Some(peek.as_ref().map_or(self.log.fold.cost(), |peek| peek.cost))
                }
                Attempt::Window if self.policy.boundary.remembers() => None,
                Attempt::NewestTurn | Attempt::Clipped => None, // the later stages begin with them
                Attempt::Window => {
                    is_to_window = true;
                    peek = self.log.with_fold(&self.policy, |context, fold| fold.peek(context, false));
                    Some(peek.as_ref()?.cost)
                }
            });
        self.view.is_masked_to_window = is_to_window;
        match answer {
            Answer::Raw => self.show_raw(),
            Answer::Masked(_) => self.show_peek(peek),
            Answer::Later => return self.compact(summary, store),
        }
        Ok(None)
    }

    /// Moves the boundary; where it depends on requests, returns instead what the current request would mask.
    fn move_boundary(&mut self) -> Option<Peek> {
        let end = self.log.len();
        if self.policy.boundary.remembers() {
            let is_asked = !self.log.ends_with_run();
            return self.log.with_fold(&self.policy, |context, fold| {
                fold.grow(context, end);
                if is_asked && fold.moves_at(context, end, true) { fold.peek(context, true) } else { None }
            });
        }
        let moved = self.log.with_fold(&self.policy, |context, fold| {
            fold.grow(context, end);
            fold.advance(context)
        });
        self.flip_if_masked(&moved);
        None
    }
}

/// The outline of a message alone.
fn scanned(message: &[u8]) -> core::result::Result<Outline, Error> {
    let mut outline = Outline::default();
    scan_message(message, 0, true, &mut outline)?;
    Ok(outline)
}
