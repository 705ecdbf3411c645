//! Results by which an agent refers to the result of an earlier call of the same tool with the same arguments: "see the earlier
//! result". Where the text of that is gone by then, the reference arrives with it, and is from then on a result like any other. Where it
//! is still shown, it stays while the reference is in the window, and afterwards both are masked at one move: no reference points to
//! a placeholder, and no result stays for ever.

use super::context::{Part, PlanContext, Related};
use super::masked::Masked;
use crate::outline::Name;
use std::collections::HashMap;

impl PlanContext<'_> {
    /// Whether a result refers to an earlier one.
    pub(super) fn is_reference(&self, result: usize) -> bool {
        let place = self.related.binary_search_by_key(&(result as u32), |one| one.result);
        place.is_ok_and(|place| self.related[place].part == Part::Reference)
    }

    /// The results of tools that have references, in order; none if there is no reference.
    pub(super) fn related(&self) -> Vec<Related> {
        let PlanContext { outline, policy, pairs, source, .. } = *self;
        let texts_of = |name: Name| {
            let name = name.map_or(&b""[..], |name| outline.name(name));
            policy.text.stubs.iter().filter(move |(tool, _)| tool.as_bytes() == name)
        };
        let is_reference =
            |result: usize| texts_of(pairs.name_of(outline, result)).any(|(_, text)| self.is_text(result, text));
        if policy.text.stubs.is_empty() || !(0..outline.results.len()).any(is_reference) {
            return vec![];
        }
        let mut keys: HashMap<(Name, Vec<u8>), u32> = HashMap::new();
        let related = (0..outline.results.len()).filter_map(|result| {
            let name = pairs.name_of(outline, result);
            texts_of(name).next()?;
            let arguments = source.arguments(outline, pairs.call_of(result)?)?;
            let next = keys.len() as u32;
            let key = *keys.entry((name, arguments)).or_insert(next);
            let seen = &outline.results[result];
            let part = match () {
                () if is_reference(result) => Part::Reference,
                () if seen.images == 0 && seen.frame.holds_text() && !outline.is_cleared(result) => Part::Whole,
                () => Part::Other,
            };
            Some(Related { result: result as u32, key, part })
        });
        related.collect()
    }
}

/// The references of a history so far.
#[derive(Debug, Default, Clone)]
pub(super) struct References {
    /// How many of the related results have arrived.
    arrived: usize,
    /// By key: the last result that has the text.
    last: HashMap<u32, u32>,
    /// By reference that arrived with the text of an earlier result: that result, whose own bytes have the text, and the characters
    /// that it has more.
    sources: HashMap<u32, (u32, isize)>,
    /// By result that is referred to: itself and the references to it that stay as they are, and how many of them left the window.
    groups: HashMap<u32, (Vec<u32>, usize)>,
    /// By result of a group: the result that is referred to.
    members: HashMap<u32, u32>,
}

impl References {
    /// Adds a message. Returns the characters that its references have more, of sources that are masked; and the results that wait to
    /// be masked no longer, since they are referred to again.
    pub(crate) fn arrive(&mut self, context: PlanContext, message: usize, masked: &[Masked]) -> (isize, Vec<u32>) {
        let PlanContext { outline, related, .. } = context;
        let (mut added, mut held) = (0, vec![]);
        if related.is_empty() {
            return (added, held);
        }
        let end = outline.results_before(message + 1);
        while let Some(one) = related.get(self.arrived).filter(|one| (one.result as usize) < end) {
            self.arrived += 1;
            let last = self.last.get(&one.key).copied();
            match (one.part, last) {
                (Part::Whole, _) => _ = self.last.insert(one.key, one.result),
                (Part::Other, _) => _ = self.last.remove(&one.key),
                (Part::Reference, None) => {}
                (Part::Reference, Some(last)) if masked.binary_search_by_key(&last, |one| one.result).is_ok() => {
                    let source = self.sources.get(&last).map_or(last, |(source, _)| *source);
                    let chars = |result: u32| outline.results[result as usize].chars.cast_signed();
                    let growth = chars(source) - chars(one.result);
                    self.sources.insert(one.result, (source, growth));
                    self.last.insert(one.key, one.result);
                    added += growth;
                }
                (Part::Reference, Some(last)) => {
                    let (members, _) = self.groups.entry(last).or_insert_with(|| (vec![last], 0));
                    let is_new = members.len() == 1;
                    members.push(one.result);
                    self.members.insert(one.result, last);
                    if is_new {
                        self.members.insert(last, last);
                        held.push(last);
                    }
                }
            }
        }
        (added, held)
    }

    /// A result that left the window before it was referred to leaves it with its references.
    pub(crate) fn hold(&mut self, source: u32) {
        if let Some((_, left)) = self.groups.get_mut(&source) {
            *left += 1;
        }
    }

    /// The result whose text a reference has, and the characters that it has more.
    pub(crate) fn source_of(&self, result: u32) -> Option<(u32, isize)> {
        if self.sources.is_empty() { None } else { self.sources.get(&result).copied() }
    }

    /// The result whose own bytes have the text of this one.
    pub(crate) fn text_of(&self, result: u32) -> usize {
        self.source_of(result).map_or(result, |(source, _)| source) as usize
    }

    /// The references that have the text of another result, with that.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.sources.iter().map(|(result, (source, _))| (*result, *source))
    }

    /// The results that are masked with this one; None if that is it alone.
    pub(crate) fn group_of(&self, result: u32) -> Option<&[u32]> {
        let (members, _) = self.groups.get(self.members.get(&result)?)?;
        Some(members)
    }

    /// A result leaves the window: those that may be masked from now on.
    pub(crate) fn released(&mut self, result: u32) -> Vec<u32> {
        let Some(source) = self.members.get(&result).copied() else { return vec![result] };
        let Some((members, left)) = self.groups.get_mut(&source) else { return vec![result] };
        *left += 1;
        if *left < members.len() {
            return vec![];
        }
        self.forget(source)
    }

    /// Forgets the group of a result that is masked before it leaves the window.
    pub(crate) fn forget_group_of(&mut self, result: u32) {
        if let Some(source) = self.members.get(&result).copied() {
            self.forget(source);
        }
    }

    /// Forgets a group, whose results are or may be masked.
    pub(crate) fn forget(&mut self, source: u32) -> Vec<u32> {
        let Some((members, _)) = self.groups.remove(&source) else { return vec![] };
        for one in &members {
            self.members.remove(one);
        }
        members
    }
}
