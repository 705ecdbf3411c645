//! Repairs of orphans, as steps.

use super::refused::{reasoning_alone, split_results};
use super::{Pairs, can_be_answered, lacks_id, open_from, shape_of};
use crate::outline::{Outline, Shape, ToolResult};
use crate::turns::Turns;
use std::collections::HashMap;

/// A step that repairs orphans, and what providers refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    DropMessage(usize),
    /// Drop one block of a message.
    DropBlock(usize, usize),
    /// Put a block, by its message and place, in a message, before this block. Another step drops it where it was.
    MoveBlock(usize, usize, (usize, usize)),
    /// Put a message before this one. Other steps drop both.
    MoveMessage(usize, usize),
    /// Answer a call in a message, before this block.
    AddBlock(usize, usize, usize),
    /// Answer calls in a new message before this one; only shapes with blocks have several in one.
    AddMessage(usize, Vec<usize>),
}

impl Repair {
    fn place(&self) -> (usize, usize, usize) {
        match self {
            Repair::AddMessage(before, _) | Repair::MoveMessage(before, _) => (*before, 0, 0),
            Repair::DropMessage(message) => (*message, 1, 0),
            Repair::MoveBlock(message, block, _) | Repair::AddBlock(message, block, _) => (*message, 1 + block, 0),
            Repair::DropBlock(message, block) => (*message, 1 + block, 1),
        }
    }
}

/// The steps that repair a history, by ascending place. Calls are given by number.
pub fn repairs(outline: &Outline) -> Vec<Repair> {
    let pairs = Pairs::of(outline);
    let turns = Turns::of(outline);
    let mut gone = Gone::of(outline, &pairs);
    let mut steps = vec![];
    gone.move_results(outline, &pairs, &turns, &mut steps);
    for (message, from) in &gone.instead {
        steps.extend([Repair::MoveMessage(*message, *from), Repair::DropMessage(*message)]);
    }
    for message in 0..outline.messages.len() {
        if gone.is_whole(outline, message) {
            steps.push(Repair::DropMessage(message));
        } else {
            steps.extend(gone.blocks[message].iter().map(|block| Repair::DropBlock(message, *block)));
        }
    }
    // A dropped message does not interrupt answers.
    let answers: Vec<bool> = (0..outline.messages.len())
        .map(|message| gone.is_whole(outline, message) || gone.holds_results(outline, message))
        .collect();
    let open_from = open_from(outline, outline.messages.len(), |message| answers[message]);
    // The next call of the same id in a later turn: a later answer would belong to that one.
    let mut later: HashMap<&[u8], usize> = HashMap::new();
    let mut next_same = vec![usize::MAX; outline.calls.len()];
    for (call, facts) in outline.calls.iter().enumerate().rev() {
        if let Some(id) = facts.id {
            let next = later.insert(outline.text(id), call).unwrap_or(usize::MAX);
            let is_of_turn = next != usize::MAX
                && turns.run_end(outline.calls[next].message as usize) == turns.run_end(facts.message as usize);
            next_same[call] = if is_of_turn { next_same[next] } else { next };
        }
    }
    let mut places =
        Places { answers, gone: gone.results, end: (usize::MAX, 0), sibling: ((usize::MAX, Shape::default()), None) };
    // By run and shape, the step that answers in a new message.
    let mut new_messages: HashMap<(usize, Shape), usize> = HashMap::new();
    for (call, next_same) in next_same.into_iter().enumerate() {
        let message = outline.calls[call].message as usize;
        if pairs.is_answered(call) || message >= open_from || !can_be_answered(outline, call) {
            continue;
        }
        let run_end = turns.run_end(message);
        let place = places.after_answers(run_end);
        let shape = shape_of(outline, call);
        let sibling = places.sibling(outline, &pairs, &turns, (run_end, shape), place);
        let goes_before = sibling.map_or(place, |(message, _)| message);
        if next_same != usize::MAX && (outline.calls[next_same].message as usize) < goes_before {
            continue;
        }
        if let Some((message, block)) = sibling {
            steps.push(Repair::AddBlock(message, block, call));
            continue;
        }
        if let Some(Repair::AddMessage(_, calls)) =
            new_messages.get(&(run_end, shape)).and_then(|step| steps.get_mut(*step))
        {
            calls.push(call);
            continue;
        }
        if shape.has_blocks() {
            new_messages.insert((run_end, shape), steps.len());
        }
        steps.push(Repair::AddMessage(place, vec![call]));
    }
    steps.sort_by_key(Repair::place);
    steps
}

/// A result without the id that its call has.
pub(crate) struct MissingId {
    pub result: usize,
    pub call: usize,
}

/// The results without the id that their calls have.
pub(crate) fn missing_ids(outline: &Outline) -> Vec<MissingId> {
    let pairs = Pairs::of(outline);
    let missing = (0..outline.results.len()).filter(|result| lacks_id(outline, &pairs, *result));
    missing.filter_map(|result| Some(MissingId { result, call: pairs.call_of(result)? })).collect()
}

/// What is dropped, or goes to another place.
struct Gone {
    reasoning: Vec<usize>,
    /// Whether each result is dropped, or goes to another message.
    results: Vec<bool>,
    /// By message, the places of these, and of those that only move, ascending.
    blocks: Vec<Vec<usize>>,
    /// Of results whose call has later ones the last of these, which takes their place.
    last: HashMap<usize, usize>,
    /// The messages that are such a result, and those that take their place.
    instead: Vec<(usize, usize)>,
}

impl Gone {
    /// Reasoning and halves of calls of the provider that are alone, further results, and results without call; but without an id these
    /// stay, unless their tool takes its place.
    fn of(outline: &Outline, pairs: &Pairs) -> Self {
        let goes = |result: usize| {
            let ToolResult { id, name, message, .. } = &outline.results[result];
            let is_named = name.is_some() && outline.messages[*message as usize].shape.names_results();
            match pairs.call_of(result) {
                None => id.is_some() || is_named,
                Some(call) => pairs.results_of(call).next() != Some(result),
            }
        };
        let mut gone = Gone {
            reasoning: reasoning_alone(outline),
            results: vec![false; outline.results.len()],
            blocks: vec![vec![]; outline.messages.len()],
            last: HashMap::new(),
            instead: vec![],
        };
        let shape = |result: usize| outline.messages[outline.results[result].message as usize].shape;
        for result in 0..outline.results.len() {
            let first = pairs.call_of(result).and_then(|call| pairs.results_of(call).next()).unwrap_or(result);
            if first == result || shape(first) != shape(result) {
                continue;
            }
            gone.last.insert(first, result);
        }
        if !gone.last.is_empty() {
            let whole = (0..outline.results.len()).filter(|first| !shape(*first).has_blocks());
            let message_of = |result: usize| outline.results[result].message as usize;
            gone.instead = whole.filter_map(|one| Some((message_of(one), message_of(*gone.last.get(&one)?)))).collect();
        }
        gone.reasoning.reverse();
        for result in (0..outline.results.len()).filter(|result| goes(*result)) {
            gone.results[result] = true;
            let ToolResult { message, block, .. } = outline.results[result];
            gone.blocks[message as usize].push(block as usize);
        }
        for half in pairs.refused_halves(outline) {
            gone.blocks[half.message as usize].push(half.block as usize);
        }
        gone
    }

    /// Whether nothing of a message stays.
    fn is_whole(&self, outline: &Outline, message: usize) -> bool {
        let facts = &outline.messages[message];
        let gone = self.blocks[message].len();
        self.reasoning.binary_search(&message).is_ok()
            || (gone > 0 && (!facts.shape.has_blocks() || gone == facts.blocks as usize))
    }

    fn holds_results(&self, outline: &Outline, message: usize) -> bool {
        outline.results_of(message).any(|result| !self.results[result])
    }

    /// Moves results to where their provider wants them: before the other blocks of their message, or to the first of their turn.
    fn move_results(&mut self, outline: &Outline, pairs: &Pairs, turns: &Turns, steps: &mut Vec<Repair>) {
        let answers = |message| self.is_whole(outline, message) || self.holds_results(outline, message);
        let split = split_results(outline, pairs, turns, answers, |result| !self.results[result]);
        for message in 0..outline.messages.len() {
            let wants_first = outline.messages[message].shape.wants_results_first();
            let leading = leading_results(outline, message);
            for result in outline.results_of(message).filter(|_| outline.calls_of(message).is_empty()) {
                let block = outline.results[result].block as usize;
                let target = split.get(&result).copied().unwrap_or(message);
                let moves = target != message || (wants_first && block >= leading);
                let last = self.last.get(&result).map(|last| &outline.results[*last]);
                let from = last.map_or((message, block), |last| (last.message as usize, last.block as usize));
                if self.results[result] || !outline.messages[message].shape.has_blocks() || !(moves || last.is_some()) {
                    continue;
                }
                let place = if moves { place_of_answers(outline, target) } else { block };
                steps.push(Repair::MoveBlock(target, place, from));
                self.results[result] = target != message;
                self.blocks[message].push(block);
            }
            self.blocks[message].sort_unstable();
        }
    }
}

/// How many blocks of a message are results, before any other.
fn leading_results(outline: &Outline, message: usize) -> usize {
    let results = &outline.results[outline.results_of(message)];
    results.iter().zip(0..).take_while(|(result, place)| result.block == *place).count()
}

/// The block of a message before which another answer goes: after the leading results, or after all.
fn place_of_answers(outline: &Outline, message: usize) -> usize {
    if outline.messages[message].shape.wants_results_first() {
        return leading_results(outline, message);
    }
    outline.results[outline.results_of(message)].last().map_or(0, |last| last.block as usize + 1)
}

/// Finds where the answers of a turn go; caches the last turn, so that the total is O(n).
struct Places {
    answers: Vec<bool>,
    /// Whether each result is in its message no more.
    gone: Vec<bool>,
    end: (usize, usize),
    sibling: ((usize, Shape), Option<(usize, usize)>),
}

impl Places {
    /// The position after a run and the answers that directly follow it.
    fn after_answers(&mut self, run_end: usize) -> usize {
        if self.end.0 != run_end {
            let answers = self.answers[run_end..].iter().take_while(|answers| **answers).count();
            self.end = (run_end, run_end + answers);
        }
        self.end.1
    }

    /// The message that already answers calls of this shape of the run that ends at `run_end`, and the block before which another
    /// answer goes.
    fn sibling(
        &mut self,
        outline: &Outline,
        pairs: &Pairs,
        turns: &Turns,
        (run_end, shape): (usize, Shape),
        place: usize,
    ) -> Option<(usize, usize)> {
        if self.sibling.0 != (run_end, shape) {
            let is_of_run = |call: usize| turns.run_end(outline.calls[call].message as usize) == run_end;
            let answers = |message: &usize| {
                Some(outline.messages[*message].shape) == shape.answered_in()
                    && outline
                        .results_of(*message)
                        .any(|result| !self.gone[result] && pairs.call_of(result).is_some_and(is_of_run))
            };
            let sibling = (run_end..place).find(answers);
            self.sibling = ((run_end, shape), sibling.map(|message| (message, place_of_answers(outline, message))));
        }
        self.sibling.1
    }
}
