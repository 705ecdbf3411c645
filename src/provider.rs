//! Facts of a provider's prompt cache. The rows are in Python, in `recede.providers`: the one table of them.

/// The part of a request that a prompt cache serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheRule {
    /// Any prefix that the previous request had.
    #[default]
    Ideal,
    /// A prefix in whole steps of tokens.
    Prefix,
    /// A prefix that ends where a request was marked.
    Breakpoints,
    /// A whole earlier request, or one with its answer.
    Entries,
}

/// A provider's prompt cache, as the rule of the boundary assumes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProviderCache {
    /// The rule of the part that it serves.
    pub rule: CacheRule,
    /// The least tokens of an entry.
    pub min_tokens: usize,
    /// The steps in which prefixes are served; 0: any length.
    pub step_tokens: usize,
    /// A mark finds an entry at one of this many blocks, its own the last of them.
    pub lookback_blocks: usize,
    /// A request has at most this many marks.
    pub most_marks: usize,
    /// The most characters of system prompt and tools where they have no entry of their own: a move writes them again. Else 0.
    pub system_chars: usize,
    /// With [`CacheRule::Entries`]: what two requests share is an entry as well.
    pub shares_prefixes: bool,
}
