//! A session as bytes: one versioned record of tagged optional fields, for a saved file and a store.
//!
//! ```text
//! "recede s" | version (2) | fields: tag (2), is vital (2), length (8), bytes
//! ```
//!
//! A reader skips a field whose tag it does not know, unless that is vital. Numbers have 8 bytes, little-endian.

use super::numbers::{Numbers, REFUSED};
use crate::outline::Outline;
use crate::plan::{BlockPlace, FoldState};
use crate::scan::scan_message;
use crate::session::Attempts;
use crate::session::InView;
use crate::session::base::{Base, EvictedMarks, SentMark};
use crate::session::log::ledger::Ledger;
use crate::session::reports::Reports;
use std::collections::BTreeMap;

const MAGIC: &[u8; 8] = b"recede s";
const VERSION: u16 = 1;
const VITAL: u16 = 1;
/// Above the characters that a thousand tokens are taken to have.
const MOST_CHARS: usize = 1 << 16;

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
    pub const ATTEMPTS: u16 = 13;
    pub const COLD: u16 = 14;
    pub const SUMS: u16 = 15;
    pub const PAID: u16 = 16;
    pub const PINS: u16 = 17;
    pub const MARK: u16 = 18;
    pub const CALIBRATIONS: u16 = 19;
    pub const BEGUN: u16 = 20;
    pub const KNOWN: core::ops::RangeInclusive<u16> = OPTIONS..=BEGUN;
}

/// A view that became the session: with a summary, or without.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Compaction {
    /// How many messages were appended before.
    pub past: usize,
    /// How many of its first messages may be the task; 0: those before the first run.
    pub task_end: usize,
    /// The messages.
    pub messages: Vec<Vec<u8>>,
    /// The index of each appended message, and 1; 0 for a summary.
    pub sources: Vec<usize>,
    /// The numbers of their observations.
    pub numbers: Vec<u32>,
    /// The numbers of the masked observations.
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
    /// Reports about the provider.
    pub reports: Reports,
}

impl Snapshot {
    /// Encodes the snapshot.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let Snapshot { options, ledger, ids, moves, stale, base, attempts, reports } = self;
        let Base { fold, marks: EvictedMarks { pin, newest }, .. } = base;
        let place = |mark: Option<BlockPlace>| mark.map_or((0, 0), |(message, block)| (message + 1, block));
        let pins =
            [fold.boundaries.into(), place(*pin), place(newest.as_ref().map(|mark| (mark.message.0, mark.block)))];
        let mut out = TaggedFields::new();
        out.add(tag::OPTIONS, options);
        out.numbers(tag::LEDGER, ledger);
        out.numbers(tag::INDEX, &[*ids, *moves, *stale]);
        out.numbers(tag::BASE, base);
        out.numbers(tag::FOLD, fold);
        out.numbers(tag::PAID, &fold.paid);
        out.numbers(tag::PINS, &pins);
        out.add(tag::MARK, newest.as_ref().map_or(&[], |mark| &mark.value));
        out.numbers(tag::MASKED, &wide(&fold.masked));
        if fold.is_begun {
            out.numbers(tag::BEGUN, &true);
        }
        out.numbers(tag::ATTEMPTS, attempts);
        if !reports.cold.is_empty() {
            out.numbers(tag::COLD, &reports.cold);
        }
        if !reports.calibrations.is_empty() {
            out.numbers(tag::CALIBRATIONS, &reports.calibrations);
        }
        if !reports.sums.is_empty() {
            out.numbers(tag::SUMS, &reports.sums);
        }
        out.0
    }

    /// Decodes a snapshot; None if it is malformed or of another version. The bytes are untrusted: numbers are checked to be
    /// small enough to be added, and lists to be sorted.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let fields = TaggedFields::read(bytes)?;
        let bytes = |tag: u16| fields.get(&tag).copied().unwrap_or_default();
        let ledger: Ledger = field(&fields, tag::LEDGER)?;
        let [ids, moves, stale] = field(&fields, tag::INDEX)?;
        let base: Base = field(&fields, tag::BASE)?;
        let [boundaries, pin, newest]: [(usize, usize); 3] = field(&fields, tag::PINS)?;
        let evicted = |(message, block): (usize, usize)| {
            (message <= base.messages).then(|| message.checked_sub(1).map(|message| (message, block)))
        };
        let (pin, newest, value) = (evicted(pin)?, evicted(newest)?, bytes(tag::MARK).to_vec());
        if newest.is_some() && !is_json(&value) {
            return None;
        }
        let newest = newest.map(|(message, block)| SentMark { message: InView(message), block, value });
        let fold = FoldState {
            messages: base.messages,
            paid: field(&fields, tag::PAID)?,
            boundaries: boundaries.into(),
            masked: ascending(field(&fields, tag::MASKED)?)?,
            is_begun: field(&fields, tag::BEGUN)?,
            ..field(&fields, tag::FOLD)?
        };
        let calibrations: Vec<(usize, usize)> = field(&fields, tag::CALIBRATIONS)?;
        if !calibrations.is_sorted_by_key(|(since, _)| *since)
            || calibrations.iter().any(|(_, chars)| *chars > MOST_CHARS)
        {
            return None;
        }
        let reports = Reports { cold: field(&fields, tag::COLD)?, sums: field(&fields, tag::SUMS)?, calibrations };
        Some(Snapshot {
            options: bytes(tag::OPTIONS).to_vec(),
            ledger: Ledger { stored_messages: ledger.messages, ..ledger },
            ids,
            moves,
            stale,
            base: Base { fold, marks: EvictedMarks { pin, newest }, ..base },
            attempts: field(&fields, tag::ATTEMPTS)?,
            reports,
        })
    }
}

impl Compaction {
    /// Encodes it, in the format of a snapshot.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let Compaction { past, task_end, messages, sources, numbers, masked } = self;
        let mut out = TaggedFields::new();
        out.numbers(tag::PAST, &(*past, *task_end));
        out.numbers(tag::SOURCES, sources);
        out.numbers(tag::NUMBERS, &wide(numbers));
        out.numbers(tag::MASKED, &wide(masked));
        let list = messages.iter().flat_map(|message| [&(message.len() as u64).to_le_bytes()[..], message].concat());
        out.add(tag::MESSAGES, &list.collect::<Vec<_>>());
        out.0
    }

    /// Decodes it; see [`Snapshot::of`].
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let fields = TaggedFields::read(bytes)?;
        let (past, task_end) = Numbers::decoded(fields.get(&tag::PAST)?, REFUSED)?;
        Some(Compaction {
            past,
            task_end,
            sources: field(&fields, tag::SOURCES)?,
            messages: list_of(fields.get(&tag::MESSAGES)?)?,
            numbers: ascending(field(&fields, tag::NUMBERS)?)?,
            masked: ascending(field(&fields, tag::MASKED)?)?,
        })
    }
}

/// An encoder of tagged fields.
struct TaggedFields(Vec<u8>);

impl TaggedFields {
    fn new() -> Self {
        TaggedFields([&MAGIC[..], &VERSION.to_le_bytes()].concat())
    }

    fn add(&mut self, tag: u16, bytes: &[u8]) {
        self.0.extend_from_slice(&tag.to_le_bytes());
        self.0.extend_from_slice(&VITAL.to_le_bytes());
        self.0.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn numbers(&mut self, tag: u16, numbers: &impl Numbers) {
        self.add(tag, &numbers.encoded());
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

/// Whether bytes are a JSON value.
fn is_json(value: &[u8]) -> bool {
    let message = [b"{\"role\":\"user\",\"content\":\"\",\"value\":", value, b"}"].concat();
    scan_message(&message, 0, true, &mut Outline::default()).is_ok()
}

fn wide(numbers: &[u32]) -> Vec<usize> {
    numbers.iter().map(|number| *number as usize).collect()
}

/// Strictly ascending 32-bit numbers.
fn ascending(numbers: Vec<usize>) -> Option<Vec<u32>> {
    let numbers = numbers.into_iter().map(u32::try_from).collect::<Result<Vec<u32>, _>>().ok()?;
    numbers.is_sorted_by(|one, next| one < next).then_some(numbers)
}

/// The numbers of a field; zeros, or none, if it is missing.
fn field<T: Numbers + Default>(fields: &BTreeMap<u16, &[u8]>, tag: u16) -> Option<T> {
    fields.get(&tag).map_or_else(|| Some(T::default()), |bytes| T::decoded(bytes, REFUSED))
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
