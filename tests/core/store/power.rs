//! A loss of power at every moment of a session, with every way in which the writes since the last sync may have reached
//! the disk: reopening gives the state before or after the commit, never one between.

use super::model::{Model, append, contents, record, reopened};
use super::recording::{Disk, Event, Recording, Sync};
use recede::store::{Record, RecordKind, Store};
use std::sync::atomic::Ordering;

/// A session, and the states that it commits.
struct Session {
    backend: Recording,
    store: Store,
    now: Model,
    states: Vec<Model>,
}

impl Session {
    fn new(without: &[Sync]) -> Self {
        let backend = Recording::new(without.iter().copied());
        let store = reopened(&backend);
        let session = Session { store, now: Model::default(), states: vec![Model::default()], backend };
        session.backend.note(Event::Confirmed(0));
        session
    }

    fn append(&mut self, lengths: &[usize]) {
        for &length in lengths {
            let turns = self.now.records[0].len();
            let text = |salt: usize, length: usize| (0..length).map(|at| (at / 3 + turns * 7 + salt) as u8).collect();
            let record = record(&[text(1, 40), text(2, length / 4)], text(3, length));
            append(&mut self.store, RecordKind::Turn, &record, false).unwrap();
            self.now.records[0].push(record);
        }
    }

    /// Does something after which all that was done is confirmed.
    fn confirm<T>(&mut self, work: impl FnOnce(&mut Store) -> T) -> T {
        self.states.push(self.now.clone());
        let state = self.states.len() - 1;
        self.backend.note(Event::Begun(state));
        let done = work(&mut self.store);
        self.backend.note(Event::Confirmed(state));
        done
    }

    fn sync(&mut self) {
        self.confirm(|store| store.sync().unwrap());
    }

    fn mask_before(&mut self, turn: u64) {
        self.store.mask_before(turn).unwrap();
        self.now.masked_before = turn;
    }

    fn set_session(&mut self, length: usize) {
        let state = Record { fields: vec![], last: Some(vec![length as u8; length]) };
        if self.now.records[3].is_empty() {
            append(&mut self.store, RecordKind::Session, &state, false).unwrap();
            self.now.records[3].push(state);
        } else {
            assert!(self.store.replace(RecordKind::Session, 1, &[], state.last.as_ref().unwrap()).unwrap());
            self.now.records[3][0] = state;
        }
    }

    fn close_and_open(&mut self) {
        self.confirm(|store| store.close().unwrap());
        let nothing = reopened(&recede::store::memory::Memory::default());
        drop(std::mem::replace(&mut self.store, nothing));
        self.store = reopened(&self.backend);
    }

    /// The process ends here; what it had not committed is gone.
    fn kill(&mut self) {
        let nothing = reopened(&recede::store::memory::Memory::default());
        drop(std::mem::replace(&mut self.store, nothing));
        self.store = reopened(&self.backend);
        self.now = contents(&mut self.store).unwrap();
        // What an open store shows stays there.
        self.states.push(self.now.clone());
        self.backend.note(Event::Begun(self.states.len() - 1));
        self.backend.note(Event::Confirmed(self.states.len() - 1));
    }
}

/// A session in which every kind of write comes before and after every kind of sync. Of these syncs it has none, or none
/// from compacting on.
fn session(without: &[Sync], when_compacted: &[Sync]) -> Session {
    let mut session = Session::new(without);
    for length in [10, 700, 5_000] {
        session.append(&[length]);
        session.sync();
    }
    session.append(&[100, 100, 9_000, 400, 400, 900]);
    session.set_session(50);
    session.sync();
    assert!(session.confirm(|store| store.checkpoint().unwrap()));
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
    session.kill();
    // A commit that is written, and whose sync fails: it can be read, but will not be on disk.
    session.append(&[700]);
    session.states.push(session.now.clone());
    session.backend.note(Event::Begun(session.states.len() - 1));
    session.backend.fails.store(true, Ordering::SeqCst);
    assert!(session.store.sync().is_err() && !session.store.is_usable());
    session.kill();
    session.append(&[20]);
    session.sync();
    assert!(session.confirm(|store| store.checkpoint().unwrap()));
    session.append(&[600, 30]);
    session.sync();
    session.set_session(10);
    session.backend.without.lock().unwrap().extend(when_compacted);
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
                let found = Store::open(Box::new(image)).and_then(|mut store| contents(&mut store));
                let is_right = match &found {
                    Ok(found) => session.states[confirmed..=begun.max(confirmed)].contains(found),
                    Err(_) => false,
                };
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
fn a_loss_of_power_leaves_the_state_before_or_after_a_commit() {
    let session = session(&[], &[]);
    let tally = lose_power(&session, 20);
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    assert!(tally.images > 4_000, "{} images", tally.images);
}

#[test]
fn each_sync_is_needed() {
    for sync in [Sync::New, Sync::Names, Sync::LogBlock, Sync::Commit, Sync::Store, Sync::Renewed] {
        let tally = lose_power(&session(&[sync], &[]), 1);
        assert!(!tally.wrong.is_empty(), "nothing is lost without the sync of {sync:?}: {} images", tally.images);
    }
    for sync in [Sync::New, Sync::Names] {
        let tally = lose_power(&session(&[], &[sync]), 1);
        assert!(!tally.wrong.is_empty(), "nothing is lost when compacted without the sync of {sync:?}");
    }
}
