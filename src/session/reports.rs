//! Reports about the provider: that its cache is cold, and the tokens that it counted. Both are part of the session:
//! stored at once, and resumed.
//!
//! The scale of a history is that of all growth that was reported, and of 15,000 tokens of four characters besides: what the first
//! requests say alone is worse than the constant. What a request has beside its view is the rest of its reported input.

use super::event::Event;
use super::{Result, Session};
use crate::policy::{ASSUMED_CHARS, Measured, Requests};
use crate::store::Store;

/// A change of less than this part of the characters of a thousand tokens, or of the limit, is none, unless the view is over the limit
/// by one of them alone.
const LEAST_CHANGE: usize = 50;
/// Tokens of four characters that count beside what was reported. With 5,000 to 120,000 the growth of 96 to 100 % of 49 logged
/// sessions was within 15 % (2026-11-28).
const PRIOR_TOKENS: usize = 15_000;
/// Bounds of the characters of a thousand tokens: beyond, something else than text was counted.
const LEAST_CHARS: usize = 1_000;
const MOST_CHARS: usize = 8_000;

/// What the provider counted for a request, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Its input.
    pub input: usize,
    /// What its view counts, in characters.
    pub view: usize,
    /// By how much views have grown between requests that begin alike, in characters and in tokens.
    pub growth: (usize, usize),
}

impl Session {
    /// New sums; what was counted for the current view, which counts from the next request on; and that the cache is cold, so that
    /// the boundary moves at the next request. An error of the store leaves it reported, and to be written with the next message.
    pub fn report(
        &mut self,
        sums: Option<Vec<usize>>,
        counted: Option<Counted>,
        is_cold: bool,
        store: Option<&mut Store>,
    ) -> Result<()> {
        if let Some(sums) = sums.filter(|sums| *sums != self.sums()) {
            self.happened(Event::Sums(self.len(), sums));
        }
        if let Some(counted) = counted {
            self.calibrate(counted);
        }
        if is_cold && !self.next_is_cold() {
            self.happened(Event::Cold(self.len()));
            self.view.is_current = false;
        }
        let Some(store) = store else { return Ok(()) };
        self.check_store(Some(store))?;
        self.write(store)
    }

    fn calibrate(&mut self, Counted { input, view, growth: (chars, tokens) }: Counted) {
        let scaled = |chars: usize, by: usize, of: usize| (chars as u128 * by as u128 / of as u128) as usize;
        let chars = scaled(PRIOR_TOKENS * ASSUMED_CHARS / 1_000 + chars, 1_000, PRIOR_TOKENS + tokens);
        let chars = chars.clamp(LEAST_CHARS, MOST_CHARS);
        let limit = self.policy.limit.max.unwrap_or(self.policy.limit.trigger);
        let beside = (input * ASSUMED_CHARS / 1_000).saturating_sub(scaled(view, ASSUMED_CHARS, chars));
        let before = self.events.calibrations().next_back().map_or(Measured::default(), |(_, measured)| measured);
        let measured = Measured { chars, beside };
        let is_over = |measured: Measured| view > measured.chars_of(limit);
        let is_near = |one: usize, other: usize, of: usize| one.abs_diff(other).saturating_mul(LEAST_CHANGE) < of;
        let is_nearly_same = is_near(before.chars, chars, before.chars) && is_near(before.beside, beside, limit.max(1));
        if is_nearly_same && is_over(before) == is_over(measured) {
            return;
        }
        self.happened(Event::Calibration(self.len() + 1, measured));
        self.renew_requests();
    }

    /// Changes what is known of requests to what was given, what was reported, and where the caller has marks.
    pub(super) fn renew_requests(&mut self) {
        let marks_elsewhere = self.own_mark.as_ref().map(|(_, elsewhere)| *elsewhere);
        self.requests = Requests {
            measured: if self.calibrates { self.events.calibrations().collect() } else { vec![] },
            cold: self.cold_requests(),
            marks_elsewhere: marks_elsewhere.unwrap_or(self.given_requests.marks_elsewhere),
            failed_summaries: self.failed_summaries(),
            ..Requests::default()
        };
        self.step_of = None;
    }

    /// What was measured: from how many messages on, characters of a thousand tokens, and quarter tokens beside the view.
    pub(crate) fn measured(&self) -> Vec<(usize, usize, usize)> {
        self.requests.measured.iter().map(|(since, Measured { chars, beside })| (*since, *chars, *beside)).collect()
    }

    /// Sums of what was reported, with the meaning that the caller gives them.
    pub fn sums(&self) -> &[usize] {
        self.events.sums()
    }

    /// How many messages precede each request with a cold cache, by the options and by what was reported: of a report the first
    /// request after it, which moves with each message until it is made.
    pub fn cold_requests(&self) -> Vec<usize> {
        let made = self.made_requests();
        let request = |reported: usize| made.get(made.partition_point(|start| (*start as usize) < reported));
        let reported = self.events.cold().filter(|reported| *reported <= self.len());
        let reported = reported.map(|reported| request(reported).map_or(self.len(), |start| *start as usize));
        let mut requests: Vec<usize> = self.given_requests.cold.iter().copied().chain(reported).collect();
        requests.sort_unstable();
        requests.dedup();
        requests
    }

    /// How many messages precede each request that was made.
    fn made_requests(&self) -> &[u32] {
        let (starts, end) = (&self.log.turns.starts, self.unrequested.unwrap_or(self.len()));
        &starts[..starts.partition_point(|start| (*start as usize) < end)]
    }

    /// Whether the cache was reported as cold since the last request of these, up to this many messages.
    fn is_cold_since(&self, requests: &[u32], messages: usize) -> bool {
        let since = requests.last().map_or(0, |start| *start as usize + 1);
        self.events.cold().any(|reported| (since..=messages).contains(&reported))
    }

    /// Whether the next request is known to have a cold cache.
    fn next_is_cold(&self) -> bool {
        self.is_cold_since(self.made_requests(), self.len())
    }

    /// The request before this message is made.
    pub(super) fn settle_cold(&mut self, message: usize) {
        let starts = &self.log.turns.starts;
        let before = &starts[..starts.partition_point(|start| (*start as usize) < message)];
        if self.is_cold_since(before, message) {
            self.renew_requests();
        }
    }

    /// A cold request moves with each message until it is made.
    pub(super) fn renew_requests_for_cold(&mut self) {
        if self.next_is_cold() {
            self.renew_requests();
        }
    }
}
