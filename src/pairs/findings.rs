//! The faults of the pairs of a history.

use super::refused::{reasoning_alone, split_results};
use super::{NONE, Pairs, can_be_named, lacks_id, shape_of};
use crate::outline::Outline;
use crate::turns::Turns;
use std::collections::HashMap;

/// The kinds of faults that [`findings`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// Reasoning without the item after it.
    ReasoningAlone,
    /// A call or result without a string id.
    MissingId,
    /// A call of an id whose earlier call has no result yet.
    IdOpenTwice,
    /// A call of an id that a call of an earlier turn had.
    IdUsedAgain,
    /// An orphan.
    CallWithoutResult,
    /// An open call, which may still be answered.
    OpenCall,
    /// An orphan.
    ResultWithoutCall,
    /// A result whose call has a result already.
    SecondResult,
    /// A result of another kind than its call.
    OtherKind,
    /// A result that does not follow the turn of its call.
    NotAdjacent,
    /// A result in another message than an earlier one of its turn.
    SplitResults,
    /// A result that is not among the leading blocks of its message.
    NotLeading,
}

impl FindingKind {
    /// The name in both engines.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::MissingId => "missing_id",
            FindingKind::IdOpenTwice => "id_open_twice",
            FindingKind::CallWithoutResult => "call_without_result",
            FindingKind::OpenCall => "open_call",
            FindingKind::ResultWithoutCall => "result_without_call",
            FindingKind::SecondResult => "second_result",
            FindingKind::IdUsedAgain => "id_used_again",
            FindingKind::OtherKind => "other_kind",
            FindingKind::NotAdjacent => "not_adjacent",
            FindingKind::SplitResults => "split_results",
            FindingKind::ReasoningAlone => "reasoning_alone",
            FindingKind::NotLeading => "not_leading",
        }
    }
}

/// A finding: its kind, its message, and the id of the call or result.
pub(crate) type Finding<'a> = (FindingKind, usize, Option<&'a [u8]>);

/// Faults of the pairs of a history, in document order.
pub fn findings(outline: &Outline) -> Vec<Finding<'_>> {
    let pairs = Pairs::of(outline);
    let turns = Turns::of(outline);
    // Of each message, where the consecutive messages with results up to it begin.
    let mut results_from: Vec<usize> = (0..=outline.messages.len()).collect();
    for message in 1..outline.messages.len() {
        if outline.holds_results(message) && outline.holds_results(message - 1) {
            results_from[message] = results_from[message - 1];
        }
    }
    let split = split_results(outline, &pairs, &turns, |message| outline.holds_results(message), |_| true);
    let alone = reasoning_alone(outline).into_iter();
    // ((message, block), finding)
    let mut found: Vec<((u32, u32), Finding)> =
        alone.map(|message| ((message as u32, 0), (FindingKind::ReasoningAlone, message, None))).collect();
    found.extend(pairs.links.alone(outline).map(|half| {
        let message = half.message as usize;
        let kind = match half.is_result {
            true => FindingKind::ResultWithoutCall,
            false if message < pairs.open_from => FindingKind::CallWithoutResult,
            false => FindingKind::OpenCall,
        };
        ((half.message, half.block), (kind, message, Some(outline.text(half.id))))
    }));
    let mut open: HashMap<&[u8], usize> = HashMap::new(); // id -> its calls without a result so far
    let mut calls = 0;
    for result in 0..=outline.results.len() {
        let place = outline.results.get(result).map_or((NONE, NONE), |result| (result.message, result.block));
        while let Some(call) = outline.calls.get(calls).filter(|call| (call.message, call.block) < place) {
            let id = call.id.map(|id| outline.text(id));
            let mut add = |kind| found.push(((call.message, call.block), (kind, call.message as usize, id)));
            match id {
                None if can_be_named(outline, calls) || pairs_without_ids(outline, &pairs, calls) => {}
                None => add(FindingKind::MissingId),
                Some(id) => {
                    let is_new = !open.contains_key(id);
                    let count = open.entry(id).or_insert(0);
                    *count += 1;
                    if *count > 1 {
                        add(FindingKind::IdOpenTwice);
                    } else if !is_new && shape_of(outline, calls).wants_unique_ids() {
                        add(FindingKind::IdUsedAgain);
                    }
                }
            }
            if !pairs.is_answered(calls) {
                add(if pairs.is_open(outline, calls) { FindingKind::OpenCall } else { FindingKind::CallWithoutResult });
            }
            calls += 1;
        }
        let Some(seen) = outline.results.get(result) else { break };
        let message = seen.message as usize;
        let id = seen.id.map(|id| outline.text(id));
        let mut add = |kind| found.push((place, (kind, message, id)));
        let pairs_without_ids = || pairs.call_of(result).is_some_and(|call| pairs_without_ids(outline, &pairs, call));
        if id.is_none() && (lacks_id(outline, &pairs, result) || (seen.name.is_none() && !pairs_without_ids())) {
            add(FindingKind::MissingId);
        }
        match pairs.call_of(result) {
            None => add(FindingKind::ResultWithoutCall),
            Some(call) => {
                if pairs.results_of(call).next() != Some(result) {
                    add(FindingKind::SecondResult);
                } else if let Some(count) = outline.calls[call].id.and_then(|id| open.get_mut(outline.text(id))) {
                    *count -= 1;
                }
                let asked = outline.calls[call].message as usize;
                if !is_of_kind(outline, asked, message) {
                    add(FindingKind::OtherKind);
                }
                let run_end = turns.run_end(asked);
                if message < run_end || results_from[message] > run_end {
                    add(FindingKind::NotAdjacent);
                } else if split.contains_key(&result) {
                    add(FindingKind::SplitResults);
                }
            }
        }
        let ordinal = result - outline.results_of(message).start;
        if outline.messages[message].shape.wants_results_first() && seen.block as usize != ordinal {
            add(FindingKind::NotLeading);
        }
    }
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// Whether the result of a message is of the kind of the call in another. Only items of Responses have kinds.
fn is_of_kind(outline: &Outline, call: usize, result: usize) -> bool {
    let (call, result) = (&outline.messages[call], &outline.messages[result]);
    !(call.shape.has_kinds() || result.shape.has_kinds()) || call.item.takes(result.item)
}

/// Whether neither a call nor its first result has an id, where that is no fault.
fn pairs_without_ids(outline: &Outline, pairs: &Pairs, call: usize) -> bool {
    let has_id = |result: usize| outline.results[result].id.is_some();
    let is_paired = pairs.results_of(call).next().is_some_and(|result| !has_id(result));
    is_paired && outline.calls[call].id.is_none() && shape_of(outline, call).takes_names_for_ids()
}
