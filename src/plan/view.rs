//! The plan of a state: what its view masks, cuts, hides and inserts. The text of a summary is asked for here, and not before.

use super::context::{SummaryInput, Uncounted};
use super::layout::{Layout, Summary};
use super::masked::Masked;
use super::outcome::{Outcome, SummaryRequest};
use super::planner::Planner;
use super::state::State;
use super::step::Step;
use super::summarize::{SummaryWriter, text_of};
use super::units::message_of;
use crate::placeholder::Form;
use crate::text::count_chars;

impl Planner<'_> {
    /// The plan of a state of this history, or the summary that it needs.
    pub(super) fn view(
        &self,
        state: &State,
        input: &SummaryInput,
        is_below_trigger: bool,
    ) -> Result<Outcome, Uncounted> {
        let (hidden, context) = (&state.gone.hidden, self.context());
        let mut masking = state.masking();
        let is_restored = |result: &u32| {
            let is_cut = state.results.cuts.iter().any(|cut| cut.result == *result);
            !is_cut && !state.is_masked(*result) && !hidden.has(message_of(self.outline, *result))
        };
        for (result, source) in state.results.references.sources().filter(|(result, _)| is_restored(result)) {
            let form = Form::Restored { source };
            masking.masked.push(Masked { result, form, removed: 0 });
        }
        masking.masked.sort_unstable_by_key(|one| one.result);
        let mut summary = None;
        let (mut cost, mut chars) = (state.sums.cost, state.chars_before(self.end));
        if let Some(standing) = hidden.summary {
            let writer = SummaryWriter::of(context, state, &Step::default(), standing);
            let texts = if let SummaryInput::Known(texts) = input { &texts[..] } else { &[] };
            let known = |key| texts.iter().find(|(known, _)| *known == key);
            let told = self.remembered.and_then(|_| writer.fingerprint());
            let remembered = || self.remembered?.text(told?);
            let text = match (input, known(standing.key)) {
                (SummaryInput::Given(text, _), _) | (_, Some((_, text))) => text.clone(),
                _ if self.policy.limit.asks_summary => 'asked: {
                    if let Some(text) = remembered() {
                        break 'asked text;
                    }
                    let (untold, known) = writer.untold(state, &Step::default(), |key| known(key).is_some());
                    let standing = Some((standing.request, standing.key));
                    let request = SummaryRequest { standing, untold, known, told, ..writer.request() };
                    return Ok(Outcome::AskSummary(Box::new(request)));
                }
                _ => writer.built_in(&writer.tagged()),
            };
            let text = SummaryWriter::clipped(&text, standing.share, self.costs.as_deref())?;
            let own_chars = count_chars(&text);
            let own_cost = self.cost_of(own_chars, || text.clone())?;
            cost = cost.saturating_sub(standing.share).saturating_add(own_cost);
            chars = chars.saturating_sub(standing.share).saturating_add(own_chars);
            summary = Some(Summary { joins: hidden.joined(context, self.end), ..writer.summary(text) });
        }
        for cut in &hidden.cuts {
            let text = || cut.clip.apply(&text_of(context, cut.message));
            cost = cost.saturating_sub(cut.cost).saturating_add(self.cost_of(cut.clip.chars(), text)?);
        }
        let mut layout = Layout { hidden: hidden.clone(), summary, ..Layout::whole(self.end) };
        layout.drop_reasoning(self.outline, state.rule.reasoning.from);
        Ok(Outcome::Plan(Box::new(self.plan_of(masking, layout, (cost, chars), is_below_trigger))))
    }
}
