//! The view as decisions: which results are masked, with which texts.

use super::facts::ResultPlace;
use super::stored::{observation_of, stored_bytes, write_rendered};
use super::{Failure, Result, Session, scanned};
use crate::placeholder::Placeholder;
use crate::plan::facts;
use crate::store::Store;

/// A masked result, and the text that replaces its observation.
pub type Mask = (ResultPlace, Vec<u8>);

impl Session {
    /// The first message that changed in the current view since this was called last; and the masked results from there on, or from
    /// this message on if it is earlier. For sessions without compaction.
    ///
    /// # Errors
    /// Those of the store, which has the evicted messages; nothing counts as read then.
    pub fn masks(&mut self, since: usize, store: Option<&mut Store>) -> Result<(usize, Vec<Mask>)> {
        let (first, evicted) = (self.view.masks_from, self.log.base.messages);
        let from = first.min(since);
        let mut masks = match store {
            _ if from >= evicted => vec![],
            Some(store) => evicted_masks(store, from..evicted)?,
            None => return Err(Failure::Closed),
        };
        let masked = self.masked(from.saturating_sub(evicted), self.log.len());
        self.log.with_context(&self.policy, |context| {
            let placeholder = Placeholder::of(context.policy);
            for one in &masked {
                let result = one.result as usize;
                let facts = facts(context.outline, context.pairs, Some(context.turns), result);
                let observation = || context.source.observation(context.outline, result);
                let text = placeholder.render(&one.form, &facts, observation);
                masks.extend(text.map(|text| (self.place_of(result), text)));
            }
        });
        self.view.masks_from = self.log.end();
        Ok((first, masks))
    }
}

fn evicted_masks(store: &mut Store, messages: core::ops::Range<usize>) -> Result<Vec<Mask>> {
    let mut masks = vec![];
    for message in messages {
        let mut shown = vec![];
        write_rendered(store, message, &mut shown)?;
        let (shown, raw) = (&shown[1..], stored_bytes(store, message)?);
        if shown == raw {
            continue;
        }
        for place in 0..scanned(shown)?.results.len() {
            let text = observation_of(shown, place).filter(|text| observation_of(&raw, place).as_ref() != Some(text));
            masks.extend(text.map(|text| ((message, place), text)));
        }
    }
    Ok(masks)
}
