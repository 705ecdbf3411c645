//! 64 bytes at once, by the instruction set that this machine has. The only unsafe code of the core: loads of
//! bytes that a reference to 64 of them guards, and one call through a pointer chosen after asking the CPU.
//! docs/decisions/0004 says what it gains.

use super::strings::{
    Counted, DISPATCH_STRIDE, Fault, dispatch_hints, find_escaped, plain, rare_escapes, scan_body, second_look,
};
use std::sync::OnceLock;

/// One bit for each byte of a block.
struct Masks {
    quote: u64,
    slash: u64,
    /// Below 0x20 or above 0x7F: one signed comparison.
    special: u64,
    /// The letters of the two commonest escapes.
    letter_n: u64,
    letter_t: u64,
    underscore: u64,
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::wildcard_imports, reason = "intrinsics come by the dozen")]
mod x86 {
    use super::*;
    use core::arch::x86_64::*;

    macro_rules! classifier {
        ($name:ident, $feature:literal, $vector:ty, $width:literal, $load:path, $set:path, $equal:path, $greater:path, $mask:path) => {
            #[inline]
            #[target_feature(enable = $feature)]
            fn $name(block: &[u8; 64]) -> Masks {
                let letter = |byte: u8| $set(byte.cast_signed());
                let (quote, slash, low) = (letter(b'"'), letter(b'\\'), letter(0x20));
                let (n, t, underscore) = (letter(b'n'), letter(b't'), letter(b'_'));
                let mut masks = Masks { quote: 0, slash: 0, special: 0, letter_n: 0, letter_t: 0, underscore: 0 };
                for part in 0..64 / $width {
                    // SAFETY: part * width + width <= 64, the size of the block.
                    let bytes = unsafe { $load(block.as_ptr().add(part * $width).cast::<$vector>()) };
                    let bits = |flags| u64::from($mask(flags).cast_unsigned()) << (part * $width);
                    masks.quote |= bits($equal(bytes, quote));
                    masks.slash |= bits($equal(bytes, slash));
                    masks.special |= bits($greater(low, bytes));
                    masks.letter_n |= bits($equal(bytes, n));
                    masks.letter_t |= bits($equal(bytes, t));
                    masks.underscore |= bits($equal(bytes, underscore));
                }
                masks
            }
        };
    }
    classifier!(
        block_sse2,
        "sse2",
        __m128i,
        16,
        _mm_loadu_si128,
        _mm_set1_epi8,
        _mm_cmpeq_epi8,
        _mm_cmpgt_epi8,
        _mm_movemask_epi8
    );
    classifier!(
        block_avx2,
        "avx2",
        __m256i,
        32,
        _mm256_loadu_si256,
        _mm256_set1_epi8,
        _mm256_cmpeq_epi8,
        _mm256_cmpgt_epi8,
        _mm256_movemask_epi8
    );

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn block_avx512(block: &[u8; 64]) -> Masks {
        // SAFETY: the block has 64 bytes.
        let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) };
        let equal = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte.cast_signed()));
        Masks {
            quote: equal(b'"'),
            slash: equal(b'\\'),
            special: _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(0x20)),
            letter_n: equal(b'n'),
            letter_t: equal(b't'),
            underscore: equal(b'_'),
        }
    }

    #[target_feature(enable = "sse2")]
    pub fn scan_sse2(data: &[u8], start: usize) -> Option<Counted> {
        scan_body!(data, start, block_sse2)
    }
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub fn scan_avx2(data: &[u8], start: usize) -> Option<Counted> {
        scan_body!(data, start, block_avx2)
    }
    #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub fn scan_avx512(data: &[u8], start: usize) -> Option<Counted> {
        scan_body!(data, start, block_avx512)
    }
}

#[cfg(target_arch = "aarch64")]
#[allow(clippy::wildcard_imports, reason = "intrinsics come by the dozen")]
mod arm {
    use super::*;
    use core::arch::aarch64::*;

    #[inline]
    #[target_feature(enable = "neon")]
    fn pack(flags: [uint8x16_t; 4]) -> u64 {
        const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        // SAFETY: BITS has 16 bytes.
        let bits = unsafe { vld1q_u8(BITS.as_ptr()) };
        let low = vpaddq_u8(vandq_u8(flags[0], bits), vandq_u8(flags[1], bits));
        let high = vpaddq_u8(vandq_u8(flags[2], bits), vandq_u8(flags[3], bits));
        let both = vpaddq_u8(low, high);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(both, both)))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn block_neon(block: &[u8; 64]) -> Masks {
        // SAFETY: part < 4, so 16 * part + 16 <= 64, the size of the block.
        let bytes: [uint8x16_t; 4] = core::array::from_fn(|part| unsafe { vld1q_u8(block.as_ptr().add(16 * part)) });
        let equal = |byte: u8| pack(bytes.map(|x| vceqq_u8(x, vdupq_n_u8(byte))));
        Masks {
            quote: equal(b'"'),
            slash: equal(b'\\'),
            special: pack(bytes.map(|x| vcltq_s8(vreinterpretq_s8_u8(x), vdupq_n_s8(0x20)))),
            letter_n: equal(b'n'),
            letter_t: equal(b't'),
            underscore: equal(b'_'),
        }
    }

    #[target_feature(enable = "neon")]
    pub fn scan_neon(data: &[u8], start: usize) -> Option<Counted> {
        scan_body!(data, start, block_neon)
    }
}

/// Eight bytes at once in a plain register: for machines without any of the above.
#[inline]
fn block_word(block: &[u8; 64]) -> Masks {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = LOW << 7;
    let mut masks = Masks { quote: 0, slash: 0, special: 0, letter_n: 0, letter_t: 0, underscore: 0 };
    for (place, word) in block.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let bits = |flags: u64| ((flags & HIGH) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * place);
        let equal = |byte: u8| {
            let other = word ^ (LOW * u64::from(byte));
            !((other & !HIGH).wrapping_add(!HIGH) | other)
        };
        masks.quote |= bits(equal(b'"'));
        masks.slash |= bits(equal(b'\\'));
        masks.special |= bits(!(word & !HIGH).wrapping_add(LOW * 0x60) | word);
        masks.letter_n |= bits(equal(b'n'));
        masks.letter_t |= bits(equal(b't'));
        masks.underscore |= bits(equal(b'_'));
    }
    masks
}

fn scan_word(data: &[u8], start: usize) -> Option<Counted> {
    scan_body!(data, start, block_word)
}

/// A string scanner for this machine's CPU.
#[derive(Clone, Copy)]
pub struct Scanner(
    // unsafe only since it may need instructions that not every CPU has; `available` lists what this one has.
    unsafe fn(&[u8], usize) -> Option<Counted>,
);

impl Scanner {
    /// The fastest one.
    #[must_use]
    pub fn detect() -> Scanner {
        static BEST: OnceLock<Scanner> = OnceLock::new();
        *BEST.get_or_init(|| match std::env::var("RECEDE_SCANNER") {
            Ok(wanted) => {
                Self::available().into_iter().find(|(name, _)| *name == wanted).map_or(Scanner(scan_word), |(_, s)| s)
            }
            Err(_) => Self::available().into_iter().next_back().map_or(Scanner(scan_word), |(_, scanner)| scanner),
        })
    }

    /// All that this CPU can run, the fastest last. `RECEDE_SCANNER` names the one to use, for tests.
    #[must_use]
    pub fn available() -> Vec<(&'static str, Scanner)> {
        let mut found = vec![("word", Scanner(scan_word))];
        #[cfg(target_arch = "x86_64")]
        {
            found.push(("sse2", Scanner(x86::scan_sse2)));
            let has_bits = is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            if has_bits && is_x86_feature_detected!("avx2") {
                found.push(("avx2", Scanner(x86::scan_avx2)));
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                    found.push(("avx512", Scanner(x86::scan_avx512)));
                }
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            found.push(("neon", Scanner(arm::scan_neon)));
        }
        found
    }

    /// The string whose opening quote stands before `start`.
    ///
    /// # Errors
    /// The first fault by position, as [`plain`] finds it.
    #[inline]
    pub fn string(self, data: &[u8], start: usize, surrogates: bool) -> Result<Counted, Fault> {
        // SAFETY: `available` offers a scanner only where the CPU has what it needs.
        match unsafe { (self.0)(data, start) } {
            Some(counted) => Ok(counted),
            None => plain(data, start, surrogates),
        }
    }
}

/// Keys, roles and ids: the length of a string of up to 31 plain ASCII bytes, without a call.
#[inline]
pub(super) fn short(data: &[u8], start: usize) -> Option<usize> {
    let bytes = data.get(start..)?.first_chunk::<32>()?;
    let length = plain_prefix(bytes);
    (length < 32 && bytes[length] == b'"').then_some(length)
}

/// How many bytes come before the first one that is a quote, a backslash, a control or not ASCII.
#[cfg(target_arch = "x86_64")]
#[inline]
fn plain_prefix(bytes: &[u8; 32]) -> usize {
    // Every x86-64 has SSE2, so this needs no asking.
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    let stops = |half: usize| {
        // SAFETY: half is 0 or 1, and 16 * half + 16 <= 32, the size of the array; SSE2 is in the baseline.
        unsafe {
            let bytes = _mm_loadu_si128(bytes.as_ptr().add(16 * half).cast::<__m128i>());
            let equal = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()));
            let special = _mm_cmpgt_epi8(_mm_set1_epi8(0x20), bytes);
            _mm_movemask_epi8(_mm_or_si128(special, _mm_or_si128(equal(b'"'), equal(b'\\')))).cast_unsigned()
        }
    };
    (u64::from(stops(0)) | u64::from(stops(1)) << 16 | 1 << 32).trailing_zeros() as usize
}

/// How many bytes come before the first one that is a quote, a backslash, a control or not ASCII.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn plain_prefix(bytes: &[u8; 32]) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = LOW << 7;
    for (place, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let (quote, slash) = (word ^ (LOW * 0x22), word ^ (LOW * 0x5C));
        // Exact for the lowest bit that is set, which is all that is used.
        let stops = ((quote.wrapping_sub(LOW) & !quote)
            | (slash.wrapping_sub(LOW) & !slash)
            | (word.wrapping_sub(LOW * 0x20) & !word)
            | word)
            & HIGH;
        if stops != 0 {
            return 8 * place + stops.trailing_zeros() as usize / 8;
        }
    }
    32
}
