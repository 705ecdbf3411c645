//! The handle by which an observation is recalled: the beginning of the SHA-256 of the id of its call and its text.

use sha2::{Digest, Sha256};

pub(crate) const HANDLE_CHARS: usize = 12;

pub(crate) type Handle = [u8; HANDLE_CHARS];

/// The handle of an observation. The length of the id separates it from the text.
pub(crate) fn handle_of(id: &[u8], text: &[u8]) -> Handle {
    let digest = Sha256::new().chain_update(format!("{}:", id.len())).chain_update(id).chain_update(text).finalize();
    core::array::from_fn(|place| b"0123456789abcdef"[(digest[place / 2] >> (4 * (1 - place % 2))) as usize & 0xf])
}

/// Whether an id may be meant as a handle.
pub fn is_handle(id: &[u8]) -> bool {
    id.len() == HANDLE_CHARS && id.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
