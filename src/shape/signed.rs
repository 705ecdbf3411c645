//! Signed reasoning: where messages have thinking that its provider may verify.

use super::value::{Value, get_present, word};
use super::words::PartType;
use super::{Key, part_type};

/// Fields with blocks that may be thinking.
pub(crate) const BLOCKS: [Key; 2] = [Key::Content, Key::Parts];

/// Fields of a chat message that have it beside the content.
pub(crate) const SIGNED_FIELDS: [Key; 2] = [Key::ThinkingBlocks, Key::ReasoningDetails];

/// The text of a message that has nothing else, where its reasoning is not sent.
pub(crate) const NO_REASONING: &str = "[reasoning not sent again]";

/// Keys of a block of Converse that is something else.
const OTHERS: [Key; 8] =
    [Key::Type, Key::Text, Key::ToolUse, Key::ToolResult, Key::Image, Key::Document, Key::Video, Key::Audio];

/// Keys of a part of Gemini that is something else.
const CALLS_AND_MEDIA: [Key; 8] = [
    Key::FunctionCall,
    Key::FunctionCallSnake,
    Key::FunctionResponse,
    Key::FunctionResponseSnake,
    Key::InlineData,
    Key::InlineDataSnake,
    Key::FileData,
    Key::FileDataSnake,
];

/// Whether a block of a content is thinking.
pub(super) fn is_thinking<V: Value>(block: &V::Object) -> Result<bool, V::Stop> {
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

/// Whether a part of Gemini's contents is thinking with a signature: so Google's Agent Development Kit has that of Claude.
pub(super) fn is_thought<V: Value>(part: &V::Object) -> Result<bool, V::Stop> {
    if !V::get(part, Key::Thought)?.is_some_and(|thought| thought.is_true()) {
        return Ok(false);
    }
    for key in CALLS_AND_MEDIA {
        if get_present::<V>(part, key)?.is_some() {
            return Ok(false);
        }
    }
    let camel = get_present::<V>(part, Key::ThoughtSignature)?;
    Ok(camel.is_some() || get_present::<V>(part, Key::ThoughtSignatureSnake)?.is_some())
}

/// Whether a block of this field of a message is signed reasoning.
pub(crate) fn is_signed_block<V: Value>(block: &V::Object, field: Key) -> Result<bool, V::Stop> {
    if field == Key::Parts { is_thought::<V>(block) } else { is_thinking::<V>(block) }
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
