//! The core alone, without Python: each clever routine beside a naive one that is plainly right.
//!
//! What is random comes from a seeded generator, so a failure comes again. It runs with optimizations: an optimizer
//! may break what a plain build gets right (rust-lang/rust#158206 did).

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::field_reassign_with_default)]

#[macro_use]
mod common;

mod attempts;
mod clip;
mod decoding;
mod fuzz;
mod hostile;
mod oracle;
mod outline;
mod pairs;
mod patterns;
mod plan;
mod quick;
mod reading;
mod replay;
mod session;
mod sketch;
mod splice;
mod store;
mod stored_session;
mod strings;
mod suite;
