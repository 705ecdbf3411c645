//! What is planned: messages that come one by one, with all that is known of them.

use super::head::Behind;
use crate::error::Error;
use crate::outline::{Mark, Outline, Span};
use crate::pairs::GrowingPairs;
use crate::placeholder::Placeholder;
use crate::plan::{Costs, Fold, Ground, facts_of_pair};
use crate::policy::Policy;
use crate::scan::scan_message;
use crate::source::{Bytes, Source, count_newlines};
use crate::turns::Turns;

/// See the module.
#[derive(Debug)]
pub struct Session {
    /// Messages that were let go before the first one.
    pub behind: Behind,
    /// An array that is not closed yet.
    pub data: Vec<u8>,
    pub outline: Outline,
    pub pairs: GrowingPairs,
    pub turns: Turns,
    pub fold: Fold,
    pub chars: usize,
    /// What its messages cost, where that is not their characters; and all of them together, unmasked.
    pub costs: Option<Costs>,
    pub cost: usize,
}

/// What a message costs: by itself, and each of its observations raw and masked. None where its characters are.
pub type MessageCosts = Option<(usize, Vec<(usize, usize)>)>;

impl Session {
    pub fn new() -> Self {
        let mut outline = Outline::default();
        outline.array_start = 1;
        Session {
            behind: Behind::default(),
            data: vec![b'['],
            outline,
            pairs: GrowingPairs::default(),
            turns: Turns::default(),
            fold: Fold::default(),
            chars: 0,
            costs: None,
            cost: 0,
        }
    }

    /// One with no messages yet, behind others that were let go.
    pub fn behind(behind: Behind) -> Self {
        Session { behind, ..Session::new() }
    }

    /// The messages that are there have come, and it goes on as it was when others were let go.
    pub fn go_on(&mut self, policy: &Policy) {
        let state = core::mem::take(&mut self.behind.fold);
        self.fold = Fold::resumed(self.ground(policy, &Bytes(&self.data)), &state);
        self.pairs.set_counts(self.behind.counts);
        (self.chars, self.cost) = (self.behind.chars, self.behind.cost);
    }

    /// How many messages are there.
    pub fn len(&self) -> usize {
        self.outline.messages.len()
    }

    /// How many there are with those that were let go.
    pub fn end(&self) -> usize {
        self.behind.messages + self.len()
    }

    pub fn message(&self, message: usize) -> &[u8] {
        self.outline.messages[message].span.of(&self.data)
    }

    pub fn ends_with_run(&self) -> bool {
        self.outline.messages.last().is_some_and(|message| message.is_agent_made)
    }

    /// A message comes; its results have these numbers.
    pub fn push(
        &mut self,
        message: &[u8],
        surrogates: bool,
        policy: &Policy,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<(), Error> {
        self.scan(message, surrogates, policy, numbers)?;
        self.admit(policy);
        Ok(())
    }

    /// The message that was scanned last is one of the session.
    pub fn admit(&mut self, policy: &Policy) {
        self.pairs.push(&self.outline);
        let message = self.len() - 1;
        self.turns.push(message, self.outline.messages[message].is_agent_made);
        let chars = self.outline.chars_of(message, policy.image_chars);
        self.chars = self.chars.saturating_add(chars);
        self.cost = self.cost.saturating_add(chars);
    }

    /// Where it ends now.
    pub fn mark(&self) -> (Mark, usize) {
        (self.outline.mark(), self.data.len())
    }

    /// Forgets a message that was scanned behind a mark, and is none of the session.
    pub fn truncate(&mut self, (mark, bytes): &(Mark, usize)) {
        self.outline.truncate(mark);
        self.data.truncate(*bytes);
    }

    /// What the message that was pushed last costs, in place of its characters.
    pub fn set_costs(&mut self, policy: &Policy, (own, observations): (usize, Vec<(usize, usize)>)) {
        let chars = self.outline.chars_of(self.len() - 1, policy.image_chars);
        let cost = observations.iter().fold(own, |cost, (raw, _)| cost.saturating_add(*raw));
        self.cost = (self.cost - chars).saturating_add(cost);
        let costs = self.costs.get_or_insert_default();
        costs.messages.push(own);
        costs.observations.extend(observations);
    }

    /// What masking would put in the place of each observation of a message, if that came now; None where it stays.
    pub fn masked_texts(
        &mut self,
        message: &[u8],
        surrogates: bool,
        policy: &Policy,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mark = self.mark();
        self.scan(message, surrogates, policy, numbers)?;
        let Session { outline, data, pairs, turns, .. } = &*self;
        let last = outline.messages.len() - 1;
        let is_new_run =
            outline.messages[last].is_agent_made && turns.ends.last().is_none_or(|end| *end as usize != last);
        let turn_at = |message: usize| turns.at(message) + usize::from(message == last && is_new_run);
        let (placeholder, source) = (Placeholder::of(policy), Bytes(data));
        let text = |result: usize| {
            let call = pairs.call_of_last(outline, result).map(|call| call as usize);
            let facts = facts_of_pair(outline, call, turn_at, result);
            let (form, _) = placeholder.form(outline, &source, result, &facts);
            placeholder.render(&form, &facts, || source.observation(outline, result))
        };
        let texts = outline.results_of(last).map(text).collect();
        self.truncate(&mark);
        Ok(texts)
    }

    /// The bytes of a message come, and its facts with them; or an error, and nothing.
    pub fn scan(
        &mut self,
        message: &[u8],
        surrogates: bool,
        policy: &Policy,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<(), Error> {
        let before = self.data.len();
        if self.len() > 0 {
            self.data.push(b',');
        }
        let start = self.data.len();
        let leading = message.iter().take_while(|byte| is_white(**byte)).count();
        let trailing = message[leading..].iter().rev().take_while(|byte| is_white(**byte)).count();
        self.data.extend_from_slice(&message[leading..message.len() - trailing]);
        let results = self.outline.results.len();
        if let Err(mut error) = scan_message(&self.data, start, surrogates, &mut self.outline) {
            self.data.truncate(before);
            error.offset = error.offset.map(|offset| offset - start + leading);
            return Err(error);
        }
        if policy.names_lines() {
            count_newlines(&self.data, &mut self.outline, results);
        }
        let new = self.outline.results.len() - results;
        self.outline.numbers.extend(numbers.take(new));
        Ok(())
    }

    /// Runs a rule that looks at the session, whose fold is its to change.
    pub fn with_rules<T>(&mut self, policy: &Policy, rule: impl FnOnce(Ground, &mut Fold) -> T) -> T {
        let Session { data, outline, pairs, turns, fold, costs, .. } = self;
        let source = Bytes(data);
        let ground = Ground { outline, source: &source, policy, costs: costs.as_ref(), pairs: &pairs.pairs, turns };
        rule(ground, fold)
    }

    /// The same for what changes nothing.
    pub fn ground<'a>(&'a self, policy: &'a Policy, source: &'a dyn Source) -> Ground<'a> {
        let Session { outline, pairs, turns, costs, .. } = self;
        Ground { outline, source, policy, costs: costs.as_ref(), pairs: &pairs.pairs, turns }
    }

    /// The span of some messages.
    pub fn stretch(&self, start: usize, end: usize) -> Span {
        let messages = &self.outline.messages;
        Span { start: messages[start].span.start, end: messages[end - 1].span.end }
    }
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}
