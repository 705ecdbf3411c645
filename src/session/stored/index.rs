//! The on-disk index of evicted messages: where each observation is, the newest call and observation of each id, and the
//! moves of the boundary.
//!
//! It consists of blocks: records of the kind "session", from the second one on. Each holds the places of 16 observations, up
//! to 16 moves, and a bucket of a linear hash table of ids.

use super::numbers::Numbers;
use crate::plan::Move;
use crate::store::{Changes, Record, RecordKind, Result, Store, StoreError, StoreErrorKind};
use std::ops::Range;

/// Observations, moves, and on average ids of a block.
const BLOCK: usize = 16;
/// Records of the kind before the blocks.
const SNAPSHOT_RECORDS: u64 = 1;

/// The newest call and observation of an id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdEntry {
    pub hash: u64,
    /// The message of its newest evicted call, plus one; 0 for none.
    pub call: u32,
    /// The newest observation, from 1; 0 for none.
    pub number: u32,
    /// 1 if the call has a result, else 0.
    pub is_answered: u32,
}

/// A change of an entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdUpdate {
    /// The call got a result.
    pub is_answered: bool,
    /// A newer call: its message, and whether it has a result.
    pub call: Option<(usize, bool)>,
    /// A newer observation.
    pub number: Option<u32>,
}

/// The parts of a block.
#[derive(Debug, Default)]
struct Block {
    ids: Vec<IdEntry>,
    moves: Vec<Move>,
    places: Vec<(u32, u32)>,
}

impl Block {
    fn of(record: Option<Record>) -> Self {
        let Some(Record { fields, last }) = record else { return Block::default() };
        let field = |place: usize| fields.get(place).map_or(&b""[..], Vec::as_slice);
        Block { ids: whole(field(0)), moves: whole(field(1)), places: whole(&last.unwrap_or_default()) }
    }
}

impl IdEntry {
    fn update(&mut self, update: &IdUpdate) {
        self.is_answered |= u32::from(update.is_answered);
        if let Some((message, is_answered)) = update.call {
            (self.call, self.is_answered) = (message as u32 + 1, u32::from(is_answered));
        }
        self.number = update.number.unwrap_or(self.number);
    }

    /// The message of the newest call, and whether that has a result.
    #[must_use]
    pub fn call(&self) -> Option<(usize, bool)> {
        Some((self.call.checked_sub(1)? as usize, self.is_answered == 1))
    }

    /// The newest observation.
    #[must_use]
    pub fn number(&self) -> Option<usize> {
        (self.number > 0).then_some(self.number as usize)
    }
}

/// FNV-1a, mixed so that the low bits, which choose the bucket, depend on all others.
fn hash_of(id: &[u8]) -> u64 {
    let hash = id
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

fn bucket_of(hash: u64, buckets: u64) -> u64 {
    let round = 1 << buckets.ilog2();
    let bucket = hash % (2 * round);
    if bucket < buckets { bucket } else { hash % round }
}

/// The bucket that is split when there are this many.
fn split_at(buckets: u64) -> u64 {
    buckets - (1 << buckets.ilog2())
}

fn record_of(block: u64) -> u64 {
    SNAPSHOT_RECORDS + 1 + block
}

fn whole<T: Numbers>(bytes: &[u8]) -> Vec<T> {
    T::first(bytes, Some).collect()
}

fn blocks(store: &Store) -> u64 {
    store.last(RecordKind::Session).saturating_sub(SNAPSHOT_RECORDS)
}

/// The capacity for observations, ids, or moves.
#[must_use]
pub fn room(store: &Store) -> usize {
    (blocks(store) as usize).saturating_mul(BLOCK)
}

/// The entry of an id.
pub fn find(store: &mut Store, id: &[u8]) -> Result<Option<IdEntry>> {
    let blocks = blocks(store);
    if blocks == 0 {
        return Ok(None);
    }
    let hash = hash_of(id);
    let block = Block::of(store.get(RecordKind::Session, record_of(bucket_of(hash, blocks)), false)?);
    Ok(block.ids.into_iter().find(|entry| entry.hash == hash))
}

/// The message of an observation and its place there, by its number from 1.
pub fn place(store: &mut Store, number: usize) -> Result<Option<(usize, usize)>> {
    let Some(index) = number.checked_sub(1) else { return Ok(None) };
    let block = Block::of(store.get(RecordKind::Session, record_of((index / BLOCK) as u64), true)?);
    Ok(block.places.get(index % BLOCK).map(|(message, place)| (*message as usize, *place as usize)))
}

/// A range of the moves of the boundary.
pub fn moves(store: &mut Store, places: Range<usize>) -> Result<Vec<Move>> {
    let mut moves = vec![];
    let first = places.start / BLOCK;
    for block in first..places.end.div_ceil(BLOCK) {
        moves.extend(Block::of(store.get(RecordKind::Session, record_of(block as u64), false)?).moves);
    }
    moves.truncate(places.end - first * BLOCK);
    moves.drain(..(places.start - first * BLOCK).min(moves.len()));
    if moves.len() < places.len() {
        return Err(StoreError::new(StoreErrorKind::Damaged, "it has fewer moves of the boundary than it counts"));
    }
    Ok(moves)
}

/// Writes the index.
pub struct IndexWriter<'a, 'b> {
    changes: &'a mut Changes<'b>,
    /// How many ids the index has.
    pub ids: usize,
}

impl<'a, 'b> IndexWriter<'a, 'b> {
    /// Continues an index of this many ids. The record before the blocks must exist.
    pub fn of(changes: &'a mut Changes<'b>, ids: usize) -> Self {
        IndexWriter { changes, ids }
    }

    fn blocks(&self) -> u64 {
        self.changes.last(RecordKind::Session) - SNAPSHOT_RECORDS
    }

    fn block(&mut self, block: usize) -> Result<Block> {
        Ok(Block::of(self.changes.get(RecordKind::Session, record_of(block as u64))?))
    }

    fn write(&mut self, number: usize, Block { ids, moves, places }: &Block) -> Result<()> {
        let fields: [&[u8]; 2] = [&ids.encoded(), &moves.encoded()];
        self.changes.replace(RecordKind::Session, record_of(number as u64), &fields, &places.encoded())?;
        Ok(())
    }

    /// Adds a block, for which a bucket is split.
    fn add_block(&mut self) -> Result<()> {
        let blocks = self.blocks();
        let mut moved: Vec<IdEntry> = vec![];
        if blocks > 0 {
            let old = split_at(blocks) as usize;
            let mut block = self.block(old)?;
            moved = block.ids.extract_if(.., |entry| bucket_of(entry.hash, blocks + 1) == blocks).collect();
            self.write(old, &block)?;
        }
        self.changes.append(RecordKind::Session, &[&moved.encoded(), &[]], &[])?;
        Ok(())
    }

    /// Adds the places of the observations after the first `start` ones.
    pub fn add_places(&mut self, start: usize, places: &[(u32, u32)]) -> Result<()> {
        self.add(start, places, |block| &mut block.places)
    }

    /// Adds the moves after the first `start` ones.
    pub fn add_moves(&mut self, start: usize, moves: &[Move]) -> Result<()> {
        self.add(start, moves, |block| &mut block.moves)
    }

    fn add<T: Copy>(&mut self, start: usize, rows: &[T], part: impl Fn(&mut Block) -> &mut Vec<T>) -> Result<()> {
        let (mut rest, mut at) = (rows, start);
        while !rest.is_empty() {
            while self.blocks() as usize <= at / BLOCK {
                self.add_block()?;
            }
            let (now, later) = rest.split_at(rest.len().min(BLOCK - at % BLOCK));
            let mut block = self.block(at / BLOCK)?;
            let part = part(&mut block);
            part.truncate(at % BLOCK);
            part.extend(now);
            self.write(at / BLOCK, &block)?;
            at += now.len();
            rest = later;
        }
        Ok(())
    }

    /// Applies changes of ids.
    pub fn update<'c>(&mut self, updates: impl Iterator<Item = (&'c [u8], IdUpdate)>) -> Result<()> {
        let mut updates: Vec<(u64, IdUpdate)> = updates.map(|(id, update)| (hash_of(id), update)).collect();
        // Each id may be new.
        while self.blocks() * (BLOCK as u64) < (self.ids + updates.len()) as u64 {
            self.add_block()?;
        }
        let blocks = self.blocks();
        // By the hash too, so that the same session writes the same bytes.
        updates.sort_unstable_by_key(|(hash, _)| (bucket_of(*hash, blocks), *hash));
        for updates in updates.chunk_by(|one, other| bucket_of(one.0, blocks) == bucket_of(other.0, blocks)) {
            let number = bucket_of(updates[0].0, blocks) as usize;
            let mut block = self.block(number)?;
            for (hash, update) in updates {
                let place = block.ids.iter().position(|entry| entry.hash == *hash).unwrap_or_else(|| {
                    self.ids += 1;
                    block.ids.push(IdEntry { hash: *hash, ..IdEntry::default() });
                    block.ids.len() - 1
                });
                block.ids[place].update(update);
            }
            self.write(number, &block)?;
        }
        Ok(())
    }
}

/// Removes the index.
pub fn clear(changes: &mut Changes) -> Result<()> {
    changes.truncate(RecordKind::Session, changes.last(RecordKind::Session).min(SNAPSHOT_RECORDS))
}
