//! A view is what plain replacement of strings gives.

use crate::common::{Random, outline_of, published};
use recede::clip::Clip;
use recede::dispatch::dispatch_blocks;
use recede::outline::Outline;
use recede::placeholder::{Form, Placeholder};
use recede::plan::{Cut, Given, Masked, Plan, SummaryInput, facts};
use recede::policy::{Field, Goal, Policy};
use recede::reduce::{Reduced, reduce_json};
use recede::text::{clip, count_chars};

/// One character: as it stands in the input, and what it means.
type Atom = (&'static str, &'static [u8]);

const ATOMS: &[Atom] = &[
    ("a", b"a"),
    (" ", b" "),
    ("\\n", b"\n"),
    ("\\\"", b"\""),
    ("\\\\", b"\\"),
    ("\\u0041", b"A"),
    ("\\u000a", b"\n"),
    ("é", "é".as_bytes()),
    ("\\u00e9", "é".as_bytes()),
    ("日", "日".as_bytes()),
    ("😀", "😀".as_bytes()),
    ("\\ud83d\\ude00", "😀".as_bytes()),
    ("\\ude00", b"\xED\xB8\x80"),
];

/// A piece of a message: carried along, the text of a user, or an observation.
enum Segment {
    Raw(String),
    Said(Observation),
    Observation(Observation),
}

/// An observation: its value, and the characters of its text.
struct Observation {
    value: String,
    atoms: Vec<Atom>,
}

/// A serialized history in pieces.
struct Document {
    head: String,
    messages: Vec<Vec<Segment>>,
    /// White space, comma, white space: between each message and the next one.
    separators: Vec<String>,
    tail: String,
}

fn word(text: &str) -> Vec<Atom> {
    // Its letters in plain, but for one.
    const LETTERS: [(&str, &str); 17] = [
        ("A", "A"),
        ("B", "B"),
        ("C", "C"),
        ("D", "D"),
        ("E", "E"),
        ("G", "G"),
        ("H", "H"),
        ("I", "I"),
        ("L", "L"),
        ("N", "N"),
        ("P", "P"),
        ("R", "R"),
        ("S", "S"),
        ("T", "T"),
        ("U", "U"),
        ("_", "_"),
        ("x", "x"),
    ];
    let atom = |letter: &str| LETTERS.iter().find(|(raw, _)| *raw == letter).map(|(raw, text)| (*raw, text.as_bytes()));
    text.split("").filter(|letter| !letter.is_empty()).map(|letter| atom(letter).unwrap()).collect()
}

fn text(random: &mut Random) -> Vec<Atom> {
    let mut atoms: Vec<Atom> = vec![];
    for _ in 0..random.below(6) {
        match random.below(12) {
            0 => atoms.extend(word("BEGIN_DISPATCH_RESULT")),
            1 => atoms.extend(word("END_DISPATCH_RESULT")),
            2 => {
                // An escaped letter hides a block from a search of the raw bytes.
                let mut begin = word("BEGIN_DISPATCH_RESULT");
                begin[0] = ("\\u0042", b"B");
                atoms.extend(begin);
            }
            _ => atoms.extend((0..random.below(30)).map(|_| *random.pick(ATOMS))),
        }
    }
    atoms
}

fn raw(atoms: &[Atom]) -> String {
    atoms.iter().map(|(raw, _)| *raw).collect()
}

fn decoded(atoms: &[Atom]) -> Vec<u8> {
    atoms.iter().flat_map(|(_, text)| text.to_vec()).collect()
}

fn observation(random: &mut Random) -> Observation {
    if random.once_in(2) {
        let atoms = text(random);
        return Observation { value: format!("\"{}\"", raw(&atoms)), atoms };
    }
    let (mut parts, mut atoms) = (vec![], vec![]);
    for _ in 0..random.below(4) {
        if random.once_in(4) {
            parts.push("{ \"type\":\"image\",\"text\":\"no\" }".to_owned());
            continue;
        }
        let text = text(random);
        parts.push(format!("{{\"type\":\"text\", \"text\":\"{}\"}}", raw(&text)));
        atoms.extend(text);
    }
    Observation { value: format!("[ {}]", parts.join(" , ")), atoms }
}

/// What a user says, which may be long.
fn said(random: &mut Random) -> Observation {
    let atoms: Vec<Atom> = (0..random.below(12)).flat_map(|_| text(random)).collect();
    let value = if random.once_in(2) {
        format!("\"{}\"", raw(&atoms))
    } else {
        format!("[{{\"type\":\"text\",\"text\":\"{}\"}}, {{\"type\": \"image\"}}]", raw(&atoms))
    };
    Observation { value, atoms }
}

fn document(random: &mut Random) -> Document {
    let space = |random: &mut Random| (*random.pick(&["", "", " ", "\n  ", "\t\r\n"])).to_owned();
    let raw = |text: &str| Segment::Raw(text.to_owned());
    let mut messages = vec![];
    for place in 0..random.below(9) {
        let id = random.below(3);
        messages.push(match random.below(7) {
            0 => vec![
                raw("{\"role\" : \"user\",\"content\": "),
                Segment::Said(said(random)),
                raw(" ,\"content_type\":\"text\"}"),
            ],
            1 => vec![raw("{\"role\":\"system\",\"content\":\"rules\"}")],
            2 | 3 => vec![Segment::Raw(format!(
                "{{\"role\":\"assistant\",\"tool_calls\":[{{\"id\":\"c{id}\",\"function\":{{\"name\":\"t\\\"{id}\",\"arguments\":\"1e2\"}}}}]}}"
            ))],
            4 | 5 => vec![
                Segment::Raw(format!("{{\"n\": 1.50,\"tool_call_id\":\"c{id}\",\"content\":")),
                Segment::Observation(observation(random)),
                Segment::Raw(format!(" , \"role\":\"tool\",\"place\":{place}}}")),
            ],
            _ => vec![
                Segment::Raw(format!("{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"c{id}\", \"content\":")),
                Segment::Observation(observation(random)),
                raw("}, {\"content\":"),
                Segment::Observation(observation(random)),
                raw(",\"type\":\"tool_result\"}],\"role\":\"user\"}"),
            ],
        });
    }
    let separators = messages.iter().skip(1).map(|_| space(random) + "," + &space(random)).collect();
    let (before, behind) = *random.pick(&[("[", "]"), ("{\"model\":\"m\",\"messages\": [", "] ,\"tail\" : [1.0]}")]);
    Document {
        head: space(random) + before + &space(random),
        messages,
        separators,
        tail: space(random) + behind + &space(random),
    }
}

/// Decoded text as the inside of a JSON string, as `json.dumps(ensure_ascii=False)` writes it.
fn json_escape(text: &[u8]) -> String {
    core::str::from_utf8(text)
        .unwrap()
        .chars()
        .map(|character| match character {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\n' => "\\n".to_owned(),
            other => other.to_string(),
        })
        .collect()
}

impl Document {
    fn source(&self) -> String {
        self.view(&|_, _| None, &[], &vec![true; self.messages.len()], None)
    }

    fn message(
        &self,
        index: usize,
        replace: &dyn Fn(usize, &Observation) -> Option<String>,
        cut: Option<&Clip>,
    ) -> String {
        let is_observation = |segment: &&Segment| matches!(segment, Segment::Observation(_));
        let mut number = self.messages[..index].iter().flatten().filter(is_observation).count();
        let mut out = String::new();
        for segment in &self.messages[index] {
            match segment {
                Segment::Raw(raw) => out += raw,
                Segment::Said(said) => {
                    let is_list = said.value.starts_with('[');
                    out += &cut.map_or_else(
                        || said.value.clone(),
                        |clip| match clipped(&said.atoms, clip) {
                            // The first part with text has all of it; images are left out.
                            text if is_list => format!("[{{\"type\":\"text\",\"text\":\"{text}\"}}]"),
                            text => format!("\"{text}\""),
                        },
                    );
                }
                Segment::Observation(observation) => {
                    out += &replace(number, observation).unwrap_or_else(|| observation.value.clone());
                    number += 1;
                }
            }
        }
        out
    }

    /// The white space before a message.
    fn space_before(&self, message: usize) -> &str {
        match message.checked_sub(1) {
            Some(before) => self.separators[before].split_once(',').unwrap().1,
            None => self.head.rsplit_once('[').unwrap().1,
        }
    }

    /// What is written when observations are replaced, messages cut, others left out, and a summary put before one.
    fn view(
        &self,
        replace: &dyn Fn(usize, &Observation) -> Option<String>,
        cuts: &[Cut],
        kept: &[bool],
        summary: Option<(usize, String)>,
    ) -> String {
        let mut out = self.head.clone();
        let mut summary = summary;
        let mut last: Option<usize> = None;
        for index in (0..self.messages.len()).filter(|index| kept[*index]) {
            if let Some(last) = last {
                out += &self.separators[last];
            }
            if let Some((_, text)) = summary.take_if(|(before, _)| index >= *before) {
                out = out + &text + "," + self.space_before(index);
            }
            out += &self.message(index, replace, cuts.iter().find(|cut| cut.message == index).map(|cut| &cut.clip));
            last = Some(index);
        }
        if let Some((_, text)) = summary {
            if let Some(last) = last {
                out = out + "," + self.space_before(last);
            }
            out += &text;
        }
        out + &self.tail
    }
}

/// The beginning and the end of a text, as they stand in the input, around what is left out.
fn clipped(atoms: &[Atom], clip: &Clip) -> String {
    raw(&atoms[..clip.beginning]) + &clip.marker() + &raw(&atoms[atoms.len() - clip.end..])
}

/// What stands for a masked observation.
fn replacement(observation: &Observation, masked: &Masked, placeholder: &[u8], most: Option<usize>) -> String {
    let atoms = &observation.atoms;
    let inside = match masked.form {
        Form::Stay | Form::Restored { .. } => panic!("masked, and stays"),
        Form::Placeholder => json_escape(placeholder),
        Form::Cut { text_chars } => {
            raw(&atoms[..text_chars]) + &json_escape(&placeholder[..clip(placeholder, most.unwrap_or(usize::MAX))])
        }
        Form::Clip(ref counted) => clipped(atoms, &counted.clip),
        Form::Arrival(ref clip) => clipped(atoms, clip),
        Form::Dispatch { with_head } => {
            let text = decoded(atoms);
            let blocks: Vec<(usize, usize)> = dispatch_blocks(&text)
                .into_iter()
                .map(|(start, end)| (count_chars(&text[..start]), count_chars(&text[..end])))
                .collect();
            let inside: usize = blocks.iter().map(|(start, end)| end - start).sum();
            let mut lines: Vec<String> = blocks.iter().map(|(start, end)| raw(&atoms[*start..*end])).collect();
            if with_head {
                lines.insert(0, format!("[dispatch output masked — {} chars]", atoms.len() - inside));
            }
            lines.join("\\n")
        }
    };
    format!("\"{inside}\"")
}

fn random_policy(random: &mut Random) -> Policy {
    let own = |random: &mut Random| {
        let fields = [Field::Tool, Field::Id, Field::Turn, Field::Lines];
        vec![(b"\"\\\n<".to_vec(), Some(*random.pick(&fields))), (b">".to_vec(), None)]
    };
    let max_observation_chars = random.once_in(3).then(|| random.below(60));
    let cuts = max_observation_chars.is_none() && random.once_in(3);
    policy!(
        published();
        design.max_observation_chars = max_observation_chars,
        text.max_result_chars = cuts.then(|| 60 + random.below(60)),
        goal = *random.pick(&[Goal::Mask, Goal::Mask, Goal::Truncate, Goal::Summarize, Goal::Reduce]),
        limit.max = Some(if random.once_in(2) { random.below(300) } else { random.below(2_000) }),
        limit.fill = random.once_in(2).then(|| random.below(1_000_001)),
        limit.clip_results = random.once_in(2).then(|| 60 + random.below(60)),
        design.keep_messages = Some(random.below(4)),
        text.placeholder = random.once_in(3).then(|| own(random)),
        design.lines_form = random.once_in(4),
        text.image_chars = *random.pick(&[0, 100]),
        design.summary_role = random.once_in(3).then(|| "a\"b".to_owned()),
    )
}

fn reduce(data: &str, policy: &Policy, summary: &SummaryInput) -> (Option<String>, Outline, Plan) {
    let reduced = reduce_json(data.as_bytes(), false, policy, Given { summary, ..Given::default() }).unwrap();
    let Reduced::View(view, outline, plan) = reduced else { panic!("asks") };
    let view = view.map(|view| {
        let bytes = view.to_vec(data.as_bytes());
        assert_eq!(bytes.len(), view.length());
        String::from_utf8(bytes).unwrap()
    });
    (view, outline, *plan)
}

#[test]
fn views_are_plain_replacements() {
    let mut random = Random::new(61);
    let (mut forms, mut dropped, mut summaries, mut cuts) = ([0; 6], 0, 0, 0);
    for _ in 0..30_000 {
        let document = document(&mut random);
        let policy = random_policy(&mut random);
        let data = document.source();
        let given = SummaryInput::Given("so \"far\"\né".as_bytes().to_vec(), None);
        let (view, outline, plan) = reduce(&data, &policy, &given);
        assert_eq!(view.is_some(), plan.changes());
        let placeholder = Placeholder::of(&policy);
        let replace = |number: usize, observation: &Observation| {
            let chars = outline.results[number].chars + outline.arrival_chars(number..number + 1);
            assert_eq!(chars, observation.atoms.len());
            let masked = plan.masked.iter().find(|masked| masked.result as usize == number)?;
            let mut text = vec![];
            placeholder.write(&facts(&outline, &plan.pairs, Some(&plan.turns), number), &mut text);
            Some(replacement(observation, masked, &text, policy.design.max_observation_chars))
        };
        for masked in &plan.masked {
            forms[match masked.form {
                Form::Stay | Form::Restored { .. } => 0,
                Form::Placeholder => 1,
                Form::Cut { .. } => 2,
                Form::Dispatch { .. } => 3,
                Form::Clip(_) => 4,
                Form::Arrival(_) => 5,
            }] += 1;
        }
        let kept = plan.kept.clone().unwrap_or_else(|| vec![true; document.messages.len()]);
        dropped += usize::from(kept.contains(&false));
        let summary = plan.summary.as_ref().map(|summary| {
            summaries += 1;
            let (role, text) = (json_escape(summary.role.as_bytes()), json_escape(&summary.text));
            (summary.before, format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}"))
        });
        cuts += plan.cuts.len();
        let wanted = document.view(&replace, &plan.cuts, &kept, summary);
        assert_eq!(view.as_ref().unwrap_or(&data), &wanted, "{policy:?}\n{data}");
        // The view is a history again, and as large as was said.
        let again = outline_of(&wanted);
        assert_eq!(again.total_chars(policy.text.image_chars), plan.chars.1, "{policy:?}\n{data}\n{wanted}");
        let cut_chars = outline.arrival_chars(0..outline.results.len());
        assert_eq!(outline.total_chars(policy.text.image_chars) + cut_chars, plan.chars.0);
    }
    let [stay, others @ ..] = forms;
    assert!(
        stay == 0 && others.iter().all(|count| *count > 50) && dropped > 2_000 && summaries > 500 && cuts > 100,
        "{forms:?} {dropped} {summaries} {cuts}"
    );
}

#[test]
fn views_by_hand() {
    let mask = policy!(published(); goal = Goal::Mask, design.keep_messages = Some(0), design.masks_unseen = true);
    let cut = |chars| policy!(mask.clone(); design.max_observation_chars = Some(chars));
    let view = |data: &str, policy: &Policy| reduce(data, policy, &SummaryInput::NotAsked).0.unwrap_or_default();
    let tool = |content: &str| format!("[ {{\"role\":\"tool\",\"content\":{content} , \"x\":1.0}} ]");
    let long = r"\u00e9".repeat(50);
    assert_eq!(view(&tool(&format!("\"{long}\"")), &mask), tool("\"[observation masked — 50 chars]\""));
    let masked = tool(r#""\u00e9\u00e9\u00e9[observation masked — 50 chars]""#);
    assert_eq!(view(&tool(&format!("\"{long}\"")), &cut(34)), masked);
    // The halves of a pair in two parts are two characters, and stay apart.
    let parts = format!(r#"[{{"type":"text","text":"\ud83d"}},{{"type":"text","text":"\ude00{long}"}}]"#);
    assert_eq!(outline_of(tool(&parts)).results[0].chars, 52);
    assert_eq!(view(&tool(&parts), &cut(32)), tool(r#""\ud83d[observation masked — 52 chars]""#));
    assert_eq!(view(&tool(&format!("\"{long}\"")), &cut(3)), tool("\"[ob\""));
    // Escaped letters hide neither a block nor a placeholder.
    let hidden = format!(r#""{long}\u0042EGIN_DISPATCH_RESULT\u00e9END_DISPATCH_RESUL\u0054""#);
    let blocks = r#""[dispatch output masked — 50 chars]\n\u0042EGIN_DISPATCH_RESULT\u00e9END_DISPATCH_RESUL\u0054""#;
    assert_eq!(view(&tool(&hidden), &mask), tool(blocks));
    assert_eq!(view(&tool(blocks), &mask), "", "it stays");
    assert_eq!(view(&tool(r#""\u005bobservation masked — 1234567890 chars]""#), &mask), "", "it stays");
    let parts = r#"[{"type":"text","text":""},{"type":"text","text":"[observ"},{"type":"text","text":"ation masked — 12345 chars]"}]"#;
    assert_eq!(view(&tool(parts), &mask), "", "it stays");
}

#[test]
fn a_view_of_nothing() {
    let truncate = policy!(published(); goal = Goal::Truncate, design.keep_messages = Some(0));
    let (view, ..) = reduce("{\"messages\":[ {} , {}\n],\"x\":1}", &truncate, &SummaryInput::NotAsked);
    assert_eq!(view.unwrap(), "{\"messages\":[ \n],\"x\":1}");
    let (view, ..) = reduce("[ ]", &truncate, &SummaryInput::NotAsked);
    assert_eq!(view, None);
}
