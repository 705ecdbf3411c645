//! How the table grows, what is read for what, and who may open it beside whom.

use super::backends::{Failing, Racing};
use super::model::{append, record, reopened, sound};
use recede::store::file::{Disk, FileName};
use recede::store::memory::Memory;
use recede::store::page::PAGE;
use recede::store::table::bucket_of;
use recede::store::{RecordKind, Store, StoreErrorKind};
use std::sync::Mutex;

#[test]
fn buckets_split_one_at_a_time_and_the_load_stays_level() {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    let mut buckets = 1;
    for turn in 1..=30_000_u64 {
        let text = vec![turn as u8; 40 + (turn * 7_919 % 500) as usize];
        append(&mut store, RecordKind::Turn, &record(&[vec![1; 300], vec![2; 150]], text), false).unwrap();
        let stats = store.stats().unwrap();
        assert!(stats.buckets == buckets || stats.buckets == buckets + 1, "one at a time");
        assert_eq!(u64::from(stats.buckets - 1), stats.splits);
        buckets = stats.buckets;
        if turn > 1_000 {
            assert!((0.75..0.85).contains(&stats.load), "{stats:?}");
            assert!(f64::from(stats.overflow_pages) < 0.9 * f64::from(stats.buckets), "{stats:?}");
        }
    }
    // Over 1,020 buckets the directory has a second level.
    assert!(buckets > 3_000);
    let report = store.verify().unwrap();
    assert_eq!((report.faults, report.records[0]), (vec![], 30_000));
    assert!(report.longest_chain <= 3, "{}", report.longest_chain);
    store.close().unwrap();
    drop(store);
    let mut store = reopened(&memory);
    for turn in [1, 2, 15_000, 29_999, 30_000] {
        assert_eq!(store.get(RecordKind::Turn, turn, true).unwrap().unwrap().last.unwrap()[0], turn as u8);
    }
    assert_eq!(store.get(RecordKind::Turn, 30_001, true).unwrap(), None);
    assert_eq!(store.get(RecordKind::Turn, 0, true).unwrap(), None);
}

#[test]
fn a_split_moves_a_record_only_to_the_new_bucket() {
    for level in 0..6 {
        for split in 0..1_u32 << level {
            let (next_level, next_split) = if split + 1 == 1 << level { (level + 1, 0) } else { (level, split + 1) };
            for id in 0..2_000 {
                let (before, after) = (bucket_of(id, level, split), bucket_of(id, next_level, next_split));
                assert!(before < (1 << level) + split);
                assert!(after == before || before == split && after == (1 << level) + split, "{level} {split} {id}");
            }
        }
    }
}

#[test]
fn freed_pages_are_used_again() {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    append(&mut store, RecordKind::Session, &record(&[], vec![1; 50_000]), true).unwrap();
    let pages = store.stats().unwrap().pages;
    for round in 0..20_u8 {
        assert!(store.replace(RecordKind::Session, 1, &[&[round; 3_000]], &vec![round; 50_000]).unwrap());
        store.sync().unwrap();
    }
    let stats = store.stats().unwrap();
    assert!(stats.pages <= pages + 16, "{pages}, then {stats:?}");
    assert!(store.replace(RecordKind::Session, 1, &[], &[]).unwrap());
    assert!(store.stats().unwrap().free_pages >= 12);
    let held = sound(&mut store);
    store.compact().unwrap();
    assert_eq!(store.stats().unwrap().free_pages, 0);
    assert!(store.stats().unwrap().pages < 6);
    assert!(sound(&mut store) == held);
}

#[test]
fn reading_past_the_mask_touches_no_text() {
    let backend = Failing::default();
    let mut store = reopened(&backend);
    for turn in 0..300_usize {
        let text = vec![turn as u8; [200, 6_000][turn % 2]];
        append(&mut store, RecordKind::Turn, &record(&[vec![1; 100], vec![2; 50]], text), false).unwrap();
    }
    assert_eq!(store.mask_before(251).unwrap(), 250);
    assert_eq!(store.mask_before(100).unwrap(), 0, "the boundary moves forward only");
    store.close().unwrap();
    drop(store);
    let texts: Vec<u64> = (0..backend.memory.bytes(FileName::Store).unwrap().len() / PAGE)
        .filter(|page| backend.memory.bytes(FileName::Store).unwrap()[page * PAGE + 4] == 5)
        .map(|page| (page * PAGE) as u64)
        .collect();
    assert!(texts.len() > 200);
    let mut store = reopened(&backend);
    backend.plan.lock().unwrap().reads.clear();
    for turn in 1..=250 {
        assert_eq!(store.get(RecordKind::Turn, turn, false).unwrap().unwrap().last, None);
    }
    let reads = std::mem::take(&mut backend.plan.lock().unwrap().reads);
    assert!(reads.iter().all(|(name, offset)| *name == FileName::Store && !texts.contains(offset)));
    // One of them, asked for, takes its bucket and the pages of its text.
    store.get(RecordKind::Turn, 2, true).unwrap();
    assert!((2..=3).contains(&backend.plan.lock().unwrap().reads.len()));
}

#[test]
fn opening_reads_the_same_however_much_there_is() {
    let reads = |turns: usize| {
        let backend = Failing::default();
        let mut store = reopened(&backend);
        for _ in 0..turns {
            append(&mut store, RecordKind::Turn, &record(&[vec![1; 300]], vec![2; 300]), false).unwrap();
        }
        store.close().unwrap();
        drop(store);
        backend.plan.lock().unwrap().reads.clear();
        drop(reopened(&backend));
        backend.plan.lock().unwrap().reads.len()
    };
    assert_eq!(reads(10), reads(20_000));
}

#[test]
fn a_second_writer_is_refused_and_readers_see_the_last_commit() {
    let memory = Memory::default();
    let mut writer = reopened(&memory);
    assert_eq!(Store::open(Box::new(memory.clone())).err().unwrap().kind, StoreErrorKind::Locked);
    append(&mut writer, RecordKind::Turn, &record(&[], vec![1]), true).unwrap();
    append(&mut writer, RecordKind::Turn, &record(&[], vec![2]), false).unwrap();
    let mut reader = Store::open_read_only(Box::new(memory.clone())).unwrap();
    assert_eq!(reader.last(RecordKind::Turn), 2);
    let error = append(&mut reader, RecordKind::Turn, &record(&[], vec![9]), true).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::ReadOnly);
    for turn in 3..200 {
        append(&mut writer, RecordKind::Turn, &record(&[], vec![turn; 500]), true).unwrap();
    }
    assert!(!writer.checkpoint().unwrap(), "pages stay as they are while they are read");
    assert_eq!(writer.compact().unwrap_err().kind, StoreErrorKind::Reading);
    assert_eq!(sound(&mut reader).records[0].len(), 2);
    assert_eq!(Store::open_read_only(Box::new(memory.clone())).unwrap().last(RecordKind::Turn), 199);
    writer.close().unwrap();
    drop(writer);
    assert!(memory.bytes(FileName::Log).is_some(), "what the reader needs to be spared waits in the log");
    let mut writer = reopened(&memory);
    assert_eq!(sound(&mut writer).records[0].len(), 199);
    drop(reader);
    writer.close().unwrap();
    assert!(memory.bytes(FileName::Log).is_none());
    assert_eq!(sound(&mut Store::open_read_only(Box::new(memory)).unwrap()).records[0].len(), 199);
}

#[test]
fn a_lock_on_a_log_that_was_removed_is_none() {
    let memory = Memory::default();
    let mut first = reopened(&memory);
    let close = move || {
        first.close().unwrap();
        drop(first);
    };
    let after_opening = Mutex::new(Some((FileName::Log, Box::new(close) as Box<dyn FnOnce() + Send>)));
    let second = Store::open(Box::new(Racing { memory: memory.clone(), after_opening })).unwrap();
    assert_eq!(Store::open(Box::new(memory)).err().unwrap().kind, StoreErrorKind::Locked);
    drop(second);
}

#[test]
fn a_reader_takes_the_file_that_has_the_name() {
    let memory = Memory::default();
    let mut writer = reopened(&memory);
    append(&mut writer, RecordKind::Turn, &record(&[], vec![1]), true).unwrap();
    let compact = move || {
        writer.compact().unwrap();
        append(&mut writer, RecordKind::Turn, &record(&[], vec![2]), true).unwrap();
    };
    let after_opening = Mutex::new(Some((FileName::Store, Box::new(compact) as Box<dyn FnOnce() + Send>)));
    let mut reader = Store::open_read_only(Box::new(Racing { memory, after_opening })).unwrap();
    assert_eq!(sound(&mut reader).records[0].len(), 2);
}

#[test]
fn nobody_reads_what_is_not_there() {
    let memory = Memory::default();
    assert_eq!(Store::open_read_only(Box::new(memory.clone())).err().unwrap().kind, StoreErrorKind::Missing);
    assert!(memory.bytes(FileName::Store).is_none());
}

#[test]
fn real_files_are_locked_and_left_as_one() {
    let folder = std::env::temp_dir().join(format!("recede-store-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("session.store");
    let disk = || Box::new(Disk::new(&path));
    let mut writer = Store::open(disk()).unwrap();
    assert_eq!(Store::open(disk()).err().unwrap().kind, StoreErrorKind::Locked);
    append(&mut writer, RecordKind::Turn, &record(&[], vec![1; 9_000]), true).unwrap();
    let mut reader = Store::open_read_only(disk()).unwrap();
    append(&mut writer, RecordKind::Turn, &record(&[], vec![2; 9_000]), true).unwrap();
    assert!(!writer.checkpoint().unwrap());
    assert_eq!(sound(&mut reader).records[0].len(), 1);
    drop(reader);
    assert!(writer.checkpoint().unwrap());
    writer.compact().unwrap();
    append(&mut writer, RecordKind::Turn, &record(&[], vec![3; 9_000]), true).unwrap();
    drop(writer); // as a killed process does
    let mut writer = Store::open(disk()).unwrap();
    assert_eq!(sound(&mut writer).records[0].len(), 3);
    writer.close().unwrap();
    drop(writer);
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["session.store"]);
    assert_eq!(Store::open(Box::new(Disk::new(&folder))).err().unwrap().kind, StoreErrorKind::Io);
    std::fs::remove_dir_all(&folder).unwrap();
}
