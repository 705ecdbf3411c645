//! The append-only session, of messages or of turns: each message is processed once, when it is appended.
//!
//! ```text
//! append -> Log (text, facts, pairs, turns) -> fold of the boundary -> View (what changed, chunks)
//!                 |                                                       ^
//!                 +--- evict: messages whose rendering is final go to the store, which views read
//! ```
//!
//! The views are those of the planner for the whole history. A summary, once made, stands for the messages that it
//! replaced: from then on the session is that summary and the rest. What was appended before is the past, which is kept,
//! but no longer planned. A snapshot ([`snapshot`]) is all of it as bytes.

mod attempts;
mod evict;
mod fallback;
mod index;
mod ledger;
mod log;
mod rewind;
pub mod snapshot;
mod summary;
mod turns;
mod view;

use crate::error::Error;
use crate::outline::Outline;
use crate::plan::{Answer, Attempt, Limits, Outcome, Peek, Stage, SummaryInput, decide, plan};
use crate::policy::{Goal, Policy};
use crate::scan::scan_message;
use crate::source::Bytes;
use crate::splice::splice;
use crate::store::{RecordKind, Store, StoreError};
pub use attempts::Attempts;
use evict::{Stored, observation_of, stored_message};
pub use index::moves as stored_moves;
use ledger::Ledger;
use log::Log;
pub use log::{MessageCosts, Text, Texts};
use snapshot::Base;
use summary::{Origin, Past, Restart};
use turns::TurnState;
pub use turns::{Figures, RequestTokens, Row, TurnTokens};
pub use view::{Change, Chunks, Counts, Shown};
use view::{Form, View};

/// See the module.
#[derive(Debug)]
pub struct Session {
    policy: Policy,
    /// A history that costs at most so much is sent raw.
    raw_cost_at_most: usize,
    log: Log,
    /// How it continues after a summary, until the costs of what is left are known.
    restart: Option<Restart>,
    past: Past,
    /// Where the first messages of the log come from: those that the last summary left.
    origins: Vec<Origin>,
    /// What the last summary left.
    summarized: Option<snapshot::Summarized>,
    /// Observations that have a number.
    numbered: usize,
    ledger: Ledger,
    stored: Stored,
    view: View,
    turns: TurnState,
    /// Summaries that failed since the last one, in turns and costs of the session; and after how many messages that
    /// began to hold.
    attempts: Vec<(usize, Attempts)>,
    whole_plans: usize,
}

/// What a view needs.
#[derive(Debug)]
pub enum Look {
    /// Nothing.
    Ready,
    /// A summary: the messages to be summarized, the earlier summary, the built-in one.
    AskSummary(Vec<Vec<u8>>, Option<Vec<u8>>, Vec<u8>),
    /// The costs of the messages that a summary left; see [`Session::restart`].
    AskCosts,
}

/// What became of a summary.
enum Summarized {
    Made,
    Asked(Look),
    Failed,
}

/// Why a session did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// A message is malformed.
    Message(Error),
    /// The store failed.
    Store(StoreError),
    /// The store has messages that this session did not append.
    Foreign,
    /// The store is closed, and has what is needed.
    Closed,
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

/// What a session does, or why it did not.
pub type Result<T> = core::result::Result<T, Failure>;

impl Session {
    /// An empty one.
    #[must_use]
    pub fn new(policy: Policy, raw_cost_at_most: usize, text: Text) -> Self {
        let form = if text == Text::Turns { Form::Masked } else { Form::Raw };
        Session {
            policy,
            raw_cost_at_most,
            log: Log::after(Base::default(), text),
            restart: None,
            past: Past::default(),
            origins: vec![],
            summarized: None,
            numbered: 0,
            ledger: Ledger::default(),
            stored: Stored::default(),
            view: View::of(form),
            turns: TurnState::default(),
            attempts: vec![],
            whole_plans: 0,
        }
    }

    /// How many messages were appended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.past.end() + self.log.end() - self.origins.len()
    }

    /// Whether it is one of turns.
    #[must_use]
    pub fn is_turns(&self) -> bool {
        self.log.text() == Text::Turns
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A message as it was appended, from memory or from the store.
    ///
    /// # Errors
    /// Those of the store.
    pub fn message(&self, message: usize, store: Option<&mut Store>) -> Result<Vec<u8>> {
        Ok(match (self.message_here(message), store) {
            (Some(data), _) => data.to_vec(),
            (None, Some(store)) => stored_message(store, message)?,
            (None, None) => return Err(Failure::Closed),
        })
    }

    /// A message as it was appended; None where it is in the store alone.
    fn message_here(&self, message: usize) -> Option<&[u8]> {
        match message.checked_sub(self.past.end()) {
            None => self.past.message(message),
            Some(new) => Some(self.log.message((new + self.origins.len()).checked_sub(self.log.base.messages)?)),
        }
    }

    /// What masking would put in the place of each observation of a message, if that were appended now; None where it
    /// stays.
    ///
    /// # Errors
    /// Those of [`Session::append`].
    pub fn masked_texts(&mut self, message: &[u8], surrogates: bool) -> Result<Vec<Option<Vec<u8>>>> {
        let numbers = self.numbered as u32 + 1..;
        let texts = self.log.masked_texts(message, surrogates, &self.policy, numbers);
        texts.map_err(|error| self.at_end(error))
    }

    /// Appends a message, in a session that counts by other costs than characters with these. A result whose call was
    /// evicted asks the store for it; and the store gets the message.
    ///
    /// # Errors
    /// Malformed JSON, or a shape that is no message, and the session is as before. Where the store cannot take the
    /// message, the session has it, and stores it together with the next one.
    pub fn append(
        &mut self,
        message: &[u8],
        surrogates: bool,
        costs: MessageCosts,
        mut store: Option<&mut Store>,
    ) -> Result<()> {
        self.check_store(store.as_deref())?;
        let index = self.len();
        let numbers = self.numbered as u32 + 1..;
        let was_run = self.log.ends_with_run();
        let mark = self.log.mark();
        self.log.scan(message, surrogates, &self.policy, numbers).map_err(|error| self.at_end(error))?;
        let late = self.late_calls(store.as_deref_mut()).inspect_err(|_| self.log.truncate(&mark))?;
        self.log.admit(&self.policy);
        for (result, name, is_first) in late {
            self.log.pairs.join_late(result, name, is_first);
        }
        if let Some(costs) = costs {
            self.log.set_costs(&self.policy, costs);
        }
        let outline = &self.log.outline;
        let new = self.log.len() - 1;
        self.numbered += outline.results_of(new).len();
        if index == self.ledger.messages {
            self.ledger.note(outline, new, self.policy.image_chars);
        }
        self.view.is_current = false;
        if self.log.ends_with_run() && !was_run && self.policy.boundary.remembers() {
            let moved = self.log.with_rules(&self.policy, |ground, fold| fold.request(ground, new, false));
            self.fix(&moved);
        }
        match store {
            Some(store) => self.store_messages(store),
            None => Ok(()),
        }
    }

    /// Refuses a store that is closed, or has messages that this session did not append.
    fn check_store(&self, store: Option<&Store>) -> Result<()> {
        let stored = self.len().max(self.stored.replayed) - self.stored.missing;
        match store {
            None if self.stored.is_used => Err(Failure::Closed),
            Some(store) if store.can_go_on() && store.last(RecordKind::Message) as usize != stored => {
                Err(Failure::Foreign)
            }
            _ => Ok(()),
        }
    }

    /// An error of the message that was to come next.
    fn at_end(&self, mut error: Error) -> Failure {
        error.message_index = error.message_index.map(|_| self.len());
        error.into()
    }

    /// Makes the view that of the history. A summary that was made is in the store when this returns.
    ///
    /// # Errors
    /// Those of the store; the view is made.
    pub fn look(&mut self, summary: &SummaryInput, store: Option<&mut Store>) -> Result<Look> {
        let attempts = self.attempts.len();
        if self.restart.is_none() && !self.view.is_current {
            let asked = if self.policy.goal == Goal::Mask {
                self.look_masked();
                None
            } else {
                self.look_reduced(summary)
            };
            if let Some(look) = asked {
                return Ok(look);
            }
            self.view.is_current = true;
            self.settle_change();
        }
        match (&self.restart, store) {
            (Some(restart), _) if restart.wants_costs => return Ok(Look::AskCosts),
            (Some(_), store) => self.restart(None, store)?,
            (None, Some(store)) if self.attempts.len() != attempts => {
                let _ = self.store_snapshot(store); // a note that is lost costs a call after a restart, no more
            }
            (None, _) => {}
        }
        Ok(Look::Ready)
    }

    /// Without a budget: raw while the history is small, else masked; over the limit, up to the window.
    fn look_masked(&mut self) {
        if self.log.cost > self.raw_cost_at_most {
            let mut tentative = self.settle();
            if !self.policy.boundary.remembers() && !Limits::of(&self.policy).fit(self.log.fold.cost()) {
                tentative = self.log.with_rules(&self.policy, |ground, fold| fold.peek(ground, false));
            }
            self.show_masked(tentative);
        }
    }

    fn look_reduced(&mut self, summary: &SummaryInput) -> Option<Look> {
        let holds_pairs = !self.policy.strict_pairs || self.log.pairs.orphan_count(&self.log.outline) == 0;
        let mut peek = None;
        let answer = decide(Limits::of(&self.policy), self.log.cost, holds_pairs, |attempt| match attempt {
            Attempt::Boundary => {
                peek = self.settle();
                Some(peek.as_ref().map_or(self.log.fold.cost(), |peek| peek.cost))
            }
            Attempt::Window if self.policy.boundary.remembers() => None,
            Attempt::Window => {
                peek = self.log.with_rules(&self.policy, |ground, fold| fold.peek(ground, false));
                Some(peek.as_ref()?.cost)
            }
        });
        match answer {
            Answer::Raw => self.show_raw(),
            Answer::Masked(_) => self.show_masked(peek),
            Answer::Later => return self.look_further(peek, summary),
        }
        None
    }

    /// The later stages: a summary of the whole session, where one may help and may be asked for; else what is kept.
    fn look_further(&mut self, masks: Option<Peek>, summary: &SummaryInput) -> Option<Look> {
        let (masks, step) = masks.map_or((vec![], None), |peek| (peek.masked, Some(peek.step)));
        let (turns, cost) = (self.log.turns.count(), self.log.cost);
        if self.attempts().may_ask(turns, cost, self.policy.max_cost.unwrap_or(0)) && self.summary_may_help(&masks) {
            match self.summarize(summary) {
                Summarized::Made => return None,
                Summarized::Asked(look) => return Some(look),
                Summarized::Failed => self.fail(turns, cost),
            }
        }
        self.show_fallback(&masks, step);
        None
    }

    /// Moves the boundary where it may be moved for good; else says what the view of this request masks besides.
    fn settle(&mut self) -> Option<Peek> {
        let end = self.log.len();
        if self.policy.boundary.remembers() {
            let is_asked = !self.log.ends_with_run();
            return self.log.with_rules(&self.policy, |ground, fold| {
                fold.grow(ground, end);
                if is_asked && fold.moves_at(ground, end, true) { fold.peek(ground, true) } else { None }
            });
        }
        let moved = self.log.with_rules(&self.policy, |ground, fold| {
            fold.grow(ground, end);
            fold.advance(ground)
        });
        self.flip_shown(&moved);
        None
    }

    /// Stage 2, over the whole session. With a summary, the session restarts.
    fn summarize(&mut self, summary: &SummaryInput) -> Summarized {
        if *summary == SummaryInput::Failed {
            return Summarized::Failed;
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
                return Summarized::Asked(Look::AskSummary(messages, previous, built_in));
            }
            Outcome::Plan(plan) => plan,
        };
        let (Some(Stage::Summarization), Some(summary)) = (plan.stage, &plan.summary) else {
            return Summarized::Failed;
        };
        let kept = |message: &usize| plan.keeps(*message);
        let results = &self.log.outline.results;
        let masked = plan.masked.iter().filter(|one| kept(&(results[one.result as usize].message as usize))).count();
        let messages = (0..self.log.len()).filter(kept).count() + 1;
        let counts = Counts { messages, chars: plan.chars.1, masked };
        self.prepare_restart(&plan, summary, view.clone(), counts);
        self.show_planned(view, counts, Some(plan.moves));
        Summarized::Made
    }

    /// Summaries that failed since the last one.
    #[must_use]
    pub fn attempts(&self) -> Attempts {
        self.attempts.last().map_or(Attempts::default(), |(_, attempts)| *attempts)
    }

    /// A summary failed, in a session of so many turns that costs so much.
    fn fail(&mut self, turns: usize, cost: usize) {
        let mut attempts = self.attempts();
        attempts.fail(turns, cost);
        self.attempts.push((self.len(), attempts));
    }

    /// A summary was made.
    fn succeed(&mut self) {
        if self.attempts() != Attempts::default() {
            self.attempts.push((self.len(), Attempts::default()));
        }
    }

    /// How often a view needed a plan of the whole session.
    #[must_use]
    pub fn whole_plans(&self) -> usize {
        self.whole_plans
    }

    /// Characters and turns of all that was appended, and orphans among what is planned.
    #[must_use]
    pub fn totals(&self) -> (usize, usize, usize) {
        let totals = self.ledger.totals;
        (totals.chars, totals.turns, self.log.pairs.orphan_count(&self.log.outline))
    }

    /// The number of the newest observation of this id, from 1.
    ///
    /// # Errors
    /// Those of the store, which is asked where it alone may know.
    pub fn number_of(&self, id: &[u8], store: Option<&mut Store>) -> Result<Option<usize>> {
        Ok(match (self.ledger.newest.get(id), store) {
            (Some(number), _) => Some(*number as usize),
            (None, Some(store)) if self.ledger.stored > 0 => index::find(store, id)?.and_then(|entry| entry.number()),
            (None, None) if self.ledger.stored > 0 => return Err(Failure::Closed),
            (None, _) => None,
        })
    }

    /// The text of an observation, by its number from 1.
    ///
    /// # Errors
    /// Those of the store, which is asked where it alone knows.
    pub fn recall(&self, number: usize, mut store: Option<&mut Store>) -> Result<Option<Vec<u8>>> {
        let place = match (self.ledger.place(number), &mut store) {
            (None, Some(store)) if number <= self.ledger.stored => index::place(store, number)?,
            (None, None) if number > 0 && number <= self.ledger.stored => return Err(Failure::Closed),
            (place, _) => place,
        };
        let Some((message, place)) = place.filter(|(message, _)| *message < self.len()) else { return Ok(None) };
        Ok(observation_of(&self.message(message, store)?, place))
    }
}

/// The array of a session, closed while it is read; and open again afterwards, also where that panics.
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

/// The outline of a message alone.
fn scanned(message: &[u8]) -> core::result::Result<Outline, Error> {
    let mut outline = Outline::default();
    scan_message(message, 0, true, &mut outline)?;
    Ok(outline)
}
