//! The handle by which an observation is recalled: the beginning of the SHA-256 of the id of its call and its text.

/// Characters of a handle.
pub const HANDLE_CHARS: usize = 12;

/// Hexadecimal digits.
pub type Handle = [u8; HANDLE_CHARS];

/// The handle of an observation. The length of the id separates it from the text.
#[must_use]
pub fn handle_of(id: &[u8], text: &[u8]) -> Handle {
    let [first, second, ..] = sha256([id.len().to_string().as_bytes(), b":", id, text].concat());
    let digest = u64::from(first) << 32 | u64::from(second);
    core::array::from_fn(|place| b"0123456789abcdef"[(digest >> (60 - 4 * place)) as usize & 0xf])
}

/// Whether an id may be meant as a handle.
#[must_use]
pub fn is_handle(id: &[u8]) -> bool {
    id.len() == HANDLE_CHARS && id.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

const BLOCK: usize = 64;
const FIRST: [u32; 8] = roots(2);
const ROUNDS: [u32; BLOCK] = roots(3);

/// The constants of the standard: of the first primes the roots, of which the first 32 bits of the fraction.
const fn roots<const COUNT: usize>(power: u32) -> [u32; COUNT] {
    let (mut roots, mut found, mut prime) = ([0; COUNT], 0, 2_u128);
    while found < COUNT {
        let mut divisor = 2;
        while prime % divisor != 0 {
            divisor += 1;
        }
        if divisor == prime {
            let (mut root, mut bit) = (0_u128, 1 << 37);
            while bit > 0 {
                if (root + bit).pow(power) <= prime << (32 * power) {
                    root += bit;
                }
                bit >>= 1;
            }
            roots[found] = root as u32;
            found += 1;
        }
        prime += 1;
    }
    roots
}

/// FIPS 180-4.
fn sha256(mut data: Vec<u8>) -> [u32; 8] {
    let bits = data.len() as u64 * 8;
    data.push(0x80);
    data.resize(data.len().next_multiple_of(BLOCK), 0);
    if data.len() as u64 * 8 < bits + 72 {
        data.resize(data.len() + BLOCK, 0);
    }
    let end = data.len() - 8;
    data[end..].copy_from_slice(&bits.to_be_bytes());
    data.as_chunks::<BLOCK>().0.iter().fold(FIRST, compressed)
}

#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn compressed(state: [u32; 8], block: &[u8; BLOCK]) -> [u32; 8] {
    let mut words = [0_u32; BLOCK];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..BLOCK {
        let (early, late) = (words[at - 15], words[at - 2]);
        let early = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
        let late = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
        words[at] = words[at - 16].wrapping_add(early).wrapping_add(words[at - 7]).wrapping_add(late);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    for (word, round) in words.iter().zip(&ROUNDS) {
        let chosen = (e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25)).wrapping_add(e & f ^ !e & g);
        let added = h.wrapping_add(chosen).wrapping_add(*round).wrapping_add(*word);
        let most = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(a & b ^ a & c ^ b & c);
        (a, b, c, d, e, f, g, h) = (added.wrapping_add(most), a, b, c, d.wrapping_add(added), e, f, g);
    }
    let next = [a, b, c, d, e, f, g, h];
    core::array::from_fn(|place| state[place].wrapping_add(next[place]))
}
