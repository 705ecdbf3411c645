//! Numbers as bytes, little-endian.

use std::iter::from_fn;

/// Above every real number of a session; sums of smaller numbers do not overflow.
const LARGEST: usize = 1 << 48;

/// The value that an untrusted number is taken for; None refuses it.
pub type Limit = fn(usize) -> Option<usize>;
pub const REFUSED: Limit = |number| (number < LARGEST).then_some(number);

/// Bytes that are read, and the limit of their numbers.
pub struct Encoded<'a>(&'a [u8], Limit);

/// A type that is written as numbers.
pub trait Numbers: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// Reads the next one; None if that is incomplete or refused.
    fn take(from: &mut Encoded) -> Option<Self>;

    fn encoded(&self) -> Vec<u8> {
        let mut out = vec![];
        self.put(&mut out);
        out
    }

    /// Decodes all of the bytes.
    fn decoded(bytes: &[u8], limit: Limit) -> Option<Self> {
        let mut from = Encoded(bytes, limit);
        Self::take(&mut from).filter(|_| from.0.is_empty())
    }

    /// Decodes the start of the bytes.
    fn first(bytes: &[u8], limit: Limit) -> impl Iterator<Item = Self> {
        let mut from = Encoded(bytes, limit);
        from_fn(move || Self::take(&mut from))
    }
}

macro_rules! number {
    ($($type:ty: $bytes:ty, $given:expr, $taken:expr;)+) => {$(
        impl Numbers for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let given: fn($type) -> $bytes = $given;
                out.extend_from_slice(&given(*self).to_le_bytes());
            }

            fn take(from: &mut Encoded) -> Option<Self> {
                let (bytes, rest) = from.0.split_first_chunk()?;
                from.0 = rest;
                let taken: fn($bytes, Limit) -> Option<$type> = $taken;
                taken(<$bytes>::from_le_bytes(*bytes), from.1)
            }
        }
    )+};
}

number! {
    u32: u32, |number| number, |number, _| Some(number);
    u64: u64, |number| number, |number, _| Some(number);
    usize: u64, |number| number as u64, |number, limit| limit(number as usize);
    bool: u64, u64::from, |number, limit| Some(limit(number as usize)? == 1);
    // One more, or 0 for none.
    Option<usize>: u64, |number| number.map_or(0, |number| number as u64 + 1),
        |number, limit| Some(limit(number as usize)?.checked_sub(1));
}

impl<A: Numbers, B: Numbers> Numbers for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut Encoded) -> Option<Self> {
        Some((A::take(from)?, B::take(from)?))
    }
}

impl<T: Numbers, const N: usize> Numbers for [T; N] {
    fn put(&self, out: &mut Vec<u8>) {
        for one in self {
            one.put(out);
        }
    }

    fn take(from: &mut Encoded) -> Option<Self> {
        (0..N).map(|_| T::take(from)).collect::<Option<Vec<T>>>()?.try_into().ok()
    }
}

impl<T: Numbers> Numbers for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        for one in self {
            one.put(out);
        }
    }

    fn take(from: &mut Encoded) -> Option<Self> {
        from_fn(|| (!from.0.is_empty()).then(|| T::take(from))).collect()
    }
}
