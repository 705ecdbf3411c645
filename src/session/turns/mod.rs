//! Sessions of turns: tokens of their requests, and when a summary is due, by the number of turns or by prices. A turn is two
//! messages, the agent's and one with its observation, of which only facts are known: the texts stay with the caller.

mod messages;
pub mod state;
mod stored;

pub use state::{Figures, RequestTokens, Row, TurnTokens};

use crate::placeholder::Placeholder;
use crate::plan::{Fold, Masked, Move, facts};
use crate::policy::{Boundary, Due, Policy};
use crate::session::log::TextFormat;
use crate::session::{Failure, Result, Session};
use crate::store::Store;
use crate::text::{count_chars, count_words};
use messages::newlines_of;
use state::{EvictedTurn, TurnState};
use stored::stored_requests;

impl Session {
    /// An empty session of turns, which is never rewound.
    #[must_use]
    pub fn of_turns(policy: Policy) -> Self {
        let mut session = Session::new(policy, 0, TextFormat::Facts);
        session.log.fold = Fold::default();
        session
    }

    /// How many turns were added.
    #[must_use]
    pub fn turn_count(&self) -> usize {
        self.log.end() / 2
    }

    /// How many of the first turns were evicted.
    #[must_use]
    pub fn evicted_turns(&self) -> usize {
        self.log.base.messages / 2
    }

    /// Appends a turn after making the request for it: its text in a context without the observation, and that. Tokens are words if
    /// they are not given.
    pub fn add_turn(&mut self, own: &[u8], observation: &[u8], tokens: Option<TurnTokens>) {
        self.request();
        let tokens = tokens.unwrap_or_else(|| TurnTokens {
            own: count_words(own),
            observation: count_words(observation),
            masked: self.masked_text(observation).map_or(0, |text| count_words(&text)),
        });
        let TurnState { figures, sums, requests, .. } = &mut self.turns;
        let all = tokens.own + tokens.observation;
        figures.observation_tokens += tokens.observation;
        (figures.tokens.raw, figures.tokens.sent) = (figures.tokens.raw + all, figures.tokens.sent + all);
        if let Some(request) = requests.last() {
            (sums.raw, sums.sent) = (sums.raw + request.raw, sums.sent + request.sent);
        }
        let sizes = (count_chars(observation), newlines_of(observation));
        self.log.push_turn(&self.policy, count_chars(own), sizes, tokens);
        self.log.keep_placeholder(&self.policy, observation);
    }

    /// Makes the request for the next turn, if it is not made yet.
    pub(in crate::session) fn request(&mut self) {
        if self.turns.requests.len() > self.log.len() / 2 {
            return;
        }
        self.grow_fold();
        let end = self.log.len();
        let masked = self.log.with_fold(&self.policy, |context, fold| fold.request(context, end, true));
        self.count_masked(&masked);
        self.turns.requests.push(self.turns.figures.tokens);
    }

    /// Adds all turns to the boundary's rule; those in the summary are not in the view, whatever is masked of them.
    fn grow_fold(&mut self) {
        let (end, shown) = (self.log.len(), 2 * self.first_shown());
        let summarized = self.turns.first > 0 && self.keeps_ledger();
        let masked = self.log.with_fold(&self.policy, |context, fold| {
            fold.grow(context, end);
            if summarized { fold.mask_before(context, shown) } else { vec![] }
        });
        self.count_masked(&masked);
        if summarized {
            let chars = self.log.fold.chars_before(end) - self.shown_chars(self.turn_count());
            self.log.fold.replace(chars, self.turns.summary_chars);
        }
    }

    /// Whether the rule of the boundary reads what requests are charged.
    fn keeps_ledger(&self) -> bool {
        matches!(self.policy.boundary, Boundary::BreakEven { .. })
    }

    fn count_masked(&mut self, masked: &[Masked]) {
        let first_shown = self.first_shown();
        for one in masked {
            let turn = one.result as usize;
            let tokens = self.log.tokens(turn);
            let figures = &mut self.turns.figures;
            figures.masked_turns += 1;
            figures.masked_tokens += tokens.observation;
            figures.placeholder_tokens += tokens.masked;
            if turn >= first_shown {
                // Numbers of a snapshot and its rows are untrusted, so this could overflow.
                figures.tokens.sent = figures.tokens.sent.saturating_sub(tokens.observation) + tokens.masked;
            }
        }
    }

    /// How many of the first turns to summarize before the next request; None if no summary is due, or one failed too
    /// recently. To be called after each turn.
    pub fn summary_due(&mut self) -> Option<usize> {
        let turns = self.turn_count();
        if self.turns.judged < turns {
            self.turns.judged = turns;
            self.turns.due = self.judge().unwrap_or(0);
        }
        Some(self.turns.due).filter(|due| *due > 0 && self.attempts().may_ask(turns, 0, 0))
    }

    /// Records that the due summary failed.
    pub fn summary_failed(&mut self) {
        self.fail(self.turn_count(), 0);
    }

    fn judge(&mut self) -> Option<usize> {
        let (rules, first) = (self.policy.summaries?, self.turns.first);
        let wanted = rules.wanted(self.turn_count()).filter(|wanted| *wanted > first)?;
        let Some(model) = rules.model.filter(|_| rules.due == Due::BreakEven) else { return Some(wanted) };
        let replaced = self.replaced_chars(wanted);
        if model.summary_chars >= replaced {
            return None;
        }
        let waste = self.turns.waste.saturating_add(replaced - model.summary_chars);
        // The turns of the previous request (all but the last) that stay are written to the cache again after the summary.
        let before = self.turn_count() - 1;
        let stays = self.shown_chars(before.max(wanted)) - self.shown_chars(wanted);
        let call = (self.given_chars(wanted), model.summary_chars);
        self.turns.waste = waste;
        let end = self.log.len();
        let chars = self.shown_chars(self.turn_count()) - self.shown_chars(wanted) + model.summary_chars;
        let pays = rules.pays(waste, model.summary_chars + stays, call, || {
            let fold = &self.log.fold;
            self.log.with_context(&self.policy, |context| fold.permits_summary(context, end, chars, call))
        });
        pays.then_some(wanted)
    }

    /// Characters that a model is given for a summary of this many turns.
    fn given_chars(&self, until: usize) -> usize {
        let here = 2 * self.first_shown()..2 * until.saturating_sub(self.evicted_turns());
        let here: usize = here.map(|message| self.log.outline.chars_of(message, 0)).sum();
        let evicted: usize = self.evicted_until(until).iter().map(|turn| turn.raw_chars).sum();
        let prompt = self.policy.summaries.and_then(|rules| rules.model).map_or(0, |model| model.prompt_chars);
        here + evicted + self.turns.summary_chars + prompt
    }

    /// Characters of the context that a summary of this many turns replaces, as rendered in the previous request.
    pub fn replaced_chars(&mut self, until: usize) -> usize {
        self.grow_fold();
        self.turns.summary_chars + self.shown_chars(until)
    }

    /// Characters of the turns after the summary, up to one of them, as far as the fold has grown.
    fn shown_chars(&self, until: usize) -> usize {
        let evicted: usize = self.evicted_until(until).iter().map(|turn| turn.shown_chars).sum();
        let (fold, end) = (&self.log.fold, 2 * until.saturating_sub(self.evicted_turns()));
        evicted + fold.chars_before(end) - fold.chars_before(end.min(2 * self.first_shown()))
    }

    /// The evicted turns after the summary, up to one of them.
    fn evicted_until(&self, until: usize) -> &[EvictedTurn] {
        let TurnState { evicted, first, .. } = &self.turns;
        &evicted[..evicted.len().min(until.saturating_sub(*first))]
    }

    /// Replaces the turns up to this one, from 1, by a summary of this many characters and tokens. Everything outside the window
    /// is masked now, because the prompt cache is invalidated anyway.
    pub fn summarize_through(&mut self, turn: usize, chars: usize, tokens: usize) {
        let turn = turn.min(self.turn_count());
        self.request();
        let (end, given) = (self.log.len(), self.given_chars(turn));
        let masked = self.log.with_fold(&self.policy, |context, fold| {
            fold.grow(context, end);
            fold.advance(context)
        });
        self.count_masked(&masked);
        let summarized = turn.saturating_sub(self.turns.first);
        let evicted = &mut self.turns.evicted;
        evicted.drain(..summarized.min(evicted.len()));
        self.turns.first += summarized;
        (self.turns.summary_chars, self.turns.due, self.turns.waste) = (chars, 0, 0);
        if self.keeps_ledger() {
            let view = chars.saturating_add(self.shown_chars(self.turn_count()));
            self.log.fold.pay_summary(self.policy.cache, view, (given, chars));
        }
        self.succeed();
        let evicted = self.turns.evicted.iter().map(|turn| turn.shown_tokens);
        let sent = tokens + evicted.sum::<usize>() + self.shown_tokens();
        self.turns.figures.tokens.sent = sent;
        if let Some(request) = self.turns.requests.last_mut() {
            request.sent = sent;
        }
    }

    fn shown_tokens(&self) -> usize {
        let masked = &self.log.fold.masked;
        let is_masked = |turn: usize| masked.binary_search_by_key(&(turn as u32), |one| one.result).is_ok();
        let shown = |turn: usize| {
            let TurnTokens { own, observation, masked } = self.log.tokens(turn);
            own + if is_masked(turn) { masked } else { observation }
        };
        (self.first_shown()..self.log.len() / 2).map(shown).sum()
    }

    /// The first turn in memory that is in no summary.
    pub(in crate::session) fn first_shown(&self) -> usize {
        self.turns.first.saturating_sub(self.evicted_turns())
    }

    /// How many turns are replaced by a summary.
    #[must_use]
    pub fn summarized_turns(&self) -> usize {
        self.turns.first
    }

    /// The turns in memory, from 1, that the next request masks, with their placeholders; all after the first `from` ones.
    pub fn masked_turns(&mut self, from: usize) -> Vec<(usize, Vec<u8>)> {
        self.request();
        let (log, placeholder) = (&self.log, Placeholder::of(&self.policy));
        let shown = |one: &Masked| {
            let (turn, mut text) = (one.result as usize, vec![]);
            placeholder.write(&facts(&log.outline, &log.pairs.pairs, Some(&log.turns), turn), &mut text);
            (self.evicted_turns() + turn + 1, text)
        };
        log.fold.masked.get(from..).unwrap_or_default().iter().map(shown).collect()
    }

    /// The moves of the boundary since this was called last.
    pub fn new_turn_moves(&mut self) -> Vec<Move> {
        let moves = &self.log.fold.moves;
        let known = core::mem::replace(&mut self.known_moves, moves.len());
        moves[known..].to_vec()
    }

    /// Figures of the next request: the masked turns, and how much that saves.
    pub fn figures(&mut self) -> Figures {
        self.request();
        self.turns.figures
    }

    /// The requests before the turns after the first `start` ones, up to that after turn `end`.
    ///
    /// # Errors
    /// Those of the store, which has the requests before evicted turns.
    pub fn requests(&mut self, start: usize, end: usize, store: Option<&mut Store>) -> Result<Vec<RequestTokens>> {
        self.request();
        let evicted = self.evicted_turns();
        let mut requests = vec![];
        if start < evicted {
            requests = stored_requests(store.ok_or(Failure::Closed)?, start, end.min(evicted))?;
        }
        let here = self.turns.requests.iter().take(end.saturating_sub(evicted));
        requests.extend(here.skip(start.saturating_sub(evicted)));
        Ok(requests)
    }

    /// The sum of all requests but the next one.
    #[must_use]
    pub fn sums(&self) -> RequestTokens {
        self.turns.sums
    }
}
