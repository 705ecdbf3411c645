//! What is JSON and what is not, and where it stops being it.

use crate::common::{Random, error_of, outline_of};
use recede::dispatch::NEEDLE;
use recede::error::{Error, Kind};
use recede::json::{Cursor, MAX_DEPTH, Scanner, decode, plain};
use recede::scan::{scan, scan_with};

/// Reads JSON by recursive descent, one byte at a time, as the grammar says.
pub struct Naive<'a> {
    data: &'a [u8],
    at: usize,
    depth: usize,
    /// Accepts surrogates in three bytes.
    surrogates: bool,
    /// The message that is being read, or expected.
    index: Option<usize>,
    /// Where the messages begin that were read.
    starts: Vec<usize>,
}

type Fault = (Kind, usize);

impl Naive<'_> {
    /// The fault of the input, if it has one, and where the messages before it begin.
    pub fn read(data: &[u8], surrogates: bool) -> (Option<Error>, Vec<usize>) {
        let mut naive = Naive { data, at: 0, depth: 0, surrogates, index: None, starts: vec![] };
        let fault = naive.document().err();
        let error = |(kind, at)| Error { kind, offset: Some(at), message_index: naive.index, field: None };
        (fault.map(error), naive.starts)
    }

    fn fault_of(data: &[u8]) -> Option<Error> {
        Naive::read(data, false).0
    }

    fn next(&self) -> Option<u8> {
        self.data.get(self.at).copied()
    }

    fn unexpected<T>(&self) -> Result<T, Fault> {
        Err((if self.at < self.data.len() { Kind::Syntax } else { Kind::Eof }, self.at))
    }

    fn space(&mut self) -> Option<u8> {
        while self.next().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
        self.next()
    }

    fn document(&mut self) -> Result<(), Fault> {
        match self.space() {
            Some(b'[') => self.list(true)?,
            Some(b'{') => self.body()?,
            _ => self.value()?,
        }
        if self.space().is_some() { Err((Kind::Trailing, self.at)) } else { Ok(()) }
    }

    fn open(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err((Kind::Depth, self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    fn list(&mut self, is_history: bool) -> Result<(), Fault> {
        self.open()?;
        self.index = if is_history { Some(0) } else { self.index };
        if self.space() == Some(b']') {
            self.index = if is_history { None } else { self.index };
            self.close();
            return Ok(());
        }
        for index in 0.. {
            self.index = if is_history { Some(index) } else { self.index };
            if is_history {
                self.space();
                self.starts.push(self.at);
            }
            self.value()?;
            self.index = if is_history { None } else { self.index };
            match self.space() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.unexpected(),
            }
        }
        self.close();
        Ok(())
    }

    fn members(&mut self, mut value: impl FnMut(&mut Self, &[u8]) -> Result<(), Fault>) -> Result<(), Fault> {
        self.open()?;
        if self.space() == Some(b'}') {
            self.close();
            return Ok(());
        }
        loop {
            if self.space() != Some(b'"') {
                return self.unexpected();
            }
            let start = self.at + 1;
            self.string()?;
            let mut key = vec![];
            decode(&self.data[start..self.at - 1], &mut key);
            if self.space() != Some(b':') {
                return self.unexpected();
            }
            self.at += 1;
            value(self, &key)?;
            match self.space() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.unexpected(),
            }
        }
        self.close();
        Ok(())
    }

    fn body(&mut self) -> Result<(), Fault> {
        let (mut messages, mut input, mut is_read) = (false, false, false);
        self.members(|naive, key| {
            let is_list = naive.space() == Some(b'[');
            let is_first = match key {
                b"messages" => !core::mem::replace(&mut messages, true),
                b"input" => !core::mem::replace(&mut input, true),
                _ => false,
            };
            if is_first && is_list && !is_read {
                is_read = key == b"messages";
                naive.list(true)
            } else {
                naive.value()
            }
        })
    }

    fn value(&mut self) -> Result<(), Fault> {
        match self.space() {
            Some(b'"') => self.string(),
            Some(b'[') => self.list(false),
            Some(b'{') => self.members(|naive, _| naive.value()),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.unexpected(),
        }
    }

    fn string(&mut self) -> Result<(), Fault> {
        let found = plain(self.data, self.at + 1, self.surrogates).map_err(|fault| (fault.kind, fault.at))?;
        self.at = found.end + 1;
        Ok(())
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Fault> {
        for byte in word {
            if self.next() != Some(*byte) {
                return self.unexpected();
            }
            self.at += 1;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        match self.next() {
            None => return Err((Kind::Eof, self.at)),
            Some(b'0'..=b'9') => {}
            Some(_) => return Err((Kind::Number, self.at)),
        }
        while self.next().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.next() == Some(b'-') {
            self.at += 1;
        }
        if self.next() == Some(b'0') {
            self.at += 1;
            if self.next().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err((Kind::Number, self.at));
            }
        } else {
            self.digits()?;
        }
        if self.next() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.next(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.next(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }
}

pub fn is_json_fault(kind: Kind) -> bool {
    !matches!(kind, Kind::DuplicateKey | Kind::History | Kind::Message | Kind::Content | Kind::Part)
}

/// The scan finds the fault that the grammar has, or none.
fn compare(data: &[u8]) -> bool {
    let wanted = Naive::fault_of(data);
    let found = scan(data, false).err().filter(|error| is_json_fault(error.kind));
    assert_eq!(found, wanted, "{:?}", data.escape_ascii());
    wanted.is_some()
}

fn fault(data: &str) -> (Kind, usize, Option<usize>) {
    assert!(compare(data.as_bytes()), "{data}");
    let error = error_of(data);
    assert_eq!(error.field, None);
    (error.kind, error.offset.unwrap(), error.message_index)
}

#[test]
fn numbers() {
    let good =
        ["0", "-0", "10", "1.5", "-1.50e10", "1E+2", "1e-2", "0e0", "0.0", "1e999", "123456789012345678901234567890"];
    for number in good {
        outline_of(format!("[{{\"x\":{number}}}]"));
        outline_of(format!("[{{\"x\":[{number},{number} ]}}]"));
    }
    for (number, kind, at) in [
        ("01", Kind::Number, 1),
        ("-01", Kind::Number, 2),
        ("00", Kind::Number, 1),
        ("-x", Kind::Number, 1),
        ("-", Kind::Number, 1),
        ("1.x", Kind::Number, 2),
        ("1.", Kind::Number, 2),
        ("1.e1", Kind::Number, 2),
        ("1ex", Kind::Number, 2),
        ("1e", Kind::Number, 2),
        ("1e+", Kind::Number, 3),
        ("1x", Kind::Syntax, 1),
        ("0x1", Kind::Syntax, 1),
        ("1.5.2", Kind::Syntax, 3),
        ("+1", Kind::Syntax, 0),
        (".5", Kind::Syntax, 0),
        ("NaN", Kind::Syntax, 0),
        ("Infinity", Kind::Syntax, 0),
        ("-Infinity", Kind::Number, 1),
        ("1 2", Kind::Syntax, 2),
    ] {
        assert_eq!(fault(&format!("[{{\"x\":{number}}}]")), (kind, 6 + at, Some(0)), "{number}");
    }
    for cut in ["-", "1.", "1e", "1e-"] {
        assert_eq!(fault(&format!("[{{\"x\":{cut}")), (Kind::Eof, 6 + cut.len(), Some(0)));
    }
    assert_eq!(fault("[{\"x\":1"), (Kind::Eof, 7, Some(0)));
}

#[test]
fn literals() {
    outline_of("[{\"a\":true,\"b\":false,\"c\":null,\"d\":[true , false,null]}]");
    assert_eq!(fault("[{\"x\":trux}]"), (Kind::Syntax, 9, Some(0)));
    assert_eq!(fault("[{\"x\":nul"), (Kind::Eof, 9, Some(0)));
    assert_eq!(fault("[{\"x\":nul}]"), (Kind::Syntax, 9, Some(0)));
    assert_eq!(fault("[{\"x\":truee}]"), (Kind::Syntax, 10, Some(0)));
    assert_eq!(fault("[{\"x\":True}]"), (Kind::Syntax, 6, Some(0)));
}

#[test]
fn structure_and_message_indices() {
    for (data, wanted) in [
        ("", (Kind::Eof, 0, None)),
        (" \n", (Kind::Eof, 2, None)),
        ("[", (Kind::Eof, 1, Some(0))),
        ("[ ", (Kind::Eof, 2, Some(0))),
        ("[,", (Kind::Syntax, 1, Some(0))),
        ("[{}", (Kind::Eof, 3, None)),
        ("[{} {}]", (Kind::Syntax, 4, None)),
        ("[{},]", (Kind::Syntax, 4, Some(1))),
        ("[{},", (Kind::Eof, 4, Some(1))),
        ("[{},{]}", (Kind::Syntax, 5, Some(1))),
        ("[{}}", (Kind::Syntax, 3, None)),
        ("[{\"a\"}]", (Kind::Syntax, 5, Some(0))),
        ("[{\"a\":}]", (Kind::Syntax, 6, Some(0))),
        ("[{\"a\":1,}]", (Kind::Syntax, 8, Some(0))),
        ("[{a:1}]", (Kind::Syntax, 2, Some(0))),
        ("[{'a':1}]", (Kind::Syntax, 2, Some(0))),
        ("[{\"a\":1 \"b\":2}]", (Kind::Syntax, 8, Some(0))),
        ("[]]", (Kind::Trailing, 2, None)),
        ("[] x", (Kind::Trailing, 3, None)),
        ("[]\0", (Kind::Trailing, 2, None)),
        ("{}{}", (Kind::Trailing, 2, None)),
        ("[\u{b}]", (Kind::Syntax, 1, Some(0))),
        ("\u{feff}[]", (Kind::Syntax, 0, None)),
        (" \u{feff}[]", (Kind::Syntax, 1, None)),
        ("\0", (Kind::Syntax, 0, None)),
        ("{\"messages\":[{},x]}", (Kind::Syntax, 16, Some(1))),
        ("{\"messages\":[{}],x}", (Kind::Syntax, 17, None)),
        ("{\"m\\u0065ssages\":[x]}", (Kind::Syntax, 18, Some(0))),
        ("{\"input\":[{}],\"messages\":[{},{},x]}", (Kind::Syntax, 32, Some(2))),
        ("{\"messages\":[{}],\"input\":[{},x]}", (Kind::Syntax, 29, None)),
        ("{\"messages\":{},\"input\":[{},x]}", (Kind::Syntax, 27, Some(1))),
        ("{\"messages\":[{\"content\":\"\n\"}]}", (Kind::Control, 25, Some(0))),
        ("[{\"content\":\"\\x\"}]", (Kind::Escape, 13, Some(0))),
        ("[{\"content\":\"\\u12", (Kind::Eof, 17, Some(0))),
    ] {
        assert_eq!(fault(data), wanted, "{data:?}");
    }
    let utf8 = scan(b"[{},{\"content\":\"a\xFF\"}]", false).unwrap_err();
    assert_eq!((utf8.kind, utf8.offset, utf8.message_index), (Kind::Utf8, Some(17), Some(1)));
    let outside = scan(b"[{},\xC3\xA9]", false).unwrap_err();
    assert_eq!((outside.kind, outside.offset), (Kind::Syntax, Some(4)));
}

#[test]
fn surrogates_in_three_bytes_only_where_asked() {
    let data = b"[{\"role\":\"user\",\"content\":\"a\xED\xA0\x80\"}]";
    assert_eq!(scan(data, true).unwrap().messages[0].chars, 2);
    let error = scan(data, false).unwrap_err();
    assert_eq!((error.kind, error.offset), (Kind::Utf8, Some(28)));
}

/// Nesting is counted from the outermost container, in whatever place it is.
#[test]
fn depth() {
    for (before, depth_before, behind) in [
        ("[{\"x\":", 2, "}]"),
        ("[{\"content\":[{\"text\":", 4, "}]}]"),
        ("{\"messages\":[{\"arguments\":", 3, "}]}"),
        ("{\"model\":", 1, ",\"input\":[]}"),
        ("[{\"tool_calls\":[{\"function\":{\"arguments\":", 5, "}}]}]"),
    ] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{\"a\":[", "]}")] {
            let brackets = open.matches(['[', '{']).count();
            for levels in [1, 60, 63, 64, 65, 127, 128, MAX_DEPTH - 6, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1] {
                let nested = format!("{}0{}", open.repeat(levels), close.repeat(levels));
                let data = format!("{before}{nested}{behind}");
                let deepest = depth_before + levels * brackets;
                assert_eq!(compare(data.as_bytes()), deepest > MAX_DEPTH, "{open} {levels} behind {before}");
                if deepest > MAX_DEPTH {
                    assert_eq!(error_of(&data).kind, Kind::Depth);
                }
            }
        }
    }
    let data = "[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH);
    assert_eq!(error_of(&data).kind, Kind::Message);
    let data = "[".repeat(MAX_DEPTH + 1);
    assert_eq!(fault(&data), (Kind::Depth, MAX_DEPTH, Some(0)));
}

#[test]
fn depth_needs_no_stack() {
    let deep = |open: &str, close: &str, count: usize| {
        let nested = format!("{}{}", open.repeat(count), close.repeat(count));
        let data = format!("[{{\"x\":{nested}}}]");
        scan(data.as_bytes(), false).map(drop)
    };
    let work = move || {
        assert_eq!(deep("[", "]", MAX_DEPTH - 2), Ok(()));
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[[],", "]"), ("[{\"a\":", "}]")] {
            let error = deep(open, close, 1_000_000).unwrap_err();
            assert_eq!((error.kind, error.message_index), (Kind::Depth, Some(0)));
        }
        for byte in ["[", "{", "\"\\", "[{\"content\":[", "{\"a\":"] {
            assert!(scan(byte.repeat(1_000_000).as_bytes(), false).is_err());
        }
    };
    std::thread::Builder::new().stack_size(128 * 1_024).spawn(work).unwrap().join().unwrap();
}

#[test]
fn compact_sizes_of_arguments() {
    let size = |data: &str| {
        let mut cursor = Cursor::new(data.as_bytes(), Scanner::detect(), false, &NEEDLE);
        let size = cursor.value().unwrap();
        assert_eq!(cursor.at, data.len());
        size
    };
    for (data, wanted) in [
        ("1", 4),
        ("-123.5e7", 4),
        ("true", 4),
        ("false", 5),
        ("null", 4),
        ("\"\"", 2),
        ("\"é\\n\\ud83d\\ude00\"", 5),
        ("[]", 2),
        ("{ }", 2),
        ("[1, 2]", 11),
        ("{\"a\": 1}", 2 + 3 + 1 + 4),
        ("{\"a\": [ {}, {\"b\":\"é\"} ], \"a\":null}", 2 + 3 + 1 + 2 + 2 + 1 + 2 + 3 + 1 + 3 + 1 + 3 + 1 + 4),
        ("[[[[]]],[]]", 11),
        ("[{\"a\":1},[1,2],{\"b\":3}]", (2 + 3 + 1 + 4) + (2 + 4 + 1 + 4) + (2 + 3 + 1 + 4) + 2 + 2),
        ("{\"\":{\"\":{}}}", 2 + 2 + 1 + 2 + 2 + 1 + 2),
    ] {
        assert_eq!(size(data), wanted, "{data}");
    }
}

const SEEDS: &[&str] = &[
    "[]",
    " [ { } , { } ] ",
    r#"[{"role":"system","content":"abc"},{"role":"user","content":[{"type":"text","text":"é\n😀\\"},null]}]"#,
    r#"{"model":"m","messages":[{"role":"user","content":null}],"n":-1.5e+10,"input":[{}]}"#,
    r#"{"input":[{"type":"function_call","call_id":"1","arguments":"{\"a\":1}"}],"messages":{"a":[true,false]}}"#,
    r#"[{"tool_calls":[{"id":"\u0061","function":{"name":"x","arguments":{"a":[0,-0.1,{"b":[]}]}}}],"role":"assistant"}]"#,
    r#"[{"content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"\ud83d\ude00"}],"is_error":true}]}]"#,
    "[{\"type\":\"function_call_output\",\"output\":\"a rather long string that goes beyond one block of sixty-four bytes, and on\"}\n]\t\r\n",
    "12",
    r#""text""#,
    r#"[{"x":[{"a":1},[2,3],{"b":[[{}],{"c":[]},[4,{"d":[5,6]}]]}],"y":{"e":{"f":[{},7]},"g":[[8],9]}}]"#,
    r#"{"messages":[],"messages":[{}]}"#,
];

#[test]
fn the_seeds_themselves() {
    for seed in SEEDS {
        compare(seed.as_bytes());
        for end in 0..seed.len() {
            compare(&seed.as_bytes()[..end]);
        }
    }
}

#[test]
fn random_damage() {
    let mut random = Random::new(51);
    let mut faults = 0;
    for _ in 0..150_000 {
        let mut data = random.pick(SEEDS).as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(data.len() + 1);
            let byte = *random.pick(b"[]{}\",:\\ \n\t0123456789-+.eEtrufalsn_u\x00\x1F\x7F\x80\xC3\xED\xFF\xEF");
            match random.below(6) {
                0 => data.insert(at, byte),
                1 if at < data.len() => data[at] = byte,
                2 if at < data.len() => {
                    data.remove(at);
                }
                3 => {
                    let from = random.below(data.len() + 1).min(at);
                    let piece = data[from..at].to_vec();
                    let place = random.below(data.len() + 1);
                    data.splice(place..place, piece);
                }
                4 if random.once_in(4) => data.truncate(at),
                _ => data.insert(at, *random.pick(b" \n\r\t")),
            }
        }
        faults += usize::from(compare(&data));
    }
    assert!((50_000..149_000).contains(&faults), "{faults}");
}

#[test]
fn every_scanner_reads_the_same() {
    for seed in SEEDS {
        let outlines: Vec<String> = Scanner::available()
            .into_iter()
            .map(|(_, scanner)| match scan_with(seed.as_bytes(), false, scanner) {
                Ok(outline) => format!("{:?} {:?} {:?}", outline.messages, outline.calls, outline.pieces),
                Err(error) => error.to_string(),
            })
            .collect();
        assert!(outlines.windows(2).all(|pair| pair[0] == pair[1]), "{outlines:?}");
    }
}

#[test]
fn wrong_shapes_come_after_malformed_json() {
    let shape = |data: &str| {
        let error = error_of(data);
        (error.kind, error.offset.unwrap(), error.message_index, error.field.unwrap_or_default())
    };
    for (data, kind, at, index, field) in [
        ("12", Kind::History, 0, None, ""),
        (" null", Kind::History, 1, None, ""),
        (" {}", Kind::History, 1, None, ""),
        ("{\"messages\":{}}", Kind::History, 12, None, "messages"),
        ("{\"input\":\"text\"}", Kind::History, 9, None, "input"),
        ("{\"input\":1,\"messages\":2}", Kind::History, 22, None, "messages"),
        ("{\"messages\":[],\"messages\":[]}", Kind::DuplicateKey, 15, None, "messages"),
        ("[{},1]", Kind::Message, 4, Some(1), ""),
        ("[{\"content\":1}]", Kind::Content, 12, Some(0), "content"),
        ("[{\"content\":[{},1]}]", Kind::Part, 16, Some(0), "content[1]"),
        ("[{\"role\":\"a\",\"r\\u006fle\":1}]", Kind::DuplicateKey, 13, Some(0), "role"),
        ("[{\"content\":[{\"text\":1,\"text\":2}]}]", Kind::DuplicateKey, 23, Some(0), "content[0].text"),
        (
            "[{\"content\":[{\"type\":\"tool_result\",\"content\":{}}]}]",
            Kind::Content,
            45,
            Some(0),
            "content[0].content",
        ),
        (
            "[{\"content\":[{\"type\":\"tool_result\",\"content\":[1]}]}]",
            Kind::Part,
            46,
            Some(0),
            "content[0].content[0]",
        ),
        ("[{\"type\":\"x_call_output\",\"output\":[[]]}]", Kind::Part, 35, Some(0), "output[0]"),
        (
            "[{\"role\":\"assistant\",\"tool_calls\":[1,{\"function\":{\"name\":1,\"name\":2}}]}]",
            Kind::DuplicateKey,
            59,
            Some(0),
            "tool_calls[1].function.name",
        ),
    ] {
        assert_eq!(shape(data), (kind, at, index, field.to_owned()), "{data}");
    }
    // The first faulty message, whatever is wrong in it; but broken JSON behind it comes first.
    assert_eq!(shape("[{\"content\":1},2]").2, Some(0));
    assert_eq!(fault("[{\"content\":1},2").0, Kind::Eof);
    // What is not read may stand twice.
    outline_of("[{\"x\":1,\"x\":2,\"content\":[{\"y\":{\"text\":1,\"text\":2},\"y\":1}]}]");
}
