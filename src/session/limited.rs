//! Sessions with a limit; and a history over its limit, given whole: the view of a session from which one was taken at each of its
//! requests.

use super::{Appended, InLog, InView, Result, Session, TextFormat, Update};
use crate::clip::Clip;
use crate::outline::Outline;
use crate::pairs::Pairs;
use crate::placeholder::{CountedClip, Form};
use crate::plan::{Costs, Cut, Masked, Outcome, Plan, Stage, Step, Summary, SummaryInput};
use crate::policy::{NOW, Policy};
use crate::scan;
use crate::source::{Bytes, Source};
use crate::store::Store;
use crate::turns::Turns;

/// A question to a token counter.
#[derive(Debug)]
pub enum Question {
    /// The costs of these texts.
    Texts(Vec<Vec<u8>>),
    /// The costs of these messages, whose observations have these numbers.
    Messages(Vec<Vec<u8>>, Vec<u32>),
}

/// The counter's answer; None if it failed.
pub type Counter<'a> = &'a mut dyn FnMut(Question) -> Option<Costs>;

/// The plan of a history over its limit: of a session that is replayed. Only the newest request takes a summary of the caller's,
/// and those before it the built-in one. None if the counter failed.
///
/// # Errors
/// Those of [`Session::append`].
pub fn plan_limited(
    messages: &[&[u8]],
    outline: &Outline,
    policy: &Policy,
    costs: Option<&Costs>,
    summary: &SummaryInput,
    counter: Counter,
) -> Result<Option<Outcome>> {
    let asks = policy.ask_summary;
    // The current request is the last one.
    let at_end = |request: usize| if request == NOW { messages.len() } else { request };
    let mut cold: Vec<usize> = policy.cold.iter().copied().map(at_end).collect();
    cold.sort_unstable();
    let mut session = Session::new(Policy { cold, ..policy.clone() }, 0, TextFormat::Json);
    let starts = Turns::of(outline).starts;
    let ends = starts.iter().map(|start| *start as usize).filter(|start| *start < messages.len());
    for end in ends.chain([messages.len()]) {
        for (message, data) in messages.iter().enumerate().take(end).skip(session.len()) {
            session.append(data, true, costs.map(|costs| costs_of(costs, outline, message)), None)?;
            if let Some(costs) = costs {
                session.know_text_costs(costs);
            }
        }
        let (is_last, mut answer) = (end == messages.len(), SummaryInput::NotAsked);
        loop {
            match session.update_view(&answer, None)? {
                Update::Done => break,
                Update::AskSummary(..) if is_last && asks && *summary != SummaryInput::NotAsked => {
                    answer = summary.clone();
                }
                Update::AskSummary(_, previous, built_in) if is_last && asks => {
                    let dropped = session.asked.clone();
                    return Ok(Some(Outcome::AskSummary { dropped, previous, built_in }));
                }
                Update::AskSummary(.., built_in) => answer = SummaryInput::Given(built_in, None),
                Update::AskTextCosts(texts) => {
                    let Some(found) = counter(Question::Texts(texts)) else { return Ok(None) };
                    session.set_text_costs(found.texts);
                }
                Update::AskCosts => {
                    let (kept, numbers) = session.pending_messages();
                    let Some(found) = counter(Question::Messages(kept, numbers)) else { return Ok(None) };
                    session.apply_compaction(Some(found), None)?;
                    break;
                }
            }
        }
    }
    Ok(Some(Outcome::Plan(Box::new(session.plan_of_view(messages, outline)))))
}

/// The costs of a message.
fn costs_of(costs: &Costs, outline: &Outline, message: usize) -> (usize, Vec<(usize, usize)>) {
    (costs.messages[message], costs.observations[outline.results_of(message)].to_vec())
}

impl Session {
    /// The changes of the current request in the view.
    pub(super) fn next_step(&mut self) -> Step {
        let (end, is_request) = (self.log.len(), !self.log.ends_with_run());
        self.log.with_fold(&self.policy, |context, fold| {
            fold.grow(context, end);
            fold.step(context, end, is_request, is_request)
        })
    }

    /// Updates the view under a limit that drops messages where masks and cuts are not enough.
    pub(super) fn update_limited(
        &mut self,
        summary: &SummaryInput,
        store: Option<&mut Store>,
    ) -> Result<Option<Update>> {
        let step = self.next_step();
        if step.is_over {
            return self.compact(summary, store);
        }
        self.show_step(&step);
        Ok(None)
    }

    /// The current view as a plan of the messages that were appended.
    fn plan_of_view(&self, messages: &[&[u8]], input: &Outline) -> Plan {
        let (outline, image_chars) = (&self.log.outline, self.policy.image_chars);
        let mut plan = Plan { kept: Some(vec![false; messages.len()]), ..Plan::default() };
        let gone = self.compaction.as_ref().map_or(&[][..], |compaction| &compaction.masked);
        for message in 0..self.log.len() {
            let Some(Appended(index)) = self.origin(InView(message)).appended() else {
                plan.summary = Some(self.summary_in_log(message));
                continue;
            };
            if let Some(summary) = plan.summary.as_mut().filter(|summary| summary.before == usize::MAX) {
                summary.before = index;
            }
            if let Some(kept) = &mut plan.kept {
                kept[index] = true;
            }
            let shown = self.rendered_message(InLog(message));
            if shown == messages[index] {
                continue;
            }
            let masked = self.masked(message, message + 1);
            let before = plan.masked.len();
            for (result, original) in outline.results_of(message).zip(input.results_of(index)) {
                let change = masked.iter().find(|one| one.result as usize == result);
                let chars = outline.observation_chars(result, image_chars);
                let chars =
                    chars.saturating_sub(change.map_or(0, |one| one.removed + self.log.fold.removed_by_cut(one)));
                let removed = input.observation_chars(original, image_chars).saturating_sub(chars);
                let is_masked =
                    change.is_some_and(Masked::is_masked) || gone.binary_search(&outline.numbers[result]).is_ok();
                if is_masked || removed > 0 {
                    let form = if is_masked { Form::Placeholder } else { cut_form(chars) };
                    plan.masked.push(Masked { result: original as u32, form, removed });
                }
            }
            if plan.masked.len() == before {
                let cut_chars =
                    input.chars_of(index, image_chars).saturating_sub(outline.chars_of(message, image_chars));
                plan.cut = Some(Cut { message: index, clip: Clip::of(cut_chars, 0, 0, None), cost: 0 });
                plan.cut_chars += cut_chars;
            }
            plan.rendered.push((index, shown));
        }
        let drops = plan.kept.iter().flatten().any(|kept| !kept);
        plan.stage = match (&plan.summary, drops) {
            (Some(_), _) => Some(Stage::Summarization),
            (None, true) => Some(Stage::Fallback),
            (None, false) => plan.masked.iter().any(Masked::is_masked).then_some(Stage::Masking),
        };
        plan.boundary = plan.masked.iter().rfind(|one| one.is_masked()).map_or(0, |last| last.result as usize + 1);
        plan.moves = self.moves_from(0);
        plan.chars = (input.total_chars(image_chars), self.counts().chars);
        plan.within_limit = self.max_cost().map(|max| self.view_cost() <= max);
        (plan.pairs, plan.turns) = (Pairs::of(input), Turns::of(input));
        plan.orphans = plan.pairs.orphans(input);
        plan
    }

    /// The message of the last summary.
    fn summary_in_log(&self, message: usize) -> Summary {
        let (outline, data) = (&self.log.outline, &self.log.data);
        let role = scan::member(data, outline.spans[message], b"role");
        let role = role.and_then(|role| scan::text(role.of(data))).unwrap_or_default();
        Summary {
            text: Bytes(data).pieces(outline, message).concat(),
            role: String::from_utf8_lossy(&role).into_owned(),
            before: usize::MAX,
            shape: outline.messages[message].shape,
        }
    }
}

/// A cut that leaves this many characters; only its kind is read.
fn cut_form(chars: usize) -> Form {
    Form::Clip(Box::new(CountedClip { clip: Clip::of(chars, 0, chars, None), cost: chars }))
}
