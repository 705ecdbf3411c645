//! The rules again, written to be read: quadratic, recursive, and on Rust's own strings.

use crate::sketch::Sketch;
use recede::handle::is_handle;
use recede::outline::{Call, ItemType, Outline, Role, Shape};
use recede::pairs::FindingKind;
use recede::policy::{Boundary, Field, Policy, Template};
use std::collections::BTreeSet;

/// `*` any text, `?` one character.
pub fn matches(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['*', rest @ ..], _) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        (['?', pattern @ ..], [_, name @ ..]) => matches(pattern, name),
        ([wanted, pattern @ ..], [found, name @ ..]) => wanted == found && matches(pattern, name),
        _ => false,
    }
}

pub fn tool_matches(pattern: &[u8], name: &str) -> bool {
    let pattern: Vec<char> = core::str::from_utf8(pattern).unwrap().chars().collect();
    matches(&pattern, &name.chars().collect::<Vec<_>>())
}

/// What a template's fields stand for.
#[derive(Debug, Clone, Default)]
pub struct ObservationFacts {
    pub images: usize,
    pub turn: usize,
    pub number: usize,
    pub tool: String,
    pub id: String,
    pub chars: usize,
    pub lines: usize,
}

impl ObservationFacts {
    pub fn of_text(text: &str) -> Self {
        ObservationFacts { chars: text.chars().count(), lines: text.split('\n').count(), ..ObservationFacts::default() }
    }
}

fn render(template: &Template, facts: &ObservationFacts) -> String {
    let mut text = String::new();
    for (literal, field) in template {
        text += core::str::from_utf8(literal).unwrap();
        text += &match field {
            None => String::new(),
            Some(Field::Chars) => facts.chars.to_string(),
            Some(Field::Lines) => facts.lines.to_string(),
            Some(Field::Images) => facts.images.to_string(),
            Some(Field::Turn) => facts.turn.to_string(),
            Some(Field::Number) => facts.number.to_string(),
            Some(Field::Tool) => facts.tool.clone(),
            Some(Field::Id) => facts.id.clone(),
            Some(Field::Handle) => "0".repeat(12),
        };
    }
    text
}

/// Backtracks over every way to share out a text among a template's fields.
fn fits(template: &[(Vec<u8>, Option<Field>)], text: &str) -> bool {
    let Some(((literal, field), behind)) = template.split_first() else { return text.is_empty() };
    let Some(rest) = text.strip_prefix(core::str::from_utf8(literal).unwrap()) else { return false };
    let mut ends = (0..=rest.len()).filter(|end| rest.is_char_boundary(*end));
    match field {
        None => fits(behind, rest),
        Some(Field::Handle) => rest.len() >= 12 && is_handle(&rest.as_bytes()[..12]) && fits(behind, &rest[12..]),
        Some(Field::Tool | Field::Id) => ends.any(|end| fits(behind, &rest[end..])),
        Some(_) => ends.any(|end| {
            end > 0 && rest[..end].chars().all(|character| character.is_ascii_digit()) && fits(behind, &rest[end..])
        }),
    }
}

const HEAD: &str = "[observation masked — ";

fn is_built_in(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|character| character.is_ascii_digit());
    if text == "[old tool output cleared to save context]" {
        return true;
    }
    let Some(rest) = text.strip_prefix(HEAD) else { return false };
    let with = |between: &str, end: &str| {
        let Some((first, rest)) = rest.split_once(between) else { return false };
        is_number(first) && rest.strip_suffix(end).is_some_and(is_number)
    };
    rest.strip_suffix(" chars]").is_some_and(is_number)
        || rest.strip_suffix(" lines omitted]").is_some_and(is_number)
        || with(" chars, ", " images]")
        || with(" lines, ", " images omitted]")
}

fn blocks(text: &str) -> Vec<&str> {
    let (begin, end) = ("BEGIN_DISPATCH_RESULT", "END_DISPATCH_RESULT");
    let Some(start) = text.find(begin) else { return vec![] };
    let inside = start + begin.len();
    let Some(length) = text[inside..].find(end) else { return vec![] };
    let behind = inside + length + end.len();
    let mut found = vec![&text[start..behind]];
    found.extend(blocks(&text[behind..]));
    found
}

fn is_dispatch(text: &str) -> bool {
    let blocks = blocks(text);
    let Some(rest) = text.strip_prefix("[dispatch output masked — ") else { return false };
    let Some((digits, rest)) = rest.split_once(" chars]\n") else { return false };
    !blocks.is_empty()
        && !digits.is_empty()
        && digits.chars().all(|character| character.is_ascii_digit())
        && rest == blocks.join("\n")
}

/// What masking makes of a text; None where it stays.
pub fn mask(text: &str, policy: &Policy, facts: &ObservationFacts) -> Option<String> {
    let count = |text: &str| text.chars().count();
    let before = count(text) + facts.images * policy.text.image_chars;
    let least = policy.text.least_removed.unwrap_or(1);
    let shorter = |text: String| (count(&text) + least <= before).then_some(text);
    let blocks = if policy.design.keeps_dispatch { blocks(text) } else { vec![] };
    if is_built_in(text)
        || (!blocks.is_empty() && is_dispatch(text))
        || policy.text.placeholder.as_ref().is_some_and(|own| fits(own, text))
    {
        return None;
    }
    if !blocks.is_empty() {
        let joined = blocks.join("\n");
        let outside = count(text) - blocks.iter().map(|block| count(block)).sum::<usize>();
        return shorter(format!("[dispatch output masked — {outside} chars]\n{joined}")).or_else(|| shorter(joined));
    }
    let (chars, lines, images) = (facts.chars, facts.lines, facts.images);
    let placeholder = match (&policy.text.placeholder, policy.design.lines_form, images) {
        (Some(own), ..) => render(own, facts),
        (None, false, 0) => format!("{HEAD}{chars} chars]"),
        (None, false, _) => format!("{HEAD}{chars} chars, {images} images]"),
        (None, true, 0) => format!("{HEAD}{lines} lines omitted]"),
        (None, true, _) => format!("{HEAD}{lines} lines, {images} images omitted]"),
    };
    shorter(match policy.design.max_observation_chars {
        None => placeholder,
        Some(max) if max > count(&placeholder) => {
            text.chars().take(max - count(&placeholder)).collect::<String>() + &placeholder
        }
        Some(max) => placeholder.chars().take(max).collect(),
    })
}

/// For each result, the nearest earlier call of its id; else by its place an open one of its shape, where one has no id.
pub fn call_of(outline: &Outline) -> Vec<Option<usize>> {
    let id_of = |id| Some(outline.text(id?));
    let nearest = |result: &recede::outline::ToolResult| {
        let id = id_of(result.id)?;
        (0..outline.calls.len()).rev().find(|call| {
            let call = &outline.calls[*call];
            (call.message, call.block) < (result.message, result.block) && id_of(call.id) == Some(id)
        })
    };
    let mut found: Vec<Option<usize>> = vec![None; outline.results.len()];
    for message in 0..outline.messages.len() {
        let shape = outline.messages[message].shape;
        for result in outline.results_of(message) {
            found[result] = nearest(&outline.results[result]);
        }
        for result in outline.results_of(message) {
            if found[result].is_some() || shape == Shape::Gemini {
                continue; // no result of a sketch has the name that it needs
            }
            let is_open = |call: &usize| {
                let asked = outline.calls[*call].message as usize;
                let end = run_of(outline, asked).1.min(message);
                asked < message && (end..message).all(|between| outline.holds_results(between))
            };
            let fits = |call: &usize| {
                let facts = &outline.calls[*call];
                outline.messages[facts.message as usize].shape == shape
                    && (facts.id.is_none() || outline.results[result].id.is_none())
                    && !found.contains(&Some(*call))
            };
            let place = |call: &usize| (outline.calls[*call].message, core::cmp::Reverse(*call));
            found[result] = (0..outline.calls.len()).filter(is_open).filter(fits).max_by_key(place);
        }
    }
    found
}

/// The run of each message, as first message and one behind the last.
pub fn run_of(outline: &Outline, message: usize) -> (usize, usize) {
    let is_agent = |message: &usize| outline.messages[*message].is_agent_made;
    if !is_agent(&message) {
        return (message, message + 1);
    }
    let mut start = message;
    while start > 0 && is_agent(&(start - 1)) {
        start -= 1;
    }
    let mut end = message + 1;
    while end < outline.messages.len() && is_agent(&end) {
        end += 1;
    }
    (start, end)
}

/// Runs that have begun at or before a message.
pub fn turn_of(outline: &Outline, message: usize) -> usize {
    let begins = |index: usize| {
        outline.messages[index].is_agent_made && (index == 0 || !outline.messages[index - 1].is_agent_made)
    };
    (0..=message).filter(|index| begins(*index)).count()
}

pub fn is_open(outline: &Outline, call: usize) -> bool {
    let (_, end) = run_of(outline, outline.calls[call].message as usize);
    (end..outline.messages.len()).all(|message| outline.holds_results(message))
}

pub fn orphans(outline: &Outline) -> Vec<usize> {
    let call_of = call_of(outline);
    let calls = (0..outline.calls.len())
        .filter(|call| !call_of.contains(&Some(*call)) && !is_open(outline, *call))
        .map(|call| outline.calls[call].message as usize);
    let results = (0..outline.results.len())
        .filter(|result| call_of[*result].is_none())
        .map(|result| outline.results[result].message as usize);
    calls.chain(results).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The findings, as a list of (place of call or result, order of kind, kind, message, id).
pub fn findings(outline: &Outline) -> Vec<(FindingKind, usize, Option<Vec<u8>>)> {
    use FindingKind::{
        CallWithoutResult, IdOpenTwice, IdUsedAgain, MissingId, NotAdjacent, NotLeading, OpenCall, OtherKind,
        ReasoningAlone, ResultWithoutCall, SecondResult, SplitResults,
    };
    let call_of = call_of(outline);
    let text = |id| Some(outline.text(id?).to_vec());
    let shape_at = |message: u32| outline.messages[message as usize].shape;
    let is_known = |call: &Call| call.id.is_some() || (call.name.is_some() && takes_names(shape_at(call.message)));
    // Of a call, whether it and its first result have no ids, which chat permits.
    let has_no_ids = |call: usize| {
        let first = call_of.iter().position(|other| *other == Some(call));
        let is_without = first.is_some_and(|first| outline.results[first].id.is_none());
        is_without && outline.calls[call].id.is_none() && takes_names(shape_at(outline.calls[call].message))
    };
    let mut found = vec![];
    for message in (0..outline.messages.len()).filter(|message| is_alone(outline, *message)) {
        found.push(((message as u32, 0), ReasoningAlone, None));
    }
    for (index, call) in outline.calls.iter().enumerate() {
        let mut add = |kind| found.push(((call.message, call.block), kind, text(call.id)));
        if !is_known(call) && !has_no_ids(index) {
            add(MissingId);
        }
        let place = (call.message, call.block);
        let is_open_before = |earlier: usize| {
            text(outline.calls[earlier].id) == text(call.id)
                && !outline
                    .results
                    .iter()
                    .zip(&call_of)
                    .any(|(result, call)| *call == Some(earlier) && (result.message, result.block) < place)
        };
        let has_id = |earlier: usize| text(outline.calls[earlier].id) == text(call.id);
        if call.id.is_some() && (0..index).any(is_open_before) {
            add(IdOpenTwice);
        } else if call.id.is_some()
            && (0..index).any(has_id)
            && matches!(shape_at(call.message), Shape::Anthropic | Shape::Converse)
        {
            add(IdUsedAgain);
        }
        if !call_of.contains(&Some(index)) {
            add(if is_open(outline, index) { OpenCall } else { CallWithoutResult });
        }
    }
    for (index, result) in outline.results.iter().enumerate() {
        let mut add = |kind| found.push(((result.message, result.block), kind, text(result.id)));
        let message = result.message as usize;
        if result.id.is_none() && !call_of[index].is_some_and(has_no_ids) {
            add(MissingId);
        }
        match call_of[index] {
            None => add(ResultWithoutCall),
            Some(call) => {
                if call_of[..index].contains(&Some(call)) {
                    add(SecondResult);
                }
                let (_, end) = run_of(outline, outline.calls[call].message as usize);
                // No sketch has the types of items.
                if [shape_at(outline.calls[call].message), shape_at(result.message)].contains(&Shape::Responses) {
                    add(OtherKind);
                }
                if message < end || !(end..=message).all(|between| outline.holds_results(between)) {
                    add(NotAdjacent);
                } else if is_split(outline, &call_of, index) {
                    add(SplitResults);
                }
            }
        }
        let is_leading = outline
            .results
            .iter()
            .filter(|other| other.message == result.message && other.block < result.block)
            .count()
            == result.block as usize;
        if outline.messages[message].shape == Shape::Anthropic && !is_leading {
            add(NotLeading);
        }
    }
    found.sort_by_key(|(place, kind, _)| (*place, *kind));
    found.into_iter().map(|((message, _), kind, id)| (kind, message as usize, id)).collect()
}

fn takes_names(shape: Shape) -> bool {
    matches!(shape, Shape::OpenAi | Shape::Gemini)
}

/// Whether a message is reasoning, after which its answer ends.
fn is_alone(outline: &Outline, message: usize) -> bool {
    let is_reasoning = |message: &usize| outline.messages[*message].item == ItemType::Reasoning;
    let next = (message + 1..outline.messages.len()).find(|next| !is_reasoning(next));
    is_reasoning(&message)
        && next.is_none_or(|next| {
            let facts = &outline.messages[next];
            let is_said = matches!(facts.role, Role::System | Role::User) || outline.holds_results(next);
            is_said && !facts.is_agent_made
        })
}

/// Whether an earlier message has results of the turn of this one, in whose message its provider wants it. It is adjacent.
fn is_split(outline: &Outline, call_of: &[Option<usize>], result: usize) -> bool {
    let run_end = |call: usize| run_of(outline, outline.calls[call].message as usize).1;
    let of_shape = |result: usize, call: usize| {
        let asked = outline.calls[call].message as usize;
        outline.messages[outline.results[result].message as usize].shape == outline.messages[asked].shape
    };
    let counts = |result: usize| {
        let message = outline.results[result].message as usize;
        let is_first = !call_of[..result].contains(&call_of[result]);
        is_first && outline.calls_of(message).is_empty() && call_of[result].is_some_and(|call| of_shape(result, call))
    };
    let Some(turn) = call_of[result].map(run_end).filter(|_| counts(result)) else { return false };
    let message = outline.results[result].message as usize;
    let is_sibling = |other: &usize| counts(*other) && call_of[*other].is_some_and(|call| run_end(call) == turn);
    let Some(first) = (0..result).filter(is_sibling).map(|one| outline.results[one].message as usize).find(|one| {
        (turn..=*one).all(|between| outline.holds_results(between))
            && outline.messages[*one].shape == outline.messages[message].shape
    }) else {
        return false;
    };
    let is_mixed = |one: usize| outline.messages[one].blocks as usize > outline.results_of(one).len();
    first < message
        && match outline.messages[message].shape {
            Shape::Converse | Shape::Gemini => true,
            Shape::Anthropic => (first..message).any(is_mixed),
            _ => false,
        }
}

/// Whether the model has not answered since a result, and this keeps it raw.
fn is_unseen(outline: &Outline, policy: &Policy, result: usize) -> bool {
    let answers = outline.messages.iter().skip(outline.results[result].message as usize);
    !policy.design.masks_unseen && !answers.into_iter().any(|message| message.is_agent_made)
}

/// Where the window begins, and how many observations are older by the measures that go for all.
pub fn window(outline: &Outline, policy: &Policy) -> (usize, usize) {
    let (messages, results) = (outline.messages.len(), outline.results.len());
    let before = |start: usize| outline.results.iter().filter(|result| (result.message as usize) < start).count();
    let (mut start, mut bound) = (messages, results);
    let mut measure = |from: usize, observations: usize| {
        start = start.min(from);
        bound = bound.min(observations);
    };
    let others: Vec<usize> = (0..messages).filter(|message| outline.messages[*message].role != Role::System).collect();
    let turns: Vec<usize> = (0..messages)
        .filter(|message| outline.messages[*message].is_agent_made && run_of(outline, *message).0 == *message)
        .collect();
    for (count, places) in [(policy.design.keep_messages, others), (policy.design.keep_turns, turns)] {
        let Some(count) = count else { continue };
        let from = if count == 0 {
            messages
        } else if count >= places.len() {
            0
        } else {
            places[places.len() - count]
        };
        measure(from, before(from));
    }
    if policy.keep.results > 0 {
        let count = policy.keep.results;
        let from = if count >= results { 0 } else { outline.results[results - count].message as usize };
        measure(from, results.saturating_sub(count));
    }
    if let Some(first) = (0..results).find(|result| is_unseen(outline, policy, *result)) {
        measure(outline.results[first].message as usize, first);
    }
    (start, bound)
}

/// What stage 1 masks up to a boundary that is rounded or not: (result, its new text), and the boundary.
pub fn masked(sketch: &Sketch, policy: &Policy, is_rounded: bool) -> (Vec<(usize, String)>, usize) {
    let outline = &sketch.outline;
    let call_of = call_of(outline);
    let tool = |result: usize| -> Option<String> {
        let name = outline.calls[call_of[result]?].name?;
        Some(String::from_utf8(outline.name(name).to_vec()).unwrap())
    };
    let rule = |name: &str| {
        let exact = policy.keep.by_tool.rules().iter().find(|(pattern, _)| pattern == name.as_bytes());
        exact.or_else(|| policy.keep.by_tool.rules().iter().find(|(pattern, _)| tool_matches(pattern, name)))
    };
    let (_, bound) = window(outline, policy);
    let is_older = |result: usize| {
        let own = tool(result).and_then(|name| Some((rule(&name)?.1, name)));
        match own {
            _ if is_unseen(outline, policy, result) => false,
            None => result < bound,
            Some((None, _)) => false,
            Some((Some(count), name)) => {
                (result + 1..outline.results.len()).filter(|later| tool(*later).as_ref() == Some(&name)).count()
                    >= count
            }
        }
    };
    let older_end = (0..outline.results.len()).filter(|result| is_older(*result)).max().map_or(0, |last| last + 1);
    let boundary = match policy.terms.boundary {
        Boundary::Stepped(chunk) if is_rounded => older_end / chunk * chunk,
        _ => older_end,
    };
    let is_exempt = |result: usize| {
        (policy.exempt.errors && outline.results[result].is_error)
            || tool(result).is_some_and(|name| {
                policy.exempt.tools.rules().iter().any(|(pattern, ())| tool_matches(pattern, &name))
            })
    };
    let mut found = vec![];
    for result in (0..boundary).filter(|result| is_older(*result) && !is_exempt(*result)) {
        let text = &sketch.observations[result];
        let facts = facts(sketch, &call_of, result);
        if let Some(masked) = mask(text, policy, &facts) {
            found.push((result, masked));
        }
    }
    let removed: usize = found.iter().map(|(result, text)| removed_chars(sketch, policy, *result, text)).sum();
    if removed < policy.design.min_masked_chars { (vec![], 0) } else { (found, boundary) }
}

pub fn removed_chars(sketch: &Sketch, policy: &Policy, result: usize, masked: &str) -> usize {
    let images = sketch.outline.results[result].images as usize;
    sketch.observations[result].chars().count() + images * policy.text.image_chars - masked.chars().count()
}

fn facts(sketch: &Sketch, call_of: &[Option<usize>], result: usize) -> ObservationFacts {
    let outline = &sketch.outline;
    let seen = &outline.results[result];
    let string = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
    let call = call_of[result].map(|call| &outline.calls[call]);
    let place = call.map(|call| call.message as usize).filter(|message| outline.messages[*message].is_agent_made);
    ObservationFacts {
        images: seen.images as usize,
        number: result + 1,
        turn: turn_of(outline, place.unwrap_or(seen.message as usize)),
        tool: call.and_then(|call| call.name).map_or(String::new(), |name| string(outline.name(name))),
        id: seen.id.map_or(String::new(), |id| string(outline.text(id))),
        ..ObservationFacts::of_text(&sketch.observations[result])
    }
}

/// Messages that say of themselves that they are a summary, where one may stand.
pub fn earlier_summaries(sketch: &Sketch) -> Vec<usize> {
    let outline = &sketch.outline;
    let leading = outline.messages.iter().take_while(|message| message.role == Role::System).count();
    (0..=leading)
        .filter(|message| *message < outline.messages.len())
        .filter(|message| outline.calls_of(*message).is_empty() && outline.results_of(*message).is_empty())
        .filter(|message| {
            let text = sketch.text(*message);
            text == "Conversation summary:" || text.starts_with("Conversation summary:\n")
        })
        .collect()
}

/// The keep set, by repeated passes over everything until nothing is added.
pub fn keep_set(outline: &Outline, policy: &Policy, left_out: &[usize]) -> Vec<bool> {
    let (start, _) = window(outline, policy);
    let call_of = call_of(outline);
    let mut kept: Vec<bool> = (0..outline.messages.len())
        .map(|message| outline.messages[message].role == Role::System || message >= start)
        .collect();
    loop {
        for message in left_out {
            kept[*message] = false;
        }
        let mut next = kept.clone();
        for (result, call) in call_of.iter().enumerate() {
            let Some(call) = call else { continue };
            let (call, result) = (outline.calls[*call].message as usize, outline.results[result].message as usize);
            let is_kept = kept[call] || kept[result];
            (next[call], next[result]) = (next[call] | is_kept, next[result] | is_kept);
        }
        for (message, is_kept) in next.iter_mut().enumerate() {
            let (start, end) = run_of(outline, message);
            *is_kept |= outline.messages[message].is_agent_made && kept[start..end].contains(&true);
        }
        for message in left_out {
            next[*message] = false;
        }
        if next == kept {
            return kept;
        }
        kept = next;
    }
}

pub fn first_user_message(sketch: &Sketch) -> Option<usize> {
    let outline = &sketch.outline;
    let summaries = earlier_summaries(sketch);
    (0..outline.messages.len()).find(|message| {
        outline.messages[*message].role == Role::User
            && !outline.messages[*message].is_agent_made
            && outline.calls_of(*message).is_empty()
            && outline.results_of(*message).is_empty()
            && !summaries.contains(message)
    })
}
