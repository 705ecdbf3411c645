//! A session that is over its budget, against a plan of each of its beginnings; and how much work its views are.

use crate::common::{Random, outline_of};
use recede::marks::MarkEdits;
use recede::plan::{Outcome, Plan, Stage, SummaryInput, plan};
use recede::policy::{Boundary, Policy};
use recede::session::Attempts;
use recede::session::{Chunks, Session, TextFormat, Update};
use recede::source::Bytes;
use recede::splice::splice;
use recede::turns::Turns;

/// Messages with parallel calls, late and missing results, reasoning, system messages, and runs of several messages.
pub fn session(random: &mut Random, turns: usize) -> Vec<String> {
    let mut messages = vec![];
    for _ in 0..random.below(3) {
        messages.push(r#"{"role":"system","content":"Be brief."}"#.to_owned());
    }
    if random.once_in(3) {
        messages.push(r#"{"role":"user","content":"Conversation summary:\n- outcome: it began"}"#.to_owned());
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
                    let content = "x".repeat(random.below(160));
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

fn some_policy(random: &mut Random) -> Policy {
    let count = |random: &mut Random| (!random.once_in(2)).then(|| random.below(5));
    Policy {
        max_cost: Some(*random.pick(&[0, 40, 200, 600, 1_500])),
        keep_messages: count(random),
        keep_turns: count(random),
        keep_results: count(random),
        keep_by_tool: random.once_in(4).then(|| (b"run".to_vec(), Some(random.below(4)))).into_iter().collect(),
        boundary: *random.pick(&[
            Boundary::Sliding,
            Boundary::Stepped(3),
            Boundary::BreakEven { read: 0.1, write: 1.25 },
            Boundary::BreakEven { read: 0.1, write: 1e9 },
        ]),
        observation_masking: !random.once_in(5),
        min_masked_chars: *random.pick(&[0, 0, 0, 90, 700]),
        strict_pairs: random.once_in(2),
        ask_summary: true,
        is_session: true,
        summary_max_chars: *random.pick(&[30, 300, 1_400]),
        ..Policy::default()
    }
}

/// The plan of a whole history, and its view.
fn planned(messages: &[String], policy: &Policy, summary: &SummaryInput) -> (Option<Plan>, Vec<u8>) {
    let data = format!("[{}]", messages.join(","));
    let outline = outline_of(&data);
    match plan(&outline, &Bytes(data.as_bytes()), policy, None, summary) {
        Outcome::Plan(plan) => {
            let view = splice(data.as_bytes(), &outline, policy, &plan, MarkEdits::default()).to_vec(data.as_bytes());
            (Some(*plan), view)
        }
        Outcome::AskSummary { .. } | Outcome::AskCosts(_) | Outcome::Replay => (None, vec![]),
    }
}

pub fn view_of(history: &mut Session) -> Vec<u8> {
    let Chunks { closed, open, .. } = history.chunks(0, None).unwrap();
    [closed.concat(), open].concat()
}

pub fn append(history: &mut Session, message: &str) {
    history.append(message.as_bytes(), false, None, None).unwrap();
}

/// How many turns there are in these messages.
fn turns_of(messages: &[String]) -> usize {
    Turns::of(&outline_of(format!("[{}]", messages.join(",")))).count()
}

/// The messages of a view.
fn elements(view: &[u8]) -> Vec<String> {
    let outline = outline_of(core::str::from_utf8(view).unwrap());
    outline.spans.iter().map(|message| String::from_utf8(message.of(view).to_vec()).unwrap()).collect()
}

#[test]
fn a_view_that_drops_messages_is_the_session_from_then_on() {
    let (mut summarized, mut cut, mut asked, mut waited) = (0, 0, 0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let turns = random.below(30);
        let policy = some_policy(&mut random);
        let mut history = Session::new(policy.clone(), 0, TextFormat::Json);
        let (mut all, mut messages, mut attempts) = (vec![], vec![], Attempts::default());
        for (place, message) in session(&mut random, turns).into_iter().enumerate() {
            let at = format!("seed {seed}, message {place}");
            append(&mut history, &message);
            all.push(message.clone());
            messages.push(message);
            if random.once_in(3) {
                continue;
            }
            let is_wanted = planned(&messages, &policy, &SummaryInput::NotAsked).0.is_none();
            let (plan, mut view) = planned(&messages, &policy, &SummaryInput::Failed);
            let mut plan = plan.unwrap();
            let (turns, cost) = (turns_of(&all), plan.chars.0);
            let may_ask = is_wanted && attempts.may_ask(turns, cost, policy.max_cost.unwrap());
            waited += usize::from(is_wanted && !may_ask);
            let update = history.update_view(&SummaryInput::NotAsked, None).unwrap();
            assert_eq!(matches!(update, Update::AskSummary(..)), may_ask, "{at}");
            if let Update::AskSummary(_, _, built_in) = update {
                asked += 1;
                let given = match random.below(4) {
                    0 => SummaryInput::Failed,
                    1 => SummaryInput::Given(vec![b'x'; 100_000], None),
                    2 => SummaryInput::Given(b"at last".to_vec(), None),
                    _ => SummaryInput::Given(built_in, None),
                };
                assert!(matches!(history.update_view(&given, None).unwrap(), Update::Done));
                let (with, view_with) = planned(&messages, &policy, &given);
                (plan, view) = (with.unwrap(), view_with);
                match plan.stage {
                    Some(Stage::Summarization) => attempts = Attempts::default(),
                    _ => attempts.fail(turns, cost),
                }
            }
            assert_eq!(view_of(&mut history), view, "{at}");
            assert_eq!(history.counts().chars, plan.chars.1, "{at}");
            assert_eq!(history.counts().messages, elements(&view).len(), "{at}");
            if !plan.only_masks() {
                summarized += usize::from(plan.stage == Some(Stage::Summarization));
                cut += usize::from(plan.stage == Some(Stage::Fallback));
                let left = planned(&elements(&view), &policy, &SummaryInput::Failed).0.unwrap();
                if plan.stage == Some(Stage::Fallback) && attempts.failures > 0 {
                    attempts.cost = left.chars.0.saturating_sub(cost - attempts.cost);
                }
                messages = elements(&view);
            }
            assert_eq!(history.attempts(), attempts, "{at}");
        }
    }
    assert!(summarized > 100 && cut > 500 && asked > 100 && waited > 50, "{summarized} {cut} {asked} {waited}");
}

#[test]
fn a_budget_that_cannot_be_met_costs_what_is_kept() {
    for boundary in [Boundary::Sliding, Boundary::Stepped(5), Boundary::BreakEven { read: 0.1, write: 1.25 }] {
        let policy = Policy { max_cost: Some(1_000), boundary, ..Policy::default() };
        let mut history = Session::new(policy, 0, TextFormat::Json);
        append(&mut history, r#"{"role":"user","content":"Go."}"#);
        for turn in 0..2_000 {
            let call = format!(r#"{{"id":"{turn}","type":"function","function":{{"name":"run","arguments":"{{}}"}}}}"#);
            append(&mut history, &format!(r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}}"#));
            let content = "x".repeat(1_000);
            append(&mut history, &format!(r#"{{"role":"tool","tool_call_id":"{turn}","content":"{content}"}}"#));
            assert!(matches!(history.update_view(&SummaryInput::NotAsked, None).unwrap(), Update::Done));
        }
        assert!(history.messages_planned() <= 2_000 * 7, "{}", history.messages_planned());
    }
}
