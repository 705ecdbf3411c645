//! A session against a plan of the whole history: each view of it, however it was reached.

use crate::common::{Random, published};
use recede::plan::{Given, Plan, Stage, SummaryInput};
use recede::policy::{Boundary, CachePrices, Goal, Policy};
use recede::reduce::{Reduced, reduce_json};
use recede::session::{Chunks, Session, Update, ViewMessage};

/// Messages with parallel calls, late and missing results, reasoning, system messages, and runs of several messages.
pub fn session(random: &mut Random, turns: usize) -> Vec<String> {
    let mut messages = vec![];
    for _ in 0..random.below(3) {
        messages.push(r#"{"role":"system","content":"Be brief."}"#.to_owned());
    }
    if random.once_in(3) {
        messages.push(r#"{"role":"user","content":"Conversation summary:\n- outcome: it began"}"#.to_owned());
    }
    if random.once_in(3) {
        messages.push(format!(r#"{{"role":"user","content":"The task: {}"}}"#, "y".repeat(random.below(900))));
    }
    let mut late = vec![];
    for turn in 0..turns {
        for _ in 0..random.below(3) {
            messages.push(format!(r#"{{"type":"reasoning","id":"r{turn}","summary":[]}}"#));
        }
        let calls: Vec<String> = (0..=random.below(2)).map(|call| format!("c{turn}.{call}")).collect();
        let made = calls
            .iter()
            .map(|id| format!(r#"{{"id":"{id}","type":"function","function":{{"name":"run","arguments":"{{}}"}}}}"#));
        let made: Vec<String> = made.collect();
        messages.push(format!(r#"{{"role":"assistant","content":"turn {turn}","tool_calls":[{}]}}"#, made.join(",")));
        for id in calls.into_iter().chain(late.pop()) {
            match random.below(12) {
                0 => late.push(id),
                1 => {}
                _ => {
                    let content = "x".repeat(random.below(320));
                    messages.push(format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{content}"}}"#));
                }
            }
        }
        match random.below(9) {
            0 => messages.push(format!(r#"{{"role":"user","content":"and {turn}"}}"#)),
            1 => messages.push(r#"{"role":"system","content":"A rule."}"#.to_owned()),
            _ => {}
        }
    }
    messages
}

/// A policy of a session: one that masks, or one with a limit and the share of it that is filled.
pub fn some_policy(random: &mut Random) -> Policy {
    let count = |random: &mut Random| (!random.once_in(2)).then(|| random.below(5));
    let is_limit = random.once_in(2);
    policy!(
        published();
        goal = if is_limit { Goal::Reduce } else { Goal::Mask },
        limit.max = if is_limit || random.once_in(3) { Some(*random.pick(&[0, 200, 600, 1_500, 3_000])) } else { None },
        limit.is_kept = is_limit,
        limit.fill = is_limit.then(|| *random.pick(&[0, 125_000, 250_000])),
        limit.clip_results = (is_limit && random.once_in(2)).then_some(60),
        text.max_result_chars = random.once_in(4).then_some(100),
        limit.trigger = if random.once_in(4) { random.below(900) } else { 0 },
        keep.messages = count(random),
        keep.turns = count(random),
        keep.results = count(random).unwrap_or(0),
        keep.by_tool = random.once_in(4).then(|| (b"run".to_vec(), Some(random.below(4)))).into_iter().collect(),
        terms.boundary = *random.pick(&[
            Boundary::Sliding,
            Boundary::Stepped(3),
            Boundary::BreakEven(CachePrices { read: 0.1, write: 1.25 }),
            Boundary::BreakEven(CachePrices { read: 0.1, write: 1e9 }),
        ]),
        is_off = is_limit && random.once_in(9),
        design.skips_masks = random.once_in(5),
        limit.asks_summary = is_limit && random.once_in(2),
        limit.summary_chars = *random.pick(&[30, 300, 1_400]),
    )
}

/// The plan of a whole history, and its view.
fn planned(messages: &[String], policy: &Policy, text: &[u8]) -> (Plan, String) {
    let data = format!("[{}]", messages.join(","));
    let summary =
        if policy.limit.asks_summary { SummaryInput::Given(text.to_vec(), None) } else { SummaryInput::NotAsked };
    let reduced = reduce_json(data.as_bytes(), false, policy, Given { summary: &summary, ..Given::default() }).unwrap();
    let Reduced::View(view, _, plan) = reduced else { panic!("asks") };
    let view = view.map_or(data.clone(), |view| String::from_utf8(view.to_vec(data.as_bytes())).unwrap());
    (*plan, view)
}

pub fn view_of(history: &mut Session) -> Vec<u8> {
    let Chunks { closed, open, .. } = history.chunks(0);
    [closed.concat(), open].concat()
}

pub fn append(history: &mut Session, message: &str) {
    history.append(message.as_bytes(), false, None, None).unwrap();
}

/// A reader that takes the changed part of the list of each view.
#[derive(Default)]
struct Reader {
    view: Vec<Vec<u8>>,
}

impl Reader {
    fn read(&mut self, history: &mut Session) -> String {
        let (from, messages) = history.changes(self.view.len());
        self.view.truncate(from);
        self.view.extend(messages.into_iter().map(|message| match message {
            ViewMessage::Unchanged(index) => history.message(index).to_vec(),
            ViewMessage::Rendered(_, bytes) | ViewMessage::Bytes(bytes) => bytes,
            ViewMessage::Masked(..) => panic!("each message is written"),
        }));
        String::from_utf8([b"[", &self.view.join(&b',')[..], b"]"].concat()).unwrap()
    }
}

/// The text of each summary.
const TEXT: &[u8] = b"at last";

/// Makes the view current; a summary is given if one is asked for. Returns whether it was.
fn look(history: &mut Session) -> bool {
    let asks = matches!(history.update_view(&SummaryInput::NotAsked, None).unwrap(), Update::AskSummary(..));
    if asks {
        let given = SummaryInput::Given(TEXT.to_vec(), None);
        assert!(matches!(history.update_view(&given, None).unwrap(), Update::Done));
    }
    asks
}

#[test]
fn each_view_is_that_of_a_plan_of_the_whole_history() {
    let (mut summarized, mut asked, mut hidden, mut masked, mut cut, mut rewound) = (0, 0, 0, 0, 0, 0);
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        let turns = random.below(30);
        let policy = some_policy(&mut random);
        let mut history = Session::new(policy.clone(), 0);
        let (mut messages, mut reader) = (vec![], Reader::default());
        for (place, message) in session(&mut random, turns).into_iter().enumerate() {
            append(&mut history, &message);
            messages.push(message);
            if random.once_in(25) {
                messages.truncate(messages.len() - random.below(messages.len().min(6)));
                history.rewind(messages.len(), None).unwrap();
                rewound += 1;
            }
            if random.once_in(3) {
                continue;
            }
            let at = format!("seed {seed}, message {place}");
            let (plan, view) = planned(&messages, &policy, TEXT);
            asked += usize::from(look(&mut history));
            assert_eq!(String::from_utf8(view_of(&mut history)).unwrap(), view, "{at}");
            assert_eq!(reader.read(&mut history), view, "{at}");
            let counts = history.counts();
            assert_eq!(counts.chars, plan.chars.1, "{at}");
            assert_eq!(counts.messages, reader.view.len(), "{at}");
            assert_eq!(counts.masked, plan.masked.iter().filter(|one| one.is_masked()).count(), "{at}");
            summarized += usize::from(plan.stage == Some(Stage::Summarization));
            hidden += usize::from(plan.stage == Some(Stage::Fallback));
            masked += usize::from(counts.masked > 0);
            cut += plan.cuts().len();
        }
    }
    let seen = [summarized, asked, hidden, masked, cut, rewound];
    assert!(seen.iter().all(|count| *count >= 50), "{seen:?}");
}
