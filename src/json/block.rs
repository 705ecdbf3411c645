//! 64 bytes at once, by the instruction set that this machine has. The only unsafe code of the core: loads of
//! bytes that a reference to 64 of them guards, and one call through a pointer chosen after asking the CPU.
//! docs/decisions/0004 says what it gains.

use super::strings::{
    Counted, Fault, Found, HINT, HINT_MASK, Rare, find_escaped, holds_dispatch, newlines_body, plain, scan_body,
    second_look, unicode_newlines,
};
use std::sync::OnceLock;

/// One bit for each byte of a block.
struct Masks {
    quote: u64,
    slash: u64,
    /// Letters of the commonest escapes: these two, `n` and `t` at least.
    common: u64,
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::wildcard_imports, reason = "intrinsics come by the dozen")]
mod x86 {
    use super::*;
    use core::arch::x86_64::*;

    /// What all instruction sets whose comparisons give vectors have in common.
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

            /// What is asked of all blocks of a string together.
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
                fn add_hints(&mut self, block: &[u8; 64]) {
                    let (mask, hint) = ($set_pairs(HINT_MASK.cast_signed()), $set_pairs(HINT.cast_signed()));
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

    pub mod sse2 {
        use super::*;
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
        fn common(part: __m128i) -> __m128i {
            let equal = |byte: u8| _mm_cmpeq_epi8(part, _mm_set1_epi8(byte.cast_signed()));
            _mm_or_si128(_mm_or_si128(equal(b'"'), equal(b'\\')), _mm_or_si128(equal(b'n'), equal(b't')))
        }

        #[target_feature(enable = "sse2")]
        pub fn scan(data: &[u8], start: usize) -> Found {
            scan_body!(data, start)
        }
        #[target_feature(enable = "sse2")]
        pub fn newlines(raw: &[u8]) -> usize {
            newlines_body!(raw)
        }
    }

    pub mod avx2 {
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

        /// Each letter stands in the table at its low four bits, and so finds itself; a byte above 0x7F finds 0.
        #[inline]
        #[target_feature(enable = "avx2")]
        fn common(part: __m256i) -> __m256i {
            let low = i64::from_le_bytes(*b"\xFF\xFF\"\xFFt\xFFf\xFF");
            let high = i64::from_le_bytes(*b"\xFF\xFF\xFF\xFF\\\xFFn/");
            let table = _mm256_broadcastsi128_si256(_mm_set_epi64x(high, low));
            _mm256_cmpeq_epi8(part, _mm256_shuffle_epi8(table, part))
        }

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        pub fn scan(data: &[u8], start: usize) -> Found {
            scan_body!(data, start)
        }
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        pub fn newlines(raw: &[u8]) -> usize {
            newlines_body!(raw)
        }
    }

    pub mod avx512 {
        use super::*;

        #[inline]
        #[target_feature(enable = "avx512f,avx512bw")]
        fn load(block: &[u8; 64]) -> __m512i {
            // SAFETY: the block has 64 bytes.
            unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) }
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512bw")]
        fn equal(block: &[u8; 64], byte: u8) -> u64 {
            _mm512_cmpeq_epi8_mask(load(block), _mm512_set1_epi8(byte.cast_signed()))
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512bw")]
        fn masks(block: &[u8; 64]) -> Masks {
            let (quote, slash) = (equal(block, b'"'), equal(block, b'\\'));
            Masks { quote, slash, common: quote | slash | equal(block, b'n') | equal(block, b't') }
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512bw")]
        fn special(block: &[u8; 64]) -> u64 {
            _mm512_cmplt_epi8_mask(load(block), _mm512_set1_epi8(0x20))
        }

        struct Gathered {
            special: u64,
            hints: u32,
        }

        impl Gathered {
            #[inline]
            fn new() -> Self {
                Gathered { special: 0, hints: 0 }
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw")]
            fn add_special(&mut self, block: &[u8; 64]) {
                self.special |= special(block);
            }

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw")]
            fn add_hints(&mut self, block: &[u8; 64]) {
                let (mask, hint) = (_mm512_set1_epi16(HINT_MASK.cast_signed()), _mm512_set1_epi16(HINT.cast_signed()));
                self.hints |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(load(block), mask), hint);
            }

            #[inline]
            fn has_special(&self) -> bool {
                self.special != 0
            }

            #[inline]
            fn has_hints(&self) -> bool {
                self.hints != 0
            }
        }

        #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        pub fn scan(data: &[u8], start: usize) -> Found {
            scan_body!(data, start)
        }
        #[target_feature(enable = "avx512f,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
        pub fn newlines(raw: &[u8]) -> usize {
            newlines_body!(raw)
        }
    }
}

#[cfg(target_arch = "aarch64")]
#[allow(clippy::wildcard_imports, reason = "intrinsics come by the dozen")]
mod arm {
    use super::*;
    use core::arch::aarch64::*;

    #[inline]
    #[target_feature(enable = "neon")]
    fn parts(block: &[u8; 64]) -> [uint8x16_t; 4] {
        // SAFETY: part < 4, so 16 * part + 16 <= 64, the size of the block.
        core::array::from_fn(|part| unsafe { vld1q_u8(block.as_ptr().add(16 * part)) })
    }

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
    fn equal(block: &[u8; 64], byte: u8) -> u64 {
        pack(parts(block).map(|part| vceqq_u8(part, vdupq_n_u8(byte))))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn masks(block: &[u8; 64]) -> Masks {
        let (quote, slash) = (equal(block, b'"'), equal(block, b'\\'));
        let letter = |part, byte: u8| vceqq_u8(part, vdupq_n_u8(byte));
        let letters = parts(block).map(|part| vorrq_u8(letter(part, b'n'), letter(part, b't')));
        Masks { quote, slash, common: quote | slash | pack(letters) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn special(block: &[u8; 64]) -> u64 {
        pack(parts(block).map(|part| vcltq_s8(vreinterpretq_s8_u8(part), vdupq_n_s8(0x20))))
    }

    struct Gathered {
        special: uint8x16_t,
        hints: uint16x8_t,
    }

    impl Gathered {
        #[inline]
        #[target_feature(enable = "neon")]
        fn new() -> Self {
            Gathered { special: vdupq_n_u8(0), hints: vdupq_n_u16(0) }
        }

        #[inline]
        #[target_feature(enable = "neon")]
        fn add_special(&mut self, block: &[u8; 64]) {
            for part in parts(block) {
                let flags = vcltq_s8(vreinterpretq_s8_u8(part), vdupq_n_s8(0x20));
                self.special = vorrq_u8(self.special, flags);
            }
        }

        #[inline]
        #[target_feature(enable = "neon")]
        fn add_hints(&mut self, block: &[u8; 64]) {
            for part in parts(block) {
                let pairs = vandq_u16(vreinterpretq_u16_u8(part), vdupq_n_u16(HINT_MASK));
                self.hints = vorrq_u16(self.hints, vceqq_u16(pairs, vdupq_n_u16(HINT)));
            }
        }

        #[inline]
        #[target_feature(enable = "neon")]
        fn has_special(&self) -> bool {
            vmaxvq_u8(self.special) != 0
        }

        #[inline]
        #[target_feature(enable = "neon")]
        fn has_hints(&self) -> bool {
            vmaxvq_u16(self.hints) != 0
        }
    }

    #[target_feature(enable = "neon")]
    pub fn scan(data: &[u8], start: usize) -> Found {
        scan_body!(data, start)
    }
    #[target_feature(enable = "neon")]
    pub fn newlines(raw: &[u8]) -> usize {
        newlines_body!(raw)
    }
}

/// Eight bytes at once in a plain register: for machines without any of the above.
mod word {
    use super::{Found, HINT, HINT_MASK, Masks, Rare, find_escaped, holds_dispatch, newlines_body, scan_body};
    use super::{second_look, unicode_newlines};

    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = LOW << 7;
    const PAIRS: u64 = 0x0001_0001_0001_0001;

    #[inline]
    fn words(block: &[u8; 64]) -> [u64; 8] {
        let words = block.as_chunks::<8>().0;
        core::array::from_fn(|place| u64::from_le_bytes(words[place]))
    }

    /// The highest bit of each byte that is this one.
    #[inline]
    fn same(word: u64, byte: u8) -> u64 {
        let other = word ^ (LOW * u64::from(byte));
        !((other & !HIGH).wrapping_add(!HIGH) | other) & HIGH
    }

    #[inline]
    fn bits(flags: [u64; 8]) -> u64 {
        let mut all = 0;
        for (place, flags) in flags.into_iter().enumerate() {
            all |= (flags >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * place);
        }
        all
    }

    #[inline]
    fn equal(block: &[u8; 64], byte: u8) -> u64 {
        bits(words(block).map(|word| same(word, byte)))
    }

    #[inline]
    fn masks(block: &[u8; 64]) -> Masks {
        let (quote, slash) = (equal(block, b'"'), equal(block, b'\\'));
        let letters = bits(words(block).map(|word| same(word, b'n') | same(word, b't')));
        Masks { quote, slash, common: quote | slash | letters }
    }

    /// The highest bit of each byte below 0x20 or above 0x7F.
    #[inline]
    fn special_of(word: u64) -> u64 {
        (!(word & !HIGH).wrapping_add(LOW * 0x60) | word) & HIGH
    }

    #[inline]
    fn special(block: &[u8; 64]) -> u64 {
        bits(words(block).map(special_of))
    }

    struct Gathered {
        special: u64,
        has_hints: bool,
    }

    impl Gathered {
        #[inline]
        fn new() -> Self {
            Gathered { special: 0, has_hints: false }
        }

        #[inline]
        fn add_special(&mut self, block: &[u8; 64]) {
            for word in words(block) {
                self.special |= special_of(word);
            }
        }

        #[inline]
        fn add_hints(&mut self, block: &[u8; 64]) {
            for word in words(block) {
                let other = (word & (PAIRS * u64::from(HINT_MASK))) ^ (PAIRS * u64::from(HINT));
                // Exact for the lowest pair that is zero, and so for whether there is one.
                self.has_hints |= other.wrapping_sub(PAIRS) & !other & (PAIRS << 15) != 0;
            }
        }

        #[inline]
        fn has_special(&self) -> bool {
            self.special != 0
        }

        #[inline]
        fn has_hints(&self) -> bool {
            self.has_hints
        }
    }

    pub fn scan(data: &[u8], start: usize) -> Found {
        scan_body!(data, start)
    }
    pub fn newlines(raw: &[u8]) -> usize {
        newlines_body!(raw)
    }
}

/// A string scanner for this machine's CPU.
#[derive(Clone, Copy)]
pub struct Scanner {
    // unsafe only since they may need instructions that not every CPU has; `available` lists what this one has.
    scan: unsafe fn(&[u8], usize) -> Found,
    newlines: unsafe fn(&[u8]) -> usize,
}

const WORD: Scanner = Scanner { scan: word::scan, newlines: word::newlines };

impl Scanner {
    /// The fastest one.
    #[must_use]
    pub fn detect() -> Scanner {
        static BEST: OnceLock<Scanner> = OnceLock::new();
        *BEST.get_or_init(|| match std::env::var("RECEDE_SCANNER") {
            Ok(wanted) => {
                Self::available().into_iter().find(|(name, _)| *name == wanted).map_or(WORD, |(_, scanner)| scanner)
            }
            Err(_) => Self::available().into_iter().next_back().map_or(WORD, |(_, scanner)| scanner),
        })
    }

    /// All that this CPU can run, the fastest last. `RECEDE_SCANNER` names the one to use, for tests.
    #[must_use]
    pub fn available() -> Vec<(&'static str, Scanner)> {
        let mut found = vec![("word", WORD)];
        #[cfg(target_arch = "x86_64")]
        {
            found.push(("sse2", Scanner { scan: x86::sse2::scan, newlines: x86::sse2::newlines }));
            let has_bits = is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            if has_bits && is_x86_feature_detected!("avx2") {
                found.push(("avx2", Scanner { scan: x86::avx2::scan, newlines: x86::avx2::newlines }));
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                    found.push(("avx512", Scanner { scan: x86::avx512::scan, newlines: x86::avx512::newlines }));
                }
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            found.push(("neon", Scanner { scan: arm::scan, newlines: arm::newlines }));
        }
        found
    }

    /// The string whose opening quote stands before `start`.
    ///
    /// # Errors
    /// The first fault by position, as [`plain`] finds it.
    #[inline]
    pub fn string(self, data: &[u8], start: usize, surrogates: bool) -> Result<Counted, Fault> {
        self.find(data, start).map_or_else(|| plain(data, start, surrogates), Ok)
    }

    /// The string whose opening quote stands before `start`, if nothing is wrong with it.
    #[inline]
    pub(super) fn find(self, data: &[u8], start: usize) -> Option<Counted> {
        // SAFETY: `available` offers a scanner only where the CPU has what it needs.
        let Found { behind, facts } = unsafe { (self.scan)(data, start) };
        let end = behind.checked_sub(1)?;
        Some(Counted { start, end, minus: facts >> 1, may_hold_dispatch: facts & 1 != 0 })
    }

    /// Newlines of the text whose raw form, which was read before, this is.
    #[must_use]
    pub fn newlines(self, raw: &[u8]) -> usize {
        // SAFETY: as above.
        unsafe { (self.newlines)(raw) }
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
