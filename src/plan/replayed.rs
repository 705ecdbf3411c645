//! What the requests of a session sent, and what they hid.

use super::cache::Sent;
use crate::outline::Outline;

/// A session under a policy.
#[derive(Debug, Default)]
pub struct Replayed {
    pub sent: Vec<Sent>,
    /// The first request whose view does not have a result raw, by result; [`NEVER`] if all have.
    pub hidden_from: Vec<u32>,
    /// Summaries whose texts are known, each with the first request that has it.
    pub summaries: Vec<(u32, Vec<u8>)>,
}

/// No request hides a result.
pub(crate) const NEVER: u32 = u32::MAX;

impl Replayed {
    pub(super) fn of(outline: &Outline) -> Self {
        Replayed { hidden_from: vec![NEVER; outline.results.len()], ..Replayed::default() }
    }

    /// Adds a request whose view hides these results.
    pub(super) fn push(&mut self, sent: Sent, hidden: impl IntoIterator<Item = usize>) {
        let request = self.sent.len() as u32;
        for result in hidden {
            self.hidden_from[result] = self.hidden_from[result].min(request);
        }
        self.sent.push(sent);
    }
}
