//! Halves of calls that the provider runs -> links: what ties messages besides pairs.

use crate::outline::{Half, Outline};
use std::collections::BTreeMap;

/// The links of a history. A result belongs to the nearest earlier use of its id.
#[derive(Debug, Default, Clone)]
pub struct Links {
    /// Of each half the other one, of a use its first result.
    others: Vec<Option<u32>>,
    /// The newest use of each id.
    newest: BTreeMap<Vec<u8>, u32>,
    /// The messages that are tied to each.
    tied: BTreeMap<u32, Vec<u32>>,
}

impl Links {
    /// Adds the new halves of an outline, of the first ones.
    pub(super) fn grow(&mut self, outline: &Outline, halves: usize) {
        for place in self.others.len()..halves {
            let Half { id, message, is_result, .. } = outline.halves[place];
            let id = outline.text(id);
            let used = if is_result { self.newest.get(id).copied() } else { None };
            self.others.push(used);
            if !is_result {
                self.newest.insert(id.to_vec(), place as u32);
            }
            if let Some(used) = used {
                self.others[used as usize].get_or_insert(place as u32);
                let of_use = outline.halves[used as usize].message;
                self.tied.entry(of_use).or_default().push(message);
                self.tied.entry(message).or_default().push(of_use);
            }
        }
    }

    /// Keeps only the first halves of an outline, which still has all of them.
    pub(super) fn truncate(&mut self, outline: &Outline, halves: usize) {
        if halves < self.others.len() {
            *self = Links::default();
            self.grow(outline, halves);
        }
    }

    /// The messages that are tied to this one.
    pub(crate) fn of(&self, message: usize) -> &[u32] {
        self.tied.get(&(message as u32)).map_or(&[], Vec::as_slice)
    }

    /// The earlier messages that are tied to this one.
    pub(crate) fn before(&self, message: usize) -> impl Iterator<Item = usize> + '_ {
        self.of(message).iter().map(|other| *other as usize).filter(move |other| *other < message)
    }

    /// The message with the other half, if there is one.
    pub(crate) fn other(&self, outline: &Outline, half: usize) -> Option<usize> {
        self.others[half].map(|other| outline.halves[other as usize].message as usize)
    }

    /// The halves without the other one.
    pub(super) fn alone<'a>(&'a self, outline: &'a Outline) -> impl Iterator<Item = &'a Half> + 'a {
        outline.halves.iter().zip(&self.others).filter(|(_, other)| other.is_none()).map(|(half, _)| half)
    }
}
