//! A loss of power at every moment of a session, with every way in which the writes since the last sync may have reached
//! the disk: reopening gives the state of a commit since that sync, never one between. The end of the process loses nothing.

use super::model::{Model, append, contents, record, reopened};
use super::recording::{Disk, Event, Recording, Sync};
use recede::store::pager::PagerLimits;
use recede::store::{Record, RecordKind, Store};
use std::sync::atomic::Ordering;

/// With these, a session syncs and makes checkpoints by itself.
const SMALL: PagerLimits = PagerLimits { changed: 512, cached: 1_024, log: 30_000, unsynced: 40_000 };

/// A session, and the states that it commits.
struct Session {
    backend: Recording,
    limits: PagerLimits,
    store: Option<Store>,
    now: Model,
    states: Vec<Model>,
}

impl Session {
    fn new(without: &[Sync], limits: PagerLimits) -> Self {
        let backend = Recording::new(without.iter().copied());
        let now = Model::default();
        let mut session = Session { backend, limits, store: None, states: vec![now.clone()], now };
        session.open();
        session
    }

    /// What an open store shows is on disk.
    fn open(&mut self) {
        self.store = None;
        let mut store = Store::open_within(Box::new(self.backend.clone()), self.limits).unwrap();
        assert!(contents(&mut store).unwrap() == self.now);
        self.store = Some(store);
        self.backend.note(Event::Confirmed(self.states.len() - 1));
    }

    /// Makes a change, after which the state of the session is the current one.
    fn write(&mut self, work: impl FnOnce(&mut Store)) {
        self.states.push(self.now.clone());
        self.backend.note(Event::Begun(self.states.len() - 1));
        work(self.store.as_mut().unwrap());
    }

    fn append(&mut self, lengths: &[usize]) {
        for &length in lengths {
            let turns = self.now.records[0].len();
            let text = |salt: usize, length: usize| (0..length).map(|at| (at / 3 + turns * 7 + salt) as u8).collect();
            let record = record(&[text(1, 40), text(2, length / 4)], text(3, length));
            self.now.records[0].push(record.clone());
            self.write(|store| _ = append(store, RecordKind::Turn, &record, false).unwrap());
        }
    }

    /// Does something after which all that was done is confirmed.
    fn confirm<T>(&mut self, work: impl FnOnce(&mut Store) -> T) -> T {
        let done = work(self.store.as_mut().unwrap());
        self.backend.note(Event::Confirmed(self.states.len() - 1));
        done
    }

    fn sync(&mut self) {
        self.confirm(|store| store.sync().unwrap());
    }

    fn mask_before(&mut self, turn: u64) {
        self.now.masked_before = turn;
        self.write(|store| _ = store.mask_before(turn).unwrap());
    }

    fn set_session(&mut self, length: usize) {
        let state = Record { fields: vec![], last: Some(vec![length as u8; length]) };
        let records = &mut self.now.records[3];
        let is_new = records.is_empty();
        *records = vec![state.clone()];
        self.write(|store| {
            if is_new {
                append(store, RecordKind::Session, &state, false).unwrap();
            } else {
                assert!(store.replace(RecordKind::Session, 1, &[], state.last.as_ref().unwrap()).unwrap());
            }
        });
    }

    /// The turn that was appended right after this state.
    fn appended_to(&self, state: &Model) -> Option<&Record> {
        let at = self.states.iter().position(|other| other == state)?;
        self.states.get(at + 1)?.records[0].get(state.records[0].len())
    }

    fn close_and_open(&mut self) {
        self.confirm(|store| store.close().unwrap());
        self.open();
    }
}

/// Syncs that do not happen, in parts of a session.
#[derive(Clone, Copy, Default)]
struct Without<'a> {
    always: &'a [Sync],
    at_a_checkpoint: &'a [Sync],
    when_compacted: &'a [Sync],
}

/// A session in which every kind of write comes before and after every kind of sync.
fn session(without: Without, limits: PagerLimits) -> Session {
    let mut session = Session::new(without.always, limits);
    for length in [10, 700, 5_000] {
        session.append(&[length]);
        session.sync();
    }
    session.append(&[100, 100, 9_000, 400, 400, 900]);
    session.set_session(50);
    session.sync();
    session.backend.without.lock().unwrap().extend(without.at_a_checkpoint);
    session.append(&[200]);
    assert!(session.confirm(|store| store.checkpoint().unwrap()));
    session.backend.without.lock().unwrap().retain(|sync| !without.at_a_checkpoint.contains(sync));
    for lengths in [&[300, 20][..], &[800], &[60, 60, 60, 4_100]] {
        session.append(lengths);
        session.sync();
    }
    session.mask_before(5);
    session.set_session(6_000);
    session.sync();
    session.close_and_open();
    session.append(&[500]);
    session.sync();
    session.append(&[9, 9]);
    session.open(); // as after a kill
    // A commit that is written, and whose sync fails: it can be read, but will not be on disk.
    session.append(&[700]);
    session.backend.fails.store(true, Ordering::SeqCst);
    let store = session.store.as_mut().unwrap();
    assert!(store.sync().is_err() && !store.is_usable());
    session.open();
    session.append(&[20]);
    session.sync();
    assert!(session.confirm(|store| store.checkpoint().unwrap()));
    session.append(&[600, 30]);
    session.sync();
    session.set_session(10);
    session.backend.without.lock().unwrap().extend(without.when_compacted);
    session.confirm(|store| store.compact().unwrap());
    session.append(&[333]);
    session.sync();
    session.close_and_open();
    session.append(&[20]);
    session.confirm(|store| store.close().unwrap());
    session
}

struct Tally {
    images: usize,
    wrong: Vec<String>,
}

/// Loses power after every event, in every way.
fn lose_power(session: &Session, most_wrong: usize) -> Tally {
    let mut disk = Disk::default();
    let (mut begun, mut confirmed) = (0, 0);
    let mut tally = Tally { images: 0, wrong: vec![] };
    let events = session.backend.events.lock().unwrap().clone();
    for (at, event) in events.iter().enumerate() {
        disk.add(event);
        match event {
            Event::Begun(state) => begun = *state,
            Event::Confirmed(state) => confirmed = *state,
            _ => {}
        }
        for reach in disk.reaches() {
            for renamed in 0..=disk.loose_names() {
                let image = disk.image(reach, renamed);
                tally.images += 1;
                let found = Store::open(Box::new(image.clone())).and_then(|mut store| {
                    let found = contents(&mut store)?;
                    if let Some(next) = session.appended_to(&found) {
                        append(&mut store, RecordKind::Turn, next, false)?;
                    }
                    Ok(found)
                });
                let is_right =
                    found.as_ref().is_ok_and(|found| session.states[confirmed..=begun.max(confirmed)].contains(found));
                if is_right {
                    // The same turn once more, and no later one of those that were cut off.
                    let next = found.as_ref().ok().and_then(|found| session.appended_to(found));
                    let turns = found.as_ref().map_or(0, |found| found.records[0].len()) + usize::from(next.is_some());
                    assert_eq!(reopened(&image).last(RecordKind::Turn) as usize, turns, "event {at} {reach:?}");
                }
                if !is_right {
                    let found = found.map(|found| found.records.map(|records| records.len()));
                    tally
                        .wrong
                        .push(format!("event {at} {reach:?}, {renamed} renamed, {confirmed}..={begun}: {found:?}"));
                    if tally.wrong.len() == most_wrong {
                        return tally;
                    }
                }
            }
        }
    }
    tally
}

#[test]
fn a_loss_of_power_leaves_the_state_of_a_commit_since_the_last_sync() {
    for limits in [PagerLimits::default(), SMALL] {
        let session = session(Without::default(), limits);
        let events = session.backend.events.lock().unwrap().clone();
        let is_ahead =
            |event: &&Event| matches!(event, Event::Wrote(_, _, bytes) if bytes.iter().all(|byte| *byte == 0));
        assert!(events.iter().filter(is_ahead).count() >= 5, "logs grow ahead of commits");
        let tally = lose_power(&session, 20);
        assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
        assert!(tally.images > 8_000, "{} images", tally.images);
    }
}

#[test]
fn each_sync_is_needed() {
    for sync in [Sync::New, Sync::Names, Sync::LogBlock, Sync::Commit, Sync::Store, Sync::Renewed] {
        let without = Without { always: &[sync], ..Without::default() };
        let tally = lose_power(&session(without, PagerLimits::default()), 1);
        assert!(!tally.wrong.is_empty(), "nothing is lost without the sync of {sync:?}: {} images", tally.images);
    }
    let without = Without { at_a_checkpoint: &[Sync::Commit], ..Without::default() };
    let tally = lose_power(&session(without, PagerLimits::default()), 1);
    assert!(!tally.wrong.is_empty(), "nothing is lost without the sync before a checkpoint");
    for sync in [Sync::New, Sync::Names] {
        let without = Without { when_compacted: &[sync], ..Without::default() };
        let tally = lose_power(&session(without, PagerLimits::default()), 1);
        assert!(!tally.wrong.is_empty(), "nothing is lost when compacted without the sync of {sync:?}");
    }
}
