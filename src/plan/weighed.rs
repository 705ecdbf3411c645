//! What messages cost where texts are weighed: the one table of what counts to limits, see docs/budgets.md.

use super::context::{Costs, PlanContext};
use super::mask::Masker;
use super::stay::StayingTools;
use crate::outline::ToolResult;
use core::ops::Range;

impl Costs {
    /// The costs of these messages; None where texts are not weighed.
    pub(crate) fn weighed(context: PlanContext, messages: Range<usize>) -> Option<Self> {
        let PlanContext { outline, policy, .. } = context;
        let (tokens, image) = (policy.terms.tokens?, policy.text.image_chars);
        let tools = StayingTools::default(); // no placeholder depends on them
        let masker = Masker::of(context, &tools);
        let mut costs = Costs { tokens: Some(tokens), ..Costs::default() };
        for message in messages {
            let (mut own, results) = (outline.messages[message], outline.results_of(message));
            for result in results {
                let ToolResult { weight, images, .. } = outline.results[result];
                (own.weight, own.images) = (own.weight - weight, own.images - images);
                let raw = tokens.of(weight).saturating_add((images as usize).saturating_mul(image));
                costs.observations.push((raw, tokens.of(masker.placeholder_weight(result))));
            }
            let calls = outline.calls_of(message).len();
            let beside = (own.images as usize).saturating_mul(image).saturating_add(calls * tokens.call);
            let reasoning = if policy.limit.counts_reasoning { tokens.of(own.reasoning) + own.sealed } else { 0 };
            costs.messages.push((tokens.of(own.weight).saturating_add(beside), reasoning));
        }
        Some(costs)
    }
}
