//! Repairs of orphans, as steps.

use super::{Pairs, can_be_answered, open_from, shape_of};
use crate::outline::{Outline, Shape, ToolResult};
use crate::turns::Turns;
use std::collections::HashMap;

/// A step that repairs orphans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// Drop a message.
    DropMessage(usize),
    /// Drop one block of a message.
    DropBlock(usize, usize),
    /// Answer a call in a message, before this block.
    AddBlock(usize, usize, usize),
    /// Answer calls in a new message before this one; only shapes with blocks have several in one.
    AddMessage(usize, Vec<usize>),
}

impl Repair {
    fn place(&self) -> (usize, usize, usize) {
        match self {
            Repair::AddMessage(before, _) => (*before, 0, 0),
            Repair::DropMessage(message) => (*message, 1, 0),
            Repair::AddBlock(message, block, _) => (*message, 1 + block, 0),
            Repair::DropBlock(message, block) => (*message, 1 + block, 1),
        }
    }
}

/// The steps that repair the orphans of a history, by ascending place. Calls are given by number.
#[must_use]
pub fn repairs(outline: &Outline) -> Vec<Repair> {
    let pairs = Pairs::of(outline);
    let turns = Turns::of(outline);
    let mut steps = dropped_results(outline, &pairs);
    // Messages that answer once orphaned results are dropped; a dropped message does not interrupt answers.
    let stays = |result: usize| !is_dropped(outline, &pairs, result);
    let mut answers: Vec<bool> =
        (0..outline.messages.len()).map(|message| outline.results_of(message).any(stays)).collect();
    for step in &steps {
        if let Repair::DropMessage(message) = step {
            answers[*message] = true;
        }
    }
    let open_from = open_from(outline, |message| answers[message]);
    // The next call of the same id: a later answer would belong to that one.
    let mut later: HashMap<&[u8], usize> = HashMap::new();
    let mut next_same = vec![usize::MAX; outline.calls.len()];
    for (call, facts) in outline.calls.iter().enumerate().rev() {
        if let Some(id) = facts.id {
            next_same[call] = later.insert(outline.text(id), call).unwrap_or(usize::MAX);
        }
    }
    let mut places = Places { answers, end: (usize::MAX, 0), sibling: ((usize::MAX, Shape::default()), None) };
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

/// Whether a result goes: one without call. But one without an id stays, unless its tool takes the place of that.
fn is_dropped(outline: &Outline, pairs: &Pairs, result: usize) -> bool {
    let ToolResult { id, name, message, .. } = &outline.results[result];
    let is_named = name.is_some() && outline.messages[*message as usize].shape.names_results();
    pairs.call_of(result).is_none() && (id.is_some() || is_named)
}

fn dropped_results(outline: &Outline, pairs: &Pairs) -> Vec<Repair> {
    let mut steps = vec![];
    for message in 0..outline.messages.len() {
        let orphans: Vec<usize> =
            outline.results_of(message).filter(|result| is_dropped(outline, pairs, *result)).collect();
        if orphans.is_empty() {
            continue;
        }
        let block_count = outline.messages[message].blocks as usize;
        if !outline.messages[message].shape.has_blocks() || orphans.len() == block_count {
            steps.push(Repair::DropMessage(message));
        } else {
            steps.extend(
                orphans.iter().map(|result| Repair::DropBlock(message, outline.results[*result].block as usize)),
            );
        }
    }
    steps
}

/// Finds where the answers of a turn go; caches the last turn, so that the total is O(n).
struct Places {
    answers: Vec<bool>,
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

    /// The message that already answers calls of this shape of the run that ends at `run_end`, and the block before which
    /// another answer goes: after the leading results, or after all where answers pair by their place.
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
                outline.messages[*message].shape == shape
                    && outline.results_of(*message).any(|result| pairs.call_of(result).is_some_and(is_of_run))
            };
            let mut siblings = if shape.has_blocks() { run_end..place } else { 0..0 };
            let sibling = if shape.wants_results_first() { siblings.find(answers) } else { siblings.rfind(answers) };
            let block = |message: usize| {
                let results = &outline.results[outline.results_of(message)];
                let leading = results.iter().zip(0..).take_while(|(result, place)| result.block == *place).count();
                let all = results.last().map_or(0, |last| last.block as usize + 1);
                (message, if shape.wants_results_first() { leading } else { all })
            };
            self.sibling = ((run_end, shape), sibling.map(block));
        }
        self.sibling.1
    }
}
