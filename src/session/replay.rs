//! Replay of a finished session with a budget: what each of its requests would have sent.

use super::{Result, Session, TextFormat, Update, ViewMessage, scanned};
use crate::outline::Outline;
use crate::plan::{Sent, SummaryInput, requests};
use crate::policy::{Model, Policy};
use crate::text::count_chars;

/// What each request of serialized messages would have sent from a [`Session`] with this policy. Without a model the built-in
/// summary is taken, which is free. A summary counts each turn that the view no longer has.
///
/// # Errors
/// Those of [`Session::append`].
pub fn replay(
    data: &[u8],
    surrogates: bool,
    outline: &Outline,
    policy: &Policy,
    model: Option<Model>,
) -> Result<Vec<Sent>> {
    let mut session = Session::new(policy.clone(), 0, TextFormat::Json);
    // The messages of the last view, with their characters.
    let mut view: Vec<(Vec<u8>, usize)> = vec![];
    let mut sent = vec![];
    for request in requests(outline, policy.image_chars) {
        for message in &outline.messages[session.len()..request.messages] {
            session.append(message.span.of(data), surrogates, None, None)?;
        }
        let summary = session.answer_updates(model)?;
        let (from, items) = session.changes(None)?;
        let shown = items.into_iter().map(|item| session.with_chars(item)).collect::<Result<Vec<_>>>()?;
        let same = from + view[from..].iter().zip(&shown).take_while(|(before, now)| before == now).count();
        view.truncate(from);
        view.extend(shown);
        sent.push(Sent {
            chars: session.counts().chars,
            cached_chars: view[..same].iter().map(|(_, chars)| chars).sum(),
            masked: session.counts().masked,
            summarized: session.ledger.totals.turns - session.log.turns.count(),
            summary,
        });
    }
    Ok(sent)
}

impl Session {
    /// Makes the view current. Returns the characters of input and output of the model, if it was asked for a summary.
    fn answer_updates(&mut self, model: Option<Model>) -> Result<(usize, usize)> {
        let (mut answer, mut call) = (SummaryInput::NotAsked, (0, 0));
        while let Update::AskSummary(messages, previous, built_in) = self.update_view(&answer, None)? {
            let mut text = built_in;
            if let Some(Model { summary_chars, prompt_chars }) = model {
                let mut given = prompt_chars + previous.as_deref().map_or(0, count_chars);
                for message in &messages {
                    given += self.chars_of(message)?;
                }
                call = (given, summary_chars);
                text = vec![b'x'; summary_chars];
            }
            answer = SummaryInput::Given(text, None);
        }
        Ok(call)
    }

    /// A message of the view, with its characters.
    fn with_chars(&self, shown: ViewMessage) -> Result<(Vec<u8>, usize)> {
        let message = match shown {
            ViewMessage::Appended(index) => self.message(index, None)?,
            ViewMessage::Rendered(_, message) | ViewMessage::Bytes(message) => message,
        };
        let chars = self.chars_of(&message)?;
        Ok((message, chars))
    }

    fn chars_of(&self, message: &[u8]) -> Result<usize> {
        Ok(scanned(message)?.chars_of(0, self.policy.image_chars))
    }
}
