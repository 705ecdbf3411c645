//! `ChatMessage`: calls and results are messages with `pairRole` and `pairId`.

use super::RawMessage;
use super::message::content_result;
use super::value::{RawCall, Sink, Value};
use super::words::{PairRole, RoleName};

pub(super) fn read<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    match message.pair_role {
        PairRole::Call => {
            message.content(sink)?;
            let id = message.pair_id.as_ref();
            sink.call(&RawCall { id, name: None, arguments: None, block: 0, depth: 1 })?;
        }
        PairRole::Result if !matches!(message.role, RoleName::System | RoleName::User | RoleName::Assistant) => {
            content_result(&message.result(message.pair_id.as_ref()), sink)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
