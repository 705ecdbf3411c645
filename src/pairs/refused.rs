//! What providers refuse although the pairs are whole, and a repair mends.

use super::Pairs;
use crate::outline::{ItemType, Outline, Role, Shape};
use crate::turns::Turns;
use std::collections::HashMap;

/// Reasoning that no item of its answer follows, by descending place. What is not understood may be one.
pub(super) fn reasoning_alone(outline: &Outline) -> Vec<usize> {
    let mut alone = vec![];
    let mut ends_answer = true; // whether the answer ends before the message that was looked at last
    for (index, message) in outline.messages.iter().enumerate().rev() {
        if message.item != ItemType::Reasoning {
            let is_said = matches!(message.role, Role::System | Role::User);
            ends_answer = !message.is_agent_made && (is_said || outline.holds_results(index));
        } else if ends_answer {
            alone.push(index);
        }
    }
    alone
}

/// The results that their provider wants in an earlier message, which has others of their turn, and that message. Between the run of
/// their calls and them there are only messages that `answer`; results that do not `stay` are passed over.
pub(super) fn split_results(
    outline: &Outline,
    pairs: &Pairs,
    turns: &Turns,
    answers: impl Fn(usize) -> bool,
    stays: impl Fn(usize) -> bool,
) -> HashMap<usize, usize> {
    let mut split = HashMap::new();
    let mut first: HashMap<(usize, Shape), usize> = HashMap::new(); // by turn and shape, the first message with results
    let (mut answers_from, mut last_mixed) = (0, None);
    for message in 0..outline.messages.len() {
        if !answers(message) {
            answers_from = message + 1;
        }
        let shape = outline.messages[message].shape;
        let moves = shape.has_blocks() && outline.calls_of(message).is_empty();
        for result in outline.results_of(message).filter(|result| moves && stays(*result)) {
            let Some(call) = pairs.call_of(result) else { continue };
            let asked = outline.calls[call].message as usize;
            let (run_end, is_first) = (turns.run_end(asked), pairs.results_of(call).next() == Some(result));
            let is_adjacent = answers_from <= run_end && run_end <= message;
            if !is_first || !is_adjacent || outline.messages[asked].shape != shape {
                continue;
            }
            let target = *first.entry((run_end, shape)).or_insert(message);
            // Anthropic joins the messages of the user, but wants no other block between their results.
            let is_refused = shape.wants_one_message() || last_mixed.is_some_and(|mixed| mixed >= target);
            if target < message && is_refused {
                split.insert(result, target);
            }
        }
        if outline.messages[message].blocks as usize > outline.results_of(message).len() {
            last_mixed = Some(message);
        }
    }
    split
}
