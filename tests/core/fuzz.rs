//! Histories made and damaged at random, read in every way there is: by each scanner, by the quick templates and by the
//! general way, each held against a plain recursive reader that goes byte by byte.
//!
//! A short run belongs to the tests. `make fuzz SECONDS=600 SEED=7` runs the long one; a case is repeated by its seed:
//! `make fuzz SEED=… CASES=1`.

use crate::common::{Random, published};
use crate::reading::{Naive, is_json_fault};
use recede::error::Error;
use recede::json::{Counted, MAX_DEPTH, Scanner, decode, newlines, plain};
use recede::outline::{ItemType, Outline, Span};
use recede::plan::Given;
use recede::policy::Goal;
use recede::reduce::{Reduced, reduce_json};
use recede::scan::scan_with;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

// Histories

/// How the maker of a history spaces it.
#[derive(Clone, Copy)]
struct Style {
    comma: &'static str,
    colon: &'static str,
}

const STYLES: [Style; 5] = [
    Style { comma: ",", colon: ":" },
    Style { comma: ",", colon: ":" },
    Style { comma: ", ", colon: ": " },
    Style { comma: ", ", colon: ":" },
    Style { comma: "\r\n\t,", colon: " : " },
];

const PIECES: [&str; 26] = [
    "a",
    "words of plain text ",
    r"\n",
    r#"\""#,
    r"\\",
    r"\/",
    r"\b\f\r\t",
    r"\u00e9",
    r"\u000a",
    r"\u000A",
    r"\ud83d\ude00",
    r"\ud83d",
    r"\ude00",
    r"\uD83d\uD83D\uDE00",
    r"\u0042EGIN_DISPATCH_RESULT",
    "é",
    "中文",
    "😀",
    "\u{2028}",
    "\u{7f}",
    "BEGIN_DISPATCH_RESULT",
    "END_DISPATCH_RESULT",
    "[observation masked — 9 chars]",
    r#"{\"a\": [1, 2]}"#,
    "H_N_",
    "",
];

/// Lengths around the widths of vectors and blocks.
const LENGTHS: [usize; 22] = [0, 1, 7, 8, 14, 15, 16, 17, 30, 31, 32, 33, 47, 62, 63, 64, 65, 66, 126, 127, 128, 129];

/// The raw form of a string, without its quotes.
fn text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(4) {
        match random.below(4) {
            0 => text.push_str(&"x".repeat(*random.pick(&LENGTHS))),
            1 => text.push_str(&r"\\".repeat(random.below(40))),
            _ => text.push_str(random.pick::<&str>(&PIECES)),
        }
    }
    text
}

fn id(random: &mut Random) -> String {
    match random.below(8) {
        0 => text(random),
        1 => r"c\u0061ll_1".to_owned(),
        _ => format!("call_{}", random.below(4)),
    }
}

fn value(random: &mut Random, levels: usize) -> String {
    match random.below(if levels == 0 { 6 } else { 8 }) {
        0 => format!("\"{}\"", text(random)),
        1 => (*random.pick(&["0", "-0", "12", "-1.5", "1e5", "0.1E+7", "123456789012345678901234567890"])).to_owned(),
        2 => "true".to_owned(),
        3 => "false".to_owned(),
        4 => "null".to_owned(),
        5 => (*random.pick(&["{}", "[]", "[ ]", "{ }"])).to_owned(),
        6 => format!("[{},{}]", value(random, levels - 1), value(random, levels - 1)),
        _ => format!("{{\"{}\":{}}}", text(random), value(random, levels - 1)),
    }
}

/// A container nested so deep that the limit is near.
fn deep(random: &mut Random) -> String {
    let levels = MAX_DEPTH - 8 + random.below(12);
    if random.once_in(2) {
        "[".repeat(levels) + &"]".repeat(levels)
    } else {
        r#"{"a":"#.repeat(levels) + "1" + &"}".repeat(levels)
    }
}

/// A message of one of the four shapes, compact; `~` stands for a comma and `^` for a colon of the structure.
fn message(random: &mut Random) -> String {
    let (said, id) = (text(random), id(random));
    let name = if random.once_in(6) { text(random) } else { format!("tool_{}", random.below(3)) };
    let role = *random.pick(&["user", "system", "developer", "assistant", "other", ""]);
    match random.below(14) {
        0..3 => format!(r#"{{"role"^"tool"~"tool_call_id"^"{id}"~"content"^"{said}"}}"#),
        3..5 => {
            let calls: Vec<String> = (0..=random.below(3))
                .map(|_| {
                    let arguments = text(random);
                    let function = format!(r#"{{"name"^"{name}"~"arguments"^"{arguments}"}}"#);
                    format!(r#"{{"id"^"{id}"~"type"^"function"~"function"^{function}}}"#)
                })
                .collect();
            let content = if random.once_in(2) { "null".to_owned() } else { format!("\"{said}\"") };
            format!(r#"{{"role"^"assistant"~"content"^{content}~"tool_calls"^[{}]}}"#, calls.join("~"))
        }
        5 => format!(r#"{{"role"^"{role}"~"content"^"{said}"}}"#),
        6 => format!(r#"{{"role"^"assistant"~"content"^"{said}"~"pairRole"^"call"~"pairId"^"{id}"}}"#),
        7 => format!(r#"{{"role"^"tool"~"content"^"{said}"~"pairRole"^"result"~"pairId"^"{id}"}}"#),
        8 => {
            let input = if random.once_in(20) { deep(random) } else { value(random, 3) };
            let used = format!(r#"{{"type"^"tool_use"~"id"^"{id}"~"name"^"{name}"~"input"^{input}}}"#);
            format!(r#"{{"role"^"assistant"~"content"^[{{"type"^"text"~"text"^"{said}"}}~{used}]}}"#)
        }
        9 => {
            let content = match random.below(3) {
                0 => format!(r#"[{{"type"^"text"~"text"^"{said}"}}~{{"type"^"image"}}~{{"text"^"{name}"}}]"#),
                _ => format!("\"{said}\""),
            };
            let flag = *random.pick(&["", "", r#"~"is_error"^true"#]);
            let found = format!(r#"{{"type"^"tool_result"~"tool_use_id"^"{id}"~"content"^{content}{flag}}}"#);
            format!(r#"{{"role"^"user"~"content"^[{found}~{{"type"^"text"~"text"^"{said}"}}]}}"#)
        }
        10 => format!(r#"{{"type"^"function_call"~"call_id"^"{id}"~"name"^"{name}"~"arguments"^"{said}"}}"#),
        11 => format!(r#"{{"type"^"function_call_output"~"call_id"^"{id}"~"output"^"{said}"}}"#),
        12 => {
            let key = *random.pick(&["x", r"r\u006fle", "tags", "content", "tool_calls", "name", ""]);
            let any = if random.once_in(20) { deep(random) } else { value(random, 3) };
            format!(r#"{{"role"^"{role}"~"{key}"^{any}~"content"^"{said}"}}"#)
        }
        _ => value(random, 2),
    }
}

fn history(random: &mut Random) -> Vec<u8> {
    let style = *random.pick(&STYLES);
    let messages: Vec<String> = (0..random.below(6)).map(|_| message(random)).collect();
    let list = format!("[{}]", messages.join("~"));
    let json = match random.below(8) {
        0 => format!(r#"{{"model"^"m"~"messages"^{list}~"n"^{}}}"#, value(random, 1)),
        1 => format!(r#"{{"input"^{list}}}"#),
        2 => format!("{}{list}\n", " ".repeat(random.below(70))),
        _ => list,
    };
    // No other piece has these two bytes.
    json.replace('~', style.comma).replace('^', style.colon).into_bytes()
}

/// Cuts, flips, doubles, moves and inserts.
fn damage(random: &mut Random, data: &mut Vec<u8>) {
    const BYTES: &[u8] = b"[]{}\",:\\ \n\t0123456789-+.eEtrufalsn_u/\x00\x1F\x7F\x80\xBF\xC3\xE2\xED\xF0\xFF\xEF";
    const INSERTS: [&[u8]; 14] = [
        b"\\",
        b"\\u",
        b"\\ud800",
        b"\\uDC00",
        b"\\u12",
        b"\\x",
        b"\xED\xA0\x80",
        b"\xED\xB0\x80",
        b"\xE2\x82",
        b"\xF4\x90\x80\x80",
        b"\xC0\xAF",
        b"\"role\":\"tool\",",
        b"\"content\":null,",
        b"NaN",
    ];
    let place = random.below(data.len() + 1);
    let behind = (place + 1 + random.below(80)).min(data.len());
    match random.below(10) {
        0 | 1 if place < data.len() => data[place] = *random.pick(BYTES),
        2 if place < data.len() => data[place] ^= 1 << random.below(8),
        3 => data.insert(place, *random.pick(BYTES)),
        4 if place < data.len() => {
            data.remove(place);
        }
        5 => data.truncate(place),
        6 => {
            data.drain(place..behind);
        }
        7 => {
            let piece = data[place..behind].to_vec();
            let target = random.below(data.len() + 1);
            data.splice(target..target, piece);
        }
        8 => {
            data.splice(place..place, random.pick(&INSERTS).iter().copied());
        }
        _ => {
            let spaces = vec![b' '; random.below(70)];
            data.splice(place..place, spaces);
        }
    }
}

/// The case of a seed: its input, and whether surrogates in three bytes are accepted.
fn case(seed: u64) -> (Vec<u8>, bool) {
    let mut random = Random::new(seed);
    let mut data = history(&mut random);
    for _ in 0..random.below(4) {
        damage(&mut random, &mut data);
    }
    (data, random.once_in(4))
}

// Comparison

/// All that an Outline says, every place of it moved back to where it stands in another spelling.
fn told(outline: &Outline, back: &impl Fn(usize) -> usize) -> Vec<usize> {
    let mut told = vec![outline.messages.len(), outline.calls.len(), outline.results.len(), outline.pieces.len()];
    let text = |told: &mut Vec<usize>, text: Option<&[u8]>| {
        told.push(text.map_or(usize::MAX, <[u8]>::len));
        told.extend(text.unwrap_or_default().iter().map(|byte| usize::from(*byte)));
    };
    told.push(back(outline.array_start));
    for (message, span) in outline.messages.iter().zip(&outline.spans) {
        told.extend([back(span.start), back(span.end), message.chars]);
        told.extend([message.images, message.first_call, message.first_result].map(|count| count as usize));
        told.extend([message.first_piece, message.blocks].map(|count| count as usize));
        told.extend([message.role as usize, message.shape as usize]);
        told.extend([message.is_agent_made, message.item != ItemType::Other].map(usize::from));
    }
    for call in &outline.calls {
        text(&mut told, call.id.map(|id| outline.text(id)));
        text(&mut told, call.name.map(|name| outline.name(name)));
        told.extend([call.message as usize, call.block as usize]);
    }
    for result in &outline.results {
        text(&mut told, result.id.map(|id| outline.text(id)));
        told.extend([back(result.value.start), back(result.value.end), result.chars, result.newlines as usize]);
        told.extend([result.message, result.block, result.images].map(|count| count as usize));
        told.extend([result.first_piece as usize, result.pieces as usize, usize::from(result.first_byte)]);
        // Of a text too short for a block the hint depends on what stands behind it: near the end of the input the
        // scanner is asked, which takes a `BEGIN_DISPATCH_RESULT` alone for one, and else the look for short strings.
        let may_hold = result.may_hold_dispatch && result.value.end - result.value.start > 40;
        told.extend([result.is_error, may_hold].map(usize::from));
    }
    told.extend(outline.pieces.iter().flat_map(|piece| [back(piece.start), back(piece.end)]));
    told
}

/// The same history with a space behind the bracket of each message, which sends it the general way.
fn generally_spelled(data: &[u8], starts: &[usize]) -> Vec<u8> {
    let mut spelled = Vec::with_capacity(data.len() + starts.len());
    let mut copied = 0;
    for start in starts {
        spelled.extend_from_slice(&data[copied..=*start]);
        spelled.push(b' ');
        copied = start + 1;
    }
    spelled.extend_from_slice(&data[copied..]);
    spelled
}

/// What differs between the ways to read the input; None if all agree. Says whether it was accepted.
fn difference(data: &[u8], surrogates: bool) -> Result<bool, String> {
    let (fault, mut starts) = Naive::read(data, surrogates);
    starts.retain(|start| data.get(*start) == Some(&b'{'));
    let general = generally_spelled(data, &starts);
    // Each space stands behind a bracket, so a place moves by the brackets before it.
    let spaces: Vec<usize> = starts.iter().enumerate().map(|(count, start)| start + 1 + count).collect();
    let back = |at: usize| at - spaces.iter().take_while(|space| **space < at).count();
    let mut first: Option<Result<Vec<usize>, Error>> = None;
    let mut accepted = None;
    for (name, scanner) in Scanner::available() {
        let quick = scan_with(data, surrogates, scanner);
        let told_quick = quick.as_ref().map(|outline| told(outline, &|at| at)).map_err(Clone::clone);
        let told_general = scan_with(&general, surrogates, scanner)
            .map(|outline| told(&outline, &back))
            .map_err(|error| Error { offset: error.offset.map(back), ..error });
        if told_quick != told_general {
            return Err(format!("{name}: the quick way {told_quick:?}, the general way {told_general:?}"));
        }
        if first.as_ref().is_some_and(|first| *first != told_quick) {
            return Err(format!("{name} {told_quick:?}, the first scanner {first:?}"));
        }
        let found = told_quick.as_ref().err().filter(|error| is_json_fault(error.kind));
        if found != fault.as_ref() {
            return Err(format!("{name} {found:?}, byte by byte {fault:?}"));
        }
        if let Ok(outline) = &quick {
            counts(data, surrogates, outline).map_err(|what| format!("{name}: {what}"))?;
        }
        first = Some(told_quick);
        accepted = Some(quick.is_ok());
    }
    if accepted == Some(true) {
        masked(data, surrogates)?;
    }
    Ok(accepted == Some(true))
}

/// The characters of each piece and result, read byte by byte.
fn counts(data: &[u8], surrogates: bool, outline: &Outline) -> Result<(), String> {
    let slowly = |piece: &Span| -> Result<Counted, String> {
        let counted = plain(data, piece.start, surrogates).map_err(|fault| format!("piece {piece:?}: {fault:?}"))?;
        if counted.end == piece.end { Ok(counted) } else { Err(format!("{piece:?} ends at {}", counted.end)) }
    };
    for piece in &outline.pieces {
        slowly(piece)?;
        let mut decoded = vec![];
        decode(piece.of(data), &mut decoded);
        let wanted = memchr::memchr_iter(b'\n', &decoded).count();
        if newlines(piece.of(data)) != wanted {
            return Err(format!("{piece:?} has {wanted} newlines"));
        }
    }
    for result in &outline.results {
        let first = result.first_piece as usize;
        let mut chars = 0;
        let mut text = vec![];
        for piece in &outline.pieces[first..first + result.pieces as usize] {
            chars += slowly(piece)?.chars();
            decode(piece.of(data), &mut text);
        }
        if result.frame.holds_text() && chars != result.chars {
            return Err(format!("{result:?} has {chars} characters"));
        }
        // Of several pieces the planner asks in any case.
        if result.pieces == 1 && !result.may_hold_dispatch && holds_dispatch(&text) {
            return Err(format!("{result:?} holds a dispatch block"));
        }
    }
    Ok(())
}

fn holds_dispatch(text: &[u8]) -> bool {
    let begin = memchr::memmem::find(text, b"BEGIN_DISPATCH_RESULT");
    begin.is_some_and(|begin| memchr::memmem::find(&text[begin..], b"END_DISPATCH_RESULT").is_some())
}

/// What masking makes of an accepted history is one too, of as many messages and pairs.
fn masked(data: &[u8], surrogates: bool) -> Result<(), String> {
    let policy = policy!(published(); goal = Goal::Mask, keep.results = 0);
    let Ok(Reduced::View(view, outline, _)) = reduce_json(data, surrogates, &policy, Given::default()) else {
        return Err("what is accepted is not masked".to_owned());
    };
    let Some(view) = view else { return Ok(()) };
    let view = view.to_vec(data);
    let (fault, starts) = Naive::read(&view, surrogates);
    if fault.is_some() || starts.len() != outline.messages.len() {
        return Err(format!("{fault:?} in the view {}", view.escape_ascii()));
    }
    match scan_with(&view, surrogates, Scanner::detect()) {
        Ok(after) if after.results.len() == outline.results.len() && after.calls.len() == outline.calls.len() => Ok(()),
        other => Err(format!("{other:?} of the view {}", view.escape_ascii())),
    }
}

/// [`difference`], in which a panic is one too.
fn difference_or_panic(data: &[u8], surrogates: bool) -> Result<bool, String> {
    catch_unwind(AssertUnwindSafe(|| difference(data, surrogates))).unwrap_or_else(|_| Err("a panic".to_owned()))
}

/// The shortest input that still differs, by leaving out pieces of it.
fn shrunk(mut data: Vec<u8>, surrogates: bool) -> Vec<u8> {
    loop {
        let before = data.len();
        let mut size = data.len();
        while size > 0 {
            let mut at = 0;
            while at < data.len() {
                let shorter = [&data[..at], &data[(at + size).min(data.len())..]].concat();
                if difference_or_panic(&shorter, surrogates).is_err() {
                    data = shorter;
                } else {
                    at += size;
                }
            }
            size /= 2;
        }
        if data.len() == before {
            return data;
        }
    }
}

/// What a run found.
#[derive(Default)]
struct Found {
    cases: u64,
    accepted: u64,
    differences: Vec<String>,
}

fn run(first: u64, mut goes_on: impl FnMut(u64) -> bool) -> Found {
    let mut found = Found::default();
    while goes_on(found.cases) && found.differences.len() < 20 {
        let seed = first.wrapping_add(found.cases);
        let (data, surrogates) = case(seed);
        found.cases += 1;
        if let Ok(is_accepted) = difference_or_panic(&data, surrogates) {
            found.accepted += u64::from(is_accepted);
            continue;
        }
        let short = shrunk(data, surrogates);
        let what = difference_or_panic(&short, surrogates).err().unwrap_or_default();
        let told = format!("seed {seed}, surrogates {surrogates}: b\"{}\"\n    {what}", short.escape_ascii());
        found.differences.push(told);
    }
    found
}

#[test]
fn a_short_run_finds_no_difference() {
    let found = run(1, |cases| cases < 20_000);
    assert!(found.differences.is_empty(), "{}", found.differences.join("\n"));
    // Neither must be rare, or the run means little.
    assert!((2_000..18_000).contains(&found.accepted), "{} of {} accepted", found.accepted, found.cases);
}

#[test]
fn what_differs_is_told() {
    let data = br#"[{"role":"tool","tool_call_id":"a","content":"x"}]"#;
    assert_eq!(difference(data, false), Ok(true));
    let outline = scan_with(data, false, Scanner::detect()).unwrap();
    let as_it_is = told(&outline, &|at| at);
    assert_ne!(as_it_is, told(&outline, &|at| at + 1));
    let other = scan_with(&data.map(|byte| if byte == b'x' { b'\x7f' } else { byte }), false, Scanner::detect());
    assert_eq!(as_it_is.len(), told(&other.unwrap(), &|at| at).len());
    let mut wrong = outline;
    wrong.results[0].chars += 1;
    assert!(counts(data, false, &wrong).is_err());
    assert_ne!(as_it_is, told(&wrong, &|at| at));
}

/// Found by seed 507326764.
#[test]
fn the_hint_of_a_text_too_short_for_a_block_is_anyones_guess() {
    let data = b"[{\"x\":\"\"},{\"role\":\"tool\",\"content\":\"BEGIN_DISPATCH_RESULT\"}\r\n\t,{ }]";
    assert_eq!(difference(data, false), Ok(true));
}

/// `make fuzz`.
#[test]
#[ignore = "runs for as long as it is told"]
fn long_run() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, most) = (number("RECEDE_FUZZ_SEED").unwrap_or(1), number("RECEDE_FUZZ_CASES").unwrap_or(u64::MAX));
    let time = Duration::from_secs(number("RECEDE_FUZZ_SECONDS").unwrap_or(60));
    let start = Instant::now();
    let found = run(seed, |cases| cases < most && (cases % 64 != 0 || start.elapsed() < time));
    let scanners: Vec<&str> = Scanner::available().iter().map(|(name, _)| *name).collect();
    println!(
        "core: {} cases from seed {seed} in {} s, {} accepted and {} refused; scanners {}; {} differences",
        found.cases,
        start.elapsed().as_secs(),
        found.accepted,
        found.cases - found.accepted,
        scanners.join(", "),
        found.differences.len()
    );
    for difference in &found.differences {
        println!("{difference}");
    }
    assert!(found.differences.is_empty());
}
