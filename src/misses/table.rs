//! The table of grams: open addressing, and a filter of one bit for each of many grams, since most that are looked up are not
//! in it.

const LEAST_BITS: u32 = 10;
/// Bits of the filter for each place of the table: a power of two.
const FILTER_BITS: u32 = 3;

/// The numbers of grams, in the order in which they came.
pub(super) struct Table {
    /// Fingerprints; 0 where there is none.
    keys: Vec<u64>,
    numbers: Vec<u32>,
    filter: Vec<u64>,
    count: u32,
    bits: u32,
}

impl Table {
    /// Makes a table with room for this many different grams.
    pub(crate) fn with_room(grams: usize) -> Self {
        Table::of((2 * grams).next_power_of_two().ilog2().max(LEAST_BITS))
    }

    fn of(bits: u32) -> Self {
        let filter = vec![0; 1 << (bits + FILTER_BITS - 6)];
        Table { keys: vec![0; 1 << bits], numbers: vec![0; 1 << bits], filter, count: 0, bits }
    }

    /// How many different grams there are.
    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    /// The number of a gram, which is added if it is new.
    pub(crate) fn number(&mut self, gram: u64) -> u32 {
        let place = self.place(gram);
        if self.keys[place] != 0 {
            return self.numbers[place];
        }
        self.put(place, gram, self.count);
        self.count += 1;
        if self.len() * 2 > self.keys.len() {
            self.grow();
        }
        self.count - 1
    }

    /// The number of a gram that was added.
    pub(crate) fn find(&self, gram: u64) -> Option<u32> {
        let (word, bit) = self.filter_bit(gram);
        if self.filter[word] & bit == 0 {
            return None;
        }
        let place = self.place(gram);
        (self.keys[place] != 0).then(|| self.numbers[place])
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Table::of(self.bits + 1);
        for (gram, number) in self.keys.iter().zip(&self.numbers).filter(|(gram, _)| **gram != 0) {
            larger.put(larger.place(*gram), *gram, *number);
        }
        larger.count = self.count;
        *self = larger;
    }

    fn put(&mut self, place: usize, gram: u64, number: u32) {
        (self.keys[place], self.numbers[place]) = (gram, number);
        let (word, bit) = self.filter_bit(gram);
        self.filter[word] |= bit;
    }

    fn filter_bit(&self, gram: u64) -> (usize, u64) {
        let hash = gram >> (64 - self.bits - FILTER_BITS);
        ((hash / 64) as usize, 1 << (hash % 64))
    }

    /// The place of a gram, or the place where it would be.
    fn place(&self, gram: u64) -> usize {
        let mut place = (gram >> (64 - self.bits)) as usize;
        while self.keys[place] != 0 && self.keys[place] != gram {
            place = (place + 1) & (self.keys.len() - 1);
        }
        place
    }
}
