//! The messages of a session that are in memory: their text, outline, pairs, turns and costs, and the fold of the boundary.

pub mod facts;
pub mod ledger;

pub use facts::ResultPlace;

use crate::error::Error;
use crate::marks::{self, MarkEdits};
use crate::outline::{Mark, Outline, Span};
use crate::pairs::{GrowingPairs, LateResult};
use crate::placeholder::Placeholder;
use crate::plan::{BlockPlace, Costs, Fold, Masked, PlanContext, facts_of_pair};
use crate::policy::Policy;
use crate::scan::scan_message;
use crate::session::base::Base;
use crate::source::{Bytes, Source, count_newlines};
use crate::splice::splice_stretch;
use crate::turns::Turns;
use facts::{Known, KnownTexts};

/// How messages are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TextFormat {
    /// A JSON array without its end.
    #[default]
    Json,
    /// No text: only facts are known.
    Facts,
}

/// See the module.
#[derive(Debug, Default, Clone)]
pub struct Log {
    /// State of the evicted messages before the first one.
    pub base: Base,
    format: TextFormat,
    pub data: Vec<u8>,
    pub texts: KnownTexts,
    pub outline: Outline,
    pub pairs: GrowingPairs,
    pub turns: Turns,
    pub fold: Fold,
    pub chars: usize,
    /// Costs of the messages if they are not characters; and their unmasked total.
    pub costs: Option<Costs>,
    pub cost: usize,
    /// The newest mark of each message that has some: message, block, value. Only where marks of ours are written.
    pub marks: Vec<(usize, usize, Span)>,
}

/// Costs of a message: own, and of each observation raw and masked. None where they are its characters.
pub type MessageCosts = Option<(usize, Vec<(usize, usize)>)>;

/// The text of an observation after a cut, and its placeholder.
pub type TextsToCount = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Log {
    /// An empty log after evicted messages.
    pub fn after(base: Base, format: TextFormat) -> Self {
        let (mut outline, mut fold) = (Outline::default(), Fold::default());
        let is_json = format == TextFormat::Json;
        outline.array_start = usize::from(is_json);
        fold.enable_rewind(0);
        Log { base, format, data: if is_json { vec![b'['] } else { vec![] }, outline, fold, ..Log::default() }
    }

    /// Restores the state of the base, once the messages in memory are pushed.
    pub fn resume(&mut self, policy: &Policy) {
        let state = core::mem::take(&mut self.base.fold);
        self.fold = self.with_fold(policy, |context, _| Fold::resumed(context, &state));
        if self.format == TextFormat::Json {
            self.fold.enable_rewind(self.len());
        }
        self.pairs.set_counts(self.base.counts);
        (self.chars, self.cost) = (self.base.chars, self.base.cost);
    }

    pub fn len(&self) -> usize {
        self.outline.messages.len()
    }

    /// How many messages there are, including evicted ones.
    pub fn end(&self) -> usize {
        self.base.messages + self.len()
    }

    pub fn message(&self, message: usize) -> &[u8] {
        self.outline.spans[message].of(&self.data)
    }

    pub fn format(&self) -> TextFormat {
        self.format
    }

    pub fn ends_with_run(&self) -> bool {
        self.outline.messages.last().is_some_and(|message| message.is_agent_made)
    }

    /// Appends a message whose results have these numbers.
    pub fn push(
        &mut self,
        message: &[u8],
        surrogates: bool,
        policy: &Policy,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<(), Error> {
        self.scan(message, surrogates, policy, numbers)?;
        self.admit(policy, &[]);
        Ok(())
    }

    /// Adds the last scanned message to pairs, turns and costs. Some of its results may be those of evicted calls.
    pub fn admit(&mut self, policy: &Policy, late: &[LateResult]) {
        self.pairs.push(&self.outline, late);
        let message = self.len() - 1;
        if self.format == TextFormat::Json {
            self.cut_new(policy, message);
        }
        self.turns.push(message, self.outline.messages[message].is_agent_made);
        let chars = self.outline.chars_of(message, policy.image_chars);
        self.chars = self.chars.saturating_add(chars);
        self.cost = self.cost.saturating_add(chars);
        if policy.may_pin() && self.format == TextFormat::Json {
            let newest = marks::newest(&self.data, self.outline.spans[message]);
            self.marks.extend(newest.map(|(block, value)| (message, block, value)));
        }
    }

    /// Cuts the results of a new message.
    fn cut_new(&mut self, policy: &Policy, message: usize) {
        let results = self.outline.results_of(message);
        for (result, clip, newlines) in self.with_context(policy, |context| context.arrivals(results)) {
            self.outline.cut(result, clip, newlines);
        }
    }

    /// The current end, for [`Log::truncate`].
    pub fn mark(&self) -> (Mark, usize) {
        (self.outline.mark(), self.data.len())
    }

    /// Drops a message that was scanned after the mark, but not admitted.
    pub fn truncate(&mut self, (mark, bytes): &(Mark, usize)) {
        self.outline.truncate(mark);
        self.data.truncate(*bytes);
    }

    /// Keeps only the first messages; returns the observations that are no longer masked.
    pub fn rewind(&mut self, policy: &Policy, messages: usize) -> Vec<Masked> {
        let outline = &self.outline;
        let (calls, results) = (outline.calls_before(messages), outline.results_before(messages));
        let chars = (messages..outline.messages.len())
            .fold(0, |sum: usize, message| sum.saturating_add(outline.chars_of(message, policy.image_chars)));
        let cost = self.costs.as_mut().map_or(chars, |costs| {
            let own = costs.messages.drain(messages..).fold(0, usize::saturating_add);
            costs.observations.drain(results..).fold(own, |sum, (raw, _)| sum.saturating_add(raw))
        });
        (self.chars, self.cost) = (self.chars.saturating_sub(chars), self.cost.saturating_sub(cost));
        self.pairs.truncate(outline, calls, results);
        let last = messages.checked_sub(1).and_then(|last| outline.spans.get(last));
        let bytes = last.map_or(outline.array_start, |last| last.end);
        self.truncate(&(self.outline.mark_before(messages), bytes));
        self.turns.truncate(messages);
        self.texts.retain(|result, _| (*result as usize) < results);
        self.marks.truncate(self.marks.partition_point(|(message, ..)| *message < messages));
        let (first, unmasked) = self.fold.rewind(&self.outline, messages);
        self.request_from(policy, first);
        unmasked
    }

    /// Repeats the requests of turns that begin at this message or later.
    pub fn request_from(&mut self, policy: &Policy, first: usize) {
        if policy.remembers() {
            self.with_fold(policy, |context, fold| {
                let starts = &context.turns.starts;
                for start in &starts[starts.partition_point(|start| (*start as usize) < first)..] {
                    fold.request(context, *start as usize, false);
                }
            });
        }
    }

    /// Charges the requests of turns that begin before this message again, at none of which anything was masked.
    pub fn charge_again(&mut self, policy: &Policy, end: usize) {
        self.fold = Fold::default();
        self.fold.enable_rewind(0);
        let starts = self.turns.starts.clone();
        for start in starts.into_iter().map(|start| start as usize).take_while(|start| *start < end) {
            self.with_fold(policy, |context, fold| fold.request(context, start, false));
        }
    }

    /// Replaces the characters of the newest message or turn by its costs.
    pub fn set_costs(&mut self, policy: &Policy, (own, observations): (usize, Vec<(usize, usize)>)) {
        let known = self.costs.as_ref().map_or(0, |costs| costs.messages.len());
        let chars: usize = (known..self.len()).map(|message| self.outline.chars_of(message, policy.image_chars)).sum();
        let cost = observations.iter().fold(own, |cost, (raw, _)| cost.saturating_add(*raw));
        self.cost = (self.cost - chars).saturating_add(cost);
        let costs = self.costs.get_or_insert_default();
        costs.messages.push(own);
        costs.messages.resize(self.outline.messages.len(), 0);
        costs.observations.extend(observations);
    }

    /// Texts to count of each observation of a message, if it were appended now: after a cut, and the placeholder; None without.
    pub fn texts_to_count(
        &mut self,
        message: &[u8],
        surrogates: bool,
        policy: &Policy,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<Vec<TextsToCount>, Error> {
        let mark = self.mark();
        self.scan(message, surrogates, policy, numbers)?;
        self.pairs.push(&self.outline, &[]);
        self.cut_new(policy, self.len() - 1);
        let Log { outline, data, pairs, turns, .. } = &*self;
        let last = outline.messages.len() - 1;
        let is_new_run =
            outline.messages[last].is_agent_made && turns.ends.last().is_none_or(|end| *end as usize != last);
        let turn_at = |message: usize| turns.at(message) + usize::from(message == last && is_new_run);
        let (placeholder, source) = (Placeholder::of(policy), Bytes(data));
        let text = |result: usize| {
            let facts = facts_of_pair(outline, pairs.pairs.call_of(result), turn_at, result);
            let facts = placeholder.with_handle(facts, outline, &source, result);
            let (form, _) = placeholder.form(outline, &source, result, &facts);
            let cut = outline.cut_of(result).map(|clip| clip.apply(&source.observation(outline, result)));
            (cut, placeholder.render(&form, &facts, || source.observation(outline, result)))
        };
        let texts = outline.results_of(last).map(text).collect();
        let (calls, results) = (outline.calls_before(last), outline.results_before(last));
        self.pairs.truncate(&self.outline, calls, results);
        self.truncate(&mark);
        Ok(texts)
    }

    /// Appends the bytes and facts of a message; on errors nothing.
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

    /// Runs a rule that changes the fold.
    pub fn with_fold<T>(&mut self, policy: &Policy, rule: impl FnOnce(PlanContext, &mut Fold) -> T) -> T {
        let Log { data, texts, format, outline, pairs, turns, fold, costs, .. } = self;
        let source = format.source(data, texts);
        let (costs, pairs, placeholder) = (costs.as_ref(), &pairs.pairs, &Placeholder::of(policy));
        rule(PlanContext { outline, source: &*source, policy, placeholder, costs, pairs, turns, references: &[] }, fold)
    }

    /// Runs a rule that changes nothing.
    pub fn with_context<T>(&self, policy: &Policy, rule: impl FnOnce(PlanContext) -> T) -> T {
        let Log { data, texts, format, outline, pairs, turns, costs, .. } = self;
        let source = format.source(data, texts);
        let (costs, pairs, placeholder) = (costs.as_ref(), &pairs.pairs, &Placeholder::of(policy));
        rule(PlanContext { outline, source: &*source, policy, placeholder, costs, pairs, turns, references: &[] })
    }

    /// Renders messages with these observations masked, each with the comma or bracket before it. A mark in an observation goes to
    /// its block, if that is not one of the cleared ones.
    pub fn render(
        &self,
        policy: &Policy,
        (start, end): (usize, usize),
        masked: &[Masked],
        cleared: &[BlockPlace],
        out: &mut Vec<u8>,
    ) {
        out.push(if self.base.messages + start == 0 { b'[' } else { b',' });
        if start >= end {
            return;
        }
        let spans = &self.outline.spans;
        let span = Span { start: spans[start].start, end: spans[end - 1].end };
        let marks = MarkEdits { cleared: cleared.to_vec(), ..MarkEdits::default() };
        self.with_context(policy, |context| splice_stretch(&self.data, context, span, masked, marks, out));
    }
}

impl TextFormat {
    fn source<'a>(self, data: &'a [u8], texts: &'a KnownTexts) -> Box<dyn Source + 'a> {
        match self {
            TextFormat::Json => Box::new(Bytes(data)),
            TextFormat::Facts => Box::new(Known(texts)),
        }
    }
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}
