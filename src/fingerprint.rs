//! A keyed hash of what messages say, by which texts that tell of them are found again. It has the speed of memory, and nobody who does not
//! know its key can make two histories that have the same.

/// Bytes of a fingerprint.
const BYTES: usize = 16;

/// Odd, and with as many ones as zeros.
const CONSTANTS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

pub(crate) type Digest = [u8; BYTES];

/// What was added so far.
#[derive(Debug, Clone)]
pub struct Fingerprint {
    lanes: [u64; 2],
    keys: [u64; 2],
}

impl Fingerprint {
    pub(crate) fn keyed(key: &[u8]) -> Self {
        let mut begun = Fingerprint { lanes: CONSTANTS, keys: CONSTANTS };
        begun.add(key);
        begun.keys = begun.lanes;
        begun.add(key);
        begun
    }

    /// Adds a text, whose length separates it from the next one.
    pub(crate) fn add(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        let (whole, rest) = text.as_chunks::<BYTES>();
        for chunk in whole {
            self.chunk(*chunk);
        }
        if !rest.is_empty() {
            let mut last = [0; BYTES];
            last[..rest.len()].copy_from_slice(rest);
            self.chunk(last);
        }
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.words(number, !number);
    }

    pub(crate) fn number_128(&mut self, number: u128) {
        self.words(number as u64, (number >> 64) as u64);
    }

    fn chunk(&mut self, chunk: [u8; BYTES]) {
        self.number_128(u128::from_le_bytes(chunk));
    }

    #[inline]
    fn words(&mut self, one: u64, other: u64) {
        let [first, second] = self.lanes;
        self.lanes = [folded(first ^ one, other ^ self.keys[0]), folded(second ^ other, one ^ self.keys[1])];
    }

    pub(crate) fn digest(&self) -> Digest {
        let [first, second] = self.lanes;
        let ends = [folded(first ^ self.keys[1], second), folded(second ^ self.keys[0], first)];
        let whole = u128::from(ends[0]) << 64 | u128::from(ends[1]);
        whole.to_le_bytes()
    }
}

/// Both halves of a product.
#[inline]
fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}
