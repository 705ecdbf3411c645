//! Damaged files: what is wrong is found or does no harm, what is whole stays readable, and nothing panics.

use super::model::{Model, append, contents, record, reopened, sound};
use crate::common::STEP;
use recede::store::file::FileName;
use recede::store::memory::Memory;
use recede::store::page::{HEAD, PAGE, Page, put_u16, put_u32, u32_at};
use recede::store::{RecordKind, Result, Store, StoreErrorKind};

/// A closed store with every kind of page, and what it holds.
fn small() -> (Vec<u8>, Model) {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    for turn in 0..14_usize {
        let text = vec![turn as u8 + 1; [50, 900, 5_000, 250][turn % 4]];
        append(&mut store, RecordKind::Turn, &record(&[vec![7; 500], vec![8; 200]], text), false).unwrap();
    }
    store.mask_before(6).unwrap();
    append(&mut store, RecordKind::Session, &record(&[], vec![9; 9_000]), false).unwrap();
    append(&mut store, RecordKind::Summary, &record(&[vec![5; 2_000]], vec![4; 10]), false).unwrap();
    assert!(store.replace(RecordKind::Session, 1, &[], &[1; 20]).unwrap());
    let stats = store.stats().unwrap();
    assert!(stats.free_pages > 0 && stats.buckets > 2 && stats.overflow_pages > 0 && stats.text_pages > 2, "{stats:?}");
    store.close().unwrap();
    drop(store);
    assert!(memory.bytes(FileName::Log).is_none(), "a closed store is one file");
    (memory.bytes(FileName::Store).unwrap(), sound(&mut reopened(&memory)))
}

fn put(bytes: Vec<u8>) -> Memory {
    let memory = Memory::default();
    memory.put(FileName::Store, bytes);
    memory
}

fn read_only(memory: &Memory) -> Result<Store> {
    Store::open_read_only(Box::new(memory.clone()))
}

/// How many records can be read; each of them is the one that was stored.
fn intact(store: &mut Store, model: &Model) -> usize {
    let mut count = 0;
    for kind in RecordKind::ALL {
        for (index, wanted) in model.records[kind.index()].iter().enumerate() {
            if let Ok(found) = store.get(kind, index as u64 + 1, true) {
                assert!(found.as_ref() == Some(wanted), "a wrong text of {kind:?} {}", index + 1);
                count += 1;
            }
        }
    }
    count
}

#[test]
fn every_flipped_byte_is_found() {
    let (whole, model) = small();
    let all: usize = model.records.iter().map(Vec::len).sum();
    let mut rest_readable = 0;
    for at in (0..whole.len()).step_by(STEP) {
        let mut bytes = whole.clone();
        bytes[at] ^= if at % 3 == 0 { 0xff } else { 1 << (at % 8) };
        let page = Some((at / PAGE) as u32);
        match read_only(&put(bytes)) {
            Err(error) => assert!(at < PAGE && [None, page].contains(&error.page), "byte {at}: {error}"),
            Ok(mut store) => {
                let report = store.verify().unwrap();
                assert!(report.faults.iter().any(|fault| fault.page == page), "byte {at}: {:?}", report.faults);
                let readable = intact(&mut store, &model);
                rest_readable += usize::from(readable > 0 && readable < all);
            }
        }
    }
    assert!(rest_readable > whole.len() / 2 / STEP);
}

#[test]
fn every_shortened_file_is_found() {
    let (whole, model) = small();
    for length in (0..whole.len()).step_by(STEP) {
        let memory = put(whole[..length].to_vec());
        assert!(Store::open(Box::new(memory.clone())).is_err(), "{length} bytes");
        assert_eq!(memory.bytes(FileName::Store).unwrap().len(), length, "nothing is written into it");
        if let Ok(mut store) = read_only(&memory) {
            assert!(!store.verify().unwrap().faults.is_empty());
            intact(&mut store, &model);
        }
    }
}

#[test]
fn swapped_pages_are_found() {
    let (whole, model) = small();
    let pages = whole.len() / PAGE;
    for first in 1..pages {
        for second in first + 1..pages {
            let mut bytes = whole.clone();
            let (before, behind) = bytes.split_at_mut(second * PAGE);
            before[first * PAGE..(first + 1) * PAGE].swap_with_slice(&mut behind[..PAGE]);
            let mut store = read_only(&put(bytes)).unwrap();
            let faults = store.verify().unwrap().faults;
            assert!(faults.iter().any(|fault| fault.page == Some(first as u32)), "{first} and {second}: {faults:?}");
            intact(&mut store, &model);
        }
    }
}

/// Changes a number of a page, and makes its checksum right again.
fn forged(whole: &[u8], page: usize, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let place = page * PAGE..(page + 1) * PAGE;
    change(&mut bytes[place.clone()]);
    let mut sealed = Page::raw(bytes[place.clone()].try_into().unwrap());
    sealed.seal(page as u32);
    bytes[place].copy_from_slice(sealed.bytes());
    bytes
}

#[test]
fn a_page_as_it_was_before_is_found() {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    append(&mut store, RecordKind::Session, &record(&[], vec![1; 9_000]), false).unwrap();
    store.close().unwrap();
    let before = memory.bytes(FileName::Store).unwrap();
    let mut store = reopened(&memory);
    for text in 2..4 {
        assert!(store.replace(RecordKind::Session, 1, &[], &[text; 9_000]).unwrap());
    }
    let model = contents(&mut store).unwrap();
    store.close().unwrap();
    drop(store);
    let now = memory.bytes(FileName::Store).unwrap();
    let mut texts = 0;
    for start in (PAGE..before.len()).step_by(PAGE) {
        if before[start + 4] != 5 || now[start + 4] != 5 {
            continue;
        }
        texts += 1;
        let mut bytes = now.clone();
        bytes[start..start + PAGE].copy_from_slice(&before[start..start + PAGE]);
        let mut store = read_only(&put(bytes)).unwrap();
        assert!(!store.verify().unwrap().faults.is_empty());
        assert_eq!(intact(&mut store, &model), 0);
    }
    assert!(texts > 0);
}

#[test]
fn each_count_of_page_0_is_verified() {
    let (whole, _) = small();
    for at in [64, 84, 88, 108, 120, 136, 144] {
        for change in [1, u32::MAX] {
            let bytes = forged(&whole, 0, |page| put_u32(page, at, u32_at(page, at).wrapping_add(change)));
            let verified = read_only(&put(bytes)).and_then(|mut store| store.verify());
            assert!(verified.is_ok_and(|report| !report.faults.is_empty()), "the number at {at}");
        }
    }
}

#[test]
fn chains_that_lead_into_a_circle_end() {
    let (whole, _) = small();
    let overflow = (1..whole.len() / PAGE).find(|page| whole[page * PAGE + 4] == 4).unwrap();
    let bytes = forged(&whole, overflow, |page| put_u32(page, 12, overflow as u32));
    let mut store = read_only(&put(bytes.clone())).unwrap();
    let what = "the chain of a bucket is a cycle";
    assert!(store.verify().unwrap().faults.iter().any(|fault| fault.what == what));
    // A record that is not there is looked for along all of it, and one that is added too.
    let bytes = forged(&bytes, 0, |page| put_u32(page, 120, u32_at(page, 120) + 20));
    if let Ok(mut store) = read_only(&put(bytes)) {
        let found = (15..34).map(|id| store.get(RecordKind::Turn, id, true)).filter_map(Result::err);
        assert!(found.into_iter().any(|error| error.what == what));
    }
}

#[test]
fn foreign_files_are_left_alone() {
    let (whole, _) = small();
    let refused = |bytes: Vec<u8>| {
        let memory = put(bytes);
        let error = Store::open(Box::new(memory.clone())).err().unwrap();
        assert!(memory.bytes(FileName::Log).is_none(), "nothing is put beside it");
        assert!(read_only(&memory).err().unwrap().kind == error.kind);
        (error.kind, error.page)
    };
    assert_eq!(refused(vec![]), (StoreErrorKind::Foreign, None));
    assert_eq!(refused(b"{\"messages\": []}".to_vec()), (StoreErrorKind::Foreign, None));
    assert_eq!(refused(vec![0; 3 * PAGE]), (StoreErrorKind::Foreign, None));
    assert_eq!(refused(b"SQLite format 3\0".repeat(1_000)), (StoreErrorKind::Foreign, None));
    assert_eq!(refused(whole[..100].to_vec()), (StoreErrorKind::Damaged, Some(0)));
    for name in [FileName::Log, FileName::New] {
        let memory = Memory::default();
        memory.put(name, b"notes that happen to have this name".to_vec());
        let error = Store::open(Box::new(memory.clone())).err().unwrap();
        assert_eq!((error.kind, error.file), (StoreErrorKind::Foreign, name));
        assert_eq!(memory.bytes(name).unwrap(), b"notes that happen to have this name");
    }
    let newer = forged(&whole, 0, |page| put_u32(page, 32, 2));
    assert_eq!(refused(newer), (StoreErrorKind::Version, None));
    let mut damaged = whole;
    damaged[60] ^= 1;
    // What was torn may still be in a log, so it takes one to know.
    let memory = put(damaged);
    let error = Store::open(Box::new(memory)).err().unwrap();
    assert_eq!((error.kind, error.page), (StoreErrorKind::Damaged, Some(0)));
}

/// Whoever makes a file can make its checksums right too.
#[test]
fn hostile_numbers_do_no_harm() {
    let (whole, _) = small();
    for page in 0..whole.len() / PAGE {
        let places = if page == 0 { 16..160 } else { 4..HEAD + 120 };
        for at in places {
            for (bytes, number) in
                [(2, 0), (2, 0xffff), (2, 1), (4, 0xffff_ffff), (4, 0x7fff_ffff), (4, 0), (4, 1), (4, 2)]
            {
                let memory = put(forged(&whole, page, |page| match bytes {
                    2 => put_u16(page, at, number as u16),
                    _ => put_u32(page, at, number),
                }));
                if let Ok(mut store) = read_only(&memory) {
                    let _ = store.verify();
                    for kind in RecordKind::ALL {
                        for id in 0..20 {
                            let _ = store.get(kind, id, true);
                        }
                    }
                }
                // Nor when it is written to.
                if let Ok(mut store) = Store::open(Box::new(memory)) {
                    for _ in 0..3 {
                        let _ = append(&mut store, RecordKind::Turn, &record(&[vec![1; 400]], vec![2; 5_000]), false);
                    }
                    let _ = store.mask_before(8);
                    let _ = store.replace(RecordKind::Turn, 7, &[], &[3; 50]);
                    let _ = store.close();
                }
            }
        }
    }
}

#[test]
fn a_damaged_log_is_found_or_ends_at_a_commit() {
    let memory = Memory::default();
    let mut store = reopened(&memory);
    let mut states = vec![contents(&mut store).unwrap()];
    let mut ends = vec![];
    for turn in 0..4_u8 {
        append(&mut store, RecordKind::Turn, &record(&[vec![turn; 20]], vec![turn; 200]), true).unwrap();
        states.push(contents(&mut store).unwrap());
        ends.push(store.stats().unwrap().log_bytes as usize);
    }
    drop(store);
    let (file, log) = (memory.bytes(FileName::Store).unwrap(), memory.bytes(FileName::Log).unwrap());
    let damaged = |bytes: Vec<u8>| {
        let memory = put(file.clone());
        memory.put(FileName::Log, bytes);
        Store::open(Box::new(memory)).and_then(|mut store| contents(&mut store))
    };
    assert!(damaged(log.clone()).unwrap() == states[4]);
    let mut found = 0;
    for at in 0..log.len() {
        let mut bytes = log.clone();
        bytes[at] ^= 1 << (at % 8);
        match damaged(bytes) {
            Err(error) => {
                assert_eq!((error.kind, error.file), (StoreErrorKind::Damaged, FileName::Log));
                found += 1;
            }
            // Nothing tells a damaged last commit from one that was never synced.
            Ok(state) => assert!(state == states[4] || state == states[3] && at >= ends[2], "byte {at}"),
        }
    }
    assert!(found > 600, "{found}");
    for length in 0..log.len() {
        let state = damaged(log[..length].to_vec()).unwrap();
        let whole = ends.iter().filter(|end| **end <= length.next_multiple_of(PAGE) && length > **end - PAGE).count();
        assert!(states[whole..].contains(&state) || states.contains(&state), "{length} bytes");
    }
}

/// An image of a synced store with a fault in the first block of its log or of its file.
#[test]
fn a_changed_bit_or_a_zeroed_sector_of_a_first_block_is_found_or_harmless() {
    for turns in [1, 4] {
        let memory = Memory::default();
        let mut store = reopened(&memory);
        let turn = |turn: u8| record(&[vec![turn; 20]], vec![turn; 200]);
        append(&mut store, RecordKind::Turn, &turn(0), true).unwrap();
        assert!(store.checkpoint().unwrap());
        for number in 0..turns {
            append(&mut store, RecordKind::Turn, &turn(number), true).unwrap();
        }
        let whole = contents(&mut store).unwrap();
        let files = [FileName::Store, FileName::Log].map(|name| (name, memory.bytes(name).unwrap()));
        let image = |damaged: FileName, change: &dyn Fn(&mut Vec<u8>)| {
            let memory = Memory::default();
            for (name, bytes) in &files {
                let mut bytes = bytes.clone();
                if *name == damaged {
                    change(&mut bytes);
                }
                memory.put(*name, bytes);
            }
            let before = files.each_ref().map(|(name, _)| memory.bytes(*name));
            for is_writer in [false, true] {
                let backend = Box::new(memory.clone());
                let opened = if is_writer { Store::open(backend) } else { Store::open_read_only(backend) };
                match opened.and_then(|mut store| contents(&mut store)) {
                    Ok(state) => assert!(state == whole),
                    Err(error) => {
                        assert_eq!((error.kind, error.file), (StoreErrorKind::Damaged, damaged));
                        assert!(files.each_ref().map(|(name, _)| memory.bytes(*name)) == before, "begun over");
                    }
                }
            }
        };
        for (name, _) in &files {
            for bit in 0..8 * PAGE {
                image(*name, &|bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            }
        }
        image(FileName::Log, &|bytes| bytes[..512].fill(0));
        image(FileName::Log, &|bytes| bytes[..PAGE].fill(0));
    }
}

#[test]
fn a_log_of_another_store_or_state_is_refused() {
    let (memory, other) = (Memory::default(), Memory::default());
    for (memory, text) in [(&memory, 1), (&other, 2)] {
        let mut store = reopened(memory);
        append(&mut store, RecordKind::Turn, &record(&[], vec![text; 20]), true).unwrap();
    }
    let refused = |memory: &Memory| {
        let error = Store::open(Box::new(memory.clone())).err().unwrap();
        assert_eq!((error.kind, error.file), (StoreErrorKind::Log, FileName::Log));
    };
    let mixed = put(memory.bytes(FileName::Store).unwrap());
    mixed.put(FileName::Log, other.bytes(FileName::Log).unwrap());
    refused(&mixed);
    // A copy of the file from before does not go with a log from behind.
    let old = memory.bytes(FileName::Store).unwrap();
    let mut store = reopened(&memory);
    assert!(store.checkpoint().unwrap());
    append(&mut store, RecordKind::Turn, &record(&[], vec![3; 20]), true).unwrap();
    drop(store);
    let restored = put(old);
    restored.put(FileName::Log, memory.bytes(FileName::Log).unwrap());
    refused(&restored);
    // Nor does a log stand for a store that is gone.
    let gone = Memory::default();
    gone.put(FileName::Log, memory.bytes(FileName::Log).unwrap());
    refused(&gone);
}
