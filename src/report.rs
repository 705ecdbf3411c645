//! The counters of a plan.

use crate::outline::Outline;
use crate::plan::{Layout, Masked, Plan, Stage};

/// The stage that gave the view, and whether the view keeps the pair invariant.
pub(crate) fn stage(plan: &Plan) -> (Option<&'static str>, &'static str) {
    match plan.stage {
        None => (None, "ok"),
        Some(Stage::Masking) => (Some("masking"), "ok"),
        Some(Stage::Summarization) => (Some("summarization"), "ok"),
        Some(Stage::Fallback) => (Some("fallback"), "fallback"),
    }
}

/// Masked results, each by its message and its place there, as numbers of 32 bits.
pub(crate) fn places(outline: &Outline, plan: &Plan, is_it: fn(&Masked) -> bool) -> Vec<u8> {
    let mut places = Vec::with_capacity(8 * plan.masked.len());
    for masked in plan.masked.iter().filter(|masked| is_it(masked)) {
        let message = outline.results[masked.result as usize].message;
        let place = masked.result - outline.results_before(message as usize) as u32;
        places.extend_from_slice(&(u64::from(message) | u64::from(place) << 32).to_le_bytes());
    }
    places
}

/// How many texts are cut, and the characters that this removed.
pub(crate) fn clipped(outline: &Outline, plan: &Plan) -> (usize, usize) {
    let clipped = || plan.masked.iter().filter(|masked| masked.is_clipped());
    let chars = |masked: &Masked| masked.removed + outline.arrival_chars(masked.results());
    let count = clipped().count() + usize::from(!plan.cuts().is_empty());
    (count, clipped().map(chars).sum::<usize>() + plan.cut_chars)
}

/// The messages that are not in the view.
pub(crate) fn dropped(plan: &Plan) -> Vec<usize> {
    plan.layout.hidden.messages().collect()
}

/// The observations of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolCount {
    pub observations: usize,
    pub masked: usize,
    /// Characters of the results, raw.
    pub chars: usize,
    pub removed_chars: usize,
}

/// Counts by tool, in order of the first observation; None for an unknown tool.
pub fn by_tool(outline: &Outline, plan: &Plan, image_chars: usize) -> Vec<(Option<u32>, ToolCount)> {
    let mut places = vec![usize::MAX; outline.name_count() + 1];
    let mut counts: Vec<(Option<u32>, ToolCount)> = vec![];
    let mut masked = plan.masked.iter().filter(|masked| masked.is_masked()).peekable();
    for result in 0..outline.results.len() {
        let name = plan.pairs.name_of(outline, result);
        // An empty name is no name.
        let name = name.filter(|name| !outline.name(*name).is_empty());
        let place = &mut places[name.map_or(outline.name_count(), |name| name as usize)];
        if *place == usize::MAX {
            *place = counts.len();
            counts.push((name, ToolCount::default()));
        }
        let count = &mut counts[*place].1;
        count.observations += 1;
        count.chars += outline.observation_chars(result, image_chars) + outline.arrival_chars(result..result + 1);
        if let Some(masked) = masked.next_if(|masked| masked.result as usize == result) {
            count.masked += 1;
            count.removed_chars += masked.removed + outline.arrival_chars(masked.results());
        }
    }
    counts
}

/// The message of the view that has the last masked result.
pub(crate) fn boundary_message(outline: &Outline, plan: &Plan) -> Option<usize> {
    let message_of = |masked: &Masked| outline.results[masked.result as usize].message as usize;
    let masked = plan.masked.iter().filter(|masked| masked.is_masked());
    masked.map(message_of).rfind(|message| plan.keeps(*message)).map(|message| plan.layout.place_of(message))
}

/// The first message of the view that differs from the input.
pub fn first_changed(outline: &Outline, plan: &Plan) -> Option<usize> {
    if !plan.changes() {
        return None;
    }
    let masked = plan
        .masked
        .iter()
        .map(|masked| outline.results[masked.result as usize].message as usize)
        .find(|message| plan.keeps(*message));
    let Layout { hidden, summary, .. } = &plan.layout;
    let dropped = hidden.messages().next();
    // A summary follows the kept messages before its place.
    let summary = summary.as_ref().and_then(|summary| summary.joins.or(hidden.summary.map(|standing| standing.place)));
    let cut = hidden.cuts.first().map(|cut| cut.message);
    let unsigned = plan.layout.unsigned.iter().map(|message| *message as usize).find(|message| plan.keeps(*message));
    [masked, dropped, summary, cut, unsigned].into_iter().flatten().min()
}
