//! Why a result stays as it is: the one answer that all writers of a view ask for.
//!
//! | writer | exempt | in a window | not shown yet |
//! |---|---|---|---|
//! | a mask, by the boundary | stays | stays | stays |
//! | a mask past the window, for a limit | stays | goes, oldest first | stays |
//! | a cut, on arrival or for a limit | stays | is cut | is cut |
//! | a summary of old turns | its turn stays | its turn stays | its turn stays |
//! | messages hidden for a limit | has a share with the user's words | goes | stays |
//!
//! An exemption is for good. It depends on nothing but the result and its tool, so a text that decides is read when the result comes.

use super::context::PlanContext;
use crate::outline::{Name, Outline};
use crate::policy::Policy;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
    /// Exempt: its adapter says so, or `keep_matching` did when its text was read.
    Pinned,
    /// Exempt by `exclude_tools`.
    Tool,
    /// Exempt by `keep_errors`.
    Error,
    /// Exempt by `keep_matching`.
    Text,
    /// In a window: among the newest of its tool, or of all.
    Window,
    /// No request has shown it.
    Unseen,
}

/// Why all results of a tool stay, by tool: it is excluded, or its own window has no end.
#[derive(Debug, Default, Clone)]
pub(super) struct StayingTools(Vec<Option<Stay>>);

impl StayingTools {
    pub(super) fn of(policy: &Policy, outline: &Outline) -> Self {
        let mut tools = StayingTools::default();
        tools.grow(policy, outline);
        tools
    }

    /// Adds new tools; each is looked up once.
    pub(super) fn grow(&mut self, policy: &Policy, outline: &Outline) {
        if policy.exempt.tools.is_empty() && policy.keep.by_tool.is_empty() {
            return;
        }
        let stay = |name: &[u8]| {
            let has_all = || policy.keep.by_tool.get(name).is_some_and(Option::is_none);
            match policy.exempt.tools.get(name) {
                Some(()) => Some(Stay::Tool),
                None => has_all().then_some(Stay::Window),
            }
        };
        let new = self.0.len()..outline.name_count();
        self.0.extend(new.map(|name| stay(outline.name(name as u32))));
    }

    /// `name` is asked only if some tool's results stay.
    fn tool(&self, name: impl FnOnce() -> Name) -> Option<Stay> {
        if self.0.is_empty() { None } else { name().and_then(|name| self.0.get(name as usize).copied().flatten()) }
    }

    /// The exemption of a result.
    pub(super) fn exemption(&self, context: PlanContext, result: usize) -> Option<Stay> {
        let PlanContext { outline, policy, pairs, source, .. } = context;
        let facts = &outline.results[result];
        let fits = || {
            outline.cut_of(result).is_none() // what is exempt was not cut
                && policy.exempt.texts.fit(
                    |beginning| source.observation_begins(outline, result, beginning),
                    |suffix| source.observation_may_end(outline, result, suffix),
                    || source.observation(outline, result),
                )
        };
        match self.tool(|| pairs.name_of(outline, result)) {
            _ if facts.is_pinned => Some(Stay::Pinned),
            Some(Stay::Tool) => Some(Stay::Tool),
            _ if policy.exempt.errors && facts.is_error => Some(Stay::Error),
            _ if !policy.exempt.texts.0.is_empty() && fits() => Some(Stay::Text),
            _ => None,
        }
    }

    /// Why a result stays at every request; None if it may leave its window.
    pub(super) fn for_good(&self, context: PlanContext, result: usize) -> Option<Stay> {
        let own_window = || self.tool(|| context.pairs.name_of(context.outline, result));
        self.exemption(context, result).or_else(own_window)
    }
}
