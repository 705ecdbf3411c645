//! Stages 2 and 3 of a session: a summary is requested if one may help, and the view becomes the session.

mod attempts;

pub use attempts::Attempts;

use crate::marks::MarkEdits;
use crate::outline::Span;
use crate::plan::{Costs, Masked, Outcome, Plan, SummaryInput, masked_in, plan};
use crate::scan::scan;
use crate::session::base::Base;
use crate::session::log::{Log, TextFormat};
use crate::session::places::Origin;
use crate::session::stored::mismatched_compaction;
use crate::session::stored::snapshot::Compaction;
use crate::session::{InView, Result, Session, Update};
use crate::source::Bytes;
use crate::splice::splice;
use crate::store::Store;

/// The messages before the last compaction: how many of them are evicted, and the others.
#[derive(Debug, Default, Clone)]
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

/// A new compaction whose costs may still be unknown.
#[derive(Debug, Clone)]
pub struct PendingCompaction {
    log: Log,
    origins: Vec<Origin>,
    pub needs_costs: bool,
    /// The message of the summary, empty without one; None if the compaction is stored already.
    summary: Option<Vec<u8>>,
    compaction: Compaction,
}

impl Session {
    /// How many messages the later stages have planned in total.
    #[must_use]
    pub fn messages_planned(&self) -> usize {
        self.messages_planned
    }

    /// The later stages, over the whole session.
    ///
    /// # Errors
    /// Those of the store, from which messages to be summarized may be read.
    pub(in crate::session) fn compact(
        &mut self,
        summary: &SummaryInput,
        store: Option<&mut Store>,
    ) -> Result<Option<Update>> {
        let (turns, cost) = (self.ledger.totals.turns, self.log.cost);
        let may_ask = self.attempts().may_ask(turns, cost, self.max_cost().unwrap_or(0));
        let summary = if may_ask { summary } else { &SummaryInput::Failed };
        self.messages_planned += self.log.len();
        let is_changing = core::mem::take(&mut self.is_changing); // planning changes nothing
        let Log { data, outline, costs, .. } = &mut self.log;
        let closed = Closed::of(data);
        let planned = plan(outline, &Bytes(closed.0), &self.policy, costs.as_ref(), summary);
        let view = match &planned {
            Outcome::Plan(plan) if !plan.only_masks() => {
                splice(closed.0, outline, &self.policy, plan, MarkEdits::default()).to_vec(closed.0)
            }
            _ => vec![],
        };
        drop(closed);
        self.is_changing = is_changing;
        let plan = match planned {
            Outcome::AskSummary { dropped, previous, built_in } => {
                return self.ask_summary(&dropped, previous, built_in, store).map(Some);
            }
            Outcome::AskCosts(texts) => return Ok(Some(Update::AskTextCosts(texts))),
            Outcome::Replay => unreachable!("this is the session"),
            Outcome::Plan(plan) => plan,
        };
        if may_ask && *summary != SummaryInput::NotAsked && plan.summary.is_none() {
            self.fail(turns, cost);
        }
        if !plan.changes() {
            self.show_raw();
        } else if plan.only_masks() {
            let is_new = |one: &&Masked| one.is_masked() && masked_in(&self.log.fold.masked, one.results()).is_empty();
            let tentative = plan.masked.iter().filter(is_new).cloned().collect();
            self.show_masked(tentative, plan.moves.get(self.log.fold.moves.len()).copied());
            self.view.planned_boundaries = Some((plan.boundary_before, plan.boundary));
        } else {
            self.prepare_compaction(&plan, &view);
        }
        Ok(None)
    }

    /// Summaries are made of the messages as they were appended, also where an earlier compaction masked them.
    fn ask_summary(
        &mut self,
        dropped: &[usize],
        previous: Option<Vec<u8>>,
        built_in: Vec<u8>,
        mut store: Option<&mut Store>,
    ) -> Result<Update> {
        let mut messages: Vec<Vec<u8>> =
            (0..self.log.len()).map(|message| self.log.message(message).to_vec()).collect();
        let mut is_rendered = false;
        let origins: Vec<Origin> = dropped.iter().map(|message| self.origin(InView(*message))).collect();
        self.asked = origins.iter().map(|origin| origin.appended().unwrap_or_default().0).collect();
        for (message, origin) in dropped.iter().zip(origins) {
            if let Origin::Rendered(appended) = origin {
                messages[*message] = self.message(appended.0, store.as_deref_mut())?;
                is_rendered = true;
            }
        }
        let built_in = if is_rendered {
            let data = [b"[", &messages.join(&b","[..])[..], b"]"].concat();
            crate::plan::built_in(&scan(&data, true)?, &Bytes(&data), &self.policy, dropped)
        } else {
            built_in
        };
        let dropped = dropped.iter().map(|message| core::mem::take(&mut messages[*message])).collect();
        Ok(Update::AskSummary(dropped, previous, built_in))
    }

    /// The caller has counted these texts.
    pub fn set_text_costs(&mut self, texts: impl IntoIterator<Item = (Vec<u8>, usize)>) {
        self.log.costs.get_or_insert_default().texts.extend(texts);
    }

    /// The caller has counted all of its texts.
    pub(in crate::session) fn know_text_costs(&mut self, costs: &Costs) {
        let texts = &mut self.log.costs.get_or_insert_default().texts;
        if texts.len() < costs.texts.len() {
            texts.extend(costs.texts.iter().map(|(text, cost)| (text.clone(), *cost)));
        }
    }

    /// The view of this plan will be the session.
    fn prepare_compaction(&mut self, plan: &Plan, view: &[u8]) {
        let before = &self.log;
        let outline = scan(view, true).unwrap_or_default(); // it was rendered, so it is valid
        let messages: Vec<&[u8]> = outline.spans.iter().map(|message| message.of(view)).collect();
        let kept: Vec<usize> = (0..before.len()).filter(|message| plan.keeps(*message)).collect();
        let mut sources: Vec<Option<usize>> = kept.iter().copied().map(Some).collect();
        let mut summary_message = vec![];
        if let Some(summary) = &plan.summary {
            let place = kept.partition_point(|message| *message < summary.before);
            sources.insert(place, None);
            summary_message = messages[place].to_vec();
        }
        let is_of_task = |source: &Option<usize>| source.is_some_and(|message| message < plan.task_end);
        let task_end = sources.iter().rposition(is_of_task).map_or(0, |last| last + 1);
        let origin = |(source, rendered): (&Option<usize>, &&[u8])| {
            let Some(message) = *source else { return Origin::New };
            match self.origin(InView(message)) {
                Origin::Appended(appended) if before.message(message) != *rendered => Origin::Rendered(appended),
                origin => origin,
            }
        };
        let origins: Vec<Origin> = sources.iter().zip(&messages).map(origin).collect();
        let results = kept.iter().flat_map(|message| before.outline.results_of(*message));
        let numbers: Vec<(usize, u32)> = results.map(|result| (result, before.outline.numbers[result])).collect();
        let masked_before = self.compaction.as_ref().map_or(&[][..], |compaction| &compaction.masked);
        let is_masked = |(result, number): &&(usize, u32)| {
            let masked = masked_in(&plan.masked, *result..*result + 1);
            masked.iter().any(Masked::is_masked) || masked_before.binary_search(number).is_ok()
        };
        let compaction = Compaction {
            past: self.len(),
            task_end,
            messages: messages.into_iter().map(<[u8]>::to_vec).collect(),
            sources: origins.iter().map(|origin| origin.source()).collect(),
            masked: numbers.iter().filter(is_masked).map(|(_, number)| *number).collect(),
            numbers: numbers.iter().map(|(_, number)| *number).collect(),
        };
        self.pending = Some(self.pending_compaction(compaction, origins, Some(summary_message)));
    }

    fn pending_compaction(
        &self,
        compaction: Compaction,
        origins: Vec<Origin>,
        summary: Option<Vec<u8>>,
    ) -> PendingCompaction {
        let mut log = Log::after(Base::default(), TextFormat::Json);
        log.outline.task_end = compaction.task_end;
        let mut numbers = compaction.numbers.iter().copied();
        for message in &compaction.messages {
            // Only messages of a damaged snapshot fail; `resume_compaction` finds that by their number.
            let _ = log.push(message, true, &self.policy, &mut numbers);
        }
        PendingCompaction { log, origins, needs_costs: self.log.costs.is_some(), summary, compaction }
    }

    /// The messages of the session after a new compaction, and the numbers of their observations.
    #[must_use]
    pub fn pending_messages(&self) -> (Vec<Vec<u8>>, Vec<u32>) {
        let Some(PendingCompaction { compaction, .. }) = &self.pending else { return (vec![], vec![]) };
        (compaction.messages.clone(), compaction.numbers.clone())
    }

    /// Continues with the new compaction, with the costs of its messages if they are not characters.
    ///
    /// # Errors
    /// Those of the store; the session has continued, and the compaction is written with the next message.
    pub fn apply_compaction(&mut self, costs: Option<Costs>, store: Option<&mut Store>) -> Result<()> {
        let Some(PendingCompaction { log, origins, summary, compaction, .. }) = self.pending.take() else {
            return Ok(());
        };
        let view = self.last_view();
        let before = core::mem::replace(&mut self.log, log);
        if let Some(costs) = costs {
            self.log.cost = costs.total();
            let texts = before.costs.as_ref().map_or_else(Default::default, |costs| costs.texts.clone());
            self.log.costs = Some(Costs { texts, ..costs });
        }
        for message in self.origins.len()..before.len() {
            self.past.push(before.message(message));
        }
        self.origins = origins;
        let bytes = compaction.bytes();
        self.compaction = Some(compaction);
        self.renew_policy();
        self.log.request_from(&self.policy, 0);
        let end = self.log.len();
        self.log.with_fold(&self.policy, |context, fold| fold.grow(context, end));
        self.restart_view(summary.is_some().then_some(&view));
        if let Some(message) = summary {
            if message.is_empty() {
                self.rebase_attempts(before.cost);
            } else {
                self.succeed();
            }
            self.stored.compactions.push([bytes, message]);
        }
        self.update_marks();
        match store {
            Some(store) if !self.stored.compactions.is_empty() => self.store_snapshot(store),
            _ => Ok(()),
        }
    }

    /// Continues after a stored compaction.
    pub(in crate::session) fn resume_compaction(&mut self, compaction: Compaction, needs_costs: bool) -> Result<()> {
        let Compaction { past, numbers, sources, .. } = &compaction;
        let is_known = |number: &u32| (1..=self.observations).contains(&(*number as usize));
        let are_sources = sources.len() == compaction.messages.len() && sources.iter().all(|source| source <= past);
        if !numbers.iter().all(is_known) || !are_sources {
            return Err(mismatched_compaction());
        }
        let origins = sources.iter().map(|source| Origin::of_stored(*source)).collect();
        let (messages, results) = (compaction.messages.len(), numbers.len());
        let pending = PendingCompaction { needs_costs, ..self.pending_compaction(compaction, origins, None) };
        if pending.log.len() != messages || pending.log.outline.results.len() != results {
            return Err(mismatched_compaction());
        }
        self.pending = Some(pending);
        if needs_costs {
            return Ok(());
        }
        self.apply_compaction(None, None)?;
        self.forget_shown();
        Ok(())
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
