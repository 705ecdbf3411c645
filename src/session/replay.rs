//! Replay of a finished session with a budget: what each of its requests would have sent.

use super::{Result, Session, TextFormat, Update, ViewMessage, scanned};
use crate::outline::Outline;
use crate::plan::{CachePlace, Request, Sent, SummaryInput, blocks_of};
use crate::policy::{Model, Policy};
use crate::stop::check;
use crate::text::count_chars;

/// Replays the requests of serialized messages as a [`Session`] with this policy. Without a model the built-in
/// summary is taken, which is free. A summary counts each turn that the view no longer has. No policy of a session pins its
/// boundary, so requests have none.
///
/// # Errors
/// Those of [`Session::append`].
pub fn replay(
    data: &[u8],
    surrogates: bool,
    outline: &Outline,
    requests: &[Request],
    policy: &Policy,
    model: Option<Model>,
) -> Result<Vec<Sent>> {
    let mut session = Session::new(policy.clone(), 0, TextFormat::Json);
    let mut view: Vec<Shown> = vec![];
    let mut sent = vec![];
    for request in requests {
        check();
        let appended = &outline.spans[session.len()..request.messages];
        for message in appended {
            session.append(message.of(data), surrogates, None, None)?;
        }
        let summary = session.answer_updates(model)?;
        let (from, items) = session.changes(view.len(), None)?;
        let shown = items.into_iter().map(|item| session.shown(item)).collect::<Result<Vec<_>>>()?;
        let same = from + view[from..].iter().zip(&shown).take_while(|(before, now)| before.bytes == now.bytes).count();
        let changed = view.get(same).zip(shown.get(same - from));
        let in_changed = changed.map_or(0, |(before, now)| now.blocks_same_as(before));
        view.truncate(from);
        view.extend(shown);
        let same_end = end_of(&view[..same]);
        sent.push(Sent {
            view: end_of(&view),
            same_chars: same_end.chars,
            same_blocks: same_end.blocks + in_changed,
            earlier: end_of(&view[..view.len().saturating_sub(appended.len())]),
            masked: session.counts().masked,
            summarized: session.ledger.totals.turns - session.log.turns.count(),
            need: session.need(),
            summary,
            ..Sent::default()
        });
    }
    Ok(sent)
}

/// A message of a view.
struct Shown {
    bytes: Vec<u8>,
    outline: Outline,
    end: CachePlace,
}

impl Shown {
    /// Content blocks before the first result that differs from the one in this place before; 0 if something else differs first.
    fn blocks_same_as(&self, before: &Shown) -> usize {
        let same = self.bytes.iter().zip(&before.bytes).take_while(|(now, before)| now == before).count();
        let changed = self.outline.results.iter().find(|result| result.value.end > same);
        let within = changed.filter(|result| result.value.start <= same);
        within.map_or(0, |result| (result.block as usize).min(self.end.blocks - 1))
    }
}

/// The end of these messages.
fn end_of(messages: &[Shown]) -> CachePlace {
    messages.iter().fold(CachePlace::default(), |place, message| CachePlace {
        chars: place.chars + message.end.chars,
        blocks: place.blocks + message.end.blocks,
    })
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
                    given += scanned(message)?.chars_of(0, self.policy.image_chars);
                }
                call = (given, summary_chars);
                text = vec![b'x'; summary_chars];
            }
            answer = SummaryInput::Given(text, None);
        }
        Ok(call)
    }

    fn shown(&self, message: ViewMessage) -> Result<Shown> {
        let bytes = match message {
            ViewMessage::Appended(index) => self.message(index, None)?,
            ViewMessage::Rendered(_, message) | ViewMessage::Bytes(message) => message,
        };
        let outline = scanned(&bytes)?;
        let end = CachePlace { chars: outline.chars_of(0, self.policy.image_chars), blocks: blocks_of(&outline, 0) };
        Ok(Shown { bytes, outline, end })
    }
}
