//! Inputs of the rules: a history, its facts, and the costs of its texts.

use super::masked::Masked;
use super::sent::SentViews;
use crate::fingerprint::Digest;
use crate::json::weight;
use crate::outline::{Message, Outline};
use crate::pairs::{Pairs, own_name};
use crate::placeholder::{Form, ObservationFacts, Placeholder};
use crate::policy::{Policy, Requests, Tokens, UNKNOWN_REQUESTS};
use crate::source::Source;
use crate::turns::Turns;
use std::collections::HashMap;

/// Costs of messages and observations, if those are not their characters.
#[derive(Debug, Default, Clone)]
pub struct Costs {
    /// Costs of the messages: without their observations and reasoning; of their reasoning.
    pub messages: Vec<(usize, usize)>,
    /// Costs of the observations, raw and masked.
    pub observations: Vec<(usize, usize)>,
    /// Costs of texts that were requested.
    pub texts: HashMap<Vec<u8>, usize>,
    /// How texts count that are weighed; None: by a function of the caller, who is asked for the costs of new ones.
    pub tokens: Option<Tokens>,
}

/// The state of the summary.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum SummaryInput {
    /// Not requested yet.
    #[default]
    NotAsked,
    /// Failed: plan without stage 2.
    Failed,
    /// The same, by an answer of a model that was not finished or empty.
    Unfinished,
    /// The decoded text, and its cost if that is not its characters.
    Given(Vec<u8>, Option<usize>),
    /// The decoded texts that are known, by their keys.
    Known(Vec<(u64, Vec<u8>)>),
}

/// Texts of summaries that the caller remembers, by the fingerprints of what they tell of.
pub trait Remembered: Sync {
    fn text(&self, told: Digest) -> Option<Vec<u8>>;
}

/// What is given with a history, besides its policy.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pub requests: &'a Requests,
    pub costs: Option<&'a Costs>,
    pub summary: &'a SummaryInput,
    pub remembered: Option<&'a dyn Remembered>,
    /// The noted views of earlier requests; None: each was reduced as this one is.
    pub sent: Option<&'a SentViews>,
}

impl Default for Given<'_> {
    fn default() -> Self {
        Given {
            requests: &UNKNOWN_REQUESTS,
            costs: None,
            summary: &SummaryInput::NotAsked,
            remembered: None,
            sent: None,
        }
    }
}

/// Texts whose costs are needed first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Uncounted(pub Vec<Vec<u8>>);

impl Costs {
    /// Whether the caller counts texts.
    pub(crate) fn are_given(&self) -> bool {
        self.tokens.is_none()
    }

    /// The cost of an observation: raw, and as masked or cut.
    pub(super) fn of(&self, masked: &Masked) -> (usize, usize) {
        let (raw, after) = self.observations[masked.result as usize];
        match &masked.form {
            Form::Clip(counted) => (raw, counted.cost),
            _ => (raw, after),
        }
    }

    /// The cost of a text; else it is needed.
    pub(super) fn of_text(&self, text: &[u8]) -> Result<usize, Uncounted> {
        match self.tokens {
            Some(tokens) => Ok(tokens.of(weight(text))),
            None => self.texts.get(text).copied().ok_or_else(|| Uncounted(vec![text.to_vec()])),
        }
    }

    /// The cost of a message with its observations, unmasked, and without its reasoning.
    pub(super) fn of_message(&self, outline: &Outline, message: usize) -> usize {
        let observations = outline.results_of(message).map(|result| self.observations[result].0);
        observations.fold(self.messages[message].0, usize::saturating_add)
    }

    /// The cost of a whole history, unmasked.
    pub(crate) fn total(&self) -> usize {
        let observations = self.observations.iter().map(|(raw, _)| *raw);
        let messages = self.messages.iter().map(|(own, reasoning)| own.saturating_add(*reasoning));
        messages.chain(observations).fold(0, usize::saturating_add)
    }
}

/// A result of a tool whose later results may refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Related {
    pub result: u32,
    /// The same for calls of one tool with the same arguments.
    pub key: u32,
    pub part: Part,
}

/// The part of a result among those of the same call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// It has the whole text.
    Whole,
    /// It refers to the last one that has the whole text.
    Reference,
    /// It has something else, to which nothing refers.
    Other,
}

/// Read-only inputs shared by all rules.
#[derive(Clone, Copy)]
pub(crate) struct PlanContext<'a> {
    pub outline: &'a Outline,
    pub source: &'a dyn Source,
    pub policy: &'a Policy,
    pub requests: &'a Requests,
    /// The placeholder of the parameters.
    pub placeholder: &'a Placeholder<'a>,
    /// Costs, if those are not characters.
    pub costs: Option<&'a Costs>,
    /// The pairs of the history.
    pub pairs: &'a Pairs,
    pub turns: &'a Turns,
    /// The results of tools that have references to earlier results, in order; none in a session.
    pub related: &'a [Related],
}

impl<'a> PlanContext<'a> {
    /// What rules need that depend on texts alone, and on no request.
    pub(crate) fn of_texts(
        outline: &'a Outline,
        source: &'a dyn Source,
        policy: &'a Policy,
        placeholder: &'a Placeholder<'a>,
        (pairs, turns): (&'a Pairs, &'a Turns),
    ) -> Self {
        let (requests, costs, related) = (&UNKNOWN_REQUESTS, None, &[]);
        PlanContext { outline, source, policy, requests, placeholder, costs, pairs, turns, related }
    }

    /// The budget of a request after this many messages.
    pub(super) fn max_cost_at(&self, messages: usize) -> Option<usize> {
        self.policy.max_cost_at(self.requests, messages)
    }

    /// The limit of a request after this many messages.
    pub(super) fn limit_at(&self, messages: usize) -> Option<usize> {
        self.policy.limit_at(self.requests, messages)
    }

    /// The turn of a result: that of its call, if the agent made that.
    pub(super) fn turn_of(&self, result: usize) -> usize {
        facts_of_pair(self.outline, self.pairs.call_of(result), |message| self.turns.at(message), result).turn
    }

    /// What the reasoning of a message costs, if it is sent.
    pub(super) fn reasoning_of(&self, message: usize) -> usize {
        let uncounted = || {
            let Message { reasoning, sealed, .. } = self.outline.messages[message];
            if self.policy.limit.counts_reasoning { reasoning + sealed } else { 0 }
        };
        self.costs.map_or_else(uncounted, |costs| costs.messages[message].1)
    }

    /// The cost of a cut text: its characters, or what it was counted.
    pub(super) fn text_cost(&self, chars: usize, text: impl FnOnce() -> Vec<u8>) -> usize {
        self.costs.map_or(chars, |costs| costs.of_text(&text()).unwrap_or(chars))
    }
}

/// Cost and characters of these messages with these of their observations masked, without reasoning.
pub(crate) fn view_cost<'a>(
    context: PlanContext,
    messages: impl Iterator<Item = usize> + Clone,
    masked: impl Iterator<Item = &'a Masked> + Clone,
) -> (usize, usize) {
    let PlanContext { outline, policy, costs, .. } = context;
    let raw = messages
        .clone()
        .fold(0, |sum: usize, message| sum.saturating_add(outline.chars_of(message, policy.text.image_chars)));
    let chars = masked.clone().fold(raw, |sum, masked| sum - masked.removed);
    let Some(costs) = costs else { return (chars, chars) };
    let raw = messages.fold(0, |sum: usize, message| sum.saturating_add(costs.of_message(outline, message)));
    let cost = masked.fold(raw, |sum, masked| {
        let (before, after) = costs.of(masked);
        (sum - before).saturating_add(after)
    });
    (cost, chars)
}

/// The values of a placeholder for an observation; `turns` if it names the turn.
pub fn facts<'a>(outline: &'a Outline, pairs: &Pairs, turns: Option<&Turns>, result: usize) -> ObservationFacts<'a> {
    facts_of_pair(outline, pairs.call_of(result), |message| turns.map_or(0, |turns| turns.at(message)), result)
}

/// [`facts`] of a result of this call; `turn_at` returns the turn of a message.
pub(crate) fn facts_of_pair(
    outline: &Outline,
    call: Option<usize>,
    turn_at: impl Fn(usize) -> usize,
    result: usize,
) -> ObservationFacts<'_> {
    let seen = &outline.results[result];
    let call = call.map(|call| &outline.calls[call]);
    let of_call = call.map(|call| call.message as usize).filter(|message| outline.messages[*message].is_agent_made);
    ObservationFacts {
        turn: turn_at(of_call.unwrap_or(seen.message as usize)),
        number: result + 1,
        tool: call.map_or_else(|| own_name(outline, result), |call| call.name).map_or(b"", |name| outline.name(name)),
        id: seen.id.map_or(b"", |id| outline.text(id)),
        ..sizes(outline, result)
    }
}

/// The values of an observation that are not of its call, and on which its form depends; the others are empty.
pub(super) fn sizes(outline: &Outline, result: usize) -> ObservationFacts<'_> {
    let seen = &outline.results[result];
    ObservationFacts {
        chars: seen.chars + outline.cleared_of(result..result + 1).iter().map(|(_, removed)| removed).sum::<usize>(),
        is_json: !seen.frame.holds_text(),
        newlines: seen.newlines as usize,
        images: seen.images as usize,
        ..ObservationFacts::default()
    }
}
