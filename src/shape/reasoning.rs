//! The model's reasoning that a request sends back. It is no text of the history, and counts only to limits.
//!
//! Where it can be read it counts its characters. Often there is only a signature, or an encrypted text, of which the provider
//! makes the reasoning again.

use super::Key;
use super::value::{Sink, Value, get_present};
use super::words::Keys;

/// Quarter tokens of reasoning for each 100 characters of its signature, and those that every signature has besides: .28 tokens
/// a character, less 60. Over 1,106 answers of Claude Code with logged usage, R² .96 to .99 (2026-11-28).
const PER_HUNDRED: usize = 112;
const BESIDES: usize = 240;

/// The fields of a message of chat that have its reasoning. Gateways repeat it in other forms: the first that is there counts.
const TEXTS: [Key; 4] = [Key::ReasoningContentSnake, Key::Reasoning, Key::ReasoningWords, Key::Thinking];
const LISTS: [Key; 2] = [Key::ReasoningDetails, Key::ThinkingBlocks];
/// The fields of a block of reasoning that can be read, and those that only the provider reads.
const READABLE: [Key; 3] = [Key::Thinking, Key::Text, Key::Summary];
const SEALED: [Key; 5] =
    [Key::Signature, Key::Data, Key::EncryptedContent, Key::ThoughtSignature, Key::ThoughtSignatureSnake];

/// All of them: where one is repeated, it is not clear what is sent, and none counts.
const KEYS: Keys = Keys::of(&[
    Key::ReasoningContentSnake,
    Key::Reasoning,
    Key::ReasoningWords,
    Key::Thinking,
    Key::ReasoningDetails,
    Key::ThinkingBlocks,
    Key::Text,
    Key::Summary,
    Key::Signature,
    Key::Data,
    Key::EncryptedContent,
    Key::ThoughtSignature,
    Key::ThoughtSignatureSnake,
    Key::ReasoningText,
    Key::RedactedContent,
]);

/// Quarter tokens of the reasoning that a signature of so many characters stands for.
fn sealed_tokens(signature: usize) -> usize {
    (signature * PER_HUNDRED / 100).saturating_sub(BESIDES)
}

/// Counts the reasoning that a message has beside its content.
pub(super) fn of_message<V: Value>(message: &V::Object, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    if V::repeated(message, KEYS).is_some() {
        return Ok(());
    }
    for key in TEXTS {
        if text::<V>(message, key, sink)? {
            return Ok(());
        }
    }
    for key in LISTS {
        let list = V::get(message, key)?;
        let Some(blocks) = list.as_ref().and_then(V::items) else { continue };
        for block in blocks {
            block.object().map_or(Ok(()), |block| of_block::<V>(block, sink))?;
        }
        return Ok(());
    }
    Ok(())
}

/// Counts an item of Responses or a step: its text; else what is encrypted; else its summary, of which the provider has the whole.
pub(super) fn of_item<V: Value>(item: &V::Object, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    if V::repeated(item, KEYS).is_some() {
        return Ok(());
    }
    let is_read = texts::<V>(V::get(item, Key::Content)?.as_ref(), sink)? || sealed::<V>(item, sink)?;
    if !is_read {
        texts::<V>(V::get(item, Key::Summary)?.as_ref(), sink)?;
    }
    Ok(())
}

/// Counts a block of reasoning: what can be read of it; else its signature.
pub(super) fn of_block<V: Value>(block: &V::Object, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    if V::repeated(block, KEYS).is_some() {
        return Ok(());
    }
    for key in READABLE {
        if text::<V>(block, key, sink)? {
            return Ok(());
        }
    }
    sealed::<V>(block, sink).map(drop)
}

/// Counts Converse's block of reasoning: a text with its signature, or what is encrypted.
pub(super) fn of_converse<V: Value>(reasoning: &V, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    let Some(reasoning) = reasoning.object().filter(|object| V::repeated(object, KEYS).is_none()) else {
        return Ok(());
    };
    if let Some(value) = get_present::<V>(reasoning, Key::ReasoningText)? {
        return value.object().map_or(Ok(()), |block| of_block::<V>(block, sink));
    }
    if let Some(sealed) = V::get(reasoning, Key::RedactedContent)?.filter(|sealed| sealed.text().is_some()) {
        sink.reasoning(None, sealed_tokens(sealed.size(0)?));
    }
    Ok(())
}

/// Counts what only the provider reads. Returns whether there is some.
pub(super) fn sealed<V: Value>(object: &V::Object, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    if V::repeated(object, KEYS).is_some() {
        return Ok(false);
    }
    for key in SEALED {
        if let Some(sealed) = V::get(object, key)?.filter(|sealed| sealed.text().is_some()) {
            sink.reasoning(None, sealed_tokens(sealed.size(0)?));
            return Ok(true);
        }
    }
    Ok(false)
}

/// Counts the texts of a list of parts. Returns whether there are some.
fn texts<V: Value>(list: Option<&V>, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    let mut is_read = false;
    for part in list.and_then(V::items).into_iter().flatten() {
        is_read |= part.object().map_or(Ok(false), |part| text::<V>(part, Key::Text, sink))?;
    }
    Ok(is_read)
}

/// Counts a text. Returns whether it says something.
fn text<V: Value>(object: &V::Object, key: Key, sink: &mut impl Sink<V>) -> Result<bool, V::Stop> {
    let value = if V::repeated(object, KEYS).is_some() { None } else { V::get(object, key)? };
    let Some(text) = value.as_ref().and_then(V::text) else { return Ok(false) };
    let chars = value.as_ref().map_or(Ok(0), |value| value.size(0))?;
    if chars > 0 {
        sink.reasoning(Some(text), chars);
    }
    Ok(chars > 0)
}
