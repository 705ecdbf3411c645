//! Shapes that make careless code quadratic. No clock: what is not linear takes minutes here, and hours in `make test-slow`.

use crate::common::{Random, STEP, outline_of, published};
use crate::sketch::Sketch;
use recede::outline::{Call, Message, Outline, Role, Shape, Span, TextSpan, ToolResult};
use recede::pairs::{Pairs, findings, repairs};
use recede::patterns::matches;
use recede::plan::{Given, Outcome};
use recede::policy::Goal;
use recede::reduce::{Reduced, reduce_json};
use recede::report;

const MANY: usize = 98_000 / STEP;
const MILLION: usize = 980_000 / STEP;

/// All that is done with an Outline, whatever it holds.
fn everything(outline: &Outline) {
    let pairs = Pairs::of(outline);
    drop(pairs.orphans(outline));
    drop(findings(outline));
    drop(repairs(outline));
    let narrow = policy!(published(); limit.max = Some(1), design.keep_messages = Some(1));
    let by_all = policy!(
        narrow.clone();
        design.keep_turns = Some(2),
        keep.results = 3,
        keep.by_tool = [(b"b*h".to_vec(), Some(2)), (b"t*5".to_vec(), None)].into_iter().collect(),
        exempt.tools = [(b"tool ?????? 5*".to_vec(), ())].into_iter().collect(),
    );
    for policy in [narrow, by_all] {
        for goal in [Goal::Mask, Goal::Truncate, Goal::Summarize, Goal::Reduce] {
            let policy = policy!(policy.clone(); goal = goal);
            let outcome = recede::plan::plan(outline, &Empty, &policy, Given::default());
            let Outcome::Plan(plan) = outcome else { panic!("asks for a summary") };
            drop(report::by_tool(outline, &plan, 0));
            let _ = report::first_changed(outline, &plan);
        }
    }
}

/// Text that is nowhere asked to be anything.
struct Empty;

impl recede::source::Source for Empty {
    fn observation(&self, _: &Outline, _: usize) -> Vec<u8> {
        vec![]
    }

    fn observation_begins(&self, _: &Outline, _: usize, _: &[u8]) -> bool {
        false
    }

    fn observation_may_hold_dispatch(&self, _: &Outline, _: usize) -> bool {
        false
    }

    fn pieces(&self, _: &Outline, _: usize) -> Vec<Vec<u8>> {
        vec![]
    }

    fn has_tag(&self, _: &Outline, _: usize, _: &str) -> bool {
        true
    }
}

/// The whole way of serialized input, by all goals.
fn reduce_all(data: &str) -> usize {
    let mut changed = 0;
    for goal in [Goal::Mask, Goal::Truncate, Goal::Summarize, Goal::Reduce] {
        let policy = policy!(published(); goal = goal, limit.max = Some(1), design.keep_messages = Some(1), design.masks_unseen = true);
        let reduced = reduce_json(data.as_bytes(), false, &policy, Given::default()).unwrap();
        if let Reduced::View(Some(view), ..) = reduced {
            outline_of(view.to_vec(data.as_bytes()));
            changed += 1;
        }
    }
    changed
}

fn message(outline: &Outline, role: Role, shape: Shape) -> Message {
    Message {
        first_call: outline.calls.len() as u32,
        first_result: outline.results.len() as u32,
        role,
        shape,
        is_agent_made: role == Role::Assistant,
        ..Message::default()
    }
}

/// A result in the last message.
fn push_result(outline: &mut Outline, id: Option<TextSpan>, block: u32) {
    const CHARS: usize = 50;
    let message = outline.messages.len() - 1;
    outline.messages[message].chars += CHARS;
    outline.results.push(ToolResult {
        name: None,
        id,
        value: Span::default(),
        chars: CHARS,
        newlines: 0,
        message: message as u32,
        block,
        images: 0,
        first_piece: 0,
        pieces: 0,
        is_error: false,
        is_pinned: false,
        frame: recede::shape::Frame::Text,
        may_hold_dispatch: false,
        first_byte: b'x',
    });
}

fn list(elements: impl Iterator<Item = String>) -> String {
    format!("[{}]", elements.collect::<Vec<_>>().join(","))
}

#[test]
fn parallel_calls() {
    let calls =
        list((0..MANY).map(|id| format!("{{\"id\":\"{id}\",\"function\":{{\"name\":\"bash\",\"arguments\":\"\"}}}}")));
    // Each answered by a message of its own, the last call first.
    let results =
        (0..MANY).rev().map(|id| format!("{{\"role\":\"tool\",\"tool_call_id\":\"{id}\",\"content\":\"{id}\"}}"));
    let first = format!("{{\"role\":\"assistant\",\"tool_calls\":{calls}}}");
    let data = list(core::iter::once(first.clone()).chain(results));
    let outline = outline_of(&data);
    assert_eq!((outline.calls.len(), outline.results.len()), (MANY, MANY));
    let pairs = Pairs::of(&outline);
    assert!((0..MANY).all(|result| pairs.call_of(result) == Some(MANY - 1 - result)));
    assert!(findings(&outline).is_empty());
    everything(&outline);
    reduce_all(&data);
    // None answered.
    let data = list([first, "{\"role\":\"user\",\"content\":\"go on\"}".to_owned()].into_iter());
    assert_eq!(repairs(&outline_of(&data)).len(), MANY);
    reduce_all(&data);
}

#[test]
fn parallel_blocks() {
    let calls =
        list((0..MANY).map(|id| format!("{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"bash\",\"input\":{{}}}}")));
    for answered in [MANY, MANY / 2, 1, 0] {
        let text = "an observation that is longer than its placeholder is";
        let results = (0..answered)
            .map(|id| format!("{{\"type\":\"tool_result\",\"tool_use_id\":\"{id}\",\"content\":\"{text}\"}}"))
            .chain(core::iter::once("{\"type\":\"text\",\"text\":\"and\"}".to_owned()));
        let data = format!(
            "[{{\"role\":\"assistant\",\"content\":{calls}}},{{\"role\":\"user\",\"tags\":[\"constraint\"],\"content\":{}}},{{}}]",
            list(results)
        );
        let outline = outline_of(&data);
        assert_eq!(repairs(&outline).len(), if answered > 0 { MANY - answered } else { 1 });
        everything(&outline);
        reduce_all(&data);
    }
}

#[test]
fn one_id_for_all() {
    let mut outline = Outline::default();
    let id = Some(outline.keep_text(|out| out.extend_from_slice(b"the id")));
    for index in 0..MILLION as u32 {
        let is_call = index % 2 == 0;
        let role = if is_call { Role::Assistant } else { Role::Other };
        let message = message(&outline, role, Shape::OpenAi);
        outline.messages.push(message);
        if is_call {
            outline.calls.push(Call { id, name: None, message: index, block: 0 });
        } else {
            push_result(&mut outline, id, 0);
        }
    }
    let pairs = Pairs::of(&outline);
    assert!((0..outline.results.len()).all(|result| pairs.call_of(result) == Some(result)));
    assert!(findings(&outline).is_empty());
    everything(&outline);
}

#[test]
fn a_million_calls_of_one_id_in_one_message() {
    let mut outline = Outline::default();
    let id = Some(outline.keep_text(|out| out.extend_from_slice(b"the id")));
    let first = message(&outline, Role::Assistant, Shape::Anthropic);
    outline.messages.push(first);
    let calls = (0..MILLION as u32).map(|block| Call { id, name: None, message: 0, block });
    outline.calls.extend(calls);
    let second = message(&outline, Role::User, Shape::Anthropic);
    outline.messages.push(second);
    (0..MILLION as u32).for_each(|block| push_result(&mut outline, id, block));
    let last = message(&outline, Role::User, Shape::Plain);
    outline.messages.push(last);
    let pairs = Pairs::of(&outline);
    assert_eq!(pairs.results_of(MILLION - 1).count(), MILLION);
    everything(&outline);
}

#[test]
fn a_million_empty_messages() {
    let data = list((0..MILLION).map(|_| "{}".to_owned()));
    let outline = outline_of(&data);
    assert_eq!(outline.messages.len(), MILLION);
    everything(&outline);
    let policy = policy!(published(); goal = Goal::Truncate, design.keep_messages = Some(2));
    let reduced = reduce_json(data.as_bytes(), false, &policy, Given::default()).unwrap();
    let Reduced::View(Some(view), ..) = reduced else { panic!("no view") };
    assert_eq!(view.to_vec(data.as_bytes()), b"[{},{}]");
}

#[test]
fn a_run_without_end() {
    for role in [Role::Assistant, Role::Other, Role::System] {
        let mut outline = Outline::default();
        for index in 0..MANY as u32 {
            let mut message = message(&outline, role, Shape::Responses);
            message.is_agent_made |= role == Role::Other && index % 4 == 0;
            outline.messages.push(message);
            let id = outline.keep_text(|out| out.extend_from_slice(&index.to_le_bytes()));
            outline.calls.push(Call { id: Some(id), name: None, message: index, block: 0 });
        }
        everything(&outline);
    }
}

/// Messages that hold a call and a result each, paired or not, outside of runs or in one.
#[test]
fn calls_and_results_in_one_message() {
    for (role, shift) in [(Role::User, 1), (Role::User, 0), (Role::Assistant, 1), (Role::Assistant, 0)] {
        let mut outline = Outline::default();
        for index in 0..MANY as u32 {
            let message = message(&outline, role, Shape::Anthropic);
            outline.messages.push(message);
            let call = outline.keep_text(|out| out.extend_from_slice(&index.to_le_bytes()));
            let answered = outline.keep_text(|out| out.extend_from_slice(&index.wrapping_sub(shift).to_le_bytes()));
            push_result(&mut outline, Some(answered), 0);
            // Answers of every second call are missing.
            if index % 2 == 0 {
                outline.calls.push(Call { id: Some(call), name: None, message: index, block: 1 });
            }
        }
        let last = message(&outline, Role::User, Shape::Plain);
        outline.messages.push(last);
        everything(&outline);
    }
}

#[test]
fn orphans_of_every_kind() {
    let mut random = Random::new(71);
    let mut outline = Outline::default();
    for index in 0..MANY as u32 {
        let is_call = random.once_in(2);
        let shape = *random.pick(&[Shape::OpenAi, Shape::Anthropic]);
        let message = message(&outline, *random.pick(&[Role::Assistant, Role::User, Role::Other]), shape);
        outline.messages.push(message);
        let number = random.below(3 * MANY) as u32;
        let id = Some(outline.keep_text(|out| out.extend_from_slice(&number.to_le_bytes())));
        if is_call {
            outline.calls.push(Call { id, name: None, message: index, block: 0 });
        } else {
            push_result(&mut outline, id, 0);
        }
    }
    everything(&outline);
}

#[test]
fn as_many_tools_as_calls() {
    let mut sketch = Sketch::default();
    let names: Vec<String> = (0..MANY).map(|name| format!("tool number {name}")).collect();
    for name in &names {
        sketch.push(Role::Assistant, Shape::OpenAi, &[crate::sketch::Item::Call(Some(name), Some(name))]);
        sketch.push(Role::Other, Shape::OpenAi, &[crate::sketch::Item::Result(Some(name), "text")]);
    }
    assert_eq!(sketch.outline.name_count(), MANY);
    everything(&sketch.outline);
}

#[test]
fn summaries_before_summaries() {
    for role in ["system", "user"] {
        let data =
            list((0..MANY).map(|_| format!("{{\"role\":\"{role}\",\"content\":\"Conversation summary:\\nold\"}}")));
        reduce_all(&data);
    }
}

#[test]
fn long_texts() {
    let one = |text: &str| {
        format!("[{{\"role\":\"tool\",\"content\":\"{text}\"}},{{\"role\":\"user\",\"content\":\"{text}\"}},{{}}]")
    };
    for text in [
        "BEGIN_DISPATCH_RESULT",
        "END_DISPATCH_RESULT",
        "BEGIN_DISPATCH_RESULTEND_DISPATCH_RESULT",
        "[observation masked — ",
        "[observation masked — 1",
        "[dispatch output masked — ",
        "\\u005b",
        "\\ud83d",
        "\\\\",
        "_DISPATCH_",
        "_",
        "é",
        " ",
        "\\n",
    ] {
        reduce_all(&one(&text.repeat(MANY)));
    }
    let digits = format!("[observation masked — {} chars", "1".repeat(MILLION));
    assert_eq!(reduce_all(&one(&digits)), 4);
}

#[test]
fn patterns_of_stars() {
    // Quadratic at most, where a matcher that backtracks into each star would be exponential.
    let pattern = "a*".repeat(100) + "b";
    assert!(!matches(pattern.as_bytes(), "a".repeat(1_000).as_bytes()));
    assert!(matches(pattern.as_bytes(), ("a".repeat(1_000) + "b").as_bytes()));
}
