//! What was sent: each request is noted with a digest of what its view shows otherwise than the history, so that signed reasoning goes
//! back only behind what it was made from. The options may have changed since, and messages may have come from elsewhere.

use super::Session;
use super::event::{ALL, Event, Events};
use crate::plan::{Layout, START, SentView, mixed, reasoning_from};

impl Session {
    /// Notes the current request, once its view is made: where reasoning is verified, or is there for a model that may do so later.
    pub(crate) fn note_request(&mut self) {
        let end = self.len();
        if self.log.ends_with_run() || end == 0 {
            return;
        }
        if !self.view.alone.has_signed && !self.policy.terms.verifies_reasoning {
            return;
        }
        let (digest, reasoning_from) = (self.digest_before(&self.view.layout, end), self.view.layout.reasoning_from);
        let sent = SentView { messages: end, digest, reasoning_from };
        if self.events.sent_before(end) != Some(sent) {
            self.happened(Event::Sent(sent));
        }
    }

    /// Takes over what another session of the first messages has sent, before any is appended. What was sent behind another system
    /// prompt or other tools `is_void`.
    pub(crate) fn take_sent(&mut self, sent: Events, is_void: bool) {
        self.events = if is_void { sent.voided() } else { sent };
        self.renew_requests();
    }

    /// What it has sent in requests of at most so many messages, and what was measured of them.
    pub(crate) fn sent_until(&self, messages: usize) -> Events {
        self.events.sent_until(messages)
    }

    /// Leaves out the signed reasoning of all messages so far, which the provider has refused; if `for_good`, of later ones, too.
    pub(crate) fn leave_out_reasoning(&mut self, for_good: bool) {
        self.events.refused = if for_good { ALL } else { self.len() };
        self.view.is_current = false;
    }

    /// The digest of what a layout of the view shows otherwise before a message.
    fn digest_before(&self, layout: &Layout, message: usize) -> u64 {
        let forms = self.view.forms_before(self.log.outline.results_before(message));
        mixed(layout.digest_before(message), forms.checked_sub(1).map_or(START, |last| self.view.forms[last].2))
    }

    /// The first message whose signed reasoning this layout sends back. Of a view that only grows, the new messages alone are looked at.
    pub(super) fn reasoning_from(&mut self, layout: &Layout, is_edited: bool) -> usize {
        self.view.alone.look(&self.log.outline.messages);
        if !self.policy.terms.verifies_reasoning {
            return 0;
        }
        let (before, outline) = (&self.view.layout, &self.log.outline);
        let (from, checked) = if is_edited { (0, 0) } else { (before.reasoning_from, before.messages) };
        // What was left out stays out, where requests may be judged as `reduce` takes them.
        let left_out = self.events.sent_before(self.len()).filter(|_| !self.voids_unnoted);
        let from = from.max(self.events.refused.min(self.len())).max(left_out.map_or(0, |sent| sent.reasoning_from));
        let of_reduce = self.state.reasoning_after(outline, &self.step).from;
        let judged = |message: usize| {
            let (start, sent) = (self.log.turns.start_of(message), self.events.sent_before(message));
            let noted = sent.filter(|sent| self.voids_unnoted || sent.messages == start);
            let is_void = match noted {
                Some(sent) => self.digest_before(layout, sent.messages) != sent.digest,
                None => self.voids_unnoted || message < of_reduce,
            };
            (is_void, noted.map_or((start, of_reduce), |sent| (sent.messages, sent.reasoning_from)))
        };
        // A message that loses all that it has gets a text, which edits what later requests had sent.
        let texts = |from: usize, end: usize| self.view.alone.before(from.min(end));
        let is_edited = |message: usize, from: usize| {
            let (end, sent_from) = judged(message).1;
            texts(from, end) != texts(sent_from, end)
        };
        reasoning_from(
            outline,
            checked,
            from,
            |message| judged(message).0,
            is_edited,
            |message| texts(message, message),
        )
    }
}
