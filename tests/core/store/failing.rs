//! Each operation of a session fails in turn, once and for ever: the answer is an error, and nothing confirmed is lost.

use super::backends::{Failing, Failure};
use super::model::{Model, append, record, reopened, sound};
use recede::store::pager::PagerLimits;
use recede::store::{RecordKind, Result, Store, StoreErrorKind};
use std::io::ErrorKind;

/// Small, so that spilling, reading again and checkpoints are among the operations.
const LIMITS: PagerLimits = PagerLimits { changed: 4, cached: 2, log: 20_000, unsynced: 30_000 };

/// What a session has confirmed, and what it was about to.
struct Progress {
    now: Model,
    confirmed: Model,
}

fn session(backend: &Failing, progress: &mut Progress) -> Result<()> {
    let mut store = Store::open_within(Box::new(backend.clone()), LIMITS)?;
    for turn in 0..24_usize {
        let record = record(&[vec![1; 30], vec![2; 20]], vec![turn as u8; [40, 700, 3_000][turn % 3]]);
        let syncs = turn % 4 == 3;
        // Where it fails, the turn is not there; where it is unknown, the store is not usable.
        progress.now.records[0].push(record.clone());
        if let Err(error) = append(&mut store, RecordKind::Turn, &record, syncs) {
            if store.is_usable() {
                progress.now.records[0].pop();
                assert_eq!(store.last(RecordKind::Turn) as usize, progress.now.records[0].len());
            }
            return Err(error);
        }
        progress.confirmed = progress.now.clone();
    }
    store.mask_before(9)?;
    progress.now.masked_before = 9;
    store.sync()?;
    progress.confirmed = progress.now.clone();
    store.checkpoint()?;
    store.compact()?;
    for turn in 1..=24 {
        store.get(RecordKind::Turn, turn, true)?;
    }
    store.close()
}

fn run(fails_at: usize, failure: Failure, is_forever: bool) -> (usize, bool) {
    let backend = Failing::default();
    {
        let mut plan = backend.plan.lock().unwrap();
        plan.fails_at = fails_at;
        plan.failure = Some(failure);
        plan.is_forever = is_forever;
    }
    let mut progress = Progress { now: Model::default(), confirmed: Model::default() };
    let done = session(&backend, &mut progress);
    let operations = {
        let mut plan = backend.plan.lock().unwrap();
        plan.failure = None;
        plan.operations
    };
    if let Err(error) = &done {
        assert!(
            matches!(error.kind, StoreErrorKind::Io | StoreErrorKind::Broken),
            "operation {fails_at} {failure:?}: {error}"
        );
    }
    let mut store = reopened(&backend);
    let mut found = sound(&mut store);
    // Masking is done turn by turn; what was masked before it failed may have been committed or not.
    found.masked_before = progress.now.masked_before;
    let mut wanted = progress.confirmed.clone();
    wanted.masked_before = progress.now.masked_before;
    assert!(
        found == wanted || found == progress.now,
        "operation {fails_at} {failure:?}: {} turns, {} confirmed",
        found.records[0].len(),
        wanted.records[0].len()
    );
    append(&mut store, RecordKind::Turn, &record(&[], vec![1]), true).unwrap();
    (operations, done.is_err())
}

#[test]
fn each_operation_may_fail() {
    let (operations, _) = run(0, Failure::With(ErrorKind::Other), false);
    assert!(operations > 130, "{operations} operations");
    let mut failed = 0;
    for fails_at in 1..=operations {
        for failure in [
            Failure::With(ErrorKind::StorageFull),
            Failure::With(ErrorKind::Other),
            Failure::ShortWrite,
            Failure::DoneAndReported,
        ] {
            for is_forever in [false, true] {
                failed += usize::from(run(fails_at, failure, is_forever).1);
            }
        }
    }
    // A checkpoint that fails once is tried again, and says nothing.
    assert!(failed > operations * 6, "{failed} of {}", operations * 8);
}

/// After a checkpoint the log is cut where it has become long. What fails in that is not told, and the store goes on.
#[test]
fn a_log_that_has_become_long_may_fail_to_be_cut() {
    let (mut fails_at, mut operations) = (0, 0);
    while fails_at <= operations {
        let backend = Failing::default();
        let mut store = Store::open_within(Box::new(backend.clone()), LIMITS).unwrap();
        {
            let mut plan = backend.plan.lock().unwrap();
            plan.failure = Some(Failure::DoneAndReported);
            plan.fails_at = if fails_at == 0 { 0 } else { plan.operations + fails_at };
        }
        let before = backend.plan.lock().unwrap().operations;
        let mut confirmed = vec![];
        for length in [5 * LIMITS.log as usize, 100] {
            let is_past = !confirmed.is_empty() && backend.plan.lock().unwrap().operations >= before + fails_at;
            let record = record(&[], vec![7; length]);
            match append(&mut store, RecordKind::Message, &record, true) {
                Ok(_) => confirmed.push(record),
                Err(_) => {
                    assert!(!is_past || !store.is_usable(), "operation {fails_at} was not told, and left its mark");
                }
            }
        }
        if fails_at == 0 {
            operations = backend.plan.lock().unwrap().operations - before;
        }
        backend.plan.lock().unwrap().failure = None;
        drop(store);
        let found = sound(&mut reopened(&backend)).records[RecordKind::Message.index()].clone();
        assert!(confirmed.iter().all(|record| found.contains(record)), "operation {fails_at}");
        fails_at += 1;
    }
}

#[test]
fn a_full_disk_can_be_made_room_on() {
    let backend = Failing::default();
    let mut store = reopened(&backend);
    append(&mut store, RecordKind::Turn, &record(&[], vec![1; 10]), true).unwrap();
    append(&mut store, RecordKind::Turn, &record(&[], vec![2; 10]), false).unwrap();
    let fill = |failure| {
        let mut plan = backend.plan.lock().unwrap();
        plan.failure = failure;
        plan.fails_at = plan.operations + 1;
        plan.is_forever = true;
    };
    fill(Some(Failure::ShortWrite));
    for syncs in [true, false] {
        let error = append(&mut store, RecordKind::Turn, &record(&[], vec![3; 10]), syncs).unwrap_err();
        assert_eq!(error.source.unwrap().kind(), ErrorKind::StorageFull);
    }
    // The turn that could not be written is not there, those before it are, and so is the way on.
    assert_eq!((store.last(RecordKind::Turn), store.is_usable()), (2, true));
    store.sync().unwrap();
    fill(None);
    append(&mut store, RecordKind::Turn, &record(&[], vec![4; 10]), true).unwrap();
    drop(store);
    let last: Vec<u8> =
        sound(&mut reopened(&backend)).records[0].iter().map(|turn| turn.last.as_ref().unwrap()[0]).collect();
    assert_eq!(last, [1, 2, 4]);
}
