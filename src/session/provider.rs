//! Whose prompt cache a session assumes: the shape of its first call or result decides that, and no later message changes it.

use super::stored::stored_message;
use super::{Result, Session, scanned};
use crate::policy::Terms;
use crate::shape::Shape;
use crate::store::Store;

/// The message that decided, and the terms before it.
#[derive(Debug, Clone)]
pub struct Decided {
    message: usize,
    before: Terms,
}

impl Session {
    /// Whether the first call or result is still to come, and has a say.
    pub(super) fn is_undecided(&self) -> bool {
        self.decided.is_none() && !self.policy.terms_by_shape.is_empty()
    }

    /// Decides by the messages of the log from this one on. The requests before `requested` were made already. Nothing was masked at
    /// them, for want of results, so they are only charged again.
    pub(super) fn decide_provider(&mut self, from: usize, requested: usize) {
        if !self.is_undecided() {
            return;
        }
        let shapes = self.log.outline.messages[from..].iter().map(|message| message.shape);
        let Some((place, shape)) = shapes.enumerate().find(|(_, shape)| shape.decides_provider()) else { return };
        self.decide(self.len() - self.log.len() + from + place, shape);
        self.log.charge_again(&self.policy, requested);
    }

    fn decide(&mut self, message: usize, shape: Shape) {
        self.decided = Some(Decided { message, before: self.policy.terms() });
        if let Some(policy) = self.policy.decided(shape) {
            self.policy = policy;
        }
    }

    /// Decides by the first stored messages, which are not appended again.
    pub(super) fn decide_by_stored(&mut self, store: &mut Store, messages: usize) -> Result<()> {
        for message in 0..messages {
            if !self.is_undecided() {
                break;
            }
            let shape = scanned(&stored_message(store, message)?)?.messages[0].shape;
            if shape.decides_provider() {
                self.decide(message, shape);
            }
        }
        Ok(())
    }

    /// Takes a decision back that needs more than this many messages. Returns whether there was one.
    pub(super) fn undecide(&mut self, messages: usize) -> bool {
        let Some(decided) = self.decided.take_if(|decided| decided.message >= messages) else { return false };
        self.policy = core::mem::take(&mut self.policy).with_terms(decided.before);
        true
    }

    /// Whether views have marks at the boundary.
    #[must_use]
    pub fn pins_boundary(&self) -> bool {
        self.policy.pins_boundary
    }

    /// The name of the provider whose cache is assumed.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.policy.provider
    }
}
