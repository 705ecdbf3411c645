//! The faults of the pairs of a history.

use super::{NONE, Pairs, can_be_answered, shape_of};
use crate::outline::Outline;
use crate::turns::Turns;
use std::collections::HashMap;

/// The kinds of faults that [`findings`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// A call or result without a string id.
    MissingId,
    /// A call of an id whose earlier call has no result yet.
    IdOpenTwice,
    /// An orphan.
    CallWithoutResult,
    /// An open call, which may still be answered.
    OpenCall,
    /// An orphan.
    ResultWithoutCall,
    /// A result whose call has a result already.
    SecondResult,
    /// A result that does not follow the turn of its call.
    NotAdjacent,
    /// A result that is not among the leading blocks of its message.
    NotLeading,
}

impl FindingKind {
    /// The name in both engines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::MissingId => "missing_id",
            FindingKind::IdOpenTwice => "id_open_twice",
            FindingKind::CallWithoutResult => "call_without_result",
            FindingKind::OpenCall => "open_call",
            FindingKind::ResultWithoutCall => "result_without_call",
            FindingKind::SecondResult => "second_result",
            FindingKind::NotAdjacent => "not_adjacent",
            FindingKind::NotLeading => "not_leading",
        }
    }
}

/// A finding: its kind, its message, and the id of the call or result.
pub type Finding<'a> = (FindingKind, usize, Option<&'a [u8]>);

/// Faults of the pairs of a history, in document order.
#[must_use]
pub fn findings(outline: &Outline) -> Vec<Finding<'_>> {
    let pairs = Pairs::of(outline);
    let turns = Turns::of(outline);
    // Of each message, where the consecutive messages with results up to it begin.
    let mut results_from: Vec<usize> = (0..=outline.messages.len()).collect();
    for message in 0..outline.messages.len() {
        if outline.holds_results(message) && message > 0 && outline.holds_results(message - 1) {
            results_from[message] = results_from[message - 1];
        }
    }
    // ((message, block), order within, finding)
    let mut found: Vec<((u32, u32), Finding)> = vec![];
    let mut open: HashMap<&[u8], usize> = HashMap::new(); // id -> its calls without a result so far
    let mut calls = 0;
    for result in 0..=outline.results.len() {
        let place = outline.results.get(result).map_or((NONE, NONE), |result| (result.message, result.block));
        while let Some(call) = outline.calls.get(calls).filter(|call| (call.message, call.block) < place) {
            let id = call.id.map(|id| outline.text(id));
            let mut add = |kind| found.push(((call.message, call.block), (kind, call.message as usize, id)));
            match id {
                None if can_be_answered(outline, calls) || pairs_without_ids(outline, &pairs, calls) => {}
                None => add(FindingKind::MissingId),
                Some(id) => {
                    let count = open.entry(id).or_insert(0);
                    *count += 1;
                    if *count > 1 {
                        add(FindingKind::IdOpenTwice);
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
        if id.is_none() && seen.name.is_none() && !pairs_without_ids() {
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
                let run_end = turns.run_end(outline.calls[call].message as usize);
                if message < run_end || results_from[message] > run_end {
                    add(FindingKind::NotAdjacent);
                }
            }
        }
        let ordinal = result - outline.results_of(message).start;
        if outline.messages[message].shape.wants_results_first() && seen.block as usize != ordinal {
            add(FindingKind::NotLeading);
        }
    }
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// Whether neither a call nor its first result has an id, where that is no fault.
fn pairs_without_ids(outline: &Outline, pairs: &Pairs, call: usize) -> bool {
    let has_id = |result: usize| outline.results[result].id.is_some();
    let is_paired = pairs.results_of(call).next().is_some_and(|result| !has_id(result));
    is_paired && outline.calls[call].id.is_none() && shape_of(outline, call).takes_names_for_ids()
}
