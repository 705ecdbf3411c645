//! The messages of a session: their text, outline, pairs, turns and costs.

pub(crate) mod facts;

pub(crate) use facts::{ResultPlace, ShownSummary};

use crate::error::Error;
use crate::marks::{self, MarkEdits};
use crate::outline::{Mark, Outline, Span, ToolResult};
use crate::pairs::Pairs;
use crate::placeholder::Placeholder;
use crate::plan::{BlockPlace, Costs, Cut, Masked, PlanContext, facts_of_pair};
use crate::policy::{Policy, Requests, UNKNOWN_REQUESTS};
use crate::scan::scan_message;
use crate::source::{Bytes, Source, count_newlines};
use crate::splice::{splice_cut, splice_stretch};
use crate::turns::Turns;
use facts::{KnownTexts, LogSource};

#[derive(Debug, Default, Clone)]
pub(crate) struct Log {
    /// A JSON array without its end. Of the newest messages, which were given as facts, the text may be written later, or never.
    pub data: Vec<u8>,
    pub texts: KnownTexts,
    /// Whether a view of it was read as JSON last.
    pub is_read: bool,
    pub outline: Outline,
    pub pairs: Pairs,
    pub turns: Turns,
    pub chars: usize,
    /// Costs of the messages if they are not characters; and their unmasked total.
    pub costs: Option<Costs>,
    pub cost: usize,
    /// The newest mark of each message that has some: message, block, value. Only where marks of ours are written.
    pub marks: Vec<(usize, usize, Span)>,
}

/// The text of an observation after a cut, and its placeholder.
pub(crate) type TextsToCount = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Log {
    pub(crate) fn empty() -> Self {
        let mut log = Log { data: vec![b'['], ..Log::default() };
        log.outline.array_start = log.data.len();
        log
    }

    pub(crate) fn len(&self) -> usize {
        self.outline.messages.len()
    }

    pub(crate) fn message(&self, message: usize) -> &[u8] {
        self.outline.spans[message].of(&self.data)
    }

    pub(crate) fn ends_with_run(&self) -> bool {
        self.outline.messages.last().is_some_and(|message| message.is_agent_made)
    }

    /// Adds the last scanned message to pairs, turns and costs.
    pub(crate) fn admit(&mut self, policy: &Policy) {
        self.pairs.grow(&self.outline);
        let message = self.len() - 1;
        let is_written = self.outline.spans.len() == self.len();
        if is_written {
            self.arrive(policy, message);
        }
        self.turns.push(message, self.outline.messages[message].is_agent_made);
        let chars = self.outline.chars_of(message, policy.text.image_chars);
        self.chars = self.chars.saturating_add(chars);
        self.cost = self.cost.saturating_add(if policy.weighs() { 0 } else { chars });
        if policy.may_pin() && is_written {
            let newest = marks::newest(&self.data, self.outline.spans[message]);
            self.marks.extend(newest.map(|(block, value)| (message, block, value)));
        }
    }

    /// Lets the results of a new message arrive.
    fn arrive(&mut self, policy: &Policy, message: usize) {
        let results = self.outline.results_of(message);
        for (result, arrival) in self.with_context(policy, &UNKNOWN_REQUESTS, |context| context.arrivals(results)) {
            arrival.take(&mut self.outline, result);
        }
    }

    /// The current end, for [`Log::truncate`].
    pub(crate) fn mark(&self) -> (Mark, usize) {
        (self.outline.mark_before(self.len()), self.data.len())
    }

    /// Drops a message that was scanned after the mark, but not admitted.
    pub(crate) fn truncate(&mut self, (mark, bytes): &(Mark, usize)) {
        self.outline.truncate(mark);
        self.data.truncate(*bytes);
    }

    /// Keeps only the first messages.
    pub(crate) fn rewind(&mut self, policy: &Policy, messages: usize) {
        let outline = &self.outline;
        let results = outline.results_before(messages);
        let sum = |size: &dyn Fn(usize) -> usize| {
            (messages..outline.messages.len()).fold(0, |sum: usize, message| sum.saturating_add(size(message)))
        };
        let chars = sum(&|message| outline.chars_of(message, policy.text.image_chars));
        let cost = self.costs.as_mut().map_or(chars, |costs| {
            let own = costs.messages.drain(messages..).map(|(own, reasoning)| own.saturating_add(reasoning));
            let own = own.fold(0, usize::saturating_add);
            costs.observations.drain(results..).fold(own, |sum, (raw, _)| sum.saturating_add(raw))
        });
        (self.chars, self.cost) = (self.chars.saturating_sub(chars), self.cost.saturating_sub(cost));
        self.pairs.truncate(outline, messages);
        let last = outline.spans[..messages.min(outline.spans.len())].last();
        let bytes = last.map_or(outline.array_start, |last| last.end);
        self.truncate(&(self.outline.mark_before(messages), bytes));
        self.turns.truncate(messages);
        self.texts.retain(|result, _| (*result as usize) < results);
        self.marks.truncate(self.marks.partition_point(|(message, ..)| *message < messages));
    }

    /// Replaces the characters of the newest messages by their costs, and adds those of texts.
    pub(crate) fn give_costs(&mut self, policy: &Policy, costs: Costs) {
        let of_chars = |message: usize| self.outline.chars_of(message, policy.text.image_chars);
        let counted: usize = (self.len() - costs.messages.len()..self.len()).map(of_chars).sum();
        self.cost = self.cost.saturating_sub(counted).saturating_add(costs.total());
        let known = self.costs.get_or_insert_default();
        known.messages.extend(costs.messages);
        known.observations.extend(costs.observations);
        known.texts.extend(costs.texts);
    }

    /// Weighs the messages from this one on, where tokens are asked. Their costs may be known by the terms of another provider.
    pub(crate) fn weigh(&mut self, policy: &Policy, first: usize) {
        let messages = first..self.len();
        let weighed = |context: PlanContext| Costs::weighed(context, messages);
        let Some(new) = self.with_context(policy, &UNKNOWN_REQUESTS, weighed) else { return };
        let (results, known) = (self.outline.results_before(first), self.costs.get_or_insert_default());
        let before = Costs {
            messages: known.messages.split_off(first.min(known.messages.len())),
            observations: known.observations.split_off(results.min(known.observations.len())),
            ..Costs::default()
        };
        self.cost = self.cost.saturating_sub(before.total()).saturating_add(new.total());
        known.messages.extend(new.messages);
        known.observations.extend(new.observations);
        known.tokens = new.tokens;
    }

    /// Texts to count of each observation of a message, if it were appended now: after a cut, and the placeholder; None without.
    pub(crate) fn texts_to_count(
        &mut self,
        message: &[u8],
        surrogates: bool,
        policy: &Policy,
    ) -> Result<Vec<TextsToCount>, Error> {
        let mark = self.mark();
        self.scan(message, surrogates, policy)?;
        self.pairs.grow(&self.outline);
        self.arrive(policy, self.len() - 1);
        let Log { outline, data, pairs, turns, .. } = &*self;
        let last = outline.messages.len() - 1;
        let is_new_run =
            outline.messages[last].is_agent_made && turns.ends.last().is_none_or(|end| *end as usize != last);
        let turn_at = |message: usize| turns.at(message) + usize::from(message == last && is_new_run);
        let (placeholder, source) = (Placeholder::of(policy), Bytes(data));
        let text = |result: usize| {
            let facts = facts_of_pair(outline, pairs.call_of(result), turn_at, result);
            let cut = outline.cut_of(result).map(|clip| clip.apply(&source.observation(outline, result)));
            (cut, placeholder.masked(outline, &source, result, facts))
        };
        let texts = outline.results_of(last).map(text).collect();
        self.pairs.truncate(&self.outline, last);
        self.truncate(&mark);
        Ok(texts)
    }

    /// Appends the bytes and facts of a message; on errors nothing.
    pub(crate) fn scan(&mut self, message: &[u8], surrogates: bool, policy: &Policy) -> Result<(), Error> {
        let before = self.data.len();
        if self.len() > 0 {
            self.data.push(b',');
        }
        let start = self.data.len();
        let leading = message.iter().take_while(|byte| is_white(**byte)).count();
        let trailing = message[leading..].iter().rev().take_while(|byte| is_white(**byte)).count();
        self.data.extend_from_slice(&message[leading..message.len() - trailing]);
        let results = self.outline.results.len();
        if let Err(mut error) = scan_message(&self.data, start, (surrogates, policy.weighs()), &mut self.outline) {
            self.data.truncate(before);
            error.offset = error.offset.map(|offset| offset - start + leading);
            return Err(error);
        }
        if policy.names_lines() {
            count_newlines(&self.data, &mut self.outline, results);
        }
        Ok(())
    }

    /// Writes the text of the first message that has none; on errors nothing.
    pub(super) fn write(&mut self, message: &[u8]) -> Result<(), Error> {
        let (before, place) = (self.data.len(), self.outline.spans.len());
        if place > 0 {
            self.data.push(b',');
        }
        let (start, mut read) = (self.data.len(), Outline::default());
        self.data.extend_from_slice(message);
        scan_message(&self.data, start, (true, false), &mut read).inspect_err(|_| self.data.truncate(before))?;
        let outline = &mut self.outline;
        let pieces = outline.pieces.len() as u32;
        let results = outline.results_of(place);
        for (known, ToolResult { value, first_piece, pieces: count, first_byte, may_hold_dispatch, .. }) in
            outline.results[results].iter_mut().zip(read.results)
        {
            (known.value, known.first_piece, known.pieces) = (value, pieces + first_piece, count);
            (known.first_byte, known.may_hold_dispatch) = (first_byte, may_hold_dispatch);
        }
        outline.messages[place].first_piece = pieces;
        outline.pieces.extend(read.pieces);
        outline.spans.extend(read.spans);
        Ok(())
    }

    /// Runs a rule of the plan.
    pub(crate) fn with_context<T>(
        &self,
        policy: &Policy,
        requests: &Requests,
        rule: impl FnOnce(PlanContext) -> T,
    ) -> T {
        let Log { data, texts, outline, pairs, turns, costs, .. } = self;
        let source = &LogSource { written: Bytes(data), texts };
        let (costs, placeholder) = (costs.as_ref(), &Placeholder::of(policy));
        rule(PlanContext { outline, source, policy, requests, placeholder, costs, pairs, turns, related: &[] })
    }

    /// Renders messages in a row with these observations masked, with commas between them. A mark in an observation goes to its block,
    /// if that is not one of the cleared ones.
    pub(crate) fn render(
        &self,
        policy: &Policy,
        messages: core::ops::Range<usize>,
        masked: &[Masked],
        cleared: &[BlockPlace],
        out: &mut Vec<u8>,
    ) {
        let Some(last) = messages.end.checked_sub(1).filter(|last| *last >= messages.start) else { return };
        let spans = &self.outline.spans;
        let span = Span { start: spans[messages.start].start, end: spans[last].end };
        let marks = MarkEdits { cleared: cleared.to_vec(), ..MarkEdits::default() };
        let rule = |context: PlanContext| splice_stretch(&self.data, context, span, masked, marks, out);
        self.with_context(policy, &UNKNOWN_REQUESTS, rule);
    }

    /// Renders a message of the task that is cut.
    pub(crate) fn render_cut(&self, policy: &Policy, cut: &Cut, out: &mut Vec<u8>) {
        self.with_context(policy, &UNKNOWN_REQUESTS, |context| splice_cut(&self.data, context, cut, out));
    }
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}
