//! State of a session of turns: the sizes of turns, tokens of requests, and when a summary is due.

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnTokens {
    /// Without its observation.
    pub own: usize,
    /// Tokens of its observation.
    pub observation: usize,
    /// Tokens of its placeholder.
    pub masked: usize,
}

/// The sizes of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row {
    /// The request before it.
    pub request: RequestTokens,
    /// Characters of the turn in a context, without its observation.
    pub own_chars: usize,
    /// Characters of its observation.
    pub chars: usize,
    /// Line feeds of its observation.
    pub newlines: usize,
    /// Characters of the placeholder; 0 if the observation stays raw.
    pub masked_chars: usize,
    /// The tokens.
    pub tokens: TurnTokens,
}

impl Row {
    /// Whether the observation is never masked.
    #[must_use]
    pub fn stays_raw(&self) -> bool {
        self.masked_chars == 0
    }

    pub(super) fn evicted(&self) -> EvictedTurn {
        let TurnTokens { own, observation, masked } = self.tokens;
        EvictedTurn {
            raw_chars: self.own_chars.saturating_add(self.chars),
            shown_chars: self.own_chars.saturating_add(if self.stays_raw() { self.chars } else { self.masked_chars }),
            shown_tokens: own.saturating_add(if self.stays_raw() { observation } else { masked }),
        }
    }
}

/// Tokens of a request without its prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTokens {
    /// Tokens of all turns before it, unmasked.
    pub raw: usize,
    /// Sent.
    pub sent: usize,
}

/// Figures of the masked turns, and how much masking saves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Masked turns, including those in a summary.
    pub masked_turns: usize,
    /// Tokens of all observations.
    pub observation_tokens: usize,
    /// Tokens of the masked ones.
    pub masked_tokens: usize,
    /// Tokens of their placeholders.
    pub placeholder_tokens: usize,
    /// Tokens of all turns, and of a context: the summary, if there is one, and the turns after it.
    pub tokens: RequestTokens,
}

/// State of a session of turns.
#[derive(Debug, Clone, Default)]
pub struct TurnState {
    /// Turns before this one are replaced by a summary of this many characters.
    pub first: usize,
    pub summary_chars: usize,
    /// How many turns the due summary replaces (0: none is due), as decided after this many turns; and the characters that
    /// requests since the last summary could have saved.
    pub due: usize,
    pub judged: usize,
    pub waste: usize,
    pub figures: Figures,
    /// The sum of all answered requests.
    pub sums: RequestTokens,
    /// The request before each turn in memory, and the next one once it is made.
    pub requests: Vec<RequestTokens>,
    /// Evicted turns that are in no summary; empty if summaries are off.
    pub evicted: Vec<EvictedTurn>,
}

/// The facts of an evicted turn that later summaries need.
#[derive(Debug, Clone, Copy)]
pub struct EvictedTurn {
    pub raw_chars: usize,
    pub shown_chars: usize,
    pub shown_tokens: usize,
}
