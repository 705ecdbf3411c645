//! The provider whose prompt cache a session assumes: the shape of its first call or result decides, and no later message changes it.

use super::Session;
use std::sync::Arc;

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
        self.decided = Some(from + place);
        self.policy = self.given.decided(shape).map_or_else(|| self.given.clone(), Arc::new);
        self.fold_again(from);
    }

    /// Takes a decision back that needs more than this many messages.
    pub(super) fn undecide(&mut self, messages: usize) {
        if self.decided.take_if(|decided| *decided >= messages).is_some() {
            self.policy = self.given.clone();
        }
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
