//! Stage 2: a summary replaces everything outside the keep set; and the built-in summary, which needs no model.

use super::context::PlanContext;
use super::outcome::{Masking, Outcome, Plan, Stage, Summary, SummaryInput};
use super::planner::Planner;
use crate::outline::{ItemType, Message, Outline, Role, Shape};
use crate::source::Source;
use crate::text::{clip, count_chars, is_space};

/// The first line of every summary, by which it is recognized later.
const SUMMARY_HEAD: &str = "Conversation summary:";

const OBJECTIVE: &str = "- objective: ";
const OBJECTIVE_CHARS: usize = 220;
const LINE_CHARS: usize = 120;
const OUTCOME: &str = "- outcome: ";
/// The kinds of lines after the objective: prefix, tag of their messages, and maximum number.
const KINDS: [(&str, Option<&str>, usize); 3] =
    [("- unresolved: ", Some("unresolved"), 6), (OUTCOME, None, 6), ("- constraint: ", Some("constraint"), 8)];

impl Planner<'_> {
    /// Stage 2. Returns the masking if there is no answer.
    pub(super) fn summarize(
        &self,
        masking: Masking,
        input: &SummaryInput,
        fits: impl Fn(usize) -> bool,
    ) -> Result<Outcome, Masking> {
        let earlier = self.earlier_summaries();
        let kept = self.keep_set(&earlier);
        let is_earlier = |message: &usize| earlier.binary_search(message).is_ok();
        let dropped: Vec<usize> = (0..kept.len()).filter(|message| !kept[*message] && !is_earlier(message)).collect();
        if dropped.is_empty() || *input == SummaryInput::Failed || !self.holds_pairs(|message| kept[message]) {
            return Err(masking);
        }
        let (view_cost, view_chars) = self.view_cost(|message| kept[message], &masking);
        if !fits(view_cost) {
            return Err(masking); // it would not fit with any summary
        }
        let previous = (!earlier.is_empty()).then(|| self.body_of(&earlier));
        let (text, cost) = if let SummaryInput::Given(text, cost) = input {
            (with_first_line(text), *cost)
        } else {
            let built_in = built_in_summary(self, &dropped, Some(&earlier), previous.as_deref());
            if self.policy.ask_summary {
                return Ok(Outcome::AskSummary { dropped, previous, built_in });
            }
            (built_in, None)
        };
        let text = text[..clip(&text, self.policy.summary_max_chars)].to_vec();
        let chars = count_chars(&text);
        let (_, chars_before) = self.view_cost(|_| true, &masking);
        let cost = cost.unwrap_or(chars);
        if chars >= chars_before - view_chars || !fits(view_cost.saturating_add(cost)) {
            return Err(masking);
        }
        let summary = Some((self.summary(text), cost));
        let plan: Plan = self.finish(Some(Stage::Summarization), masking, Some(kept), None, summary);
        Ok(Outcome::Plan(Box::new(plan)))
    }

    pub(super) fn earlier_summaries(&self) -> Vec<usize> {
        earlier_summaries(self.outline, self.source, self.end)
    }

    /// A summary of this text, in its place.
    pub(super) fn summary(&self, text: Vec<u8>) -> Summary {
        let (role, before) = (self.summary_role(), self.leading_system_messages());
        Summary { text, role, before, shape: self.summary_shape() }
    }

    fn leading_system_messages(&self) -> usize {
        leading_system_messages(self.outline, self.end)
    }

    pub(super) fn text_of(&self, message: usize) -> Vec<u8> {
        text_of(self.context(), message)
    }

    /// The text of earlier summaries, without their first lines.
    pub(super) fn body_of(&self, summaries: &[usize]) -> Vec<u8> {
        let bodies: Vec<Vec<u8>> = summaries
            .iter()
            .filter_map(|message| strip_first_line(&self.text_of(*message)).map(<[u8]>::to_vec))
            .collect();
        bodies.join(&b"\n"[..])
    }

    fn summary_role(&self) -> String {
        if let Some(role) = &self.policy.summary_role {
            return role.clone();
        }
        let takes_no_system =
            |message: &Message| message.item != ItemType::Other || !message.shape.takes_system_messages();
        let role = if self.outline.messages.iter().any(takes_no_system) { "user" } else { "system" };
        role.to_owned()
    }

    /// The shape of the first message whose shape has its own form of summaries.
    fn summary_shape(&self) -> Shape {
        let mut shapes = self.outline.messages.iter().map(|message| message.shape);
        shapes.find(|shape| shape.text() != Shape::default().text()).unwrap_or_default()
    }
}

fn leading_system_messages(outline: &Outline, end: usize) -> usize {
    outline.messages[..end].iter().take_while(|message| message.role == Role::System).count()
}

/// Summaries of earlier reductions, ascending: recognized by their place and first line.
pub(super) fn earlier_summaries(outline: &Outline, source: &dyn Source, end: usize) -> Vec<usize> {
    (0..end.min(leading_system_messages(outline, end) + 1))
        .filter(|message| outline.calls_of(*message).is_empty() && !outline.holds_results(*message))
        .filter(|message| strip_first_line(&source.pieces(outline, *message).concat()).is_some())
        .collect()
}

/// Whether the history begins with a summary of an earlier reduction.
#[must_use]
pub fn begins_with_summary(outline: &Outline, source: &dyn Source) -> bool {
    outline.begins_with_summary || !earlier_summaries(outline, source, outline.messages.len()).is_empty()
}

fn text_of(context: PlanContext, message: usize) -> Vec<u8> {
    context.source.pieces(context.outline, message).concat()
}

/// The text after the first line of a summary; None if it is no summary.
pub(super) fn strip_first_line(text: &[u8]) -> Option<&[u8]> {
    match text.strip_prefix(SUMMARY_HEAD.as_bytes())? {
        [] => Some(&[]),
        [b'\n', rest @ ..] => Some(rest),
        _ => None,
    }
}

pub(super) fn with_first_line(text: &[u8]) -> Vec<u8> {
    if strip_first_line(text).is_some() {
        return text.to_vec();
    }
    [SUMMARY_HEAD.as_bytes(), b"\n", text].concat()
}

/// The built-in summary: objective, unresolved, outcomes, constraints, and the lines of earlier ones. Without `earlier` there is no
/// objective, since the view has the task.
pub(super) fn built_in_summary(
    planner: &Planner,
    dropped: &[usize],
    earlier: Option<&[usize]>,
    previous: Option<&[u8]>,
) -> Vec<u8> {
    let previous = previous.unwrap_or_default().split(|byte| *byte == b'\n').map(|line| one_line(line, usize::MAX));
    let previous: Vec<Vec<u8>> = previous.filter(|line| !line.is_empty()).collect();
    let is_kind = |line: &[u8], prefix: &str| line.starts_with(prefix.as_bytes());
    let mut lines = vec![SUMMARY_HEAD.as_bytes().to_vec()];
    let objective = earlier.and_then(|earlier| {
        previous.iter().find(|line| is_kind(line, OBJECTIVE)).cloned().or_else(|| {
            let text = planner.text_of_pieces(planner.first_user_message(earlier)?);
            line_of(OBJECTIVE, &text, OBJECTIVE_CHARS)
        })
    });
    lines.extend(objective);
    let prefixes = || KINDS.iter().map(|(prefix, ..)| *prefix).chain([OBJECTIVE]);
    lines.extend(previous.iter().filter(|line| !prefixes().any(|prefix| is_kind(line, prefix))).cloned());
    for (prefix, tag, count) in KINDS {
        let earlier = previous.iter().filter(|line| is_kind(line, prefix)).cloned();
        let mut kind: Vec<Vec<u8>> = earlier.chain(planner.lines_of(prefix, tag, dropped)).collect();
        remove_duplicates(&mut kind);
        lines.extend(kind.split_off(kind.len().saturating_sub(count)));
    }
    remove_duplicates(&mut lines);
    let text = lines.join(&b"\n"[..]);
    text[..clip(&text, planner.policy.summary_max_chars)].to_vec()
}

impl Planner<'_> {
    /// The text of a message, as pieces.
    fn text_of_pieces(&self, message: usize) -> Vec<u8> {
        self.source.pieces(self.outline, message).join(&b" "[..])
    }

    /// The lines of one kind from dropped messages, oldest first: of messages with the tag, or of all results.
    fn lines_of(&self, prefix: &str, tag: Option<&str>, dropped: &[usize]) -> Vec<Vec<u8>> {
        let Some(tag) = tag else {
            let results = dropped.iter().flat_map(|message| self.outline.results_of(*message));
            return results.filter_map(|result| self.outcome(result)).collect();
        };
        let tagged = dropped.iter().filter(|message| self.source.has_tag(self.outline, **message, tag));
        tagged.filter_map(|message| line_of(prefix, &self.text_of_pieces(*message), LINE_CHARS)).collect()
    }

    fn outcome(&self, result: usize) -> Option<Vec<u8>> {
        let text = one_line(&self.source.observation(self.outline, result), LINE_CHARS);
        let name = self.pairs.name_of(self.outline, result).map_or(&b""[..], |name| self.outline.name(name));
        let name = &*one_line(name, usize::MAX);
        let separator: &[u8] = if name.is_empty() { b"" } else { b": " };
        (!text.is_empty()).then(|| [OUTCOME.as_bytes(), name, separator, &text].concat())
    }
}

/// A line of the summary: prefix, and the clipped text; None if there is no text.
fn line_of(prefix: &str, text: &[u8], max_chars: usize) -> Option<Vec<u8>> {
    let text = one_line(text, max_chars);
    (!text.is_empty()).then(|| [prefix.as_bytes(), &text].concat())
}

/// Removes duplicate lines.
fn remove_duplicates(lines: &mut Vec<Vec<u8>>) {
    let mut seen = std::collections::HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
}

/// Text with white space collapsed and trimmed, clipped at `max_chars` characters.
fn one_line(text: &[u8], max_chars: usize) -> Vec<u8> {
    let mut line = Vec::new();
    let (mut at, mut chars, mut is_gap) = (0, 0, false);
    while at < text.len() && chars < max_chars {
        let width = clip(&text[at..(at + 4).min(text.len())], 1);
        let character = &text[at..at + width];
        at += width;
        if is_space(character) {
            is_gap = !line.is_empty();
            continue;
        }
        if is_gap {
            line.push(b' ');
            chars += 1;
            is_gap = false;
            if chars == max_chars {
                break;
            }
        }
        line.extend_from_slice(character);
        chars += 1;
    }
    line
}
