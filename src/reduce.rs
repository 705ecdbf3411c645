//! Reduction of serialized input: scan, plan, splice.

use crate::error::Error;
use crate::marks::{MarkEdits, Marks};
use crate::outline::Outline;
use crate::plan::{Given, Outcome, Plan, SummaryRequest, arrive, marks_in_view, masked_at, pins, plan};
use crate::policy::{Policy, Requests};
use crate::scan::scan_weighing;
use crate::source::{Bytes, count_newlines};
use crate::splice::{Spliced, splice};

/// A reduced history, or a request for a summary.
#[derive(Debug)]
pub enum Reduced {
    /// The view; None if it is the input.
    View(Option<Spliced>, Outline, Box<Plan>),
    /// A summary is wanted; see [`Outcome::AskSummary`].
    AskSummary(Outline, Box<SummaryRequest>),
    /// The costs of these texts are wanted.
    AskCosts(Vec<Vec<u8>>),
}

/// Reduces a serialized history. `surrogates` accepts what `surrogatepass` writes.
///
/// # Examples
/// ```
/// use recede::{plan::Given, policy::Policy, reduce::{Reduced, reduce_json}};
/// let mut policy = Policy::default();  // a window of no results
/// policy.text.least_removed = None;
/// let data = br#"[{"role":"tool","tool_call_id":"1","content":"a long, long, long, long observation"},{"role":"assistant"}]"#;
/// let Ok(Reduced::View(Some(view), ..)) = reduce_json(data, false, &policy, Given::default()) else { unreachable!() };
/// assert_eq!(String::from_utf8_lossy(&view.to_vec(data)), r#"[{"role":"tool","tool_call_id":"1","content":"[observation masked — 36 chars]"},{"role":"assistant"}]"#);
/// ```
pub fn reduce_json(data: &[u8], surrogates: bool, policy: &Policy, given: Given<'_>) -> Result<Reduced, Error> {
    Ok(reduce_scanned(data, scan_weighing(data, surrogates, policy.weighs())?, policy, given))
}

/// Reduces a serialized history that was scanned.
pub(crate) fn reduce_scanned(data: &[u8], mut outline: Outline, policy: &Policy, given: Given<'_>) -> Reduced {
    if policy.names_lines() {
        count_newlines(data, &mut outline, 0);
    }
    arrive(&mut outline, &Bytes(data), policy);
    let policy = &*policy.of(&outline);
    match plan(&outline, &Bytes(data), policy, given) {
        Outcome::AskSummary(request) => Reduced::AskSummary(outline, request),
        Outcome::AskCosts(texts) => Reduced::AskCosts(texts),
        Outcome::Plan(plan) => {
            let marks = || marks(data, &outline, policy, given.requests, &plan);
            let view = plan.changes().then(|| splice(data, &outline, policy, &plan, marks()));
            Reduced::View(view, outline, plan)
        }
    }
}

/// The marks that a view has besides those of the input, or not any more.
fn marks(data: &[u8], outline: &Outline, policy: &Policy, requests: &Requests, plan: &Plan) -> MarkEdits {
    if !policy.terms.pins_boundary {
        return MarkEdits::default();
    }
    let marks = marks_in_view(outline, &plan.masked, Marks::of(data, outline, requests.marks_elsewhere));
    let pins = pins(outline, plan, &marks, policy.terms.cache);
    let edits =
        |pins| marks.edits(data, outline, &pins, |message, block| masked_at(outline, &plan.masked, message, block));
    pins.map_or_else(MarkEdits::default, edits)
}
