//! A session whose store fails: each operation once. The session goes on, and what was not written is written later.
//! What events a file may hold is tested in `test_stored_histories.py`.

use crate::common::{Random, published};
use crate::session::{append, session, view_of};
use crate::store::backends::{Failing, Failure};
use recede::plan::SummaryInput;
use recede::policy::{Boundary, CachePrices, Goal, Policy};
use recede::session::{Counted, Failure as SessionFailure, Session, Update};
use recede::store::file::FileName;
use recede::store::memory::Memory;
use recede::store::pager::PagerLimits;
use recede::store::{RecordKind, Store};
use std::io::ErrorKind;

/// Small, so that most appends read and write.
const LIMITS: PagerLimits = PagerLimits { changed: 4, cached: 2, log: 20_000, unsynced: 30_000 };
const OPTIONS: &[u8] = b"options";
const GO_ON: &str = r#"{"role":"user","content":"Go on."}"#;

/// Takes a view, with a summary that fits if one is asked for, or with none if `fails`; returns whether the store failed.
fn look(session: &mut Session, mut store: Option<&mut Store>, fails: bool) -> bool {
    let given = if fails { SummaryInput::Failed } else { SummaryInput::Given(b"It was done.".to_vec(), None) };
    match session.update_view(&SummaryInput::NotAsked, store.as_deref_mut()) {
        Ok(Update::AskSummary(..)) => session.update_view(&given, store).is_err(),
        other => other.is_err(),
    }
}

/// The session in a store, with its messages appended again.
fn resumed(policy: &Policy, store: &mut Store) -> Session {
    let mut session = Session::new(policy.clone(), 0).calibrating();
    let known = session.open(store, OPTIONS).unwrap();
    for message in 1..=known {
        let data = store.get(RecordKind::Message, message as u64, true).unwrap().unwrap().last.unwrap();
        session.append(&data, false, None, Some(&mut *store)).unwrap();
    }
    session
}

/// What a user sees of two sessions is the same.
fn assert_equal(one: &mut Session, other: &mut Session, at: &str) {
    assert_eq!(String::from_utf8_lossy(&view_of(one)), String::from_utf8_lossy(&view_of(other)), "{at}");
    assert_eq!(one.counts(), other.counts(), "{at}");
    assert_eq!(one.moves_from(0), other.moves_from(0), "{at}");
    assert_eq!(one.cold_requests(), other.cold_requests(), "{at}");
    assert_eq!(one.sums(), other.sums(), "{at}");
    assert_eq!(one.attempts(), other.attempts(), "{at}");
    assert_eq!(one.totals(), other.totals(), "{at}");
}

fn masked() -> Policy {
    let boundary = Boundary::BreakEven(CachePrices { read: 0.1, write: 1.25 });
    policy!(published(); goal = Goal::Mask, keep.messages = None, keep.results = 3, terms.boundary = boundary)
}

/// With a limit, and a summarizer.
fn reduced() -> Policy {
    let (max_cost, fill_millionths) = (Some(1_500), Some(125_000));
    policy!(
        masked();
        goal = Goal::Reduce,
        limit.max = max_cost,
        limit.is_kept = true,
        limit.fill = fill_millionths,
        limit.asks_summary = true,
    )
}

/// Returns how often the store failed; None if it has fewer operations.
fn run(policy: &Policy, fails_at: usize) -> Option<usize> {
    let (backend, mut random) = (Failing::default(), Random::new(7));
    let messages = session(&mut random, 60);
    let mut store = Store::open_within(Box::new(backend.clone()), LIMITS).unwrap();
    let mut other = Session::new(policy.clone(), 0).calibrating();
    let mut stored = resumed(policy, &mut store);
    {
        let mut plan = backend.plan.lock().unwrap();
        (plan.fails_at, plan.failure) = (plan.operations + fails_at, Some(Failure::With(ErrorKind::StorageFull)));
    }
    let mut failed = 0;
    for (place, message) in messages.iter().enumerate() {
        append(&mut other, message);
        failed += usize::from(stored.append(message.as_bytes(), false, None, Some(&mut store)).is_err());
        if !store.is_usable() {
            return Some(failed); // its log is damaged: it must be opened again
        }
        if place % 40 == 20 {
            let growth = (100 * place, 30 * place);
            let (sums, counted) = (Some(vec![place]), Some(Counted { input: 900 * place, view: 400 * place, growth }));
            other.report(sums.clone(), counted, true, None).unwrap();
            failed += usize::from(stored.report(sums, counted, true, Some(&mut store)).is_err());
        }
        if place % 60 == 50 {
            let before = other.len() - random.below(9);
            if stored.rewind(before, Some(&mut store)).is_err() {
                failed += 1;
                assert_eq!(stored.len(), other.len(), "a rewind that fails changes nothing");
                stored.rewind(before, Some(&mut store)).unwrap();
            }
            other.rewind(before, None).unwrap();
        }
        let fails = place % 3 == 0;
        look(&mut other, None, fails);
        failed += usize::from(look(&mut stored, Some(&mut store), fails));
        assert_eq!(stored.counts(), other.counts(), "operation {fails_at}, message {place}");
    }
    let is_over = {
        let mut plan = backend.plan.lock().unwrap();
        plan.failure = None;
        plan.operations < plan.fails_at
    };
    append(&mut other, GO_ON);
    stored.append(GO_ON.as_bytes(), false, None, Some(&mut store)).unwrap();
    look(&mut other, None, false);
    look(&mut stored, Some(&mut store), false);
    store.close().unwrap();
    let mut store = Store::open(Box::new(backend)).unwrap();
    assert_eq!(store.last(RecordKind::Message) as usize, other.len(), "operation {fails_at}");
    let mut again = resumed(policy, &mut store);
    look(&mut again, Some(&mut store), false);
    assert_equal(&mut again, &mut other, &format!("operation {fails_at}"));
    (!is_over).then_some(failed)
}

#[test]
fn what_a_store_could_not_take_is_written_later() {
    for policy in [masked(), reduced()] {
        let failed: usize = (1..).map_while(|fails_at| run(&policy, fails_at)).sum();
        assert!(failed > 20, "{failed}");
    }
}

/// A store with some messages and one event of each kind, and its session.
fn with_events() -> (Memory, Session) {
    let files = Memory::default();
    let mut store = Store::open(Box::new(files.clone())).unwrap();
    let mut stored = resumed(&reduced(), &mut store);
    for (place, message) in session(&mut Random::new(7), 40).iter().enumerate() {
        stored.append(message.as_bytes(), false, None, Some(&mut store)).unwrap();
        look(&mut stored, Some(&mut store), place < 40);
    }
    let counted = Counted { input: 9_000, view: 4_000, growth: (3_000, 1_000) };
    stored.report(Some(vec![1, 2, 3]), Some(counted), true, Some(&mut store)).unwrap();
    store.close().unwrap();
    (files, stored)
}

/// A saved session is the same log in another store, as far as it is saved.
#[test]
fn what_is_saved_is_the_session_of_the_first_messages() {
    let (files, stored) = with_events();
    for messages in (0..=stored.len()).step_by(9) {
        let saved = Memory::default();
        let mut target = Store::open(Box::new(saved.clone())).unwrap();
        stored.save(&mut target, OPTIONS, messages).unwrap();
        assert_eq!(Session::stored_options(&mut target).unwrap().as_deref(), Some(OPTIONS));
        let mut loaded = resumed(&reduced(), &mut target);
        let mut other = resumed(&reduced(), &mut Store::open(Box::new(copy_of(&files))).unwrap());
        other.rewind(messages, None).unwrap_err(); // its store is wanted
        let mut store = Store::open(Box::new(copy_of(&files))).unwrap();
        other.rewind(messages, Some(&mut store)).unwrap();
        look(&mut loaded, Some(&mut target), false);
        look(&mut other, Some(&mut store), false);
        assert_equal(&mut loaded, &mut other, &format!("{messages} messages"));
    }
}

fn copy_of(files: &Memory) -> Memory {
    let copy = Memory::default();
    copy.put(FileName::Store, files.bytes(FileName::Store).unwrap());
    copy
}

#[test]
fn what_is_refused_changes_neither_session_nor_store() {
    let mut store = Store::open(Box::new(Memory::default())).unwrap();
    let (mut one, mut other) = (resumed(&reduced(), &mut store), resumed(&reduced(), &mut store));
    for message in session(&mut Random::new(7), 40) {
        one.append(message.as_bytes(), false, None, Some(&mut store)).unwrap();
        look(&mut one, Some(&mut store), false);
    }
    let mut fork = one.fork();
    let (before, stored) = (view_of(&mut one), store.last(RecordKind::Message));
    for malformed in ["", "{", "1", "[]", r#"{"role":"user","role":"user"}"#] {
        let refused = one.append(malformed.as_bytes(), false, None, Some(&mut store));
        assert!(matches!(refused, Err(SessionFailure::Message(_))), "{malformed}");
    }
    let closed = [one.append(GO_ON.as_bytes(), false, None, None), one.rewind(3, None)];
    assert!(closed.iter().all(|refused| matches!(refused, Err(SessionFailure::Closed))), "{closed:?}");
    let refused = [
        other.append(GO_ON.as_bytes(), false, None, Some(&mut store)),
        other.report(None, None, true, Some(&mut store)),
    ];
    assert!(refused.iter().all(|refused| matches!(refused, Err(SessionFailure::OtherWriter))), "{refused:?}");
    assert_eq!((one.len(), other.len(), store.last(RecordKind::Message)), (stored as usize, 0, stored));
    look(&mut one, Some(&mut store), false);
    assert_eq!(view_of(&mut one), before);
    let mut again = resumed(&reduced(), &mut store);
    look(&mut again, Some(&mut store), true); // its summary is in the store, so that none fails
    assert_equal(&mut again, &mut fork, "resumed");
    // Of a session and its fork the first writes, and the other one is refused.
    one.append(GO_ON.as_bytes(), false, None, Some(&mut store)).unwrap();
    let refused = fork.append(GO_ON.as_bytes(), false, None, Some(&mut store));
    assert!(matches!(refused, Err(SessionFailure::OtherWriter)) && fork.len() == stored as usize);
}
