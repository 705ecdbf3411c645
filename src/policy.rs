//! Policy: plain parameters, validated in Python before they get here.

use std::collections::HashMap;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// All stages, by the budget.
    #[default]
    Reduce,
    /// Stage 1 alone.
    Mask,
    /// Stage 2 alone.
    Summarize,
    /// Stage 3 alone.
    Truncate,
}

/// A field of a placeholder's template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Characters of the observation's text.
    Chars,
    /// Its lines.
    Lines,
    /// Its images.
    Images,
    /// The turn it belongs to.
    Turn,
    /// Its number in the sequence of all observations, from 1.
    Number,
    /// The tool's name.
    Tool,
    /// The id of the call.
    Id,
}

/// When the boundary between masked and raw observations moves.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Boundary {
    /// At each request, to all that is older than the window.
    #[default]
    Sliding,
    /// By this many observations at once.
    Stepped(usize),
    /// When the move breaks even, at these prices of a token.
    BreakEven {
        /// Price of a token that the cache serves.
        read: f64,
        /// Price of a token that is written to it.
        write: f64,
    },
    /// When the view has more characters than this; in replays.
    HighWater(usize),
    /// When it costs least to move it, knowing what comes; in replays of what has come.
    Optimum {
        /// Price of a token that the cache serves.
        read: f64,
        /// Price of a token that is written to it.
        write: f64,
    },
}

/// The current request, in the list of requests that found nothing in the cache.
pub const NOW: usize = 1 << 60;

impl Boundary {
    /// By its name and its numbers: how many observations or characters, or the prices of reading and writing.
    #[must_use]
    pub fn of(name: &str, first: f64, second: f64) -> Option<Self> {
        #[expect(clippy::cast_sign_loss, reason = "counts were checked where people give them")]
        let count = first as usize;
        let (read, write) = (first, second);
        Some(match name {
            "sliding" => Boundary::Sliding,
            "stepped" => Boundary::Stepped(count),
            "high_water" => Boundary::HighWater(count),
            "break_even" => Boundary::BreakEven { read, write },
            "optimum" => Boundary::Optimum { read, write },
            _ => return None,
        })
    }

    /// Whether it depends on the requests that were made before.
    #[must_use]
    pub fn remembers(self) -> bool {
        !matches!(self, Boundary::Sliding | Boundary::Stepped(_))
    }
}

/// A summary in the place of old turns, again and again; in replays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summaries {
    /// When one is made.
    pub due: Due,
    /// How many of the newest turns it leaves.
    pub tail: usize,
    /// Who writes it; None: nobody, it is the built-in one.
    pub model: Option<Model>,
}

/// When a summary is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Due {
    /// By the number of turns.
    Turns {
        /// How many there are when the first is made.
        first: usize,
        /// How many come until the next.
        every: usize,
    },
    /// When reading the older turns again has cost as much as a summary, at these prices of a token.
    BreakEven {
        /// Read from the cache.
        read: f64,
        /// Written to the cache.
        write: f64,
        /// Input of the model that writes summaries.
        input: f64,
        /// Its output.
        output: f64,
    },
}

/// A model that writes summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// Characters that it writes.
    pub summary_chars: usize,
    /// Characters that it is given beside the turns and the summary before.
    pub prompt_chars: usize,
}

/// A template: decoded literal text, each with the field after it.
pub type Template = Vec<(Vec<u8>, Option<Field>)>;

/// What is set for single tools, by their names or by patterns. The very name goes before a pattern, and an earlier
/// pattern before a later one.
#[derive(Debug, Clone)]
pub struct ByTool<T> {
    rules: Vec<(Vec<u8>, T)>,
    /// Rules by what they say, also those that are patterns: a tool may have such a name. Each name is looked up once,
    /// however many there are.
    names: HashMap<Vec<u8>, usize>,
    /// Rules that are patterns. They are tried one by one, and so their number has a limit where people give them.
    patterns: Vec<usize>,
}

impl<T> ByTool<T> {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What is set, in order.
    #[must_use]
    pub fn rules(&self) -> &[(Vec<u8>, T)] {
        &self.rules
    }

    /// What is set for a tool.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&T> {
        let by_pattern = || self.patterns.iter().find(|rule| matches(&self.rules[**rule].0, name));
        self.names.get(name).or_else(by_pattern).map(|rule| &self.rules[*rule].1)
    }
}

impl<T> Default for ByTool<T> {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl<T> FromIterator<(Vec<u8>, T)> for ByTool<T> {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, T)>>(rules: I) -> Self {
        let rules: Vec<(Vec<u8>, T)> = rules.into_iter().collect();
        let names = rules.iter().enumerate().map(|(rule, (tool, _))| (tool.clone(), rule)).collect();
        let patterns = (0..rules.len()).filter(|rule| is_pattern(&rules[*rule].0)).collect();
        ByTool { rules, names, patterns }
    }
}

/// Every parameter of a plan, declared once: its name, its type and its default. `$then` makes something of the list: here
/// the struct [`Policy`], in `py` its reading from Python.
macro_rules! parameters {
    ($then:ident) => {
        $then! {
            /// What is asked for.
            goal: Goal = Goal::Reduce,
            /// The budget.
            max_cost: Option<usize> = None,
            /// The part of the budget, in millionths, that a view of a later stage fills; None: the published rule.
            fill_millionths: Option<usize> = None,
            /// Cut results in the window to this length before anything is dropped.
            clip_results: Option<usize> = None,
            /// False gives the history back as it is.
            enabled: bool = true,
            /// Window: the last N messages that are no system messages.
            keep_messages: Option<usize> = Some(4),
            /// Window: the last N turns.
            keep_turns: Option<usize> = None,
            /// Window: the newest N results.
            keep_results: Option<usize> = None,
            /// Windows of single tools, instead: name or pattern, and N (None: all).
            keep_by_tool: ByTool<Option<usize>> = ByTool::default(),
            /// Never masked: results of these tools, names or patterns.
            exclude_tools: ByTool<()> = ByTool::default(),
            /// Never masked: results flagged as errors.
            keep_errors: bool = false,
            /// When the boundary moves.
            boundary: Boundary = Boundary::Sliding,
            /// Requests that found nothing in the cache: how many messages came before each, or [`NOW`].
            cache_cold: Vec<usize> = vec![],
            /// Whether stage 1 is tried at all.
            observation_masking: bool = true,
            /// Cut observations to this length instead of replacing them.
            max_observation_chars: Option<usize> = None,
            /// The caller's template, if there is one.
            placeholder: Option<Template> = None,
            /// The built-in placeholder counts lines instead of characters.
            lines_form: bool = false,
            /// Mask nothing if it would remove fewer characters.
            min_masked_chars: usize = 0,
            /// What an image counts.
            image_chars: usize = 6_400,
            /// Any orphan breaks the pair invariant.
            strict_pairs: bool = false,
            /// The summary's length at most.
            summary_max_chars: usize = 1_400,
            /// The role of the summary's message.
            summary_role: Option<String> = None,
            /// Ask the caller for the summary.
            ask_summary: bool = false,
            /// In a session: a window that alone is larger than what is to be filled gives way, down to the newest unit.
            shrinks_window: bool = false,
            /// In a replay: summaries in the place of old turns.
            summaries: Option<Summaries> = None,
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
    /// A boundary, rounded down to whole chunks where it moves by these.
    #[must_use]
    pub fn rounded(&self, boundary: usize) -> usize {
        match self.boundary {
            Boundary::Stepped(chunk) => boundary / chunk * chunk,
            _ => boundary,
        }
    }

    /// Whether the placeholder names the lines of an observation. To count them takes a pass of its own.
    #[must_use]
    pub fn names_lines(&self) -> bool {
        match &self.placeholder {
            None => self.lines_form,
            Some(template) => template.iter().any(|(_, field)| *field == Some(Field::Lines)),
        }
    }
}

fn is_pattern(tool: &[u8]) -> bool {
    tool.iter().any(|byte| matches!(byte, b'*' | b'?'))
}

/// Whether a tool's name matches a pattern, in which `*` stands for any text and `?` for one character.
#[must_use]
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut star = None; // (after the last `*`, where its text ends so far)
    while place < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, place));
                continue;
            }
            Some(b'?') => {
                at += 1;
                place += character_width(name, place);
                continue;
            }
            Some(byte) if *byte == name[place] => {
                at += 1;
                place += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, end)) = star else { return false };
        let end = end + character_width(name, end);
        star = Some((after, end));
        (at, place) = (after, end);
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

fn character_width(text: &[u8], at: usize) -> usize {
    1 + text[at + 1..].iter().take_while(|byte| (0x80..0xC0).contains(*byte)).count()
}
