//! Turns -> text, for the managers that think in turns: (reasoning, action, observation). A turn is written out once,
//! when it comes, and once more when it is masked; what is masked for good is handed out once, as a chunk.
//!
//! Which turns are masked is decided where it is for messages: a turn is two of them in an Outline, one of the agent
//! and one that holds its observation, and the boundary is the same fold over the requests.
//!
//! Where the turns are stored elsewhere too, those that are settled can be let go ([`checkpoint`]).

mod checkpoint;

pub use checkpoint::{Checkpoint, Row};

use crate::outline::{Message, Outline, Role, Span, ToolResult};
use crate::pairs::GrowingPairs;
use crate::placeholder::{Facts, Placeholder};
use crate::plan::{Fold, Ground, Masked, facts};
use crate::policy::Policy;
use crate::source::Source;
use crate::text::{count_chars, count_words};
use crate::turns::Turns;
use memchr::memchr_iter;

/// A chunk has at least so many bytes: so many that few of them are joined, so few that what is open is soon written.
const CHUNK_BYTES: usize = 4 << 10;

/// What stands in a context before the number of a turn, its reasoning, its action and its observation.
const FRAME: [&[u8]; 4] = [b"\n\nTurn ", b":\nReasoning: ", b"\nAction: ", b"\nObservation: "];
/// Its words: "Turn", the number, and three labels.
const FRAME_WORDS: usize = 5;

/// See the module.
#[derive(Debug)]
pub struct TurnLog {
    policy: Policy,
    /// How many of the first turns were let go. They are counted in every number of a turn, and in no index.
    let_go: usize,
    /// Of these, the ones that no summary stands for; empty where none ever will.
    gone: Vec<Gone>,
    /// The turns as a context shows them unmasked, one behind the other.
    text: Vec<u8>,
    turns: Vec<Turn>,
    outline: Outline,
    pairs: GrowingPairs,
    runs: Turns,
    fold: Fold,
    /// Turns before this one stand in a summary, which has so many characters.
    first: usize,
    summary_chars: usize,
    /// How many turns the summary is to stand for that is due, as it was judged after so many turns; and characters
    /// that requests since the last summary sent without need.
    due: Option<usize>,
    judged: usize,
    waste: usize,
    /// Where each chunk that is done ends, and how many of them were handed out.
    chunk_ends: Vec<usize>,
    figures: Figures,
    /// What each request sent: the first before the first turn, or behind the last checkpoint, after so many turns.
    checked: usize,
    requests: Vec<Request>,
    /// All requests that a turn answered, together.
    sums: Request,
}

/// What is still asked of a turn that was let go.
#[derive(Debug, Clone, Copy)]
struct Gone {
    raw_chars: usize,
    shown_chars: usize,
    shown_tokens: usize,
}

#[derive(Debug)]
struct Turn {
    start: usize,
    reasoning: Span,
    action: Span,
    observation: Span,
    end: usize,
    tokens: TurnTokens,
    is_masked: bool,
}

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnTokens {
    /// Without its observation.
    pub own: usize,
    /// Of its observation.
    pub observation: usize,
    /// Of what masking puts in the place of that.
    pub masked: usize,
}

/// What a request sent, beside its prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Request {
    /// Tokens of all turns before it, unmasked.
    pub raw_tokens: usize,
    /// Tokens that it sent.
    pub sent_tokens: usize,
}

/// What is masked, and what that saves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Turns that are masked, also those in a summary.
    pub masked_turns: usize,
    /// Tokens of all observations.
    pub observation_tokens: usize,
    /// Tokens of those that are masked.
    pub masked_tokens: usize,
    /// Tokens of what stands in their place.
    pub placeholder_tokens: usize,
    /// Tokens of all turns.
    pub raw_tokens: usize,
    /// Tokens of a context: of the summary, if there is one, and of the turns behind it.
    pub sent_tokens: usize,
}

/// A turn as it was added: reasoning, action, observation.
pub type Texts<'a> = (&'a [u8], &'a [u8], &'a [u8]);

impl TurnLog {
    /// An empty one. The policy has a window in results.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        TurnLog {
            policy,
            let_go: 0,
            gone: vec![],
            text: vec![],
            turns: vec![],
            outline: Outline::default(),
            pairs: GrowingPairs::default(),
            runs: Turns::default(),
            fold: Fold::default(),
            first: 0,
            summary_chars: 0,
            due: None,
            judged: 0,
            waste: 0,
            chunk_ends: vec![],
            figures: Figures::default(),
            checked: 0,
            requests: vec![],
            sums: Request::default(),
        }
    }

    /// How many turns there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.let_go + self.turns.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What masking would put in the place of this observation, if it came now; None where it stays.
    #[must_use]
    pub fn masked_text(&self, observation: &[u8]) -> Option<Vec<u8>> {
        let result = result_of(observation, Span { start: 0, end: observation.len() }, 0);
        let facts = Facts { chars: result.chars, newlines: result.newlines, turn: self.len() + 1, ..Facts::default() };
        let mut alone = Outline::default();
        alone.results.push(result);
        let placeholder = Placeholder::of(&self.policy);
        let (form, _) = placeholder.form(&alone, &Observations(observation), 0, &facts);
        placeholder.render(&form, &facts, Vec::new)
    }

    /// The next turn comes; the request for it was made before. Its tokens are words, where they are not given.
    pub fn add(&mut self, (reasoning, action, observation): Texts, tokens: Option<TurnTokens>) {
        self.request();
        let tokens = tokens.unwrap_or_else(|| TurnTokens {
            own: FRAME_WORDS + count_words(reasoning) + count_words(action),
            observation: count_words(observation),
            masked: self.masked_text(observation).map_or(0, |text| count_words(&text)),
        });
        self.figures.observation_tokens += tokens.observation;
        self.figures.raw_tokens += tokens.own + tokens.observation;
        self.figures.sent_tokens += tokens.own + tokens.observation;
        if let Some(request) = self.requests.last() {
            self.sums.raw_tokens += request.raw_tokens;
            self.sums.sent_tokens += request.sent_tokens;
        }
        self.push((reasoning, action, observation), tokens);
    }

    /// Writes a turn out behind the last one.
    fn push(&mut self, (reasoning, action, observation): Texts, tokens: TurnTokens) {
        let start = self.text.len();
        let number = (self.len() + 1).to_string();
        let [before, of_reasoning, of_action, of_observation] = FRAME;
        for part in [before, number.as_bytes(), of_reasoning] {
            self.keep(part);
        }
        let reasoning = self.keep(reasoning);
        self.keep(of_action);
        let action = self.keep(action);
        self.keep(of_observation);
        let observation = self.keep(observation);
        self.text.push(b'\n');
        self.outline_turn(start, observation);
        let end = self.text.len();
        self.turns.push(Turn { start, reasoning, action, observation, end, tokens, is_masked: false });
    }

    fn keep(&mut self, text: &[u8]) -> Span {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        Span { start, end: self.text.len() }
    }

    /// The turn whose text begins here: a message of the agent, and one that holds its observation.
    fn outline_turn(&mut self, start: usize, value: Span) {
        let first_result = self.outline.results.len() as u32;
        let result = result_of(&self.text, value, self.outline.messages.len() as u32 + 1);
        let chars = count_chars(&self.text[start..]) - result.chars;
        let (role, is_agent_made) = (Role::Assistant, true);
        let of_agent = Message { chars, first_result, role, is_agent_made, ..Message::default() };
        self.runs.push(self.outline.messages.len(), is_agent_made);
        self.outline.messages.push(of_agent);
        self.pairs.push(&self.outline);
        self.outline.messages.push(Message { chars: result.chars, first_result, ..Message::default() });
        self.outline.results.push(result);
        self.pairs.push(&self.outline);
    }

    /// The request for the next turn is made, if it was not yet.
    fn request(&mut self) {
        if self.is_requested() {
            return;
        }
        let (end, is_now) = (self.outline.messages.len(), true);
        let masked = self.with_rules(|ground, fold| fold.request(ground, end, is_now));
        self.mask(&masked);
        let Figures { raw_tokens, sent_tokens, .. } = self.figures;
        self.requests.push(Request { raw_tokens, sent_tokens });
    }

    fn is_requested(&self) -> bool {
        self.requests.len() > self.len() - self.checked
    }

    fn with_rules<T>(&mut self, rule: impl FnOnce(Ground, &mut Fold) -> T) -> T {
        let TurnLog { policy, text, outline, pairs, runs, fold, .. } = self;
        let source = Observations(text);
        rule(Ground { outline, source: &source, policy, costs: None, pairs: &pairs.pairs, turns: runs }, fold)
    }

    fn mask(&mut self, masked: &[Masked]) {
        let first_shown = self.first_shown();
        for one in masked {
            let place = one.result as usize;
            let turn = &mut self.turns[place];
            turn.is_masked = true;
            self.figures.masked_turns += 1;
            self.figures.masked_tokens += turn.tokens.observation;
            self.figures.placeholder_tokens += turn.tokens.masked;
            if place >= first_shown {
                self.figures.sent_tokens = self.figures.sent_tokens - turn.tokens.observation + turn.tokens.masked;
            }
        }
    }

    /// How many turns, from the first on, the summary is to stand for that is due before the next request; None where
    /// none is. Asked after each turn.
    pub fn summary_due(&mut self) -> Option<usize> {
        if self.judged < self.len() {
            self.judged = self.len();
            self.due = self.judge();
        }
        self.due
    }

    fn judge(&mut self) -> Option<usize> {
        let rules = self.policy.summaries?;
        let wanted = rules.wanted(self.len()).filter(|wanted| *wanted > self.first)?;
        let Some(model) = rules.model else { return Some(wanted) };
        let end = self.outline.messages.len();
        self.with_rules(|ground, fold| fold.grow(ground, end));
        let gone = |until: usize| &self.gone[..self.gone.len().min(until - self.first)];
        let here = 2 * self.first_shown();
        let end_of = |until: usize| 2 * until.saturating_sub(self.let_go);
        // Characters of the turns from the summary on, up to one of them.
        let shown = |until: usize| {
            let gone: usize = gone(until).iter().map(|turn| turn.shown_chars).sum();
            gone + self.fold.chars_before(end_of(until)) - self.fold.chars_before(here.min(end_of(until)))
        };
        let replaced = self.summary_chars + shown(wanted);
        if model.summary_chars >= replaced {
            return None;
        }
        let raw = (here..end_of(wanted)).map(|message| self.outline.chars_of(message, 0)).sum::<usize>()
            + gone(wanted).iter().map(|turn| turn.raw_chars).sum::<usize>();
        self.waste = self.waste.saturating_add(replaced - model.summary_chars);
        // Of what the request before had sent, all turns but the last, what stays is written again behind the summary.
        let before = self.len() - 1;
        let stays = shown(before.max(wanted)) - shown(wanted);
        let call = (raw + self.summary_chars + model.prompt_chars, model.summary_chars);
        rules.pays(self.waste, model.summary_chars + stays, call).then_some(wanted)
    }

    /// A summary of so many characters and tokens stands for the turns up to this one, counted from 1. What is older
    /// than the window is masked now: the context is written anew in any case.
    pub fn summarize_through(&mut self, turn: usize, chars: usize, tokens: usize) {
        self.request();
        let end = self.outline.messages.len();
        let masked = self.with_rules(|ground, fold| {
            fold.grow(ground, end);
            fold.advance(ground)
        });
        self.mask(&masked);
        let summarized = turn.min(self.len()).saturating_sub(self.first);
        self.gone.drain(..summarized.min(self.gone.len()));
        (self.first, self.summary_chars) = (self.first + summarized, chars);
        (self.due, self.waste) = (None, 0);
        self.chunk_ends.clear();
        let gone = self.gone.iter().map(|turn| turn.shown_tokens);
        let shown = self.turns[self.first_shown()..].iter().map(Turn::sent_tokens);
        self.figures.sent_tokens = tokens + gone.chain(shown).sum::<usize>();
        // The request for the next turn sends the summary.
        if let Some(request) = self.requests.last_mut() {
            request.sent_tokens = self.figures.sent_tokens;
        }
    }

    /// The first turn that is here, and in no summary.
    fn first_shown(&self) -> usize {
        self.first.saturating_sub(self.let_go)
    }

    /// How many turns a summary stands for, and how many of the first turns were let go.
    #[must_use]
    pub fn ends(&self) -> (usize, usize) {
        (self.first, self.let_go)
    }

    /// The turns that are here, as the context of the next request shows them: how many of the chunks that were handed out still
    /// stand, those that follow, and what is open yet.
    pub fn chunks(&mut self) -> (usize, Vec<Vec<u8>>, Vec<u8>) {
        self.request();
        let (stand, mut done, mut open) = (self.chunk_ends.len(), vec![], vec![]);
        let start = self.chunk_ends.last().copied().unwrap_or(self.first_shown());
        // What comes before the boundary is masked for good, or stays for good.
        let boundary = self.fold.boundary;
        let mut raw = Span::default();
        for (place, turn) in self.turns.iter().enumerate().skip(start) {
            if turn.is_masked {
                open.extend_from_slice(raw.of(&self.text));
                open.extend_from_slice(&self.text[turn.start..turn.observation.start]);
                self.write_placeholder(place, &mut open);
                raw = Span { start: turn.observation.end, end: turn.end };
            } else if raw.end == turn.start {
                raw.end = turn.end;
            } else {
                open.extend_from_slice(raw.of(&self.text));
                raw = Span { start: turn.start, end: turn.end };
            }
            if place < boundary && open.len() + (raw.end - raw.start) >= CHUNK_BYTES {
                open.extend_from_slice(raw.of(&self.text));
                raw = Span::default();
                done.push(core::mem::take(&mut open));
                self.chunk_ends.push(place + 1);
            }
        }
        open.extend_from_slice(raw.of(&self.text));
        (stand, done, open)
    }

    fn write_placeholder(&self, turn: usize, out: &mut Vec<u8>) {
        let facts = facts(&self.outline, &self.pairs.pairs, Some(&self.runs), turn);
        Placeholder::of(&self.policy).write(&facts, out);
    }

    /// The turns here that the context of the next request masks, from 1, and what stands there, from one of them on.
    pub fn masked(&mut self, from: usize) -> Vec<(usize, Vec<u8>)> {
        self.request();
        let shown = |one: &Masked| {
            let (turn, mut text) = (one.result as usize, vec![]);
            self.write_placeholder(turn, &mut text);
            (self.let_go + turn + 1, text)
        };
        self.fold.masked.get(from..).unwrap_or_default().iter().map(shown).collect()
    }

    /// A turn as it was added, from 1; None where it is not here.
    #[must_use]
    pub fn turn(&self, turn: usize) -> Option<Texts<'_>> {
        let Turn { reasoning, action, observation, .. } = self.turns.get(turn.checked_sub(self.let_go + 1)?)?;
        Some((reasoning.of(&self.text), action.of(&self.text), observation.of(&self.text)))
    }

    /// What the context of the next request masks, and what that saves.
    pub fn figures(&mut self) -> Figures {
        self.request();
        self.figures
    }

    /// What each request sent, the next one included; the first came before the first turn, or, where turns were let
    /// go, behind the last checkpoint.
    pub fn requests(&mut self) -> &[Request] {
        self.request();
        &self.requests
    }

    /// The sums of all requests but the next one.
    #[must_use]
    pub fn sums(&self) -> Request {
        self.sums
    }
}

impl Turn {
    fn sent_tokens(&self) -> usize {
        let TurnTokens { own, observation, masked } = self.tokens;
        own + if self.is_masked { masked } else { observation }
    }
}

/// A result whose observation stands here.
fn result_of(text: &[u8], value: Span, message: u32) -> ToolResult {
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
        may_hold_dispatch: false,
    }
}

/// The observations of turns, by the places of their text. What is dispatched is none of theirs.
struct Observations<'a>(&'a [u8]);

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
