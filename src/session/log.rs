//! The messages of a session that are in memory, with all that is known of them: their text, facts, pairs and turns, and
//! the fold of the boundary.

use super::snapshot::Base;
use super::turns::TurnTokens;
use crate::error::Error;
use crate::outline::{Mark, Message, Outline, Role, Span, ToolResult};
use crate::pairs::GrowingPairs;
use crate::placeholder::Placeholder;
use crate::plan::{Costs, Fold, Ground, Landmarks, Masked, facts, facts_of_pair};
use crate::policy::Policy;
use crate::scan::scan_message;
use crate::shape::Frame;
use crate::source::{Bytes, Source, count_newlines};
use crate::splice::splice_stretch;
use crate::text::count_chars;
use crate::turns::Turns;
use memchr::memchr_iter;

/// How the text of messages is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Text {
    /// As JSON, in an array that is not closed yet.
    #[default]
    Json,
    /// As turns of a context: two messages each, one of the agent and one that holds its observation.
    Turns,
}

/// What a context shows before the number of a turn, its reasoning, its action and its observation.
const FRAME: [&[u8]; 4] = [b"\n\nTurn ", b":\nReasoning: ", b"\nAction: ", b"\nObservation: "];

/// A turn as it was added: reasoning, action, observation.
pub type Texts<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// See the module.
#[derive(Debug)]
pub struct Log {
    /// What was evicted before the first message.
    pub base: Base,
    text: Text,
    pub data: Vec<u8>,
    pub outline: Outline,
    pub pairs: GrowingPairs,
    pub turns: Turns,
    pub landmarks: Landmarks,
    pub fold: Fold,
    pub chars: usize,
    /// What its messages cost, where that is not their characters; and all of them together, unmasked.
    pub costs: Option<Costs>,
    pub cost: usize,
    /// Of each turn that is written as one its reasoning, its action, and when it was added.
    parts: Vec<(Span, Span, f64)>,
}

/// What a message costs: by itself, and each of its observations raw and masked. None where its characters are.
pub type MessageCosts = Option<(usize, Vec<(usize, usize)>)>;

impl Log {
    /// One with no messages yet, after others that were evicted.
    pub fn after(base: Base, text: Text) -> Self {
        let (mut outline, mut fold) = (Outline::default(), Fold::default());
        let is_json = text == Text::Json;
        outline.array_start = usize::from(is_json);
        if is_json {
            fold.begin(0);
        }
        Log {
            turns: Turns::after(if is_json { 0 } else { base.messages / 2 }),
            base,
            text,
            data: if is_json { vec![b'['] } else { vec![] },
            outline,
            pairs: GrowingPairs::default(),
            landmarks: Landmarks::default(),
            fold,
            chars: 0,
            costs: None,
            cost: 0,
            parts: vec![],
        }
    }

    /// The messages in memory have come; everything else is as the base has it.
    pub fn resume(&mut self, policy: &Policy) {
        let state = core::mem::take(&mut self.base.fold);
        self.fold = self.with_rules(policy, |ground, _| Fold::resumed(ground, &state));
        if self.text == Text::Json {
            self.fold.begin(self.len());
        }
        self.pairs.set_counts(self.base.counts);
        (self.chars, self.cost) = (self.base.chars, self.base.cost);
    }

    /// How many messages are in memory.
    pub fn len(&self) -> usize {
        self.outline.messages.len()
    }

    /// How many there are with those that were evicted.
    pub fn end(&self) -> usize {
        self.base.messages + self.len()
    }

    pub fn message(&self, message: usize) -> &[u8] {
        self.outline.messages[message].span.of(&self.data)
    }

    pub fn text(&self) -> Text {
        self.text
    }

    /// A turn as it was added, from 0 among those in memory, and when.
    pub fn turn(&self, turn: usize) -> Option<(Texts<'_>, f64)> {
        let (reasoning, action, timestamp) = self.parts.get(turn)?;
        let observation = self.outline.results[turn].value;
        Some(((reasoning.of(&self.data), action.of(&self.data), observation.of(&self.data)), *timestamp))
    }

    /// The tokens of a turn, from 0 among those in memory.
    pub fn tokens(&self, turn: usize) -> TurnTokens {
        let costs = self.costs.as_ref();
        let (observation, masked) = costs.map_or((0, 0), |costs| costs.observations[turn]);
        TurnTokens { own: costs.map_or(0, |costs| costs.messages[2 * turn]), observation, masked }
    }

    pub fn ends_with_run(&self) -> bool {
        self.outline.messages.last().is_some_and(|message| message.is_agent_made)
    }

    /// Appends a message; its results have these numbers.
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

    /// The message that was scanned last belongs to the session from now on.
    pub fn admit(&mut self, policy: &Policy) {
        self.pairs.push(&self.outline);
        let message = self.len() - 1;
        self.turns.push(message, self.outline.messages[message].is_agent_made);
        self.landmarks.push(&self.outline, message);
        let chars = self.outline.chars_of(message, policy.image_chars);
        self.chars = self.chars.saturating_add(chars);
        self.cost = self.cost.saturating_add(chars);
    }

    /// Appends a turn: the message of the agent, and the one that holds the observation.
    pub fn push_turn(&mut self, texts: Texts, timestamp: f64, tokens: TurnTokens, policy: &Policy) {
        let (start, number) = (self.data.len(), self.end() / 2 + 1);
        write_turn(number, texts, &mut self.data);
        let mut at = start + number.to_string().len();
        let [reasoning, action, value] = [(texts.0, 1), (texts.1, 2), (texts.2, 3)].map(|(text, frames)| {
            let start = at + FRAME[..=frames].iter().map(|frame| frame.len()).sum::<usize>();
            at += text.len();
            Span { start, end: start + text.len() }
        });
        self.parts.push((reasoning, action, timestamp));
        let first_result = self.outline.results.len() as u32;
        let result = result_of(&self.data, value, self.len() as u32 + 1);
        let of_agent = Message {
            span: Span { start, end: value.start },
            chars: count_chars(&self.data[start..]) - result.chars,
            first_result,
            role: Role::Assistant,
            is_agent_made: true,
            ..Message::default()
        };
        let span = Span { start: value.start, end: self.data.len() };
        let of_observation = Message { span, chars: result.chars, first_result, ..Message::default() };
        self.outline.messages.push(of_agent);
        self.admit(policy);
        self.outline.messages.push(of_observation);
        self.outline.results.push(result);
        self.admit(policy);
        let TurnTokens { own, observation, masked } = tokens;
        self.set_costs(policy, (own, vec![(observation, masked)]));
    }

    /// Where it ends now.
    pub fn mark(&self) -> (Mark, usize) {
        (self.outline.mark(), self.data.len())
    }

    /// Forgets a message that was scanned after a mark, and was not admitted.
    pub fn truncate(&mut self, (mark, bytes): &(Mark, usize)) {
        self.outline.truncate(mark);
        self.data.truncate(*bytes);
    }

    /// Only so many messages have come; gives what is masked no longer.
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
        let bytes = messages.checked_sub(1).map_or(outline.array_start, |last| outline.messages[last].span.end);
        self.truncate(&(self.outline.mark_before(messages), bytes));
        self.turns.truncate(messages);
        self.landmarks.truncate(messages);
        let (first, unmasked) = self.fold.rewind(&self.outline, messages);
        self.request_from(policy, first);
        unmasked
    }

    /// Makes the requests for the turns that begin with this message or later.
    pub fn request_from(&mut self, policy: &Policy, first: usize) {
        if policy.boundary.remembers() {
            self.with_rules(policy, |ground, fold| {
                let starts = &ground.turns.starts;
                for start in &starts[starts.partition_point(|start| (*start as usize) < first)..] {
                    fold.request(ground, *start as usize, false);
                }
            });
        }
    }

    /// What the newest messages cost, in place of their characters: the last one, or the two of the last turn.
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
        let Log { outline, data, pairs, turns, .. } = &*self;
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

    /// Takes the bytes of a message, and its facts; or gives an error, and takes nothing.
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
        let Log { data, text, outline, pairs, turns, fold, costs, .. } = self;
        let source = text.source(data);
        let costs = costs.as_ref();
        rule(Ground { outline, source: &*source, policy, costs, pairs: &pairs.pairs, turns }, fold)
    }
}

impl Log {
    /// The same for what changes nothing.
    pub fn look<T>(&self, policy: &Policy, rule: impl FnOnce(Ground) -> T) -> T {
        let Log { data, text, outline, pairs, turns, costs, .. } = self;
        let source = text.source(data);
        let costs = costs.as_ref();
        rule(Ground { outline, source: &*source, policy, costs, pairs: &pairs.pairs, turns })
    }

    /// Writes some messages as a view shows them, with these observations masked; of JSON each with what precedes it.
    pub fn render(&self, policy: &Policy, start: usize, end: usize, masked: &[Masked], out: &mut Vec<u8>) {
        if self.text == Text::Json {
            out.push(if self.base.messages + start == 0 { b'[' } else { b',' });
        }
        if start >= end {
            return;
        }
        let messages = &self.outline.messages;
        let span = Span { start: messages[start].span.start, end: messages[end - 1].span.end };
        if self.text == Text::Json {
            return self.look(policy, |ground| splice_stretch(&self.data, ground, span, masked, out));
        }
        let placeholder = Placeholder::of(policy);
        let mut at = span.start;
        for one in masked {
            let result = one.result as usize;
            let value = self.outline.results[result].value;
            out.extend_from_slice(&self.data[at..value.start]);
            placeholder.write(&facts(&self.outline, &self.pairs.pairs, Some(&self.turns), result), out);
            at = value.end;
        }
        out.extend_from_slice(&self.data[at..span.end]);
    }
}

impl Text {
    fn source(self, data: &[u8]) -> Box<dyn Source + '_> {
        match self {
            Text::Json => Box::new(Bytes(data)),
            Text::Turns => Box::new(Observations(data)),
        }
    }
}

/// Writes a turn with this in the place of its observation.
pub fn write_turn(number: usize, (reasoning, action, observation): Texts, out: &mut Vec<u8>) {
    let number = number.to_string();
    let parts = [number.as_bytes(), reasoning, action, observation];
    for (frame, part) in FRAME.iter().zip(parts) {
        out.extend_from_slice(frame);
        out.extend_from_slice(part);
    }
    out.push(b'\n');
}

/// A result whose observation is this text.
pub fn result_of(text: &[u8], value: Span, message: u32) -> ToolResult {
    let observation = value.of(text);
    ToolResult {
        id: None,
        value,
        chars: count_chars(observation),
        newlines: memchr_iter(b'\n', observation).count(),
        message,
        block: 0,
        images: 0,
        first_piece: 0,
        pieces: 0,
        first_byte: 0,
        is_error: false,
        frame: Frame::Text,
        may_hold_dispatch: false,
    }
}

/// The observations of turns, by the places of their text. No dispatch block is read in them.
pub struct Observations<'a>(pub &'a [u8]);

impl Source for Observations<'_> {
    fn observation(&self, outline: &Outline, result: usize) -> Vec<u8> {
        outline.results[result].value.of(self.0).to_vec()
    }

    fn observation_begins(&self, outline: &Outline, result: usize, prefix: &[u8]) -> bool {
        outline.results[result].value.of(self.0).starts_with(prefix)
    }

    fn observation_may_hold_dispatch(&self, _: &Outline, _: usize) -> bool {
        false
    }

    fn pieces(&self, _: &Outline, _: usize) -> Vec<Vec<u8>> {
        vec![]
    }

    fn has_tag(&self, _: &Outline, _: usize, _: &str) -> bool {
        false
    }
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}
