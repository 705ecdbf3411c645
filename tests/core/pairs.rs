//! Pairs, turns, findings and repairs: by hand, and as naive quadratic code says.

use crate::common::{Random, outline_of};
use crate::oracle;
use crate::sketch::Item::{Call, Reasoning, Result as Answer, Text};
use crate::sketch::{Item, Sketch};
use recede::outline::{Role, Shape};
use recede::pairs::{FindingKind, Pairs, Repair, findings, repairs};
use recede::turns::Turns;

type Messages<'a> = &'a [(Role, Shape, &'a [Item<'a>])];

const A: Option<&str> = Some("a");
const B: Option<&str> = Some("b");
const BASH: Option<&str> = Some("bash");

fn found(messages: Messages) -> Vec<(FindingKind, usize)> {
    let sketch = Sketch::new(messages);
    findings(&sketch.outline).into_iter().map(|(kind, message, _)| (kind, message)).collect()
}

#[test]
fn whole_pairs_give_no_findings() {
    assert_eq!(
        found(&[
            (Role::User, Shape::Plain, &[Text("task")]),
            (Role::Assistant, Shape::OpenAi, &[Call(A, BASH), Call(B, BASH)]),
            (Role::Other, Shape::OpenAi, &[Answer(B, "1")]),
            (Role::Other, Shape::OpenAi, &[Answer(A, "2")]),
            (Role::Assistant, Shape::OpenAi, &[Call(A, BASH)]),
            (Role::Other, Shape::OpenAi, &[Answer(A, "3")]),
        ]),
        vec![]
    );
}

#[test]
fn findings_by_hand() {
    use FindingKind::{
        CallWithoutResult, IdOpenTwice, IdUsedAgain, MissingId, NotAdjacent, NotLeading, OpenCall, ResultWithoutCall,
        SecondResult,
    };
    assert_eq!(
        found(&[
            (Role::Other, Shape::OpenAi, &[Answer(A, "none")]),
            (Role::Assistant, Shape::OpenAi, &[Call(A, BASH), Call(None, None)]),
            (Role::Assistant, Shape::OpenAi, &[Call(A, BASH)]),
            (Role::Other, Shape::OpenAi, &[Answer(A, "1")]),
            (Role::Other, Shape::OpenAi, &[Answer(A, "again")]),
            (Role::User, Shape::Plain, &[Text("go on")]),
            (Role::Other, Shape::OpenAi, &[Answer(A, "late, and again")]),
            (Role::Assistant, Shape::Anthropic, &[Call(B, BASH)]),
            (Role::User, Shape::Anthropic, &[Text("first"), Answer(B, "1")]),
            (Role::Assistant, Shape::Anthropic, &[Call(B, BASH)]),
        ]),
        [
            (ResultWithoutCall, 0),
            (CallWithoutResult, 1),
            (MissingId, 1),
            (CallWithoutResult, 1),
            (IdOpenTwice, 2),
            (SecondResult, 4),
            (SecondResult, 6),
            (NotAdjacent, 6),
            (NotLeading, 8),
            (IdUsedAgain, 9),
            (OpenCall, 9),
        ]
    );
}

#[test]
fn a_call_is_open_while_its_answer_may_come() {
    let open = |messages: Messages| {
        let sketch = Sketch::new(messages);
        let pairs = Pairs::of(&sketch.outline);
        (0..sketch.outline.calls.len()).map(|call| pairs.is_open(&sketch.outline, call)).collect::<Vec<_>>()
    };
    let call: (Role, Shape, &[Item]) = (Role::Assistant, Shape::OpenAi, &[Call(A, None)]);
    let other: (Role, Shape, &[Item]) = (Role::Assistant, Shape::OpenAi, &[Call(B, None)]);
    let result: (Role, Shape, &[Item]) = (Role::Other, Shape::OpenAi, &[Answer(B, "")]);
    let user: (Role, Shape, &[Item]) = (Role::User, Shape::Plain, &[Text("")]);
    assert_eq!(open(&[call]), [true]);
    assert_eq!(open(&[call, other, result]), [true, true]);
    assert_eq!(open(&[call, other, result, call]), [false, false, true]);
    assert_eq!(open(&[call, user]), [false]);
    assert_eq!(open(&[call, user, result]), [false]);
    // A call outside of runs.
    assert_eq!(open(&[(Role::Other, Shape::ChatMessage, &[Call(A, None)]), result]), [true]);
    assert_eq!(open(&[(Role::Other, Shape::ChatMessage, &[Call(A, None)]), call]), [false, true]);
}

#[test]
fn turns_by_hand() {
    let sketch = Sketch::new(&[
        (Role::System, Shape::Plain, &[]),
        (Role::Other, Shape::Responses, &[Reasoning]),
        (Role::Assistant, Shape::OpenAi, &[Call(A, None)]),
        (Role::Other, Shape::OpenAi, &[Answer(A, "")]),
        (Role::User, Shape::Plain, &[]),
        (Role::Assistant, Shape::Plain, &[]),
    ]);
    let turns = Turns::of(&sketch.outline);
    assert_eq!((turns.starts.as_slice(), turns.ends.as_slice(), turns.count()), (&[1, 5][..], &[3, 6][..], 2));
    assert_eq!((0..6).map(|message| turns.at(message)).collect::<Vec<_>>(), [0, 1, 1, 1, 1, 2]);
    assert_eq!((0..6).map(|message| turns.run_end(message)).collect::<Vec<_>>(), [1, 3, 3, 4, 5, 6]);
}

#[test]
fn random_histories_pair_as_the_naive_rules_say() {
    let mut random = Random::new(31);
    let mut kinds = std::collections::HashMap::new();
    for _ in 0..30_000 {
        let sketch = Sketch::random(&mut random);
        let outline = &sketch.outline;
        let pairs = Pairs::of(outline);
        let wanted = oracle::call_of(outline);
        assert_eq!((0..outline.results.len()).map(|result| pairs.call_of(result)).collect::<Vec<_>>(), wanted);
        for call in 0..outline.calls.len() {
            let results: Vec<usize> =
                (0..outline.results.len()).filter(|result| wanted[*result] == Some(call)).collect();
            let mut found: Vec<usize> = pairs.results_of(call).collect();
            assert_eq!(found.first(), results.first());
            found.sort_unstable();
            assert_eq!(found, results);
            assert_eq!(pairs.is_answered(call), !results.is_empty());
            assert_eq!(pairs.is_open(outline, call), oracle::is_open(outline, call));
        }
        assert_eq!(pairs.orphans(outline), oracle::orphans(outline));
        let turns = Turns::of(outline);
        for message in 0..outline.messages.len() {
            assert_eq!(turns.run_end(message), oracle::run_of(outline, message).1);
            assert_eq!(turns.at(message), oracle::turn_of(outline, message));
        }
        let found: Vec<_> =
            findings(outline).into_iter().map(|(kind, message, id)| (kind, message, id.map(<[u8]>::to_vec))).collect();
        for (kind, ..) in &found {
            *kinds.entry(kind.name()).or_insert(0) += 1;
        }
        assert_eq!(found, oracle::findings(outline));
    }
    assert!(kinds.len() == 10 && kinds.values().all(|count| *count > 500), "{kinds:?}");
}

/// More calls than are walked, so that the table answers too.
#[test]
fn long_histories_pair_as_the_naive_rules_say() {
    let mut random = Random::new(32);
    let ids: Vec<String> = (0..60).map(|id| format!("call_{id}")).collect();
    for round in 0..40 {
        let mut sketch = Sketch::default();
        for _ in 0..200 {
            let id = |random: &mut Random| Some(ids[random.below(1 + round + 20)].as_str());
            if random.once_in(2) {
                let calls: Vec<Item> = (0..random.below(30)).map(|_| Call(id(&mut random), None)).collect();
                sketch.push(Role::Assistant, Shape::OpenAi, &calls);
            } else {
                sketch.push(Role::Other, Shape::OpenAi, &[Answer(id(&mut random), "")]);
            }
        }
        let pairs = Pairs::of(&sketch.outline);
        let found: Vec<_> = (0..sketch.outline.results.len()).map(|result| pairs.call_of(result)).collect();
        assert_eq!(found, oracle::call_of(&sketch.outline));
    }
}

#[test]
fn repairs_by_hand() {
    let mend = |messages: Messages| repairs(&Sketch::new(messages).outline);
    let user: (Role, Shape, &[Item]) = (Role::User, Shape::Plain, &[Text("go on")]);
    // A result without a call leaves.
    assert_eq!(mend(&[(Role::Other, Shape::OpenAi, &[Answer(A, "")]), user]), [Repair::DropMessage(0)]);
    let blocks: &[Item] = &[Answer(A, ""), Text("kept"), Answer(B, "")];
    assert_eq!(mend(&[(Role::User, Shape::Anthropic, blocks)]), [Repair::DropBlock(0, 0), Repair::DropBlock(0, 2)]);
    assert_eq!(mend(&[(Role::User, Shape::Anthropic, &[Answer(A, "")])]), [Repair::DropMessage(0)]);
    // A call without a result is answered behind the results of its turn, each for itself.
    let calls: (Role, Shape, &[Item]) =
        (Role::Assistant, Shape::OpenAi, &[Call(A, None), Call(B, None), Call(Some("c"), None)]);
    assert_eq!(
        mend(&[calls, (Role::Other, Shape::OpenAi, &[Answer(B, "")]), user]),
        [Repair::AddMessage(2, vec![0]), Repair::AddMessage(2, vec![2])]
    );
    // Open calls stay, and so do those without an id.
    assert_eq!(mend(&[calls]), []);
    assert_eq!(mend(&[(Role::Assistant, Shape::OpenAi, &[Call(None, None)]), user]), []);
    // Anthropic: in the message that answers the siblings, or all in one new message.
    let calls: (Role, Shape, &[Item]) = (Role::Assistant, Shape::Anthropic, &[Call(A, None), Call(B, None)]);
    assert_eq!(
        mend(&[calls, (Role::User, Shape::Anthropic, &[Answer(B, ""), Text("and")]), user]),
        [Repair::AddBlock(1, 1, 0)]
    );
    assert_eq!(mend(&[calls, user]), [Repair::AddMessage(1, vec![0, 1])]);
    // The id is called again before the place where the answer would go.
    let run: &[Item] = &[Call(A, None)];
    let twice = [(Role::Assistant, Shape::OpenAi, run), (Role::Assistant, Shape::OpenAi, run), user];
    assert_eq!(mend(&twice), [Repair::AddMessage(2, vec![1])]);
}

#[test]
fn repairs_name_each_orphan_once() {
    let mut random = Random::new(33);
    for _ in 0..20_000 {
        let sketch = Sketch::random(&mut random);
        let outline = &sketch.outline;
        let steps = repairs(outline);
        let mut answered = vec![];
        for step in &steps {
            match step {
                Repair::DropMessage(_) | Repair::DropBlock(..) => {}
                Repair::MoveBlock(message, _, (from, _)) => assert!(outline.holds_results(*message.max(from))),
                Repair::AddBlock(_, _, call) => answered.push(*call),
                Repair::AddMessage(before, calls) => {
                    assert!(*before <= outline.messages.len());
                    answered.extend(calls);
                }
            }
        }
        let total = answered.len();
        answered.sort_unstable();
        answered.dedup();
        assert_eq!(answered.len(), total);
        let pairs = Pairs::of(outline);
        assert!(answered.iter().all(|call| !pairs.is_answered(*call)));
        let is_whole = findings(outline).iter().all(|(kind, ..)| *kind == FindingKind::OpenCall);
        assert!(!is_whole || steps.is_empty());
    }
}

#[test]
fn ids_are_compared_decoded() {
    let outline = outline_of(
        r#"[{"role":"assistant","tool_calls":[{"id":"\u0063all\/1","function":{"name":"b\u0061sh"}}]},
        {"role":"tool","tool_call_id":"c\u0061ll/1","content":""}]"#,
    );
    let pairs = Pairs::of(&outline);
    assert_eq!(pairs.call_of(0), Some(0));
    assert_eq!(outline.name(pairs.name_of(&outline, 0).unwrap()), b"bash");
}
