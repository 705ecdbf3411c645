//! 64 bytes at a time on x86-64: SSE2, AVX2.

#![allow(clippy::wildcard_imports, reason = "intrinsics come by the dozen")]

use super::*;
use core::arch::x86_64::*;

/// Shared by the instruction sets whose comparisons return vectors.
macro_rules! block {
    (
        $feature:literal, $vector:ty, $width:literal, $common:ident,
        $load:path, $set:path, $set_pairs:path, $zero:path, $equal:path, $equal_pairs:path, $greater:path, $and:path, $or:path, $mask:path
    ) => {
        #[inline]
        #[target_feature(enable = $feature)]
        fn parts(block: &[u8; 64]) -> [$vector; 64 / $width] {
            core::array::from_fn(|part| {
                // SAFETY: part * width + width <= 64, the size of the block.
                unsafe { $load(block.as_ptr().add(part * $width).cast::<$vector>()) }
            })
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn bits(flags: [$vector; 64 / $width]) -> u64 {
            let mut all = 0;
            for (part, flags) in flags.into_iter().enumerate() {
                all |= u64::from($mask(flags).cast_unsigned()) << (part * $width);
            }
            all
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn equal(block: &[u8; 64], byte: u8) -> u64 {
            bits(parts(block).map(|part| $equal(part, $set(byte.cast_signed()))))
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn masks(block: &[u8; 64]) -> Masks {
            let common = bits(parts(block).map(|part| $common(part)));
            Masks { quote: equal(block, b'"'), slash: equal(block, b'\\'), common }
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn special(block: &[u8; 64]) -> u64 {
            bits(parts(block).map(|part| $greater($set(0x20), part)))
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn continuation(block: &[u8; 64]) -> u64 {
            bits(parts(block).map(|part| $greater($set(CONTINUATION_END), part)))
        }

        /// Accumulated over all blocks of a string.
        struct Gathered {
            special: $vector,
            hints: $vector,
        }

        impl Gathered {
            #[inline]
            #[target_feature(enable = $feature)]
            fn new() -> Self {
                Gathered { special: $zero(), hints: $zero() }
            }

            #[inline]
            #[target_feature(enable = $feature)]
            fn add_special(&mut self, block: &[u8; 64]) {
                for part in parts(block) {
                    self.special = $or(self.special, $greater($set(0x20), part));
                }
            }

            #[inline]
            #[target_feature(enable = $feature)]
            fn add_hints(&mut self, block: &[u8; 64], needle: &Needle) {
                let (mask, hint) = ($set_pairs(needle.mask.cast_signed()), $set_pairs(needle.hint.cast_signed()));
                for part in parts(block) {
                    self.hints = $or(self.hints, $equal_pairs($and(part, mask), hint));
                }
            }

            #[inline]
            #[target_feature(enable = $feature)]
            fn has_special(&self) -> bool {
                $mask(self.special) != 0
            }

            #[inline]
            #[target_feature(enable = $feature)]
            fn has_hints(&self) -> bool {
                $mask(self.hints) != 0
            }
        }
    };
}

pub(crate) mod sse2 {
    use super::{weight_body as weight, *};
    block!(
        "sse2",
        __m128i,
        16,
        common,
        _mm_loadu_si128,
        _mm_set1_epi8,
        _mm_set1_epi16,
        _mm_setzero_si128,
        _mm_cmpeq_epi8,
        _mm_cmpeq_epi16,
        _mm_cmpgt_epi8,
        _mm_and_si128,
        _mm_or_si128,
        _mm_movemask_epi8
    );

    #[inline]
    #[target_feature(enable = "sse2")]
    fn control(block: &[u8; 64]) -> u64 {
        special(block) & !bits(parts(block))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn common(part: __m128i) -> __m128i {
        let equal = |byte: u8| _mm_cmpeq_epi8(part, _mm_set1_epi8(byte.cast_signed()));
        _mm_or_si128(_mm_or_si128(equal(b'"'), equal(b'\\')), _mm_or_si128(equal(b'n'), equal(b't')))
    }

    #[target_feature(enable = "sse2")]
    fn count_continuations(text: &[u8]) -> Option<usize> {
        count_continuations_body!(text)
    }
    #[target_feature(enable = "sse2")]
    pub(crate) fn raw_weight(raw: &[u8]) -> usize {
        raw_weight_body!(raw)
    }

    #[target_feature(enable = "sse2")]
    pub(crate) fn scan(data: &[u8], start: usize, needle: &Needle) -> Found {
        scan_body!(data, start, needle)
    }
}

pub(crate) mod avx2 {
    use super::*;
    block!(
        "avx2",
        __m256i,
        32,
        common,
        _mm256_loadu_si256,
        _mm256_set1_epi8,
        _mm256_set1_epi16,
        _mm256_setzero_si256,
        _mm256_cmpeq_epi8,
        _mm256_cmpeq_epi16,
        _mm256_cmpgt_epi8,
        _mm256_and_si256,
        _mm256_or_si256,
        _mm256_movemask_epi8
    );

    /// A table of letters by their low four bits; a byte above 0x7F finds 0.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn common(part: __m256i) -> __m256i {
        let letters = table(*b"\xFF\xFF\"\xFFt\xFFf\xFF\xFF\xFF\xFF\xFF\\\xFFn/");
        _mm256_cmpeq_epi8(part, _mm256_shuffle_epi8(letters, part))
    }

    /// Faults of two consecutive bytes of UTF-8, one bit each. A fault is present if three lookups agree: high and low half of
    /// the first byte, high half of the second. From John Keiser and Daniel Lemire, "Validating UTF-8 in less than one
    /// instruction per byte"; here in one pass with counting.
    mod fault {
        const TOO_SHORT: u8 = 1; // a lead without continuation
        const TOO_LONG: u8 = 1 << 1; // a continuation without lead
        const OVERLONG_3: u8 = 1 << 2;
        const TOO_LARGE: u8 = 1 << 3;
        const SURROGATE: u8 = 1 << 4;
        const OVERLONG_2: u8 = 1 << 5;
        const TOO_LARGE_1000: u8 = 1 << 6; // and overlong in four
        const TWO_CONTINUATIONS: u8 = 1 << 7; // valid only after a lead of three or four
        const ANY: u8 = TOO_SHORT | TOO_LONG | TWO_CONTINUATIONS;
        const LARGE: u8 = ANY | TOO_LARGE | TOO_LARGE_1000;
        const SECOND: u8 = TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS;

        pub(crate) const FIRST_HIGH: [u8; 16] = {
            let mut faults = [TOO_LONG; 16];
            (faults[8], faults[9], faults[10], faults[11]) =
                (TWO_CONTINUATIONS, TWO_CONTINUATIONS, TWO_CONTINUATIONS, TWO_CONTINUATIONS);
            (faults[12], faults[13]) = (TOO_SHORT | OVERLONG_2, TOO_SHORT);
            (faults[14], faults[15]) = (TOO_SHORT | OVERLONG_3 | SURROGATE, TOO_SHORT | TOO_LARGE | TOO_LARGE_1000);
            faults
        };
        pub(crate) const FIRST_LOW: [u8; 16] = {
            let mut faults = [LARGE; 16];
            (faults[0], faults[1]) = (ANY | OVERLONG_3 | OVERLONG_2 | TOO_LARGE_1000, ANY | OVERLONG_2);
            (faults[2], faults[3], faults[4]) = (ANY, ANY, ANY | TOO_LARGE);
            faults[13] |= SURROGATE;
            faults
        };
        pub(crate) const SECOND_HIGH: [u8; 16] = {
            let mut faults = [TOO_SHORT; 16];
            (faults[8], faults[9]) = (SECOND | OVERLONG_3 | TOO_LARGE_1000, SECOND | OVERLONG_3 | TOO_LARGE);
            (faults[10], faults[11]) = (SECOND | SURROGATE | TOO_LARGE, SECOND | SURROGATE | TOO_LARGE);
            faults
        };
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn table(bytes: [u8; 16]) -> __m256i {
        let [low, high] =
            [bytes.first_chunk(), bytes.last_chunk()].map(|half| half.map_or(0, |half| i64::from_le_bytes(*half)));
        _mm256_broadcastsi128_si256(_mm_set_epi64x(high, low))
    }

    /// The faults of the byte pairs that end in `part`, where `before` precedes it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn utf8_faults(before: __m256i, part: __m256i) -> __m256i {
        let across = _mm256_permute2x128_si256::<0x21>(before, part);
        let (one_back, two_back, three_back) = (
            _mm256_alignr_epi8::<15>(part, across),
            _mm256_alignr_epi8::<14>(part, across),
            _mm256_alignr_epi8::<13>(part, across),
        );
        let low = |bytes| _mm256_and_si256(bytes, _mm256_set1_epi8(0x0F));
        let high = |bytes| low(_mm256_srli_epi16::<4>(bytes));
        let faults = _mm256_and_si256(
            _mm256_and_si256(
                _mm256_shuffle_epi8(table(fault::FIRST_HIGH), high(one_back)),
                _mm256_shuffle_epi8(table(fault::FIRST_LOW), low(one_back)),
            ),
            _mm256_shuffle_epi8(table(fault::SECOND_HIGH), high(part)),
        );
        // Third and fourth bytes must be continuations after leads of three and four, and only there.
        let third = _mm256_subs_epu8(two_back, _mm256_set1_epi8((0xE0u8 - 0x80).cast_signed()));
        let fourth = _mm256_subs_epu8(three_back, _mm256_set1_epi8((0xF0u8 - 0x80).cast_signed()));
        let wanted = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(-128));
        _mm256_xor_si256(faults, wanted)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn count_continuations(text: &[u8]) -> Option<usize> {
        let (mut before, mut faults, mut lowest) = (_mm256_set1_epi8(0), _mm256_set1_epi8(0), _mm256_set1_epi8(-1));
        let mut continuations = 0;
        for bytes in text.chunks(64) {
            let mut pad = [b' '; 64];
            let block = bytes.first_chunk::<64>().unwrap_or_else(|| {
                pad[..bytes.len()].copy_from_slice(bytes);
                &pad
            });
            for part in parts(block) {
                faults = _mm256_or_si256(faults, utf8_faults(before, part));
                lowest = _mm256_min_epu8(lowest, part);
                before = part;
            }
            continuations += continuation(block).count_ones() as usize;
        }
        // The closing quote follows, so a lead at the end lacks its continuation.
        faults = _mm256_or_si256(faults, utf8_faults(before, _mm256_set1_epi8(0x20)));
        let control = _mm256_cmpeq_epi8(_mm256_min_epu8(lowest, _mm256_set1_epi8(0x1F)), lowest);
        let wrong = _mm256_or_si256(faults, control);
        (_mm256_testz_si256(wrong, wrong) == 1).then_some(continuations)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(crate) fn weight(text: &[u8]) -> usize {
        const BLOCKS: usize = u8::MAX as usize / 2; // until a count of a byte could overflow
        let (blocks, rest) = text.as_chunks::<64>();
        let (mut all_low, mut all_spaces) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for blocks in blocks.chunks(BLOCKS) {
            let (mut low, mut spaces) = (_mm256_setzero_si256(), _mm256_setzero_si256());
            for block in blocks {
                for part in parts(block) {
                    let is_low = _mm256_cmpeq_epi8(_mm256_min_epu8(part, _mm256_set1_epi8(0x3F)), part);
                    low = _mm256_sub_epi8(low, is_low);
                    spaces = _mm256_sub_epi8(spaces, _mm256_cmpeq_epi8(part, _mm256_set1_epi8(0x20)));
                }
            }
            all_low = _mm256_add_epi64(all_low, _mm256_sad_epu8(low, _mm256_setzero_si256()));
            all_spaces = _mm256_add_epi64(all_spaces, _mm256_sad_epu8(spaces, _mm256_setzero_si256()));
        }
        let more =
            _mm256_sub_epi64(_mm256_add_epi64(all_low, all_low), _mm256_mul_epu32(all_spaces, _mm256_set1_epi64x(3)));
        let more: i64 = [
            _mm256_extract_epi64::<0>(more),
            _mm256_extract_epi64::<1>(more),
            _mm256_extract_epi64::<2>(more),
            _mm256_extract_epi64::<3>(more),
        ]
        .into_iter()
        .sum();
        (64 * blocks.len() + weight_body(rest)).wrapping_add_signed(more as isize)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(crate) fn raw_weight(raw: &[u8]) -> usize {
        raw_weight_body!(raw)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(crate) fn scan(data: &[u8], start: usize, needle: &Needle) -> Found {
        scan_body!(data, start, needle)
    }
}
