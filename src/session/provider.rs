//! The provider whose prompt cache a session assumes: the shape of its first call or result decides, and no later message changes it.

use super::Session;
use crate::shape::Shape;

/// The message that decided, and its shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decided {
    message: usize,
    pub shape: Shape,
}

impl Session {
    /// Whether the first call or result is still to come, and has a say.
    pub(super) fn is_undecided(&self) -> bool {
        self.decided.is_none() && !self.policy.terms_by_shape.is_empty()
    }

    /// Decides by the messages from this one on. The requests before it were made already, and are charged again.
    pub(super) fn decide_provider(&mut self, from: usize) {
        if !self.is_undecided() {
            return;
        }
        let shapes = self.log.outline.messages[from..].iter().map(|message| message.shape);
        let Some((place, shape)) = shapes.enumerate().find(|(_, shape)| shape.decides_provider()) else { return };
        self.decided = Some(Decided { message: from + place, shape });
        self.renew_policy();
        self.fold_again(from);
    }

    /// Takes a decision back that needs more than this many messages.
    pub(super) fn undecide(&mut self, messages: usize) {
        self.decided.take_if(|decided| decided.message >= messages);
    }

    /// Whether views have marks at the boundary.
    pub(crate) fn pins_boundary(&self) -> bool {
        self.policy.terms.pins_boundary
    }

    /// The name of the provider whose cache is assumed.
    pub(crate) fn provider(&self) -> &str {
        &self.policy.terms.provider
    }
}
