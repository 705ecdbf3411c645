//! A session played again, against a plan of each of its beginnings made anew.

use crate::common::{Random, outline_of, published};
use recede::outline::Outline;
use recede::plan::{Given, Outcome, Plan, Request, plan, replay, requests};
use recede::policy::{Boundary, Due, Goal, Model, Policy, Requests, Summaries, SummaryPrices};
use recede::source::Bytes;

/// Messages of a session whose observations differ in size, tool and number.
fn session(random: &mut Random, turns: usize) -> Vec<String> {
    let mut messages =
        vec![r#"{"role":"system","content":"Be brief."}"#.to_owned(), r#"{"role":"user","content":"Go."}"#.to_owned()];
    for turn in 0..turns {
        if random.once_in(6) {
            messages.push(r#"{"type":"reasoning","summary":[]}"#.to_owned());
        }
        let calls: Vec<(usize, &str)> =
            (0..=random.below(2)).map(|call| (9 * turn + call, *random.pick(&["run", "read"]))).collect();
        let made = calls.iter().map(|(id, name)| {
            format!(r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{{}}"}}}}"#)
        });
        let made: Vec<String> = made.collect();
        messages.push(format!(r#"{{"role":"assistant","content":"turn {turn}","tool_calls":[{}]}}"#, made.join(",")));
        for (id, _) in calls {
            let content = "x".repeat(random.below(120));
            messages.push(format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{content}"}}"#));
        }
        if random.once_in(5) {
            messages.push(format!(r#"{{"role":"user","content":"and {turn}"}}"#));
        }
    }
    messages
}

/// Each message of a view: its place, what was removed from it, and its characters.
fn seen(outline: &Outline, plan: &Plan) -> Vec<(usize, usize, usize)> {
    let removed = |message: usize| -> usize {
        let of_message =
            plan.masked.iter().filter(|masked| outline.results[masked.result as usize].message as usize == message);
        of_message.map(|masked| masked.removed).sum()
    };
    let chars = |message: usize| {
        let cut = plan.cut_of(message).map(|cut| cut.clip.chars());
        cut.unwrap_or_else(|| outline.chars_of(message, 0) - removed(message))
    };
    let messages = (0..outline.messages.len()).filter(|message| plan.keeps(*message));
    messages.map(|message| (message, removed(message), chars(message))).collect()
}

/// Of each request: characters, those that are the same as before, and masked observations.
fn planned_anew(messages: &[String], policy: &Policy, known: &Requests) -> Vec<(usize, usize, usize)> {
    let whole = outline_of(format!("[{}]", messages.join(",")));
    let mut before: Vec<(usize, usize, usize)> = vec![];
    let mut sent = vec![];
    for request in requests(&whole, 0) {
        let data = format!("[{}]", messages[..request.messages].join(","));
        let outline = outline_of(&data);
        let Outcome::Plan(plan) =
            plan(&outline, &Bytes(data.as_bytes()), policy, Given { requests: known, ..Given::default() })
        else {
            panic!("asks for a summary")
        };
        let view = seen(&outline, &plan);
        let same = before.iter().zip(&view).take_while(|(before, now)| before == now).count();
        let chars = |messages: &[(usize, usize, usize)]| messages.iter().map(|(.., chars)| chars).sum();
        let masked = plan.masked.iter().filter(|one| one.is_masked()).count();
        sent.push((chars(&view), chars(&view[..same]), masked));
        before = view;
    }
    sent
}

#[test]
fn each_request_is_planned_as_if_it_were_the_only_one() {
    let none = policy!(published(); goal = Goal::Mask, design.keep_messages = None, text.image_chars = 0);
    let mut random = Random::new(7);
    let mut moves = 0;
    for round in 0..200 {
        let turns = 1 + random.below(20);
        let messages = session(&mut random, turns);
        let data = format!("[{}]", messages.join(","));
        let outline = outline_of(&data);
        let count = random.below(6);
        let known = Requests { cold: vec![random.below(9), 12], ..Requests::default() };
        let policies = [
            policy!(none.clone(); keep.results = count),
            policy!(none.clone(); keep.results = count, terms.boundary = Boundary::Stepped(1 + random.below(4))),
            policy!(none.clone(); keep.results = count, terms.boundary = Boundary::BreakEven { read: 0.1, write: 0.4 }),
            policy!(
                none.clone();
                design.keep_turns = Some(count),
                terms.boundary = Boundary::HighWater { chars: random.below(900), at_least: random.below(200) },
            ),
            policy!(
                none.clone();
                design.keep_messages = Some(count),
                terms.boundary = Boundary::BreakEven { read: 1.0, write: 1.25 },
                keep.by_tool = [(b"read".to_vec(), Some(1))].into_iter().collect(),
            ),
            policy!(none.clone(); design.keep_turns = Some(count), design.min_masked_chars = random.below(900)),
            policy!(none.clone(); design.keep_messages = Some(count), exempt.tools = [(b"re*".to_vec(), ())].into_iter().collect()),
            policy!(none.clone(); keep.results = 1, keep.by_tool = [(b"read".to_vec(), Some(count))].into_iter().collect()),
            policy!(none.clone(); goal = Goal::Truncate, design.keep_messages = Some(count)),
            // Over a limit, with shares that are too small for a summary.
            policy!(
                none.clone();
                goal = Goal::Reduce,
                limit.max = Some(random.below(1_500)),
                limit.is_kept = true,
                limit.fill = Some(random.below(10_000)),
                limit.clip_results = random.once_in(2).then_some(60),
                keep.results = count,
                terms.boundary = *random.pick(&[Boundary::Sliding, Boundary::BreakEven { read: 0.1, write: 1.25 }]),
            ),
        ];
        for policy in policies {
            let found = replay(&outline, &Bytes(data.as_bytes()), &policy, &known).sent;
            let facts: Vec<_> = found.iter().map(|sent| (sent.view.chars, sent.same_chars, sent.masked)).collect();
            assert_eq!(facts, planned_anew(&messages, &policy, &known), "round {round}: {policy:?}");
            moves += found.windows(2).filter(|pair| pair[1].same_chars < pair[0].view.chars).count();
        }
    }
    assert!(moves > 2_000, "the views hardly ever changed: {moves}");
}

/// What a view holds whose summary stands for so many turns: its characters, and how many observations are masked.
fn shown(messages: &[String], policy: &Policy, turns: usize, summary_chars: usize) -> (usize, usize) {
    let data = format!("[{}]", messages.join(","));
    let outline = outline_of(&data);
    let masking = policy!(policy.clone(); terms.summaries = None);
    let Outcome::Plan(plan) = plan(&outline, &Bytes(data.as_bytes()), &masking, Given::default()) else {
        panic!("asks for a summary")
    };
    let hides = |message: usize| {
        let is_of_turn = outline.messages[message].is_agent_made || outline.holds_results(message);
        is_of_turn && plan.turns.at(message) <= turns
    };
    let chars = seen(&outline, &plan).iter().filter(|(message, ..)| !hides(*message)).map(|(.., chars)| chars).sum();
    let masked =
        plan.masked.iter().filter(|masked| !hides(outline.results[masked.result as usize].message as usize)).count();
    (if turns == 0 { chars } else { chars + summary_chars }, masked)
}

#[test]
fn a_request_shows_the_summary_and_the_turns_behind_it() {
    let none = policy!(published(); goal = Goal::Mask, design.keep_messages = None, text.image_chars = 0);
    let mut random = Random::new(11);
    let mut summaries = 0;
    for round in 0..200 {
        let turns = 1 + random.below(30);
        let messages = session(&mut random, turns);
        let data = format!("[{}]", messages.join(","));
        let outline = outline_of(&data);
        let tail = 1 + random.below(4);
        let every = tail + 1 + random.below(5);
        let chars = random.below(90);
        for (boundary, due) in [
            (Boundary::Sliding, Due::Turns { first: every, every }),
            (Boundary::Stepped(1 + random.below(4)), Due::Turns { first: every + tail, every }),
            (Boundary::Sliding, Due::BreakEven),
        ] {
            let prices = SummaryPrices { read: 1.0, write: 1.25, input: 0.2, output: 1.0 };
            let model = Some(Model { summary_chars: chars, prompt_chars: 7 });
            let policy = policy!(
                none.clone();
                design.keep_turns = Some(random.below(5)),
                terms.boundary = boundary,
                terms.summaries = Some(Summaries { due, prices, tail, model }),
            );
            let found = replay(&outline, &Bytes(data.as_bytes()), &policy, &Requests::default()).sent;
            let mut summarized = 0;
            for ((taken, sent), request) in found.iter().enumerate().zip(requests(&outline, 0)) {
                assert!(sent.summarized >= summarized && sent.summarized + tail <= taken.max(tail), "round {round}");
                assert_eq!(sent.summary.0 > 0, sent.summarized > summarized, "a new one is paid for");
                if let Due::Turns { first, every } = due {
                    let most = taken.checked_sub(first).map_or(0, |more| more / every * every + first - tail);
                    assert!(sent.summarized <= most, "round {round}: {policy:?}");
                }
                summarized = sent.summarized;
                let expected = shown(&messages[..request.messages], &policy, summarized, chars);
                assert_eq!((sent.view.chars, sent.masked), expected, "round {round}, turn {taken}: {policy:?}");
                summaries += usize::from(sent.summary.0 > 0);
            }
        }
    }
    assert!(summaries > 1_000, "there were hardly any summaries: {summaries}");
}

#[test]
fn requests_stand_before_runs() {
    let outline = outline_of(
        r#"[{"role":"assistant","content":"ab"},{"type":"reasoning"},{"role":"user","content":"c"},
            {"role":"assistant","content":"defg"},{"role":"tool","tool_call_id":"1","content":"h"}]"#,
    );
    let expected = [Request { messages: 0, answer_chars: 2 }, Request { messages: 3, answer_chars: 4 }];
    assert_eq!(requests(&outline, 0), expected);
    assert_eq!(requests(&Outline::default(), 0), []);
}
