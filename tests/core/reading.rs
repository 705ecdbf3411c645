//! What is JSON and what is not, and where it stops being it.

use crate::common::error_of;
use recede::error::{Error, Kind};
use recede::json::{MAX_DEPTH, decode, plain};
use recede::scan::scan;

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
    assert!(compare(data.as_bytes()));
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
