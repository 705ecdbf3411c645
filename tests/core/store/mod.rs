//! The turn store against a plain list: what it holds, also after it was closed, killed, cut off from power or from disk.

pub mod backends;
mod damage;
mod failing;
mod machine;
mod model;
mod power;
#[cfg(unix)]
mod private;
mod recording;
mod synced;
mod table;
