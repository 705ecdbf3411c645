//! Every scanner of this machine against the one that goes byte by byte.

use crate::common::{Random, STEP};
use recede::dispatch::NEEDLE;
use recede::error::Kind;
use recede::json::{Counted, Cursor, Fault, Scanner, decode, newlines, plain};

/// Behind the closing quote: all that a scanner must not look at.
const BEHIND: &[u8] =
    b",\"n\\\"\n\\u12\x00\xFF\xED\xA0\x80_DISPATCH\\\\\"\\\\\\\"tail, and some more of it to fill a block";

/// What stands at one place of a string of plain letters.
const SEQUENCES: &[&[u8]] = &[
    b"\"",
    b"\\\"",
    b"\\\\",
    b"\\/",
    b"\\b",
    b"\\f",
    b"\\n",
    b"\\r",
    b"\\t",
    b"\\u000a",
    b"\\u000A",
    b"\\u0041",
    b"\\u00e9",
    b"\\ud83d\\ude00",
    b"\\ud83d",
    b"\\ude00",
    b"\\ud83d\\ud83d\\ude00",
    b"\\ud83dx\\ude00",
    b"\\ud83d\\n\\ude00",
    b"\\\\n",
    b"\\\\\\n",
    b"\\\\u000a",
    b"\\x",
    b"\\N",
    b"\\u12",
    b"\\u12g4",
    b"\\u+123",
    "é".as_bytes(),
    "€".as_bytes(),
    "😀".as_bytes(),
    b"\x7F",
    b"\x00",
    b"\x1F",
    b"\n",
    b"\x80",
    b"\xC3",
    b"\xC0\x80",
    b"\xE2\x82",
    b"\xED\xA0\x80",
    b"\xED\xA0\xBD\xED\xB8\x80",
    b"\xF0\x9F\x98",
    b"\xF4\x90\x80\x80",
    b"\xF5\x80\x80\x80",
    b"\xFF",
    b"BEGIN_DISPATCH_RESULT",
    b"_",
];

/// Lengths around the widths of vectors and blocks.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=34).chain(61..=67).chain(126..=130).chain(190..=193)
}

struct Judge {
    scanners: Vec<(&'static str, Scanner)>,
    cases: usize,
    faults: usize,
}

impl Judge {
    fn new() -> Self {
        Judge { scanners: Scanner::available(), cases: 0, faults: 0 }
    }

    /// All scanners find in the string at `start` what `plain` does.
    fn compare(&mut self, data: &[u8], start: usize) {
        for surrogates in [false, true] {
            let wanted = plain(data, start, surrogates);
            self.cases += 1;
            self.faults += usize::from(wanted.is_err());
            for (name, scanner) in &self.scanners {
                let found = scanner.string(data, start, surrogates, &NEEDLE);
                match (wanted, found) {
                    (Ok(wanted), Ok(found)) => {
                        let same = Counted { may_hold_needle: wanted.may_hold_needle, ..found } == wanted;
                        assert!(same, "{name} at {start} of {:?}: {found:?}, not {wanted:?}", data.escape_ascii());
                        check_newlines(&data[start..found.end]);
                        check_hints(name, data, &found);
                    }
                    _ => assert_eq!(wanted.err(), found.err(), "{name} at {start} of {:?}", data.escape_ascii()),
                }
            }
        }
    }

    /// The string `text` behind `offset` bytes of something else, closed and followed by noise.
    fn string(&mut self, offset: usize, text: &[u8]) {
        let data = [&b"\\".repeat(offset), text, b"\"", BEHIND].concat();
        self.compare(&data, offset);
    }
}

fn check_newlines(raw: &[u8]) {
    let mut decoded = vec![];
    decode(raw, &mut decoded);
    let wanted = decoded.split(|byte| *byte == b'\n').count() - 1;
    assert_eq!(newlines(raw), wanted, "{:?}", raw.escape_ascii());
}

fn check_hints(name: &str, data: &[u8], found: &Counted) {
    let text = &data[found.start..found.end];
    let holds = |needle: &[u8]| text.windows(needle.len()).any(|window| window == needle);
    let unicode_escape = {
        let mut at = 0;
        let mut is_there = false;
        while at < text.len() {
            is_there |= text[at..].starts_with(b"\\u");
            at += 1 + usize::from(text[at] == b'\\');
        }
        is_there
    };
    let mut decoded = vec![];
    decode(text, &mut decoded);
    if decoded.windows(21).any(|window| window == b"BEGIN_DISPATCH_RESULT") {
        assert!(found.may_hold_needle, "{name}: {:?}", text.escape_ascii());
    }
    // `plain` always hints: without one, it was the scanner itself that answered.
    let is_clean = !unicode_escape && !holds(b"BEGIN_DISPATCH_RESULT");
    if is_clean && core::str::from_utf8(text).is_ok() {
        assert!(!found.may_hold_needle, "{name} leaves this to plain: {}", text.escape_ascii());
    }
}

fn fault<T>(kind: Kind, at: usize) -> Result<T, Fault> {
    Err(Fault { kind, at })
}

#[test]
fn plain_counts_by_hand() {
    let count = |text: &str| {
        let data = format!("{text}\"");
        let newlines = |end: usize| newlines(&data.as_bytes()[..end]);
        plain(data.as_bytes(), 0, false).map(|found| (found.end, found.chars(), newlines(found.end)))
    };
    assert_eq!(count(""), Ok((0, 0, 0)));
    assert_eq!(count("abc"), Ok((3, 3, 0)));
    assert_eq!(count("é€😀"), Ok((9, 3, 0)));
    assert_eq!(count(r"a\nb\u000a\t\\n"), Ok((15, 7, 2)));
    assert_eq!(count(r"\ud83d\ude00"), Ok((12, 1, 0)));
    assert_eq!(count(r"\ude00\ud83d"), Ok((12, 2, 0)));
    assert_eq!(count(r"\ud83d\ud83d\ude00"), Ok((18, 2, 0)));
    assert_eq!(count(r"\ud83d\ude00\ude00"), Ok((18, 2, 0)));
    assert_eq!(count(r"\ud83d \ude00"), Ok((13, 3, 0)));
    assert_eq!(count(r"ab\x"), fault(Kind::Escape, 2));
    assert_eq!(count(r"ab\u12"), fault(Kind::Escape, 2));
    assert_eq!(count("ab\ncd"), fault(Kind::Control, 2));
    let bytes = |data: &[u8], surrogates| plain(data, 0, surrogates).map(|found| (found.end, found.chars()));
    assert_eq!(bytes(b"ab", false), fault(Kind::Eof, 2));
    assert_eq!(bytes(b"ab\\", false), fault(Kind::Eof, 3));
    assert_eq!(bytes(b"ab\\u12", false), fault(Kind::Eof, 6));
    assert_eq!(bytes(b"ab\\u1g", false), fault(Kind::Escape, 2));
    assert_eq!(bytes(b"a\xED\xA0\x80\"", false), fault(Kind::Utf8, 1));
    assert_eq!(bytes(b"a\xED\xA0\x80\"", true), Ok((4, 2)));
    assert_eq!(bytes(b"a\xED\xA0\"", true), fault(Kind::Utf8, 1));
    assert_eq!(bytes(b"a\xE2\x82\"", false), fault(Kind::Utf8, 1));
    assert_eq!(bytes(b"a\xE2\x82", false), fault(Kind::Utf8, 1));
    assert_eq!(bytes(b"\xFF\n\"", false), fault(Kind::Utf8, 0));
    assert_eq!(bytes(b"\n\xFF\"", false), fault(Kind::Control, 0));
    assert_eq!(bytes(b"\n", false), fault(Kind::Control, 0));
}

#[test]
fn there_is_more_than_one_scanner() {
    let names: Vec<&str> = Scanner::available().iter().map(|(name, _)| *name).collect();
    println!("scanners: {names:?}");
    assert_eq!(names[0], "word");
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    assert!(names.len() > 1);
}

#[test]
fn plain_strings_of_every_length() {
    let mut judge = Judge::new();
    for length in 0..=200 {
        let text: Vec<u8> = (b'a'..=b'z').cycle().take(length).collect();
        for offset in (0..=17).chain(30..=33).chain(62..=66) {
            judge.string(offset, &text);
            // Nothing behind the quote, so that the last block is a partial one.
            let data = [&b"\"".repeat(offset), text.as_slice(), b"\""].concat();
            judge.compare(&data, offset);
            // No quote at all.
            judge.compare(&data[..data.len() - 1], offset);
        }
    }
    assert!(judge.cases > 30_000 && judge.faults > 10_000);
}

#[test]
fn every_sequence_at_every_place() {
    let mut judge = Judge::new();
    for sequence in SEQUENCES {
        for length in lengths() {
            for place in (length % STEP..=length).step_by(STEP) {
                let text = [&b"n".repeat(place), *sequence, &b"t".repeat(length - place)].concat();
                for offset in [0, 1, 33] {
                    judge.string(offset, &text);
                }
            }
        }
    }
    assert!(judge.cases > 600_000 / STEP && judge.faults > 100_000 / STEP, "{} {}", judge.cases, judge.faults);
}

/// Short strings of plain letters take a way of their own.
#[test]
fn the_cursor_reads_short_strings_as_plain_does() {
    let read = |data: &[u8]| {
        let mut cursor = Cursor::new(data, Scanner::detect(), false, &NEEDLE);
        let found = match cursor.string() {
            Ok(found) => {
                assert_eq!((found.start, found.end + 1), (1, cursor.at));
                Ok((found.end, found.minus))
            }
            Err(_) => Err(cursor.fault.map(|fault| (fault.kind, fault.at))),
        };
        let wanted = plain(data, 1, false);
        let wanted = wanted.map(|wanted| (wanted.end, wanted.minus));
        assert_eq!(found, wanted.map_err(|fault| Some((fault.kind, fault.at))), "{:?}", data.escape_ascii());
    };
    for sequence in SEQUENCES {
        for length in 0..=36 {
            for place in 0..=length {
                let text = [b"\"", &b"n".repeat(place)[..], *sequence, &b"t".repeat(length - place), b"\""].concat();
                read(&text);
                read(&text[..text.len() - 1]);
                read(&[&text[..], BEHIND].concat());
            }
        }
    }
}

/// Each lead with each kind of byte behind it, around the ends of vectors and blocks.
#[test]
fn utf8_of_every_kind() {
    let mut judge = Judge::new();
    for lead in 0x80..=0xFF {
        for second in [b'a', 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC2, 0xFF] {
            for (third, fourth) in [(0x80, 0x80), (0xBF, 0xBF), (0x80, b'a'), (b'a', b'a'), (0xC3, 0xA9), (0x80, 0xC2)]
            {
                for place in [0, 29, 30, 31, 61, 62, 63] {
                    let text = [&b"x".repeat(place)[..], &[lead, second, third, fourth]].concat();
                    judge.string(0, &text);
                    judge.string(0, &[&text[..], &b"y".repeat(40)].concat());
                }
            }
        }
    }
    assert!(judge.faults > 200_000 && judge.cases - judge.faults > 2_000, "{} {}", judge.cases, judge.faults);
}

#[test]
fn runs_of_backslashes_across_blocks() {
    let mut judge = Judge::new();
    for run in 0..=70 {
        for place in (0..=3).chain(55..=66).chain(120..=130) {
            for end in [&b""[..], b"n", b"\"", b"u000a", b"u12", b"x", b"\xC3\xA9", b"ud83d\\ude00"] {
                let text = [&b"a".repeat(place), &b"\\".repeat(run)[..], end, b"tail"].concat();
                judge.string(0, &text);
                judge.string(5, &text);
            }
        }
    }
    // Long runs, which carry from block to block to block.
    for run in 120..=260 {
        judge.string(run % 7, &b"\\".repeat(run));
        judge.string(run % 7, &[&b"\\".repeat(run)[..], b"n"].concat());
    }
    assert!(judge.cases > 50_000);
}

#[test]
fn every_truncation() {
    let mut judge = Judge::new();
    let mut random = Random::new(3);
    for round in 0..150 {
        let mut text = vec![];
        while text.len() < 40 + round {
            text.extend_from_slice(random_piece(&mut random, true));
        }
        let data = [text.as_slice(), b"\"", BEHIND].concat();
        for end in 0..=data.len() {
            judge.compare(&data[..end], 0);
        }
    }
}

#[test]
fn surrogate_pairs_across_blocks() {
    let mut judge = Judge::new();
    for place in 0..=140 {
        for between in [0, 1, 6, 58, 64] {
            let text = [&b"a".repeat(place)[..], b"\\ud83d", &b"b".repeat(between), b"\\ude00", b"\\ude01"].concat();
            judge.string(0, &text);
        }
    }
}

#[test]
fn dispatch_hints_at_every_place() {
    let mut judge = Judge::new();
    for place in 0..=200 {
        for word in [
            "BEGIN_DISPATCH_RESULT",
            "BEGIN\\u005fDISPATCH_RESULT",
            "BEGIN_DISPATC\\u0048_RESULT",
            "_DISPATCH",
            "N_H_L_J_",
            "DISPATCH_REN_",
            "BEGIN_DISPATCH_RESUL",
        ] {
            let text = [&b"_".repeat(place / 3), &b"a".repeat(place - place / 3)[..], word.as_bytes(), b"\\n"].concat();
            for offset in [0, 1, place % 5] {
                judge.string(offset, &text);
            }
        }
    }
}

fn random_piece(random: &mut Random, is_valid: bool) -> &'static [u8] {
    const VALID: &[&[u8]] = &[
        b"a",
        b"plain text",
        b"n_t",
        b"the quick brown fox jumps over the lazy dog and goes on",
        b"\\n",
        b"\\t",
        b"\\\\",
        b"\\\"",
        b"\\u000a",
        b"\\ud83d\\ude00",
        b"\\ud83d",
        b"\\ude00",
        "é".as_bytes(),
        "日本語".as_bytes(),
        "😀".as_bytes(),
        b"\\/",
        b"\\r",
        b"_DISPATCH_",
        b"\x7F",
    ];
    if is_valid { random.pick::<&[u8]>(VALID) } else { random.pick::<&[u8]>(SEQUENCES) }
}

#[test]
fn random_mixtures() {
    let mut judge = Judge::new();
    let mut random = Random::new(1);
    for _ in 0..100_000 / STEP {
        let offset = random.below(70);
        let mut data = vec![*random.pick(b"\\\"a"); offset];
        for _ in 0..random.below(24) {
            let is_valid = !random.once_in(40);
            data.extend_from_slice(random_piece(&mut random, is_valid));
        }
        if !random.once_in(10) {
            data.push(b'"');
        }
        data.extend_from_slice(&BEHIND[..random.below(BEHIND.len())]);
        if random.once_in(8) {
            let place = random.below(data.len() + 1);
            data.truncate(place.max(offset));
        }
        judge.compare(&data, offset);
    }
    assert!(
        judge.faults > 20_000 / STEP && judge.cases - judge.faults > 50_000 / STEP,
        "{} {}",
        judge.cases,
        judge.faults
    );
}

#[test]
fn random_bytes() {
    let mut judge = Judge::new();
    let mut random = Random::new(2);
    for _ in 0..20_000 {
        let length = random.below(160);
        let data: Vec<u8> = (0..length).map(|_| *random.pick(b"\\\\\\\"nt_uabf0dD8\xC3\xA9")).collect();
        judge.compare(&data, random.below(length + 1));
    }
}
