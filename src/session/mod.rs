//! The append-only session: a history that grows message by message, its state, and what its readers have seen of the view.
//!
//! ```text
//! append      -> Log: text, facts, pairs, turns   -> State: makes the request that the message answers
//! update_view -> the step of the current request, and the text of its summary -> View: what changed
//! chunks, changes, masks <- what a reader lacks
//! store       <- messages and events, in order; opening reads them and appends them again
//! ```
//!
//! The views are those of the planner for the whole history: both fold the same messages into the same state. What a request that is
//! not made yet would change is a step beside the state; it is taken once the request is answered.

mod attempts;
mod event;
mod log;
mod provider;
mod recall;
mod reports;
mod sent;
mod stored;
mod summaries;
mod view;

use crate::error::Error;
use crate::plan::{Costs, Need, PlanContext, Point, State, Step, SummaryInput};
use crate::policy::{NOW, Policy, Requests};
use crate::store::{Store, StoreError};
pub use attempts::{Attempts, wait_after};
use event::Events;
use log::Log;
pub(crate) use log::{ResultPlace, ShownSummary, TextsToCount};
pub use reports::Counted;
use std::sync::Arc;
use stored::Stored;
pub(crate) use summaries::Asked;
use summaries::Summaries;
pub(crate) use view::Mask;
use view::View;
pub use view::{Chunks, ViewMessage};

#[derive(Debug, Default, Clone)]
pub struct Session {
    /// The policy that was given.
    given: Arc<Policy>,
    /// The same, with the terms of the provider that the history has decided.
    policy: Arc<Policy>,
    /// The message that decided.
    decided: Option<usize>,
    /// What is known of requests; see [`Session::renew_requests`]. And what was given of it.
    requests: Requests,
    given_requests: Requests,
    raw_cost_at_most: usize,
    log: Log,
    state: State,
    /// What the current request changes, and for how many messages that was decided; None if it must be decided again.
    step: Step,
    step_of: Option<usize>,
    events: Events,
    summaries: Summaries,
    stored: Stored,
    view: View,
    /// How many requests had each need; and how many messages the last one had that was counted.
    needs: [usize; 4],
    counted: Option<usize>,
    /// The mark of the last block of each view, if the caller marks that; and how many marks each request has elsewhere.
    own_mark: Option<(Vec<u8>, usize)>,
    /// The budget is one of tokens, of which characters may be measured.
    calibrates: bool,
    /// Reasoning is void whose request was not noted; else it is as `reduce` takes it.
    voids_unnoted: bool,
    /// How many moves of the boundary the caller knows.
    known_moves: usize,
    /// The first message of those, given as facts, whose requests are not made yet.
    unrequested: Option<usize>,
    /// Whether a change is running, or was interrupted by a panic; see [`Session::change`].
    is_changing: bool,
}

#[derive(Debug)]
pub enum Update {
    Done,
    AskSummary(Asked),
    /// The costs of these texts are needed; see [`Session::set_text_costs`].
    AskTextCosts(Vec<Vec<u8>>),
    /// The messages must be written; see [`Session::write_texts`].
    AskTexts,
}

/// An error of a session.
#[derive(Debug)]
pub enum Failure {
    Message(Error),
    Store(StoreError),
    /// The store has messages that another session appended.
    OtherWriter,
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
pub(crate) type Result<T> = core::result::Result<T, Failure>;

impl Session {
    /// An empty session. A history that costs at most `raw_cost_at_most` is sent raw.
    pub fn new(policy: impl Into<Arc<Policy>>, raw_cost_at_most: usize) -> Self {
        let given = policy.into();
        Session { policy: given.clone(), given, raw_cost_at_most, log: Log::empty(), ..Session::default() }
    }

    /// With what is known of requests beforehand.
    pub fn with_requests(self, requests: Requests) -> Self {
        Session { requests: requests.clone(), given_requests: requests, ..self }
    }

    /// The budget is one of tokens, of which characters may be measured.
    pub fn calibrating(self) -> Self {
        Session { calibrates: true, ..self }
    }

    /// Takes reasoning as void whose request this session did not note.
    pub fn voiding_unnoted(self) -> Self {
        Session { voids_unnoted: true, ..self }
    }

    /// Runs what changes the session. After a panic in it text, outline, pairs and view may be out of step, and the session
    /// can only be read.
    pub(crate) fn change<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if core::mem::replace(&mut self.is_changing, true) {
            return Err(Failure::Interrupted);
        }
        let done = work(self);
        self.is_changing = false;
        done
    }

    /// Another session that continues as this one would.
    pub fn fork(&self) -> Self {
        Session { is_changing: false, ..self.clone() } // a change copies it
    }

    /// How many messages were appended.
    pub fn len(&self) -> usize {
        self.log.len()
    }

    pub fn message(&self, message: usize) -> &[u8] {
        self.log.message(message)
    }

    /// Runs a rule of the plan.
    fn with_context<T>(&self, rule: impl FnOnce(PlanContext) -> T) -> T {
        self.log.with_context(&self.policy, &self.requests, rule)
    }

    /// Runs a rule that changes the state.
    fn with_state<T>(&mut self, rule: impl FnOnce(PlanContext, &mut State) -> T) -> T {
        let mut state = core::mem::take(&mut self.state);
        let done = self.with_context(|context| rule(context, &mut state));
        self.state = state;
        done
    }

    /// Texts to count of each observation of a message, if it were appended now: after a cut, and the placeholder; None without.
    pub(crate) fn texts_to_count(&mut self, message: &[u8], surrogates: bool) -> Result<Vec<TextsToCount>> {
        let texts = self.log.texts_to_count(message, surrogates, &self.policy);
        texts.map_err(|error| self.at_end(error))
    }

    /// The caller has counted these texts.
    pub(crate) fn set_text_costs(&mut self, texts: impl IntoIterator<Item = (Vec<u8>, usize)>) {
        self.log.costs.get_or_insert_default().texts.extend(texts);
    }

    /// Appends a message, with its costs if they are not characters, and writes it to the store. Malformed JSON or no message
    /// leaves the session unchanged. If only the write fails, the message is appended, and written with the next one.
    pub fn append(
        &mut self,
        message: &[u8],
        surrogates: bool,
        costs: Option<Costs>,
        store: Option<&mut Store>,
    ) -> Result<()> {
        self.check_store(store.as_deref())?;
        let (index, was_run) = (self.len(), self.log.ends_with_run());
        self.log.scan(message, surrogates, &self.policy).map_err(|error| self.at_end(error))?;
        self.log.admit(&self.policy);
        match costs {
            Some(costs) => self.log.give_costs(&self.policy, costs),
            None => self.log.weigh(&self.policy, index),
        }
        self.appended(index, was_run);
        let Some(store) = store else { return Ok(()) };
        self.stored.missing += usize::from(self.len() > self.stored.known);
        self.write(store)
    }

    /// Whether nothing in it is of a known shape, and that is to be said.
    pub(crate) fn is_unrecognized(&self) -> bool {
        !self.policy.is_off && self.log.outline.is_unrecognized()
    }

    /// A message was appended, before which there were so many and the last was one of a run or not.
    fn appended(&mut self, index: usize, was_run: bool) {
        self.decide_provider(index);
        self.view.is_current = false;
        if self.log.ends_with_run() && !was_run {
            self.settle_cold(index);
            self.make_request(index);
        }
    }

    /// An error in the next message.
    fn at_end(&self, mut error: Error) -> Failure {
        error.message_index = error.message_index.map(|_| self.len());
        error.into()
    }

    /// Makes the request after this many messages, whose answer begins there.
    fn make_request(&mut self, end: usize) {
        if !self.policy.remembers() {
            return;
        }
        let is_decided = self.step_of.take() == Some(end) && !self.requests.cold.contains(&NOW);
        let shown = core::mem::take(&mut self.step);
        let made = self.with_state(|context, state| {
            state.grow(context, end);
            let step = if is_decided { None } else { Some(state.step(context, end, Point::Past)) };
            state.take_request(context, end, step.as_ref().unwrap_or(&shown));
            step
        });
        if let Some(made) = made {
            self.touch_difference(&shown, &made);
        }
    }

    /// Makes all requests again that have fewer than this many messages.
    fn fold_again(&mut self, end: usize) {
        self.state = State::default();
        (self.step, self.step_of, self.view.touched) = (Step::default(), None, 0);
        if self.policy.remembers() {
            let starts = self.log.turns.starts.clone();
            self.with_state(|context, state| {
                for start in starts.into_iter().map(|start| start as usize).take_while(|start| *start < end) {
                    state.request(context, start, Point::Past);
                }
            });
        }
    }

    /// Decides what the current request changes, or the view after the answer to the last one.
    fn decide_step(&mut self) {
        let end = self.log.len();
        let point = if self.log.ends_with_run() { Point::Answered } else { Point::Now };
        let (remembers, max_cost) = (self.policy.remembers(), self.max_cost());
        let (step, moved, is_to_window) = self.with_state(|context, state| {
            state.grow(context, end);
            if remembers {
                return (state.step(context, end, point), vec![], false);
            }
            let moved = state.advance(context);
            let is_to_window = max_cost.is_some_and(|max| state.cost() > max);
            let step = if is_to_window { state.move_step(context, false) } else { None };
            (step.unwrap_or_else(|| Step::at_rest(state.cost())), moved, is_to_window)
        });
        self.touch_results(&moved);
        let before = core::mem::take(&mut self.step);
        self.touch_difference(&before, &step);
        self.step = step;
        self.step_of = (point == Point::Now).then_some(end);
        self.view.is_masked_to_window = is_to_window;
    }

    /// Makes the view current. What happens with its summary is stored before this returns. After an error of the store the view
    /// is current.
    pub fn update_view(&mut self, summary: &SummaryInput, store: Option<&mut Store>) -> Result<Update> {
        let lacks_texts = self.log.outline.spans.len() < self.len();
        if lacks_texts && self.asks_texts() {
            return Ok(Update::AskTexts);
        }
        if !self.view.is_current {
            self.renew_requests_for_cold();
            self.decide_step();
            if lacks_texts && self.asks_texts() {
                return Ok(Update::AskTexts);
            }
            if let Some(asked) = self.summary_text(summary)? {
                return Ok(asked);
            }
            self.show();
            self.note_request();
        }
        self.update_marks();
        self.count_need();
        match store {
            Some(store) if !self.stored.events.is_empty() => self.write(store)?,
            _ => {}
        }
        Ok(Update::Done)
    }

    /// The budget of the next request.
    fn max_cost(&self) -> Option<usize> {
        self.policy.max_cost_at(&self.requests, self.len())
    }

    /// Whether the view has masks and cuts: not of a history that is small enough to be sent raw.
    fn is_masked(&self) -> bool {
        self.policy.limit.is_kept || self.log.cost > self.raw_cost_at_most
    }

    /// Counts the current request, once, where its view is made.
    fn count_need(&mut self) {
        let end = self.len();
        if self.log.ends_with_run() || self.counted.replace(end) == Some(end) {
            return;
        }
        if let Some(need) = self.need() {
            self.needs[need as usize] += 1;
        }
    }

    /// The need of the current view; None below the trigger, or below the limit where there is no trigger.
    pub(crate) fn need(&self) -> Option<Need> {
        self.with_context(|context| self.state.need(context, &self.step))
    }

    /// How many requests needed masks alone, cuts, a summary, and truncation.
    pub(crate) fn needs(&self) -> [usize; 4] {
        self.needs
    }

    /// Drops all but the first messages, and folds the others again. After an error of the store the session is as before.
    pub fn rewind(&mut self, messages: usize, store: Option<&mut Store>) -> Result<()> {
        if messages >= self.len() {
            return Ok(());
        }
        self.check_store(store.as_deref())?;
        if let Some(store) = store {
            self.rewind_store(store, messages)?;
        }
        self.stored.missing = self.stored.missing.saturating_sub(self.len() - messages);
        self.stored.known = self.stored.known.min(messages);
        self.log.rewind(&self.policy, messages);
        self.summaries.rewind(messages);
        self.events = self.events.until(messages);
        self.undecide(messages);
        self.renew_requests();
        self.unrequested = self.unrequested.map(|first| first.min(messages));
        self.fold_again(self.unrequested.unwrap_or(messages));
        self.counted = self.counted.filter(|counted| *counted <= messages);
        self.known_moves = self.known_moves.min(self.state.moves().len());
        self.forget_view_after(messages);
        Ok(())
    }
}
