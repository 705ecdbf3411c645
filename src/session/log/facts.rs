//! Sessions of messages of which only facts are known: their text stays with its owner, who is asked for that of a result once
//! masking depends on it.

use super::Log;
use crate::clip::{Clip, handle_of_whole};
use crate::handle::Handle;
use crate::outline::{Call, Half, Message, Outline, ToolResult, reserve};
use crate::placeholder::Placeholder;
use crate::plan::{Costs, Layout, PlanContext, Standing, Summary, SummaryInput, leading_system_messages};
use crate::policy::Policy;
use crate::session::{Result, Session, Update};
use crate::source::{Bytes, OneText, Source};
use crate::text::count_chars;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The place of a result: its message, and its place among the results of that.
pub(crate) type ResultPlace = (usize, usize);

/// A summary in a view: before which message it stands, its text, and the serialized message.
pub(crate) type ShownSummary = (usize, Vec<u8>, Vec<u8>, Option<usize>);

/// The part of a result's text that must be kept.
#[derive(Debug, Clone)]
pub(crate) struct KnownText {
    /// The whole text if it is a placeholder, else what a cut keeps of it: beginning and end.
    text: Vec<u8>,
    is_whole: bool,
    /// The text as a forced cut leaves it, if there is a limit and it is long.
    cut: Vec<u8>,
    /// The handle by which it is recalled; zeros where placeholders do not name it.
    pub handle: Handle,
}

/// The texts that are kept, by result.
pub(crate) type KnownTexts = HashMap<u32, KnownText>;

/// The texts of a session: bytes of the messages that are written, which come first, and what is kept of the others.
pub(crate) struct LogSource<'a> {
    pub written: Bytes<'a>,
    pub texts: &'a KnownTexts,
}

impl<'a> LogSource<'a> {
    fn bytes_of(&self, outline: &Outline, message: usize) -> Option<&Bytes<'a>> {
        (message < outline.spans.len()).then_some(&self.written)
    }

    fn bytes(&self, outline: &Outline, result: usize) -> Option<&Bytes<'a>> {
        self.bytes_of(outline, outline.results[result].message as usize)
    }

    fn known(&self, result: usize) -> Option<&KnownText> {
        self.texts.get(&(result as u32))
    }
}

impl Source for LogSource<'_> {
    fn observation(&self, outline: &Outline, result: usize) -> Vec<u8> {
        match self.bytes(outline, result) {
            Some(bytes) => bytes.observation(outline, result),
            None => self.known(result).map_or(vec![], |known| known.text.clone()),
        }
    }

    fn clipped(&self, outline: &Outline, result: usize, clip: &Clip) -> Vec<u8> {
        match self.known(result) {
            Some(known) if !known.cut.is_empty() && self.bytes(outline, result).is_none() => known.cut.clone(),
            _ => clip.apply(&self.observation(outline, result)),
        }
    }

    fn observation_begins(&self, outline: &Outline, result: usize, prefix: &[u8]) -> bool {
        match self.bytes(outline, result) {
            Some(bytes) => bytes.observation_begins(outline, result, prefix),
            None => self.known(result).is_some_and(|known| known.is_whole && known.text.starts_with(prefix)),
        }
    }

    fn observation_may_end(&self, outline: &Outline, result: usize, suffix: &[u8]) -> bool {
        self.bytes(outline, result).is_none_or(|bytes| bytes.observation_may_end(outline, result, suffix))
    }

    fn observation_may_hold_dispatch(&self, outline: &Outline, result: usize) -> bool {
        self.bytes(outline, result).is_some_and(|bytes| bytes.observation_may_hold_dispatch(outline, result))
    }

    fn handle(&self, outline: &Outline, result: usize) -> Handle {
        match self.bytes(outline, result) {
            Some(bytes) => bytes.handle(outline, result),
            None => self.known(result).map_or(Handle::default(), |known| known.handle),
        }
    }

    fn pieces(&self, outline: &Outline, message: usize) -> Vec<Vec<u8>> {
        self.bytes_of(outline, message).map_or(vec![], |bytes| bytes.pieces(outline, message))
    }

    fn has_tag(&self, outline: &Outline, message: usize, tag: &str) -> bool {
        self.bytes_of(outline, message).is_some_and(|bytes| bytes.has_tag(outline, message, tag))
    }
}

impl Log {
    /// Appends the messages of an outline.
    fn extend(&mut self, policy: &Policy, new: &Outline) {
        reserve(&mut self.outline.messages, new.messages.len());
        reserve(&mut self.outline.calls, new.calls.len());
        reserve(&mut self.outline.results, new.results.len());
        for message in 0..new.messages.len() {
            let outline = &mut self.outline;
            let place = outline.messages.len() as u32;
            outline.messages.push(Message {
                first_call: outline.calls.len() as u32,
                first_result: outline.results.len() as u32,
                first_piece: 0,
                ..new.messages[message]
            });
            for call in &new.calls[new.calls_of(message)] {
                let id = call.id.map(|id| outline.keep(new.text(id)));
                let name = call.name.map(|name| outline.intern(new.name(name)));
                outline.calls.push(Call { id, name, message: place, ..*call });
            }
            for result in &new.results[new.results_of(message)] {
                let id = result.id.map(|id| outline.keep(new.text(id)));
                let name = result.name.map(|name| outline.intern(new.name(name)));
                outline.results.push(ToolResult { id, name, message: place, pieces: 0, ..*result });
            }
            for half in &new.halves[new.halves_before(message)..new.halves_before(message + 1)] {
                let id = outline.keep(new.text(half.id));
                outline.halves.push(Half { id, message: place, ..*half });
            }
            if let Some(digest) = new.system_text(message) {
                outline.system_texts.push((place, digest));
            }
            self.admit(policy);
        }
    }

    /// Cuts a new result that has this text.
    fn cut_known(&mut self, policy: &Policy, result: usize, source: &OneText) {
        let Log { outline, pairs, turns, .. } = &*self;
        let placeholder = Placeholder::of(policy);
        let context = PlanContext::of_texts(outline, source, policy, &placeholder, (pairs, turns));
        for (result, arrival) in context.arrivals(result..result + 1) {
            arrival.take(&mut self.outline, result);
            let removed = self.outline.arrival_chars(result..result + 1);
            self.chars -= removed;
            if !policy.weighs() {
                self.cost -= removed;
            }
        }
    }

    /// Keeps what is needed of the text of a result; of one that is no text, whose JSON is given, its handle.
    fn know(&mut self, policy: &Policy, result: usize, text: Vec<u8>) {
        let placeholder = Placeholder::of(policy);
        let ToolResult { id, frame, .. } = self.outline.results[result];
        let handle = if placeholder.names_handle() {
            handle_of_whole(id.map_or(b"", |id| self.outline.text(id)), &text)
        } else {
            Handle::default()
        };
        let text = if frame.holds_text() { text } else { vec![] };
        let is_kept = policy.exempt.texts.fit(
            |beginning| text.starts_with(beginning),
            |suffix| text.ends_with(suffix),
            || text.clone(),
        );
        self.outline.results[result].is_pinned |= is_kept;
        let text = OneText(text);
        let is_whole = placeholder.is_placeholder(&self.outline, &text, result);
        self.cut_known(policy, result, &text);
        let text = text.0;
        let chars = count_chars(&text);
        let arrived = chars - self.outline.cut_of(result).map_or(0, Clip::removed);
        let forced = match policy.limit.clip_of_requests().filter(|_| !is_whole) {
            Some(max_chars) if arrived > max_chars => {
                let handle = placeholder.names_handle().then_some(handle);
                Clip::of(chars, 0, max_chars, handle).apply(&text)
            }
            _ => vec![],
        };
        let text = match self.outline.cut_of(result) {
            _ if is_whole => text,
            Some(cut) => cut.kept(&text),
            None => vec![],
        };
        if !text.is_empty() || !forced.is_empty() || placeholder.names_handle() {
            self.texts.insert(result as u32, KnownText { text, is_whole, cut: forced, handle });
        }
    }
}

impl Session {
    /// Appends the messages of an outline. Texts of results that are not given are asked for by [`Session::texts_needed`].
    pub(crate) fn extend(&mut self, new: &Outline, texts: Vec<(usize, Vec<u8>)>) {
        let messages = self.log.len();
        if messages == 0 {
            self.log.outline.begins_with_summary = new.begins_with_summary;
        }
        self.take(new, texts);
        self.view.is_current = false;
        self.unrequested.get_or_insert(messages);
    }

    fn take(&mut self, new: &Outline, texts: Vec<(usize, Vec<u8>)>) {
        let (messages, results) = (self.log.len(), self.log.outline.results.len());
        self.log.extend(&self.policy, new);
        for (result, text) in texts {
            self.log.know(&self.policy, results + result, text);
        }
        self.log.weigh(&self.policy, messages);
    }

    /// Appends a message to a session of JSON by its facts; [`Session::write_texts`] gives its text once that is asked for.
    pub fn append_facts(&mut self, message: &Outline, texts: Vec<(usize, Vec<u8>)>) {
        let (index, was_run) = (self.len(), self.log.ends_with_run());
        self.take(message, texts);
        self.appended(index, was_run);
    }

    /// Whether texts that are not written are read next: by a store, or a reader of JSON; where cache marks are moved, and tokens counted;
    /// of a message that may be the summary of an earlier reduction, where messages may be hidden; where a limit hides them by what the
    /// user says; and of what a summary tells of, or is cut or joined to that.
    pub fn asks_texts(&self) -> bool {
        let (written, messages) = (self.log.outline.spans.len(), self.len());
        let Policy { terms, limit, terms_by_shape, .. } = &*self.given;
        let mut all_terms = terms_by_shape.iter().map(|(_, terms)| terms).chain([terms]);
        let mut hides = || limit.is_kept || limit.trigger > 0 || all_terms.any(|terms| terms.summaries.is_some());
        let may_be_summary = || messages <= leading_system_messages(&self.log.outline, messages);
        let is_over = |max: usize| self.state.cost_of(self.log.cost) > max || !self.state.hidden().is_empty();
        let is_at_limit = || self.policy.limit_at(&self.requests, messages).is_some_and(is_over);
        let shows_others = || {
            let hidden = self.state.hidden_after(&self.step);
            if hidden.is_empty() && hidden.cuts.is_empty() {
                return false;
            }
            let joined = self.with_context(|context| hidden.joined(context, messages));
            let cut = hidden.cuts.iter().map(|cut| cut.message);
            hidden.last().into_iter().chain(cut).chain(joined).any(|message| message >= written)
        };
        let moves_marks = self.own_mark.is_some() || !self.log.marks.is_empty();
        let are_read = self.stored.is_used || self.log.is_read;
        are_read
            || moves_marks
            || self.log.costs.as_ref().is_some_and(Costs::are_given)
            || (may_be_summary() && hides())
            || is_at_limit()
            || shows_others()
    }

    /// Writes the texts of messages from this one on, as far as they have none.
    pub fn write_texts(&mut self, first: usize, messages: &[Vec<u8>]) -> Result<()> {
        for message in &messages[self.log.outline.spans.len().saturating_sub(first).min(messages.len())..] {
            self.log.write(message)?;
        }
        Ok(())
    }

    /// The results of which the text decides how they are masked or cut: those that leave the window now, and of the messages from
    /// this one on long ones; with a limit all of them.
    pub(crate) fn texts_needed(&self, first: usize) -> Vec<ResultPlace> {
        let needed = self.with_context(|context| self.state.texts_needed(context, first));
        needed.into_iter().map(|result| self.place_of(result)).collect()
    }

    /// Gives the costs of the newest messages, which are those of their characters until then, and of cut results.
    pub(crate) fn give_costs(&mut self, costs: Costs) {
        self.log.give_costs(&self.policy, costs);
    }

    /// Gives the text of a result.
    pub(crate) fn give_text(&mut self, (message, place): ResultPlace, text: Vec<u8>) {
        let result = self.log.outline.results_before(message) + place;
        self.log.know(&self.policy, result, text);
        if self.log.outline.cut_of(result).is_some() || self.log.outline.is_cleared(result) {
            self.log.weigh(&self.policy, message);
        }
    }

    /// Makes the requests before the runs that were appended.
    fn make_requests(&mut self) {
        let Some(first) = self.unrequested.take() else { return };
        self.decide_provider(first);
        let starts = &self.log.turns.starts;
        let starts = starts[starts.partition_point(|start| (*start as usize) < first)..].to_vec();
        for start in starts.into_iter().map(|start| start as usize) {
            self.settle_cold(start);
            self.make_request(start);
        }
    }

    /// Makes the view of messages given as facts current, or asks for its summary. What is given is that with this key.
    pub(crate) fn update_facts(&mut self, summary: &SummaryInput, key: u64) -> Result<Update> {
        self.make_requests();
        if !self.view.is_current {
            self.renew_requests_for_cold();
            self.decide_step();
            let is_it = self.state.hidden_after(&self.step).summary.is_some_and(|standing| standing.key == key);
            if let Some(asked) = self.summary_text(if is_it { summary } else { &SummaryInput::NotAsked })? {
                return Ok(asked);
            }
            self.show();
        }
        Ok(Update::Done)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.view.layout
    }

    /// How many messages the current view hides, and a number that is the same for equal messages of its summary: a later message
    /// may decide their shape.
    pub(crate) fn hiding(&self) -> (usize, Option<u64>) {
        let Layout { hidden, summary, .. } = &self.view.layout;
        let number = |(standing, Summary { role, shape, joins, .. }): (Standing, &Summary)| {
            let mut hasher = DefaultHasher::new();
            (standing.key, role, shape, joins).hash(&mut hasher);
            hasher.finish()
        };
        (hidden.count(), hidden.summary.zip(summary.as_ref()).map(number))
    }

    /// The hidden messages of the current view, ascending, and its summary.
    pub(crate) fn hidden(&self) -> (Vec<usize>, Option<ShownSummary>) {
        let layout = &self.view.layout;
        let summary = layout.hidden.summary.zip(layout.summary.as_ref());
        let summary = summary.map(|(standing, Summary { text, joins, .. })| {
            (standing.place, text.clone(), self.summary_message(), *joins)
        });
        (layout.hidden.messages().collect(), summary)
    }

    /// Whether the view is within the limit.
    pub(crate) fn is_within_limit(&self) -> bool {
        self.policy.limit_at(&self.requests, self.log.len()).is_none_or(|max| self.view_cost() <= max)
    }

    pub(crate) fn raw_chars(&self) -> usize {
        self.log.chars + self.log.outline.arrival_chars(0..self.log.outline.results.len())
    }
}
