//! The append-only session. The work of a message is done once, when it comes: its text is scanned, its pairs are found,
//! and what is masked is written once. A view is then the view before, from the first message on that it shows
//! otherwise.
//!
//! The views are those of the planner for the whole history. A summary, once made, stands in the place of what it
//! summarizes: from then on the session is that summary and the rest, and all that came before is the past, which is
//! kept, but not planned any more.
//!
//! With a store, a history lets go of what can change no more, and reads it there when it is asked for.

mod anew;
mod head;
mod index;
mod ledger;
mod let_go;
mod session;
mod shown;

use crate::error::Error;
use crate::outline::Outline;
use crate::plan::{Outcome, Peek, Plan, Stage, SummaryInput, plan};
use crate::policy::{Goal, Policy};
use crate::scan::scan_message;
use crate::source::Bytes;
use crate::splice::{splice, summary_message};
use crate::store::{self, Store};
use anew::{Anew, Past};
pub use index::moves as stored_moves;
use ledger::Ledger;
use let_go::{Kept, observation_of};
pub use let_go::{stored_message, write_shown};
pub use session::MessageCosts;
use session::Session;
pub use shown::{Changes, Counts};
use shown::{Form, Shown};

/// See the module.
#[derive(Debug)]
pub struct History {
    policy: Policy,
    /// A history that costs at most so much is sent raw.
    raw_cost_at_most: usize,
    session: Session,
    /// What the session will be, when its costs are known.
    anew: Option<Anew>,
    past: Past,
    /// Messages of the session before this one were there when the last summary was made.
    new_from: usize,
    /// Observations that have a number.
    numbered: usize,
    ledger: Ledger,
    kept: Kept,
    shown: Shown,
}

/// What a view needs.
#[derive(Debug)]
pub enum Look {
    /// Nothing.
    Ready,
    /// A summary: the messages of the session to be summarized, the earlier summary, the built-in one.
    AskSummary(Vec<usize>, Option<Vec<u8>>, Vec<u8>),
    /// Nothing, but the session is to begin anew: with these of its messages, and before one of them a new message.
    Summarized(Vec<usize>, usize, Vec<u8>),
}

impl History {
    /// An empty one.
    #[must_use]
    pub fn new(policy: Policy, raw_cost_at_most: usize) -> Self {
        History {
            policy,
            raw_cost_at_most,
            session: Session::new(),
            anew: None,
            past: Past::default(),
            new_from: 0,
            numbered: 0,
            ledger: Ledger::default(),
            kept: Kept::default(),
            shown: Shown::default(),
        }
    }

    /// How many messages were appended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.past.end() + self.session.end() - self.new_from
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A message as it was appended; None where the store alone has it.
    #[must_use]
    pub fn message(&self, message: usize) -> Option<&[u8]> {
        match message.checked_sub(self.past.end()) {
            None => Some(self.past.messages[message.checked_sub(self.past.first)?].of(&self.past.data)),
            Some(behind) => {
                Some(self.session.message((behind + self.new_from).checked_sub(self.session.behind.messages)?))
            }
        }
    }

    /// A message of the session that is there, which after a summary is that and the rest.
    #[must_use]
    pub fn session_message(&self, message: usize) -> &[u8] {
        self.session.message(message - self.session.behind.messages)
    }

    /// What masking would put in the place of each observation of a message, if that were appended now; None where it
    /// stays.
    ///
    /// # Errors
    /// Those of [`History::append`].
    pub fn masked_texts(&mut self, message: &[u8], surrogates: bool) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let numbers = self.numbered as u32 + 1..;
        let texts = self.session.masked_texts(message, surrogates, &self.policy, numbers);
        texts.map_err(|error| self.at_end(error))
    }

    /// Appends a message; in a history that counts by other costs than characters, with these. A result of a call that was
    /// let go asks the store for that.
    ///
    /// # Errors
    /// Malformed JSON, or a shape that is no message; or those of the store. The history is as before.
    pub fn append(
        &mut self,
        message: &[u8],
        surrogates: bool,
        costs: MessageCosts,
        store: Option<&mut Store>,
    ) -> store::Result<Result<(), Error>> {
        let index = self.len();
        let numbers = self.numbered as u32 + 1..;
        let was_run = self.session.ends_with_run();
        let mark = self.session.mark();
        if let Err(error) = self.session.scan(message, surrogates, &self.policy, numbers) {
            return Ok(Err(self.at_end(error)));
        }
        let late = self.late_calls(store).inspect_err(|_| self.session.truncate(&mark))?;
        self.session.admit(&self.policy);
        for (result, name, is_first) in late {
            self.session.pairs.join_late(result, name, is_first);
        }
        if let Some(costs) = costs {
            self.session.set_costs(&self.policy, costs);
        }
        let Session { outline, .. } = &self.session;
        let new = self.session.len() - 1;
        self.numbered += outline.results_of(new).len();
        if index == self.ledger.messages {
            self.ledger.note(outline, new, self.policy.image_chars);
        }
        let is_run = self.session.ends_with_run();
        self.shown.is_current = false;
        if is_run && !was_run && self.policy.boundary.remembers() {
            let moved = self.session.with_rules(&self.policy, |ground, fold| fold.request(ground, new, false));
            let tentative = core::mem::take(&mut self.shown.tentative);
            // What the view of the request showed already is fixed now; but one for a cold cache may have shown more.
            if matches!(self.shown.form, Form::Masked) && moved != tentative {
                self.flip(&tentative);
                self.flip(&moved);
            }
        }
        Ok(Ok(()))
    }

    /// An error of the message that was to come next.
    fn at_end(&self, mut error: Error) -> Error {
        error.message_index = error.message_index.map(|_| self.len());
        error
    }

    /// Makes sure that the view is that of the history.
    pub fn look(&mut self, summary: &SummaryInput) -> Look {
        if let Some(Anew { kept, place, summary, .. }) = &self.anew {
            return Look::Summarized(kept.clone(), *place, summary.clone());
        }
        if self.shown.is_current {
            return Look::Ready;
        }
        let look = if self.policy.goal == Goal::Mask { self.look_masked() } else { self.look_reduced(summary) };
        if !matches!(look, Look::AskSummary(..)) {
            self.shown.is_current = true;
            self.settle_change();
        }
        look
    }

    /// Without a budget: raw while the history is small, else masked.
    fn look_masked(&mut self) -> Look {
        if self.session.cost <= self.raw_cost_at_most {
            return Look::Ready;
        }
        let tentative = self.settle();
        self.show_masked(tentative);
        Look::Ready
    }

    fn look_reduced(&mut self, summary: &SummaryInput) -> Look {
        let fits = |cost: usize, policy: &Policy| policy.max_cost.is_none_or(|max| cost <= max);
        let raw_fits = fits(self.session.cost, &self.policy);
        let masks_anyway = self.policy.observation_masking && self.policy.boundary.remembers();
        if !self.policy.enabled || (raw_fits && !masks_anyway) {
            self.show_raw();
            return Look::Ready;
        }
        let holds_pairs = !self.policy.strict_pairs || self.session.pairs.orphan_count(&self.session.outline) == 0;
        if self.policy.observation_masking {
            let tentative = self.settle();
            let cost = tentative.as_ref().map_or(self.session.fold.cost(), |peek| peek.cost);
            if holds_pairs && fits(cost, &self.policy) {
                self.show_masked(tentative);
                return Look::Ready;
            }
            // A boundary that was rounded goes as far as it can where the rounded one does not fit.
            if !self.policy.boundary.remembers()
                && let Some(peek) = self.session.with_rules(&self.policy, |ground, fold| fold.peek(ground, false))
                && holds_pairs
                && fits(peek.cost, &self.policy)
            {
                self.show_masked(Some(peek));
                return Look::Ready;
            }
        }
        if raw_fits {
            self.show_raw();
            return Look::Ready;
        }
        self.plan(summary)
    }

    /// Moves the boundary where it may be moved for good; else says what the view of this request masks besides.
    fn settle(&mut self) -> Option<Peek> {
        let end = self.session.len();
        if self.policy.boundary.remembers() {
            let is_asked = !self.session.ends_with_run();
            return self.session.with_rules(&self.policy, |ground, fold| {
                fold.grow(ground, end);
                if is_asked && fold.moves_at(ground, end, true) { fold.peek(ground, true) } else { None }
            });
        }
        let moved = self.session.with_rules(&self.policy, |ground, fold| {
            fold.grow(ground, end);
            fold.advance(ground)
        });
        if matches!(self.shown.form, Form::Masked) {
            self.flip(&moved);
        }
        None
    }

    /// The later stages, over the whole session.
    fn plan(&mut self, summary: &SummaryInput) -> Look {
        let Session { data, outline, costs, .. } = &mut self.session;
        let data = Closed::of(data);
        let planned = plan(outline, &Bytes(data.0), &self.policy, costs.as_ref(), summary);
        let look = match planned {
            Outcome::AskSummary { dropped, previous, built_in } => {
                return Look::AskSummary(dropped, previous, built_in);
            }
            Outcome::Plan(plan) => {
                let view = splice(data.0, outline, &self.policy, &plan).to_vec(data.0);
                drop(data);
                let look = self.summarized(&plan);
                let kept = |message: &usize| plan.keeps(*message);
                let messages = (0..plan.kept.as_ref().map_or(0, Vec::len)).filter(kept).count();
                let messages = messages + usize::from(plan.summary.is_some());
                let masked = plan.masked.iter();
                let masked =
                    masked.filter(|one| plan.keeps(self.session.outline.results[one.result as usize].message as usize));
                let counts = Counts { messages, chars: plan.chars.1, masked: masked.count() };
                self.show_planned(view, counts, plan.moves);
                look
            }
        };
        if let Look::Summarized(kept, place, message) = &look {
            self.prepare_anew(kept, *place, message);
        }
        look
    }

    fn summarized(&self, plan: &Plan) -> Look {
        let (Some(Stage::Summarization), Some(summary)) = (plan.stage, &plan.summary) else { return Look::Ready };
        let kept: Vec<usize> = (0..self.session.len()).filter(|message| plan.keeps(*message)).collect();
        let place = kept.partition_point(|message| *message < summary.before);
        let mut message = vec![];
        summary_message(summary, &mut message);
        Look::Summarized(kept, place, message)
    }

    /// Characters and turns of all that was appended, and orphans among what is planned.
    #[must_use]
    pub fn totals(&self) -> (usize, usize, usize) {
        let totals = self.ledger.totals;
        (totals.chars, totals.turns, self.session.pairs.orphan_count(&self.session.outline))
    }

    /// The number of the newest observation of this id, from 1.
    ///
    /// # Errors
    /// Those of the store, which is asked where it alone may know.
    pub fn number_of(&self, id: &[u8], store: Option<&mut Store>) -> store::Result<Option<usize>> {
        match (self.ledger.newest.get(id), store) {
            (Some(number), _) => Ok(Some(*number as usize)),
            (None, Some(store)) if self.ledger.stored > 0 => {
                Ok(index::find(store, id)?.and_then(|entry| entry.number()))
            }
            (None, _) => Ok(None),
        }
    }

    /// The text of an observation, by its number from 1.
    ///
    /// # Errors
    /// Those of the store, which is asked where it alone knows.
    pub fn recall(&self, number: usize, mut store: Option<&mut Store>) -> store::Result<Option<Vec<u8>>> {
        let place = match (self.ledger.place(number), &mut store) {
            (None, Some(store)) if number <= self.ledger.stored => index::place(store, number)?,
            (place, _) => place,
        };
        let Some((message, place)) = place.filter(|(message, _)| *message < self.len()) else { return Ok(None) };
        Ok(match (self.message(message), store) {
            (Some(data), _) => observation_of(data, place),
            (None, Some(store)) => observation_of(&stored_message(store, message)?, place),
            (None, None) => None,
        })
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
fn scanned(message: &[u8]) -> Result<Outline, Error> {
    let mut outline = Outline::default();
    scan_message(message, 0, true, &mut outline)?;
    Ok(outline)
}
