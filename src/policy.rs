//! Policy: plain parameters, already validated in Python.

use crate::outline::Outline;
use crate::patterns::{ByTool, TextPatterns};
use crate::provider::ProviderCache;
use crate::shape::Shape;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// Every stage, by the budget.
    #[default]
    Reduce,
    Mask,
    Summarize,
    Truncate,
}

/// A field of a placeholder's template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Characters of the observation's text.
    Chars,
    Lines,
    Images,
    Turn,
    /// The number among all observations, from 1.
    Number,
    Tool,
    /// The id of the call.
    Id,
    /// The handle by which it can be recalled.
    Handle,
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
    BreakEven {
        /// Price of a token that the cache serves.
        read: f64,
        /// Price of a token that is written to it.
        write: f64,
    },
    /// When the view exceeds this many characters and the move removes enough; in replays.
    HighWater {
        chars: usize,
        /// Characters that the move has to remove.
        at_least: usize,
    },
}

/// Characters that count as a token where nothing counts tokens; costs are in characters, or quarter tokens.
pub(crate) const CHARS_PER_TOKEN: usize = 4;

/// The current request, in the list of requests that found nothing in the cache.
pub(crate) const NOW: usize = 1 << 60;

impl Boundary {
    /// The boundary with this name and numbers: of observations or characters, or the prices of reading and writing.
    pub(crate) fn of(name: &str, first: f64, second: f64) -> Option<Self> {
        #[expect(clippy::cast_sign_loss, reason = "counts were checked where people give them")]
        let (count, at_least) = (first as usize, second as usize);
        let (read, write) = (first, second);
        Some(match name {
            "sliding" => Boundary::Sliding,
            "stepped" => Boundary::Stepped(count),
            "high_water" => Boundary::HighWater { chars: count, at_least },
            "break_even" => Boundary::BreakEven { read, write },
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
    /// A number of turns.
    Turns { first: usize, every: usize },
    /// When reading the older turns again has cost as much as a summary.
    BreakEven,
}

/// Prices of a token.
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
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    pub provider: String,
    /// The boundary, with its prices.
    pub boundary: Boundary,
    pub cache: ProviderCache,
    /// Summaries of old turns, with its prices.
    pub summaries: Option<Summaries>,
    /// Whether views have marks at the boundary.
    pub pins_boundary: bool,
}

/// A template: decoded literals, each with the following field.
pub type Template = Vec<(Vec<u8>, Option<Field>)>;

/// Declares every parameter of a plan once: name, type and default. `$then` is applied to the list: here it defines [`Policy`], in
/// `py` it reads the parameters from Python.
macro_rules! parameters {
    ($then:ident) => {
        $then! {
            goal: Goal = Goal::Reduce,
            max_cost: Option<usize> = None,
            /// The budget is a limit that each request of the history keeps, not only its view.
            is_limit: bool = false,
            /// Nothing is masked up to this cost of the raw history.
            trigger: usize = 0,
            /// Other budgets of requests: each after at least this many messages, ascending.
            max_cost_since: Vec<(usize, usize)> = vec![],
            /// The part of the budget, in millionths, that a later stage fills; None: the published rule.
            fill_millionths: Option<usize> = None,
            /// Cut results in the window to this length before anything is dropped.
            clip_results: Option<usize> = None,
            /// Longer results are cut to this length when they arrive.
            max_result_chars: Option<usize> = None,
            /// False: return the history unchanged.
            enabled: bool = true,
            /// Window: the last N messages, not counting system messages.
            keep_messages: Option<usize> = Some(4),
            /// Window: the last N turns.
            keep_turns: Option<usize> = None,
            /// Window: the newest N results.
            keep_results: Option<usize> = None,
            /// Windows of single tools: name or pattern, and N (None: all).
            keep_by_tool: ByTool<Option<usize>> = ByTool::default(),
            /// Results that no request has shown may be masked, as in the published designs.
            masks_unseen: bool = false,
            /// Never masked: results of these tools, names or patterns.
            exclude_tools: ByTool<()> = ByTool::default(),
            /// Never masked: results flagged as errors.
            keep_errors: bool = false,
            /// Never masked: results whose text begins so, or matches.
            keep_matching: TextPatterns = TextPatterns::default(),
            /// Whole texts by which an agent clears results itself.
            markers: Vec<String> = vec![],
            /// Tools, and whole texts of their results that refer to the result of an earlier call with the same arguments.
            stubs: Vec<(String, String)> = vec![],
            /// The name of the provider whose cache is assumed.
            provider: String = String::new(),
            /// The terms of the provider that the shape of a history names, by the shape of its first call or result.
            terms_by_shape: Vec<(Shape, Terms)> = vec![],
            boundary: Boundary = Boundary::Sliding,
            /// The facts of the cache: what it serves, and which marks it takes.
            cache: ProviderCache = ProviderCache::default(),
            /// A move leaves no request at which all has cost more than raw by more than this part.
            max_overcost: Option<f64> = Some(0.1),
            /// Requests with a cold cache: messages before each, or [`NOW`].
            cold: Vec<usize> = vec![],
            /// Whether stage 1 is tried.
            observation_masking: bool = true,
            /// Cut observations to this length instead of replacing them.
            max_observation_chars: Option<usize> = None,
            /// The caller's template, if any.
            placeholder: Option<Template> = None,
            /// The built-in placeholder counts lines instead of characters.
            lines_form: bool = false,
            /// Observations stay from which masking would remove fewer characters, what surrounds the placeholder counted; None: the
            /// published rule, that the text gets shorter.
            least_removed: Option<usize> = None,
            /// Dispatch blocks stay, as in the published reducer.
            keeps_dispatch: bool = true,
            /// Mask nothing if it would remove fewer characters.
            min_masked_chars: usize = 0,
            /// Characters that an image counts.
            image_chars: usize = 6_400,
            /// Whether orphans of the input break the pair invariant.
            strict_pairs: bool = false,
            /// The maximum length of the summary.
            summary_max_chars: usize = 1_400,
            /// The role of the summary's message.
            summary_role: Option<String> = None,
            /// Ask the caller for the summary.
            ask_summary: bool = false,
            summaries: Option<Summaries> = None,
            /// The requests that may make one, since its text is there, by the messages before each, ascending; and the message that
            /// no turn of it begins after. None: all requests.
            summaries_at: Option<Vec<(usize, usize)>> = None,
            /// Who writes the summaries of histories over the limit, in replays; None: the built-in summary.
            model: Option<Model> = None,
            /// Requests have a cache breakpoint at the boundary.
            pins_boundary: bool = false,
            /// Marks that a list of messages is assumed to have around it.
            marks_elsewhere: usize = 2,
        }
    };
}
#[cfg(feature = "python")]
pub(crate) use parameters;

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr,)*) => {
        /// The parameters of a plan. Budgets and costs are in characters, or quarter tokens.
        #[derive(Debug, Clone)]
        pub struct Policy {
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl Default for Policy {
            fn default() -> Self {
                Policy { $($name: $default,)* }
            }
        }
    };
}
parameters!(declare);

impl Policy {
    /// Whether results may be masked.
    pub(crate) fn masks(&self) -> bool {
        self.enabled && self.observation_masking
    }

    /// The policy of a history: its first call or result decides whose cache is assumed, and nothing changes that.
    pub(crate) fn of(&self, outline: &Outline) -> Cow<'_, Policy> {
        if self.terms_by_shape.is_empty() {
            return Cow::Borrowed(self);
        }
        let shape = outline.messages.iter().map(|message| message.shape).find(|shape| shape.decides_provider());
        shape.and_then(|shape| self.decided(shape)).map_or(Cow::Borrowed(self), Cow::Owned)
    }

    /// The policy of a history of this shape; None if it has no other terms.
    pub(crate) fn decided(&self, shape: Shape) -> Option<Policy> {
        let (_, terms) = self.terms_by_shape.iter().find(|(other, _)| *other == shape)?;
        Some(self.clone().with_terms(terms.clone()))
    }

    /// Whether views of some history have marks at the boundary.
    pub(crate) fn may_pin(&self) -> bool {
        self.pins_boundary || self.terms_by_shape.iter().any(|(_, terms)| terms.pins_boundary)
    }

    /// The policy with these terms.
    pub(crate) fn with_terms(self, Terms { provider, boundary, cache, summaries, pins_boundary }: Terms) -> Self {
        Policy { provider, boundary, cache, summaries, pins_boundary, ..self }
    }

    /// The budget of a request after this many messages.
    pub(crate) fn max_cost_at(&self, messages: usize) -> Option<usize> {
        let known = self.max_cost_since.partition_point(|(since, _)| *since <= messages);
        self.max_cost_since[..known].last().map_or(self.max_cost, |(_, max)| Some(*max))
    }

    /// The limit of a request after this many messages.
    pub(crate) fn limit_at(&self, messages: usize) -> Option<usize> {
        self.max_cost_at(messages).filter(|_| self.is_limit && self.enabled)
    }

    /// Whether what is masked depends on earlier requests.
    pub(crate) fn remembers(&self) -> bool {
        self.boundary.remembers()
            || self.trigger > 0
            || self.summaries.is_some()
            || (self.is_limit && self.max_cost.is_some())
    }

    /// A boundary, rounded down to steps.
    pub(crate) fn rounded(&self, boundary: usize) -> usize {
        match self.boundary {
            Boundary::Stepped(chunk) => boundary / chunk * chunk,
            _ => boundary,
        }
    }

    /// Whether the placeholder names the lines of an observation, which takes a separate pass to count.
    pub(crate) fn names_lines(&self) -> bool {
        match &self.placeholder {
            None => self.lines_form,
            Some(template) => template.iter().any(|(_, field)| *field == Some(Field::Lines)),
        }
    }
}
