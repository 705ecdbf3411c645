//! Sessions of random steps against a plain list, with failing files, readers, kills and reopening among the steps.
//!
//! A short run belongs to the tests; `make fuzz` runs the long one. A case is repeated by its seed.

use super::backends::{Failing, Failure};
use super::model::{KIND, Model, append, contents, some_record, sound};
use crate::common::Random;
use recede::store::pager::PagerLimits;
use recede::store::{Record, RecordKind, Result, Store, StoreError, StoreErrorKind};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

struct Machine {
    random: Random,
    backend: Failing,
    limits: PagerLimits,
    store: Option<Store>,
    /// What the store shows, and what it shows after a kill: one of these.
    now: Model,
    after_kill: Vec<Model>,
    /// A reader, and what it saw when it was opened.
    reader: Option<(Store, Model)>,
    failed: usize,
}

impl Machine {
    fn new(seed: u64) -> Self {
        let backend = Failing::default();
        let mut random = Random::new(seed);
        // With small ones, what else comes after a thousand pages comes at once.
        let small = PagerLimits {
            changed: 1 + random.below(8),
            cached: 1 + random.below(8),
            log: 1 << (13 + random.below(6)),
            unsynced: 1 << (13 + random.below(8)),
        };
        let limits = if random.once_in(2) { small } else { PagerLimits::default() };
        Machine {
            store: Some(Store::open_within(Box::new(backend.clone()), limits).unwrap()),
            random,
            backend,
            limits,
            now: Model::default(),
            after_kill: vec![Model::default()],
            reader: None,
            failed: 0,
        }
    }

    fn store(&mut self) -> &mut Store {
        self.store.as_mut().unwrap()
    }

    fn step(&mut self) {
        let fails = self.random.once_in(4);
        if fails {
            let mut plan = self.backend.plan.lock().unwrap();
            let failures = [
                Failure::With(ErrorKind::StorageFull),
                Failure::With(ErrorKind::Other),
                Failure::ShortWrite,
                Failure::DoneAndReported,
            ];
            plan.failure = Some(*self.random.pick(&failures));
            plan.is_forever = self.random.once_in(3);
            plan.fails_at = plan.operations + 1 + self.random.below(8);
        }
        match self.random.below(26) {
            0..=9 => self.append(),
            10 | 11 => self.replace(),
            12 => self.mask(),
            13 | 14 => self.get(),
            15 | 16 => self.sync(),
            17 => {
                let done = self.store().checkpoint();
                self.committed(done.map(drop));
            }
            18 if self.random.once_in(3) => {
                let done = self.store().compact();
                self.committed(done);
            }
            19 => self.close(),
            20 => self.kill(),
            21 | 22 => self.read(),
            23 | 24 => self.change(),
            _ if self.random.once_in(6) => {
                self.calm();
                let now = sound(self.store());
                assert!(now == self.now);
            }
            _ => {}
        }
        self.calm();
        if !self.store().is_usable() {
            assert!(
                matches!(self.store().append(RecordKind::Turn, &[], b"", false), Err(error) if error.kind == StoreErrorKind::Broken)
            );
            self.kill();
        }
    }

    /// From here on nothing fails.
    fn calm(&mut self) {
        self.backend.plan.lock().unwrap().failure = None;
    }

    /// Notes a commit that was or was not confirmed.
    fn committed(&mut self, done: Result<()>) {
        match done {
            Ok(()) => self.after_kill = vec![self.now.clone()],
            Err(error) => {
                if error.kind != StoreErrorKind::Reading {
                    self.failed += 1;
                }
                self.after_kill.push(self.now.clone());
            }
        }
    }

    /// Notes a change to this: if it failed, it is there only if nobody knows.
    fn changed<T>(&mut self, done: &Result<T>, after: Model) {
        if done.is_ok() {
            self.now = after;
            self.committed(Ok(()));
            return;
        }
        self.failed += 1;
        if !self.store().is_usable() {
            self.after_kill.push(after);
        }
    }

    fn append(&mut self) {
        let kind = if self.random.once_in(4) { *self.random.pick(&KIND) } else { RecordKind::Turn };
        let record = some_record(&mut self.random);
        let syncs = self.random.once_in(4);
        let mut after = self.now.clone();
        after.records[kind.index()].push(record.clone());
        let done = append(self.store(), kind, &record, syncs);
        self.changed(&done, after);
        assert!(done.is_err() || done.is_ok_and(|id| id as usize == self.now.records[kind.index()].len()));
    }

    fn some_id(&mut self, kind: RecordKind) -> Option<u64> {
        let count = self.now.records[kind.index()].len();
        (count > 0).then(|| 1 + self.random.below(count) as u64)
    }

    fn replace(&mut self) {
        let kind = *self.random.pick(&KIND);
        let Some(id) = self.some_id(kind) else { return };
        let record = some_record(&mut self.random);
        let fields: Vec<&[u8]> = record.fields.iter().map(Vec::as_slice).collect();
        let done = self.store().replace(kind, id, &fields, record.last.as_ref().unwrap());
        assert!(*done.as_ref().unwrap_or(&true));
        let mut after = self.now.clone();
        after.records[kind.index()][id as usize - 1] = record;
        self.changed(&done, after);
    }

    /// Several changes that are one: all of them are there, or none.
    fn change(&mut self) {
        let mut after = self.now.clone();
        let mut steps = vec![];
        for _ in 0..self.random.below(6) {
            let kind = *self.random.pick(&KIND);
            let records = &mut after.records[kind.index()];
            let (new, id) = (some_record(&mut self.random), 1 + self.random.below(records.len() + 1));
            match records.get_mut(id - 1) {
                None => records.push(new.clone()),
                Some(old) if self.random.once_in(3) => old.clone_from(&new),
                Some(old) => old.fields.clone_from(&new.fields),
            }
            let last = after.records[kind.index()][id - 1].last.clone();
            steps.push((kind, id as u64, Record { last, ..new }));
        }
        let gives_up = self.random.once_in(4);
        let done = self.store().change(|changes| {
            for (kind, id, record) in &steps {
                let fields: Vec<&[u8]> = record.fields.iter().map(Vec::as_slice).collect();
                let last = record.last.as_ref().unwrap();
                let before = changes.get(*kind, *id)?;
                assert!(before.is_some() || *id == changes.last(*kind) + 1);
                match before {
                    None => assert_eq!(changes.append(*kind, &fields, last)?, *id),
                    Some(_) => assert!(changes.replace(*kind, *id, &fields, last)?),
                }
            }
            assert!(!changes.replace(RecordKind::Summary, 1 << 40, &[], &[])?);
            if gives_up { Err(StoreError::new(StoreErrorKind::ReadOnly, "given up")) } else { Ok(()) }
        });
        if gives_up {
            self.calm();
            assert!(sound(self.store()) == self.now);
        } else {
            self.changed(&done, after);
        }
    }

    fn mask(&mut self) {
        let Some(id) = self.some_id(RecordKind::Turn) else { return };
        let before = self.now.masked_before;
        let done = self.store().mask_before(id);
        self.now.masked_before = self.store().masked_before();
        if let Ok(count) = done {
            assert_eq!(self.now.masked_before, before.max(id));
            assert_eq!(count, self.now.masked_before - before);
        }
        self.committed(done.map(drop)); // some turns may have been masked before it failed
    }

    fn get(&mut self) {
        let kind = *self.random.pick(&KIND);
        let Some(id) = self.some_id(kind) else { return };
        let wants_last = !self.random.once_in(3);
        match self.store().get(kind, id, wants_last) {
            Ok(found) => {
                let wanted = self.now.records[kind.index()][id as usize - 1].clone();
                let wanted = Record { last: wanted.last.filter(|_| wants_last), ..wanted };
                assert!(found.unwrap() == wanted);
            }
            Err(_) => self.failed += 1,
        }
    }

    fn sync(&mut self) {
        let done = self.store().sync();
        self.committed(done);
    }

    fn close(&mut self) {
        let done = self.store().close();
        let is_closed = self.store().is_closed();
        assert!(is_closed || done.is_err());
        self.committed(done);
        self.calm();
        if is_closed {
            self.reopen();
            let now = sound(self.store());
            assert!(now == self.now);
        }
    }

    fn reopen(&mut self) {
        self.store = None;
        self.store = Some(Store::open_within(Box::new(self.backend.clone()), self.limits).unwrap());
    }

    fn kill(&mut self) {
        self.calm();
        self.reopen();
        let found = sound(self.store());
        assert!(self.after_kill.contains(&found));
        self.now = found;
        self.after_kill = vec![self.now.clone()];
    }

    /// A reader sees what was committed when it was opened, whatever is done meanwhile.
    fn read(&mut self) {
        self.calm();
        if let Some((mut reader, seen)) = self.reader.take() {
            assert!(sound(&mut reader) == seen);
        } else {
            let mut reader = Store::open_read_only(Box::new(self.backend.clone())).unwrap();
            let seen = contents(&mut reader).unwrap();
            assert!(self.after_kill.contains(&seen));
            self.reader = Some((reader, seen));
        }
    }
}

/// Runs the session of a seed; how many of its steps failed because of their files.
fn case(seed: u64) -> usize {
    let mut machine = Machine::new(seed);
    for _ in 0..20 + machine.random.below(200) {
        machine.step();
    }
    machine.kill();
    machine.failed
}

#[test]
fn random_sessions_hold_what_a_list_holds() {
    let failed: usize = (0..150).map(case).sum();
    assert!(failed > 300, "only {failed} steps failed");
}

/// `make fuzz`.
#[test]
#[ignore = "runs for as long as it is told"]
fn long_run() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, most) = (number("RECEDE_FUZZ_SEED").unwrap_or(1), number("RECEDE_FUZZ_CASES").unwrap_or(u64::MAX));
    let time = Duration::from_secs(number("RECEDE_FUZZ_SECONDS").unwrap_or(60));
    let start = Instant::now();
    let (mut cases, mut failed) = (0, 0);
    while cases < most && start.elapsed() < time {
        let this = seed.wrapping_mul(1 << 32) + cases;
        let done = std::panic::catch_unwind(|| case(this));
        failed += done.unwrap_or_else(|_| panic!("store: the session of seed {seed}, case {cases} went wrong"));
        cases += 1;
    }
    println!(
        "store: {cases} sessions from seed {seed} in {} s, {failed} steps failed on purpose; 0 differences",
        start.elapsed().as_secs()
    );
}
