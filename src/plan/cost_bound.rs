//! What requests cost under the cache that the rule of the boundary assumes, and the bound on that: at no request have all views
//! so far cost more than the raw history would have, by more than `max_overcost` of it.
//!
//! **The problem.** A mask makes each later request cheaper, and the next one dearer: what follows the first change is written to
//! the cache again, often at ten times the price of reading it. Nobody knows how many requests will follow. To rent skis or to
//! buy them is the same question: the waste is the rent so far, of characters that were sent although they could have been
//! masked, and a move is the purchase. The boundary moves once reading the waste has cost [`BREAK_EVEN_AT`] of what the move
//! costs more.
//!
//! **Why that is not enough.** Rent alone bounds the cost by twice that of raw, and a session that ends right after a move has
//! paid for nothing. So two sums are kept, of what all views and the raw history were charged, and a move is made only if they
//! keep the bound with this move in them. It is checked at moves alone: before the first one both sums are the same, and after
//! one the view is shorter than raw and grows as raw does, so that no later request costs more than the bound allows of what raw
//! pays. The proof is in docs/cache-rule.md.
//!
//! **What is taken at its worst.** Only the provider knows what its cache held. The raw history is served all that it has sent;
//! the view what it has sent up to its first change, or what of that was marked, less the rest of a step
//! ([`ProviderCache::serves`]). A system prompt that may be too short for an entry of its own is charged again with a view that
//! keeps too little ([`ProviderCache::again`]). And after the move the view must be served wherever raw is ([`stays_cached`]), or
//! the next requests would break what this one kept.
//!
//! **Entries that are read only whole.** Where a cache has only the ends of whole requests, a move keeps nothing: of the requests
//! since the last move each ends after the new first change, and those before it end before that move's. What could be left, the
//! first messages before the first move, may have expired. (Some caches have an entry where two requests part as well: the next
//! move reads what precedes the first change of this one, [`Paid::shared`].) So the system prompt and the tools are written again
//! too, and they may be longer than all messages. Both sums are linear in their length: of one character raw pays `write` at the
//! first request and `read` at each later one, and each move adds `write - read` for the view. The bound holds for every length up
//! to a given one if it holds for none and for that one ([`Paid::is_within`]). A request that is not cold finds the one before it,
//! as raw does: so answers, which may be in its entry, are charged alike in both sums. If they are not in it, or messages after the
//! newest one of the user or of a tool are not, both sums are too low by no more for the view than for raw, which the bound allows.
//!
//! **Bounds.** A request is billed in constant time, from prefix sums of characters, but for its new messages and what a limit
//! changes. The sums are whole characters, and priced only where they are compared: so they are the same after a resume and a
//! rewind, and in another language. They depend on messages and options alone, never on marks, which clients move, nor on what a
//! summary says. Moves that a limit forces are charged and not prevented: the bound holds for what is free to choose.
//!
//! **Rivals.** Rent alone, the classic rule, costs at most twice raw, and promises no less. The same rule for a cache that keeps
//! every prefix moves earlier and is cheaper on some agents, but a session with a short prompt cost 1.17 of raw where 1.10 was
//! promised (docs/decisions/0022). Counting the system prompt and the tools would allow earlier moves within the bound, but one
//! more tool would then change every earlier decision. A boundary that slides at each request writes the window each time; fixed
//! steps have no bound at all. The optimum needs to know the end: with a cache that serves any prefix, sessions on record cost
//! 1.03 of it (docs/decisions/0016).

use super::context::PlanContext;
use super::masked::masked_in;
use super::state::State;
use super::step::{Point, Step};
use super::units::{Bill, Charged, cost, message_of, positions_of};
use crate::policy::{Boundary, CHARS_PER_TOKEN, CachePrices, NOW, Policy, Requests};
use crate::provider::{CacheRule, ProviderCache};

/// The boundary moves once the waste has cost this part of what the move costs.
pub(super) const BREAK_EVEN_AT: f64 = 0.5;

impl ProviderCache {
    /// The least characters of an entry.
    fn min_chars(self) -> usize {
        CHARS_PER_TOKEN.saturating_mul(self.min_tokens)
    }

    /// The rest of a prefix after whole steps, at most.
    fn step_rest_chars(self) -> usize {
        CHARS_PER_TOKEN.saturating_mul(self.step_tokens).saturating_sub(1)
    }

    /// The part of a prefix of this many characters that is served, at the least.
    fn serves(self, chars: usize) -> usize {
        if chars < self.min_chars() { 0 } else { chars.saturating_sub(self.step_rest_chars()) }
    }

    /// Characters of a system prompt that may be written again with a view of whose beginning the cache keeps this many: where
    /// these are too few, and those of the prompt as well.
    fn again(self, kept: usize, is_cold: bool) -> usize {
        if is_cold || self.serves(kept) > 0 { 0 } else { self.min_chars() }
    }
}

impl State {
    /// Characters of the beginning of the view that stay in the cache where this observation is the first that changes.
    pub(super) fn kept_before(&self, context: PlanContext, first: Option<u32>) -> usize {
        let PlanContext { outline, policy, .. } = context;
        let message = first.map_or(self.rule.before, |first| message_of(outline, first)).min(self.rule.before);
        match policy.terms.cache.rule {
            CacheRule::Ideal | CacheRule::Prefix => return self.chars_before(message),
            CacheRule::Entries if message < self.rule.before => {
                let is_shared = policy.terms.cache.shares_prefixes && self.rule.paid.shared <= message;
                return if is_shared { self.chars_before(self.rule.paid.shared) } else { 0 };
            }
            CacheRule::Entries => return self.chars_before(self.cached_end(context)),
            CacheRule::Breakpoints => {}
        }
        let is_after = |first: u32| self.results.masked.last().is_none_or(|last| last.result < first);
        let is_kept = first.is_some_and(is_after) && self.is_pinned(context);
        if is_kept { self.rule.paid.marked } else { 0 }
    }

    /// The message at which the newest entry ends: the first new one; where answers are in entries, the first after the last answer.
    fn cached_end(&self, context: PlanContext) -> usize {
        if context.policy.terms.cache.rule != CacheRule::Entries || self.rule.requests == 0 {
            return self.rule.before;
        }
        let is_new = |message: &usize| !context.outline.messages[*message].is_agent_made;
        (self.rule.before..self.messages()).find(is_new).unwrap_or_else(|| self.messages())
    }

    /// Whether this request writes a system prompt again that raw reads, if the cache keeps this many characters of the view.
    fn rewrites_system(&self, cache: ProviderCache, kept: usize, is_cold: bool) -> bool {
        cache.system_chars > 0 && self.rule.requests > 0 && kept == 0 && !is_cold
    }

    /// Whether this request is marked at the boundary, at a move at the old one. The mark gives way where the client's previous one
    /// is out of reach of its newest.
    pub(super) fn is_pinned(&self, context: PlanContext) -> bool {
        let new = self.rule.before..self.messages();
        context.policy.terms.pins_boundary
            && new.map(|message| positions_of(context.outline, message)).sum::<usize>()
                < context.policy.terms.cache.lookback_blocks
    }

    /// The charge of a request after this many messages, to which the state must have grown; None where no rule reads it.
    pub(super) fn bill(&self, context: PlanContext, end: usize, point: Point) -> Option<Bill> {
        let policy = context.policy;
        if !matches!(policy.terms.boundary, Boundary::BreakEven(_)) {
            return None;
        }
        let is_cold = is_cold(context.requests, end, point);
        let warm = |chars: usize| if is_cold || self.rule.is_rewritten { 0 } else { chars };
        let (chars, raw_chars) = (self.chars_before(end), self.raw_before(end));
        // Below the minimum nothing is cached; what that costs at least is taken to be reading.
        let is_short = raw_chars < policy.terms.cache.min_chars();
        let cached_end = self.cached_end(context);
        let raw_sent = if is_cold { 0 } else { self.raw_before(cached_end) };
        let raw = Charged::request(raw_chars, if is_short { raw_chars } else { raw_sent });
        let (sent, kept) = (warm(self.chars_before(cached_end)), warm(self.kept_before(context, self.results.first)));
        let is_raw = chars == raw_chars && !self.rule.is_rewritten;
        let stay = Charged::request(chars, policy.terms.cache.serves(sent))
            .and_written(policy.terms.cache.again(sent, is_cold));
        let moved = Charged::request(chars.saturating_sub(self.results.gain), policy.terms.cache.serves(kept));
        Some(Bill {
            raw,
            stay: if is_raw { raw } else { stay },
            go: moved,
            again: policy.terms.cache.again(kept, is_cold),
            rewrites_system: self.rewrites_system(policy.terms.cache, kept, is_cold),
            is_cold,
        })
    }

    /// The bill of a request whose step the rule of the boundary did not choose. What it cuts that was not sent before leaves the cache
    /// as it is; where it hides messages, the view is written whole.
    pub(super) fn forced_bill(
        &self,
        context: PlanContext,
        (end, point): (usize, Point),
        bill: &Bill,
        step: &Step,
    ) -> Bill {
        let cache = context.policy.terms.cache;
        let is_paused = is_cold(context.requests, end, point);
        let (is_cold, hides) = (is_paused || self.rule.is_rewritten, step.hiding.is_some());
        let kept = match step.moved {
            _ if is_cold || hides => 0,
            Some(_) => self.kept_before(context, step.first_change()),
            None => self.chars_before(self.cached_end(context)),
        };
        let moved = Charged::request(self.chars_after(end, step), cache.serves(kept));
        let again = cache.again(kept, is_cold && !hides);
        let rewrites = self.rewrites_system(cache, kept, is_paused);
        let rewrites_system = if hides { cache.system_chars > 0 } else { rewrites };
        Bill { stay: moved.and_written(again), go: moved, again, rewrites_system, ..*bill }
    }

    /// Whether the waste has cost this part of what a move costs more at these prices, and the move keeps the bound on cost.
    pub(super) fn breaks_even(&self, policy: &Policy, bill: &Bill, prices: CachePrices, part: f64) -> bool {
        let waste = self.rule.waste.saturating_add(self.results.gain);
        let extra = bill.go.cost(prices) - bill.stay.cost(prices);
        let system = if bill.rewrites_system { policy.terms.cache.system_chars } else { 0 };
        let is_no_dearer = || extra + cost(bill.again, prices.write) + cost(system, prices.write - prices.read) <= 0.0;
        cost(waste, prices.read) >= part * extra
            && (is_no_dearer() || self.rule.paid.is_within(policy, bill.go.and_written(bill.again), bill.raw))
            && stays_cached(policy, bill.raw, bill.go)
    }

    /// Whether a summary keeps the bound on cost that leaves this many characters of the view, all of which are written again.
    pub(super) fn permits_summary(
        &self,
        policy: &Policy,
        bill: Option<&Bill>,
        chars: usize,
        call: (usize, usize),
    ) -> bool {
        let Some(Bill { raw, .. }) = bill else { return true };
        let (view, again) = (Charged::request(chars, 0), policy.terms.cache.again(0, false));
        self.rule.paid.with_summary(call).is_within(policy, view.and_written(again), *raw)
            && stays_cached(policy, *raw, view)
    }

    /// Characters of the view up to the last masked observation. What follows results in a message is counted before them.
    pub(super) fn boundary_chars(&self, context: PlanContext) -> usize {
        let PlanContext { outline, policy, .. } = context;
        let Some(last) = self.results.masked.last().map(|last| last.result) else { return 0 };
        let message = message_of(outline, last);
        let after = last as usize + 1..outline.results_before(message + 1);
        let cut: usize = masked_in(&self.results.cuts, after.clone()).iter().map(|one| one.removed).sum();
        let growth = |result: usize| self.results.references.source_of(result as u32).map_or(0, |(_, growth)| growth);
        let grown: isize = after.map(growth).sum();
        let later = outline.later_chars(last as usize, policy.text.image_chars).saturating_add_signed(grown);
        self.chars_before(message + 1).saturating_sub(later.saturating_sub(cut))
    }
}

/// Whether the cache has nothing for a request after this many messages: its prompt is written in any case.
fn is_cold(requests: &Requests, end: usize, point: Point) -> bool {
    let is_listed = |request: usize| requests.cold.binary_search(&request).is_ok();
    is_listed(end) || (point == Point::Now && is_listed(NOW))
}

/// Whether after the move, and at each request to come, the view is served nearly as much of it as the raw history would be.
fn stays_cached(policy: &Policy, raw: Charged, view: Charged) -> bool {
    let Some((CachePrices { read, write }, part)) = policy.cost_bound() else { return true };
    let (cache, raw, view) = (policy.terms.cache, raw.read + raw.written, view.read + view.written);
    view >= cache.min_chars()
        && cost(raw.saturating_sub(view), read) + part * cost(raw, read) >= cost(cache.step_rest_chars(), write - read)
}
