//! Units of the rules: characters and blocks, charges of requests, and places of results.

use crate::outline::Outline;
use crate::policy::{CachePrices, Policy};

/// The cost of characters at a price per character.
#[expect(clippy::cast_precision_loss, reason = "no history has 2^53 characters")]
pub(super) fn cost(chars: usize, price: f64) -> f64 {
    chars as f64 * price
}

/// Characters that requests read from the cache, and write to it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charged {
    pub read: usize,
    pub written: usize,
}

impl Charged {
    /// A request of this many characters that reads this many of them.
    pub(super) fn request(chars: usize, read: usize) -> Self {
        Charged { read: read.min(chars), written: chars.saturating_sub(read) }
    }

    pub(super) fn and_written(self, chars: usize) -> Self {
        Charged { written: self.written.saturating_add(chars), ..self }
    }

    pub(super) fn and(self, other: Charged) -> Self {
        Charged { read: self.read.saturating_add(other.read), written: self.written.saturating_add(other.written) }
    }

    pub(super) fn cost(self, prices: CachePrices) -> f64 {
        cost(self.read, prices.read) + cost(self.written, prices.write)
    }
}

/// The charge of a request: with the raw history, with the boundary where it is, and after a move.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bill {
    pub raw: Charged,
    pub stay: Charged,
    pub go: Charged,
    /// Characters of the system prompt that the move may write again.
    pub again: usize,
    /// The move writes the system prompt again, which has no entry of its own.
    pub rewrites_system: bool,
    /// The cache has nothing.
    pub is_cold: bool,
}

/// Charges of all requests so far, and the entry that a mark at the boundary has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paid {
    /// The charge of the views that were sent.
    pub view: Charged,
    /// The charge of the raw history.
    pub raw: Charged,
    /// Characters of the view up to the last masked observation.
    pub boundary: usize,
    /// Characters up to the boundary, if the request before was marked there; else 0.
    pub marked: usize,
    /// Messages before the first change at the last move: they are an entry where the cache has what requests share.
    pub shared: usize,
    /// Characters given to models for summaries, and written by them.
    pub calls: (usize, usize),
    /// How many requests were charged, and how many of them wrote the system prompt again that raw read.
    pub requests: usize,
    pub system_rewrites: usize,
}

impl Paid {
    /// Adds what a request was charged, whose view is another one than before if `is_rewritten`, and the call of a model for a summary.
    pub(super) fn pay(&mut self, bill: &Bill, is_moved: bool, is_rewritten: bool, call: Option<(usize, usize)>) {
        self.view = self.view.and(if is_moved { bill.go.and_written(bill.again) } else { bill.stay });
        self.raw = self.raw.and(bill.raw);
        self.requests += 1;
        self.shared = if bill.is_cold { 0 } else { self.shared };
        self.system_rewrites += usize::from(bill.rewrites_system && (is_moved || is_rewritten));
        *self = call.map_or(*self, |call| self.with_summary(call));
    }

    /// After a call of a model for a summary.
    pub(super) fn with_summary(self, (given, said): (usize, usize)) -> Self {
        let calls = (self.calls.0.saturating_add(given), self.calls.1.saturating_add(said));
        Paid { calls, ..self }
    }

    /// Whether all requests, with one more of the view and of the raw history, are within the bound on cost, if there is one.
    pub(super) fn is_within(self, policy: &Policy, view: Charged, raw: Charged) -> bool {
        let Some((prices, part)) = policy.cost_bound() else { return true };
        let calls = policy.terms.summaries.map_or(0.0, |rules| rules.call_cost(self.calls));
        let system = self.system_excess(policy.terms.cache.system_chars, part, prices);
        self.view.and(view).cost(prices) + calls + system <= (1.0 + part) * self.raw.and(raw).cost(prices)
    }

    /// What a system prompt of at most this many characters costs beyond the bound, if this request writes it once more. Raw writes it
    /// at the first request, and reads it at each later one.
    fn system_excess(self, chars: usize, part: f64, CachePrices { read, write }: CachePrices) -> f64 {
        let raw = write + cost(self.requests, read);
        let more = cost(self.system_rewrites.saturating_add(1), write - read);
        cost(chars, (more - part * raw).max(0.0))
    }
}

/// How many content blocks a message has in a view. A result is one, masked or not; so is a text.
pub(crate) fn blocks_of(outline: &Outline, message: usize) -> usize {
    let pairs = outline.calls_of(message).len().max(outline.results_of(message).len());
    (outline.messages[message].blocks as usize).max(pairs).max(1)
}

/// The position of a block of a message among those that a mark looks back upon: a run of calls is one, and so is one of results.
pub(crate) fn position_of(outline: &Outline, message: usize, block: usize) -> usize {
    let calls = outline.calls[outline.calls_of(message)].windows(2).map(|pair| (pair[0].block, pair[1].block));
    let results = outline.results[outline.results_of(message)].windows(2).map(|pair| (pair[0].block, pair[1].block));
    let is_joined = |(one, next): &(u32, u32)| one + 1 == *next && *next as usize <= block;
    block - calls.chain(results).filter(is_joined).count().min(block)
}

/// How many of these positions a message has.
pub(crate) fn positions_of(outline: &Outline, message: usize) -> usize {
    position_of(outline, message, blocks_of(outline, message) - 1) + 1
}

/// The message of a result.
pub(super) fn message_of(outline: &Outline, result: u32) -> usize {
    outline.results[result as usize].message as usize
}
