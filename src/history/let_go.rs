//! How a history with a store lets go of what that has: what no later view can show otherwise is written down as it is
//! shown, and the session goes on with the messages behind it. After a restart it begins there, too.
//!
//! Messages are let go from the first one on. Where there is a budget, the later stages plan the whole session, which
//! therefore stays; a summary makes it short again.

use super::head::{Behind, Head};
use super::index::{self, Entry, Update, Writer};
use super::ledger::Ledger;
use super::session::Session;
use super::{History, scanned};
use crate::outline::Name;
use crate::pairs::open_from;
use crate::plan::Move;
use crate::policy::Goal;
use crate::source::{Bytes, Source};
use crate::store::{RecordKind, Result, Store};
use std::collections::{HashMap, HashSet};

/// What a history remembers of its store.
#[derive(Debug, Default)]
pub struct Kept {
    /// Ids in the index, and moves.
    ids: usize,
    moves: usize,
    /// Messages before this one may have been written down as another history showed them.
    stale: usize,
    /// Ids of calls that were let go and have got a result since.
    answered: HashSet<Vec<u8>>,
    /// Messages that had come when it let go the last time, and how many, of how many bytes, it kept then.
    last: (usize, usize, usize),
}

impl History {
    /// Whether it is time to let go: so many messages have come since the last time, or so many bytes, and as much as was
    /// kept then.
    #[must_use]
    pub fn is_full(&self, messages: usize, bytes: usize) -> bool {
        let (before, kept, kept_bytes) = self.kept.last;
        let held = self.session.data.len() + self.past.data.len();
        self.ledger.messages - before >= messages.max(kept) || held.saturating_sub(kept_bytes) >= bytes.max(kept_bytes)
    }

    /// Writes to the store all that it needs to go on, and lets go of what is in there. Every message must be stored, and
    /// `tag` is given to [`History::resume`] again. Where this fails, nothing has changed.
    ///
    /// # Errors
    /// Those of the store.
    pub fn let_go(&mut self, store: &mut Store, tag: &[u8]) -> Result<()> {
        let count = if self.may_let_go() { self.settled() } else { 0 };
        let shown = self.shown_messages(count);
        let updates = self.updates(count);
        let behind = self.behind_without(count, &shown);
        let session = if count > 0 {
            let messages = (count..self.session.len()).map(|message| self.session.message(message));
            Some(self.session_behind(behind.clone(), messages, store)?)
        } else {
            None
        };
        let (first, stale) = (self.session.behind.messages, self.kept.stale);
        let moves: &[Move] = if behind.messages > 0 { &self.session.fold.moves } else { &[] };
        let ledger = Ledger {
            messages: self.ledger.messages,
            stored: self.ledger.observations(),
            totals: self.ledger.totals,
            ..Ledger::default()
        };
        let head = store.change(|changes| {
            if changes.last(RecordKind::Session) == 0 {
                changes.append(RecordKind::Session, &[tag, &[]], &[])?;
            }
            for (place, shown) in shown.iter().enumerate() {
                let fields: &[&[u8]] = if let Some(bytes) = shown { &[bytes] } else { &[] };
                if first + place < stale || shown.is_some() {
                    changes.replace_before_last(RecordKind::Message, (first + place + 1) as u64, fields)?;
                }
            }
            let mut writer = Writer::of(changes, self.kept.ids);
            writer.add_places(self.ledger.stored, &self.ledger.places)?;
            writer.update(updates.iter().map(|(id, update)| (id.as_slice(), *update)))?;
            writer.add_moves(self.kept.moves, moves)?;
            let (ids, moves) = (writer.ids, self.kept.moves + moves.len());
            let head = Head { ledger, ids, moves, stale, behind };
            changes.replace(RecordKind::Session, 1, &[tag, &head.bytes()], &[])?;
            Ok(head)
        })?;
        self.ledger.let_go();
        (self.kept.ids, self.kept.moves) = (head.ids, head.moves);
        if head.behind.messages > 0 {
            self.session.fold.moves.clear();
        }
        self.kept.answered.clear();
        self.past.let_go();
        if let Some(session) = session {
            self.settle_let_go(count);
            self.session = session;
        }
        self.kept.last = (self.ledger.messages, self.session.len(), self.session.data.len() + self.past.data.len());
        Ok(())
    }

    /// Only what is masked for good is let go; where there is a budget, a later stage may want all of it. And while it is
    /// read again, a history does not know of itself what it has written down of all its messages.
    fn may_let_go(&mut self) -> bool {
        let masks = self.policy.goal == Goal::Mask && self.session.cost > self.raw_cost_at_most;
        let may = masks && self.len() == self.ledger.messages;
        if may {
            self.look_masked();
        }
        may
    }

    /// How many of the messages that are there are settled.
    fn settled(&mut self) -> usize {
        let policy = &self.policy;
        let source = Bytes(&[]);
        let ground = self.session.ground(policy, &source);
        let outline = &self.session.outline;
        let fold = &self.session.fold;
        // The last one stays, so that there is one to be followed.
        let mut count = outline.messages.len().saturating_sub(1);
        count = count.min(fold.settled_messages(ground));
        // Calls that are open still are no orphans.
        count = count.min(open_from(outline, |message| outline.holds_results(message)));
        if let Some(result) = outline.results.get(fold.settled(policy)) {
            count = count.min(result.message as usize);
        }
        loop {
            let results = outline.results_before(count)..outline.results.len();
            let calls = results.filter_map(|result| self.session.pairs.pairs.call_of(result));
            let first = calls.map(|call| outline.calls[call].message as usize).min().unwrap_or(count);
            if first >= count {
                return count;
            }
            count = first;
        }
    }

    /// The first messages that are there as every later view shows them; None where they are what was appended.
    fn shown_messages(&self, count: usize) -> Vec<Option<Vec<u8>>> {
        let results = |message| self.session.outline.results_of(message);
        let is_masked = |message| !crate::splice::masked_in(&self.session.fold.masked, results(message)).is_empty();
        (0..count).map(|message| is_masked(message).then(|| self.shown_message(message))).collect()
    }

    /// What becomes of ids in the index.
    fn updates(&self, count: usize) -> HashMap<Vec<u8>, Update> {
        let mut updates: HashMap<Vec<u8>, Update> = HashMap::new();
        for id in &self.kept.answered {
            updates.entry(id.clone()).or_default().is_answered = true;
        }
        for (id, number) in &self.ledger.newest {
            updates.entry(id.clone()).or_default().number = Some(*number);
        }
        let Session { outline, pairs, behind, .. } = &self.session;
        for call in 0..outline.calls_before(count) {
            if let Some(id) = outline.calls[call].id {
                let message = outline.calls[call].message as usize;
                let call = (behind.messages + message, pairs.pairs.is_answered(call));
                updates.entry(outline.text(id).to_vec()).or_default().call = Some(call);
            }
        }
        updates
    }

    /// What is to be known without the first messages.
    fn behind_without(&self, count: usize, shown: &[Option<Vec<u8>>]) -> Behind {
        let Session { pairs, fold, chars, cost, behind, .. } = &self.session;
        if count == 0 && behind.messages == 0 {
            return Behind::default();
        }
        let source = Bytes(&[]);
        let ground = self.session.ground(&self.policy, &source);
        let bytes = |message: usize| shown[message].as_ref().map_or(self.session.message(message).len(), Vec::len) + 1;
        Behind {
            messages: behind.messages + count,
            view_bytes: behind.view_bytes + (0..count).map(bytes).sum::<usize>(),
            chars: *chars,
            cost: *cost,
            counts: pairs.counts(),
            fold: fold.state_without(ground, count),
        }
    }

    /// The session behind what was let go, with these messages.
    fn session_behind<'a>(
        &self,
        behind: Behind,
        messages: impl Iterator<Item = &'a [u8]>,
        store: &mut Store,
    ) -> Result<Session> {
        let mut session = Session::behind(behind);
        let mut numbers = session.behind.fold.observations as u32 + 1..;
        for message in messages {
            // Each was read before, so this cannot fail.
            let _ = session.scan(message, true, &self.policy, &mut numbers);
            let late = late_calls(&mut session, store)?;
            session.admit(&self.policy);
            for (result, name, _) in late {
                session.pairs.join_late(result, name, false);
            }
        }
        session.go_on(&self.policy);
        Ok(session)
    }

    /// Goes on with what [`History::let_go`] wrote down last, if that was with the same tag. How many messages the store
    /// knows the observations of, and how many the session has now.
    ///
    /// # Errors
    /// Those of the store.
    pub fn resume(&mut self, store: &mut Store, tag: &[u8]) -> Result<(usize, usize)> {
        let Some(record) = store.get(RecordKind::Session, 1, true)? else { return Ok((0, 0)) };
        let (Some(old_tag), Some(numbers)) = (record.fields.first(), record.fields.get(1)) else { return Ok((0, 0)) };
        let Some(head) = Head::of(numbers).filter(|head| old_tag == tag && head.fits(store)) else {
            self.kept.stale = store.last(RecordKind::Message) as usize;
            if store.is_read_only() {
                return Ok((0, 0));
            }
            // What was written down is another history's, or is being cleared.
            store.replace(RecordKind::Session, 1, &[tag, &[]], &[])?;
            index::clear(store)?;
            return Ok((0, 0));
        };
        let Head { ledger, ids, moves, stale, behind } = head;
        let (noted, gone) = (ledger.messages, behind.messages);
        (self.ledger, self.kept) = (ledger, Kept { ids, moves, stale, ..Kept::default() });
        if gone == 0 {
            return Ok((noted, 0));
        }
        let messages: Vec<Vec<u8>> =
            (gone..noted).map(|message| stored_message(store, message)).collect::<Result<_>>()?;
        self.session = self.session_behind(behind, messages.iter().map(Vec::as_slice), store)?;
        self.numbered = self.ledger.observations();
        self.kept.last = (noted, self.session.len(), self.session.data.len());
        Ok((noted, noted))
    }

    /// The first message of the session that is not in the store alone.
    #[must_use]
    pub fn first_here(&self) -> usize {
        self.session.behind.messages
    }

    /// How the boundary came to where it is: how many moves are in the store alone, and those behind them.
    #[must_use]
    pub fn moves(&self) -> (usize, Vec<Move>) {
        (self.kept.moves, self.newest_moves())
    }

    /// Bytes of the view before that.
    #[must_use]
    pub fn bytes_let_go(&self) -> usize {
        self.session.behind.view_bytes
    }

    /// Whether something of it is in the store alone.
    #[must_use]
    pub fn has_let_go(&self) -> bool {
        self.ledger.stored + self.past.first + self.first_here() > 0
    }

    /// The calls that results of the last message belong to, where these were let go; notes that they are answered.
    pub(super) fn late_calls(&mut self, store: Option<&mut Store>) -> Result<Vec<(usize, Name, bool)>> {
        let Some(store) = store.filter(|_| self.session.behind.messages > 0) else { return Ok(vec![]) };
        let mut late = late_calls(&mut self.session, store)?;
        let outline = &self.session.outline;
        for (result, _, is_first) in &mut late {
            let id = outline.results[*result].id.map_or(&b""[..], |id| outline.text(id));
            *is_first &= self.kept.answered.insert(id.to_vec());
        }
        Ok(late)
    }
}

/// Of the message that was scanned last: its results whose call was let go, the tool, and whether that had no result yet.
fn late_calls(session: &mut Session, store: &mut Store) -> Result<Vec<(usize, Name, bool)>> {
    let message = session.outline.messages.len() - 1;
    let mut late = vec![];
    for result in session.outline.results_of(message) {
        let Some(id) = session.outline.results[result].id else { continue };
        if session.pairs.call_of_last(&session.outline, result).is_some() {
            continue;
        }
        let id = session.outline.text(id).to_vec();
        let Some((message, is_answered)) = index::find(store, &id)?.as_ref().and_then(Entry::call) else {
            continue;
        };
        if message >= session.behind.messages {
            continue;
        }
        let data = stored_message(store, message)?;
        let outline = scanned(&data).unwrap_or_default();
        let mut calls = outline.calls.iter().rev();
        let Some(call) = calls.find(|call| call.id.is_some_and(|of_call| outline.text(of_call) == id)) else {
            continue;
        };
        let name = call.name.map(|name| session.outline.intern(outline.name(name)));
        late.push((result, name, !is_answered));
    }
    Ok(late)
}

/// A message as it was appended.
pub fn stored_message(store: &mut Store, message: usize) -> Result<Vec<u8>> {
    let record = store.get(RecordKind::Message, message as u64 + 1, true)?;
    Ok(record.and_then(|record| record.last).unwrap_or_default())
}

/// A message that was let go, as views show it.
fn stored_shown(store: &mut Store, message: usize) -> Result<Vec<u8>> {
    let record = store.get(RecordKind::Message, message as u64 + 1, false)?;
    match record.and_then(|record| record.fields.into_iter().next()) {
        Some(shown) => Ok(shown),
        None => stored_message(store, message),
    }
}

/// Appends messages that were let go to a view, each with what stands before it.
pub fn write_shown(store: &mut Store, message: usize, out: &mut Vec<u8>) -> Result<()> {
    out.push(if message == 0 { b'[' } else { b',' });
    out.extend_from_slice(&stored_shown(store, message)?);
    Ok(())
}

/// The text of an observation in a message.
pub fn observation_of(data: &[u8], place: usize) -> Option<Vec<u8>> {
    let outline = scanned(data).ok()?;
    (place < outline.results.len()).then(|| Bytes(data).observation(&outline, place))
}
