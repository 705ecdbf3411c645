//! The planner on outlines built by hand, and every stage against naive code.

use crate::common::{Random, published};
use crate::oracle;
use crate::sketch::Item::{self, Call, ErrorResult, Images, Reasoning, Result as Answer, Tag, Text};
use crate::sketch::Sketch;
use recede::outline::{Role, Shape};
use recede::patterns::ByTool;
use recede::placeholder::Placeholder;
use recede::plan::{Costs, Given, Outcome, Plan, Stage, Summary, SummaryInput, facts};
use recede::policy::{Boundary, Field, Goal, Policy};
use recede::provider::{CacheRule, ProviderCache};
use recede::report;

const LONG: &str = "a long observation that is well worth masking, since it goes on";
const LONG_CHARS: usize = 63;
const MASKED_CHARS: usize = 31;

fn plan(sketch: &Sketch, policy: &Policy) -> Plan {
    plan_with(sketch, policy, &SummaryInput::NotAsked)
}

fn plan_with(sketch: &Sketch, policy: &Policy, summary: &SummaryInput) -> Plan {
    match recede::plan::plan(&sketch.outline, sketch, policy, Given { summary, ..Given::default() }) {
        Outcome::Plan(plan) => *plan,
        Outcome::AskSummary(_) | Outcome::AskCosts(_) => panic!("asks"),
    }
}

fn masked(plan: &Plan) -> Vec<u32> {
    plan.masked.iter().map(|masked| masked.result).collect()
}

fn kept(plan: &Plan) -> Vec<usize> {
    let kept = plan.kept.as_ref().unwrap();
    (0..kept.len()).filter(|message| kept[*message]).collect()
}

/// System, task, then turns of one call and its result.
fn session(turns: usize) -> Sketch {
    const IDS: [&str; 12] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"];
    let mut sketch =
        Sketch::new(&[(Role::System, Shape::Plain, &[Text("rules")]), (Role::User, Shape::Plain, &[Text("the task")])]);
    for id in &IDS[..turns] {
        sketch.push(Role::Assistant, Shape::OpenAi, &[Call(Some(id), Some("bash"))]);
        sketch.push(Role::Other, Shape::OpenAi, &[Answer(Some(id), LONG)]);
    }
    sketch
}

const TURN: usize = 24 + LONG_CHARS;

#[test]
fn within_limit_nothing_is_done() {
    let sketch = session(6);
    let chars = 13 + 6 * TURN;
    assert_eq!(sketch.outline.total_chars(0), chars);
    let fitting = policy!(published(); limit.max = Some(chars), design.keep_messages = Some(0));
    let disabled = policy!(published(); limit.max = Some(1), is_off = true);
    for policy in [fitting, disabled] {
        let plan = plan(&sketch, &policy);
        assert!(!plan.changes());
        assert_eq!((plan.stage, plan.boundary, plan.chars), (None, 0, (chars, chars)));
        assert_eq!(plan.within_limit, Some(!policy.is_off));
    }
}

#[test]
fn masking_up_to_the_window() {
    let sketch = session(6);
    let policy = policy!(published(); limit.max = Some(13 + 6 * TURN - 1), design.keep_messages = Some(4));
    let plan = plan(&sketch, &policy);
    assert_eq!((plan.stage, plan.boundary, masked(&plan)), (Some(Stage::Masking), 4, vec![0, 1, 2, 3]));
    assert_eq!(plan.chars.1, 13 + 6 * TURN - 4 * (LONG_CHARS - MASKED_CHARS));
    assert!(plan.kept.is_none() && plan.within_limit == Some(true) && plan.summary.is_none());
    assert_eq!(report::first_changed(&sketch.outline, &plan), Some(3));
    let counts = report::by_tool(&sketch.outline, &plan, 0);
    assert_eq!(counts.len(), 1);
    assert_eq!((counts[0].1.observations, counts[0].1.masked, counts[0].1.removed_chars), (6, 4, 4 * 32));
}

fn by_tool<T, const N: usize>(rules: [(&str, T); N]) -> ByTool<T> {
    rules.into_iter().map(|(tool, rule)| (tool.as_bytes().to_vec(), rule)).collect()
}

#[test]
fn each_measure_of_the_window() {
    let sketch = session(6);
    let mask = |change: fn(&mut Policy)| {
        let mut policy =
            policy!(published(); goal = Goal::Mask, design.keep_messages = None, design.masks_unseen = true);
        change(&mut policy);
        masked(&plan(&sketch, &policy)).len()
    };
    assert_eq!(mask(|policy| policy.design.keep_messages = Some(0)), 6);
    assert_eq!(mask(|policy| policy.design.keep_messages = Some(1)), 5);
    assert_eq!(mask(|policy| policy.design.keep_messages = Some(2)), 5);
    assert_eq!(mask(|policy| policy.design.keep_messages = Some(3)), 4);
    assert_eq!(mask(|policy| policy.design.keep_messages = Some(99)), 0);
    assert_eq!(mask(|policy| policy.design.keep_turns = Some(2)), 4);
    assert_eq!(mask(|policy| policy.keep.results = 4), 2);
    assert_eq!(mask(|policy| (policy.keep.results, policy.design.keep_turns) = (1, Some(2))), 4);
    assert_eq!(mask(|policy| (policy.keep.results, policy.terms.boundary) = (1, Boundary::Stepped(2))), 4);
    assert_eq!(mask(|policy| (policy.keep.results, policy.terms.boundary) = (1, Boundary::Stepped(7))), 0);
    assert_eq!(mask(|policy| (policy.keep.results, policy.design.min_masked_chars) = (1, 5 * 32)), 5);
    assert_eq!(mask(|policy| (policy.keep.results, policy.design.min_masked_chars) = (1, 5 * 32 + 1)), 0);
    assert_eq!(mask(|policy| (policy.keep.results, policy.exempt.tools) = (1, by_tool([("b*", ())]))), 0);
    assert_eq!(mask(|policy| policy.keep.by_tool = by_tool([("bash", Some(1))])), 5);
    assert_eq!(mask(|policy| policy.keep.by_tool = by_tool([("*", None)])), 0);
    assert_eq!(
        mask(|policy| policy.keep.by_tool = by_tool([("*", None), ("bash", Some(2))])),
        4,
        "an exact name wins over a pattern before it"
    );
}

#[test]
fn a_rounded_boundary_that_does_not_fit_is_not_the_last_word() {
    let sketch = session(6);
    let whole = 13 + 6 * TURN;
    let policy = |max| {
        policy!(
            published();
            limit.max = Some(max),
            design.keep_messages = None,
            keep.results = 1,
            terms.boundary = Boundary::Stepped(4),
        )
    };
    assert_eq!(plan(&sketch, &policy(whole - 4 * 32)).boundary, 4);
    assert_eq!(plan(&sketch, &policy(whole - 4 * 32 - 1)).boundary, 5);
    assert_eq!(plan_with(&sketch, &policy(whole - 5 * 32 - 1), &SummaryInput::Failed).stage, Some(Stage::Fallback));
}

#[test]
fn errors_are_kept_where_asked() {
    let sketch = Sketch::new(&[
        (Role::Assistant, Shape::Anthropic, &[Call(Some("a"), None), Call(Some("b"), None)]),
        (Role::User, Shape::Anthropic, &[ErrorResult(Some("a"), LONG), Answer(Some("b"), LONG)]),
    ]);
    let policy = policy!(published(); goal = Goal::Mask, design.keep_messages = Some(0), exempt.errors = true, design.masks_unseen = true);
    assert_eq!(masked(&plan(&sketch, &policy)), [1]);
    assert_eq!(plan(&sketch, &policy).boundary, 2);
}

#[test]
fn summarization_replaces_what_is_outside_the_keep_set() {
    let sketch = session(8);
    let policy = policy!(published(); limit.max = Some(500), design.skips_masks = true);
    let text = b"all is well".to_vec();
    let plan = plan_with(&sketch, &policy, &SummaryInput::Given(text, None));
    assert_eq!((plan.stage, kept(&plan)), (Some(Stage::Summarization), vec![0, 14, 15, 16, 17]));
    let text = b"Conversation summary:\nall is well".to_vec();
    assert_eq!(
        plan.summary,
        Some(Summary { text, role: "system".to_owned(), before: 1, joins: None, shape: Shape::Plain })
    );
    assert_eq!(plan.chars.1, 5 + 2 * TURN + 33);
    // With a cost of its own it may not fit; and if it failed, the next stage it is.
    let dear = SummaryInput::Given(b"short".to_vec(), Some(501));
    assert_eq!(plan_with(&sketch, &policy, &dear).stage, Some(Stage::Fallback));
    assert_eq!(plan_with(&sketch, &policy, &SummaryInput::Failed).stage, Some(Stage::Fallback));
    // A summary that is not shorter than what it replaces is none.
    let long = SummaryInput::Given(vec![b'x'; 2_000], None);
    let clipped = policy!(policy.clone(); limit.summary_chars = 50);
    assert_eq!(plan_with(&sketch, &clipped, &long).summary.unwrap().text.len(), 50);
    let summarize = policy!(policy; goal = Goal::Summarize, limit.summary_chars = 2_000);
    assert_eq!(plan_with(&sketch, &summarize, &long).stage, None);
}

#[test]
fn a_summary_is_asked_for() {
    let sketch = session(3);
    let policy =
        policy!(published(); goal = Goal::Summarize, limit.asks_summary = true, design.keep_messages = Some(1));
    let asked = recede::plan::plan(&sketch.outline, &sketch, &policy, Given::default());
    let Outcome::AskSummary(asked) = asked else { panic!("does not ask") };
    assert_eq!((asked.dropped, asked.previous), (vec![1, 2, 3, 4, 5], None));
    assert_eq!(
        String::from_utf8(asked.built_in).unwrap(),
        format!("Conversation summary:\n- objective: the task\n- outcome: bash: {LONG}"),
        "doubles are left out"
    );
}

#[test]
fn the_built_in_summary() {
    let long = "y".repeat(300);
    let sketch = Sketch::new(&[
        (Role::System, Shape::Plain, &[Text("rules")]),
        (
            Role::System,
            Shape::Plain,
            &[Text("Conversation summary:\n- objective: the old one\nfree line\n- constraint: old")],
        ),
        (Role::User, Shape::Plain, &[Text("  a\u{3000}b\n\tc "), Text(&long), Tag("constraint"), Tag("unresolved")]),
        (Role::User, Shape::Plain, &[Text("not tagged")]),
        (Role::Assistant, Shape::OpenAi, &[Call(Some("1"), Some("re\nad"))]),
        (Role::Other, Shape::OpenAi, &[Answer(Some("1"), " out\n come ")]),
        (Role::Other, Shape::OpenAi, &[Answer(Some("2"), "nobody asked")]),
        (Role::Assistant, Shape::Plain, &[Text("end")]),
    ]);
    let policy = policy!(published(); goal = Goal::Summarize, design.keep_messages = Some(1));
    let plan = plan(&sketch, &policy);
    let line = format!("a b c {}", "y".repeat(114));
    assert_eq!(kept(&plan), [0, 7]);
    let summary = plan.summary.unwrap();
    assert_eq!(summary.before, 2);
    assert_eq!(
        String::from_utf8(summary.text).unwrap(),
        format!(
            "Conversation summary:\n- objective: the old one\nfree line\n- unresolved: {line}\n\
             - outcome: re ad: out come\n- outcome: nobody asked\n- constraint: old\n- constraint: {line}"
        )
    );
}

#[test]
fn the_role_of_a_summary() {
    let role = |shape, items: &[Item], wanted: Option<&str>| {
        let sketch = Sketch::new(&[(Role::User, Shape::Plain, &[Text(LONG), Text(LONG)]), (Role::Other, shape, items)]);
        let summary_role = wanted.map(str::to_owned);
        let policy = policy!(
            published();
            goal = Goal::Summarize,
            design.keep_messages = Some(1),
            design.summary_role = summary_role,
        );
        plan_with(&sketch, &policy, &SummaryInput::Given(b"short".to_vec(), None)).summary.unwrap().role
    };
    assert_eq!(role(Shape::Plain, &[], None), "system");
    assert_eq!(role(Shape::OpenAi, &[Answer(Some("a"), "")], None), "system");
    assert_eq!(role(Shape::Anthropic, &[Answer(Some("a"), "")], None), "user");
    assert_eq!(role(Shape::Responses, &[Reasoning], None), "user");
    assert_eq!(role(Shape::Responses, &[], Some("developer")), "developer");
}

#[test]
fn the_fallback_keeps_pairs_the_task_and_reasoning() {
    let sketch = Sketch::new(&[
        (Role::Assistant, Shape::Plain, &[Text("hello")]),
        (Role::User, Shape::Anthropic, &[Answer(Some("none"), "")]),
        (Role::User, Shape::Plain, &[Text("the task")]),
        (Role::User, Shape::Plain, &[Text("more")]),
        (Role::Other, Shape::Responses, &[Reasoning]),
        (Role::Assistant, Shape::OpenAi, &[Call(Some("a"), None), Call(Some("b"), None)]),
        (Role::Other, Shape::OpenAi, &[Answer(Some("a"), LONG)]),
        (Role::System, Shape::Plain, &[Text("a rule between")]),
        (Role::Other, Shape::OpenAi, &[Answer(Some("b"), LONG)]),
    ]);
    let policy = policy!(published(); limit.max = Some(0), design.keep_messages = Some(1), design.masks_unseen = true);
    let plan = plan(&sketch, &policy);
    assert_eq!((plan.stage, plan.within_limit), (Some(Stage::Fallback), Some(false)));
    assert_eq!(kept(&plan), [2, 4, 5, 6, 7, 8]);
    assert_eq!(plan.orphans, [1]);
    assert_eq!(masked(&plan), [1]);
}

#[test]
fn strict_pairs_are_broken_by_any_orphan() {
    let mut sketch = session(6);
    sketch.push(Role::Other, Shape::OpenAi, &[Answer(Some("nobody"), "x")]);
    let policy = policy!(published(); limit.max = Some(500), design.keep_messages = Some(1));
    assert_eq!(plan(&sketch, &policy).stage, Some(Stage::Masking));
    let strict = policy!(policy; design.strict_pairs = true);
    assert_eq!(plan(&sketch, &strict).stage, Some(Stage::Fallback));
}

#[test]
fn costs_are_counted_where_they_are_given() {
    let sketch = session(2);
    let costs = Costs { messages: vec![1; 6], observations: vec![(100, 10), (100, 10)], ..Costs::default() };
    let stage = |max| {
        let policy = policy!(published(); limit.max = Some(max), design.keep_messages = Some(1));
        match recede::plan::plan(
            &sketch.outline,
            &sketch,
            &policy,
            Given { costs: Some(&costs), summary: &SummaryInput::Failed, ..Given::default() },
        ) {
            Outcome::Plan(plan) => (plan.stage, plan.within_limit),
            Outcome::AskSummary { .. } | Outcome::AskCosts(_) => panic!("asks"),
        }
    };
    assert_eq!(stage(206), (None, Some(true)));
    assert_eq!(stage(205), (Some(Stage::Masking), Some(true)));
    assert_eq!(stage(116), (Some(Stage::Masking), Some(true)));
    assert_eq!(stage(115), (Some(Stage::Fallback), Some(true)));
    assert_eq!(stage(100), (Some(Stage::Fallback), Some(false)));
}

#[test]
fn images_count_and_numbers_do_not_overflow() {
    let sketch = Sketch::new(&[
        (Role::User, Shape::Plain, &[Images(u32::MAX)]),
        (Role::Other, Shape::OpenAi, &[Item::ImageResult(None, "", 2)]),
    ]);
    let policy = policy!(published(); limit.max = Some(usize::MAX - 1), design.keep_messages = Some(0), text.image_chars = usize::MAX);
    assert_eq!(plan(&sketch, &policy).chars.0, usize::MAX);
    let policy = policy!(published(); goal = Goal::Mask, design.keep_messages = Some(0), design.masks_unseen = true);
    let plan = plan(&sketch, &policy);
    let placeholder = Placeholder::of(&policy);
    let facts = facts(&sketch.outline, &plan.pairs, None, 0);
    let text = placeholder.render(&plan.masked[0].form, &facts, String::new().into_bytes_fn()).unwrap();
    assert_eq!(text, "[observation masked — 0 chars, 2 images]".as_bytes());
    assert_eq!(plan.masked[0].removed, 2 * 6_400 - 40);
}

/// What `render` asks for: the text, when it is needed.
trait IntoBytesFn {
    fn into_bytes_fn(self) -> impl FnOnce() -> Vec<u8>;
}

impl IntoBytesFn for String {
    fn into_bytes_fn(self) -> impl FnOnce() -> Vec<u8> {
        move || self.into_bytes()
    }
}

fn random_policy(random: &mut Random) -> Policy {
    let template = |random: &mut Random| -> Vec<(Vec<u8>, Option<Field>)> {
        let fields = [Field::Chars, Field::Lines, Field::Images, Field::Turn, Field::Tool, Field::Id, Field::Number];
        let mut part = || (random.pick(&["", "<", "é "]).as_bytes().to_vec(), Some(*random.pick(&fields)));
        vec![part(), part()]
    };
    let few = |random: &mut Random, end: usize| random.once_in(2).then(|| random.below(end));
    let patterns: [&[u8]; 5] = [b"bash", b"read*", b"*", b"re?d", b""];
    // Each name once: it comes from a mapping.
    let mut keep_by_tool: Vec<(Vec<u8>, Option<usize>)> = vec![];
    for _ in 0..random.below(3) {
        let tool = random.pick(&patterns).to_vec();
        if keep_by_tool.iter().all(|(other, _)| *other != tool) {
            keep_by_tool.push((tool, few(random, 3)));
        }
    }
    policy!(
        published();
        goal = *random.pick(&[Goal::Reduce, Goal::Reduce, Goal::Mask, Goal::Truncate, Goal::Summarize]),
        limit.max = (!random.once_in(8)).then(|| random.below(500)),
        is_off = random.once_in(20),
        design.keep_messages = few(random, 8),
        design.keep_turns = few(random, 4),
        keep.results = few(random, 5).unwrap_or(0),
        keep.by_tool = keep_by_tool.into_iter().collect(),
        exempt.tools = (0..random.below(4) / 2).map(|_| (random.pick(&patterns[..4]).to_vec(), ())).collect(),
        exempt.errors = random.once_in(3),
        terms.boundary = if random.once_in(3) { Boundary::Stepped(1 + random.below(4)) } else { Boundary::Sliding },
        design.skips_masks = random.once_in(6),
        design.max_observation_chars = random.once_in(4).then(|| random.below(80)),
        text.placeholder = random.once_in(4).then(|| template(random)),
        text.least_removed = random.once_in(3).then_some(64),
        design.keeps_dispatch = !random.once_in(3),
        design.lines_form = random.once_in(3),
        design.masks_unseen = random.once_in(2),
        design.min_masked_chars = if random.once_in(5) { random.below(200) } else { 0 },
        text.image_chars = *random.pick(&[0, 10, 6_400]),
        design.strict_pairs = random.once_in(5),
        limit.summary_chars = random.below(60),
        terms.cache = ProviderCache {
            rule: *random.pick(&[CacheRule::Ideal, CacheRule::Prefix, CacheRule::Breakpoints]),
            min_tokens: random.below(2_000),
            step_tokens: random.below(200),
            lookback_blocks: random.below(30),
            most_marks: random.below(6),
        },
    )
}

/// Characters of a view.
fn view_chars(sketch: &Sketch, policy: &Policy, kept: &[bool], masked: &[(usize, String)]) -> usize {
    let raw: usize = (0..kept.len())
        .filter(|message| kept[*message])
        .map(|message| sketch.outline.chars_of(message, policy.text.image_chars))
        .sum();
    let removed = masked
        .iter()
        .filter(|(result, _)| kept[sketch.outline.results[*result].message as usize])
        .map(|(result, text)| oracle::removed_chars(sketch, policy, *result, text));
    raw - removed.sum::<usize>()
}

/// What a plan should be: stage, masked texts, boundary, kept messages, the summary's text.
type Wanted = (Option<Stage>, Vec<(usize, String)>, usize, Vec<bool>, Option<String>);

fn wanted(sketch: &Sketch, policy: &Policy, given: &str) -> Wanted {
    let outline = &sketch.outline;
    let all = vec![true; outline.messages.len()];
    let fits = |chars: usize| policy.limit.max.is_none_or(|max| chars <= max);
    let orphans = oracle::orphans(outline);
    let is_whole = |kept: &[bool]| !policy.design.strict_pairs || !orphans.iter().any(|message| kept[*message]);
    let (mut masked, mut boundary) = (vec![], 0);
    match policy.goal {
        Goal::Mask => {
            (masked, boundary) = oracle::masked(sketch, policy, true);
            if !fits(view_chars(sketch, policy, &all, &masked)) {
                (masked, boundary) = oracle::masked(sketch, policy, false);
            }
            let stage = (!masked.is_empty()).then_some(Stage::Masking);
            return (stage, masked, boundary, all, None);
        }
        Goal::Reduce => {
            if policy.is_off || fits(view_chars(sketch, policy, &all, &[])) {
                return (None, masked, boundary, all, None);
            }
            for is_rounded in [true, false] {
                if !policy.design.skips_masks {
                    (masked, boundary) = oracle::masked(sketch, policy, is_rounded);
                    if is_whole(&all) && fits(view_chars(sketch, policy, &all, &masked)) {
                        return (Some(Stage::Masking), masked, boundary, all, None);
                    }
                }
            }
        }
        Goal::Summarize | Goal::Truncate => {}
    }
    let earlier = oracle::earlier_summaries(sketch);
    if policy.goal != Goal::Truncate {
        let kept = oracle::keep_set(outline, policy, &earlier);
        let is_anything_dropped = (0..kept.len()).any(|message| !kept[message] && !earlier.contains(&message));
        let text: String = format!("Conversation summary:\n{given}").chars().take(policy.limit.summary_chars).collect();
        let replaced = view_chars(sketch, policy, &all, &masked) - view_chars(sketch, policy, &kept, &masked);
        let chars = view_chars(sketch, policy, &kept, &masked) + text.chars().count();
        let is_good = is_anything_dropped && is_whole(&kept) && text.chars().count() < replaced;
        if is_good && (policy.goal == Goal::Summarize || fits(chars)) {
            return (Some(Stage::Summarization), masked, boundary, kept, Some(text));
        }
        if policy.goal == Goal::Summarize {
            return (None, masked, boundary, all, None);
        }
    }
    let mut kept = oracle::keep_set(outline, policy, &[]);
    earlier.iter().chain(&oracle::first_user_message(sketch)).for_each(|message| kept[*message] = true);
    (Some(Stage::Fallback), masked, boundary, kept, None)
}

#[test]
fn random_histories_are_planned_as_the_naive_rules_say() {
    let mut random = Random::new(41);
    let mut stages = std::collections::HashMap::new();
    for _ in 0..40_000 {
        let sketch = Sketch::random(&mut random);
        let policy = random_policy(&mut random);
        let given = "é".repeat(random.below(30));
        let plan = plan_with(&sketch, &policy, &SummaryInput::Given(given.clone().into_bytes(), None));
        let (stage, masked, boundary, kept, text) = wanted(&sketch, &policy, &given);
        *stages.entry(format!("{stage:?}")).or_insert(0) += 1;
        assert_eq!((plan.stage, plan.boundary), (stage, boundary), "{policy:?}");
        let all = vec![true; kept.len()];
        assert_eq!(plan.kept.as_ref().unwrap_or(&all), &kept, "{policy:?}");
        let turns = Some(&plan.turns);
        let placeholder = Placeholder::of(&policy);
        let rendered: Vec<(usize, String)> = plan
            .masked
            .iter()
            .map(|masked| {
                let result = masked.result as usize;
                let facts = facts(&sketch.outline, &plan.pairs, turns, result);
                let observation = sketch.observations[result].clone();
                let text = placeholder.render(&masked.form, &facts, observation.into_bytes_fn()).unwrap();
                let text = String::from_utf8(text).unwrap();
                assert_eq!(masked.removed, oracle::removed_chars(&sketch, &policy, result, &text));
                (result, text)
            })
            .collect();
        assert_eq!(rendered, masked, "{policy:?}");
        let leading = sketch.outline.messages.iter().take_while(|message| message.role == Role::System).count();
        let summary =
            plan.summary.as_ref().map(|summary| (String::from_utf8(summary.text.clone()).unwrap(), summary.before));
        assert_eq!(summary, text.clone().map(|text| (text, leading)));
        let chars = view_chars(&sketch, &policy, &kept, &masked) + text.map_or(0, |text| text.chars().count());
        assert_eq!(plan.chars, (sketch.outline.total_chars(policy.text.image_chars), chars));
        assert_eq!(plan.within_limit, policy.limit.max.map(|max| chars <= max));
        assert_eq!(plan.orphans, oracle::orphans(&sketch.outline));
        assert!(plan.summary.is_some() || stage == Some(Stage::Fallback) || plan.chars.1 <= plan.chars.0);
    }
    assert!(stages.len() == 4 && stages.values().all(|count| *count > 1_000), "{stages:?}");
}
