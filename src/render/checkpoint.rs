//! What is known of a log at a request, beside the texts of its turns: enough to go on from there with those that are
//! not settled, after a restart, or to let go of all others. Both go the same way.

use super::{FRAME, Figures, Gone, Observations, Request, Texts, TurnLog, TurnTokens};
use crate::placeholder::{Facts, Form, Placeholder};
use crate::plan::{Fold, FoldState, facts};
use crate::policy::Policy;
use crate::turns::Turns;

/// A log at a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// How many turns there were.
    pub turns: usize,
    /// How many of the first were settled: no later request shows them otherwise.
    pub settled: usize,
    first: usize,
    summary_chars: usize,
    due: usize,
    judged: usize,
    waste: usize,
    fold_waste: usize,
    figures: Figures,
    sums: Request,
}

impl Checkpoint {
    /// The names of its numbers.
    pub const NAMES: [&str; 16] = [
        "turns",
        "settled",
        "summarized",
        "summary_chars",
        "summary_due",
        "summary_judged",
        "summary_waste",
        "boundary_waste",
        "masked_turns",
        "observation_tokens",
        "masked_tokens",
        "placeholder_tokens",
        "raw_tokens",
        "sent_tokens",
        "raw_tokens_of_requests",
        "sent_tokens_of_requests",
    ];

    /// Its numbers, in the order of their names.
    #[must_use]
    pub fn numbers(&self) -> [usize; 16] {
        let Checkpoint { turns, settled, first, summary_chars, due, judged, waste, fold_waste, .. } = *self;
        let Figures { masked_turns, observation_tokens, masked_tokens, placeholder_tokens, raw_tokens, sent_tokens } =
            self.figures;
        let Request { raw_tokens: raw_sum, sent_tokens: sent_sum } = self.sums;
        [
            turns,
            settled,
            first,
            summary_chars,
            due,
            judged,
            waste,
            fold_waste,
            masked_turns,
            observation_tokens,
            masked_tokens,
            placeholder_tokens,
            raw_tokens,
            sent_tokens,
            raw_sum,
            sent_sum,
        ]
    }

    /// The checkpoint of these numbers.
    #[must_use]
    pub fn of(numbers: [usize; 16]) -> Self {
        let [turns, settled, first, summary_chars, due, judged, waste, fold_waste, rest @ ..] = numbers;
        let [masked_turns, observation_tokens, masked_tokens, placeholder_tokens, rest @ ..] = rest;
        let [raw_tokens, sent_tokens, raw_sum, sent_sum] = rest;
        let sums = Request { raw_tokens: raw_sum, sent_tokens: sent_sum };
        let figures =
            Figures { masked_turns, observation_tokens, masked_tokens, placeholder_tokens, raw_tokens, sent_tokens };
        Checkpoint { turns, settled, first, summary_chars, due, judged, waste, fold_waste, figures, sums }
    }
}

/// What is known of a turn beside its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// What the request before it sent.
    pub request: Request,
    /// Characters of the turn as a context shows it, without its observation.
    pub own_chars: usize,
    /// Characters of its observation, and line feeds in it.
    pub chars: usize,
    /// See `chars`.
    pub newlines: usize,
    /// Characters of what masking puts in the place of the observation; 0 where that stays.
    pub masked_chars: usize,
    /// Its tokens.
    pub tokens: TurnTokens,
}

const NUMBERS: usize = 9;

impl Row {
    /// How many bytes a row is written as.
    pub const BYTES: usize = 8 * NUMBERS;

    /// The row as bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let Row { request, own_chars, chars, newlines, masked_chars, tokens } = self;
        let Request { raw_tokens, sent_tokens } = request;
        let TurnTokens { own, observation, masked } = tokens;
        let numbers = [raw_tokens, sent_tokens, own_chars, chars, newlines, masked_chars, own, observation, masked];
        let mut bytes = [0; Self::BYTES];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&(*number as u64).to_le_bytes());
        }
        bytes
    }

    /// The rows that bytes hold; bytes behind the last whole one count for nothing.
    pub fn all(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        bytes.chunks_exact(Self::BYTES).map(|bytes| {
            let mut numbers = [0; NUMBERS];
            for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
                *number = u64::from_le_bytes(*bytes) as usize;
            }
            let [raw_tokens, sent_tokens, own_chars, chars, newlines, masked_chars, own, observation, masked] = numbers;
            let request = Request { raw_tokens, sent_tokens };
            Row { request, own_chars, chars, newlines, masked_chars, tokens: TurnTokens { own, observation, masked } }
        })
    }

    /// Whether the observation is shown though it is old.
    #[must_use]
    pub fn stays(&self) -> bool {
        self.masked_chars == 0
    }

    fn gone(&self) -> Gone {
        let TurnTokens { own, observation, masked } = self.tokens;
        Gone {
            raw_chars: self.own_chars.saturating_add(self.chars),
            shown_chars: self.own_chars.saturating_add(if self.stays() { self.chars } else { self.masked_chars }),
            shown_tokens: own.saturating_add(if self.stays() { observation } else { masked }),
        }
    }
}

impl TurnLog {
    /// The log at the next request.
    pub fn checkpoint(&mut self) -> Checkpoint {
        self.request();
        Checkpoint {
            turns: self.len(),
            settled: self.let_go + self.fold.settled(&self.policy),
            first: self.first,
            summary_chars: self.summary_chars,
            due: self.due.unwrap_or(0),
            judged: self.judged,
            waste: self.waste,
            fold_waste: self.fold.waste(),
            figures: self.figures,
            sums: self.sums,
        }
    }

    /// The rows of the turns that came since the last time that turns were let go.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let places = self.checked - self.let_go..self.turns.len();
        self.requests.iter().zip(places).map(|(request, place)| self.row(place, *request))
    }

    fn row(&self, place: usize, request: Request) -> Row {
        let facts = facts(&self.outline, &self.pairs.pairs, Some(&self.runs), place);
        let source = Observations(&self.text);
        let (form, after) = Placeholder::of(&self.policy).form(&self.outline, &source, place, &facts);
        Row {
            request,
            own_chars: self.outline.messages[2 * place].chars,
            chars: facts.chars,
            newlines: facts.newlines,
            masked_chars: if form == Form::Stay { 0 } else { after },
            tokens: self.turns[place].tokens,
        }
    }

    /// Lets go of the turns that are settled. The next request is made.
    pub fn forget(&mut self) {
        let checkpoint = self.checkpoint();
        let mut gone = core::mem::take(&mut self.gone);
        if self.policy.summaries.is_some() {
            let places = self.first_shown()..checkpoint.settled - self.let_go;
            gone.extend(places.map(|place| self.row(place, Request::default()).gone()));
        }
        let kept = &self.turns[checkpoint.settled - self.let_go..];
        let kept = kept.iter().map(|turn| {
            let texts = (turn.reasoning.of(&self.text), turn.action.of(&self.text), turn.observation.of(&self.text));
            (texts, turn.tokens)
        });
        *self = TurnLog::begun(self.policy.clone(), &checkpoint, gone, kept);
    }

    /// A log that goes on from a checkpoint: with its turns that were not settled, each with its row, and before these
    /// the rows of the settled ones that no summary stands for, where there are summaries.
    pub fn resumed<'a>(
        policy: Policy,
        checkpoint: &Checkpoint,
        rows: impl IntoIterator<Item = Row>,
        turns: impl IntoIterator<Item = Texts<'a>>,
    ) -> Self {
        let mut rows = rows.into_iter();
        let settled = checkpoint.settled.saturating_sub(checkpoint.first);
        let settled = if policy.summaries.is_some() { settled } else { 0 };
        let gone = rows.by_ref().take(settled).map(|row| row.gone()).collect();
        TurnLog::begun(policy, checkpoint, gone, turns.into_iter().zip(rows.map(|row| row.tokens)))
    }

    fn begun<'a>(
        policy: Policy,
        checkpoint: &Checkpoint,
        gone: Vec<Gone>,
        turns: impl IntoIterator<Item = (Texts<'a>, TurnTokens)>,
    ) -> Self {
        let Checkpoint { turns: checked, settled: let_go, first, summary_chars, due, judged, waste, .. } = *checkpoint;
        let runs = Turns::behind(let_go);
        let (due, figures, sums) = ((due > 0).then_some(due), checkpoint.figures, checkpoint.sums);
        let known = TurnLog { let_go, gone, runs, first, summary_chars, due, judged, waste, ..TurnLog::new(policy) };
        let mut log = TurnLog { figures, checked, sums, ..known };
        for (texts, tokens) in turns {
            log.push(texts, tokens);
        }
        log.fold = log.with_rules(|ground, _| {
            let before = ground.outline.messages.len();
            Fold::resumed(ground, &FoldState { waste: checkpoint.fold_waste, before, ..FoldState::default() })
        });
        let Figures { raw_tokens, sent_tokens, .. } = log.figures;
        log.requests.push(Request { raw_tokens, sent_tokens });
        log
    }

    /// Writes a settled turn of this row as a context shows it, and its observation, if that stays.
    pub fn write_settled(&self, turn: usize, row: &Row, (reasoning, action, observation): Texts, out: &mut Vec<u8>) {
        let number = turn.to_string();
        let [before, of_reasoning, of_action, of_observation] = FRAME;
        for part in [before, number.as_bytes(), of_reasoning, reasoning, of_action, action, of_observation] {
            out.extend_from_slice(part);
        }
        self.write_shown(turn, row, observation, out);
        out.push(b'\n');
    }

    /// Writes what a context shows as the observation of a settled turn of this row.
    pub fn write_shown(&self, turn: usize, row: &Row, observation: &[u8], out: &mut Vec<u8>) {
        if row.stays() {
            out.extend_from_slice(observation);
        } else {
            let facts = Facts { chars: row.chars, newlines: row.newlines, turn, ..Facts::default() };
            Placeholder::of(&self.policy).write(&facts, out);
        }
    }
}
