//! Cache marks of ours: which block of a view gets one, so that what precedes the boundary is read from the cache, and which mark of
//! the client gives way. Where the boundary is never depends on marks.

use super::masked::{Masked, masked_in};
use super::outcome::Plan;
use super::units::{position_of, positions_of};
use crate::marks::{Marked, Marks, Pins};
use crate::outline::Outline;
use crate::provider::ProviderCache;
use crate::turns::Turns;

/// A message, and the place of a block in its content.
pub(crate) type BlockPlace = (usize, usize);

/// The blocks that marks of ours are wanted on.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Wanted {
    /// The last result that the previous request has sent masked.
    pub pin: Option<BlockPlace>,
    /// The last block of the previous request, if that is a result, and the boundary did not move since.
    pub carried: Option<BlockPlace>,
}

/// The pins of a view that is not the input; None if its marks stay as they are.
pub(crate) fn pins(outline: &Outline, plan: &Plan, marks: &Marks, cache: ProviderCache) -> Option<Pins> {
    if !plan.layout.is_whole() {
        return None;
    }
    let wanted = Wanted::of(outline, &plan.turns, plan.masked.iter(), (plan.boundary_before, plan.boundary));
    wanted.pins(marks, cache, |from, to| blocks_between(outline, from, to, cache.lookback_blocks))
}

/// The marks that are left in a view without pins: of those in a replaced observation the newest. Where the message itself is the
/// observation, its one part keeps that.
pub(crate) fn marks_in_view(outline: &Outline, masked: &[Masked], mut marks: Marks) -> Marks {
    let is_observation = |message: usize| {
        !outline.messages[message].shape.has_blocks() && !masked_in(masked, outline.results_of(message)).is_empty()
    };
    for one in marks.blocks.iter_mut().filter(|one| one.count > 0) {
        one.stays = is_observation(one.message);
        if one.stays || masked_at(outline, masked, one.message, one.block) {
            one.count = 1;
        }
    }
    let last_first = marks.blocks.iter().rev();
    let mut newer = None;
    let mut blocks: Vec<Marked> =
        last_first.filter(|one| newer.replace(one.message) != Some(one.message) || !one.stays).copied().collect();
    blocks.reverse();
    Marks { blocks, ..marks }
}

impl Wanted {
    /// The wanted marks where these are masked, with the boundary at the previous request and now.
    pub(crate) fn of<'a>(
        outline: &Outline,
        turns: &Turns,
        masked: impl DoubleEndedIterator<Item = &'a Masked>,
        (before, now): (usize, usize),
    ) -> Self {
        let is_sent = |one: &&Masked| one.is_masked() && (one.result as usize) < before;
        let pin = masked.rev().find(is_sent).and_then(|last| block_of(outline, last.result as usize));
        Wanted { pin, carried: carried(outline, turns).filter(|_| before == now) }
    }

    /// The marks to write, and those of the client that give way; `blocks_between` is that of two blocks in order.
    pub(crate) fn pins(
        self,
        marks: &Marks,
        cache: ProviderCache,
        blocks_between: impl Fn(BlockPlace, BlockPlace) -> usize,
    ) -> Option<Pins> {
        let places: Vec<BlockPlace> = marks.blocks.iter().map(|one| (one.message, one.block)).collect();
        let newest = *places.last()?;
        let total = marks.elsewhere + marks.blocks.iter().map(|one| one.count).sum::<usize>();
        if total > cache.most_marks {
            return None;
        }
        // Before a mark of the client, and where none is.
        let is_free = |block: &BlockPlace| *block < newest && !places.contains(block);
        let mut pin = self.pin.filter(is_free);
        let carried = self.carried.filter(is_free).filter(|block| {
            let next = places.iter().find(|place| *place > block);
            pin != Some(*block) && next.is_none_or(|next| blocks_between(*block, *next) >= cache.lookback_blocks)
        });
        if carried.is_some() && total + 2 > cache.most_marks {
            pin = None;
        }
        let added = pin.into_iter().chain(carried);
        let mut pins = Pins::default();
        if total + added.clone().count() > cache.most_marks {
            if marks.on_tools > 0 {
                pins.clears_tools = true;
            } else {
                // The oldest mark whose entry the next one finds as well.
                let gives_way = |one: &usize| {
                    !marks.blocks[*one].stays && blocks_between(places[*one], places[one + 1]) < cache.lookback_blocks
                };
                pins.removed = Some((0..places.len() - 1).find(gives_way)?);
            }
        }
        // The value of the mark after it: entries that live longer come before others.
        let stays =
            |block: BlockPlace| (0..places.len()).find(|one| places[*one] > block && pins.removed != Some(*one));
        pins.added = added.filter_map(|block| Some((block.0, block.1, stays(block)?))).collect();
        (!pins.added.is_empty()).then_some(pins)
    }
}

/// The last block of the previous request, if that is a result.
fn carried(outline: &Outline, turns: &Turns) -> Option<BlockPlace> {
    let message = previous_request(outline, turns)?.checked_sub(1)?;
    block_of(outline, outline.results_of(message).last()?)
}

/// How many messages preceded the request before the current one.
pub(crate) fn previous_request(outline: &Outline, turns: &Turns) -> Option<usize> {
    let is_over = outline.messages.last().is_some_and(|last| last.is_agent_made);
    let previous = turns.starts.len().checked_sub(if is_over { 2 } else { 1 })?;
    Some(turns.starts[previous] as usize)
}

/// The block of a result, where it may have a mark.
pub(crate) fn block_of(outline: &Outline, result: usize) -> Option<BlockPlace> {
    let result = &outline.results[result];
    let message = result.message as usize;
    outline.messages[message].shape.takes_marks().then_some((message, result.block as usize))
}

/// Whether the result at a block is masked or cut.
pub(crate) fn masked_at(outline: &Outline, masked: &[Masked], message: usize, block: usize) -> bool {
    let is_it = |one: usize| outline.results[one].block as usize == block;
    masked_in(masked, outline.results_of(message)).iter().any(|one| is_it(one.result as usize))
}

/// How many positions a block is after an earlier one; if those are more than `most`, a lower bound.
pub(crate) fn blocks_between(outline: &Outline, from: BlockPlace, to: BlockPlace, most: usize) -> usize {
    let (start, mut positions) = (position_of(outline, from.0, from.1), 0);
    for message in from.0..to.0 {
        positions += positions_of(outline, message);
        if positions > start + most {
            break;
        }
    }
    (positions + position_of(outline, to.0, to.1)).saturating_sub(start)
}
