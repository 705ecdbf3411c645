//! `ChatMessage`: calls and results are messages with `pairRole` and `pairId`.

use super::value::{RawCall, Sink, Value};
use super::words::{PairRole, RoleName};
use super::{Key, RawMessage};

pub(super) fn read<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    match message.pair_role {
        PairRole::Call => {
            message.content(sink)?;
            let id = V::get(message.object, Key::PairId)?;
            sink.call(&RawCall { id: id.as_ref(), name: None, arguments: None, block: 0, depth: 1 })?;
        }
        PairRole::Result if !matches!(message.role, RoleName::System | RoleName::User | RoleName::Assistant) => {
            message.content_result(V::get(message.object, Key::PairId)?.as_ref(), sink)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
