//! The counters of a plan.

use crate::outline::Outline;
use crate::plan::{Masked, Move, Plan, Stage};

/// The value of a counter.
#[derive(Debug, Clone, Copy)]
pub enum Figure<'a> {
    /// A yes or no.
    Flag(bool),
    /// How many.
    Count(usize),
    /// A place, if there is one.
    Place(Option<usize>),
    /// A word, if there is one.
    Word(Option<&'a str>),
    /// Messages of the input.
    Messages(&'a [usize]),
    /// By tool.
    Tools(&'a [(Option<u32>, ToolCount)]),
    /// Moves of the boundary.
    Moves(&'a [Move]),
}

/// The counters of a plan, by their names in Python; `tools` are those of [`by_tool`].
#[must_use]
pub fn figures<'a>(
    outline: &Outline,
    plan: &'a Plan,
    tools: &'a [(Option<u32>, ToolCount)],
    provider: &'a str,
) -> [(&'static str, Figure<'a>); 19] {
    use Figure::{Count, Flag, Messages, Moves, Place, Tools, Word};
    let dropped = plan.kept.as_ref().map_or(0, |kept| kept.iter().filter(|is_kept| !**is_kept).count());
    let clipped = || plan.masked.iter().filter(|masked| masked.is_clipped());
    let (stage, invariant) = match plan.stage {
        None => (None, "ok"),
        Some(Stage::Masking) => (Some("masking"), "ok"),
        Some(Stage::Summarization) => (Some("summarization"), "ok"),
        Some(Stage::Fallback) => (Some("fallback"), "fallback"),
    };
    [
        ("reduced", Flag(plan.changes())),
        ("dropped_count", Count(dropped)),
        ("invariant_status", Word(Some(invariant))),
        ("reduction_stage", Word(stage)),
        ("masked_count", Count(tools.iter().map(|(_, count)| count.masked).sum())),
        ("masked_chars", Count(tools.iter().map(|(_, count)| count.removed_chars).sum())),
        ("clipped_count", Count(clipped().count() + usize::from(plan.cut.is_some()))),
        ("clipped_chars", Count(clipped().map(|masked| masked.removed).sum::<usize>() + plan.cut_chars)),
        ("tools", Tools(tools)),
        ("chars_before", Count(plan.chars.0)),
        ("chars_after", Count(plan.chars.1)),
        ("within_budget", Flag(plan.within_budget)),
        ("orphans", Messages(&plan.orphans)),
        ("first_changed", Place(first_changed(outline, plan))),
        ("boundary", Count(plan.boundary)),
        ("boundary_message", Place(boundary_message(outline, plan))),
        ("turns", Count(plan.turns.count())),
        ("boundary_moves", Moves(&plan.moves)),
        ("provider", Word(Some(provider))),
    ]
}

/// The observations of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolCount {
    /// Observations.
    pub observations: usize,
    /// Masked ones.
    pub masked: usize,
    /// Their characters, raw.
    pub chars: usize,
    /// Characters that masking removed.
    pub removed_chars: usize,
}

/// Counts by tool, in order of the first observation; None for an unknown tool.
#[must_use]
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
        count.chars += outline.observation_chars(result, image_chars);
        if let Some(masked) = masked.next_if(|masked| masked.result as usize == result) {
            count.masked += 1;
            count.removed_chars += masked.removed;
        }
        count.masked += usize::from(plan.stays.binary_search(&(result as u32)).is_ok());
    }
    counts
}

/// The message of the view that has the last masked result.
fn boundary_message(outline: &Outline, plan: &Plan) -> Option<usize> {
    let message_of = |masked: &Masked| outline.results[masked.result as usize].message as usize;
    let masked = plan.masked.iter().filter(|masked| masked.is_masked());
    let message = masked.map(message_of).rfind(|message| plan.keeps(*message))?;
    let kept = plan.kept.as_ref().map_or(message, |kept| kept[..message].iter().filter(|is_kept| **is_kept).count());
    Some(kept + usize::from(plan.summary.as_ref().is_some_and(|summary| summary.before <= message)))
}

/// The first message of the view that differs from the input.
#[must_use]
pub fn first_changed(outline: &Outline, plan: &Plan) -> Option<usize> {
    if !plan.changes() {
        return None;
    }
    let masked = plan
        .masked
        .iter()
        .map(|masked| outline.results[masked.result as usize].message as usize)
        .find(|message| plan.keeps(*message));
    let Some(kept) = &plan.kept else { return masked };
    let dropped = kept.iter().position(|is_kept| !is_kept);
    // A summary follows the kept messages before its place.
    let summary = plan.summary.as_ref().map(|summary| summary.before);
    let cut = plan.cut.map(|cut| cut.message);
    [masked, dropped, summary, cut].into_iter().flatten().min()
}
