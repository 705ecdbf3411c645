//! Where the boundary stands at each request of a history. A fold over the requests: a beginning of a history has the
//! boundary that it had when it was the whole, so a session that grows and a plan made afresh agree.
//!
//! A mask shortens what is sent, but it changes the prompt in the middle, and a prompt cache serves only what stands
//! before the first change. The break-even rule is that of a person who rents skis, and buys them once the rent paid
//! would have bought them: each request that sends what could have been masked adds to the waste, and when the waste,
//! read from the cache, has cost what it costs to write again what stands behind the change, the boundary moves.

use super::mask::{Excluded, Masker, Masking};
use super::window::Aging;
use super::{Costs, Ground, Masked};
use crate::outline::Outline;
use crate::policy::{Boundary, NOW, Policy};

/// A move of the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Before which request, from 0.
    pub request: usize,
    /// How many observations it masked.
    pub masked: usize,
    /// Characters that it removed.
    pub removed: usize,
    /// Characters behind the first change that the request before had sent, and that had to be written again.
    pub written_again: usize,
}

impl Move {
    /// Its numbers, in the order of its fields.
    #[must_use]
    pub fn numbers(self) -> [usize; 4] {
        [self.request, self.masked, self.removed, self.written_again]
    }

    /// The move of these numbers.
    #[must_use]
    pub fn of([request, masked, removed, written_again]: [usize; 4]) -> Self {
        Move { request, masked, removed, written_again }
    }
}

/// What a move would do.
#[derive(Debug)]
pub struct Peek {
    /// What it would mask, in order.
    pub masked: Vec<Masked>,
    /// What the view would cost then.
    pub cost: usize,
    /// The move itself.
    pub step: Move,
}

/// What so many characters cost, at a price of one.
#[expect(clippy::cast_precision_loss, reason = "no history has 2^53 characters")]
pub(super) fn cost(chars: usize, price: f64) -> f64 {
    chars as f64 * price
}

/// A summary that stands in a view.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Of each message, whether it is what the summary stands for.
    pub hidden: Vec<bool>,
    /// The hidden message in whose place it stands.
    pub place: usize,
    /// Its characters.
    pub chars: usize,
}

impl Standing {
    fn hides(&self, message: usize) -> bool {
        self.hidden.get(message) == Some(&true)
    }

    /// What stands in the place of a message of so many characters.
    fn chars(&self, message: usize, chars: usize) -> usize {
        match self.hides(message) {
            false => chars,
            true if message == self.place => self.chars,
            true => 0,
        }
    }
}

/// What a fold knows of messages that are let go, and of those that it goes on with more than they tell.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FoldState {
    /// Messages that are let go.
    pub messages: usize,
    /// Their observations, and how many of them are masked.
    pub observations: usize,
    /// See `observations`.
    pub masked_count: usize,
    /// Characters of the view before the messages that are there.
    pub chars: usize,
    /// Characters that all masking removed.
    pub removed: usize,
    /// Characters that requests since the last move sent without need.
    pub waste: usize,
    /// How many requests there were.
    pub requests: usize,
    /// How many of the messages that are there had come at the last of them.
    pub before: usize,
    /// Which of the observations that are there are masked, ascending.
    pub masked: Vec<u32>,
}

/// The state between two requests.
#[derive(Debug, Default)]
pub struct Fold {
    /// Messages that were let go, their observations, how many of these are masked, and the messages' characters in the
    /// view.
    messages_let_go: usize,
    observations_let_go: usize,
    masked_let_go: usize,
    chars_let_go: usize,
    excluded: Excluded,
    summary: Standing,
    /// All of the view will be written again at the next request, whether the boundary moves or not.
    is_rewritten: bool,
    /// Characters of the view before each message but the first, and at its end.
    chars_before: Vec<usize>,
    now: Now,
    /// What is masked, in order.
    pub masked: Vec<Masked>,
    /// How the boundary came to where it is.
    pub moves: Vec<Move>,
    /// Where it can be rewound to: its beginning, and each move. Empty where it never will be.
    points: Vec<Point>,
    /// While it can be: the results of `masked`, in the order in which they were masked.
    masked_by_time: Vec<u32>,
}

/// What requests change of a fold, beside its lists that only grow. It takes no more room than its window.
#[derive(Debug, Default, Clone)]
struct Now {
    aging: Aging,
    /// What the view costs.
    cost: usize,
    /// Older than the window, but not masked; what masking them would remove, and the first of them.
    waiting: Vec<Masked>,
    gain: usize,
    /// The part of it in messages that came since the request before.
    new_gain: usize,
    first: Option<u32>,
    /// Characters that requests since the last move sent without need.
    waste: usize,
    requests: usize,
    /// How many messages there were at the request before: what came since is new, and is written in any case.
    before: usize,
    /// Characters that masking removed.
    removed: usize,
    /// The place of the boundary in the sequence of observations.
    boundary: usize,
}

/// A boundary that moves at each request has no point for each move, but one after about so many messages.
const BETWEEN: usize = 64;

/// A fold as it was, and the messages without which it was not.
#[derive(Debug)]
struct Point {
    messages: usize,
    masked: usize,
    moves: usize,
    now: Now,
}

impl Fold {
    /// The observations that could be masked at these requests, in order, and how many of them at each.
    pub(super) fn aged(ground: Ground, requests: &[usize]) -> (Vec<Masked>, Vec<usize>) {
        let mut fold = Fold::default();
        let older = requests.iter().map(|end| {
            fold.grow(ground, *end);
            fold.now.waiting.len()
        });
        let older = older.collect();
        (fold.now.waiting, older)
    }

    /// A view that begins anew, since its summary is another one, and that was of so many messages at the request before.
    pub(super) fn anew(summary: Standing, before: usize) -> Self {
        Fold { summary, now: Now { before, ..Now::default() }, is_rewritten: true, ..Fold::default() }
    }

    /// How many of the first observations no later request can change: they are masked, or never will be.
    #[must_use]
    pub fn settled(&self, policy: &Policy) -> usize {
        let older = self.rounded(policy, self.now.aging.older_end);
        let waiting = self.now.first.map(|first| first as usize);
        waiting.into_iter().chain(self.now.aging.first_young()).fold(older, usize::min)
    }

    /// Messages before this one are in no window, and were there at the last request.
    #[must_use]
    pub fn settled_messages(&self, ground: Ground) -> usize {
        let start = self.now.aging.start(ground);
        if ground.policy.boundary.remembers() { start.min(self.now.before) } else { start }
    }

    /// The first message of the window, as the history has grown so far.
    #[must_use]
    pub fn window_start(&self, ground: Ground) -> usize {
        let (start, outline) = (self.now.aging.start(ground), ground.outline);
        let results = outline.results_before(self.chars_before.len());
        let first = ground.policy.keep_results.filter(|count| *count > 0).map(|count| results.saturating_sub(count));
        start.min(match first {
            None => usize::MAX,
            Some(0) => 0,
            Some(first) => outline.results[first].message as usize,
        })
    }

    /// Characters that requests since the last move sent without need.
    #[must_use]
    pub fn waste(&self) -> usize {
        self.now.waste
    }

    /// How many observations are masked, those that were let go too.
    #[must_use]
    pub fn masked_count(&self) -> usize {
        self.masked_let_go + self.masked.len()
    }

    /// What is to be known when the messages before this one are let go, all of whose observations are settled.
    #[must_use]
    pub fn state_without(&self, ground: Ground, messages: usize) -> FoldState {
        let gone = ground.outline.results_before(messages);
        let (masked_gone, masked) =
            self.masked.split_at(self.masked.partition_point(|one| (one.result as usize) < gone));
        FoldState {
            messages: self.messages_let_go + messages,
            observations: self.observations_let_go + gone,
            masked_count: self.masked_let_go + masked_gone.len(),
            chars: self.chars_before(messages),
            removed: self.now.removed,
            waste: self.now.waste,
            requests: self.now.requests,
            before: self.now.before.saturating_sub(messages),
            masked: masked.iter().map(|one| one.result - gone as u32).collect(),
        }
    }

    /// The fold of this state, over the messages that are there.
    #[must_use]
    pub fn resumed(ground: Ground, state: &FoldState) -> Self {
        let mut fold = Fold {
            messages_let_go: state.messages,
            observations_let_go: state.observations,
            masked_let_go: state.masked_count,
            chars_let_go: state.chars,
            now: Now { waste: state.waste, requests: state.requests, ..Now::default() },
            ..Fold::default()
        };
        fold.grow(ground, state.before);
        (fold.now.before, fold.now.new_gain) = (state.before, 0);
        fold.grow(ground, ground.outline.messages.len());
        fold.mask(ground, |result| state.masked.binary_search(&result).is_ok());
        fold.now.removed = state.removed;
        fold
    }

    /// A boundary of the policy among the observations that are there.
    fn rounded(&self, policy: &Policy, boundary: usize) -> usize {
        policy.rounded(self.observations_let_go + boundary).saturating_sub(self.observations_let_go)
    }

    /// Characters of the view before a message; before the one that does not exist yet, of the whole.
    #[must_use]
    pub fn chars_before(&self, message: usize) -> usize {
        message.checked_sub(1).map_or(self.chars_let_go, |before| self.chars_before[before])
    }

    /// A request is made after this many messages. Gives what its view masks, and the view before did not; in order.
    pub fn request(&mut self, ground: Ground, end: usize, is_now: bool) -> Vec<Masked> {
        self.grow(ground, end);
        let moves = self.moves_at(ground, end, is_now);
        self.now.waste = self.now.waste.saturating_add(self.now.gain);
        let masked = if moves { self.advance(ground) } else { vec![] };
        self.now.requests += 1;
        (self.now.before, self.now.new_gain, self.is_rewritten) = (end, 0, false);
        if !masked.is_empty() && ground.policy.boundary.remembers() && !self.points.is_empty() {
            self.add_point(end + 1); // a request is made when the message after these comes
        }
        masked
    }

    /// From here on it can be rewound to where so many messages have come, and no further.
    pub fn begin(&mut self, messages: usize) {
        self.points.clear();
        self.masked_by_time.clear();
        self.add_point(messages);
    }

    fn add_point(&mut self, messages: usize) {
        let (masked, moves) = (self.masked_by_time.len(), self.moves.len());
        self.points.push(Point { messages, masked, moves, now: self.now.clone() });
    }

    /// Only so many messages have come: the fold is as it was at the last move before that, from where the requests
    /// since are to be made again. Gives the messages without which it was not so, and what is masked no longer.
    pub fn rewind(&mut self, outline: &Outline, messages: usize) -> (usize, Vec<Masked>) {
        while self.points.len() > 1 && self.points.last().is_some_and(|point| point.messages > messages) {
            self.points.pop();
        }
        let Some(Point { messages, masked, moves, now }) = self.points.last() else { return (0, vec![]) };
        self.moves.truncate(*moves);
        self.now = now.clone();
        self.chars_before.truncate(self.now.aging.messages());
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

    /// Whether the boundary moves at a request after this many messages, to which the fold has grown.
    #[must_use]
    pub fn moves_at(&self, ground: Ground, end: usize, is_now: bool) -> bool {
        let Ground { outline, policy, .. } = ground;
        let pays = match policy.boundary {
            Boundary::Sliding | Boundary::Stepped(_) => true,
            Boundary::BreakEven { read, write } => {
                let waste = self.now.waste.saturating_add(self.now.gain);
                // A request that finds the cache cold is not served anything anyway.
                let is_cold = |request: usize| policy.cache_cold.binary_search(&request).is_ok();
                let is_cold = is_cold(self.messages_let_go + end) || (is_now && is_cold(NOW));
                self.is_rewritten || is_cold || cost(waste, read) >= cost(self.written_again(outline), write - read)
            }
            Boundary::HighWater(chars) => self.chars_before(end) > chars,
            Boundary::Optimum { .. } => false,
        };
        pays || (policy.boundary.remembers() && policy.max_cost.is_some_and(|max| self.now.cost > max))
    }

    /// What masking all that waits would have a cache written again: of what the request before sent, the view behind
    /// the first change.
    fn written_again(&self, outline: &Outline) -> usize {
        let first = self.now.first.map_or(self.now.before, |first| message_of(outline, first)).min(self.now.before);
        // A fold without requests has nothing that came before one, and masks what is new as well.
        self.chars_before(self.now.before) - self.chars_before(first) - self.now.gain.saturating_sub(self.now.new_gain)
    }

    /// The history has grown to this many messages.
    pub fn grow(&mut self, ground: Ground, end: usize) {
        let Ground { outline, policy, costs, .. } = ground;
        for message in self.chars_before.len()..end {
            let chars = self.summary.chars(message, outline.chars_of(message, policy.image_chars));
            self.chars_before.push(self.chars_before(message).saturating_add(chars));
            self.now.cost = self.now.cost.saturating_add(match costs {
                None => chars,
                Some(costs) => outline
                    .results_of(message)
                    .map(|result| costs.observations[result].0)
                    .fold(costs.messages[message], usize::saturating_add),
            });
        }
        self.excluded.grow(policy, outline);
        let masker = Masker::of(ground, &self.excluded);
        let waiting = &mut self.now.waiting;
        let (gain, new_gain, first, before) =
            (&mut self.now.gain, &mut self.now.new_gain, &mut self.now.first, self.now.before);
        let summary = &self.summary;
        self.now.aging.grow(ground, end, |result| {
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
        Masking { masked: self.masked, removed: self.now.removed, boundary: self.now.boundary, moves: self.moves }
    }

    /// What moving the boundary would mask, in order: up to the boundary of the policy, or to all that is older. And
    /// what the view would cost then. None where nothing would change.
    #[must_use]
    pub fn peek(&self, ground: Ground, is_rounded: bool) -> Option<Peek> {
        let Ground { outline, policy, costs, .. } = ground;
        if self.now.waiting.is_empty() || self.now.removed + self.now.gain < policy.min_masked_chars {
            return None;
        }
        let older_end = self.now.aging.older_end;
        let boundary = if is_rounded { self.rounded(policy, older_end) } else { older_end };
        let is_passed = |one: &&Masked| (one.result as usize) < boundary;
        let mut now: Vec<Masked> = self.now.waiting.iter().filter(is_passed).cloned().collect();
        let moved: usize = now.iter().map(|one| one.removed).sum();
        if now.is_empty() || self.now.removed + moved < policy.min_masked_chars {
            return None;
        }
        now.sort_unstable_by_key(|one| one.result);
        let cost = cost_after(self.now.cost, &now, moved, costs);
        let written_again = self.written_again(outline);
        let step = Move { request: self.now.requests, masked: now.len(), removed: moved, written_again };
        Some(Peek { masked: now, cost, step })
    }

    /// Characters that masking removed.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.now.removed
    }

    /// What the view costs.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.now.cost
    }

    /// Moves the boundary as far as the policy lets it, if that removes enough. Gives what is masked by it, in order.
    pub fn advance(&mut self, ground: Ground) -> Vec<Masked> {
        let Ground { outline, policy, .. } = ground;
        let boundary = self.rounded(policy, self.now.aging.older_end);
        let is_passed = |result: u32| (result as usize) < boundary;
        if !self.now.first.is_some_and(is_passed) || self.now.removed + self.now.gain < policy.min_masked_chars {
            return vec![];
        }
        let moved: usize = self.now.waiting.iter().filter(|one| is_passed(one.result)).map(|one| one.removed).sum();
        if self.now.removed + moved < policy.min_masked_chars {
            return vec![];
        }
        let now = self.mask(ground, is_passed);
        if policy.boundary.remembers() {
            let first = message_of(outline, now[0].result);
            let written_again = self.chars_before(self.now.before) - self.chars_before(first.min(self.now.before));
            self.moves.push(Move { request: self.now.requests, masked: now.len(), removed: moved, written_again });
        }
        self.now.boundary = boundary;
        self.now.waste = 0;
        let grown = self.now.aging.messages();
        if !policy.boundary.remembers() && self.points.last().is_some_and(|last| grown >= last.messages + BETWEEN) {
            self.add_point(grown);
        }
        now
    }

    /// Masks what waits and is meant. Gives it, in order.
    fn mask(&mut self, ground: Ground, is_meant: impl Fn(u32) -> bool) -> Vec<Masked> {
        let Ground { outline, costs, .. } = ground;
        let mut now: Vec<Masked> = self.now.waiting.extract_if(.., |one| is_meant(one.result)).collect();
        now.sort_unstable_by_key(|one| one.result);
        let Some(first) = now.first().map(|first| first.result) else { return now };
        let removed = shift(&mut self.chars_before, outline, &now, |chars, removed| chars - removed);
        self.now.cost = cost_after(self.now.cost, &now, removed, costs);
        let is_in_order = self.masked.last().is_none_or(|last| last.result < first);
        self.masked.extend_from_slice(&now);
        if !self.points.is_empty() {
            self.masked_by_time.extend(now.iter().map(|one| one.result));
        }
        if !is_in_order {
            self.masked.sort_unstable_by_key(|one| one.result);
        }
        self.now.removed += removed;
        self.now.gain -= removed;
        self.now.first = self.now.waiting.iter().map(|one| one.result).min();
        now
    }
}

/// Masking these, in order, shortens the view before each message after them, or its end lengthens it; by how much in all.
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

/// What a view costs with more observations masked, which removes so many characters.
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

/// The first message that these observations, masked, change in a view; none is `usize::MAX`.
pub(super) fn first_changed(outline: &Outline, masked: &[Masked]) -> usize {
    masked.first().map_or(usize::MAX, |first| message_of(outline, first.result))
}
