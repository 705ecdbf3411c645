//! Cache marks of ours: which block of a view gets one, so that what precedes the boundary is read from the cache, and which mark of
//! the client gives way. Where the boundary is never depends on marks.

use super::outcome::Plan;
use super::replay::{blocks_of, sums_before};
use crate::marks::{Marks, Pins};
use crate::outline::{Outline, Shape};
use crate::policy::Policy;

/// A request has at most so many marks.
const MOST_MARKS: usize = 4;
/// A mark finds an entry up to so many blocks before it.
pub(super) const LOOKBACK_BLOCKS: usize = 20;

/// The pins of a view; None if its marks stay as they are.
#[must_use]
pub fn pins(outline: &Outline, policy: &Policy, plan: &Plan, marks: &Marks) -> Option<Pins> {
    let is_whole =
        plan.summary.is_none() && plan.cut.is_none() && plan.kept.as_ref().is_none_or(|kept| !kept.contains(&false));
    if !policy.pins_boundary || !is_whole || plan.masked.is_empty() || marks.blocks.is_empty() {
        return None;
    }
    let before = sums_before((0..outline.messages.len()).map(|message| blocks_of(outline, message)));
    let place = |message: usize, block: usize| before[message] + block;
    let places: Vec<usize> = marks.blocks.iter().map(|one| place(one.message, one.block)).collect();
    let newest = *places.last()?;
    let is_masked = |message: usize, block: usize| masked_at(outline, plan, message, block);
    let count = |place: usize| {
        let one = &marks.blocks[place];
        if is_masked(one.message, one.block) { 1 } else { one.count }
    };
    let mut total = marks.elsewhere + (0..places.len()).map(count).sum::<usize>();
    if total > MOST_MARKS {
        return None;
    }
    // Before a mark of the client, and where none is.
    let is_free = |(message, block): &(usize, usize)| {
        let place = place(*message, *block);
        place < newest && !places.contains(&place)
    };
    let mut pin = pinned(outline, plan).filter(is_free);
    let carried = carried(outline, plan).filter(is_free).filter(|(message, block)| {
        let deepest = place(*message, *block);
        plan.boundary_before == plan.boundary
            && !places.iter().any(|place| (deepest..=deepest + LOOKBACK_BLOCKS).contains(place))
    });
    let mut carried = carried.filter(|one| pin != Some(*one));
    total += usize::from(pin.is_some()) + usize::from(carried.is_some());
    let mut pins = Pins::default();
    let mut stays: Vec<usize> = (0..places.len()).collect();
    while total > MOST_MARKS {
        // The oldest mark whose entry the next one finds as well.
        let old = stays.windows(2).position(|pair| places[pair[1]] - places[pair[0]] < LOOKBACK_BLOCKS);
        total -= if carried.is_some() && pin.take().is_some() {
            1
        } else if marks.on_tools > 0 && !pins.clears_tools {
            pins.clears_tools = true;
            marks.on_tools
        } else if let Some(old) = old {
            let removed = stays.remove(old);
            pins.removed.push(removed);
            count(removed)
        } else {
            usize::from(pin.take().or_else(|| carried.take()).is_some())
        };
    }
    if pin.is_none() && carried.is_none() {
        return None; // nothing gives way to nothing
    }
    // The value of the mark after it: entries that live longer come before others.
    pins.added = [pin, carried]
        .into_iter()
        .flatten()
        .filter_map(|(message, block)| {
            let next = stays.iter().find(|one| places[**one] > place(message, block))?;
            Some((message, block, *next))
        })
        .collect();
    pins.added.sort_unstable();
    Some(pins)
}

/// The block of the last result that the previous request has sent masked.
fn pinned(outline: &Outline, plan: &Plan) -> Option<(usize, usize)> {
    let end = plan.boundary_before.min(plan.boundary);
    let last = plan.masked.iter().rev().find(|one| !one.is_clipped() && (one.result as usize) < end)?;
    block_of(outline, last.result as usize)
}

/// The last block of the previous request, if that is a result.
fn carried(outline: &Outline, plan: &Plan) -> Option<(usize, usize)> {
    let starts = &plan.turns.starts;
    let is_over = outline.messages.last().is_some_and(|last| last.is_agent_made);
    let previous = *starts.get(starts.len().checked_sub(if is_over { 2 } else { 1 })?)? as usize;
    let message = previous.checked_sub(1)?;
    block_of(outline, outline.results_of(message).last()?)
}

fn block_of(outline: &Outline, result: usize) -> Option<(usize, usize)> {
    let result = &outline.results[result];
    let message = result.message as usize;
    (outline.messages[message].shape == Shape::Anthropic).then_some((message, result.block as usize))
}

/// Whether the result at a block is masked or cut.
#[must_use]
pub fn masked_at(outline: &Outline, plan: &Plan, message: usize, block: usize) -> bool {
    let is_it = |one: usize| outline.results[one].block as usize == block;
    super::masked_in(&plan.masked, outline.results_of(message)).iter().any(|one| is_it(one.result as usize))
}
