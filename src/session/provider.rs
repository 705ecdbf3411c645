//! The provider whose prompt cache a session assumes: the shape of its first call or result decides, and no later message changes it.

use super::stored::stored_message;
use super::{Appended, InLog, Result, Session, scanned};
use crate::shape::Shape;
use crate::store::Store;

/// The message that decided, and its shape.
#[derive(Debug, Clone)]
pub struct Decided {
    message: Appended,
    pub shape: Shape,
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
        let message = self.places().appended(self.places().of_log(InLog(from + place)));
        self.decide(message.unwrap_or_default(), shape);
        self.log.charge_again(&self.policy, requested);
    }

    fn decide(&mut self, message: Appended, shape: Shape) {
        self.decided = Some(Decided { message, shape });
        self.renew_policy();
    }

    /// Decides by the first stored messages, which are not appended again.
    pub(super) fn decide_by_stored(&mut self, store: &mut Store, messages: usize) -> Result<()> {
        for message in 0..messages {
            if !self.is_undecided() {
                break;
            }
            let shape = scanned(&stored_message(store, message)?)?.messages[0].shape;
            if shape.decides_provider() {
                self.decide(Appended(message), shape);
            }
        }
        Ok(())
    }

    /// Takes a decision back that needs more than this many messages. Returns whether there was one.
    pub(super) fn undecide(&mut self, messages: usize) -> bool {
        let is_undone = self.decided.take_if(|decided| decided.message.0 >= messages).is_some();
        if is_undone {
            self.renew_policy();
        }
        is_undone
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
