//! A generator of numbers, and the strings that tests are made of.

use recede::error::Error;
use recede::outline::Outline;
use recede::policy::{Goal, Policy};
use recede::scan::scan;
use recede::source::count_newlines;

/// A policy that differs from another one in these fields.
macro_rules! policy {
    ($base:expr; $($($name:ident).+ = $value:expr),* $(,)?) => {{
        let mut policy: recede::policy::Policy = $base;
        $(policy.$($name).+ = $value;)*
        policy
    }};
}

/// The published reducer: a window of messages, and its own rules.
pub fn published() -> Policy {
    policy!(
        Policy::default();
        goal = Goal::Reduce,
        text.least_removed = None,
        keep.messages = Some(4),
        text.keeps_dispatch = true,
    )
}

/// What exhaustive loops step by, and large sizes are divided by: `make test`, which runs with assertions, tries every seventh
/// place, and `make test-slow` every one.
pub const STEP: usize = if cfg!(debug_assertions) { 7 } else { 1 };

/// Xorshift: enough for tests, and no dependency.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 32) as usize) % end
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

pub fn outline_of(json: impl AsRef<[u8]>) -> Outline {
    let json = json.as_ref();
    let mut outline = scan(json, false).unwrap_or_else(|error| panic!("{error:?}: {}", String::from_utf8_lossy(json)));
    count_newlines(json, &mut outline, 0);
    outline
}

pub fn error_of(json: impl AsRef<[u8]>) -> Error {
    let json = json.as_ref();
    match scan(json, false) {
        Ok(_) => panic!("accepted: {}", String::from_utf8_lossy(json)),
        Err(error) => error,
    }
}

/// A JSON string with every character of it escaped.
pub fn escaped(text: &str) -> String {
    use std::fmt::Write;
    text.encode_utf16().fold(String::new(), |mut out, unit| {
        write!(out, "\\u{unit:04x}").unwrap();
        out
    })
}
