//! A summary in a view, which a fold counts in place of what it replaces.

/// A summary in a view.
#[derive(Debug, Default, Clone)]
pub(super) struct SummaryInView {
    /// Whether the summary replaces a message, for each message.
    pub hidden: Vec<bool>,
    /// Characters of the replaced messages before each message.
    pub hidden_before: Vec<usize>,
    /// The first replaced message.
    pub place: usize,
    /// The characters.
    pub chars: usize,
}

impl SummaryInView {
    /// Whether the summary replaces a message.
    pub fn hides(&self, message: usize) -> bool {
        self.hidden.get(message) == Some(&true)
    }

    /// The characters in the view of a message of this many characters.
    pub fn chars(&self, message: usize, chars: usize) -> usize {
        match self.hides(message) {
            false => chars,
            true if message == self.place => self.chars,
            true => 0,
        }
    }
}
