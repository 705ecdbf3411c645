//! Terms: when a boundary moves and a summary is made, at the prices of the provider whose cache is assumed.

use crate::provider::ProviderCache;

/// Prices of a token that the cache serves, and of one that is written to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CachePrices {
    pub read: f64,
    pub write: f64,
}

/// When the boundary between masked and raw observations moves.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Boundary {
    /// At each request, to the window.
    #[default]
    Sliding,
    /// Steps of this many observations.
    Stepped(usize),
    /// When the move breaks even, at these prices of a token.
    BreakEven(CachePrices),
    /// When the view exceeds this many characters and the move removes enough; in replays.
    HighWater {
        chars: usize,
        /// Characters that the move has to remove.
        at_least: usize,
    },
}

impl Boundary {
    /// The boundary with this name and numbers: of observations or characters, or the prices of reading and writing.
    pub(crate) fn of(name: &str, first: f64, second: f64) -> Option<Self> {
        #[expect(clippy::cast_sign_loss, reason = "counts were checked where people give them")]
        let (count, at_least) = (first as usize, second as usize);
        Some(match name {
            "sliding" => Boundary::Sliding,
            "stepped" => Boundary::Stepped(count),
            "high_water" => Boundary::HighWater { chars: count, at_least },
            "break_even" => Boundary::BreakEven(CachePrices { read: first, write: second }),
            _ => return None,
        })
    }

    /// Whether it depends on earlier requests.
    pub(crate) fn remembers(self) -> bool {
        !matches!(self, Boundary::Sliding | Boundary::Stepped(_))
    }
}

/// Summaries of old turns: at doors that have a summarizer, when they pay; in replays and managers also by their number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summaries {
    pub due: Due,
    pub prices: SummaryPrices,
    /// How many of the newest turns stay raw.
    pub tail: usize,
    /// Who writes it; None: the built-in summary.
    pub model: Option<Model>,
}

/// When a summary is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Due {
    Turns {
        first: usize,
        every: usize,
    },
    /// When reading the older turns again has cost as much as a summary.
    BreakEven,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SummaryPrices {
    pub read: f64,
    pub write: f64,
    /// Input of the model that writes summaries.
    pub input: f64,
    pub output: f64,
}

/// A model that writes summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    pub summary_chars: usize,
    /// Characters of its prompt besides the turns and the previous summary.
    pub prompt_chars: usize,
}

/// The provider whose prompt cache the rule of the boundary assumes, for histories of one shape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Terms {
    pub provider: String,
    /// When the boundary moves, with its prices.
    pub boundary: Boundary,
    pub cache: ProviderCache,
    /// Summaries of old turns, with its prices.
    pub summaries: Option<Summaries>,
    /// Whether views have marks at the boundary.
    pub pins_boundary: bool,
    /// Whether signed reasoning is refused, or dropped, after an edit before it.
    pub verifies_reasoning: bool,
    /// How the model counts, where tokens are asked and no function of the caller counts them; None: characters.
    pub tokens: Option<Tokens>,
}

/// How a model counts: what texts weigh at its scale, and what is beside them. Images have their own option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Quarter tokens of a thousand quarters of text.
    pub scale: usize,
    /// Quarter tokens of a call with its result, beside its name, its arguments and the text.
    pub call: usize,
}

impl Tokens {
    /// Quarter tokens of texts that weigh so much.
    pub(crate) fn of(self, weight: usize) -> usize {
        (weight as u128 * self.scale as u128 / 1_000) as usize
    }
}
