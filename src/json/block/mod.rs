//! 64 bytes at a time, with the instruction set of this CPU. The only unsafe code of the core: loads within a reference to 64
//! bytes, and calls through pointers that were chosen by CPU detection. For what it gains see docs/decisions/0004.

use super::escapes::{ESCAPES, raw_weight_body, unit_weight};
use super::needle::Needle;
use super::strings::{Fault, Found, Rare, count_continuations_body, find_escaped, plain, scan_body};
use crate::text::{Counted, weight_body};
use std::sync::OnceLock;

#[cfg(target_arch = "aarch64")]
mod arm;
mod word;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Continuation bytes of UTF-8 are those below this, signed.
const CONTINUATION_END: i8 = -64;

/// A bit for each byte of a block.
struct Masks {
    quote: u64,
    slash: u64,
    /// Letters of the most common escapes: at least `n` and `t`.
    common: u64,
}

/// A string scanner for this machine's CPU.
#[derive(Clone, Copy)]
pub struct Scanner {
    // unsafe because they may need instructions that a CPU lacks; `available` lists those of this one.
    scan: unsafe fn(&[u8], usize, &Needle) -> Found,
    weight: unsafe fn(&[u8]) -> usize,
    raw_weight: unsafe fn(&[u8]) -> usize,
}

const WORD: Scanner = Scanner { scan: word::scan, weight: weight_body, raw_weight: word::raw_weight };

impl Scanner {
    /// The scanner named by `RECEDE_SCANNER`, or the fastest. The Python package rejects unknown names.
    pub fn detect() -> Scanner {
        static BEST: OnceLock<Scanner> = OnceLock::new();
        *BEST.get_or_init(|| {
            let wanted = std::env::var("RECEDE_SCANNER").unwrap_or_default();
            let available = Self::available();
            let named = available.iter().find(|(name, _)| *name == wanted);
            named.or(available.last()).map_or(WORD, |(_, scanner)| *scanner)
        })
    }

    /// All scanners for this CPU, the fastest last.
    pub fn available() -> Vec<(&'static str, Scanner)> {
        let mut found = vec![("word", WORD)];
        #[cfg(target_arch = "x86_64")]
        {
            found.push(("sse2", Scanner { scan: x86::sse2::scan, raw_weight: x86::sse2::raw_weight, ..WORD }));
            let has_bits = is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            if has_bits && is_x86_feature_detected!("avx2") {
                let (weight, raw_weight) = (x86::avx2::weight, x86::avx2::raw_weight);
                found.push(("avx2", Scanner { scan: x86::avx2::scan, weight, raw_weight }));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            found.push(("neon", Scanner { scan: arm::scan, raw_weight: arm::raw_weight, ..WORD }));
        }
        found
    }

    /// The string that starts at `start`, after its opening quote, with a hint whether it contains `needle`.
    #[inline]
    pub fn string(self, data: &[u8], start: usize, surrogates: bool, needle: &Needle) -> Result<Counted, Fault> {
        self.find(data, start, needle).map_or_else(|| plain(data, start, surrogates), Ok)
    }

    /// What decoded text weighs.
    #[inline]
    pub(crate) fn weight(self, text: &[u8]) -> usize {
        // SAFETY: `available` has only scanners that the CPU supports.
        unsafe { (self.weight)(text) }
    }

    /// What valid raw text weighs.
    #[inline]
    pub(super) fn raw_weight(self, raw: &[u8]) -> usize {
        // SAFETY: `available` has only scanners that the CPU supports.
        unsafe { (self.raw_weight)(raw) }
    }

    /// Validates a string, and returns it.
    #[inline]
    pub(super) fn find(self, data: &[u8], start: usize, needle: &Needle) -> Option<Counted> {
        // SAFETY: `available` has only scanners that the CPU supports.
        let Found { next, facts } = unsafe { (self.scan)(data, start, needle) };
        let end = next.checked_sub(1)?;
        Some(Counted { start, end, minus: facts >> 1, may_hold_needle: facts & 1 != 0 })
    }
}

/// Keys, roles and ids: the length of a string of up to 31 plain ASCII bytes, without a call.
#[inline]
pub(super) fn short(data: &[u8], start: usize) -> Option<usize> {
    let [low, high] = data.get(start..)?.first_chunk::<32>()?.as_chunks::<16>().0 else { return None };
    let ((low_quotes, low_stops), (high_quotes, high_stops)) = (plain_prefix(low), plain_prefix(high));
    let (quotes, stops) = (low_quotes | high_quotes << 16, low_stops | high_stops << 16);
    // One branch for all outcomes: whether text has an early escape is unpredictable.
    (quotes & stops & stops.wrapping_neg() != 0).then_some(stops.trailing_zeros() as usize)
}

/// A key of up to 15 plain ASCII bytes, in its quotes and with its colon.
#[inline]
pub(super) fn short_key(data: &[u8]) -> Option<&[u8]> {
    let key = data.strip_prefix(b"\"")?;
    let (quotes, stops) = plain_prefix(key.first_chunk()?);
    let (key, after) = key.split_at_checked(stops.trailing_zeros() as usize)?;
    (quotes & stops & stops.wrapping_neg() != 0 && after.get(1) == Some(&b':')).then_some(key)
}

/// Bits of the quotes; and of quotes, backslashes, controls and bytes that are not ASCII.
#[cfg(target_arch = "x86_64")]
#[inline]
fn plain_prefix(bytes: &[u8; 16]) -> (u32, u32) {
    // Every x86-64 has SSE2, so this needs no detection.
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    // SAFETY: the load is of an array of 16 bytes; SSE2 is in the baseline.
    unsafe {
        let bytes = _mm_loadu_si128(bytes.as_ptr().cast::<__m128i>());
        let equal = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()));
        let special = _mm_cmpgt_epi8(_mm_set1_epi8(0x20), bytes);
        let quotes = equal(b'"');
        let stops = _mm_or_si128(special, _mm_or_si128(quotes, equal(b'\\')));
        (_mm_movemask_epi8(quotes).cast_unsigned(), _mm_movemask_epi8(stops).cast_unsigned())
    }
}

/// Bits of the quotes; and of quotes, backslashes, controls and bytes that are not ASCII.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn plain_prefix(bytes: &[u8; 16]) -> (u32, u32) {
    let bit_each = |flags: u64| ((flags >> 7 & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32;
    let (mut quotes, mut stops) = (0, 0);
    for (place, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let (quote, slash) = (!word::other(word, b'"'), !word::other(word, b'\\'));
        quotes |= bit_each(quote) << (8 * place);
        stops |= bit_each(quote | slash | word::special_of(word)) << (8 * place);
    }
    (quotes, stops)
}
