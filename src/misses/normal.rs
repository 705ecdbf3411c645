//! Text -> the code points that are compared. Terminal codes and escapes as logs and shells write them are removed, a run of
//! white space is one space, and numbers of lines and marks of differences are left out where that is asked for.

use memchr::memchr2;

const ESCAPE: u8 = 0x1B;

/// A buffer for a text without its escapes.
#[derive(Default)]
pub(super) struct Normalizer {
    plain: Vec<u8>,
}

impl Normalizer {
    /// Passes the code points of a text on; `is_numbered`: without line numbers and marks of differences at line starts.
    /// Returns whether there were any.
    pub(crate) fn read(&mut self, text: &[u8], is_numbered: bool, mut push: impl FnMut(u32)) -> bool {
        let text = if memchr2(b'\\', ESCAPE, text).is_some() { self.unescaped(text) } else { text };
        let (mut at, mut is_space, mut is_line_start, mut has_numbers) = (0, false, is_numbered, false);
        while at < text.len() {
            if is_line_start {
                is_line_start = false;
                let left_out = line_start(&text[at..]);
                (at, has_numbers) = (at + left_out, has_numbers || left_out > 0);
                continue;
            }
            let byte = text[at];
            if matches!(byte, 0x21..0x80) {
                push(u32::from(byte));
                (at, is_space) = (at + 1, false);
                continue;
            }
            let (char, length) = code_point(&text[at..]);
            at += length;
            let is_white = is_white(char);
            if !is_white {
                push(char);
            } else if !is_space {
                push(u32::from(b' '));
            }
            is_space = is_white;
            is_line_start = is_numbered && char == u32::from(b'\n');
        }
        has_numbers
    }

    /// The text without terminal codes, and with `\n`, `\t`, `\"` and `\'` decoded.
    fn unescaped(&mut self, text: &[u8]) -> &[u8] {
        self.plain.clear();
        let (mut at, mut is_escaped) = (0, false);
        while at < text.len() {
            let code = terminal_code(&text[at..]);
            if code > 0 {
                at += code;
                continue;
            }
            let undone = match text[at] {
                b'n' => b'\n',
                b't' => b'\t',
                other => other,
            };
            if is_escaped && matches!(text[at], b'n' | b't' | b'"' | b'\'') {
                self.plain.pop();
                self.plain.push(undone);
                is_escaped = false;
                at += 1;
                continue;
            }
            is_escaped = text[at] == b'\\';
            let next = memchr2(b'\\', ESCAPE, &text[at + 1..]).map_or(text.len(), |more| at + 1 + more);
            let end = if is_escaped { at + 1 } else { next };
            self.plain.extend_from_slice(&text[at..end]);
            at = end;
        }
        &self.plain
    }
}

/// Bytes of the code of a terminal with which a text begins: `ESC [`, parameters, and a letter.
fn terminal_code(text: &[u8]) -> usize {
    let Some(rest) = text.strip_prefix(&[ESCAPE, b'[']) else { return 0 };
    let parameters = rest.iter().take_while(|byte| matches!(byte, 0x30..=0x3F)).count();
    let others = rest[parameters..].iter().take_while(|byte| matches!(byte, 0x20..=0x2F)).count();
    let length = parameters + others;
    if matches!(rest.get(length), Some(0x40..=0x7E)) { 2 + length + 1 } else { 0 }
}

/// Bytes of a line's number, `12→`, `12:`, `12` and a tab, or `a.go:12:`, and of a mark of a difference after it.
fn line_start(line: &[u8]) -> usize {
    let number = numbered(line).or_else(|| named(line)).unwrap_or(0);
    number + usize::from(matches!(line.get(number), Some(b'+' | b'-')))
}

fn numbered(line: &[u8]) -> Option<usize> {
    let spaces = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let digits = digits(&line[spaces..])?;
    let rest = &line[spaces + digits..];
    let mark = [":", "\t", "→"].into_iter().find(|mark| rest.starts_with(mark.as_bytes()))?;
    Some(spaces + digits + mark.len())
}

fn named(line: &[u8]) -> Option<usize> {
    let mut name = 0;
    while let (char, length @ 1..) = code_point(&line[name..])
        && char != u32::from(b':')
        && !is_white(char)
    {
        name += length;
    }
    let rest = line[name..].strip_prefix(b":").filter(|_| name > 0)?;
    let digits = digits(rest)?;
    (rest.get(digits) == Some(&b':')).then_some(name + digits + 2)
}

fn digits(text: &[u8]) -> Option<usize> {
    Some(text.iter().take_while(|byte| byte.is_ascii_digit()).count()).filter(|digits| *digits > 0)
}

fn is_white(char: u32) -> bool {
    match char {
        0x09..=0x0D | 0x1C..=0x20 => true,
        0..0x09 | 0x0E..0x1C | 0x21..0x80 => false,
        _ => char::from_u32(char).is_some_and(char::is_whitespace),
    }
}

/// The first code point of a text, a lone surrogate too, and its bytes; (0, 0) at the end.
fn code_point(text: &[u8]) -> (u32, usize) {
    let continued = |at: usize| text.get(at).map_or(0, |byte| u32::from(byte & 0x3F));
    match text.first() {
        None => (0, 0),
        Some(byte @ 0..0x80) => (u32::from(*byte), 1),
        Some(byte @ 0x80..0xE0) => (u32::from(byte & 0x1F) << 6 | continued(1), 2.min(text.len())),
        Some(byte @ 0xE0..0xF0) => (u32::from(byte & 0x0F) << 12 | continued(1) << 6 | continued(2), 3.min(text.len())),
        Some(byte @ 0xF0..) => {
            let high = u32::from(byte & 0x07) << 18 | continued(1) << 12;
            (high | continued(2) << 6 | continued(3), 4.min(text.len()))
        }
    }
}
