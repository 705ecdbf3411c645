//! Stage 2: a summary replaces everything outside the keep set.

use crate::plan::context::SummaryInput;
use crate::plan::hidden::{Hidden, Standing};
use crate::plan::keep::Landmarks;
use crate::plan::masked::Masking;
use crate::plan::outcome::Outcome;
use crate::plan::planner::Planner;
use crate::plan::summarize::{SummaryWriter, earlier_summaries, leading_system_messages, with_first_line};
use crate::text::{clip, count_chars};

impl Planner<'_> {
    /// Stage 2. Returns the masking if there is no answer.
    pub(super) fn summarize(
        &self,
        masking: Masking,
        input: &SummaryInput,
        fits: impl Fn(usize) -> bool,
    ) -> Result<Outcome, Masking> {
        let earlier = earlier_summaries(self.outline, self.source, self.end);
        let mut hidden = self.outside_keep_set(&earlier);
        let dropped: Vec<usize> = hidden.messages().filter(|message| earlier.binary_search(message).is_err()).collect();
        if dropped.is_empty() || *input == SummaryInput::Failed || !self.holds_pairs(|message| !hidden.has(message)) {
            return Err(masking);
        }
        let (view_cost, view_chars) = self.view_cost(|message| !hidden.has(message), &masking);
        if !fits(view_cost) {
            return Err(masking); // it would not fit with any summary
        }
        let writer = SummaryWriter::telling_of(self.context(), earlier, dropped);
        let (text, cost) = if let SummaryInput::Given(text, cost) = input {
            (with_first_line(text), *cost)
        } else {
            if self.policy.limit.asks_summary {
                return Ok(Outcome::AskSummary(Box::new(writer.request())));
            }
            (writer.built_in(&writer.tagged()), None)
        };
        let text = text[..clip(&text, self.policy.limit.summary_chars)].to_vec();
        let chars = count_chars(&text);
        let (_, chars_before) = self.view_cost(|_| true, &masking);
        let cost = cost.unwrap_or(chars);
        if chars >= chars_before - view_chars || !fits(view_cost.saturating_add(cost)) {
            return Err(masking);
        }
        let place = leading_system_messages(self.outline, self.end);
        hidden.summary =
            Some(Standing { place, share: cost, request: self.end, compacted: 0, key: 0, is_forced: true });
        let plan = self.finish(masking, hidden, Some(writer.summary(text)));
        Ok(Outcome::Plan(Box::new(plan)))
    }

    /// What it hides, these earlier summaries included.
    fn outside_keep_set(&self, earlier: &[usize]) -> Hidden {
        let landmarks = Landmarks::of(self.outline, 0..self.end);
        let is_kept = |message: usize| earlier.binary_search(&message).is_err();
        Hidden::all_but(
            self.keeping(&landmarks).keep_set(self.window().start(self.context())..self.end, is_kept),
            self.end,
        )
    }
}
