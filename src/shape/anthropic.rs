//! Anthropic's messages: calls and results are blocks of the content.

use super::parts::{count, observation, text_or_image};
use super::value::{Place, RawCall, RawResult, Sink, Value, get_present, part};
use super::words::{ItemType, PartType};
use super::{BLOCK_KEYS, CONTENT_DEPTH, Key, PART_KEYS, Path, RawMessage, part_type};

pub(super) const PATH: Path = Path { blocks: Some(Key::Content), fields: &[&[Key::Content]] };

/// Nesting of the parts of a result: message, content, block, content.
const RESULT_DEPTH: usize = 4;

#[inline]
pub(super) fn read<V: Value>(message: &mut RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    let Some(blocks) = message.content.as_ref().and_then(V::items) else { return Ok(false) };
    let mut fits = false;
    for block in blocks {
        if let Some(object) = block.object()
            && part_type::<V>(object)?.is_of_anthropic()
        {
            fits = true;
            break;
        }
    }
    if fits && read_blocks(message, sink)? {
        message.item = ItemType::Compaction;
    }
    Ok(fits)
}

/// Reads the blocks. Returns whether one is a compaction.
fn read_blocks<V: Value>(message: &RawMessage<V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    let mut is_compaction = false;
    let content = Place::of(Key::Content);
    for (block, item) in message.content.as_ref().and_then(V::items).into_iter().flatten().enumerate() {
        let place = content.index(block);
        let object = part(&item, BLOCK_KEYS, &place)?;
        match part_type::<V>(object)? {
            PartType::ToolUse => {
                let (name, arguments) = (V::get(object, Key::Name)?, get_present::<V>(object, Key::Input)?);
                let id = V::get(object, Key::Id)?;
                sink.call(&RawCall {
                    id: id.as_ref(),
                    name: name.as_ref(),
                    arguments: arguments.as_ref(),
                    block,
                    depth: 3, // the message, content, the block
                })?;
            }
            PartType::ToolResult => {
                let (id, value) = (V::get(object, Key::ToolUseId)?, V::get(object, Key::Content)?);
                let is_error = V::get(object, Key::IsError)?.is_some_and(|flag| flag.is_true());
                let result = RawResult::of(id.as_ref(), value.as_ref(), block, is_error);
                observation(&result, PART_KEYS, &place.key(Key::Content), RESULT_DEPTH, sink)?;
            }
            kind => {
                if matches!(kind, PartType::ServerUse | PartType::ServerResult | PartType::LoadedTools) {
                    let is_result = kind != PartType::ServerUse;
                    let id = V::get(object, if is_result { Key::ToolUseId } else { Key::Id })?;
                    sink.half(id.as_ref(), block, is_result)?;
                }
                is_compaction |= kind == PartType::Compaction;
                message.note_users(sink);
                count(text_or_image::<V>(object, kind, CONTENT_DEPTH, sink)?, sink);
            }
        }
    }
    Ok(is_compaction)
}
