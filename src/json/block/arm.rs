//! 64 bytes at a time on AArch64: NEON.

#![allow(clippy::wildcard_imports, reason = "intrinsics come by the dozen")]

use super::{weight_body as weight, *};
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

#[inline]
#[target_feature(enable = "neon")]
fn control(block: &[u8; 64]) -> u64 {
    pack(parts(block).map(|part| vcltq_u8(part, vdupq_n_u8(0x20))))
}

#[inline]
#[target_feature(enable = "neon")]
fn continuation(block: &[u8; 64]) -> u64 {
    pack(parts(block).map(|part| vcltq_s8(vreinterpretq_s8_u8(part), vdupq_n_s8(CONTINUATION_END))))
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
    fn add_hints(&mut self, block: &[u8; 64], needle: &Needle) {
        for part in parts(block) {
            let pairs = vandq_u16(vreinterpretq_u16_u8(part), vdupq_n_u16(needle.mask));
            self.hints = vorrq_u16(self.hints, vceqq_u16(pairs, vdupq_n_u16(needle.hint)));
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
fn count_continuations(text: &[u8]) -> Option<usize> {
    count_continuations_body!(text)
}
#[target_feature(enable = "neon")]
pub(crate) fn raw_weight(raw: &[u8]) -> usize {
    raw_weight_body!(raw)
}

#[target_feature(enable = "neon")]
pub(crate) fn scan(data: &[u8], start: usize, needle: &Needle) -> Found {
    scan_body!(data, start, needle)
}
