//! What is the core's alone: its scanner beside a naive one, its outlines, sessions and store. Rules are tested from Python,
//! beside the oracle.
//!
//! What is random comes from a seeded generator, so a failure comes again. It runs with optimizations: an optimizer
//! may break what a plain build gets right (rust-lang/rust#158206 did).

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::field_reassign_with_default)]

#[macro_use]
mod common;

mod decoding;
mod fuzz;
mod outline;
mod quick;
mod reading;
mod session;
mod store;
mod stored_session;
mod strings;
