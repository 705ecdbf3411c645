//! A message says the same with its fields in any order, and with escaped keys. What it says is tested from Python.

use crate::common::{escaped, outline_of};
use recede::outline::Outline;

/// The members of an object: key, and its value as JSON.
type Members<'a> = &'a [(&'a str, &'a str)];

fn object(members: Members, escapes: bool) -> String {
    let key = |key: &str| if escapes { escaped(key) } else { key.to_owned() };
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{}\" : {value}", key(name))).collect();
    format!("{{{}}}", members.join(" ,"))
}

/// The object with its members in all orders, with plain keys and escaped ones.
fn spellings(members: Members) -> Vec<String> {
    let mut orders = vec![vec![]];
    for member in members {
        let longer = |order: &Vec<_>, place: usize| [&order[..place], &[*member], &order[place..]].concat();
        orders = orders.iter().flat_map(|order| (0..=order.len()).map(|place| longer(order, place))).collect();
    }
    orders.iter().flat_map(|order| [object(order, false), object(order, true)]).collect()
}

/// What the second message says, without the places where it says it.
fn told(data: &str, outline: &Outline) -> String {
    let message = &outline.messages[1];
    let text = |text| String::from_utf8_lossy(outline.text(text));
    let calls = outline.calls[outline.calls_of(1)].iter();
    let calls = calls.map(|call| (call.id.map(text), call.name.map(|name| outline.name(name)), call.block));
    let results = outline.results[outline.results_of(1)].iter().map(|result| {
        let counts = (result.chars, result.newlines, result.images, result.pieces);
        (result.id.map(text), result.value.of(data.as_bytes()), counts, result.block, result.is_error)
    });
    let pieces = outline.pieces[outline.pieces_of(1)].iter().map(|piece| piece.of(data.as_bytes()));
    let flags = (message.is_agent_made, message.item, message.role, message.shape, message.images, message.chars);
    format!(
        "{flags:?} {:?} {:?} {:?}",
        calls.collect::<Vec<_>>(),
        results.collect::<Vec<_>>(),
        pieces.collect::<Vec<_>>()
    )
}

fn told_between_others(message: &str) -> String {
    let data = format!(
        "[{{\"role\":\"user\",\"content\":\"x\"}},\n {message} ,{{\"content\":[{{\"type\":\"text\",\"text\":\"y\"}}]}}]"
    );
    let outline = outline_of(&data);
    assert_eq!(outline.spans[1].of(data.as_bytes()), message.as_bytes());
    assert_eq!((outline.messages[0].chars, outline.messages[2].chars, outline.array_start), (1, 1, 1));
    told(&data, &outline)
}

/// How many different things the spellings say.
fn meanings(spellings: &[String]) -> usize {
    spellings.iter().map(|message| told_between_others(message)).collect::<std::collections::HashSet<_>>().len()
}

#[test]
fn fields_come_in_any_order_and_spelling() {
    let calls = r#"[{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"x\": 1}"}}, 5,
        {"\u0063ustom":{"inp\u0075t":"é","n\u0061me":"edit"},"id":null},{"function":{"arguments":{"k":[1,true]}}}]"#;
    let parts = r#"[{"type":"text","text":"a\n"},{"text":"b","type":"output_text"},{"type":"image_url","text":"c"},{"type":"text","text":null}]"#;
    let blocks = r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":"so"},{"type":"tool_use","id":"t1","name":"bash","input":{"cmd":"ls"}},{"type":"image"}]"#;
    let messages: &[Members] = &[
        &[("role", "\"assistant\""), ("content", "\"call\""), ("pairRole", "\"call\""), ("pairId", r#""é\u0031""#)],
        &[
            ("role", "\"tool\""),
            ("content", r#""a\nb""#),
            ("pairRole", "\"result\""),
            ("pairId", "\"7\""),
            ("x", "[1]"),
        ],
        &[("role", "\"user\""), ("content", r#""a\nb""#), ("pairRole", "\"result\""), ("pairId", "\"7\"")],
        &[("role", "\"assistant\""), ("content", "null"), ("tool_calls", calls), ("refusal", "{}")],
        &[("role", "\"user\""), ("content", "\"é\""), ("tool_calls", calls)],
        &[("role", "\"tool\""), ("content", parts), ("tool_call_id", r#""\u0061""#), ("name", "\"bash\"")],
        &[("role", "\"assistant\""), ("content", blocks), ("stop_reason", "\"tool_use\"")],
        &[("type", r#""x_c\u0061ll""#), ("call_id", "\"c1\""), ("name", "\"sh\""), ("arguments", r#""{\"a\":1}""#)],
        &[("type", "\"x_call\""), ("call_id", "5"), ("arguments", "null"), ("input", "[]"), ("action", "\"long\"")],
        &[("type", "\"web_search_call\""), ("call_id", "null"), ("action", "{}")],
        &[("type", "\"x_call_output\""), ("call_id", "\"c1\""), ("output", r#""a\u000ab""#), ("status", "\"done\"")],
        &[("type", "\"x_call_output\""), ("output", r#"{"a":"b"}"#)],
        &[("type", "\"reasoning\""), ("summary", "[]"), ("encrypted_content", "\"x\"")],
        &[("role", "7"), ("content", "null"), ("type", "[]"), ("pairRole", "{}")],
    ];
    let all: Vec<Vec<String>> = messages.iter().map(|members| spellings(members)).collect();
    assert!(all.iter().all(|spellings| meanings(spellings) == 1));
    assert_eq!(meanings(&all.concat()), messages.len());
    // The members of a block come in any order too.
    let results = spellings(&[
        ("type", "\"tool_result\""),
        ("tool_use_id", "\"t1\""),
        ("content", r#"[{"type":"text","text":"é\n"},{"type":"document"}]"#),
        ("is_error", "true"),
        ("cache_control", "{\"type\":\"x\"}"),
    ]);
    let message = |block: &String| format!(r#"{{"role":"user","content":[{block},{{"type":"text","text":"so"}}]}}"#);
    assert_eq!(meanings(&results.iter().map(message).collect::<Vec<_>>()), 1);
}

#[test]
fn names_are_interned() {
    // More names than are walked.
    let mut outline = Outline::default();
    for round in 0..3 {
        for name in 0..100 {
            let number = outline.intern(format!("tool {name}").as_bytes());
            assert_eq!(number, name, "{round}");
        }
    }
    assert_eq!(outline.name_count(), 100);
    assert_eq!(outline.name(57), b"tool 57");
}

#[test]
fn an_empty_name_stays_where_only_later_messages_are_dropped() {
    let call = r#"{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"","arguments":"{}"}}]}"#;
    let mut outline = outline_of(format!(r#"[{call},{{"role":"tool","tool_call_id":"c","content":"x"}}]"#));
    let mark = outline.mark_before(1);
    outline.truncate(&mark);
    assert_eq!(outline.calls[0].name.map(|name| outline.name(name)), Some(&b""[..]));
}
