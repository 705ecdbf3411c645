//! Which signed reasoning of a plan was made behind what its view shows, by what was noted of earlier requests.

use super::layout::Layout;
use super::masked::Masked;
use super::outcome::Plan;
use super::sent::{Alone, START, SentView, SentViews, mixed, reasoning_from, texts_of, with_form};
use crate::outline::Outline;
use crate::policy::Policy;

/// What the view of a plan shows otherwise.
struct Shown<'a> {
    outline: &'a Outline,
    layout: &'a Layout,
    masked: &'a [Masked],
    /// Of each of these the digest of all up to it.
    digests: Vec<u64>,
}

impl Shown<'_> {
    fn digest_before(&self, message: usize) -> u64 {
        let end = self.outline.results_before(message);
        let forms = self.masked.partition_point(|one| (one.result as usize) < end);
        let of_forms = forms.checked_sub(1).map_or(START, |last| self.digests[last]);
        mixed(self.layout.digest_before(message), of_forms)
    }
}

impl Plan {
    fn shown<'a>(&'a self, outline: &'a Outline, policy: &Policy) -> Shown<'a> {
        let mut digest = if self.masked.is_empty() { START } else { texts_of(policy) };
        let with = |one: &Masked| {
            digest = with_form(digest, one);
            digest
        };
        let digests = self.masked.iter().map(with).collect();
        Shown { outline, layout: &self.layout, masked: &self.masked, digests }
    }

    /// What there is to note of it.
    pub(crate) fn sent(&self, outline: &Outline, policy: &Policy) -> SentView {
        let messages = outline.messages.len();
        let digest = self.shown(outline, policy).digest_before(messages);
        SentView { messages, digest, reasoning_from: self.layout.reasoning_from }
    }

    /// Leaves out the signed reasoning that was not made behind what this shows. What no request has noted is void.
    pub(super) fn judge_reasoning(&mut self, outline: &Outline, policy: &Policy, sent: &SentViews) {
        let Some(newest) = outline.messages.iter().rposition(|message| message.is_signed) else { return };
        let (shown, mut alone) = (self.shown(outline, policy), Alone::default());
        alone.look(&outline.messages);
        let request_of = |message: usize| self.turns.start_of(message);
        let is_void = |message: usize| {
            let noted = sent.of(request_of(message));
            noted.is_empty() || noted.iter().any(|one| one.digest != shown.digest_before(one.messages))
        };
        let is_edited = |message: usize, from: usize| {
            let end = request_of(message);
            let texts = |from: usize| alone.before(from.min(end));
            sent.of(end).iter().any(|one| texts(one.reasoning_from) != texts(from))
        };
        // What was left out stays out, also where a request is sent again.
        let left_out = sent.of(request_of(newest)).iter().chain(sent.of(outline.messages.len()));
        let from = left_out.map(|one| one.reasoning_from).max().unwrap_or(0);
        let from = reasoning_from(outline, 0, from, is_void, is_edited, |message| alone.before(message));
        self.layout.drop_reasoning(outline, from);
    }
}
