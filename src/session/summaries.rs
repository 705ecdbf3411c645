//! The texts of summaries, and whether and at which request one arrived. The state counts a summary as its share, so the text is needed
//! only where a view shows it; whether one arrived is an event, which the fold reads.

use super::attempts::Attempts;
use super::event::{Event, SummaryEvent};
use super::{Result, Session, Update};
use crate::plan::{Standing, SummaryInput, SummaryWriter, Uncounted};
use std::collections::BTreeSet;

#[derive(Debug, Default, Clone)]
pub(crate) struct Summaries {
    /// The built-in summary that was written last, with its key.
    built_in: Option<(u64, Vec<u8>)>,
    /// Whether each of the first messages was looked at for tags, and those that have some.
    looked_at: Vec<bool>,
    tagged: BTreeSet<(u32, usize)>,
}

/// What a summary is asked for.
#[derive(Debug)]
pub struct Asked {
    /// The messages that it has to tell of, besides the previous text.
    pub messages: Vec<usize>,
    /// The text of the summary before, without its first line.
    pub previous: Option<Vec<u8>>,
    pub key: u64,
}

impl Summaries {
    /// Keeps what is of the first messages.
    pub(crate) fn rewind(&mut self, messages: usize) {
        self.built_in = None;
        self.looked_at.truncate(messages);
        self.tagged.retain(|(message, _)| (*message as usize) < messages);
    }
}

impl Session {
    /// Failures since the last summary.
    pub fn attempts(&self) -> Attempts {
        self.events.summaries().next_back().map_or(Attempts::default(), |event| event.attempts)
    }

    /// The requests at which no text arrived, ascending.
    pub(super) fn failed_summaries(&self) -> Vec<usize> {
        let failed = self.events.summaries().filter(|event| event.text.is_none());
        failed.map(|event| event.request).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn text_of(&self, key: u64) -> Option<&Vec<u8>> {
        self.events.summaries().rev().filter(|event| event.key == key).find_map(|event| event.text.as_ref())
    }

    /// Whether the summarizer wrote the text that is known.
    fn is_told(&self, key: u64) -> bool {
        let mut events = self.events.summaries().rev();
        events.find(|event| event.key == key && event.text.is_some()).is_some_and(|event| event.attempts.failures == 0)
    }

    /// The text of the summary in the current view, or what is needed for it. If it does not arrive, the built-in one stands over a
    /// limit, until the next one is due; else nothing is hidden.
    pub(super) fn summary_text(&mut self, input: &SummaryInput) -> Result<Option<Update>> {
        let mut input = input;
        loop {
            let hidden = self.state.hidden_after(&self.step);
            let Some(standing) = hidden.summary else {
                self.view.next_summary = None;
                return Ok(None);
            };
            if let Some(text) = self.text_of(standing.key).cloned() {
                return Ok(self.show_summary(standing, &text)); // a stored one may be longer than its share is today
            }
            if !self.policy.limit.asks_summary {
                let text = self.built_in(standing);
                return Ok(self.show_summary(standing, &text));
            }
            let (turns, cost) = (self.log.turns.count(), self.log.cost);
            let mut attempts = self.attempts();
            let may_ask = attempts.may_ask(turns, cost, self.max_cost().unwrap_or(0));
            let event = SummaryEvent { request: standing.request, key: standing.key, text: None, attempts };
            match input {
                SummaryInput::Given(text, _) if may_ask => {
                    let text = match SummaryWriter::clipped(text, standing.share, self.log.costs.as_ref()) {
                        Ok(text) => text,
                        Err(Uncounted(texts)) => return Ok(Some(Update::AskTextCosts(texts))),
                    };
                    let attempts = Attempts::default();
                    self.happened(Event::Summary(SummaryEvent { text: Some(text), attempts, ..event }));
                }
                SummaryInput::NotAsked if may_ask => return Ok(Some(self.ask_summary(standing))),
                SummaryInput::Failed | SummaryInput::Unfinished if may_ask => {
                    attempts.fail(turns, cost, *input == SummaryInput::Unfinished);
                    self.go_without(standing, SummaryEvent { attempts, ..event });
                }
                _ => self.go_without(standing, event),
            }
            input = &SummaryInput::NotAsked;
        }
    }

    /// Notes that the summarizer has no text.
    fn go_without(&mut self, standing: Standing, event: SummaryEvent) {
        let has_texts = self.log.outline.spans.len() == self.len();
        if standing.is_forced && has_texts {
            let text = Some(self.built_in(standing));
            return self.happened(Event::Summary(SummaryEvent { text, ..event }));
        }
        self.happened(Event::Summary(event));
        self.decide_again(standing.request);
    }

    /// Shows this text as the summary of the next view, clipped to its share; or asks for the costs that this needs.
    fn show_summary(&mut self, standing: Standing, text: &[u8]) -> Option<Update> {
        match SummaryWriter::clipped(text, standing.share, self.log.costs.as_ref()) {
            Ok(text) => self.view.next_summary = Some(text),
            Err(Uncounted(texts)) => return Some(Update::AskTextCosts(texts)),
        }
        None
    }

    /// Decides again, where it has become known that no text arrived at a request.
    fn decide_again(&mut self, request: usize) {
        self.renew_requests();
        if request < self.log.len() || self.log.ends_with_run() {
            self.fold_again(self.log.len());
        }
        self.decide_step();
    }

    /// The messages that the summary of the view has to tell of, with the previous text.
    fn ask_summary(&self, standing: Standing) -> Update {
        let is_known = |key| key != standing.key && self.is_told(key);
        self.with_context(|context| {
            let writer = SummaryWriter::of(context, &self.state, &self.step, standing);
            let (messages, known) = writer.untold(&self.state, &self.step, is_known);
            let previous = known.and_then(|key| self.text_of(key));
            let previous = previous.map(|text| SummaryWriter::body(text)).or_else(|| writer.previous());
            Update::AskSummary(Asked { messages, previous, key: standing.key })
        })
    }

    /// The messages that a summary is asked for.
    pub(crate) fn told(&self, update: &Update) -> Vec<Vec<u8>> {
        let Update::AskSummary(asked) = update else { return vec![] };
        asked.messages.iter().map(|message| self.message(*message).to_vec()).collect()
    }

    /// The built-in summary of the view.
    fn built_in(&mut self, standing: Standing) -> Vec<u8> {
        if let Some((known, text)) = &self.summaries.built_in
            && *known == standing.key
        {
            return text.clone();
        }
        let mut summaries = core::mem::take(&mut self.summaries);
        summaries.looked_at.resize(self.log.len(), false);
        let text = self.with_context(|context| {
            let writer = SummaryWriter::of(context, &self.state, &self.step, standing);
            for message in writer.summarized() {
                if !core::mem::replace(&mut summaries.looked_at[message], true) {
                    summaries.tagged.extend(writer.tags_of(message));
                }
            }
            let is_hidden = |(message, _): &&(u32, usize)| writer.tells_of(*message as usize);
            writer.built_in(&summaries.tagged.iter().filter(is_hidden).copied().collect::<Vec<_>>())
        });
        self.summaries = summaries;
        self.summaries.built_in = Some((standing.key, text.clone()));
        text
    }
}
