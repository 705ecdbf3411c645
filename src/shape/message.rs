//! The fields of a message that determine its shape.

use super::parts::{count, observation, texts};
use super::value::{Place, RawResult, Sink, Value, word};
use super::words::{Besides, ItemType, Keys, PairRole, RoleName, StepType};
use super::{BLOCK_KEYS, CONTENT_DEPTH, Key};
use core::cell::Cell;

/// A message, with the fields that determine its shape.
pub(crate) struct RawMessage<'a, V: Value> {
    pub object: &'a V::Object,
    pub role: RoleName,
    pub pair_role: PairRole,
    pub pair_id: Option<V>,
    pub item: ItemType,
    pub content: Option<V>,
    /// How many blocks it has.
    pub blocks: Cell<usize>,
    pub tool_calls: Option<V>,
    /// A call as chat once had it, which has no id.
    pub function_call: Option<V>,
    pub tool_call_id: Option<V>,
    /// Whether it is flagged as an error, if it may be a result and that is read.
    pub is_error: bool,
    /// Whether it may have fields that were not looked up.
    pub has_more: bool,
}

impl<'a, V: Value> RawMessage<'a, V> {
    #[inline]
    pub(crate) fn of(object: &'a V::Object, sink: &mut impl Sink<V>) -> Result<Self, V::Stop> {
        let reads_errors = sink.reads_errors();
        // Once all its fields were found, no other is looked up.
        let mut remaining = V::members(object);
        let mut get = |key: Key| -> Result<Option<V>, V::Stop> {
            if remaining == 0 {
                return Ok(None);
            }
            let value = sink.get(object, key)?;
            remaining -= usize::from(value.is_some());
            Ok(value)
        };
        let role = word(get(Key::Role)?.as_ref(), RoleName::of);
        let content = get(Key::Content)?;
        let tool_call_id = if role == RoleName::Tool { get(Key::ToolCallId)? } else { None };
        let tool_calls = if role == RoleName::Assistant { get(Key::ToolCalls)? } else { None };
        let pair_role = word(get(Key::PairRole)?.as_ref(), PairRole::of);
        let pair_id = if pair_role == PairRole::Other { None } else { get(Key::PairId)? };
        let item = word(get(Key::Type)?.as_ref(), ItemType::of);
        let function_call = if role == RoleName::Assistant { get(Key::FunctionCallSnake)? } else { None };
        let blocks = Cell::new(content.as_ref().map_or(0, V::length));
        let may_be_result = role == RoleName::Tool
            || pair_role == PairRole::Result
            || matches!(item, ItemType::CallOutput(_) | ItemType::Step(StepType::FunctionResult));
        let is_error = may_be_result
            && reads_errors
            && (get(Key::IsError)?.is_some_and(|flag| flag.is_true())
                || word(get(Key::Status)?.as_ref(), |status| status == b"error" || status == b"failed"));
        let has_more = remaining > 0;
        Ok(RawMessage {
            object,
            role,
            pair_role,
            pair_id,
            item,
            content,
            blocks,
            tool_calls,
            function_call,
            tool_call_id,
            is_error,
            has_more,
        })
    }

    /// Whether it is nothing but reasoning: an item of Responses, or a step.
    pub(crate) fn is_reasoning(&self) -> bool {
        matches!(self.item, ItemType::Reasoning | ItemType::Step(StepType::Thought))
    }

    /// Counts the images that Ollama has beside the content.
    pub(crate) fn images_beside(&self, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
        if self.content.is_some() && V::repeated(self.object, Keys::of(&[Key::Images])).is_none() {
            let images = V::get(self.object, Key::Images)?;
            let images = images.iter().filter_map(V::items).flatten();
            images.filter(|image| image.text().is_some()).for_each(|_| sink.image());
        }
        Ok(())
    }

    /// Notes that the user has said something, beside results.
    #[inline]
    pub(crate) fn note_users(&self, sink: &mut impl Sink<V>) {
        if self.role == RoleName::User {
            sink.besides(Besides::Something);
        }
    }

    /// Reads the content as text.
    #[inline]
    pub(crate) fn content(&self, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
        let found = texts(self.content.as_ref(), BLOCK_KEYS, &Place::of(Key::Content), CONTENT_DEPTH, sink)?;
        count(found.chars + found.kept, sink);
        Ok(())
    }

    /// A result with this id, whose observation is the content.
    #[inline]
    pub(crate) fn result<'b>(&'b self, id: Option<&'b V>) -> RawResult<'b, V> {
        RawResult::of(id, self.content.as_ref(), 0, self.is_error)
    }
}

/// Reads a result whose observation is the content of its message.
#[inline]
pub(super) fn content_result<V: Value>(result: &RawResult<V>, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    observation(result, BLOCK_KEYS, &Place::of(Key::Content), CONTENT_DEPTH, sink)
}
