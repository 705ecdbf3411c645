//! The word that begins a dispatch block, and the search for it.

use crate::json::Needle;
use memchr::memmem::Finder;
use std::sync::OnceLock;

/// The word that begins a dispatch block.
pub const BEGIN_DISPATCH: &str = "BEGIN_DISPATCH_RESULT";

/// The scan looks for `N_` and `H_`, its rarest pairs of letters in text.
pub static NEEDLE: Needle = Needle::new(BEGIN_DISPATCH, 4, 13);

/// A finder of [`BEGIN_DISPATCH`]; built once, since every observation is searched.
pub fn begin_dispatch() -> &'static Finder<'static> {
    static FINDER: OnceLock<Finder> = OnceLock::new();
    FINDER.get_or_init(|| Finder::new(BEGIN_DISPATCH))
}

/// False only if no block begins in the raw text: an escaped capital or underscore is `\u004.` or `\u005.`.
pub fn may_begin_in(raw: &[u8]) -> bool {
    static ESCAPES: OnceLock<[Finder; 2]> = OnceLock::new();
    let escapes = ESCAPES.get_or_init(|| [Finder::new("\\u004"), Finder::new("\\u005")]);
    begin_dispatch().find(raw).is_some() || escapes.iter().any(|finder| finder.find(raw).is_some())
}
