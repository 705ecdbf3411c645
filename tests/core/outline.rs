//! The facts of each shape of message, with its fields in any order and its keys escaped or not.

use crate::common::{escaped, outline_of};
use recede::outline::{ItemType, Outline, Role, Shape};

/// The members of an object: key, and its value as JSON.
type Members<'a> = &'a [(&'a str, &'a str)];

fn object(members: &[(&str, &str)], escapes: bool) -> String {
    let key = |key: &str| if escapes { escaped(key) } else { key.to_owned() };
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{}\" : {value}", key(name))).collect();
    format!("{{{}}}", members.join(" ,"))
}

/// All orders of the members.
fn orders<'a>(members: &[(&'a str, &'a str)]) -> Vec<Vec<(&'a str, &'a str)>> {
    if members.is_empty() {
        return vec![vec![]];
    }
    let mut all = vec![];
    for place in 0..members.len() {
        let mut rest = members.to_vec();
        let first = rest.remove(place);
        for mut order in orders(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

/// What a message says, without the places where it says it.
#[derive(Debug, PartialEq, Eq, Clone)]
struct Facts {
    role: Role,
    shape: Shape,
    chars: usize,
    images: u32,
    /// Made by the agent, an item of Responses.
    flags: (bool, bool),
    /// Id, name, block.
    calls: Vec<(Option<String>, Option<String>, u32)>,
    results: Vec<ResultFacts>,
    pieces: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Clone, Default)]
struct ResultFacts {
    id: Option<String>,
    /// The observation's value as it stands in the input.
    value: String,
    chars: usize,
    newlines: u32,
    images: u32,
    block: u32,
    is_error: bool,
    pieces: Vec<String>,
}

impl Default for Facts {
    fn default() -> Self {
        let (role, shape) = (Role::Other, Shape::Plain);
        Facts {
            role,
            shape,
            chars: 0,
            images: 0,
            flags: (false, false),
            calls: vec![],
            results: vec![],
            pieces: vec![],
        }
    }
}

fn facts(data: &str, outline: &Outline, index: usize) -> Facts {
    let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let raw = |range: core::ops::Range<usize>| -> Vec<String> {
        outline.pieces[range].iter().map(|piece| string(piece.of(data.as_bytes()))).collect()
    };
    let message = &outline.messages[index];
    let calls = outline.calls[outline.calls_of(index)].iter();
    let results = outline.results[outline.results_of(index)].iter();
    Facts {
        role: message.role,
        shape: message.shape,
        chars: message.chars,
        images: message.images,
        flags: (message.is_agent_made, message.item != ItemType::Other),
        calls: calls
            .map(|call| {
                assert_eq!(call.message as usize, index);
                let name = call.name.map(|name| string(outline.name(name)));
                (call.id.map(|id| string(outline.text(id))), name, call.block)
            })
            .collect(),
        results: results
            .map(|result| {
                assert_eq!(result.message as usize, index);
                let first = result.first_piece as usize;
                ResultFacts {
                    id: result.id.map(|id| string(outline.text(id))),
                    value: string(result.value.of(data.as_bytes())),
                    chars: result.chars,
                    newlines: result.newlines,
                    images: result.images,
                    block: result.block,
                    is_error: result.is_error,
                    pieces: raw(first..first + result.pieces as usize),
                }
            })
            .collect(),
        pieces: raw(outline.pieces_of(index)),
    }
}

/// The message between two others, with its members in every order, and escaped keys.
fn check(members: Members, wanted: &Facts) {
    for order in orders(members) {
        for escapes in [false, true] {
            let message = object(&order, escapes);
            let data = format!(
                "[{{\"role\":\"user\",\"content\":\"x\"}},\n {message} ,{{\"content\":[{{\"type\":\"text\",\"text\":\"y\"}}]}}]"
            );
            let outline = outline_of(&data);
            assert_eq!(&facts(&data, &outline, 1), wanted, "{data}");
            assert_eq!(outline.spans[1].of(data.as_bytes()), message.as_bytes());
            assert_eq!((outline.messages[0].chars, outline.messages[2].chars, outline.array_start), (1, 1, 1));
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "each use would wrap it")]
fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn chat_messages() {
    let call: Members = &[
        ("role", "\"assistant\""),
        ("content", "\"call\""),
        ("pairRole", "\"call\""),
        ("pairId", "\"é\\u0031\""),
        ("x", "[1]"),
    ];
    check(
        call,
        &Facts {
            role: Role::Assistant,
            shape: Shape::ChatMessage,
            chars: 24,
            flags: (true, false),
            calls: vec![(some("é1"), None, 0)],
            pieces: texts(&["call"]),
            ..Facts::default()
        },
    );
    let result = |role: &'static str| {
        [
            ("role", role),
            ("content", r#""line\nline""#),
            ("pairRole", "\"result\""),
            ("pairId", "\"7\""),
            ("tags", "[\"a\"]"),
        ]
    };
    let answer = ResultFacts {
        id: some("7"),
        value: r#""line\nline""#.to_owned(),
        chars: 9,
        newlines: 1,
        pieces: texts(&[r"line\nline"]),
        ..ResultFacts::default()
    };
    let pieces = texts(&[r"line\nline"]);
    let wanted = Facts {
        shape: Shape::ChatMessage,
        chars: 9,
        results: vec![answer],
        pieces: pieces.clone(),
        ..Facts::default()
    };
    check(&result("\"tool\""), &wanted);
    check(&result("null"), &wanted);
    // A user message is no result, whatever it says of pairs.
    check(&result("\"user\""), &Facts { role: Role::User, chars: 9, pieces, ..Facts::default() });
}

#[test]
fn openai_chat() {
    let calls = r#"[{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"x\": 1}"}}, 5,
        {"\u0063ustom":{"inp\u0075t":"é","n\u0061me":"edit"},"id":null},{"function":{"arguments":{"k":[1,true]}},"custom":{"name":"no"}}]"#;
    let members: Members = &[("role", "\"assistant\""), ("content", "null"), ("tool_calls", calls), ("refusal", "{}")];
    check(
        members,
        &Facts {
            role: Role::Assistant,
            shape: Shape::OpenAi,
            chars: (4 + 8 + 20) + (4 + 1 + 20) + (2 + 3 + 1 + 2 + 4 + 1 + 4 + 20),
            flags: (true, false),
            calls: vec![(some("a"), some("bash"), 0), (None, some("edit"), 2), (None, None, 3)],
            ..Facts::default()
        },
    );
    // Only an assistant makes such calls, and only in a list that holds one.
    let members: Members = &[("role", "\"user\""), ("content", "\"é\""), ("tool_calls", calls)];
    check(members, &Facts { role: Role::User, chars: 1, pieces: texts(&["é"]), ..Facts::default() });
    let parts = r#"[{"type":"text","text":"a\n"},{"text":"b","type":"output_text"},{"type":"image_url","text":"c"},{"type":"thinking","text":"d"},{"type":"text","text":null}]"#;
    let members: Members =
        &[("role", "\"tool\""), ("content", parts), ("tool_call_id", "\"\\u0061\""), ("name", "\"bash\"")];
    let answer = ResultFacts {
        id: some("a"),
        value: parts.to_owned(),
        chars: 3,
        newlines: 1,
        images: 1,
        pieces: texts(&[r"a\n", "b"]),
        ..ResultFacts::default()
    };
    let facts = Facts { shape: Shape::OpenAi, chars: 3, images: 1, pieces: texts(&[r"a\n", "b"]), ..Facts::default() };
    check(members, &Facts { results: vec![answer], ..facts });
}

#[test]
fn anthropic_messages() {
    let use_block = r#"{"type":"tool_use","id":"t1","name":"bash","input":{"cmd":"ls"}}"#;
    let blocks = format!(
        r#"[{{"type":"thinking","thinking":"hm"}},{{"type":"text","text":"so"}},{use_block},{{"type":"image"}}]"#
    );
    check(
        &[("role", "\"assistant\""), ("content", &blocks), ("stop_reason", "\"tool_use\"")],
        &Facts {
            role: Role::Assistant,
            shape: Shape::Anthropic,
            chars: 2 + 4 + 20 + (2 + 5 + 1 + 4),
            images: 1,
            flags: (true, false),
            calls: vec![(some("t1"), some("bash"), 2)],
            pieces: texts(&["so"]),
            ..Facts::default()
        },
    );
    // The members of a block come in any order too.
    let block: Members = &[
        ("type", "\"tool_result\""),
        ("tool_use_id", "\"t1\""),
        ("content", r#"[{"type":"text","text":"é\n"},{"type":"document"}]"#),
        ("is_error", "true"),
        ("cache_control", "{\"type\":\"x\"}"),
    ];
    for order in orders(block) {
        for escapes in [false, true] {
            let block = object(&order, escapes);
            let blocks = format!(
                r#"[{block},{{"type":"text","text":"so"}},{{"type":"tool_result","content":"raw","is_error":"true"}}]"#
            );
            check(
                &[("role", "\"user\""), ("content", &blocks)],
                &Facts {
                    role: Role::User,
                    shape: Shape::Anthropic,
                    chars: 2 + 2 + 3,
                    images: 1,
                    results: vec![
                        ResultFacts {
                            id: some("t1"),
                            value: block_content(),
                            chars: 2,
                            newlines: 1,
                            images: 1,
                            is_error: true,
                            pieces: texts(&[r"é\n"]),
                            ..ResultFacts::default()
                        },
                        ResultFacts {
                            value: "\"raw\"".to_owned(),
                            chars: 3,
                            block: 2,
                            pieces: texts(&["raw"]),
                            ..ResultFacts::default()
                        },
                    ],
                    pieces: texts(&[r"é\n", "so", "raw"]),
                    ..Facts::default()
                },
            );
        }
    }
}

fn block_content() -> String {
    r#"[{"type":"text","text":"é\n"},{"type":"document"}]"#.to_owned()
}

#[test]
fn openai_responses() {
    for (field, value, chars) in
        [("arguments", r#""{\"a\":1}""#, 7), ("input", "\"é\"", 1), ("action", r#"{"type": "x"}"#, 2 + 6 + 1 + 3)]
    {
        check(
            &[
                ("type", "\"some_c\\u0061ll\""),
                ("call_id", "\"c1\""),
                ("name", "\"sh\""),
                (field, value),
                ("id", "\"fc\""),
            ],
            &Facts {
                shape: Shape::Responses,
                chars: 2 + chars + 20,
                flags: (true, true),
                calls: vec![(some("c1"), some("sh"), 0)],
                ..Facts::default()
            },
        );
    }
    // The first of the three that is not null counts.
    check(
        &[("type", "\"x_call\""), ("call_id", "5"), ("arguments", "null"), ("input", "[]"), ("action", "\"long\"")],
        &Facts {
            shape: Shape::Responses,
            chars: 22,
            flags: (true, true),
            calls: vec![(None, None, 0)],
            ..Facts::default()
        },
    );
    // No call id: no call, but still made by the agent, and counted as JSON.
    let plain = Facts { chars: 53, flags: (true, true), ..Facts::default() };
    check(&[("type", "\"web_search_call\""), ("call_id", "null"), ("action", "{}")], &plain);
    let answer = ResultFacts {
        id: some("c1"),
        value: r#""a\u000ab""#.to_owned(),
        chars: 3,
        newlines: 1,
        pieces: texts(&[r"a\u000ab"]),
        ..ResultFacts::default()
    };
    let facts = Facts { shape: Shape::Responses, flags: (false, true), ..Facts::default() };
    check(
        &[
            ("type", "\"x_call_output\""),
            ("call_id", "\"c1\""),
            ("output", r#""a\u000ab""#),
            ("status", "\"completed\""),
        ],
        &Facts { chars: 3, results: vec![answer], pieces: texts(&[r"a\u000ab"]), ..facts.clone() },
    );
    // An output that is an object is left alone, and counts as JSON.
    let answer = ResultFacts { value: r#"{"a":"b"}"#.to_owned(), ..ResultFacts::default() };
    let facts = Facts { chars: 9, results: vec![answer], ..facts };
    check(&[("type", "\"x_call_output\""), ("output", r#"{"a":"b"}"#)], &facts);
    let reasoning = Facts { flags: (true, true), ..Facts::default() };
    check(&[("type", "\"reasoning\""), ("summary", "[]"), ("encrypted_content", "\"x\"")], &reasoning);
}

#[test]
fn plain_messages() {
    for (role, wanted) in [
        ("\"system\"", Role::System),
        ("\"developer\"", Role::System),
        ("\"user\"", Role::User),
        ("\"critic\"", Role::Other),
    ] {
        check(
            &[("role", role), ("content", "\"a😀\""), ("name", "\"n\"")],
            &Facts { role: wanted, chars: 2, pieces: texts(&["a😀"]), ..Facts::default() },
        );
    }
    check(&[], &Facts::default());
    check(&[("role", "7"), ("content", "null"), ("type", "[]"), ("pairRole", "{}")], &Facts::default());
}

#[test]
fn a_body_is_read_by_its_messages_or_its_input() {
    let message = r#"[{"role":"user","content":"one"},{"role":"user"}]"#;
    for (data, count) in [
        (format!(r#"{{"model":"m","messages":{message},"x":1}}"#), 2),
        (format!(r#"{{"input":{message}}}"#), 2),
        (format!(r#"{{"input":{message},"messages":[{{}}]}}"#), 1),
        (format!(r#"{{"messages":[{{}}],"input":{message}}}"#), 1),
        (format!(r#"{{"messages":"none","input":{message}}}"#), 2),
        (format!(r#"{{"input":"none","me\u0073sages":{message}}}"#), 2),
    ] {
        let outline = outline_of(&data);
        assert_eq!(outline.messages.len(), count, "{data}");
        assert_eq!(data.as_bytes()[outline.array_start - 1], b'[');
    }
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
