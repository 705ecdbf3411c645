//! A session whose store fails: each operation once. The session goes on, and what was not written is written later.

use crate::common::Random;
use crate::session::{append, session, view_of};
use crate::store::backends::{Failing, Failure};
use recede::plan::SummaryInput;
use recede::policy::{Boundary, Goal, Policy};
use recede::session::{Session, TextFormat, Update};
use recede::store::pager::PagerLimits;
use recede::store::{RecordKind, Store};
use std::io::ErrorKind;

/// Small, so that most appends read and write.
const LIMITS: PagerLimits = PagerLimits { changed: 4, cached: 2, log: 20_000, unsynced: 30_000 };
const OPTIONS: &[u8] = b"options";

/// Takes a view, with a summary that fits if one is asked for; returns whether the store failed.
fn look(session: &mut Session, mut store: Option<&mut Store>) -> bool {
    match session.update_view(&SummaryInput::NotAsked, store.as_deref_mut()) {
        Ok(Update::AskSummary(..)) => {
            session.update_view(&SummaryInput::Given(b"It was done.".to_vec(), None), store).is_err()
        }
        other => other.is_err(),
    }
}

/// The session in a store, with the messages that it has not evicted or summarized appended again.
fn resumed(policy: &Policy, store: &mut Store) -> Session {
    let mut session = Session::new(policy.clone(), 0, TextFormat::Json);
    let start = session.open(store, OPTIONS, false, (16, 1 << 30)).unwrap();
    for message in start..store.last(RecordKind::Message) as usize {
        let data = store.get(RecordKind::Message, message as u64 + 1, true).unwrap().unwrap().last.unwrap();
        session.append(&data, false, None, Some(&mut *store)).unwrap();
    }
    session
}

fn view_with(session: &mut Session, store: &mut Store) -> Vec<u8> {
    let chunks = session.chunks(0, Some(store)).unwrap();
    [chunks.closed.concat(), chunks.open].concat()
}

/// Returns how often the store failed; None if it has fewer operations.
fn run(policy: &Policy, fails_at: usize) -> Option<usize> {
    let (backend, mut random) = (Failing::default(), Random::new(7));
    let messages = session(&mut random, 60);
    let mut store = Store::open_within(Box::new(backend.clone()), LIMITS).unwrap();
    let mut other = Session::new(policy.clone(), 0, TextFormat::Json);
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
        if other.len() > stored.len() {
            return Some(failed); // a late call could not be read, so the message was refused
        }
        if place % 40 == 20 {
            other.report(Some(vec![place]), None, true, None).unwrap();
            failed += usize::from(stored.report(Some(vec![place]), None, true, Some(&mut store)).is_err());
        }
        look(&mut other, None);
        failed += usize::from(look(&mut stored, Some(&mut store)));
        assert_eq!(stored.counts(), other.counts(), "operation {fails_at}, message {place}");
    }
    let is_over = {
        let mut plan = backend.plan.lock().unwrap();
        plan.failure = None;
        plan.operations < plan.fails_at
    };
    let last = r#"{"role":"user","content":"Go on."}"#;
    append(&mut other, last);
    stored.append(last.as_bytes(), false, None, Some(&mut store)).unwrap();
    look(&mut other, None);
    look(&mut stored, Some(&mut store));
    store.close().unwrap();
    let mut store = Store::open(Box::new(backend)).unwrap();
    assert_eq!(store.last(RecordKind::Message) as usize, other.len(), "operation {fails_at}");
    let mut again = resumed(policy, &mut store);
    look(&mut again, Some(&mut store));
    assert_eq!(view_with(&mut again, &mut store), view_of(&mut other), "operation {fails_at}");
    assert_eq!(again.cold_requests(), other.cold_requests(), "operation {fails_at}");
    assert_eq!(again.reports().sums, other.reports().sums, "operation {fails_at}");
    assert_eq!(again.totals(), other.totals(), "operation {fails_at}");
    (!is_over).then_some(failed)
}

#[test]
fn what_a_store_could_not_take_is_written_later() {
    let boundary = Boundary::BreakEven { read: 0.1, write: 1.25 };
    let masked = Policy { goal: Goal::Mask, keep_results: Some(3), boundary, is_session: true, ..Policy::default() };
    let reduced = Policy { goal: Goal::Reduce, max_cost: Some(1_500), ask_summary: true, ..masked.clone() };
    for policy in [masked, reduced] {
        let failed: usize = (1..).map_while(|fails_at| run(&policy, fails_at)).sum();
        assert!(failed > 20, "{failed}");
    }
}

/// A rewind truncates the messages, and then writes what was reported.
#[test]
fn of_a_rewind_that_was_cut_short_no_later_reports_are_loaded() {
    let policy = Policy { goal: Goal::Mask, is_session: true, ..Policy::default() };
    let mut store = Store::open(Box::new(Failing::default())).unwrap();
    let mut session = resumed(&policy, &mut store);
    for _ in 0..3 {
        session.append(br#"{"role":"user","content":"Go on."}"#, false, None, Some(&mut store)).unwrap();
    }
    session.report(None, None, true, Some(&mut store)).unwrap();
    store.change(|changes| changes.truncate(RecordKind::Message, 1)).unwrap();
    let snapshot = Session::snapshot_of(&mut store).unwrap().unwrap();
    assert_eq!(snapshot.reports.cold.len(), 1);
    let mut loaded = Session::new(policy, 0, TextFormat::Json);
    loaded.load(&mut store, snapshot, false).unwrap();
    assert!(loaded.reports().cold.is_empty());
}
