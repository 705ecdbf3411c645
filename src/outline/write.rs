//! What a shape finds in a message -> Outline, of bytes and of dicts alike.

use super::{Call, Half, Message, Name, Outline, Role, Span, SystemText, TextSpan, ToolResult};
use crate::json::weight;
use crate::shape::Frame;
use crate::shape::{self, Besides, ItemType, Key, RawCall, RawResult, Sink, Value};
use crate::text::count_chars;

/// Characters that a call counts besides its name and arguments.
pub(crate) const CALL_CHARS: usize = 20;

/// What characters weigh of which no text is read: JSON of unknown parts, and what adapters count. A character of tool results weighs
/// 1.3 quarter tokens (2026-11-28).
pub(crate) fn opaque_weight(chars: usize) -> usize {
    chars.saturating_mul(13) / 10
}

/// The texts of a message, as one kind of input has them.
pub(crate) trait Texts<V: Value> {
    /// Whether it is to be found out which results are flagged as errors.
    fn reads_errors(&self) -> bool {
        true
    }
    /// A member of an object.
    #[inline]
    fn get(&mut self, object: &V::Object, key: Key) -> Result<Option<V>, V::Stop> {
        V::get(object, key)
    }
    /// Adds a text. Returns its characters.
    fn text(&mut self, outline: &mut Outline, text: &V::Text) -> Result<usize, V::Stop>;
    /// Whether texts are weighed.
    fn weighs(&self) -> bool;
    /// What a text weighs.
    fn weight(&self, text: &V::Text) -> usize;
    /// What a value that is no text weighs as JSON.
    fn json_weight(&self, value: &V) -> usize;
    fn begin_observation(&mut self, outline: &Outline);
    /// Adds to the facts of a result what only this kind of input has.
    fn end_observation(&mut self, outline: &mut Outline, result: &RawResult<V>, facts: &mut ToolResult);
}

/// Writes one message into an Outline.
struct MessageWriter<'a, T> {
    outline: &'a mut Outline,
    texts: T,
    message: u32,
    chars: usize,
    weight: usize,
    /// Characters outside of observations of which no text is read.
    opaque: usize,
    images: u32,
    /// What can be read of it weighs so much, or has so many characters; the rest counts so many quarter tokens.
    reasoning: (usize, usize),
    has_thinking: bool,
    besides: Besides,
    system_text: Option<SystemText>,
    is_in_observation: bool,
    /// Characters, weight and images before the current observation.
    before: (usize, usize, u32),
}

/// Reads a message into an Outline; `span` are its bytes, if the input was bytes.
#[inline]
pub(crate) fn write_message<V: Value, T: Texts<V>>(
    outline: &mut Outline,
    texts: T,
    object: &V::Object,
    span: Option<Span>,
) -> Result<(), V::Stop> {
    let index = outline.messages.len();
    outline.messages.push(Message {
        first_call: outline.calls.len() as u32,
        first_result: outline.results.len() as u32,
        first_piece: outline.pieces.len() as u32,
        ..Message::default()
    });
    outline.spans.extend(span);
    let mut writer = MessageWriter {
        outline,
        texts,
        message: index as u32,
        chars: 0,
        weight: 0,
        opaque: 0,
        images: 0,
        reasoning: (0, 0),
        has_thinking: false,
        besides: Besides::Nothing,
        system_text: None,
        is_in_observation: false,
        before: (0, 0, 0),
    };
    let facts = shape::read::<V, _>(object, &mut writer)?;
    let MessageWriter { outline, chars, weight, opaque, images, reasoning, has_thinking, besides, system_text, .. } =
        writer;
    let digest = system_text.filter(|_| besides == Besides::Nothing).and_then(|text| text.digest());
    outline.system_texts.extend(digest.map(|digest| (index as u32, digest)));
    let message = &mut outline.messages[index];
    (message.chars, message.weight, message.images) = (chars, weight + opaque_weight(opaque), images);
    (message.reasoning, message.sealed) = reasoning;
    message.take(&facts);
    message.besides = besides;
    let is_step = matches!(facts.item, ItemType::Step(_)); // of Interactions, which stay as they came
    let is_thought = has_thinking && facts.role == Role::Assistant && !is_step;
    message.is_signed = is_thought || facts.item == ItemType::Reasoning;
    Ok(())
}

impl<T> MessageWriter<'_, T> {
    #[inline]
    fn id<V: Value>(&mut self, id: Option<&V>) -> Option<TextSpan> {
        id.and_then(V::text).and_then(|id| V::read(id, |id| self.outline.keep_id(id)))
    }

    #[inline]
    fn name<V: Value>(&mut self, name: Option<&V>) -> Name {
        name.and_then(V::text).map(|name| V::read(name, |name| self.outline.intern(name)))
    }
}

impl<V: Value, T: Texts<V>> Sink<V> for MessageWriter<'_, T> {
    #[inline]
    fn reads_errors(&self) -> bool {
        self.texts.reads_errors()
    }

    #[inline]
    fn get(&mut self, object: &V::Object, key: Key) -> Result<Option<V>, V::Stop> {
        self.texts.get(object, key)
    }

    #[inline]
    fn text(&mut self, text: &V::Text) -> Result<(), V::Stop> {
        self.chars += self.texts.text(self.outline, text)?;
        if self.texts.weighs() {
            self.weight += self.texts.weight(text);
        }
        if let Some(system) = &mut self.system_text {
            V::read(text, |text| system.add(text));
        }
        Ok(())
    }

    #[inline]
    fn role(&mut self, role: Role) {
        if role == Role::System {
            self.system_text = Some(SystemText::default());
        }
    }

    fn image(&mut self) {
        self.images += 1;
    }

    fn reasoning(&mut self, text: Option<&V::Text>, size: usize) {
        match text {
            Some(text) if self.texts.weighs() => self.reasoning.0 += self.texts.weight(text),
            Some(_) => self.reasoning.0 += size,
            None => self.reasoning.1 += size,
        }
    }

    #[inline]
    fn besides(&mut self, what: Besides) {
        if !self.is_in_observation {
            self.besides = self.besides.max(what);
        }
    }

    fn signed(&mut self) {
        self.has_thinking = true;
    }

    fn opaque(&mut self, chars: usize) {
        self.chars += chars;
        self.opaque += if self.texts.weighs() { chars } else { 0 };
    }

    #[cold]
    fn unread(&mut self) {
        self.outline.unread.push(self.message);
    }

    #[cold]
    fn half(&mut self, id: Option<&V>, block: usize, is_result: bool) -> Result<(), V::Stop> {
        let half = self.id(id).map(|id| Half { id, message: self.message, block: block as u32, is_result });
        self.outline.halves.extend(half);
        Ok(())
    }

    fn call(&mut self, call: &RawCall<V>) -> Result<(), V::Stop> {
        let (id, name) = (self.id(call.id), self.name(call.name));
        let name_chars = name.map_or(0, |name| count_chars(self.outline.name(name)));
        let arguments = call.arguments.map_or(Ok(0), |arguments| arguments.size(call.depth))?;
        self.chars += name_chars + arguments + CALL_CHARS;
        if self.texts.weighs() {
            let of_value =
                |value: &V| value.text().map_or_else(|| self.texts.json_weight(value), |text| self.texts.weight(text));
            let arguments = call.arguments.map_or(0, of_value);
            self.weight += name.map_or(0, |name| weight(self.outline.name(name))) + arguments;
        }
        self.outline.calls.push(Call { id, name, message: self.message, block: call.block as u32 });
        Ok(())
    }

    #[inline]
    fn begin_observation(&mut self) {
        self.texts.begin_observation(self.outline);
        self.is_in_observation = true;
        self.before = (self.chars, self.weight, self.images);
    }

    #[inline]
    fn result(&mut self, result: &RawResult<V>) -> Result<(), V::Stop> {
        self.chars += result.chars;
        self.is_in_observation = false;
        if result.chars > 0 && self.texts.weighs() {
            let whole = result.value.filter(|_| result.frame == Frame::Output);
            self.weight += whole.map_or_else(|| opaque_weight(result.chars), |value| self.texts.json_weight(value));
        }
        let mut facts = ToolResult {
            id: self.id(result.id),
            name: self.name(result.name),
            value: Span::default(),
            chars: self.chars - self.before.0,
            weight: self.weight - self.before.1,
            newlines: 0,
            message: self.message,
            block: result.block as u32,
            images: self.images - self.before.2,
            first_piece: 0,
            pieces: 0,
            first_byte: 0,
            is_error: result.is_error,
            is_pinned: result.is_pinned,
            name_use: result.name_use,
            may_hold_dispatch: false,
            frame: result.frame,
        };
        self.texts.end_observation(self.outline, result, &mut facts);
        self.outline.results.push(facts);
        Ok(())
    }
}
