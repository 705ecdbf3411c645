//! What is on disk when: each change is written before it returns, and only a sync waits for the disk.

use super::model::{Model, append, contents, record, reopened, sound};
use super::recording::{Event, Recording};
use recede::store::file::FileName;
use recede::store::log::FRAME;
use recede::store::memory::Memory;
use recede::store::page::{PAGE, put_u32, put_u64, u16_at, u32_at};
use recede::store::{Record, RecordKind, Result, Store, StoreErrorKind};

fn turn(number: u8) -> Record {
    record(&[vec![number; 20]], vec![number; 200])
}

#[test]
fn each_change_outlives_the_process_and_is_read_by_others() {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    let changes: [fn(&mut Store); 5] = [
        |store| assert_eq!(append(store, RecordKind::Turn, &turn(1), false).unwrap(), 1),
        |store| assert_eq!(append(store, RecordKind::Turn, &turn(2), false).unwrap(), 2),
        |store| assert!(store.replace(RecordKind::Turn, 1, &[], &[7; 3_000]).unwrap()),
        |store| assert_eq!(store.mask_before(2).unwrap(), 1),
        |store| store.change(|changes| changes.append(RecordKind::Session, &[], &[1]).map(drop)).unwrap(),
    ];
    for change in changes {
        change(&mut store);
        let now = contents(&mut store).unwrap();
        assert!(sound(&mut Store::open_read_only(Box::new(memory.clone())).unwrap()) == now);
        drop(store); // as a killed process does
        store = reopened(&memory);
        assert!(sound(&mut store) == now);
    }
}

#[test]
fn changes_that_are_held_are_one_commit() {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    store.hold();
    for number in 0..9 {
        append(&mut store, RecordKind::Turn, &turn(number), false).unwrap();
    }
    store.mask_before(4).unwrap();
    drop(store);
    let mut store = reopened(&memory);
    assert!(contents(&mut store).unwrap() == Model::default());
    store.hold();
    append(&mut store, RecordKind::Turn, &turn(1), false).unwrap();
    store.sync().unwrap();
    append(&mut store, RecordKind::Turn, &turn(2), false).unwrap();
    drop(store);
    assert_eq!(reopened(&memory).last(RecordKind::Turn), 2);
}

/// Syncs of files, and of their names.
fn syncs(sync_every: Option<u64>, turns: usize, length: usize) -> (usize, usize) {
    let backend = Recording::new([]);
    let mut store = reopened(&backend);
    store.sync_every(sync_every);
    backend.events.lock().unwrap().clear();
    for number in 0..turns {
        append(&mut store, RecordKind::Turn, &record(&[vec![1; 200]], vec![number as u8; length]), false).unwrap();
    }
    let events = backend.events.lock().unwrap();
    let count = |is_one: fn(&Event) -> bool| events.iter().filter(|event| is_one(event)).count();
    (count(|event| matches!(event, Event::Synced(_))), count(|event| matches!(event, Event::NamesSynced)))
}

#[test]
fn only_syncs_wait_for_the_disk() {
    assert_eq!(syncs(None, 400, 1_500), (0, 1));
    assert_eq!(syncs(Some(1), 100, 1_500), (100, 1));
    assert_eq!(syncs(Some(50), 400, 1_500), (8, 1));
    // Where nobody syncs, the log does not grow for ever: 32 MiB take one of the log, of the file, and of the new log.
    assert_eq!(syncs(None, 90, 400_000), (3, 1));
}

/// How long the file of a log is after each of these many appended turns, with so many to a sync.
fn lengths(turns: usize, sync_every: Option<u64>) -> (Memory, Vec<u64>) {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    store.sync_every(sync_every);
    let (mut most, mut lengths) = (0, vec![]);
    for number in 0..turns {
        append(&mut store, RecordKind::Turn, &record(&[vec![1; 200]], vec![number as u8; 1_500]), false).unwrap();
        lengths.push(memory.bytes(FileName::Log).unwrap().len() as u64);
        most = store.stats().unwrap().log_bytes.max(most);
        assert!(
            lengths[number] <= most + most.clamp(64 << 10, 256 << 10),
            "of {} bytes {most} were used",
            lengths[number]
        );
    }
    (memory, lengths)
}

#[test]
fn a_log_grows_ahead_of_syncs_that_are_close_together() {
    let (memory, synced) = lengths(400, Some(1));
    let grown = synced.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((5..25).contains(&grown), "{grown} of 400 syncs had a longer file");
    // A checkpoint begins with the room that there is.
    let (_, longer) = lengths(2_000, Some(1));
    assert_eq!(longer[1_000], longer[1_999]);
    // The next writer cuts off what has no meaning, and closing removes the log.
    let mut store = reopened(&memory);
    assert_eq!(store.last(RecordKind::Turn), 400);
    assert_eq!(memory.bytes(FileName::Log).unwrap().len() as u64, store.stats().unwrap().log_bytes);
    store.close().unwrap();
    assert!(memory.bytes(FileName::Log).is_none());
    // Zeros would be written twice where a sync has many commits.
    for sync_every in [None, Some(50)] {
        let (memory, lengths) = lengths(400, sync_every);
        let log = memory.bytes(FileName::Log).unwrap();
        assert!(log.len() as u64 == lengths[399] && log[log.len() - 64..] != [0; 64]);
    }
}

/// For this salt the checksum that 20 zeros have at 16 is right.
const SALT_OF_ZEROS: u64 = 0x2bbe_22d1_0000_0001;

#[test]
fn zeros_are_no_frame() {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    append(&mut store, RecordKind::Turn, &turn(1), true).unwrap();
    let mut log = memory.bytes(FileName::Log).unwrap()[..PAGE].to_vec();
    store.close().unwrap();
    put_u64(&mut log, 24, 1);
    put_u64(&mut log, 32, 0);
    put_u64(&mut log, 40, SALT_OF_ZEROS);
    let sum = crc32fast::hash(&log[..48]);
    put_u32(&mut log, 48, sum);
    let mut zeros = crc32fast::Hasher::new_with_initial(sum);
    zeros.update(&[0; 16]);
    assert_eq!(zeros.finalize(), 0);
    log.resize(3 * PAGE, 0);
    assert_eq!(reopened(&with_log(&memory, log)).last(RecordKind::Turn), 1);
}

/// A store whose log has six commits, of which the first three were synced, then one more sync and commit if asked.
fn killed(is_synced_after: bool) -> (Memory, Vec<usize>, Vec<Model>) {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    let (mut starts, mut states) = (vec![], vec![contents(&mut store).unwrap()]);
    for number in 1..=6 {
        starts.push(store.stats().unwrap().log_bytes as usize);
        append(&mut store, RecordKind::Turn, &turn(number), number <= 3).unwrap();
        states.push(contents(&mut store).unwrap());
    }
    if is_synced_after {
        store.sync().unwrap();
        append(&mut store, RecordKind::Turn, &turn(7), false).unwrap();
    }
    (memory, starts, states)
}

/// The same store with another log.
fn with_log(memory: &Memory, log: Vec<u8>) -> Memory {
    let other = Memory::default();
    other.put(FileName::Store, memory.bytes(FileName::Store).unwrap());
    other.put(FileName::Log, log);
    other
}

/// The state that a log has without the commit that begins there.
fn without(memory: &Memory, start: usize) -> Result<Model> {
    let mut log = memory.bytes(FileName::Log).unwrap();
    log[start..start + FRAME].fill(0);
    let memory = with_log(memory, log);
    Store::open(Box::new(memory)).and_then(|mut store| contents(&mut store))
}

#[test]
fn an_incomplete_commit_is_cut_off_unless_it_was_synced() {
    for is_synced_after in [false, true] {
        let (memory, starts, states) = killed(is_synced_after);
        for (lost, start) in starts.iter().enumerate() {
            match without(&memory, *start) {
                Err(error) => {
                    assert_eq!((error.kind, error.file), (StoreErrorKind::Damaged, FileName::Log));
                    assert!(lost < 3 || is_synced_after, "commit {lost} was cut off in a power loss");
                }
                Ok(found) => {
                    assert!(lost >= 3 && !is_synced_after, "commit {lost} was on disk");
                    assert!(found == states[lost]);
                }
            }
        }
    }
}

/// The commits of a log, begun by recede before version 2, when each commit was synced before the next one.
fn in_version_1(log: &[u8]) -> Vec<u8> {
    let mut log = log.to_vec();
    put_u32(&mut log, 16, 1);
    let mut sum = crc32fast::hash(&log[..48]);
    put_u32(&mut log, 48, sum);
    let mut at = PAGE;
    while at + FRAME <= log.len() && u32_at(&log, at + 12) == u32_at(&log, 40) {
        let (page, end) = (u32_at(&log, at), at + FRAME + usize::from(u16_at(&log, at + 4)));
        assert_eq!(u16_at(&log, at + 6), 0);
        let mut hasher = crc32fast::Hasher::new_with_initial(sum);
        hasher.update(&log[at..at + 16]);
        hasher.update(&log[at + FRAME..end]);
        sum = hasher.finalize();
        put_u32(&mut log, at + 16, sum);
        at = if page == 0 { end.next_multiple_of(PAGE) } else { end };
    }
    log
}

#[test]
fn a_log_of_version_1_is_read_and_replaced() {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    for number in 1..=5 {
        append(&mut store, RecordKind::Turn, &turn(number), true).unwrap();
    }
    let now = contents(&mut store).unwrap();
    drop(store);
    let old = with_log(&memory, in_version_1(&memory.bytes(FileName::Log).unwrap()));
    let mut reader = Store::open_read_only(Box::new(old.clone())).unwrap();
    assert!(sound(&mut reader) == now);
    let error = Store::open(Box::new(old.clone())).err().unwrap();
    assert_eq!((error.kind, error.file), (StoreErrorKind::Reading, FileName::Log));
    drop(reader);
    let mut store = reopened(&old);
    assert!(sound(&mut store) == now);
    assert_eq!(u32_at(&old.bytes(FileName::Log).unwrap(), 16), 2);
    append(&mut store, RecordKind::Turn, &turn(6), false).unwrap();
    drop(store);
    assert_eq!(reopened(&old).last(RecordKind::Turn), 6);
    // A commit that is damaged before another one was on disk.
    let mut log = in_version_1(&memory.bytes(FileName::Log).unwrap());
    log[3 * PAGE + 100] ^= 1;
    let error = Store::open(Box::new(with_log(&memory, log))).err().unwrap();
    assert_eq!(error.kind, StoreErrorKind::Damaged);
}
