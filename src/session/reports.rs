//! Reports about the provider: that its cache is cold, and the tokens that it counted. Both are part of the session:
//! stored at once, and resumed.

use super::event::Event;
use super::{Result, Session};
use crate::policy::Requests;
use crate::store::Store;

/// Characters that a thousand tokens have where nothing was measured; and a change of less than this part of them is none.
const ASSUMED_CHARS: usize = 4_000;
const LEAST_CHANGE: usize = 50;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Reports {
    /// When the cache was cold.
    pub cold: Vec<Cold>,
    /// Sums of what was reported, with the meaning that the caller gives them.
    pub sums: Vec<usize>,
    /// Measured characters of a thousand tokens: of requests after at least this many messages, ascending.
    pub calibrations: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cold {
    /// How many messages there were when that was reported.
    pub reported: usize,
    /// How many there were at the next request; None until that is made.
    pub request: Option<usize>,
}

impl Reports {
    /// The cache was said to be cold after this many messages.
    pub(crate) fn add_cold(&mut self, messages: usize) {
        self.cold.push(Cold { reported: messages, request: None });
    }

    /// From this many messages on, a thousand tokens have so many characters.
    pub(crate) fn add_calibration(&mut self, since: usize, chars: usize) {
        self.calibrations.retain(|(other, _)| *other < since);
        self.calibrations.push((since, chars));
    }

    /// The reports after this many messages; what was spent stays.
    pub(crate) fn before(&self, messages: usize) -> Self {
        let known = |cold: &Cold| Cold { request: cold.request.filter(|request| *request < messages), ..*cold };
        let cold = self.cold.iter().filter(|cold| cold.reported <= messages).map(known).collect();
        let calibrations = self.calibrations.iter().copied().filter(|(since, _)| *since <= messages + 1).collect();
        Reports { cold, sums: self.sums.clone(), calibrations }
    }
}

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
        if let Some(sums) = sums.filter(|sums| *sums != self.reports.sums) {
            self.happened(Event::Sums(self.len(), sums.clone()));
            self.reports.sums = sums;
        }
        if let Some(chars) = calibrated_chars {
            self.calibrate(chars);
        }
        if is_cold && !self.next_is_cold() {
            self.happened(Event::Cold(self.len()));
            self.reports.add_cold(self.len());
            self.view.is_current = false;
        }
        let Some(store) = store else { return Ok(()) };
        self.check_store(Some(store))?;
        self.write(store)
    }

    fn calibrate(&mut self, chars: usize) {
        let before = self.reports.calibrations.last().map_or(ASSUMED_CHARS, |(_, chars)| *chars);
        if before.abs_diff(chars).saturating_mul(LEAST_CHANGE) < before {
            return; // nearly the same
        }
        let since = self.len() + 1;
        self.happened(Event::Calibration(since, chars));
        self.reports.add_calibration(since, chars);
        self.renew_requests();
    }

    /// Changes what is known of requests to what was given, what was reported, and where the caller has marks.
    pub(super) fn renew_requests(&mut self) {
        let marks_elsewhere = self.own_mark.as_ref().map(|(_, elsewhere)| *elsewhere);
        self.requests = Requests {
            max_since: self.calibrated_budgets(),
            cold: self.cold_requests(),
            marks_elsewhere: marks_elsewhere.unwrap_or(self.given_requests.marks_elsewhere),
            failed_summaries: self.summaries.failed(),
            ..Requests::default()
        };
        self.step_of = None;
    }

    fn calibrated_budgets(&self) -> Vec<(usize, usize)> {
        let (true, Some(given)) = (self.calibrates, self.given.limit.max) else { return vec![] };
        let calibrated = |chars: usize| given / ASSUMED_CHARS * chars + given % ASSUMED_CHARS * chars / ASSUMED_CHARS;
        self.reports.calibrations.iter().map(|(since, chars)| (*since, calibrated(*chars))).collect()
    }

    #[must_use]
    pub fn reports(&self) -> &Reports {
        &self.reports
    }

    /// How many messages precede each request with a cold cache, by the options and by what was reported.
    #[must_use]
    pub fn cold_requests(&self) -> Vec<usize> {
        let now = self.next_is_cold().then(|| self.len());
        let reported = self.reports.cold.iter().filter_map(|cold| cold.request);
        let mut requests: Vec<usize> = self.given_requests.cold.iter().copied().chain(reported).chain(now).collect();
        requests.sort_unstable();
        requests.dedup();
        requests
    }

    /// Whether the next request is known to have a cold cache.
    fn next_is_cold(&self) -> bool {
        self.reports.cold.iter().any(|cold| cold.request.is_none() && cold.reported <= self.len())
    }

    /// The request before this message is made.
    pub(super) fn settle_cold(&mut self, message: usize) {
        let is_settled = |cold: &Cold| cold.request.is_none() && cold.reported <= message;
        if self.reports.cold.iter().any(is_settled) {
            for cold in self.reports.cold.iter_mut().filter(|cold| is_settled(cold)) {
                cold.request = Some(message);
            }
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
