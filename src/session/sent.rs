//! What was sent: each request is noted with a digest of what its view shows otherwise than the history, so that signed reasoning goes
//! back only behind what it was made from. The options may have changed since, and messages may have come from elsewhere.

use super::Session;
use super::event::{Event, Events};
use crate::clip::Clip;
use crate::outline::Message;
use crate::plan::{Layout, START, SentView, mixed, reasoning_from, with_form};

/// What a view has to note.
#[derive(Debug, Default, Clone)]
pub(super) struct Noted {
    /// Of each masked or cut result, in order, the digest of all up to it.
    digests: Vec<u64>,
    /// The digest of the options that say what is shown in the place of a result.
    texts: Option<u64>,
    /// Whether messages were dropped from the history since the view was made.
    pub is_rewound: bool,
    /// Whether one of the first messages has signed reasoning, which of them have nothing else, and how many were looked at.
    has_signed: bool,
    alone: Vec<usize>,
    looked_at: usize,
}

impl Noted {
    pub(super) fn truncate(&mut self, forms: usize) {
        self.digests.truncate(forms);
    }

    /// The history has so many messages and forms left.
    pub(super) fn rewind(&mut self, messages: usize, forms: usize) {
        (self.is_rewound, self.looked_at) = (true, self.looked_at.min(messages));
        self.alone.retain(|message| *message < messages);
        self.truncate(forms);
    }

    /// Looks at all messages.
    fn look(&mut self, messages: &[Message]) {
        for (number, message) in messages[self.looked_at..].iter().enumerate().filter(|(_, message)| message.is_signed)
        {
            self.has_signed = true;
            self.alone.extend(message.is_empty().then_some(self.looked_at + number));
        }
        self.looked_at = messages.len();
    }

    /// How many of the first messages have nothing else than signed reasoning, in whose place a text is shown.
    fn alone_before(&self, message: usize) -> usize {
        self.alone.partition_point(|alone| *alone < message)
    }

    /// Adds results; `texts` is the digest of what is shown in their places.
    pub(super) fn extend(&mut self, forms: &[(u32, Option<Clip>)], texts: impl FnOnce() -> u64) {
        if forms.is_empty() {
            return;
        }
        let texts = *self.texts.get_or_insert_with(texts);
        for (result, clip) in forms {
            let before = self.digests.last().copied().unwrap_or(texts);
            self.digests.push(with_form(before, *result, clip.as_ref()));
        }
    }

    /// The digest of the first ones.
    fn of(&self, forms: usize) -> u64 {
        forms.checked_sub(1).map_or(START, |last| self.digests[last])
    }
}

impl Session {
    /// Notes the current request, once its view is made: where reasoning is verified, or is there for a model that may do so later.
    pub(crate) fn note_request(&mut self) {
        let end = self.len();
        if self.log.ends_with_run() || end == 0 {
            return;
        }
        if !self.view.noted.has_signed && !self.policy.terms.verifies_reasoning {
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
    }

    /// What it has sent in requests of at most so many messages.
    pub(crate) fn sent_until(&self, messages: usize) -> Events {
        self.events.sent_until(messages)
    }

    /// The digest of what a layout of the view shows otherwise before a message.
    fn digest_before(&self, layout: &Layout, message: usize) -> u64 {
        let forms = self.view.forms_before(self.log.outline.results_before(message));
        mixed(layout.digest_before(message), self.view.noted.of(forms))
    }

    /// The first message whose signed reasoning this layout sends back. Of a view that only grows, the new messages alone are looked at.
    pub(super) fn reasoning_from(&mut self, layout: &Layout, is_edited: bool) -> usize {
        self.view.noted.look(&self.log.outline.messages);
        if !self.policy.terms.verifies_reasoning {
            return 0;
        }
        let (before, outline) = (&self.view.layout, &self.log.outline);
        let (from, checked) = if is_edited { (0, 0) } else { (before.reasoning_from, before.messages) };
        // What was left out stays out, where requests may be judged as `reduce` takes them.
        let left_out = self.events.sent_before(self.len()).filter(|_| !self.voids_unnoted);
        let from = from.max(left_out.map_or(0, |sent| sent.reasoning_from));
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
        let texts = |from: usize, end: usize| self.view.noted.alone_before(from.min(end));
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
