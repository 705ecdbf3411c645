//! What a store must hold: a plain list, and the check that a store holds just that.

use crate::common::Random;
use recede::store::file::Backend;
use recede::store::{KINDS, Record, RecordKind, Store};

pub const KIND: [RecordKind; KINDS] = RecordKind::ALL;

/// The records by kind, in their order, and where masked turns end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub records: [Vec<Record>; KINDS],
    pub masked_before: u64,
}

impl Default for Model {
    fn default() -> Self {
        Model { records: Default::default(), masked_before: 1 }
    }
}

pub fn record(fields: &[Vec<u8>], last: Vec<u8>) -> Record {
    Record { fields: fields.to_vec(), last: Some(last) }
}

/// Fields of some length: mostly short, sometimes around the sizes where the form of a record changes.
pub fn some_record(random: &mut Random) -> Record {
    let length = |random: &mut Random| match random.below(8) {
        0 => 0,
        1 => 960 + random.below(60),
        2 => 4_000 + random.below(200),
        3 if random.once_in(8) => random.below(40_000),
        _ => random.below(300),
    };
    let bytes = |random: &mut Random| {
        let (length, first) = (length(random), random.next() as u8);
        (0..length).map(|index| first.wrapping_add((index / 7) as u8)).collect::<Vec<u8>>()
    };
    let fields: Vec<Vec<u8>> = (0..random.below(4)).map(|_| bytes(random)).collect();
    record(&fields, bytes(random))
}

pub fn append(store: &mut Store, kind: RecordKind, record: &Record, syncs: bool) -> recede::store::Result<u64> {
    let fields: Vec<&[u8]> = record.fields.iter().map(Vec::as_slice).collect();
    store.append(kind, &fields, record.last.as_ref().unwrap(), syncs)
}

/// What a store holds, all of it read.
pub fn contents(store: &mut Store) -> recede::store::Result<Model> {
    let mut model = Model { masked_before: store.masked_before(), ..Model::default() };
    for kind in KIND {
        for id in 1..=store.last(kind) {
            model.records[kind.index()].push(store.get(kind, id, true)?.unwrap());
        }
    }
    Ok(model)
}

/// The contents, of a store that has no fault.
pub fn sound(store: &mut Store) -> Model {
    let report = store.verify().unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    contents(store).unwrap()
}

pub fn reopened(backend: &(impl Backend + Clone + 'static)) -> Store {
    Store::open(Box::new(backend.clone())).unwrap()
}
