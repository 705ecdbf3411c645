//! Outline -> pairs, orphans, findings and repairs. A result belongs to the nearest earlier call of its id; without such a call, in
//! some shapes, to an open one.

use crate::open_calls::OpenCalls;
use crate::outline::{Name, Outline, Shape, ToolResult};
use crate::text::same;
use crate::turns::Turns;
use std::collections::HashMap;

const NONE: u32 = u32::MAX;

/// Which call each result belongs to.
#[derive(Debug, Default)]
pub struct Pairs {
    /// Results of evicted calls, in order: result, tool, whether it is the first result of its call.
    late: Vec<(u32, Name, bool)>,
    call_of: Vec<u32>,
    first_result: Vec<u32>,
    next_result: Vec<u32>,
    /// Calls before this message are closed: they can no longer be answered.
    open_from: usize,
}

impl Pairs {
    /// Pairs calls and results, in document order.
    #[must_use]
    pub fn of(outline: &Outline) -> Self {
        let mut pairs = Pairs {
            late: vec![],
            call_of: vec![NONE; outline.results.len()],
            first_result: vec![NONE; outline.calls.len()],
            next_result: vec![NONE; outline.results.len()],
            open_from: open_from(outline, |message| outline.holds_results(message)),
        };
        let mut calls = Calls { outline, seen: 0, indexed: 0, table: HashMap::new() };
        let (mut open_calls, mut unpaired) = (OpenCalls::default(), vec![]);
        for result in 0..outline.results.len() {
            calls.advance_to(result);
            match calls.nearest(result) {
                Some(call) => drop(pairs.join(result as u32, call)),
                None => unpaired.push(result),
            }
            if !unpaired.is_empty() && result + 1 == outline.results_of(outline.results[result].message as usize).end {
                pairs.join_by_place(outline, &mut open_calls, unpaired.drain(..));
            }
        }
        pairs
    }

    /// Pairs the other results of a message, once those with the id of a call are. Returns how many it could.
    fn join_by_place(
        &mut self,
        outline: &Outline,
        open_calls: &mut OpenCalls,
        results: impl Iterator<Item = usize>,
    ) -> usize {
        let join = |result| {
            let call = open_calls.call_of(outline, result, |call| self.is_answered(call))?;
            Some(self.join(result as u32, call))
        };
        results.filter_map(join).count()
    }

    /// Adds a result to a call. Returns whether it is its first one.
    fn join(&mut self, result: u32, call: u32) -> bool {
        self.call_of[result as usize] = call;
        let first = &mut self.first_result[call as usize];
        if *first == NONE {
            *first = result;
            return true;
        }
        let after = &mut self.next_result[*first as usize];
        let second = core::mem::replace(after, result);
        self.next_result[result as usize] = second;
        false
    }

    /// Reverts the last [`Pairs::join`] of a call. Returns whether that was its first result.
    fn unjoin(&mut self, result: u32, call: usize) -> bool {
        let first = &mut self.first_result[call];
        if *first == result {
            *first = NONE;
            return true;
        }
        self.next_result[*first as usize] = self.next_result[result as usize];
        false
    }

    /// The call that a result belongs to.
    #[must_use]
    pub fn call_of(&self, result: usize) -> Option<usize> {
        let call = self.call_of[result];
        (call != NONE).then_some(call as usize)
    }

    /// The results of a call, its first one first.
    pub fn results_of(&self, call: usize) -> impl Iterator<Item = usize> + '_ {
        let mut next = self.first_result[call];
        core::iter::from_fn(move || {
            let result = (next != NONE).then_some(next as usize)?;
            next = self.next_result[result];
            Some(result)
        })
    }

    /// The tool of a result, if known.
    #[must_use]
    pub fn name_of(&self, outline: &Outline, result: usize) -> Name {
        if let Some(call) = self.call_of(result) {
            return outline.calls[call].name;
        }
        let late = self.late.binary_search_by_key(&(result as u32), |(result, ..)| *result);
        self.late[late.ok()?].1
    }

    /// Whether a call has a result.
    #[must_use]
    pub fn is_answered(&self, call: usize) -> bool {
        self.first_result[call] != NONE
    }

    /// Whether a call without a result may still get one.
    #[must_use]
    pub fn is_open(&self, outline: &Outline, call: usize) -> bool {
        outline.calls[call].message as usize >= self.open_from
    }

    /// Messages that have a call without result or a result without call; ascending.
    #[must_use]
    pub fn orphans(&self, outline: &Outline) -> Vec<usize> {
        let calls = (0..outline.calls.len())
            .filter(|call| !self.is_answered(*call) && !self.is_open(outline, *call))
            .map(|call| outline.calls[call].message as usize);
        let results = (0..outline.results.len())
            .filter(|result| self.call_of[*result] == NONE)
            .map(|result| outline.results[result].message as usize);
        let mut orphans: Vec<usize> = calls.chain(results).collect();
        orphans.sort_unstable();
        orphans.dedup();
        orphans
    }
}

/// A call is open when only messages of its own run, and then messages that answer, come after it.
pub(crate) fn open_from(outline: &Outline, answers: impl Fn(usize) -> bool) -> usize {
    let Some(last) = (0..outline.messages.len()).rev().find(|message| !answers(*message)) else {
        return 0;
    };
    let run = outline.messages[..=last].iter().rev().take_while(|message| message.is_agent_made).count();
    last + 1 - run.max(1)
}

/// The result of an evicted call: result, tool, whether it is the first result of its call.
pub type LateResult = (usize, Name, bool);

/// Pairs of a growing history, with incremental counts of orphans.
#[derive(Debug, Default)]
pub struct GrowingPairs {
    /// The pairs so far.
    pub pairs: Pairs,
    /// The newest call of each id.
    newest: HashMap<Vec<u8>, u32>,
    /// The previous call with the same id, of each call.
    earlier: Vec<u32>,
    open_calls: OpenCalls,
    unanswered_calls: usize,
    results_without_call: usize,
}

impl GrowingPairs {
    /// Adds the last message of the outline. Some of its results may be those of evicted calls.
    pub fn push(&mut self, outline: &Outline, late: &[LateResult]) {
        let message = outline.messages.len() - 1;
        let (calls, results) = (outline.calls_of(message), outline.results_of(message));
        self.pairs.first_result.resize(calls.end, NONE);
        self.pairs.call_of.resize(results.end, NONE);
        self.pairs.next_result.resize(results.end, NONE);
        let (mut answered, mut unpaired) = (0, vec![]);
        for result in results {
            if let Some(call) = self.call_by_id(outline, result) {
                answered += usize::from(self.pairs.join(result as u32, call));
            } else if let Some((_, tool, is_first)) = late.iter().find(|(late, ..)| *late == result) {
                self.pairs.late.push((result as u32, *tool, *is_first));
                answered += usize::from(*is_first);
            } else {
                unpaired.push(result);
            }
        }
        self.results_without_call += unpaired.len();
        let by_place = self.pairs.join_by_place(outline, &mut self.open_calls, unpaired.into_iter());
        self.results_without_call -= by_place;
        // The count of evicted calls comes from a store, so it may be wrong.
        self.unanswered_calls = (self.unanswered_calls + calls.len()).saturating_sub(answered + by_place);
        for call in calls {
            let id = outline.calls[call].id;
            let earlier = id.and_then(|id| self.newest.insert(outline.text(id).to_vec(), call as u32));
            self.earlier.push(earlier.unwrap_or(NONE));
        }
    }

    /// Keeps only the first calls and results of the outline, which still has all of them.
    pub fn truncate(&mut self, outline: &Outline, calls: usize, results: usize) {
        for result in (results..self.pairs.call_of.len()).rev() {
            let is_first = if let Some(call) = self.pairs.call_of(result) {
                self.pairs.unjoin(result as u32, call)
            } else if let Some((.., is_first)) = self.pairs.late.pop_if(|(late, ..)| *late as usize == result) {
                is_first
            } else {
                self.results_without_call -= 1;
                false
            };
            self.unanswered_calls += usize::from(is_first);
        }
        for call in (calls..self.earlier.len()).rev() {
            self.unanswered_calls = self.unanswered_calls.saturating_sub(1);
            match (outline.calls[call].id.map(|id| outline.text(id)), self.earlier[call]) {
                (Some(id), NONE) => drop(self.newest.remove(id)),
                (Some(id), earlier) => drop(self.newest.insert(id.to_vec(), earlier)),
                (None, _) => {}
            }
        }
        self.open_calls = OpenCalls::default();
        self.earlier.truncate(calls);
        self.pairs.first_result.truncate(calls);
        self.pairs.call_of.truncate(results);
        self.pairs.next_result.truncate(results);
    }

    /// The results from this one on whose call was evicted.
    pub fn late_from(&self, result: usize) -> impl Iterator<Item = usize> + '_ {
        let late = &self.pairs.late;
        late[late.partition_point(|(late, ..)| (*late as usize) < result)..].iter().map(|(late, ..)| *late as usize)
    }

    /// The call with the id of a result of the last message, which may be new.
    #[must_use]
    pub fn call_by_id(&self, outline: &Outline, result: usize) -> Option<u32> {
        let ToolResult { message, block, id, .. } = &outline.results[result];
        let id = outline.text((*id)?);
        let is_nearest = |call: &usize| {
            let call = &outline.calls[*call];
            call.block < *block && call.id.is_some_and(|of_call| outline.text(of_call) == id)
        };
        let own = outline.calls_of(*message as usize).rev().find(is_nearest);
        own.map(|call| call as u32).or_else(|| self.newest.get(id).copied())
    }

    /// Calls without result, including open ones, and results without call.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.unanswered_calls, self.results_without_call)
    }

    /// Sets the counts, to include those of evicted messages.
    pub fn set_counts(&mut self, (unanswered_calls, results_without_call): (usize, usize)) {
        (self.unanswered_calls, self.results_without_call) = (unanswered_calls, results_without_call);
    }

    /// Calls without result, excluding open ones, plus results without call.
    #[must_use]
    pub fn orphan_count(&self, outline: &Outline) -> usize {
        let open_from = open_from(outline, |message| outline.holds_results(message));
        let open = outline.messages.get(open_from).map_or(outline.calls.len(), |message| message.first_call as usize);
        let open = (open..outline.calls.len()).filter(|call| !self.pairs.is_answered(*call)).count();
        self.unanswered_calls.saturating_sub(open) + self.results_without_call
    }
}

/// Finds the nearest earlier call of an id: by linear search among the last few, since results closely follow their calls,
/// then in a table that is built lazily.
struct Calls<'a> {
    outline: &'a Outline,
    seen: usize,
    indexed: usize,
    table: HashMap<&'a [u8], u32>,
}

const LINEAR_SEARCH_CALLS: usize = 16;

impl<'a> Calls<'a> {
    /// Advances over the calls that precede a result.
    fn advance_to(&mut self, result: usize) {
        let result = &self.outline.results[result];
        while let Some(call) = self.outline.calls.get(self.seen) {
            if (call.message, call.block) >= (result.message, result.block) {
                break;
            }
            self.seen += 1;
        }
    }

    fn nearest(&mut self, result: usize) -> Option<u32> {
        let id = self.outline.text(self.outline.results[result].id?);
        let outline = self.outline;
        let text = |call: usize| -> Option<&'a [u8]> { Some(outline.text(outline.calls[call].id?)) };
        let near = self.seen.saturating_sub(LINEAR_SEARCH_CALLS);
        if let Some(call) = (near..self.seen).rev().find(|call| text(*call).is_some_and(|of_call| same(of_call, id))) {
            return Some(call as u32);
        }
        for call in self.indexed..self.seen {
            if let Some(id) = text(call) {
                self.table.insert(id, call as u32);
            }
        }
        self.indexed = self.seen;
        self.table.get(id).copied()
    }
}

/// What [`findings`] can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// No string id, so it never pairs.
    MissingId,
    /// A call of an id whose earlier call has no result yet.
    IdOpenTwice,
    /// An orphan.
    CallWithoutResult,
    /// It may still be answered.
    OpenCall,
    /// An orphan.
    ResultWithoutCall,
    /// Its call has a result already.
    SecondResult,
    /// It does not follow its call's turn.
    NotAdjacent,
    /// Not among the leading blocks of its message.
    NotLeading,
}

impl FindingKind {
    /// Its name in both engines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::MissingId => "missing_id",
            FindingKind::IdOpenTwice => "id_open_twice",
            FindingKind::CallWithoutResult => "call_without_result",
            FindingKind::OpenCall => "open_call",
            FindingKind::ResultWithoutCall => "result_without_call",
            FindingKind::SecondResult => "second_result",
            FindingKind::NotAdjacent => "not_adjacent",
            FindingKind::NotLeading => "not_leading",
        }
    }
}

/// A finding: its kind, its message, and the id of the call or result.
pub type Finding<'a> = (FindingKind, usize, Option<&'a [u8]>);

/// All faults of the pairs of a history, in document order.
#[must_use]
pub fn findings(outline: &Outline) -> Vec<Finding<'_>> {
    let pairs = Pairs::of(outline);
    let turns = Turns::of(outline);
    // Of each message, where the consecutive messages with results up to it begin.
    let mut results_from: Vec<usize> = (0..=outline.messages.len()).collect();
    for message in 0..outline.messages.len() {
        if outline.holds_results(message) && message > 0 && outline.holds_results(message - 1) {
            results_from[message] = results_from[message - 1];
        }
    }
    // ((message, block), order within, finding)
    let mut found: Vec<((u32, u32), Finding)> = vec![];
    let mut open: HashMap<&[u8], usize> = HashMap::new(); // id -> its calls without a result so far
    let mut calls = 0;
    for result in 0..=outline.results.len() {
        let place = outline.results.get(result).map_or((NONE, NONE), |result| (result.message, result.block));
        while let Some(call) = outline.calls.get(calls).filter(|call| (call.message, call.block) < place) {
            let id = call.id.map(|id| outline.text(id));
            let mut add = |kind| found.push(((call.message, call.block), (kind, call.message as usize, id)));
            match id {
                None if needs_id(outline, calls) => add(FindingKind::MissingId),
                None => {}
                Some(id) => {
                    let count = open.entry(id).or_insert(0);
                    *count += 1;
                    if *count > 1 {
                        add(FindingKind::IdOpenTwice);
                    }
                }
            }
            if !pairs.is_answered(calls) {
                add(if pairs.is_open(outline, calls) { FindingKind::OpenCall } else { FindingKind::CallWithoutResult });
            }
            calls += 1;
        }
        let Some(seen) = outline.results.get(result) else { break };
        let message = seen.message as usize;
        let id = seen.id.map(|id| outline.text(id));
        let mut add = |kind| found.push((place, (kind, message, id)));
        if id.is_none() && seen.name.is_none() {
            add(FindingKind::MissingId);
        }
        match pairs.call_of(result) {
            None => add(FindingKind::ResultWithoutCall),
            Some(call) => {
                if pairs.results_of(call).next() != Some(result) {
                    add(FindingKind::SecondResult);
                } else if let Some(count) = outline.calls[call].id.and_then(|id| open.get_mut(outline.text(id))) {
                    *count -= 1;
                }
                let run_end = turns.run_end(outline.calls[call].message as usize);
                if message < run_end || results_from[message] > run_end {
                    add(FindingKind::NotAdjacent);
                }
            }
        }
        let ordinal = result - outline.results_of(message).start;
        if outline.messages[message].shape.wants_results_first() && seen.block as usize != ordinal {
            add(FindingKind::NotLeading);
        }
    }
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// Whether a call without an id cannot be answered.
fn needs_id(outline: &Outline, call: usize) -> bool {
    outline.calls[call].name.is_none() || !shape_of(outline, call).names_results()
}

fn shape_of(outline: &Outline, call: usize) -> Shape {
    outline.messages[outline.calls[call].message as usize].shape
}

/// One step that repairs orphans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// Drop a message.
    DropMessage(usize),
    /// Drop one block of a message.
    DropBlock(usize, usize),
    /// Answer a call in a message, before this block.
    AddBlock(usize, usize, usize),
    /// Answer calls in a new message before this one; only shapes with blocks have several in one.
    AddMessage(usize, Vec<usize>),
}

impl Repair {
    fn place(&self) -> (usize, usize, usize) {
        match self {
            Repair::AddMessage(before, _) => (*before, 0, 0),
            Repair::DropMessage(message) => (*message, 1, 0),
            Repair::AddBlock(message, block, _) => (*message, 1 + block, 0),
            Repair::DropBlock(message, block) => (*message, 1 + block, 1),
        }
    }
}

/// The steps that repair the orphans of a history, by ascending place. Calls are given by number.
#[must_use]
pub fn repairs(outline: &Outline) -> Vec<Repair> {
    let pairs = Pairs::of(outline);
    let turns = Turns::of(outline);
    let mut steps = dropped_results(outline, &pairs);
    // Messages that answer once orphaned results are dropped; a dropped message does not interrupt answers.
    let mut answers: Vec<bool> = (0..outline.messages.len())
        .map(|message| outline.results_of(message).any(|result| pairs.call_of(result).is_some()))
        .collect();
    for step in &steps {
        if let Repair::DropMessage(message) = step {
            answers[*message] = true;
        }
    }
    let open_from = open_from(outline, |message| answers[message]);
    // The next call of the same id: a later answer would belong to that one.
    let mut later: HashMap<&[u8], usize> = HashMap::new();
    let mut next_same = vec![usize::MAX; outline.calls.len()];
    for (call, facts) in outline.calls.iter().enumerate().rev() {
        if let Some(id) = facts.id {
            next_same[call] = later.insert(outline.text(id), call).unwrap_or(usize::MAX);
        }
    }
    let mut places = Places { answers, end: (usize::MAX, 0), sibling: ((usize::MAX, Shape::Plain), None) };
    for (call, next_same) in next_same.into_iter().enumerate() {
        let message = outline.calls[call].message as usize;
        let has_id = outline.calls[call].id.is_some() || !needs_id(outline, call);
        if pairs.is_answered(call) || message >= open_from || !has_id {
            continue;
        }
        let run_end = turns.run_end(message);
        let place = places.after_answers(run_end);
        let shape = outline.messages[message].shape;
        let sibling = places.sibling(outline, &pairs, &turns, (run_end, shape), place);
        let goes_before = sibling.map_or(place, |(message, _)| message);
        if next_same != usize::MAX && (outline.calls[next_same].message as usize) < goes_before {
            continue;
        }
        if let Some((message, block)) = sibling {
            steps.push(Repair::AddBlock(message, block, call));
            continue;
        }
        match steps.last_mut() {
            Some(Repair::AddMessage(before, calls))
                if shape.has_blocks() && *before == place && shape_of(outline, calls[0]) == shape =>
            {
                calls.push(call);
            }
            _ => steps.push(Repair::AddMessage(place, vec![call])),
        }
    }
    steps.sort_by_key(Repair::place);
    steps
}

fn dropped_results(outline: &Outline, pairs: &Pairs) -> Vec<Repair> {
    let mut steps = vec![];
    for message in 0..outline.messages.len() {
        let orphans: Vec<usize> =
            outline.results_of(message).filter(|result| pairs.call_of(*result).is_none()).collect();
        if orphans.is_empty() {
            continue;
        }
        let block_count = outline.messages[message].blocks as usize;
        if !outline.messages[message].shape.has_blocks() || orphans.len() == block_count {
            steps.push(Repair::DropMessage(message));
        } else {
            steps.extend(
                orphans.iter().map(|result| Repair::DropBlock(message, outline.results[*result].block as usize)),
            );
        }
    }
    steps
}

/// Finds where the answers of a turn go; caches the last turn, so that the total is O(n).
struct Places {
    answers: Vec<bool>,
    end: (usize, usize),
    sibling: ((usize, Shape), Option<(usize, usize)>),
}

impl Places {
    /// The position after a run and the answers that directly follow it.
    fn after_answers(&mut self, run_end: usize) -> usize {
        if self.end.0 != run_end {
            let answers = self.answers[run_end..].iter().take_while(|answers| **answers).count();
            self.end = (run_end, run_end + answers);
        }
        self.end.1
    }

    /// The message that already answers calls of this shape of the run that ends at `run_end`, and the block there before
    /// which another answer goes: after the leading results; or after all others, where answers pair by their place.
    fn sibling(
        &mut self,
        outline: &Outline,
        pairs: &Pairs,
        turns: &Turns,
        (run_end, shape): (usize, Shape),
        place: usize,
    ) -> Option<(usize, usize)> {
        if self.sibling.0 != (run_end, shape) {
            let is_of_run = |call: usize| turns.run_end(outline.calls[call].message as usize) == run_end;
            let answers = |message: &usize| {
                outline.messages[*message].shape == shape
                    && outline.results_of(*message).any(|result| pairs.call_of(result).is_some_and(is_of_run))
            };
            let mut siblings = if shape.has_blocks() { run_end..place } else { 0..0 };
            let sibling = if shape.wants_results_first() { siblings.find(answers) } else { siblings.rfind(answers) };
            let block = |message: usize| {
                let results = &outline.results[outline.results_of(message)];
                let leading = results.iter().zip(0..).take_while(|(result, place)| result.block == *place).count();
                let all = results.last().map_or(0, |last| last.block as usize + 1);
                (message, if shape.wants_results_first() { leading } else { all })
            };
            self.sibling = ((run_end, shape), sibling.map(block));
        }
        self.sibling.1
    }
}
