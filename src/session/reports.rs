//! Reports about the provider: that its cache is cold, and the tokens that it counted. Both are part of the session:
//! stored at once, and resumed.

use super::event::Event;
use super::{Result, Session};
use crate::policy::{ASSUMED_CHARS, Requests};
use crate::store::Store;

/// A change of less than this part of the characters of a thousand tokens is none.
const LEAST_CHANGE: usize = 50;

impl Session {
    /// New sums; how many characters a thousand tokens have, from the next request on; and that the cache is cold, so that the
    /// boundary moves at the next request. An error of the store leaves it reported, and to be written with the next message.
    pub fn report(
        &mut self,
        sums: Option<Vec<usize>>,
        calibrated_chars: Option<usize>,
        is_cold: bool,
        store: Option<&mut Store>,
    ) -> Result<()> {
        if let Some(sums) = sums.filter(|sums| *sums != self.sums()) {
            self.happened(Event::Sums(self.len(), sums));
        }
        if let Some(chars) = calibrated_chars {
            self.calibrate(chars);
        }
        if is_cold && !self.next_is_cold() {
            self.happened(Event::Cold(self.len()));
            self.view.is_current = false;
        }
        let Some(store) = store else { return Ok(()) };
        self.check_store(Some(store))?;
        self.write(store)
    }

    fn calibrate(&mut self, chars: usize) {
        let before = self.events.calibrations().next_back().map_or(ASSUMED_CHARS, |(_, chars)| chars);
        if before.abs_diff(chars).saturating_mul(LEAST_CHANGE) < before {
            return; // nearly the same
        }
        self.happened(Event::Calibration(self.len() + 1, chars));
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
