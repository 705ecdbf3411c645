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

// What no test or bench needs is `pub(crate)`, so that the compiler tells what is dead. Without Python, what only that uses is.
#![warn(unreachable_pub)]
#![cfg_attr(not(feature = "python"), allow(dead_code, unused_imports))]

pub mod clip;
pub mod dispatch;
pub mod error;
mod fingerprint;
pub mod handle;
pub mod json;
mod marks;
pub mod misses;
pub mod outline;
pub mod pairs;
pub mod patterns;
pub mod placeholder;
pub mod plan;
mod points;
pub mod policy;
pub mod provider;
mod quoted;
mod raw_text;
pub mod reduce;
mod repaired;
pub mod report;
pub mod scan;
pub mod session;
pub mod shape;
pub mod source;
mod splice;
mod stop;
pub mod store;
mod template;
pub mod text;
pub mod turns;

#[cfg(feature = "python")]
mod py;
