//! Between raw and decoded text, and the counts of both.

use crate::common::Random;
use recede::dispatch::NEEDLE;
use recede::json::{Scanner, decode, newlines, skip_chars};
use recede::text::{clip, count_chars, encode_text};

/// Raw pieces of one code point each, and what they stand for.
const ATOMS: &[(&[u8], &[u8])] = &[
    (b"a", b"a"),
    (b" ", b" "),
    (b"n", b"n"),
    (b"u", b"u"),
    (b"/", b"/"),
    (b"\x7F", b"\x7F"),
    (b"\\n", b"\n"),
    (b"\\r", b"\r"),
    (b"\\t", b"\t"),
    (b"\\b", b"\x08"),
    (b"\\f", b"\x0C"),
    (b"\\\"", b"\""),
    (b"\\\\", b"\\"),
    (b"\\/", b"/"),
    (b"\\u0000", b"\x00"),
    (b"\\u001f", b"\x1F"),
    (b"\\u001F", b"\x1F"),
    (b"\\u00e9", "é".as_bytes()),
    (b"\\u20AC", "€".as_bytes()),
    (b"\\uD83D\\uDE00", "😀".as_bytes()),
    (b"\\ud800\\udc00", "\u{10000}".as_bytes()),
    (b"\\udbff\\udfff", "\u{10FFFF}".as_bytes()),
    (b"\\uffff", "\u{FFFF}".as_bytes()),
    (b"\\ud7ff", "\u{D7FF}".as_bytes()),
    (b"\\ue000", "\u{E000}".as_bytes()),
    ("é".as_bytes(), "é".as_bytes()),
    ("\u{D7FF}".as_bytes(), "\u{D7FF}".as_bytes()),
    ("日".as_bytes(), "日".as_bytes()),
    ("😀".as_bytes(), "😀".as_bytes()),
    // Lone surrogates; the text that follows must not complete them.
    (b"\\udc00", b"\xED\xB0\x80"),
    (b"\\udfffx", b"\xED\xBF\xBFx"),
    (b"\\ud800x", b"\xED\xA0\x80x"),
    (b"\\uDBFF\\n", b"\xED\xAF\xBF\n"),
];

#[test]
fn decodes_each_piece_and_all_together() {
    let mut random = Random::new(11);
    let alone = ATOMS.iter().map(|atom| vec![*atom]);
    let together = (0..20_000).map(|_| (0..random.below(20)).map(|_| *random.pick(ATOMS)).collect());
    for atoms in alone.chain(together) {
        let raw: Vec<u8> = atoms.iter().flat_map(|(raw, _)| raw.to_vec()).collect();
        let wanted: Vec<u8> = atoms.iter().flat_map(|(_, decoded)| decoded.to_vec()).collect();
        let mut decoded = b"kept".to_vec();
        decode(&raw, &mut decoded);
        assert_eq!(decoded[4..].escape_ascii().to_string(), wanted.escape_ascii().to_string());
        assert!(decoded.starts_with(b"kept"));
        // Counts: of the scan, and of the decoded text.
        let counted = Scanner::detect().string(&[&raw[..], b"\""].concat(), 0, true, &NEEDLE).unwrap();
        assert_eq!(counted.chars(), count_chars(&wanted), "{:?}", raw.escape_ascii());
        assert_eq!(newlines(&raw), wanted.split(|byte| *byte == b'\n').count() - 1);
        // As many raw bytes as decoded characters.
        for chars in 0..=counted.chars() + 2 {
            let mut beginning = vec![];
            let (length, lacking) = skip_chars(&raw, chars);
            assert_eq!(lacking, chars.saturating_sub(counted.chars()));
            decode(&raw[..length], &mut beginning);
            assert_eq!(beginning, wanted[..clip(&wanted, chars)], "{chars} of {:?}", raw.escape_ascii());
        }
    }
}

#[test]
fn encodes_what_must_be_escaped_and_nothing_else() {
    let encode = |text: &[u8]| {
        let mut out = vec![];
        encode_text(text, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(encode("a\"b\\c/d é 😀\u{7F}\u{D7FF}".as_bytes()), "a\\\"b\\\\c/d é 😀\u{7F}\u{D7FF}");
    assert_eq!(encode(b"\n\r\t\x08\x0C\x00\x1F"), r"\n\r\t\b\f\u0000\u001f");
    assert_eq!(encode(b"\xED\xA0\x80x\xED\xBF\xBF"), r"\ud800x\udfff");
}

#[test]
fn encoding_and_decoding_give_the_same_text() {
    let mut random = Random::new(12);
    for _ in 0..20_000 {
        let mut text: Vec<u8> = (0..random.below(30)).flat_map(|_| random.pick(ATOMS).1.to_vec()).collect();
        if random.once_in(3) {
            text.push(random.below(0x80) as u8);
        }
        let mut raw = vec![];
        encode_text(&text, &mut raw);
        let data = [&raw[..], b"\""].concat();
        // Strict: what is written never needs surrogates in three bytes.
        assert_eq!(Scanner::detect().string(&data, 0, false, &NEEDLE).unwrap().end, raw.len());
        let mut decoded = vec![];
        decode(&raw, &mut decoded);
        assert_eq!(decoded, text, "{:?}", raw.escape_ascii());
    }
}

#[test]
fn clips_at_characters() {
    let text = "aé日😀z";
    for chars in 0..8 {
        let wanted: String = text.chars().take(chars).collect();
        assert_eq!(&text.as_bytes()[..clip(text.as_bytes(), chars)], wanted.as_bytes());
    }
    assert_eq!(count_chars(text.as_bytes()), 5);
}
