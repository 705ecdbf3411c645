//! Signed reasoning: where messages have thinking that its provider may verify.

use super::value::{Value, word};
use super::words::PartType;
use super::{Key, part_type};

/// Fields of a chat message that have it beside the content.
pub(crate) const SIGNED_FIELDS: [Key; 2] = [Key::ThinkingBlocks, Key::ReasoningDetails];

/// The text of a message that has nothing else, where its reasoning is not sent.
pub(crate) const NO_REASONING: &str = "[reasoning not sent again]";

/// Keys of a block of Converse that is something else.
const OTHERS: [Key; 8] =
    [Key::Type, Key::Text, Key::ToolUse, Key::ToolResult, Key::Image, Key::Document, Key::Video, Key::Audio];

/// Whether a block of a content is thinking.
pub(crate) fn is_thinking<V: Value>(block: &V::Object) -> Result<bool, V::Stop> {
    if part_type::<V>(block)? == PartType::Thinking {
        return Ok(true);
    }
    if V::get(block, Key::ReasoningContent)?.is_none() {
        return Ok(false);
    }
    for key in OTHERS {
        if V::get(block, key)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a field of a chat message has signed reasoning: any of Claude's, as gateways give it.
#[inline(never)]
pub(super) fn has_signed_fields<V: Value>(message: &V::Object) -> Result<bool, V::Stop> {
    if V::get(message, Key::ThinkingBlocks)?.is_some_and(|blocks| blocks.length() > 0) {
        return Ok(true);
    }
    let is_of_claude = |format: &[u8]| format.starts_with(b"anthropic-");
    for detail in V::get(message, Key::ReasoningDetails)?.iter().filter_map(V::items).flatten() {
        if let Some(object) = detail.object()
            && word(V::get(object, Key::Format)?.as_ref(), is_of_claude)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
