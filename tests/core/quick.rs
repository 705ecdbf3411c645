//! The quick way through a message against the general one. White space behind the bracket that opens a message sends
//! the scan the general way, and changes nothing else but the places behind it.

use recede::outline::Outline;
use recede::scan::scan;

const MESSAGES: &[&str] = &[
    r#"{"role":"tool","tool_call_id":"call_1","content":"all of it"}"#,
    r#"{"role":"tool","tool_call_id":"","content":""}"#,
    r#"{"role":"tool","tool_call_id":"c\u0061ll","content":"x"}"#,
    r#"{"role":"tool","tool_call_id":"call_1","content":"BEGIN_DISPATCH_RESULT \u00e9 \"é\" \\"}"#,
    r#"{"role":"tool","tool_call_id":"call_1","content":"more than a short string holds, and \n an escape","name":"x"}"#,
    r#"{"role":"tool","tool_call_id":"call_1","content":"x","content":"y"}"#,
    r#"{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"x"}]}"#,
    r#"{"role":"tool","content":"seen","pairRole":"result","pairId":"call_1"}"#,
    r#"{"role":"tool","content":"seen"}"#,
    r#"{"role":"assistant","content":"asks","pairRole":"call","pairId":"call_1"}"#,
    r#"{"role":"assistant","content":"asks","pairRole":"result","pairId":"call_1"}"#,
    r#"{"role":"user","content":"é","pairRole":"call","pairId":"call_1"}"#,
    r#"{"role":"user","content":"go on"}"#,
    r#"{"role":"user","content":null}"#,
    r#"{"role":"user","content":7}"#,
    r#"{"role":"user","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"b","arguments":"c"}}]}"#,
    r#"{"role":"system","content":"rules"}"#,
    r#"{"role":"developer","content":"rules"}"#,
    r#"{"role":"assistant","content":"thinks"}"#,
    r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"bash","arguments":"{\"a\": 1}"}}]}"#,
    r#"{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"b","arguments":""}},{"id":"call_2","type":"function","function":{"name":"é","arguments":"\u00e9"}}]}"#,
    r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","function":{"name":"bash","arguments":"{}"}}]}"#,
    r#"{"role":"assistant","content":"x","tool_calls":[]}"#,
    r#"{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"b","arguments":"c"}},7]}"#,
    r#"{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"b","name":"d","arguments":"c"}}]}"#,
    r#"{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"b","arguments":"c"}}],"refusal":null}"#,
    r#"{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a.py","n":[1,-2.5e3,true,null]}}]}"#,
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":{}},{"type":"tool_use","id":"toolu_1","name":"read","input":{"a":{"b":[{}]}}}]}"#,
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":"raw"}]}"#,
    r#"{"role":"assistant","content":[{"type":"text","text":"I look."}]}"#,
    r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look."}]}"#,
    r#"{"role":"user","content":[]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"found"},{"type":"tool_result","tool_use_id":"toolu_2","content":""},{"type":"text","text":"and"}]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"found","is_error":true}]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"x"}]}]}"#,
    r#"{"role":"user","content":[{"type":"text","text":"x","text":"y"}]}"#,
    "{}",
];

/// As `json.dumps` spaces it.
fn spaced(message: &str) -> String {
    let mut text = String::new();
    let (mut is_inside, mut is_escaped) = (false, false);
    for character in message.chars() {
        text.push(character);
        is_inside ^= character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        if !is_inside && matches!(character, ',' | ':') {
            text.push(' ');
        }
    }
    text
}

/// What the scan says of a history, where every place is one of the message alone.
fn told(data: &[u8], start: usize) -> String {
    let back = |at: usize| at.saturating_sub(start);
    match scan(data, false) {
        Err(error) => {
            // The way of the fault matters, and its place in the message.
            let offset = error.offset.map(back);
            format!("{:?} at {offset:?} in {:?} {:?}", error.kind, error.message_index, error.field)
        }
        Ok(outline) => told_of(&outline, back),
    }
}

fn told_of(outline: &Outline, back: impl Fn(usize) -> usize) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for (message, span) in outline.messages.iter().zip(&outline.spans) {
        writeln!(text, "{message:?} {}", back(span.end)).unwrap();
    }
    let id = |id: Option<recede::outline::TextSpan>| id.map(|id| outline.text(id).escape_ascii().to_string());
    for call in &outline.calls {
        let name = call.name.map(|name| outline.name(name).escape_ascii().to_string());
        writeln!(text, "call {:?} {name:?} {} {}", id(call.id), call.message, call.block).unwrap();
    }
    for result in &outline.results {
        let mut facts = *result;
        facts.id = None;
        facts.value = recede::outline::Span { start: back(facts.value.start), end: back(facts.value.end) };
        writeln!(text, "result {:?} {facts:?}", id(result.id)).unwrap();
    }
    for piece in &outline.pieces {
        writeln!(text, "piece {} {}", back(piece.start), back(piece.end)).unwrap();
    }
    text
}

/// The message between two others, the quick way and the general one.
fn agree(message: &[u8], behind: &[u8]) {
    const BEFORE: &[u8] = br#"[{"role":"user","content":"x"},"#;
    let quick = [BEFORE, message, behind].concat();
    // One space behind the bracket, and one in front of the last message, which then goes that way as well.
    let general =
        [BEFORE, &message[..1.min(message.len())], b" ", message.get(1..).unwrap_or_default(), behind].concat();
    // A fault at the very bracket lies before the space.
    assert_eq!(told(&quick, BEFORE.len()), told(&general, BEFORE.len() + 1), "{}", String::from_utf8_lossy(&quick));
}

const BEHIND: &[u8] =
    br#",{"role":"assistant","content":"it is a longer string than the quick look for short ones takes"}]"#;

#[test]
fn the_quick_way_and_the_general_one_agree() {
    for message in MESSAGES {
        for message in [(*message).to_owned(), spaced(message), message.replace(':', ": "), message.replace(',', ", ")]
        {
            agree(message.as_bytes(), BEHIND);
            agree(message.as_bytes(), b"]");
        }
    }
}

#[test]
fn truncated_at_every_byte() {
    for message in MESSAGES {
        for message in [(*message).to_owned(), spaced(message)] {
            for end in 2..message.len() {
                agree(&message.as_bytes()[..end], b"");
                agree(&message.as_bytes()[..end], BEHIND);
            }
        }
    }
}

#[test]
fn with_any_byte_changed_doubled_or_left_out() {
    for message in MESSAGES {
        for message in [(*message).to_owned(), spaced(message)] {
            let bytes = message.as_bytes();
            for place in 1..bytes.len() {
                for byte in [b'"', b'\\', b' ', b'x', b'}', b']', b',', b':', b'{', b'0', 0, 0x0A, 0x80, 0xFF] {
                    let changed = [&bytes[..place], &[byte], &bytes[place + 1..]].concat();
                    agree(&changed, BEHIND);
                }
                agree(&[&bytes[..place], &bytes[place + 1..]].concat(), BEHIND);
                agree(&[&bytes[..=place], &bytes[place..]].concat(), BEHIND);
            }
        }
    }
}

#[test]
fn a_message_given_up_late_leaves_nothing_behind() {
    let given_up = MESSAGES.iter().map(|message| message.replace('}', ",\"more\":{\"x\":[]}}"));
    for message in given_up {
        agree(message.as_bytes(), BEHIND);
    }
    // Many calls, then something that the quick way does not know; names that only such a message has come first.
    let call = |index: usize| {
        format!(r#"{{"id":"call_{index}","type":"function","function":{{"name":"tool_{index}","arguments":"{{}}"}}}}"#)
    };
    let calls: Vec<String> = (0..40).map(call).collect();
    let message = format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}],"n":1}}"#, calls.join(","));
    agree(message.as_bytes(), BEHIND);
}

#[test]
fn nesting_in_an_input_is_counted_from_the_outside() {
    for depth in 1_015..1_025 {
        let input = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let message =
            format!(r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"b","input":{input}}}]}}"#);
        agree(message.as_bytes(), BEHIND);
    }
}
