//! Names against patterns, and texts against templates, with naive matchers beside.

use crate::common::{Random, published};
use crate::oracle;
use recede::patterns::matches;
use recede::policy::{Field, Policy, Template};
use recede::source::OneText;

#[test]
fn patterns_by_hand() {
    for (pattern, name, wanted) in [
        ("", "", true),
        ("*", "", true),
        ("?", "", false),
        ("?", "é", true),
        ("??", "é", false),
        ("a*b", "ab", true),
        ("a*b", "aXbXb", true),
        ("a*b", "aXbX", false),
        ("*a*a*", "aa", true),
        ("mcp__*__read", "mcp__files__read", true),
        ("[ab]", "a", false),
        ("[ab]", "[ab]", true),
        ("bash", "Bash", false),
    ] {
        assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), wanted, "{pattern} {name}");
    }
}

#[test]
fn patterns_match_as_the_naive_matcher_says() {
    let mut random = Random::new(21);
    let mut found = 0;
    for _ in 0..200_000 {
        let pattern: String =
            (0..random.below(8)).map(|_| *random.pick(&['a', 'b', 'é', '😀', '*', '*', '?'])).collect();
        let name: String = (0..random.below(9)).map(|_| *random.pick(&['a', 'b', 'é', '😀'])).collect();
        let wanted = oracle::matches(&characters(&pattern), &characters(&name));
        assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), wanted, "{pattern} {name}");
        found += usize::from(wanted);
    }
    assert!(found > 10_000, "{found}");
}

fn characters(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn template(parts: &[(&str, Option<Field>)]) -> Template {
    parts.iter().map(|(literal, field)| (literal.as_bytes().to_vec(), *field)).collect()
}

fn mask(text: &str, policy: &Policy) -> String {
    let masked = OneText(text.as_bytes().to_vec()).mask(policy);
    masked.map_or_else(|| text.to_owned(), |masked| String::from_utf8(masked).unwrap())
}

#[test]
fn masks_by_hand() {
    let policy = published();
    let long = "x".repeat(50);
    assert_eq!(mask(&long, &policy), "[observation masked — 50 chars]");
    assert_eq!(mask("", &policy), "");
    assert_eq!(mask("short", &policy), "short");
    assert_eq!(
        mask("[observation masked — 12345678901234567890 chars]", &policy),
        "[observation masked — 12345678901234567890 chars]"
    );
    assert_eq!(mask("[observation masked — 123456789 chars] and more", &policy), "[observation masked — 47 chars]");
    let lines = policy!(published(); design.lines_form = true);
    assert_eq!(mask(&"é\n".repeat(50), &lines), "[observation masked — 51 lines omitted]");
    let cut = policy!(published(); design.max_observation_chars = Some(40));
    assert_eq!(mask(&"é".repeat(50), &cut), "ééééééééé[observation masked — 50 chars]");
    let clipped = policy!(published(); design.max_observation_chars = Some(5));
    assert_eq!(mask(&long, &clipped), "[obse");
    let nothing = policy!(published(); design.max_observation_chars = Some(0));
    assert_eq!(mask(&long, &nothing), "");
    let dispatch = format!("{long}BEGIN_DISPATCH_RESULT a END_DISPATCH_RESULT{long}");
    let masked = "[dispatch output masked — 100 chars]\nBEGIN_DISPATCH_RESULT a END_DISPATCH_RESULT";
    assert_eq!(mask(&dispatch, &policy), masked);
    assert_eq!(mask(masked, &policy), masked);
    assert_eq!(
        mask("before BEGIN_DISPATCH_RESULTEND_DISPATCH_RESULT", &policy),
        "BEGIN_DISPATCH_RESULTEND_DISPATCH_RESULT"
    );
    assert_eq!(mask("BEGIN_DISPATCH_RESULTEND_DISPATCH_RESULT", &policy), "BEGIN_DISPATCH_RESULTEND_DISPATCH_RESULT");
}

#[test]
fn masks_as_the_naive_masker_says() {
    const FIELDS: [Option<Field>; 7] = [
        None,
        Some(Field::Chars),
        Some(Field::Lines),
        Some(Field::Images),
        Some(Field::Turn),
        Some(Field::Tool),
        Some(Field::Id),
    ];
    const LITERALS: [&str; 9] = ["", "", "a", "aa", "1", "[", "]", "é", "\n"];
    const WORDS: [&str; 22] = [
        "a",
        "a",
        "1",
        "23",
        "é",
        "[",
        "]",
        "\n",
        "",
        "BEGIN_DISPATCH_RESULT",
        "END_DISPATCH_RESULT",
        "BEGIN_DISPATCH_RESULT",
        "END_DISPATCH_RESULT",
        "[observation masked — ",
        "9",
        " chars]",
        " lines omitted]",
        " chars, ",
        " images]",
        " images omitted]",
        "[dispatch output masked — ",
        " chars]\n",
    ];
    let mut random = Random::new(22);
    let (mut stayed, mut changed) = (0, 0);
    for _ in 0..100_000 {
        let own = (!random.once_in(4)).then(|| {
            let parts: Vec<_> =
                (0..=random.below(4)).map(|_| (*random.pick(&LITERALS), *random.pick(&FIELDS))).collect();
            template(&parts)
        });
        let policy = policy!(
            published();
            text.placeholder = own,
            design.lines_form = random.once_in(3),
            design.max_observation_chars = random.once_in(3).then(|| random.below(60)),
        );
        let text = match (random.below(3), &policy.text.placeholder) {
            // Near to what the template matches.
            (0, Some(own)) => own.iter().fold(String::new(), |text, (literal, field)| {
                let literal = core::str::from_utf8(literal).unwrap();
                let value = match field {
                    None => "",
                    Some(Field::Tool | Field::Id) => *random.pick(&["", "a", "é1", "x\ny", "aaaa"]),
                    Some(_) => *random.pick(&["0", "007", "00000000000000001", "1a", "", "٣"]),
                };
                text + literal + value + if random.once_in(20) { "a" } else { "" }
            }),
            _ => (0..random.below(9)).map(|_| *random.pick(&WORDS)).collect(),
        };
        let wanted = oracle::mask(&text, &policy, &oracle::ObservationFacts::of_text(&text));
        assert_eq!(mask(&text, &policy), wanted.clone().unwrap_or(text.clone()), "{text:?} {policy:?}");
        if wanted.is_some() {
            changed += 1;
        } else {
            stayed += 1;
        }
    }
    assert!(stayed > 10_000 && changed > 10_000, "{stayed} {changed}");
}

#[test]
fn a_masked_text_stays() {
    let mut random = Random::new(23);
    let words = ["some text ", "日本語", "\n", "BEGIN_DISPATCH_RESULT", "END_DISPATCH_RESULT", "1234"];
    for _ in 0..20_000 {
        let text: String = (0..random.below(30)).map(|_| *random.pick(&words)).collect();
        let policy = policy!(published(); design.lines_form = random.once_in(2));
        let once = mask(&text, &policy);
        assert!(once.chars().count() <= text.chars().count());
        assert_eq!(mask(&once, &policy), once, "{text:?}");
    }
}
