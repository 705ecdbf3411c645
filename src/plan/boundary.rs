//! The boundary at each request of a history. It is a fold over the requests and prefix-stable: a growing session and a plan of
//! the whole history agree.
//!
//! Masking shortens the prompt, but invalidates the prompt cache from the first change on. The break-even rule is that of the ski
//! rental problem: characters that could have been masked add to the waste of each request that sends them. Once reading the waste
//! from the cache has cost as much as writing the cache again after the change, the boundary moves.

use super::mask::{Excluded, Masker, Masking};
use super::window::Aging;
use super::{Costs, Masked, PlanContext};
use crate::outline::Outline;
use crate::policy::{Boundary, NOW, Policy};

/// A move of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The request before which it moved, from 0.
    pub request: usize,
    /// Observations that it masked.
    pub masked: usize,
    /// Characters that it removed.
    pub removed: usize,
    /// Characters after the first change that the previous request had sent, and that were written to the cache again.
    pub written_again: usize,
}

impl Move {
    /// Its fields, in order.
    #[must_use]
    pub fn numbers(self) -> [usize; 4] {
        [self.request, self.masked, self.removed, self.written_again]
    }

    /// The move of these fields.
    #[must_use]
    pub fn of([request, masked, removed, written_again]: [usize; 4]) -> Self {
        Move { request, masked, removed, written_again }
    }
}

/// The effect of a possible move.
#[derive(Debug)]
pub struct Peek {
    /// The observations that it would mask, in order.
    pub masked: Vec<Masked>,
    /// The cost of the view after it.
    pub cost: usize,
    /// The move.
    pub step: Move,
}

/// The cost of characters at a price per character.
#[expect(clippy::cast_precision_loss, reason = "no history has 2^53 characters")]
pub(super) fn cost(chars: usize, price: f64) -> f64 {
    chars as f64 * price
}

/// A summary in a view.
#[derive(Debug, Default)]
pub(super) struct SummaryInView {
    /// Whether the summary replaces a message, for each message.
    pub hidden: Vec<bool>,
    /// The first replaced message.
    pub place: usize,
    /// Its characters.
    pub chars: usize,
}

impl SummaryInView {
    fn hides(&self, message: usize) -> bool {
        self.hidden.get(message) == Some(&true)
    }

    /// The characters in the view of a message of so many characters.
    fn chars(&self, message: usize, chars: usize) -> usize {
        match self.hides(message) {
            false => chars,
            true if message == self.place => self.chars,
            true => 0,
        }
    }
}

/// The state of a fold after an eviction that the remaining messages do not imply.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FoldState {
    /// Evicted messages.
    pub messages: usize,
    /// Evicted observations.
    pub observations: usize,
    /// Masked ones among them.
    pub masked_count: usize,
    /// Characters of the view before the remaining messages.
    pub chars: usize,
    /// Characters that masking removed in total.
    pub removed: usize,
    /// Characters that requests since the last move could have saved.
    pub waste: usize,
    /// Number of requests.
    pub requests: usize,
    /// Remaining messages that the last request had sent.
    pub before: usize,
    /// The masked ones of the remaining observations, ascending.
    pub masked: Vec<u32>,
}

/// The state between two requests.
#[derive(Debug, Default)]
pub struct Fold {
    /// Evicted messages, observations, masked observations, and characters in the view.
    evicted_messages: usize,
    evicted_observations: usize,
    evicted_masked: usize,
    evicted_chars: usize,
    excluded: Excluded,
    summary: SummaryInView,
    /// The next request writes the whole view to the cache in any case.
    is_rewritten: bool,
    /// Prefix sums of the view's characters: after each message.
    chars_before: Vec<usize>,
    core: FoldCore,
    /// Masked observations, in order.
    pub masked: Vec<Masked>,
    /// The moves of the boundary.
    pub moves: Vec<Move>,
    /// Rewind points: the beginning, and each move. Empty if rewinding is disabled.
    points: Vec<Point>,
    /// With rewind points: the results of `masked`, in the order in which they were masked.
    masked_by_time: Vec<u32>,
}

/// The part of a fold that a rewind point copies; its size is that of the window.
#[derive(Debug, Default, Clone)]
struct FoldCore {
    aging: Aging,
    /// The cost of the view.
    cost: usize,
    /// Maskable observations that are still raw; the characters that masking them would remove, and the first of them.
    waiting: Vec<Masked>,
    gain: usize,
    /// The part of the gain in messages since the previous request.
    new_gain: usize,
    first: Option<u32>,
    /// Characters that requests since the last move could have saved.
    waste: usize,
    requests: usize,
    /// Messages at the previous request; later ones are written to the cache in any case.
    before: usize,
    /// Characters that masking removed.
    removed: usize,
    /// The first observation after the boundary.
    boundary: usize,
}

/// A boundary that moves at each request has one rewind point per so many messages.
const POINT_INTERVAL: usize = 64;

/// A rewind point: the state of a fold, which needs at least so many messages.
#[derive(Debug)]
struct Point {
    messages: usize,
    masked: usize,
    moves: usize,
    core: FoldCore,
}

impl Fold {
    /// The maskable observations, in order, and how many of them are maskable at each of these requests.
    pub(super) fn maskable(context: PlanContext, requests: &[usize]) -> (Vec<Masked>, Vec<usize>) {
        let mut fold = Fold::default();
        let older = requests.iter().map(|end| {
            fold.grow(context, *end);
            fold.core.waiting.len()
        });
        let older = older.collect();
        (fold.core.waiting, older)
    }

    /// The fold of a view with a new summary, whose previous request had sent so many messages.
    pub(super) fn with_summary(summary: SummaryInView, before: usize) -> Self {
        Fold { summary, core: FoldCore { before, ..FoldCore::default() }, is_rewritten: true, ..Fold::default() }
    }

    /// How many of the first observations are final: masked, or never to be masked.
    #[must_use]
    pub fn final_observations(&self, policy: &Policy) -> usize {
        let older = self.rounded(policy, self.core.aging.older_end);
        let waiting = self.core.first.map(|first| first as usize);
        waiting.into_iter().chain(self.core.aging.first_recent()).fold(older, usize::min)
    }

    /// Messages before this one are outside of all windows, and were sent by the last request.
    #[must_use]
    pub fn final_messages(&self, context: PlanContext) -> usize {
        let start = self.core.aging.start(context);
        if context.policy.boundary.remembers() { start.min(self.core.before) } else { start }
    }

    /// How many observations are masked, including evicted ones.
    #[must_use]
    pub fn masked_count(&self) -> usize {
        self.evicted_masked + self.masked.len()
    }

    /// The state after evicting the messages before this one, whose observations are final.
    #[must_use]
    pub fn state_without(&self, context: PlanContext, messages: usize) -> FoldState {
        let evicted = context.outline.results_before(messages);
        let (masked_before, masked) =
            self.masked.split_at(self.masked.partition_point(|one| (one.result as usize) < evicted));
        FoldState {
            messages: self.evicted_messages + messages,
            observations: self.evicted_observations + evicted,
            masked_count: self.evicted_masked + masked_before.len(),
            chars: self.chars_before(messages),
            removed: self.core.removed,
            waste: self.core.waste,
            requests: self.core.requests,
            before: self.core.before.saturating_sub(messages),
            masked: masked.iter().map(|one| one.result - evicted as u32).collect(),
        }
    }

    /// Resumes a state over the remaining messages.
    #[must_use]
    pub fn resumed(context: PlanContext, state: &FoldState) -> Self {
        let mut fold = Fold {
            evicted_messages: state.messages,
            evicted_observations: state.observations,
            evicted_masked: state.masked_count,
            evicted_chars: state.chars,
            core: FoldCore { waste: state.waste, requests: state.requests, ..FoldCore::default() },
            ..Fold::default()
        };
        fold.grow(context, state.before);
        (fold.core.before, fold.core.new_gain) = (state.before, 0);
        fold.grow(context, context.outline.messages.len());
        fold.mask(context, |result| state.masked.binary_search(&result).is_ok());
        fold.core.removed = state.removed;
        fold
    }

    /// A boundary rounded by the policy, among the observations in memory.
    fn rounded(&self, policy: &Policy, boundary: usize) -> usize {
        policy.rounded(self.evicted_observations + boundary).saturating_sub(self.evicted_observations)
    }

    /// Characters of the view before a message; before the next message, of the whole view.
    #[must_use]
    pub fn chars_before(&self, message: usize) -> usize {
        message.checked_sub(1).map_or(self.evicted_chars, |before| self.chars_before[before])
    }

    /// Makes a request after so many messages. Returns the newly masked observations, in order.
    pub fn request(&mut self, context: PlanContext, end: usize, is_now: bool) -> Vec<Masked> {
        self.grow(context, end);
        let moves = self.moves_at(context, end, is_now);
        self.core.waste = self.core.waste.saturating_add(self.core.gain);
        let masked = if moves { self.advance(context) } else { vec![] };
        self.core.requests += 1;
        (self.core.before, self.core.new_gain, self.is_rewritten) = (end, 0, false);
        if !masked.is_empty() && context.policy.boundary.remembers() && !self.points.is_empty() {
            self.add_point(end + 1); // the request is made when the next message is appended
        }
        masked
    }

    /// Enables rewinding, to no fewer than so many messages.
    pub fn enable_rewind(&mut self, messages: usize) {
        self.points.clear();
        self.masked_by_time.clear();
        self.add_point(messages);
    }

    fn add_point(&mut self, messages: usize) {
        let (masked, moves) = (self.masked_by_time.len(), self.moves.len());
        self.points.push(Point { messages, masked, moves, core: self.core.clone() });
    }

    /// Restores the last rewind point for so many messages; the caller repeats the requests after it. Returns the messages that
    /// the point needs, and the observations that are no longer masked.
    pub fn rewind(&mut self, outline: &Outline, messages: usize) -> (usize, Vec<Masked>) {
        while self.points.len() > 1 && self.points.last().is_some_and(|point| point.messages > messages) {
            self.points.pop();
        }
        let Some(Point { messages, masked, moves, core }) = self.points.last() else { return (0, vec![]) };
        self.moves.truncate(*moves);
        self.core = core.clone();
        self.chars_before.truncate(self.core.aging.messages());
        let mut undone = self.masked_by_time.split_off(*masked);
        undone.sort_unstable();
        let Some(first) = undone.first() else { return (*messages, vec![]) };
        let first = self.masked.partition_point(|one| one.result < *first);
        let is_undone = |one: &mut Masked| undone.binary_search(&one.result).is_ok();
        let is_here = |one: &Masked| (one.result as usize) < outline.results.len();
        let unmasked: Vec<Masked> = self.masked.extract_if(first.., is_undone).filter(is_here).collect();
        shift(&mut self.chars_before, outline, &unmasked, usize::saturating_add);
        (*messages, unmasked)
    }

    /// Whether the boundary moves at a request after so many messages, to which the fold must have grown.
    #[must_use]
    pub fn moves_at(&self, context: PlanContext, end: usize, is_now: bool) -> bool {
        let PlanContext { outline, policy, .. } = context;
        let pays = match policy.boundary {
            Boundary::Sliding | Boundary::Stepped(_) => true,
            Boundary::BreakEven { read, write } => {
                let waste = self.core.waste.saturating_add(self.core.gain);
                // The prompt of a request with a cold cache is written in any case.
                let is_cold = |request: usize| policy.cache_cold.binary_search(&request).is_ok();
                let is_cold = is_cold(self.evicted_messages + end) || (is_now && is_cold(NOW));
                self.is_rewritten || is_cold || cost(waste, read) >= cost(self.written_again(outline), write - read)
            }
            Boundary::HighWater { chars, at_least } => self.chars_before(end) > chars && self.core.gain >= at_least,
            Boundary::Optimum { .. } | Boundary::Triggered(_) => false,
        };
        pays || (policy.boundary.remembers() && policy.max_cost.is_some_and(|max| self.core.cost > max))
    }

    /// Characters that a move would write to the cache again: those after the first change that the previous request had sent.
    fn written_again(&self, outline: &Outline) -> usize {
        let first = self.core.first.map_or(self.core.before, |first| message_of(outline, first)).min(self.core.before);
        // Without an earlier request all of the gain is new.
        self.chars_before(self.core.before)
            - self.chars_before(first)
            - self.core.gain.saturating_sub(self.core.new_gain)
    }

    /// Adds messages up to this number.
    pub fn grow(&mut self, context: PlanContext, end: usize) {
        let PlanContext { outline, policy, costs, .. } = context;
        for message in self.chars_before.len()..end {
            let chars = self.summary.chars(message, outline.chars_of(message, policy.image_chars));
            self.chars_before.push(self.chars_before(message).saturating_add(chars));
            self.core.cost = self.core.cost.saturating_add(match costs {
                None => chars,
                Some(costs) => outline
                    .results_of(message)
                    .map(|result| costs.observations[result].0)
                    .fold(costs.messages[message], usize::saturating_add),
            });
        }
        self.excluded.grow(policy, outline);
        let masker = Masker::of(context, &self.excluded);
        let waiting = &mut self.core.waiting;
        let (gain, new_gain, first, before) =
            (&mut self.core.gain, &mut self.core.new_gain, &mut self.core.first, self.core.before);
        let summary = &self.summary;
        self.core.aging.grow(context, end, |result| {
            let message = outline.results[result].message as usize;
            if let Some(masked) = (!summary.hides(message)).then(|| masker.mask(result)).flatten() {
                *gain += masked.removed;
                if message >= before {
                    *new_gain += masked.removed;
                }
                *first = Some(first.map_or(masked.result, |first| first.min(masked.result)));
                waiting.push(masked);
            }
        });
    }

    pub(super) fn into_masking(self) -> Masking {
        Masking { masked: self.masked, removed: self.core.removed, boundary: self.core.boundary, moves: self.moves }
    }

    /// The effect of moving the boundary now, rounded by the policy or not; None if nothing would change.
    #[must_use]
    pub fn peek(&self, context: PlanContext, is_rounded: bool) -> Option<Peek> {
        let PlanContext { outline, policy, costs, .. } = context;
        if self.core.waiting.is_empty() || self.core.removed + self.core.gain < policy.min_masked_chars {
            return None;
        }
        let older_end = self.core.aging.older_end;
        let boundary = if is_rounded { self.rounded(policy, older_end) } else { older_end };
        let is_passed = |one: &&Masked| (one.result as usize) < boundary;
        let mut now: Vec<Masked> = self.core.waiting.iter().filter(is_passed).cloned().collect();
        let moved: usize = now.iter().map(|one| one.removed).sum();
        if now.is_empty() || self.core.removed + moved < policy.min_masked_chars {
            return None;
        }
        now.sort_unstable_by_key(|one| one.result);
        let cost = cost_after(self.core.cost, &now, moved, costs);
        let written_again = self.written_again(outline);
        let step = Move { request: self.core.requests, masked: now.len(), removed: moved, written_again };
        Some(Peek { masked: now, cost, step })
    }

    /// Characters that masking removed.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.core.removed
    }

    /// The cost of the view.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.core.cost
    }

    /// Moves the boundary as far as the policy permits, if that removes enough. Returns the newly masked observations, in order.
    pub fn advance(&mut self, context: PlanContext) -> Vec<Masked> {
        let PlanContext { outline, policy, .. } = context;
        let boundary = self.rounded(policy, self.core.aging.older_end);
        let is_passed = |result: u32| (result as usize) < boundary;
        if !self.core.first.is_some_and(is_passed) || self.core.removed + self.core.gain < policy.min_masked_chars {
            return vec![];
        }
        let moved: usize = self.core.waiting.iter().filter(|one| is_passed(one.result)).map(|one| one.removed).sum();
        if self.core.removed + moved < policy.min_masked_chars {
            return vec![];
        }
        let now = self.mask(context, is_passed);
        if policy.boundary.remembers() {
            let first = message_of(outline, now[0].result);
            let written_again = self.chars_before(self.core.before) - self.chars_before(first.min(self.core.before));
            self.moves.push(Move { request: self.core.requests, masked: now.len(), removed: moved, written_again });
        }
        self.core.boundary = boundary;
        self.core.waste = 0;
        let grown = self.core.aging.messages();
        if !policy.boundary.remembers()
            && self.points.last().is_some_and(|last| grown >= last.messages + POINT_INTERVAL)
        {
            self.add_point(grown);
        }
        now
    }

    /// Masks the waiting observations for which `is_included` is true. Returns them, in order.
    fn mask(&mut self, context: PlanContext, is_included: impl Fn(u32) -> bool) -> Vec<Masked> {
        let PlanContext { outline, costs, .. } = context;
        let mut now: Vec<Masked> = self.core.waiting.extract_if(.., |one| is_included(one.result)).collect();
        now.sort_unstable_by_key(|one| one.result);
        let Some(first) = now.first().map(|first| first.result) else { return now };
        let removed = shift(&mut self.chars_before, outline, &now, |chars, removed| chars - removed);
        self.core.cost = cost_after(self.core.cost, &now, removed, costs);
        let is_in_order = self.masked.last().is_none_or(|last| last.result < first);
        self.masked.extend_from_slice(&now);
        if !self.points.is_empty() {
            self.masked_by_time.extend(now.iter().map(|one| one.result));
        }
        if !is_in_order {
            self.masked.sort_unstable_by_key(|one| one.result);
        }
        self.core.removed += removed;
        self.core.gain -= removed;
        self.core.first = self.core.waiting.iter().map(|one| one.result).min();
        now
    }
}

/// Adjusts the prefix sums for masking or unmasking these, in order. Returns the characters removed in total.
fn shift(
    chars_before: &mut [usize],
    outline: &Outline,
    masked: &[Masked],
    change: impl Fn(usize, usize) -> usize,
) -> usize {
    let first = masked.first().map_or(usize::MAX, |one| message_of(outline, one.result));
    let (mut removed, mut next) = (0, masked.iter().peekable());
    for (message, chars) in chars_before.iter_mut().enumerate().skip(first) {
        while let Some(one) = next.next_if(|one| message_of(outline, one.result) == message) {
            removed += one.removed;
        }
        *chars = change(*chars, removed);
    }
    removed
}

/// The cost of a view after masking these, which removes so many characters.
fn cost_after(cost: usize, masked: &[Masked], removed: usize, costs: Option<&Costs>) -> usize {
    let Some(costs) = costs else { return cost - removed };
    masked.iter().fold(cost, |cost, one| {
        let (raw, after) = costs.observations[one.result as usize];
        (cost - raw).saturating_add(after)
    })
}

fn message_of(outline: &Outline, result: u32) -> usize {
    outline.results[result as usize].message as usize
}

/// The first message with one of these observations; `usize::MAX` if there are none.
pub(super) fn first_changed(outline: &Outline, masked: &[Masked]) -> usize {
    masked.first().map_or(usize::MAX, |first| message_of(outline, first.result))
}
