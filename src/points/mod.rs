//! The requests that a history implies, each with a key of the messages before it. A ledger of requests is addressed by such keys:
//! it needs no idea of which conversation a history belongs to.

mod content;

use crate::outline::{Outline, Role};
use crate::turns::Turns;
pub(crate) use content::content_keys;

/// Identifies the messages before a request: an FNV-1a hash of 128 bits over their roles and the ids of their results. It is stored,
/// so it must never change.
pub(crate) type RequestKey = u128;

const BASIS: RequestKey = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: RequestKey = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// The number of messages before each request, and their key: one request before each run, and one now unless the history ends
/// with a run.
pub(crate) fn request_points(outline: &Outline) -> Vec<(usize, RequestKey)> {
    let end = outline.messages.len();
    let is_over = outline.messages.last().is_none_or(|message| message.is_agent_made);
    let starts = Turns::of(outline).starts.into_iter().map(|start| start as usize);
    let (mut key, mut hashed) = (BASIS, 0);
    let point = |messages| {
        for message in hashed..messages {
            key = with_message(key, outline, message);
        }
        hashed = messages;
        (messages, key)
    };
    starts.chain((!is_over).then_some(end)).map(point).collect()
}

fn with_message(key: RequestKey, outline: &Outline, message: usize) -> RequestKey {
    let role = match outline.messages[message].role {
        Role::System => b's',
        Role::User => b'u',
        Role::Assistant => b'a',
        Role::Other => b'o',
    };
    outline.results_of(message).fold(hash(key, &[role]), |key, result| {
        let result = &outline.results[result];
        // Results without id are distinguished by their tool and their length.
        let name = result.name.map_or(&b""[..], |name| outline.name(name));
        match result.id.map(|id| outline.text(id)) {
            Some(id) => hash(with_length(key, b'i', id.len()), id),
            None => with_length(hash(with_length(key, b'n', name.len()), name), b'c', result.chars),
        }
    })
}

fn with_length(key: RequestKey, tag: u8, length: usize) -> RequestKey {
    hash(hash(key, &[tag]), &(length as u64).to_le_bytes())
}

fn hash(key: RequestKey, bytes: &[u8]) -> RequestKey {
    bytes.iter().fold(key, |key, byte| (key ^ RequestKey::from(*byte)).wrapping_mul(PRIME))
}
