//! The provider whose prompt cache a session assumes: the shape of its first call or result decides, and no later message changes it. A
//! caller may learn the model until the boundary moves.

use super::{Result, Session};
use crate::policy::Policy;
use crate::store::Store;
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
        self.log.weigh(&self.policy, 0);
        self.fold_again(from);
    }

    /// Takes a decision back that needs more than this many messages.
    pub(super) fn undecide(&mut self, messages: usize) {
        if self.decided.take_if(|decided| *decided >= messages).is_some() {
            self.policy = self.given.clone();
            self.log.weigh(&self.policy, 0);
        }
    }

    /// Takes the policy with the terms of a model, and stores the options that have them. Its requests are charged again, so once the
    /// boundary has moved or a summary was made nothing happens, unless it `keeps_prices`. Returns whether it was taken.
    pub fn take_terms(
        &mut self,
        policy: &Policy,
        keeps_prices: bool,
        options: &[u8],
        store: Option<&mut Store>,
    ) -> Result<bool> {
        let has_changed = !self.state.moves().is_empty() || self.events.summaries().next().is_some();
        if has_changed && !keeps_prices {
            return Ok(false);
        }
        self.check_store(store.as_deref())?;
        if let Some(store) = store {
            Session::store_options(store, options)?;
        }
        self.given = Arc::new(policy.clone());
        let shape = self.decided.map(|message| self.log.outline.messages[message].shape);
        self.policy = shape.and_then(|shape| self.given.decided(shape)).map_or_else(|| self.given.clone(), Arc::new);
        self.log.weigh(&self.policy, 0);
        self.fold_again(self.unrequested.unwrap_or(self.len()));
        self.forget_view_after(0);
        Ok(true)
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
