//! Policy: plain parameters, already validated in Python.

mod terms;

pub use terms::{Boundary, CachePrices, Due, Model, Summaries, SummaryPrices, Terms, Tokens};

use crate::outline::Outline;
use crate::patterns::{ByTool, TextPatterns};
use crate::shape::Shape;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// Every stage, by the budget.
    Reduce,
    #[default]
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

/// Characters that count as a token where nothing counts tokens; costs are in characters, or quarter tokens.
pub const CHARS_PER_TOKEN: usize = 4;

/// Characters that a thousand tokens have where nothing was measured.
pub(crate) const ASSUMED_CHARS: usize = 1_000 * CHARS_PER_TOKEN;

/// The `keep` of a replay that masks nothing.
pub(crate) const EVERYTHING: usize = 1 << 60;

/// The current request, in the list of requests that found nothing in the cache.
pub const NOW: usize = 1 << 60;

/// What stands in the place of a result at recede's own doors.
pub(crate) const OWN_PLACEHOLDER: &str = "[old tool output cleared to save context]";

/// A template: decoded literals, each with the following field.
pub type Template = Vec<(Vec<u8>, Option<Field>)>;

/// The options of a door, in eight groups. Budgets and costs are in characters, or quarter tokens. What only a request says is in
/// [`Requests`].
#[derive(Debug, Clone)]
pub struct Policy {
    pub goal: Goal,
    /// The history is sent as it is.
    pub is_off: bool,
    pub keep: Keep,
    pub exempt: Exempt,
    /// The terms of the provider whose cache is assumed.
    pub terms: Terms,
    /// Those of the provider that the shape of a history names, by the shape of its first call or result.
    pub terms_by_shape: Vec<(Shape, Terms)>,
    /// A move leaves no request at which all has cost more than raw by more than this part.
    pub max_overcost: Option<f64>,
    pub limit: Limit,
    pub text: Replacement,
    pub design: Design,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            goal: Goal::default(),
            is_off: false,
            keep: Keep::default(),
            exempt: Exempt::default(),
            terms: Terms::default(),
            terms_by_shape: vec![],
            max_overcost: Some(0.1),
            limit: Limit::default(),
            text: Replacement::default(),
            design: Design::default(),
        }
    }
}

/// The window: the union of its measures.
#[derive(Debug, Clone, Default)]
pub struct Keep {
    /// The newest results that stay raw.
    pub results: usize,
    /// The last messages, system messages not counted.
    pub messages: Option<usize>,
    /// The last turns, whole.
    pub turns: Option<usize>,
    /// Not what no request has shown: it may be masked.
    pub nothing_unseen: bool,
    /// Windows of single tools: name or pattern, and how many results (None: all).
    pub by_tool: ByTool<Option<usize>>,
}

/// Results that are never masked, however old.
#[derive(Debug, Clone, Default)]
pub struct Exempt {
    /// Those of these tools, names or patterns.
    pub tools: ByTool<()>,
    /// Those that are flagged as errors.
    pub errors: bool,
    /// Those whose text begins so, or matches.
    pub texts: TextPatterns,
}

/// The budget: of the view that is asked for, or of every request of the history.
#[derive(Debug, Clone)]
pub struct Limit {
    pub max: Option<usize>,
    /// Each request of the history keeps it, not only the view.
    pub is_kept: bool,
    /// Nothing is masked up to this cost of the raw history.
    pub trigger: usize,
    /// The model's reasoning counts, which requests send back.
    pub counts_reasoning: bool,
    /// The part of the budget, in millionths, that a later stage fills; None: the published rule.
    pub fill: Option<usize>,
    /// Results in the window are cut to this length before anything is dropped.
    pub clip_results: Option<usize>,
    /// The most that a summary has of it.
    pub summary_chars: usize,
    /// The caller is asked for the summary.
    pub asks_summary: bool,
    /// The role of a summary's message, if its shape does not decide that.
    pub summary_role: Option<String>,
    /// Who writes the summaries of histories over it, in replays; None: the built-in summary.
    pub model: Option<Model>,
}

impl Limit {
    /// The length to which any request may cut results, to keep it.
    pub(crate) fn clip_of_requests(&self) -> Option<usize> {
        self.clip_results.filter(|_| self.is_kept)
    }
}

impl Default for Limit {
    fn default() -> Self {
        Limit {
            max: None,
            is_kept: false,
            trigger: 0,
            counts_reasoning: false,
            fill: None,
            clip_results: None,
            summary_chars: 1_400,
            asks_summary: false,
            summary_role: None,
            model: None,
        }
    }
}

/// The text in the place of a result, and when there is one.
#[derive(Debug, Clone)]
pub struct Replacement {
    /// The caller's template; None: the built-in placeholder.
    pub placeholder: Option<Template>,
    /// Results stay from which masking would remove fewer characters, what surrounds the placeholder counted; None: the published
    /// rule, that the text gets shorter.
    pub least_removed: Option<usize>,
    /// Nothing is masked if that would remove fewer characters in all.
    pub least_in_all: usize,
    /// Old results are cut to this length instead of replaced.
    pub max_old_chars: Option<usize>,
    /// The built-in placeholder counts lines instead of characters.
    pub counts_lines: bool,
    /// Dispatch blocks stay.
    pub keeps_dispatch: bool,
    /// Longer results are cut to this length when they arrive.
    pub max_result_chars: Option<usize>,
    /// How many characters an image counts.
    pub image_chars: usize,
    /// Whole texts by which an agent clears results itself.
    pub markers: Vec<String>,
    /// Tools, and whole texts of their results that refer to the result of an earlier call with the same arguments.
    pub stubs: Vec<(String, String)>,
}

impl Default for Replacement {
    fn default() -> Self {
        Replacement {
            placeholder: None,
            least_removed: Some(64),
            least_in_all: 0,
            max_old_chars: None,
            counts_lines: false,
            keeps_dispatch: false,
            max_result_chars: None,
            image_chars: 6_400,
            markers: vec![],
            stubs: vec![],
        }
    }
}

/// What only the stages of the published reducer read.
#[derive(Debug, Clone, Default)]
pub struct Design {
    /// Stage 1 is left out.
    pub skips_masks: bool,
    /// Orphans of the input break the pair invariant.
    pub strict_pairs: bool,
}

/// What reported usage says of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Characters of a thousand tokens.
    pub chars: usize,
    /// Quarter tokens that a request has besides its view.
    pub beside: usize,
}

/// What is known of single requests of a history.
#[derive(Debug, Clone)]
pub struct Requests {
    /// What was measured of requests: each after at least this many messages, ascending.
    pub measured: Vec<(usize, Measured)>,
    /// Those that found a cold cache, ascending: messages before each, or [`NOW`].
    pub cold: Vec<usize>,
    /// Those that may make a summary, since its text is there, by the messages before each, ascending; and the message that no turn
    /// of it begins after. None: all.
    pub summaries_at: Option<Vec<(usize, usize)>>,
    /// Those at which no text of a summary arrived, ascending.
    pub failed_summaries: Vec<usize>,
    /// Marks that a list of messages is assumed to have around it.
    pub marks_elsewhere: usize,
    /// The mark, as JSON, that the body around a list of messages has for its last block.
    pub automatic_mark: Option<String>,
}

/// Nothing is known of them.
pub static UNKNOWN_REQUESTS: Requests = Requests {
    measured: vec![],
    cold: vec![],
    summaries_at: None,
    failed_summaries: vec![],
    marks_elsewhere: 2,
    automatic_mark: None,
};

impl Requests {
    /// A cost that tokens were taken for, at a request after this many messages.
    fn calibrated(&self, cost: usize, messages: usize) -> usize {
        let known = self.measured.partition_point(|(since, _)| *since <= messages);
        self.measured[..known].last().map_or(cost, |(_, measured)| measured.chars_of(cost))
    }
}

impl Measured {
    /// Characters of a view for which so many quarter tokens are left.
    pub(crate) fn chars_of(self, cost: usize) -> usize {
        let left = cost.saturating_sub(self.beside);
        left / ASSUMED_CHARS * self.chars + left % ASSUMED_CHARS * self.chars / ASSUMED_CHARS
    }
}

impl Default for Measured {
    fn default() -> Self {
        Measured { chars: ASSUMED_CHARS, beside: 0 }
    }
}

impl Default for Requests {
    fn default() -> Self {
        UNKNOWN_REQUESTS.clone()
    }
}

/// The place of each parameter that Python names, in the options of a door. `$then` is applied to the list: in `py` it reads them.
#[cfg(feature = "python")]
macro_rules! parameters {
    ($then:ident) => {
        $then! {
            goal => policy.goal,
            max_cost => policy.limit.max,
            is_limit => policy.limit.is_kept,
            trigger => policy.limit.trigger,
            counts_reasoning => policy.limit.counts_reasoning,
            fill_millionths => policy.limit.fill,
            clip_results => policy.limit.clip_results,
            summary_max_chars => policy.limit.summary_chars,
            ask_summary => policy.limit.asks_summary,
            model => policy.limit.model,
            keep_results => policy.keep.results,
            keep_by_tool => policy.keep.by_tool,
            exclude_tools => policy.exempt.tools,
            keep_errors => policy.exempt.errors,
            keep_matching => policy.exempt.texts,
            provider => policy.terms.provider,
            boundary => policy.terms.boundary,
            cache => policy.terms.cache,
            max_overcost => policy.max_overcost,
            summaries => policy.terms.summaries,
            pins_boundary => policy.terms.pins_boundary,
            verifies_reasoning => policy.terms.verifies_reasoning,
            tokens => policy.terms.tokens,
            terms_by_shape => policy.terms_by_shape,
            placeholder => policy.text.placeholder,
            least_removed => policy.text.least_removed,
            max_result_chars => policy.text.max_result_chars,
            image_chars => policy.text.image_chars,
            markers => policy.text.markers,
            stubs => policy.text.stubs,
            keep_messages => policy.keep.messages,
            keep_turns => policy.keep.turns,
            masks_unseen => policy.keep.nothing_unseen,
            skips_masks => policy.design.skips_masks,
            max_observation_chars => policy.text.max_old_chars,
            lines_form => policy.text.counts_lines,
            keeps_dispatch => policy.text.keeps_dispatch,
            min_masked_chars => policy.text.least_in_all,
            strict_pairs => policy.design.strict_pairs,
            summary_role => policy.limit.summary_role,
            is_off => policy.is_off,
            measured => requests.measured,
            cold => requests.cold,
            summaries_at => requests.summaries_at,
            marks_elsewhere => requests.marks_elsewhere,
            automatic_mark => requests.automatic_mark,
        }
    };
}
#[cfg(feature = "python")]
pub(crate) use parameters;

impl Policy {
    /// The policy of `recede.reduce(messages, keep=results, provider="none")`: no cache is to be spared. What a provider's cache costs is
    /// in [`Policy::terms`]; the rows are in Python.
    ///
    /// # Examples
    /// ```
    /// use recede::{plan::Given, policy::Policy, reduce::{Reduced, reduce_json}};
    /// let policy = Policy::keep(1);
    /// let result = |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{}"}},{{"role":"assistant"}}"#, "a line ".repeat(30));
    /// let data = format!("[{},{}]", result("1"), result("2"));
    /// let Ok(Reduced::View(Some(view), ..)) = reduce_json(data.as_bytes(), false, &policy, Given::default()) else { unreachable!() };
    /// let masked = r#"{"role":"tool","tool_call_id":"1","content":"[old tool output cleared to save context]"},{"role":"assistant"}"#;
    /// assert_eq!(String::from_utf8_lossy(&view.to_vec(data.as_bytes())), format!("[{masked},{}]", result("2")));
    /// ```
    pub fn keep(results: usize) -> Self {
        let placeholder = vec![(OWN_PLACEHOLDER.into(), None)];
        Policy {
            keep: Keep { results, ..Keep::default() },
            terms: Terms { provider: "none".to_owned(), ..Terms::default() },
            text: Replacement { placeholder: Some(placeholder), ..Replacement::default() },
            ..Policy::default()
        }
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
        let (_, terms) = self.terms_by_shape.iter().find(|(other, _)| *other == shape.family())?;
        Some(Policy { terms: terms.clone(), ..self.clone() })
    }

    /// Whether views of some history have marks at the boundary.
    pub(crate) fn may_pin(&self) -> bool {
        self.terms.pins_boundary || self.terms_by_shape.iter().any(|(_, terms)| terms.pins_boundary)
    }

    /// Whether texts are weighed: tokens are asked, and the caller does not count them.
    pub(crate) fn weighs(&self) -> bool {
        self.terms.tokens.is_some()
    }

    /// The budget of a request after this many messages.
    pub(crate) fn max_cost_at(&self, requests: &Requests, messages: usize) -> Option<usize> {
        self.limit.max.map(|max| requests.calibrated(max, messages))
    }

    /// The trigger of a request after this many messages; 0 without one.
    pub(crate) fn trigger_at(&self, requests: &Requests, messages: usize) -> usize {
        requests.calibrated(self.limit.trigger, messages)
    }

    /// The limit of a request after this many messages.
    pub(crate) fn limit_at(&self, requests: &Requests, messages: usize) -> Option<usize> {
        self.max_cost_at(requests, messages).filter(|_| self.limit.is_kept && !self.is_off)
    }

    /// The prices of the rule of the boundary, and the part of raw that no move may cost more; None without a bound.
    pub(crate) fn cost_bound(&self) -> Option<(CachePrices, f64)> {
        let Boundary::BreakEven(prices) = self.terms.boundary else { return None };
        self.max_overcost.map(|part| (prices, part))
    }

    /// Whether the view depends on earlier requests.
    pub(crate) fn remembers(&self) -> bool {
        self.terms.boundary.remembers()
            || self.terms.verifies_reasoning
            || self.limit.trigger > 0
            || self.terms.summaries.is_some()
            || (self.limit.is_kept && self.limit.max.is_some())
    }

    /// A boundary, rounded down to steps.
    pub(crate) fn rounded(&self, boundary: usize) -> usize {
        match self.terms.boundary {
            Boundary::Stepped(chunk) => boundary / chunk * chunk,
            _ => boundary,
        }
    }

    /// Whether the placeholder names the lines of an observation, which takes a separate pass to count.
    pub(crate) fn names_lines(&self) -> bool {
        match &self.text.placeholder {
            None => self.text.counts_lines,
            Some(template) => template.iter().any(|(_, field)| *field == Some(Field::Lines)),
        }
    }
}
