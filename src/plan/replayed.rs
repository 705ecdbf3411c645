//! What the requests of a session sent, and what they hid.

use super::cache::Sent;
use super::layout::Layout;
use crate::outline::Outline;

/// The results that a request hides which the one before it showed, and those that it shows again, ascending.
#[derive(Debug, Default, Clone)]
pub struct HiddenChange {
    pub hidden: Vec<u32>,
    pub shown: Vec<u32>,
}

/// A session at a door.
#[derive(Debug, Default)]
pub struct Replayed {
    pub sent: Vec<Sent>,
    /// For each request how what it hides differs from what the request before it hid.
    pub changes: Vec<HiddenChange>,
    /// Summaries whose texts are known, each with the first request that has it.
    pub summaries: Vec<(u32, Vec<u8>)>,
    /// The last view, and the results that it masks or cuts, where another policy follows.
    pub(super) last: Option<(Layout, Vec<u32>)>,
    /// Results that no view shows raw, each with its first request; those to come, the last one first.
    arriving: Vec<(usize, u32)>,
    /// By result whether it is hidden now, and for good.
    is_hidden: Vec<bool>,
    stays: Vec<bool>,
}

/// No request hides a result.
pub(crate) const NEVER: u32 = u32::MAX;

impl Replayed {
    /// Of a history whose requests are made after so many messages each.
    pub(super) fn of(outline: &Outline, requests: &[usize]) -> Self {
        let cut = outline.cuts.iter().map(|(result, _)| *result);
        let first = |result: u32| {
            let message = outline.results[result as usize].message as usize;
            (requests.partition_point(|end| *end <= message), result)
        };
        let mut arriving: Vec<_> = cut.chain(outline.cleared.iter().map(|(result, _)| *result)).map(first).collect();
        arriving.sort_unstable_by(|one, other| other.cmp(one));
        let results = outline.results.len();
        let mut stays = vec![false; results];
        for (_, result) in &arriving {
            stays[*result as usize] = true;
        }
        Replayed { arriving, is_hidden: vec![false; results], stays, ..Replayed::default() }
    }

    /// Adds a request that hides these results besides.
    pub(super) fn push(&mut self, sent: Sent, hidden: impl IntoIterator<Item = usize>) {
        let is_later = |(request, _): &(usize, u32)| *request > self.sent.len();
        let arrived = self.arriving.split_off(self.arriving.partition_point(is_later));
        let new = hidden.into_iter().chain(arrived.into_iter().map(|(_, result)| result as usize));
        let is_hidden = &mut self.is_hidden;
        let new = new.filter(|result| !core::mem::replace(&mut is_hidden[*result], true));
        let mut hidden: Vec<u32> = new.map(|result| result as u32).collect();
        hidden.sort_unstable();
        self.changes.push(HiddenChange { hidden, shown: vec![] });
        self.sent.push(sent);
    }

    /// Adds a request that hides none but these results, and those that are not raw when they arrive.
    pub(super) fn push_whole(&mut self, sent: Sent, hidden: impl Fn(usize) -> bool) {
        let results = 0..self.is_hidden.len();
        let shown: Vec<u32> = (results.clone())
            .filter(|result| self.is_hidden[*result] && !hidden(*result) && !self.stays[*result])
            .map(|result| result as u32)
            .collect();
        for result in &shown {
            self.is_hidden[*result as usize] = false;
        }
        self.push(sent, results.filter(|result| hidden(*result)));
        if let Some(change) = self.changes.last_mut() {
            change.shown = shown;
        }
    }

    /// The first request whose view does not have a result raw, by result; [`NEVER`] if all have.
    pub(crate) fn hidden_from(&self) -> Vec<u32> {
        let mut from = vec![NEVER; self.is_hidden.len()];
        for (request, change) in (0..).zip(&self.changes) {
            for result in &change.hidden {
                from[*result as usize] = from[*result as usize].min(request);
            }
        }
        from
    }
}
