//! What happens in a session besides messages, and its record: numbers, the first of which is its tag, and the text of a summary.

use super::attempts::Attempts;
use crate::plan::SentView;
use crate::policy::Measured;
use crate::text::is_text;

/// Above every real number of a session; sums of smaller numbers do not overflow.
const LARGEST: u64 = 1 << 48;

/// Something that happened besides messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// What became of a summary.
    Summary(SummaryEvent),
    /// The cache was said to be cold after this many messages.
    Cold(usize),
    /// The sums of what was reported, after this many messages.
    Sums(usize, Vec<usize>),
    /// From this many messages on, a thousand tokens have so many characters, and requests so many quarter tokens besides the view.
    Calibration(usize, Measured),
    /// The view of a request was made.
    Sent(SentView),
}

/// What happened so far, in order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Events {
    others: Vec<Event>,
    /// The requests whose views were made, ascending.
    sent: Vec<SentView>,
    /// No signed reasoning of so many first messages is sent again, since the provider refused it; if this is `ALL`, none is.
    pub refused: usize,
}

/// Of messages: those that are still to come, too.
pub(crate) const ALL: usize = usize::MAX;

/// What became of a summary that was wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SummaryEvent {
    /// How many messages preceded the request.
    pub request: usize,
    /// The key of the summary.
    pub key: u64,
    /// The text, clipped to its share; None if it did not arrive. After a failure it is the built-in one.
    pub text: Option<Vec<u8>>,
    pub attempts: Attempts,
}

impl Event {
    /// How many messages there were.
    pub(crate) fn messages(&self) -> usize {
        match self {
            Event::Summary(event) => event.request,
            Event::Cold(messages) | Event::Sums(messages, _) => *messages,
            Event::Sent(sent) => sent.messages,
            Event::Calibration(since, _) => since.saturating_sub(1),
        }
    }

    /// Its numbers, and its text, as they are stored.
    pub(crate) fn fields(&self) -> (Vec<u8>, &[u8]) {
        let (numbers, text) = match self {
            Event::Summary(SummaryEvent { request, key, text, attempts }) => {
                let Attempts { failures, turns, cost, unfinished } = *attempts;
                let numbers = [*request, usize::from(text.is_some()), failures, turns, cost];
                let numbers = numbers.map(|number| number as u64);
                let unfinished = Some(unfinished as u64).filter(|unfinished| *unfinished > 0);
                let numbers = [1, *key].into_iter().chain(numbers).chain(unfinished);
                (numbers.collect(), text.as_deref().unwrap_or_default())
            }
            Event::Cold(messages) => (vec![2, *messages as u64], &[][..]),
            Event::Sums(messages, sums) => {
                let sums = sums.iter().map(|sum| *sum as u64);
                ([3, *messages as u64].into_iter().chain(sums).collect(), &[][..])
            }
            Event::Calibration(since, Measured { chars, beside }) => {
                (vec![4, *since as u64, *chars as u64, *beside as u64], &[][..])
            }
            Event::Sent(SentView { messages, digest, reasoning_from }) => {
                (vec![5, *messages as u64, *digest, *reasoning_from as u64], &[][..])
            }
        };
        (numbers.iter().flat_map(|number| number.to_le_bytes()).collect(), text)
    }

    /// Reads one; None if it is malformed.
    pub(crate) fn of(numbers: &[u8], text: Vec<u8>) -> Option<Self> {
        let (numbers, rest) = numbers.as_chunks();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let small = |number: u64| (number < LARGEST).then_some(number as usize);
        if !rest.is_empty() || !is_text(&text) {
            return None;
        }
        Some(match numbers[..] {
            [1, key, request, has_text, failures, turns, cost, ref unfinished @ ..] if unfinished.len() < 2 => {
                Event::Summary(SummaryEvent {
                    request: small(request)?,
                    key,
                    text: (has_text == 1).then_some(text),
                    attempts: Attempts {
                        failures: small(failures)?,
                        turns: small(turns)?,
                        cost: small(cost)?,
                        unfinished: unfinished.first().map_or(Some(0), |unfinished| small(*unfinished))?,
                    },
                })
            }
            [2, messages] => Event::Cold(small(messages)?),
            [3, messages, ref sums @ ..] => {
                Event::Sums(small(messages)?, sums.iter().map(|sum| small(*sum)).collect::<Option<_>>()?)
            }
            [4, since, chars, ref beside @ ..] if chars < 1 << 16 && beside.len() < 2 => {
                let beside = beside.first().map_or(Some(0), |beside| small(*beside))?;
                Event::Calibration(small(since)?, Measured { chars: chars as usize, beside })
            }
            [5, messages, digest, from] => {
                Event::Sent(SentView { messages: small(messages)?, digest, reasoning_from: small(from)? })
            }
            _ => return None,
        })
    }
}

impl Events {
    /// Adds one. Of sums only the newest count, and stay when others are dropped; of calibrations and views those of earlier requests.
    pub(crate) fn push(&mut self, event: Event) {
        if let Event::Sent(sent) = event {
            self.sent.truncate(self.sent.partition_point(|other| other.messages < sent.messages));
            return self.sent.push(sent);
        }
        self.others.retain(|other| match (other, &event) {
            (Event::Sums(..), Event::Sums(..)) => false,
            (Event::Calibration(other, _), Event::Calibration(since, _)) => other < since,
            _ => true,
        });
        self.others.push(if let Event::Sums(_, sums) = event { Event::Sums(0, sums) } else { event });
    }

    /// Those up to this many messages.
    pub(crate) fn until(&self, messages: usize) -> Self {
        let others = self.others.iter().filter(|event| event.messages() <= messages).cloned().collect();
        Events { others, ..self.sent_until(messages) }
    }

    /// The requests of at most this many messages and what was measured of them, and nothing else.
    pub(crate) fn sent_until(&self, messages: usize) -> Self {
        let is_kept = |event: &&Event| matches!(event, Event::Calibration(..)) && event.messages() <= messages;
        let sent = self.sent[..self.sent.partition_point(|sent| sent.messages <= messages)].to_vec();
        let refused = if self.refused == ALL { ALL } else { self.refused.min(messages) };
        Events { sent, refused, others: self.others.iter().filter(is_kept).cloned().collect() }
    }

    /// The same, with a digest that no view has.
    pub(crate) fn voided(mut self) -> Self {
        for sent in &mut self.sent {
            sent.digest = u64::MAX;
        }
        self
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Event> {
        let sent = self.sent.iter().map(|sent| Event::Sent(*sent));
        self.others.iter().cloned().chain(sent)
    }

    /// The view of the newest request of at most this many messages.
    pub(crate) fn sent_before(&self, messages: usize) -> Option<SentView> {
        let end = self.sent.partition_point(|sent| sent.messages <= messages);
        self.sent[..end].last().copied()
    }

    /// After how many messages the cache was said to be cold.
    pub(crate) fn cold(&self) -> impl Iterator<Item = usize> {
        self.others.iter().filter_map(|event| if let Event::Cold(messages) = event { Some(*messages) } else { None })
    }

    /// Sums of what was reported, with the meaning that the caller gives them.
    pub(crate) fn sums(&self) -> &[usize] {
        let sums =
            self.others.iter().find_map(|event| if let Event::Sums(_, sums) = event { Some(&sums[..]) } else { None });
        sums.unwrap_or_default()
    }

    /// What was measured: of requests after at least this many messages, ascending.
    pub(crate) fn calibrations(&self) -> impl DoubleEndedIterator<Item = (usize, Measured)> {
        let numbers =
            |event: &Event| if let Event::Calibration(since, found) = event { Some((*since, *found)) } else { None };
        self.others.iter().filter_map(numbers)
    }

    pub(crate) fn summaries(&self) -> impl DoubleEndedIterator<Item = &SummaryEvent> {
        self.others.iter().filter_map(|event| if let Event::Summary(event) = event { Some(event) } else { None })
    }
}
