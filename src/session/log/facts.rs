//! Sessions of messages of which only facts are known: their text stays with its owner, who is asked for that of a result once
//! masking depends on it.

use super::Log;
use crate::dispatch::dispatch_blocks;
use crate::outline::{Call, Message, Outline, ToolResult, reserve};
use crate::placeholder::Placeholder;
use crate::plan::Move;
use crate::policy::Policy;
use crate::session::Session;
use crate::source::{OneText, Source};
use crate::text::clip;
use std::collections::HashMap;

/// The place of a result: its message, and its place among the results of that.
pub type ResultPlace = (usize, usize);

/// What must be kept of the text of a result.
#[derive(Debug, Clone)]
pub enum KnownText {
    /// All of it: it is a placeholder, or has dispatch blocks.
    Whole(Vec<u8>),
    /// What a cut keeps of it.
    Beginning(Vec<u8>),
}

/// The texts that are kept, by result.
pub type KnownTexts = HashMap<u32, KnownText>;

/// The kept texts as a source.
pub struct Known<'a>(pub &'a KnownTexts);

impl Source for Known<'_> {
    fn observation(&self, _: &Outline, result: usize) -> Vec<u8> {
        match self.0.get(&(result as u32)) {
            Some(KnownText::Whole(text) | KnownText::Beginning(text)) => text.clone(),
            None => vec![],
        }
    }

    fn observation_begins(&self, _: &Outline, result: usize, prefix: &[u8]) -> bool {
        matches!(self.0.get(&(result as u32)), Some(KnownText::Whole(text)) if text.starts_with(prefix))
    }

    fn observation_may_hold_dispatch(&self, outline: &Outline, result: usize) -> bool {
        outline.results[result].may_hold_dispatch
    }

    fn pieces(&self, _: &Outline, _: usize) -> Vec<Vec<u8>> {
        vec![]
    }

    fn has_tag(&self, _: &Outline, _: usize, _: &str) -> bool {
        false
    }
}

impl Log {
    /// Appends the messages of an outline.
    fn extend(&mut self, policy: &Policy, new: &Outline) {
        reserve(&mut self.outline.messages, new.messages.len());
        reserve(&mut self.outline.calls, new.calls.len());
        reserve(&mut self.outline.results, new.results.len());
        for message in 0..new.messages.len() {
            let outline = &mut self.outline;
            let place = outline.messages.len() as u32;
            outline.messages.push(Message {
                first_call: outline.calls.len() as u32,
                first_result: outline.results.len() as u32,
                first_piece: 0,
                ..new.messages[message]
            });
            for call in &new.calls[new.calls_of(message)] {
                let id = call.id.map(|id| outline.keep(new.text(id)));
                let name = call.name.map(|name| outline.intern(new.name(name)));
                outline.calls.push(Call { id, name, message: place, ..*call });
            }
            for result in &new.results[new.results_of(message)] {
                let id = result.id.map(|id| outline.keep(new.text(id)));
                let name = result.name.map(|name| outline.intern(new.name(name)));
                outline.results.push(ToolResult { id, name, message: place, pieces: 0, ..*result });
            }
            self.admit(policy, &[]);
        }
    }

    /// Keeps what is needed of the text of a result.
    fn know(&mut self, policy: &Policy, result: usize, text: Vec<u8>) {
        let has_dispatch = !dispatch_blocks(&text).is_empty();
        self.outline.results[result].may_hold_dispatch = has_dispatch;
        let is_kept = policy.keep_matching.fit(|beginning| text.starts_with(beginning), || text.clone());
        self.outline.results[result].is_pinned |= is_kept;
        let text = OneText(text);
        let known = if has_dispatch || Placeholder::of(policy).is_placeholder(&self.outline, &text, result) {
            KnownText::Whole(text.0)
        } else if let Some(max_chars) = policy.max_observation_chars {
            KnownText::Beginning(text.0[..clip(&text.0, max_chars)].to_vec())
        } else {
            return;
        };
        self.texts.insert(result as u32, known);
    }
}

impl Session {
    /// Another session that continues as this one would.
    #[must_use]
    pub fn fork(&self) -> Self {
        Session { is_changing: false, ..self.clone() } // a change copies it
    }

    /// Appends the messages of an outline. Texts of results that are not given are asked for by [`Session::texts_needed`].
    pub fn extend(&mut self, new: &Outline, texts: Vec<(usize, Vec<u8>)>) {
        let (messages, results) = (self.log.len(), self.log.outline.results.len());
        self.log.extend(&self.policy, new);
        for (result, text) in texts {
            self.log.know(&self.policy, results + result, text);
        }
        self.observations += new.results.len();
        self.view.is_current = false;
        self.unrequested.get_or_insert(messages);
    }

    /// The results that leave the window now, and of which the text decides how they are masked.
    #[must_use]
    pub fn texts_needed(&self) -> Vec<ResultPlace> {
        let needed = self.log.with_context(&self.policy, |context| self.log.fold.texts_needed(context));
        needed.into_iter().map(|result| self.place_of(result)).collect()
    }

    /// Gives the text of a result.
    pub fn give_text(&mut self, (message, place): ResultPlace, text: Vec<u8>) {
        let result = self.log.outline.results_before(message) + place;
        self.log.know(&self.policy, result, text);
    }

    /// Makes the requests before the runs that were appended.
    fn make_requests(&mut self) {
        let Some(first) = self.unrequested.take() else { return };
        let starts = &self.log.turns.starts;
        let starts = starts[starts.partition_point(|start| (*start as usize) < first)..].to_vec();
        for start in starts {
            self.settle_cold(start as usize);
            if self.policy.boundary.remembers() {
                let moved =
                    self.log.with_fold(&self.policy, |context, fold| fold.request(context, start as usize, false));
                self.commit_masks(&moved);
            }
        }
    }

    /// Makes the view of messages given as facts current.
    pub fn update_facts(&mut self) {
        self.make_requests();
        if !self.view.is_current {
            self.set_cold_now();
            self.update_masked();
            self.record_change();
        }
    }

    /// Characters of the messages.
    #[must_use]
    pub fn raw_chars(&self) -> usize {
        self.log.chars
    }

    /// How many moves the boundary made before the current request.
    #[must_use]
    pub fn settled_moves(&self) -> usize {
        self.shown_moves().0.len()
    }

    /// The moves in memory from this one on, with that of the current request.
    #[must_use]
    pub fn moves_from(&self, first: usize) -> Vec<Move> {
        let (moves, step) = self.shown_moves();
        moves.iter().copied().chain(step).skip(first).collect()
    }

    /// The place of an observation by its number, from 1.
    #[must_use]
    pub fn place(&self, number: usize) -> Option<ResultPlace> {
        let result = number.checked_sub(1).filter(|result| *result < self.log.outline.results.len())?;
        Some(self.place_of(result))
    }

    /// The place of the newest observation with this id.
    #[must_use]
    pub fn place_by_id(&self, id: &[u8]) -> Option<ResultPlace> {
        let outline = &self.log.outline;
        let is_it = |result: &ToolResult| result.id.is_some_and(|of_result| outline.text(of_result) == id);
        Some(self.place_of(outline.results.iter().rposition(is_it)?))
    }

    /// The place of a result in memory.
    pub(in crate::session) fn place_of(&self, result: usize) -> ResultPlace {
        let message = self.log.outline.results[result].message as usize;
        (self.log.base.messages + message, result - self.log.outline.results_before(message))
    }
}
