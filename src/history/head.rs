//! What a history writes down when it lets go of messages, beside these: the record that it goes on from.

use super::index;
use super::ledger::{Ledger, Totals};
use crate::plan::FoldState;
use crate::store::{RecordKind, Store};

/// What is known of a session beside the messages that are there.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Behind {
    /// Messages that were let go.
    pub messages: usize,
    /// Bytes of these messages in the view, each with a comma.
    pub view_bytes: usize,
    /// Characters of the session, and what it costs.
    pub chars: usize,
    pub cost: usize,
    /// See `GrowingPairs::counts`.
    pub counts: (usize, usize),
    /// Until the session goes on with it.
    pub fold: FoldState,
}

/// What is written down when messages are let go.
#[derive(Debug, Default)]
pub struct Head {
    pub ledger: Ledger,
    /// Ids in the index, and moves.
    pub ids: usize,
    /// See `ids`.
    pub moves: usize,
    /// See `Kept`.
    pub stale: usize,
    pub behind: Behind,
}

const NUMBERS: usize = 21;

impl Head {
    fn numbers(&self) -> [usize; NUMBERS] {
        let Head { ledger, ids, moves, stale, behind } = self;
        let Totals { chars, turns, ends_with_run } = ledger.totals;
        let fold = &behind.fold;
        [
            ledger.messages,
            ledger.stored,
            chars,
            turns,
            usize::from(ends_with_run),
            *ids,
            *moves,
            behind.messages,
            behind.view_bytes,
            behind.chars,
            behind.cost,
            behind.counts.0,
            behind.counts.1,
            fold.observations,
            fold.masked_count,
            fold.chars,
            fold.removed,
            fold.waste,
            fold.requests,
            fold.before,
            *stale,
        ]
    }

    /// Its numbers, and which observations are masked that are there.
    pub fn bytes(&self) -> Vec<u8> {
        let masked = self.behind.fold.masked.iter().map(|result| *result as usize);
        self.numbers().into_iter().chain(masked).flat_map(|number| (number as u64).to_le_bytes()).collect()
    }

    /// The head of these bytes, where they are one.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let numbers = bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes) as usize);
        let numbers: Vec<usize> = numbers.collect();
        let (numbers, masked) = numbers.split_first_chunk::<NUMBERS>()?;
        let [messages, stored, chars, turns, ends_with_run, ids, moves, behind @ ..] = *numbers;
        let [gone, view_bytes, session_chars, cost, unanswered, without_call, fold @ ..] = behind;
        let [observations, masked_count, fold_chars, removed, waste, requests, before, stale] = fold;
        let totals = Totals { chars, turns, ends_with_run: ends_with_run == 1 };
        let masked = masked.iter().map(|result| *result as u32).collect();
        Some(Head {
            ledger: Ledger { messages, totals, stored, ..Ledger::default() },
            ids,
            moves,
            stale,
            behind: Behind {
                messages: gone,
                view_bytes,
                chars: session_chars,
                cost,
                counts: (unanswered, without_call),
                fold: FoldState {
                    messages: gone,
                    observations,
                    masked_count,
                    chars: fold_chars,
                    removed,
                    waste,
                    requests,
                    before,
                    masked,
                },
            },
        })
    }

    /// Whether it can be true of a store. What was cleared is not.
    pub fn fits(&self, store: &Store) -> bool {
        let Head { ledger, ids, moves, behind, .. } = self;
        let (messages, here) = (ledger.messages, ledger.messages.checked_sub(behind.messages));
        let room = index::room(store);
        messages > 0
            && messages as u64 <= store.last(RecordKind::Message)
            && here.is_some_and(|here| behind.fold.before <= here)
            && [ledger.stored, *ids, *moves].into_iter().all(|count| count <= room)
            && behind.fold.observations <= ledger.stored
    }
}
