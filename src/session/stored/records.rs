//! Records of numbers: each names its numbers once, in this table.

use super::index::IdEntry;
use super::numbers::{Encoded, Numbers};
use crate::plan::{Charged, FoldState, Move, Paid};
use crate::session::base::Base;
use crate::session::log::ledger::{Ledger, Totals};
use crate::session::{Attempts, Cold};

macro_rules! record {
    ($($name:ident: $($field:ident),+;)+) => {$(
        impl Numbers for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)+
            }

            fn take(from: &mut Encoded) -> Option<Self> {
                let mut record = Self::default();
                $(record.$field = Numbers::take(from)?;)+
                Some(record)
            }
        }
    )+};
}

record! {
    Attempts: failures, turns, cost;
    Base: messages, view_bytes, chars, cost, counts;
    Charged: read, written;
    Cold: reported, request;
    FoldState: observations, masked_count, chars, removed, waste, requests, before;
    IdEntry: hash, call, number, is_answered;
    Ledger: messages, stored, totals;
    Move: request, masked, removed, written_again;
    Paid: view, raw, boundary, marked, calls;
    Totals: chars, turns, ends_with_run;
}
