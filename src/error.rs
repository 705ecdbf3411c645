//! Errors in an input: what and where. Messages are written in Python, for both engines.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The input ends in the middle of a value.
    Eof,
    Syntax,
    /// A raw control character in a string.
    Control,
    Escape,
    /// Bytes that are not UTF-8.
    Utf8,
    Depth,
    Number,
    /// Something follows the end of the value.
    Trailing,
    /// A field that is read occurs twice.
    DuplicateKey,
    /// A bounded input has too many small values.
    Size,
    /// There is no list of messages.
    History,
    /// A message is not an object.
    Message,
    /// A content is neither a string, a list nor null.
    Content,
    /// A part of a content is not an object.
    Part,
}

impl Kind {
    /// The name in both engines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Eof => "eof",
            Kind::Syntax => "syntax",
            Kind::Control => "control",
            Kind::Escape => "escape",
            Kind::Utf8 => "utf8",
            Kind::Depth => "depth",
            Kind::Number => "number",
            Kind::Trailing => "trailing",
            Kind::DuplicateKey => "duplicate_key",
            Kind::Size => "size",
            Kind::History => "history",
            Kind::Message => "message",
            Kind::Content => "content",
            Kind::Part => "part",
        }
    }
}

/// Why an input is not a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub kind: Kind,
    /// The first offending byte, where the input was bytes.
    pub offset: Option<usize>,
    /// The message it is in.
    pub message_index: Option<usize>,
    /// The field it is in, such as `content[2].text`.
    pub field: Option<String>,
}

impl Error {
    /// A shape error in a field of a message.
    pub(crate) fn in_message(kind: Kind, offset: Option<usize>, message_index: usize, field: Option<String>) -> Self {
        Error { kind, offset, message_index: Some(message_index), field }
    }
}
