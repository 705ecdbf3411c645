//! What was sent: requests are noted with a digest of what their views show otherwise than the history, so that signed reasoning goes
//! back only behind what it was made from. A session notes its own requests; of a body, the caller says what was noted.

use super::masked::Masked;
use crate::outline::{Message, Outline};
use crate::placeholder::Form;
use crate::policy::Policy;

/// The digest of a view that shows nothing otherwise.
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;

/// The view of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentView {
    /// How many messages preceded the request.
    pub messages: usize,
    /// The digest of what it shows otherwise than they are, besides reasoning.
    pub digest: u64,
    /// The first message whose signed reasoning it has.
    pub reasoning_from: usize,
}

impl SentView {
    /// That of a request which was sent as the history is.
    pub fn raw(messages: usize) -> Self {
        SentView { messages, digest: mixed(START, START), reasoning_from: 0 }
    }
}

/// The noted views of the requests of a history, ascending; of a request that was sent in several ways all of them.
#[derive(Debug, Default, Clone)]
pub struct SentViews(pub Vec<SentView>);

impl SentViews {
    /// Those of the request after this many messages.
    pub(super) fn of(&self, messages: usize) -> &[SentView] {
        let place = |messages| self.0.partition_point(|sent| sent.messages < messages);
        &self.0[place(messages)..place(messages + 1)]
    }
}

/// A digest of one more number.
pub(crate) fn mixed(digest: u64, number: u64) -> u64 {
    (digest.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub(crate) fn mixed_bytes(digest: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(mixed(digest, bytes.len() as u64), |digest, byte| mixed(digest, u64::from(*byte)))
}

/// A digest of one more result that is shown otherwise.
pub(crate) fn with_form(digest: u64, one: &Masked) -> u64 {
    let digest = mixed(digest, u64::from(one.result));
    match one.form {
        Form::Restored { source } => mixed(digest, u64::from(source)),
        _ => one.clip().map_or(digest, |clip| mixed_bytes(digest, format!("{clip:?}").as_bytes())),
    }
}

/// The digest of the options that say what is shown in the place of a result.
pub(crate) fn texts_of(policy: &Policy) -> u64 {
    mixed_bytes(START, format!("{:?}", policy.text).as_bytes())
}

/// The first messages that have nothing but signed reasoning, in whose place a text is shown.
#[derive(Debug, Default, Clone)]
pub(crate) struct Alone {
    messages: Vec<usize>,
    /// Whether one has signed reasoning, whatever else it has; and how many were looked at.
    pub has_signed: bool,
    looked_at: usize,
    /// Whether messages were dropped since the view was made.
    pub is_rewound: bool,
}

impl Alone {
    /// Looks at all messages.
    pub(crate) fn look(&mut self, messages: &[Message]) {
        for (number, message) in
            messages.iter().enumerate().skip(self.looked_at).filter(|(_, one)| one.can_lose_reasoning())
        {
            self.has_signed = true;
            self.messages.extend(message.is_empty().then_some(number));
        }
        self.looked_at = messages.len();
    }

    /// Keeps the first messages.
    pub(crate) fn truncate(&mut self, messages: usize) {
        (self.looked_at, self.is_rewound) = (self.looked_at.min(messages), true);
        self.messages.truncate(self.before(messages));
    }

    /// How many precede a message.
    pub(crate) fn before(&self, message: usize) -> usize {
        self.messages.partition_point(|alone| *alone < message)
    }
}

/// The first message whose signed reasoning is sent back: none before `from`, and of those before `checked` no more are void.
///
/// `is_edited` says of a message whether texts edit what its request had sent, if reasoning is left out before another one: a message
/// that has nothing else gets a text. `alone_before` counts those before a message.
pub(crate) fn reasoning_from(
    outline: &Outline,
    checked: usize,
    mut from: usize,
    is_void: impl Fn(usize) -> bool,
    is_edited: impl Fn(usize, usize) -> bool,
    alone_before: impl Fn(usize) -> usize,
) -> usize {
    let last = |first: usize, is_void: &dyn Fn(usize) -> bool| {
        let mut messages = (first..outline.messages.len()).rev();
        messages.find(|message| outline.messages[*message].is_signed && is_void(*message))
    };
    if let Some(void) = last(checked, &is_void) {
        from = from.max(void + 1);
    }
    while alone_before(from) > 0
        && let Some(edited) = last(from.max(checked), &|message| is_edited(message, from))
    {
        from = edited + 1;
    }
    from
}
