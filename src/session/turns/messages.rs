//! A turn as two messages of a log.

use super::state::TurnTokens;
use crate::outline::{Message, Outline, Role, Span, ToolResult};
use crate::placeholder::{ObservationFacts, Placeholder};
use crate::policy::Policy;
use crate::session::Session;
use crate::session::log::Log;
use crate::session::log::facts::{Known, KnownText, KnownTexts};
use crate::shape::Frame;
use crate::text::count_chars;
use memchr::memchr_iter;

/// The facts of an observation; it is never parsed for dispatch blocks.
fn result_of(chars: usize, newlines: usize, message: u32) -> ToolResult {
    ToolResult {
        id: None,
        name: None,
        value: Span { start: 0, end: 0 },
        chars,
        newlines: newlines as u32,
        message,
        block: 0,
        images: 0,
        first_piece: 0,
        pieces: 0,
        first_byte: 0,
        is_error: false,
        is_pinned: false,
        frame: Frame::Text,
        may_hold_dispatch: false,
    }
}

/// How many newlines a text has.
pub fn newlines_of(text: &[u8]) -> usize {
    memchr_iter(b'\n', text).count()
}

impl Log {
    /// Appends a turn as two messages, of so many characters, the second with so many newlines.
    pub fn push_turn(
        &mut self,
        policy: &Policy,
        own_chars: usize,
        (chars, newlines): (usize, usize),
        tokens: TurnTokens,
    ) {
        let (first_result, message) = (self.outline.results.len() as u32, self.len() as u32);
        let observation = Message { chars, first_result, ..Message::default() };
        let of_agent = Message { chars: own_chars, role: Role::Assistant, is_agent_made: true, ..observation };
        self.outline.messages.push(of_agent);
        self.admit(policy, &[]);
        self.outline.messages.push(observation);
        self.outline.results.push(result_of(chars, newlines, message + 1));
        self.admit(policy, &[]);
        let TurnTokens { own, observation, masked } = tokens;
        self.set_costs(policy, (own, vec![(observation, masked)]));
    }

    /// Keeps the last observation if it is a placeholder, which stays.
    pub fn keep_placeholder(&mut self, policy: &Policy, observation: &[u8]) {
        let result = self.outline.results.len() - 1;
        let texts = KnownTexts::from([(result as u32, KnownText::whole(observation.to_vec()))]);
        if Placeholder::of(policy).is_placeholder(&self.outline, &Known(&texts), result) {
            self.texts.extend(texts);
        }
    }

    /// The tokens of a turn in memory, from 0.
    pub fn tokens(&self, turn: usize) -> TurnTokens {
        let costs = self.costs.as_ref();
        let (observation, masked) = costs.map_or((0, 0), |costs| costs.observations[turn]);
        TurnTokens { own: costs.map_or(0, |costs| costs.messages[2 * turn]), observation, masked }
    }
}

impl Session {
    /// The placeholder of an observation, if it were added now; None where it stays raw.
    #[must_use]
    pub fn masked_text(&self, observation: &[u8]) -> Option<Vec<u8>> {
        let (chars, newlines, turn) = (count_chars(observation), newlines_of(observation), self.turn_count() + 1);
        let facts = ObservationFacts { chars, newlines, turn, ..ObservationFacts::default() };
        let mut alone = Outline::default();
        alone.results.push(result_of(chars, newlines, 0));
        let texts = KnownTexts::from([(0, KnownText::whole(observation.to_vec()))]);
        let placeholder = Placeholder::of(&self.policy);
        let (form, _) = placeholder.form(&alone, &Known(&texts), 0, &facts);
        placeholder.render(&form, &facts, Vec::new)
    }
}
