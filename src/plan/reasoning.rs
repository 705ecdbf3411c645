//! Signed reasoning: from which message on a view sends it back.
//!
//! A provider that verifies reasoning signs it together with all that was sent before it, and refuses it where that has been edited
//! since: by a mask, a cut, a hidden message. It takes an unbroken run alone. So once an edit voids the newest reasoning so far, all of
//! it stays out. If the newest one stands, so do those before it: the requests that made them sent less.

use super::context::PlanContext;

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Reasoning {
    /// Messages before this one are sent without their signed reasoning.
    pub from: usize,
    /// How many of them have some.
    pub dropped: usize,
    /// How many messages have some so far.
    signed: usize,
    /// The newest of these, and how many messages preceded the request that it answered.
    newest: Option<(usize, usize)>,
}

impl Reasoning {
    /// Adds a message with signed reasoning, the answer to a request of so many messages.
    pub(super) fn push(&mut self, message: usize, request: usize) {
        self.newest = Some((message, request));
        self.signed += 1;
    }

    /// The same after an edit of the view, from this message on.
    pub(super) fn edited(self, first: usize) -> Self {
        match self.newest {
            Some((message, request)) if first < request => {
                Reasoning { from: message + 1, dropped: self.signed, ..self }
            }
            _ => self,
        }
    }

    /// Whether an edit of the view from this message on voids reasoning that is still sent.
    pub(super) fn is_voided_by(self, first: usize) -> bool {
        self.edited(first).from > self.from
    }

    /// Whether a message is sent without its reasoning.
    pub(super) fn leaves_out(&self, context: PlanContext, message: usize) -> bool {
        message < self.from && context.outline.messages[message].is_signed
    }
}

/// What reasoning costs: it counts to limits, as long as it is sent.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ReasoningCost {
    /// That of the view.
    pub all: usize,
    /// The part of it that is signed, all of which an edit voids.
    pub signed: usize,
}
