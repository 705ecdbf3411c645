//! The texts of a serialized context.

use super::{Part, Texts};
use crate::clip::Clip;
use crate::dispatch::NEEDLE;
use crate::json::{Cursor, Read, Reader, Scanner, decode};
use crate::outline::{Outline, Span};
use crate::source::{Bytes, Source};
use crate::text::clip;
use crate::turns::Turns;

/// Fields that are no text, except in the arguments of calls, which may have any field.
const NOT_READ: [&[u8]; 12] = [
    b"id",
    b"type",
    b"role",
    b"name",
    b"data",
    b"status",
    b"call_id",
    b"tool_call_id",
    b"tool_use_id",
    b"signature",
    b"encrypted_content",
    b"thoughtSignature",
];
/// Fields with the arguments of a call: an object, or its JSON in a string.
const ARGUMENTS: [&[u8]; 4] = [b"arguments", b"input", b"args", b"action"];

/// A context between two compactions.
pub struct Context<'a> {
    pub data: &'a [u8],
    pub outline: &'a Outline,
    /// The runs of its agent.
    pub turns: &'a Turns,
    /// How many of the first messages belong to an earlier context.
    pub shown: usize,
    /// Results are cut to this many characters; what is left is visible.
    pub max_result_chars: Option<usize>,
    /// Summaries that requests have, each with the first of them.
    pub summaries: &'a [(u32, Vec<u8>)],
}

impl Texts for Context<'_> {
    fn each(&self, answers_only: bool, visit: &mut dyn FnMut(Part, &[u8])) {
        for message in 0..self.outline.messages.len() {
            let part = self.part(message);
            if answers_only && !matches!(part, Part::Answer(_)) {
                continue;
            }
            if let Part::Answer(request) = part
                && self.turns.starts[request as usize] as usize == message
            {
                let new = self.summaries.iter().filter(|(first, _)| *first == request && !answers_only);
                new.for_each(|(_, summary)| visit(Part::Shown, summary));
            }
            self.own_texts(message, &mut |text| visit(part, text));
            if answers_only {
                continue;
            }
            for result in self.outline.results_of(message) {
                let text = Bytes(self.data).observation(self.outline, result);
                if message < self.shown {
                    visit(Part::Shown, &text);
                    continue;
                }
                self.left(result, &text).into_iter().for_each(|left| visit(Part::Shown, left));
                visit(Part::Result(result as u32), &text);
            }
        }
    }
}

impl Context<'_> {
    /// The role of a message's own texts.
    fn part(&self, message: usize) -> Part {
        if !self.outline.messages[message].is_agent_made {
            return Part::Shown;
        }
        let run = self.turns.starts.partition_point(|start| *start as usize <= message) - 1;
        if self.turns.starts[run] as usize >= self.shown { Part::Answer(run as u32) } else { Part::Written }
    }

    /// The part of a result that a cut keeps.
    fn left<'t>(&self, result: usize, text: &'t [u8]) -> [&'t [u8]; 2] {
        let chars = self.outline.results[result].chars;
        let Some(max_chars) = self.max_result_chars.filter(|max_chars| chars > *max_chars) else { return [&[], &[]] };
        let cut = Clip::of(chars, 0, max_chars, None);
        [&text[..clip(text, cut.beginning)], &text[clip(text, chars - cut.end)..]]
    }

    /// Visits each text of a message besides its results.
    fn own_texts(&self, message: usize, visit: &mut dyn FnMut(&[u8])) {
        let span = self.outline.spans[message];
        let results = self.outline.results_of(message);
        let passed: Vec<Span> = self.outline.results[results].iter().map(|result| result.value).collect();
        let mut texts = Walk { passed: &passed, visit, text: vec![] };
        // It was scanned before, so there is no fault in it.
        let _ = texts.value(&mut cursor(&self.data[..span.end], span.start), false);
    }
}

fn cursor(data: &[u8], at: usize) -> Cursor<'_> {
    let mut cursor = Cursor::new(data, Scanner::detect(), true, &NEEDLE);
    cursor.at = at;
    cursor
}

/// Finds the strings in a value.
struct Walk<'a> {
    passed: &'a [Span],
    visit: &'a mut dyn FnMut(&[u8]),
    text: Vec<u8>,
}

impl Walk<'_> {
    fn value(&mut self, cursor: &mut Cursor, is_argument: bool) -> Read<()> {
        match cursor.peek() {
            _ if self.passed.iter().any(|span| span.start == cursor.at) => cursor.value().map(drop),
            b'"' => {
                self.string(cursor)?;
                (self.visit)(&self.text);
                Ok(())
            }
            b'{' => self.object(cursor, is_argument),
            b'[' => cursor.each(b']', |cursor, _| self.value(cursor, is_argument)),
            _ => cursor.value().map(drop),
        }
    }

    fn object(&mut self, cursor: &mut Cursor, is_argument: bool) -> Read<()> {
        cursor.each(b'}', |cursor, _| {
            let key = cursor.key()?;
            let key = key.raw(cursor.data);
            let are_arguments = ARGUMENTS.contains(&key);
            if !is_argument && NOT_READ.contains(&key) {
                cursor.value()?;
            } else if !is_argument && are_arguments && cursor.peek() == b'"' {
                self.string(cursor)?;
                self.arguments();
            } else {
                self.value(cursor, is_argument || are_arguments)?;
            }
            Ok(())
        })
    }

    fn string(&mut self, cursor: &mut Cursor) -> Read<()> {
        let string = cursor.string()?;
        self.text.clear();
        decode(string.raw(cursor.data), &mut self.text);
        Ok(())
    }

    /// Visits the strings in JSON text, or the text itself if it is not JSON.
    fn arguments(&mut self) {
        let text = core::mem::take(&mut self.text);
        let mut whole = cursor(&text, 0);
        let is_json =
            matches!(whole.peek(), b'{' | b'[') && whole.value().is_ok() && whole.peek() == 0 && whole.at == text.len();
        if is_json {
            let mut inner = Walk { passed: &[], visit: &mut *self.visit, text: vec![] };
            let _ = inner.value(&mut cursor(&text, 0), true);
        } else {
            (self.visit)(&text);
        }
    }
}
