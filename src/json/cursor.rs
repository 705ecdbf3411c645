//! A cursor in the input, which reads the strict grammar of RFC 8259.

use super::block::{Scanner, short, short_key};
use super::needle::Needle;
use super::strings::Fault;
use crate::error::Kind;
use crate::text::Counted;
use crate::text::Span;

pub const MAX_DEPTH: usize = 1_024;

/// Signals that reading stopped. The [`Fault`] is in the cursor, which keeps results small on the hot path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop;

pub(crate) type Read<T> = Result<T, Stop>;

/// Reads containers with a cursor.
pub(crate) trait Reader<'a> {
    fn cursor(&mut self) -> &mut Cursor<'a>;

    /// The members or elements of the container at the cursor, which this bracket closes; `read` reads the keys of members as well.
    fn each(&mut self, bracket: u8, mut read: impl FnMut(&mut Self, usize) -> Read<()>) -> Read<()> {
        self.cursor().open()?;
        if self.cursor().close(bracket) {
            return Ok(());
        }
        for index in 0.. {
            read(self, index)?;
            if !self.cursor().more(bracket)? {
                break;
            }
        }
        Ok(())
    }
}

impl<'a> Reader<'a> for Cursor<'a> {
    fn cursor(&mut self) -> &mut Cursor<'a> {
        self
    }
}

/// A position in the input.
pub struct Cursor<'a> {
    pub data: &'a [u8],
    /// The next byte.
    pub at: usize,
    /// The fault that stopped reading.
    pub fault: Option<Fault>,
    /// The most recent long string, so that a message that is read twice is scanned once.
    found: Counted,
    depth: usize,
    scanner: Scanner,
    needle: &'a Needle,
    surrogates: bool,
}

impl<'a> Cursor<'a> {
    /// At the beginning of `data`; `surrogates` accepts what `surrogatepass` writes, and long strings are searched for
    /// `needle`.
    #[must_use]
    pub fn new(data: &'a [u8], scanner: Scanner, surrogates: bool, needle: &'a Needle) -> Self {
        Cursor { data, at: 0, fault: None, found: Counted::plain(0, 0), depth: 0, scanner, needle, surrogates }
    }

    #[cold]
    pub(crate) fn stop<T>(&mut self, kind: Kind, at: usize) -> Read<T> {
        self.fault = Some(Fault { kind, at });
        Err(Stop)
    }

    /// Stops at an unexpected byte, or at the end of the input.
    #[cold]
    pub(crate) fn unexpected<T>(&mut self) -> Read<T> {
        let kind = if self.at < self.data.len() { Kind::Syntax } else { Kind::Eof };
        self.stop(kind, self.at)
    }

    /// Skips white space and returns the next byte without consuming it; 0, which is never valid there, at the end of
    /// the input.
    pub(crate) fn peek(&mut self) -> u8 {
        loop {
            match self.data.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(byte) => return *byte,
                None => return 0,
            }
        }
    }

    /// Consumes this byte if it is next.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        // Not `+= usize::from(is_next)`, which rustc 1.95 can miscompile: rust-lang/rust#158206.
        let is_next = self.peek() == byte;
        if is_next {
            self.at += 1;
        }
        is_next
    }

    /// Consumes the byte, or stops.
    pub(crate) fn expect(&mut self, byte: u8) -> Read<()> {
        if self.take(byte) { Ok(()) } else { self.unexpected() }
    }

    /// Continues as if inside a container that was opened before.
    pub(crate) fn enter(&mut self) {
        self.depth += 1;
    }

    /// Consumes the bracket that opens a container.
    pub(crate) fn open(&mut self) -> Read<()> {
        if self.depth == MAX_DEPTH {
            return self.stop(Kind::Depth, self.at);
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Inside a container: consumes its closing bracket, if it is next, and returns whether it was.
    pub(crate) fn close(&mut self, bracket: u8) -> bool {
        let is_closed = self.take(bracket);
        if is_closed {
            self.depth -= 1;
        }
        is_closed
    }

    /// Whether another element of a container follows this one.
    pub(crate) fn more(&mut self, bracket: u8) -> Read<bool> {
        match self.peek() {
            b',' => {
                self.at += 1;
                Ok(true)
            }
            byte if byte == bracket => {
                self.at += 1;
                self.depth -= 1;
                Ok(false)
            }
            _ => self.unexpected(),
        }
    }

    /// The string at the cursor, its opening quote included.
    pub fn string(&mut self) -> Read<Counted> {
        if self.peek() == b'"' { self.string_here() } else { self.unexpected() }
    }

    /// The string whose opening quote is the next byte.
    pub(crate) fn string_here(&mut self) -> Read<Counted> {
        let start = self.at + 1;
        if let Some(length) = short(self.data, start) {
            let end = start + length;
            self.at = end + 1;
            return Ok(Counted::plain(start, end));
        }
        self.find_long(start)?;
        self.at = self.found.end + 1;
        Ok(self.found)
    }

    /// Finds a string that is not short. It stays in the cursor, since a result of that many words would.
    #[inline(never)]
    fn find_long(&mut self, start: usize) -> Read<()> {
        if self.found.start != start {
            match self.scanner.string(self.data, start, self.surrogates, self.needle) {
                Ok(found) => self.found = found,
                Err(fault) => return self.stop(fault.kind, fault.at),
            }
        }
        Ok(())
    }

    /// The string that starts at `start`, after its opening quote, if it is valid. The cursor does not move.
    pub(crate) fn find(&mut self, start: usize) -> Option<Counted> {
        if let Some(length) = short(self.data, start) {
            return Some(Counted::plain(start, start + length));
        }
        self.found = self.scanner.find(self.data, start, self.needle)?;
        Some(self.found)
    }

    /// The size, as by [`Cursor::value`], and the end of the value at `at`, if it is valid. It is nested this many levels deeper
    /// than the cursor, which does not move.
    pub(crate) fn value_at(&mut self, at: usize, levels: usize) -> Option<(usize, usize)> {
        let before = (self.at, self.depth);
        (self.at, self.depth) = (at, self.depth + levels);
        let size = self.value();
        let end = self.at;
        (self.at, self.depth) = before;
        Some((size.ok()?, end))
    }

    /// A member's key and its colon, if the key is short and plain and the colon follows at once; and where it is.
    /// Else nothing but white space is read.
    pub(crate) fn short_key(&mut self) -> Option<(&'a [u8], usize)> {
        if self.data.get(self.at) != Some(&b'"') {
            self.peek();
        }
        let at = self.at;
        let key = short_key(self.data.get(at..)?)?;
        self.at += key.len() + 3; // two quotes and the colon
        Some((key, at))
    }

    /// A member's key and its colon.
    pub(crate) fn key(&mut self) -> Read<Counted> {
        let key = self.string()?;
        if self.data.get(self.at) == Some(&b':') {
            self.at += 1;
        } else {
            self.expect(b':')?;
        }
        Ok(key)
    }

    /// Skips a member's key and its colon. Returns the key's characters.
    fn key_chars(&mut self) -> Read<usize> {
        match self.short_key() {
            Some((key, _)) => Ok(key.len()),
            None => Ok(self.key()?.chars()),
        }
    }

    /// Skips any value. Returns its size as compact JSON, by this count: 1 for each bracket, comma and colon,
    /// a string's characters plus 2, a literal's length, and 4 for a number.
    pub fn value(&mut self) -> Read<usize> {
        match self.peek() {
            b'"' => Ok(self.string_here()?.chars() + 2),
            b'{' | b'[' => self.container(),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.unexpected(),
        }
    }

    /// Skips any value and returns its span.
    pub(crate) fn span(&mut self) -> Read<Span> {
        self.peek();
        let start = self.at;
        self.value()?;
        Ok(Span { start, end: self.at })
    }

    /// Skips a container without recursion: one bit per level records whether it is an object.
    fn container(&mut self) -> Read<usize> {
        let mut objects = [0u64; MAX_DEPTH / 64 + 1];
        let outside = self.depth;
        let mut size = 0;
        loop {
            // A value comes next.
            let byte = self.peek();
            size += match byte {
                b'{' | b'[' => {
                    self.open()?;
                    let (word, bit) = (self.depth / 64, 1u64 << (self.depth % 64));
                    let is_object = byte == b'{';
                    objects[word] = if is_object { objects[word] | bit } else { objects[word] & !bit };
                    if self.close(byte + 2) {
                        2 // "}" and "]" are two code points after "{" and "["
                    } else {
                        size += 2;
                        if is_object {
                            size += self.key_chars()? + 3;
                        }
                        continue;
                    }
                }
                _ => self.value()?,
            };
            // After a value, the containers around it may end as well.
            loop {
                if self.depth == outside {
                    return Ok(size);
                }
                let is_object = objects[self.depth / 64] >> (self.depth % 64) & 1 == 1;
                if self.more(if is_object { b'}' } else { b']' })? {
                    size += 1;
                    if is_object {
                        size += self.key_chars()? + 3;
                    }
                    break;
                }
            }
        }
    }

    fn literal(&mut self, word: &[u8]) -> Read<usize> {
        let rest = &self.data[self.at..];
        let same = word.iter().zip(rest).take_while(|(wanted, found)| wanted == found).count();
        self.at += same;
        if same == word.len() { Ok(same) } else { self.unexpected() }
    }

    fn number(&mut self) -> Read<usize> {
        const NUMBER_CHARS: usize = 4;
        self.at += usize::from(self.data[self.at] == b'-');
        if self.data.get(self.at) == Some(&b'0') {
            self.at += 1;
            if matches!(self.data.get(self.at), Some(b'0'..=b'9')) {
                return self.stop(Kind::Number, self.at);
            }
        } else {
            self.digits()?;
        }
        if self.data.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.data.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.data.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(NUMBER_CHARS)
    }

    fn digits(&mut self) -> Read<()> {
        let count = self.data[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        match (count, self.at < self.data.len()) {
            (1.., _) => Ok(()),
            (0, true) => self.stop(Kind::Number, self.at),
            (0, false) => self.stop(Kind::Eof, self.at),
        }
    }
}
