//! A session that is over its budget, against a plan of each of its beginnings; and how much work its views are.

use crate::common::{Random, outline_of};
use recede::plan::{Outcome, Plan, Stage, SummaryInput, plan};
use recede::policy::{Boundary, Policy};
use recede::session::Attempts;
use recede::session::{Chunks, Look, Session, Text};
use recede::source::Bytes;
use recede::splice::splice;

/// Messages with parallel calls, late and missing results, reasoning, system messages, and runs of several messages.
fn session(random: &mut Random, turns: usize) -> Vec<String> {
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
        ask_summary: !random.once_in(3),
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
            let view = splice(data.as_bytes(), &outline, policy, &plan).to_vec(data.as_bytes());
            (Some(*plan), view)
        }
        Outcome::AskSummary { .. } | Outcome::AskCosts(_) => (None, vec![]),
    }
}

fn view_of(history: &mut Session) -> Vec<u8> {
    history.forget();
    let Chunks { done, open, .. } = history.chunks(None).unwrap();
    // Chunks that stand were given before; the session begins with none here.
    [done.concat(), open].concat()
}

fn append(history: &mut Session, message: &str) {
    history.append(message.as_bytes(), false, None, None).unwrap();
}

#[test]
fn where_no_summary_can_be_had_views_are_those_of_a_plan_without_one() {
    let (mut fell_back, mut asked) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let turns = random.below(30);
        let messages = session(&mut random, turns);
        let policy = Policy { ask_summary: true, ..some_policy(&mut random) };
        let mut history = Session::new(policy.clone(), 0, Text::Json);
        let mut attempts = Attempts::default();
        for (place, message) in messages.iter().enumerate() {
            append(&mut history, message);
            if random.once_in(3) {
                continue;
            }
            let so_far = &messages[..=place];
            let (would_ask, _) = planned(so_far, &policy, &SummaryInput::NotAsked);
            let (plan, view) = planned(so_far, &policy, &SummaryInput::Failed);
            let plan = plan.unwrap();
            let (turns, cost) = (plan.turns.count(), plan.chars.0);
            let asks = would_ask.is_none() && attempts.may_ask(turns, cost, policy.max_cost.unwrap());
            let look = history.look(&SummaryInput::NotAsked, None).unwrap();
            assert_eq!(matches!(look, Look::AskSummary(..)), asks, "seed {seed}, message {place}");
            if asks {
                asked += 1;
                attempts.fail(turns, cost);
                let useless = random.once_in(2).then(|| "x".repeat(100_000));
                let given =
                    useless.map_or(SummaryInput::Failed, |text| SummaryInput::Given(text.into(), Some(1 << 40)));
                assert!(matches!(history.look(&given, None).unwrap(), Look::Ready));
            }
            assert_eq!(history.attempts(), attempts, "seed {seed}, message {place}");
            let found = view_of(&mut history);
            assert_eq!(found, view, "seed {seed}, message {place}");
            let counts = history.counts();
            assert_eq!(counts.chars, plan.chars.1, "seed {seed}, message {place}");
            let kept = (0..so_far.len()).filter(|message| plan.keeps(*message)).count();
            assert_eq!(counts.messages, kept);
            if plan.stage == Some(Stage::Fallback) {
                fell_back += 1;
                assert_eq!(history.moves(), (0, plan.moves));
            }
        }
    }
    assert!(fell_back > 1_000 && asked > 200, "{fell_back} {asked}");
}

#[test]
fn the_built_in_summary_waits_too() {
    let (mut summarized, mut waited) = (0, 0);
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let messages = session(&mut random, 30);
        let policy = Policy { ask_summary: false, ..some_policy(&mut random) };
        let mut history = Session::new(policy.clone(), 0, Text::Json);
        let mut attempts = Attempts::default();
        for (place, message) in messages.iter().enumerate() {
            append(&mut history, message);
            let so_far = &messages[..=place];
            let asking = Policy { ask_summary: true, ..policy.clone() };
            let is_wanted = planned(so_far, &asking, &SummaryInput::NotAsked).0.is_none();
            let (without, view_without) = planned(so_far, &policy, &SummaryInput::Failed);
            let (turns, cost) = without.map(|plan| (plan.turns.count(), plan.chars.0)).unwrap();
            let is_over = attempts.may_ask(turns, cost, policy.max_cost.unwrap());
            let (with, view_with) = planned(so_far, &policy, &SummaryInput::NotAsked);
            let helps = with.is_some_and(|plan| plan.stage == Some(Stage::Summarization));
            let look = history.look(&SummaryInput::NotAsked, None).unwrap();
            let view = view_of(&mut history);
            if is_wanted && is_over && helps {
                assert!(matches!(look, Look::Ready));
                assert_eq!(view, view_with, "seed {seed}, message {place}");
                assert_eq!(history.attempts(), Attempts::default());
                summarized += 1;
                break;
            }
            waited += usize::from(helps);
            assert_eq!(view, view_without, "seed {seed}, message {place}");
            if is_wanted && is_over {
                attempts.fail(turns, cost);
            }
            assert_eq!(history.attempts(), attempts, "seed {seed}, message {place}");
        }
    }
    assert!(summarized > 20 && waited > 5, "{summarized} {waited}");
}

/// Plans of the whole session that so many turns needed.
fn whole_plans(policy: Policy, turns: usize, content: usize, summary: &SummaryInput) -> usize {
    let mut history = Session::new(policy, 0, Text::Json);
    append(&mut history, r#"{"role":"user","content":"Go."}"#);
    for turn in 0..turns {
        let call = format!(r#"{{"id":"{turn}","type":"function","function":{{"name":"run","arguments":"{{}}"}}}}"#);
        append(&mut history, &format!(r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}}"#));
        let content = "x".repeat(content);
        append(&mut history, &format!(r#"{{"role":"tool","tool_call_id":"{turn}","content":"{content}"}}"#));
        for _ in 0..2 {
            if matches!(history.look(&SummaryInput::NotAsked, None).unwrap(), Look::AskSummary(..)) {
                assert!(matches!(history.look(summary, None).unwrap(), Look::Ready));
            }
            history.chunks(None).unwrap();
        }
    }
    history.whole_plans()
}

#[test]
fn a_budget_that_cannot_be_met_needs_no_plan_of_the_whole_session() {
    for boundary in [Boundary::Sliding, Boundary::Stepped(5), Boundary::BreakEven { read: 0.1, write: 1.25 }] {
        for ask_summary in [true, false] {
            let policy = Policy { max_cost: Some(1_000), boundary, ask_summary, ..Policy::default() };
            assert_eq!(whole_plans(policy, 2_000, 1_000, &SummaryInput::Failed), 0);
        }
    }
}

#[test]
fn a_summary_that_does_not_help_is_planned_as_often_as_it_is_asked_for() {
    let policy = Policy { max_cost: Some(4_000), ask_summary: true, ..Policy::default() };
    let useless = SummaryInput::Given(b"x".repeat(9_000), Some(9_000));
    // Asked after 1, 2, 4, … turns, and then each 64: once to ask, once with the answer.
    let attempts = 6 + 1_990_usize.div_ceil(64);
    for (summary, plans) in [(SummaryInput::Failed, attempts), (useless, 2 * attempts)] {
        let found = whole_plans(policy.clone(), 2_000, 1_000, &summary);
        assert!(found <= plans && found > plans - 6, "{found} {plans}");
    }
    let built_in = Policy { ask_summary: false, max_cost: Some(2_200), ..policy };
    let found = whole_plans(built_in, 2_000, 1_000, &SummaryInput::NotAsked);
    assert!(found > 0 && found <= attempts, "{found}");
}
