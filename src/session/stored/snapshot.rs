//! A session as bytes: one versioned record of tagged optional fields, for a saved file and a store.
//!
//! ```text
//! "recede s" | version (2) | fields: tag (2), is vital (2), length (8), bytes
//! ```
//!
//! A reader skips a field whose tag it does not know, unless that is vital. Numbers have 8 bytes, little-endian.

use crate::outline::Outline;
use crate::plan::{FoldState, Paid};
use crate::scan::scan_message;
use crate::session::Attempts;
use crate::session::log::ledger::{Ledger, Totals};
use crate::session::reports::{Cold, Reports};
use crate::session::turns::TurnState;
use crate::session::turns::stored::Row;
use crate::session::view::marks::{EvictedMarks, SentMark};
use std::collections::BTreeMap;

const MAGIC: &[u8; 8] = b"recede s";
const VERSION: u16 = 1;
const VITAL: u16 = 1;
/// Above the characters that a thousand tokens are taken to have.
const MOST_CHARS: usize = 1 << 16;
/// Above every real number of a session; sums of smaller numbers do not overflow.
pub const LARGEST: usize = 1 << 48;

/// Tags of the fields; never reused.
mod tag {
    pub const OPTIONS: u16 = 1;
    pub const LEDGER: u16 = 2;
    pub const INDEX: u16 = 3;
    pub const BASE: u16 = 4;
    pub const FOLD: u16 = 5;
    pub const MASKED: u16 = 6;
    pub const PAST: u16 = 7;
    pub const NUMBERS: u16 = 8;
    pub const MESSAGES: u16 = 9;
    pub const SOURCES: u16 = 10;
    pub const TURNS: u16 = 11;
    pub const ROWS: u16 = 12;
    pub const ATTEMPTS: u16 = 13;
    pub const COLD: u16 = 14;
    pub const SUMS: u16 = 15;
    pub const PAID: u16 = 16;
    pub const PINS: u16 = 17;
    pub const MARK: u16 = 18;
    pub const CALIBRATIONS: u16 = 19;
    pub const KNOWN: core::ops::RangeInclusive<u16> = OPTIONS..=CALIBRATIONS;
}

/// State of the evicted messages, and totals of the whole session.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Base {
    /// Evicted messages.
    pub messages: usize,
    /// Bytes of these messages in the view, each with a comma.
    pub view_bytes: usize,
    /// Characters of the session.
    pub chars: usize,
    /// Its cost.
    pub cost: usize,
    /// See `GrowingPairs::counts`.
    pub counts: (usize, usize),
    /// Taken when the session resumes.
    pub fold: FoldState,
    /// Cache marks of the evicted messages.
    pub marks: EvictedMarks,
}

/// A view that became the session: with a summary, or without.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Compaction {
    /// How many messages were appended before.
    pub past: usize,
    /// How many of its first messages may be the task; 0: those before the first run.
    pub task_end: usize,
    /// Its messages.
    pub messages: Vec<Vec<u8>>,
    /// Of each the index of the appended message, and 1; 0 for a summary.
    pub sources: Vec<usize>,
    /// The numbers of their observations.
    pub numbers: Vec<u32>,
    /// Those of the masked ones.
    pub masked: Vec<u32>,
}

/// A session without its messages.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The options of the session.
    pub options: Vec<u8>,
    /// Totals of all messages.
    pub ledger: Ledger,
    /// Ids in the index.
    pub ids: usize,
    /// Moves in the index.
    pub moves: usize,
    /// Stored renderings before this message may be those of a session with other options.
    pub stale: usize,
    /// State of the evicted messages.
    pub base: Base,
    /// Failures of summaries, each with how many messages there were.
    pub attempts: Vec<(usize, Attempts)>,
    /// What was reported of the provider.
    pub reports: Reports,
    /// State of a session of turns.
    pub turns: Option<TurnState>,
    /// A row for each of its turns in memory.
    pub rows: Vec<u8>,
}

impl Snapshot {
    /// Encodes the snapshot.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let Snapshot { options, ledger, ids, moves, stale, base, attempts, reports, turns, rows } = self;
        let Totals { chars, turns: runs, ends_with_run } = ledger.totals;
        let mut out = TaggedFields::new();
        out.add(tag::OPTIONS, VITAL, options);
        out.numbers(tag::LEDGER, &[ledger.messages, ledger.stored, chars, runs, usize::from(ends_with_run)]);
        out.numbers(tag::INDEX, &[*ids, *moves, *stale]);
        let Base { messages, view_bytes, chars, cost, counts, fold, marks } = base;
        out.numbers(tag::BASE, &[*messages, *view_bytes, *chars, *cost, counts.0, counts.1]);
        let FoldState {
            observations,
            masked_count,
            chars,
            removed,
            waste,
            requests,
            before,
            paid,
            masked,
            boundaries,
            ..
        } = fold;
        out.numbers(tag::FOLD, &[*observations, *masked_count, *chars, *removed, *waste, *requests, *before]);
        out.numbers(tag::PAID, &paid.numbers());
        let pin = marks.pin.map_or([0, 0], |(message, block)| [message + 1, block]);
        let newest = marks.newest.as_ref();
        let place = newest.map_or([0, 0], |mark| [mark.message + 1, mark.block]);
        out.numbers(tag::PINS, &[*boundaries, pin, place].concat());
        out.add(tag::MARK, VITAL, newest.map_or(&[], |mark| &mark.value));
        out.numbers(tag::MASKED, &masked.iter().map(|result| *result as usize).collect::<Vec<_>>());
        let attempts = attempts.iter().flat_map(|(messages, one)| [*messages, one.failures, one.turns, one.cost]);
        out.numbers(tag::ATTEMPTS, &attempts.collect::<Vec<_>>());
        if !reports.cold.is_empty() {
            let cold = reports.cold.iter().flat_map(|one| [one.reported, one.request.map_or(0, |request| request + 1)]);
            out.numbers(tag::COLD, &cold.collect::<Vec<_>>());
        }
        if !reports.calibrations.is_empty() {
            let numbers = reports.calibrations.iter().flat_map(|(since, chars)| [*since, *chars]);
            out.numbers(tag::CALIBRATIONS, &numbers.collect::<Vec<_>>());
        }
        if !reports.sums.is_empty() {
            out.numbers(tag::SUMS, &reports.sums);
        }
        if let Some(turns) = turns {
            out.numbers(tag::TURNS, &turns.numbers());
            out.add(tag::ROWS, VITAL, rows);
        }
        out.0
    }

    /// Whether these bytes are a snapshot of any version.
    #[must_use]
    pub fn has_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Decodes a snapshot; None if it is malformed or of another version. The bytes are untrusted: numbers are checked to be
    /// small enough to be added, and lists to be sorted.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let fields = TaggedFields::read(bytes)?;
        let numbers = |tag: u16| list_of_numbers(&fields, tag);
        let [noted, stored, chars, turns, ends_with_run] = fixed(&fields, tag::LEDGER)?;
        let [ids, moves, stale] = fixed(&fields, tag::INDEX)?;
        let [messages, view_bytes, base_chars, cost, unanswered, without_call] = fixed(&fields, tag::BASE)?;
        let [observations, masked_count, fold_chars, removed, waste, requests, before] = fixed(&fields, tag::FOLD)?;
        let totals = Totals { chars, turns, ends_with_run: ends_with_run == 1 };
        let ledger = Ledger { messages: noted, stored_messages: noted, stored, totals, ..Ledger::default() };
        let masked = ascending(numbers(tag::MASKED)?)?;
        let [boundary_before, boundary, pin, pin_block, newest, newest_block] = fixed(&fields, tag::PINS)?;
        let evicted = |message: usize| (message <= messages).then_some(message);
        let pin = evicted(pin)?.checked_sub(1).map(|message| (message, pin_block));
        let value = fields.get(&tag::MARK).copied().unwrap_or_default();
        let newest = evicted(newest)?.checked_sub(1);
        let newest = newest.map(|message| SentMark { message, block: newest_block, value: value.to_vec() });
        if newest.is_some() && !is_json(value) {
            return None;
        }
        let fold = FoldState {
            messages,
            observations,
            masked_count,
            chars: fold_chars,
            removed,
            waste,
            requests,
            before,
            paid: Paid::of(fixed(&fields, tag::PAID)?),
            boundaries: [boundary_before, boundary],
            masked,
        };
        let attempts = numbers(tag::ATTEMPTS)?;
        let (attempts, []) = attempts.as_chunks() else { return None };
        let attempt = |[messages, failures, turns, cost]: &[usize; 4]| {
            (*messages, Attempts { failures: *failures, turns: *turns, cost: *cost })
        };
        let cold = numbers(tag::COLD)?;
        let (cold, []) = cold.as_chunks() else { return None };
        let reported = |[reported, request]: &[usize; 2]| Cold { reported: *reported, request: request.checked_sub(1) };
        let calibrations = numbers(tag::CALIBRATIONS)?;
        let (calibrations, []) = calibrations.as_chunks() else { return None };
        let calibrations: Vec<_> = calibrations.iter().map(|[since, chars]| (*since, *chars)).collect();
        if !calibrations.is_sorted_by_key(|(since, _)| *since)
            || calibrations.iter().any(|(_, chars)| *chars > MOST_CHARS)
        {
            return None;
        }
        let sums = numbers(tag::SUMS)?;
        let reports = Reports { cold: cold.iter().map(reported).collect(), sums, calibrations };
        let rows = fields.get(&tag::ROWS).copied().unwrap_or_default().to_vec();
        if rows.len() % Row::BYTES != 0 {
            return None;
        }
        Some(Snapshot {
            options: fields.get(&tag::OPTIONS).copied().unwrap_or_default().to_vec(),
            ledger,
            ids,
            moves,
            stale,
            base: Base {
                messages,
                view_bytes,
                chars: base_chars,
                cost,
                counts: (unanswered, without_call),
                fold,
                marks: EvictedMarks { pin, newest },
            },
            attempts: attempts.iter().map(attempt).collect(),
            reports,
            turns: match fields.get(&tag::TURNS) {
                None => None,
                Some(bytes) => Some(TurnState::of(numbers_of(bytes)?.try_into().ok()?)),
            },
            rows,
        })
    }
}

impl Compaction {
    /// Encodes it, in the format of a snapshot.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let Compaction { past, task_end, messages, sources, numbers, masked } = self;
        let mut out = TaggedFields::new();
        out.numbers(tag::PAST, &[*past, *task_end]);
        out.numbers(tag::SOURCES, sources);
        for (tag, numbers) in [(tag::NUMBERS, numbers), (tag::MASKED, masked)] {
            out.numbers(tag, &numbers.iter().map(|number| *number as usize).collect::<Vec<_>>());
        }
        let list = messages.iter().flat_map(|message| [&(message.len() as u64).to_le_bytes()[..], message].concat());
        out.add(tag::MESSAGES, VITAL, &list.collect::<Vec<_>>());
        out.0
    }

    /// Decodes it; see [`Snapshot::of`].
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let fields = TaggedFields::read(bytes)?;
        let [past, task_end] = numbers_of(fields.get(&tag::PAST)?)?.try_into().ok()?;
        Some(Compaction {
            past,
            task_end,
            sources: list_of_numbers(&fields, tag::SOURCES)?,
            messages: list_of(fields.get(&tag::MESSAGES)?)?,
            numbers: ascending(list_of_numbers(&fields, tag::NUMBERS)?)?,
            masked: ascending(list_of_numbers(&fields, tag::MASKED)?)?,
        })
    }
}

/// An encoder of tagged fields.
struct TaggedFields(Vec<u8>);

impl TaggedFields {
    fn new() -> Self {
        TaggedFields([&MAGIC[..], &VERSION.to_le_bytes()].concat())
    }

    fn add(&mut self, tag: u16, flags: u16, bytes: &[u8]) {
        self.0.extend_from_slice(&tag.to_le_bytes());
        self.0.extend_from_slice(&flags.to_le_bytes());
        self.0.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn numbers(&mut self, tag: u16, numbers: &[usize]) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| (*number as u64).to_le_bytes()).collect();
        self.add(tag, VITAL, &bytes);
    }

    /// Decodes the fields, by tag.
    fn read(bytes: &[u8]) -> Option<BTreeMap<u16, &[u8]>> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (version, mut rest) = rest.split_first_chunk()?;
        if magic != MAGIC || u16::from_le_bytes(*version) != VERSION {
            return None;
        }
        let mut fields = BTreeMap::new();
        while let Some((head, after)) = rest.split_first_chunk::<12>() {
            let [one, two, three, four, length @ ..] = *head;
            let (tag, flags) = (u16::from_le_bytes([one, two]), u16::from_le_bytes([three, four]));
            let (bytes, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(length)).ok()?)?;
            if !tag::KNOWN.contains(&tag) && flags & VITAL != 0 {
                return None;
            }
            fields.insert(tag, bytes);
            rest = after;
        }
        rest.is_empty().then_some(fields)
    }
}

fn numbers_of(bytes: &[u8]) -> Option<Vec<usize>> {
    let (numbers, rest) = bytes.as_chunks();
    let number = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).ok();
    let numbers = numbers.iter().map(|bytes| number(bytes).filter(|number| *number < LARGEST));
    if rest.is_empty() { numbers.collect() } else { None }
}

fn list_of_numbers(fields: &BTreeMap<u16, &[u8]>, tag: u16) -> Option<Vec<usize>> {
    numbers_of(fields.get(&tag).copied().unwrap_or_default())
}

/// Whether bytes are a JSON value.
fn is_json(value: &[u8]) -> bool {
    let message = [b"{\"role\":\"user\",\"content\":\"\",\"value\":", value, b"}"].concat();
    scan_message(&message, 0, true, &mut Outline::default()).is_ok()
}

/// Strictly ascending 32-bit numbers.
fn ascending(numbers: Vec<usize>) -> Option<Vec<u32>> {
    let numbers = numbers.into_iter().map(u32::try_from).collect::<Result<Vec<u32>, _>>().ok()?;
    numbers.is_sorted_by(|one, next| one < next).then_some(numbers)
}

/// The numbers of a field of fixed length; zeros if it is missing.
fn fixed<const N: usize>(fields: &BTreeMap<u16, &[u8]>, tag: u16) -> Option<[usize; N]> {
    fields.get(&tag).map_or(Some([0; N]), |bytes| numbers_of(bytes)?.try_into().ok())
}

fn list_of(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut list = vec![];
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (one, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        list.push(one.to_vec());
        bytes = rest;
    }
    bytes.is_empty().then_some(list)
}
