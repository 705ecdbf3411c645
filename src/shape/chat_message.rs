//! `ChatMessage`: a message that says of itself what it is, by `pairRole` and `pairId`.

use super::Head;
use super::value::{Id, RawCall, Sink, Value};
use super::words::{Key, PairRole, RoleName};

pub(super) fn read<V: Value>(head: &Head<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    match head.pair_role {
        PairRole::Call => {
            head.content(sink)?;
            let id = V::get(head.message, Key::PairId)?;
            sink.call(&RawCall { id: Id::of(id.as_ref()), name: None, arguments: None, block: 0, depth: 1 })?;
        }
        PairRole::Result if !matches!(head.role, RoleName::System | RoleName::User | RoleName::Assistant) => {
            head.content_result(V::get(head.message, Key::PairId)?.as_ref(), sink)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
