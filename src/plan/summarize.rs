//! Stage 2: a summary replaces everything outside the keep set; and the built-in summary, which needs no model.

use super::context::{Costs, PlanContext, Uncounted};
use super::hidden::Standing;
use super::layout::Summary;
use super::outcome::SummaryRequest;
use super::state::State;
use super::step::Step;
use crate::fingerprint::{Digest, Fingerprint};
use crate::outline::{ItemType, Message, Outline, Role, Shape};
use crate::policy::Policy;
use crate::source::Source;
use crate::text::{clip, count_chars, is_space};
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The first line of every summary, by which it is recognized later.
const SUMMARY_HEAD: &str = "Conversation summary:";

const OBJECTIVE: &str = "- objective: ";
const OBJECTIVE_CHARS: usize = 220;
const LINE_CHARS: usize = 120;
const OUTCOME: &str = "- outcome: ";
/// The kinds of lines after the objective: prefix, tag of their messages, and maximum number.
const KINDS: [(&str, Option<&str>, usize); 3] =
    [("- unresolved: ", Some("unresolved"), 6), (OUTCOME, None, 6), ("- constraint: ", Some("constraint"), 8)];

/// How many system messages a history begins with.
pub(crate) fn leading_system_messages(outline: &Outline, end: usize) -> usize {
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
pub(crate) fn begins_with_summary(outline: &Outline, source: &dyn Source) -> bool {
    outline.begins_with_summary || !earlier_summaries(outline, source, outline.messages.len()).is_empty()
}

/// The text of a message.
pub(super) fn text_of(context: PlanContext, message: usize) -> Vec<u8> {
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

/// The role and the shape of a summary: the first message whose shape names one decides.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SummaryForm {
    is_system: Option<bool>,
    shape: Option<Shape>,
}

impl SummaryForm {
    pub(crate) fn read(&mut self, messages: &[Message]) {
        for message in messages {
            if self.is_system.is_some() && self.shape.is_some() {
                return;
            }
            let is_item = !matches!(message.item, ItemType::Other | ItemType::Unknown);
            let takes_no_system = is_item || !message.shape.takes_system_messages();
            if takes_no_system || message.shape.decides_provider() {
                self.is_system.get_or_insert(!takes_no_system);
            }
            if message.shape.text() != Shape::default().text() {
                self.shape.get_or_insert(message.shape);
            }
        }
    }

    /// A summary of this text.
    pub(crate) fn summary(self, policy: &Policy, text: Vec<u8>) -> Summary {
        let role = if self.is_system.unwrap_or(true) { "system" } else { "user" };
        let role = policy.limit.summary_role.clone().unwrap_or_else(|| role.to_owned());
        Summary { text, role, joins: None, shape: self.shape.unwrap_or_default() }
    }
}

/// Writes the summary that stands for messages: the built-in one, or what a model is asked for.
pub(crate) struct SummaryWriter<'a> {
    context: PlanContext<'a>,
    /// Summaries of earlier reductions, which it takes the place of.
    earlier: Vec<usize>,
    dropped: Vec<usize>,
    /// What the user has said first.
    task: Option<usize>,
    /// Whether it names the task, which the view does not show.
    names_task: bool,
}

impl<'a> SummaryWriter<'a> {
    /// The writer for these messages, of a view without the task, and for earlier summaries.
    pub(super) fn telling_of(context: PlanContext<'a>, earlier: Vec<usize>, dropped: Vec<usize>) -> Self {
        let task = first_user_message(context.outline, &earlier, context.outline.messages.len());
        SummaryWriter { context, earlier, dropped, task, names_task: true }
    }

    /// The writer of the summary that stands after a step: for what was hidden when it was made.
    pub(crate) fn of(context: PlanContext<'a>, state: &State, step: &Step, standing: Standing) -> Self {
        let PlanContext { outline, source, .. } = context;
        let (mut dropped, _) = state.to_tell(step, |_| false);
        let is_hidden = |message: &usize| dropped.binary_search(message).is_ok();
        let mut earlier = earlier_summaries(outline, source, outline.messages.len());
        let task = first_user_message(outline, &earlier, standing.request);
        let names_task = task.as_ref().is_none_or(is_hidden);
        earlier.retain(is_hidden);
        dropped.retain(|message| *message >= standing.compacted && earlier.binary_search(message).is_err());
        SummaryWriter { context, earlier, dropped, task, names_task }
    }

    /// The messages that it is made of.
    pub(crate) fn summarized(&self) -> Vec<usize> {
        self.dropped.clone()
    }

    /// The fingerprint of all that it tells of, which is the same in this process alone; None if that is not known.
    pub(crate) fn fingerprint(&self) -> Option<Digest> {
        static KEY: LazyLock<[u64; 2]> = LazyLock::new(|| [0, 1].map(|number| RandomState::new().hash_one(number)));
        let mut fingerprint = Fingerprint::keyed(&KEY.map(u64::to_le_bytes).concat());
        let PlanContext { outline, source, .. } = self.context;
        fingerprint.number(self.earlier.len() as u64);
        let mut messages = self.earlier.iter().chain(&self.dropped);
        messages.all(|message| source.identify(outline, *message, &mut fingerprint)).then(|| fingerprint.digest())
    }

    /// Those of the messages of which no known text tells, and the key of the newest text that is known; `step` is what made the
    /// writer's view of this state.
    pub(crate) fn untold(
        &self,
        state: &State,
        step: &Step,
        is_known: impl Fn(u64) -> bool,
    ) -> (Vec<usize>, Option<u64>) {
        let (mut messages, known) = state.to_tell(step, is_known);
        messages.retain(|message| self.tells_of(*message));
        (messages, known)
    }

    /// The text of earlier summaries, without their first lines.
    pub(crate) fn previous(&self) -> Option<Vec<u8>> {
        let texts = self.earlier.iter().map(|message| text_of(self.context, *message));
        let bodies: Vec<Vec<u8>> = texts.filter_map(|text| strip_first_line(&text).map(<[u8]>::to_vec)).collect();
        (!self.earlier.is_empty()).then(|| bodies.join(&b"\n"[..]))
    }

    /// What a model is asked for that writes it.
    pub(super) fn request(&self) -> SummaryRequest {
        let (dropped, previous, built_in) = (self.summarized(), self.previous(), self.built_in(&self.tagged()));
        SummaryRequest { dropped, previous, built_in, ..SummaryRequest::default() }
    }

    /// Whether it is made of a message.
    pub(crate) fn tells_of(&self, message: usize) -> bool {
        self.dropped.binary_search(&message).is_ok()
    }

    /// The tags of a message, as the message and the place of the tag in the kinds.
    pub(crate) fn tags_of(&self, message: usize) -> Vec<(u32, usize)> {
        let PlanContext { outline, source, .. } = self.context;
        let kinds = KINDS.iter().enumerate().filter_map(|(kind, (_, tag, _))| Some((kind, (*tag)?)));
        let has = kinds.filter(|(_, tag)| source.has_tag(outline, message, tag));
        has.map(|(kind, _)| (message as u32, kind)).collect()
    }

    /// The tags of its messages.
    pub(crate) fn tagged(&self) -> Vec<(u32, usize)> {
        self.dropped.iter().flat_map(|message| self.tags_of(*message)).collect()
    }

    /// The built-in summary: the objective, unless the view has the task; the lines of earlier ones; and the newest lines of each
    /// kind. Nothing is said twice. `tagged` are those of [`SummaryWriter::tagged`].
    pub(crate) fn built_in(&self, tagged: &[(u32, usize)]) -> Vec<u8> {
        let previous = self.previous().unwrap_or_default();
        let previous = previous.split(|byte| *byte == b'\n').map(|line| one_line(line, usize::MAX));
        let previous: Vec<Vec<u8>> = previous.filter(|line| !line.is_empty()).collect();
        let is_kind = |line: &[u8], prefix: &str| line.starts_with(prefix.as_bytes());
        let mut lines = vec![SUMMARY_HEAD.as_bytes().to_vec()];
        if self.names_task {
            let objective = previous.iter().find(|line| is_kind(line, OBJECTIVE)).cloned();
            let of_task = || line_of(OBJECTIVE, &self.text_of_pieces(self.task?), OBJECTIVE_CHARS);
            lines.extend(objective.or_else(of_task));
        }
        let prefixes = || KINDS.iter().map(|(prefix, ..)| *prefix).chain([OBJECTIVE]);
        for line in previous.iter().filter(|line| !prefixes().any(|prefix| is_kind(line, prefix))) {
            if !lines.contains(line) {
                lines.push(line.clone());
            }
        }
        for (kind, (prefix, tag, most)) in KINDS.into_iter().enumerate() {
            // The newest first, as many as are wanted.
            let mut newest: Vec<Vec<u8>> = vec![];
            let earlier = previous.iter().filter(|line| is_kind(line, prefix)).rev().cloned();
            let of_messages: Box<dyn Iterator<Item = Vec<u8>>> = match tag {
                Some(_) => {
                    Box::new(tagged.iter().rev().filter(move |(_, of)| *of == kind).filter_map(|(message, _)| {
                        line_of(prefix, &self.text_of_pieces(*message as usize), LINE_CHARS)
                    }))
                }
                None => Box::new(self.dropped.iter().rev().flat_map(|message| self.outcomes(*message))),
            };
            for line in of_messages.chain(earlier) {
                if newest.len() == most {
                    break;
                }
                if !newest.contains(&line) && !lines.contains(&line) {
                    newest.push(line);
                }
            }
            lines.extend(newest.into_iter().rev());
        }
        let text = lines.join(&b"\n"[..]);
        text[..clip(&text, self.context.policy.limit.summary_chars)].to_vec()
    }

    /// The text of a summary without its first line.
    pub(crate) fn body(text: &[u8]) -> Vec<u8> {
        strip_first_line(text).unwrap_or(text).to_vec()
    }

    /// The characters of the same, of a summary of so many.
    pub(crate) fn body_chars(chars: usize) -> usize {
        chars.saturating_sub(SUMMARY_HEAD.len() + 1)
    }

    /// A text with its first line, clipped at a sentence to a share: of characters, or of what was counted.
    pub(crate) fn clipped(text: &[u8], share: usize, costs: Option<&Costs>) -> Result<Vec<u8>, Uncounted> {
        let text = with_first_line(text);
        let Some(costs) = costs else { return Ok(text[..end_of_sentence(&text, share)].to_vec()) };
        let mut most = text.len();
        loop {
            let clipped = &text[..end_of_sentence(&text, most)];
            let (chars, cost) = (count_chars(clipped), costs.of_text(clipped)?);
            if cost <= share || most == 0 {
                return Ok(clipped.to_vec());
            }
            let part = usize::try_from(chars as u128 * share as u128 / cost.max(1) as u128).unwrap_or(usize::MAX);
            most = part.min(chars.saturating_sub(chars / 4 + 1));
        }
    }

    /// A summary of this text.
    pub(crate) fn summary(&self, text: Vec<u8>) -> Summary {
        let mut form = SummaryForm::default();
        form.read(&self.context.outline.messages);
        form.summary(self.context.policy, text)
    }

    /// The text of a message, as pieces.
    fn text_of_pieces(&self, message: usize) -> Vec<u8> {
        self.context.source.pieces(self.context.outline, message).join(&b" "[..])
    }

    /// The outcomes of a message's results, newest first.
    fn outcomes(&self, message: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
        let PlanContext { outline, pairs, source, .. } = self.context;
        outline.results_of(message).rev().filter_map(move |result| {
            let text = one_line(&source.observation(outline, result), LINE_CHARS);
            let name = pairs.name_of(outline, result).map_or(&b""[..], |name| outline.name(name));
            let name = &*one_line(name, usize::MAX);
            let separator: &[u8] = if name.is_empty() { b"" } else { b": " };
            (!text.is_empty()).then(|| [OUTCOME.as_bytes(), name, separator, &text].concat())
        })
    }
}

/// The end of the first characters of a text. If it has more, that of the last line or sentence in their second half, without the
/// headings that would end it; but never only its first line.
fn end_of_sentence(text: &[u8], max_chars: usize) -> usize {
    let (end, middle) = (clip(text, max_chars), clip(text, max_chars / 2));
    if end == text.len() {
        return end;
    }
    let first_line = text.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let is_end = |at: &usize| {
        text[*at] == b'\n' || (text[*at].is_ascii_whitespace() && matches!(text[*at - 1], b'.' | b'!' | b'?'))
    };
    let mut cut = (middle.max(first_line) + 1..=end).rev().find(is_end).unwrap_or(end);
    while let Some(newline) =
        text[..cut].iter().rposition(|byte| *byte == b'\n').filter(|newline| *newline > first_line)
    {
        let line = text[newline..cut].trim_ascii();
        let is_heading = line.starts_with(b"#") || line.strip_suffix(b"**").unwrap_or(line).ends_with(b":");
        if !line.is_empty() && !is_heading {
            break;
        }
        cut = newline;
    }
    cut
}

/// The task: of the first messages the first of a user that is neither result, part of a run, nor one of the earlier summaries.
fn first_user_message(outline: &Outline, summaries: &[usize], end: usize) -> Option<usize> {
    (0..end).find(|message| outline.is_said_by_user(*message) && summaries.binary_search(message).is_err())
}

/// A line of the summary: prefix, and the clipped text; None if there is no text.
fn line_of(prefix: &str, text: &[u8], max_chars: usize) -> Option<Vec<u8>> {
    let text = one_line(text, max_chars);
    (!text.is_empty()).then(|| [prefix.as_bytes(), &text].concat())
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
