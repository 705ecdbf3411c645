//! The core of recede: keeps the history of a long-running LLM agent small.
//!
//! ```text
//! bytes in ──scan──▶ Outline ─┐                          ┌─▶ splice(bytes, Outline, Plan) ─▶ bytes out
//! dicts in ──walk──▶ Outline ─┴─▶ pairs, turns ─▶ plan ──┴─▶ apply(dicts, Plan) ───────────▶ dicts out
//!                               Policy, Summary?              Report = f(Outline, Plan)
//! ```
//!
//! The Outline is facts, no text. A rule that needs text asks the [`source::Source`] of the Outline. Only the module `py`
//! knows Python, and it only converts.

pub mod clip;
pub mod dispatch;
pub mod error;
pub mod handle;
pub mod json;
pub mod marks;
pub mod misses;
pub mod outline;
pub mod pairs;
pub mod patterns;
pub mod placeholder;
pub mod plan;
pub mod points;
pub mod policy;
pub mod provider;
pub mod quoted;
pub mod raw_text;
pub mod reduce;
pub mod repaired;
pub mod report;
pub mod scan;
pub mod session;
pub mod shape;
pub mod source;
pub mod splice;
pub mod stop;
pub mod store;
mod template;
pub mod text;
pub mod turns;

#[cfg(feature = "python")]
mod py;
