//! The share of each request of a session that a provider's prompt cache serves.
//!
//! With the prefix rule a request reads what it shares with the previous one, from a minimum on and in whole steps. With
//! breakpoints the cache has entries only where a request was marked: a request reads the longest entry that ends at a mark of
//! its own or few blocks before one, and writes the rest up to its last mark. So after a change in the middle hardly any entry but
//! that of the system prompt is found, unless a mark was kept at the boundary. With entries the end of each request is such a mark,
//! and a request finds the ends of the requests before it: after a change in the middle not even that of the system prompt.
//!
//! Entries are compared with the previous request alone: those of a view that a late result brings back, since it undoes a
//! summary, are taken to be gone.

use super::outcome::Need;
use std::collections::BTreeMap;

/// A place in a view: the characters and the content blocks before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CachePlace {
    pub chars: usize,
    pub blocks: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// The end of the view.
    pub view: CachePlace,
    /// The end of the leading messages that the previous view began with too.
    pub same: CachePlace,
    /// Leading content blocks that the previous view began with too: also those of a changed message before its change.
    pub same_blocks: usize,
    /// The end of what the previous request had sent, and of the answer to that.
    pub earlier: CachePlace,
    pub answered: CachePlace,
    /// The end of the last masked observation; 0 if none is masked.
    pub boundary: CachePlace,
    pub masked: usize,
    /// Turns replaced by a summary.
    pub summarized: usize,
    /// The need of the request, over a budget.
    pub need: Option<Need>,
    /// Characters of input and output of a model that wrote a summary before this request.
    pub summary: (usize, usize),
}

/// The places at which a cache has entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// After each request, in whole steps of this many tokens; 0: anywhere.
    Prefix { step: usize },
    /// After each mark of a request.
    Breakpoints {
        /// How many blocks before a mark an entry may end, the marked one included.
        lookback: usize,
    },
    /// After each request.
    Entries {
        /// How many requests are looked back upon.
        lookback: usize,
        /// Whether an entry also ends after each answer, and where two requests part.
        shares_prefixes: bool,
    },
}

/// A provider's cache, and the requests that are made to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cache {
    /// The places at which it has entries.
    pub rule: Rule,
    /// The least tokens of an entry.
    pub min_tokens: usize,
    /// Seconds that an entry lives after its last use.
    pub ttl: f64,
    /// Characters of a token.
    pub chars_per_token: f64,
    /// Characters of the system prompt and the tools, which precede each view.
    pub system_chars: usize,
    /// The price of a token that is neither read nor written, in the unit of the policies' prices.
    pub input: f64,
    /// When requests were made: messages before each, and seconds. A request that is not listed follows at once.
    pub times: Vec<(usize, f64)>,
}

/// Characters that a request reads from the cache and writes to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Characters sent, including the system prompt.
    pub view: usize,
    /// Characters read.
    pub read: usize,
    /// Characters written.
    pub written: usize,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "characters and tokens of histories"
)]
impl Cache {
    fn tokens(&self, chars: usize) -> usize {
        (chars as f64 / self.chars_per_token) as usize
    }

    /// Whether this many characters are enough for an entry.
    pub(super) fn takes(&self, chars: usize) -> bool {
        self.tokens(chars) >= self.min_tokens
    }

    /// The served part of a prefix of this many characters, of which the cache has an entry.
    pub(super) fn serves(&self, chars: usize) -> usize {
        match self.rule {
            _ if !self.takes(chars) => 0,
            Rule::Breakpoints { .. } | Rule::Entries { .. } | Rule::Prefix { step: 0 } => chars,
            Rule::Prefix { step } => {
                let more = (self.tokens(chars) - self.min_tokens) / step * step;
                ((self.min_tokens + more) as f64 * self.chars_per_token) as usize
            }
        }
    }
}

impl Cache {
    /// When each request is made, in seconds; the requests are given by how many messages come before each. Those before the
    /// first time are taken to be made then.
    pub(super) fn seconds(&self, requests: &[usize]) -> Vec<f64> {
        let made = |request: &usize| {
            let known = self.times.partition_point(|(messages, _)| messages <= request);
            self.times.get(known.saturating_sub(1)).map_or(0.0, |(_, seconds)| *seconds)
        };
        requests.iter().map(made).collect()
    }

    /// Whether an entry that was used at the one time is gone at the other.
    fn is_cold(&self, used: f64, now: f64) -> bool {
        now - used > self.ttl
    }

    /// Characters that each request reads and writes. `is_pinned`: it is also marked at the boundary.
    pub(crate) fn serve(&self, requests: &[usize], sent: &[Sent], is_pinned: bool) -> Vec<Served> {
        let mut session = CachedSession { cache: self, is_pinned, requests: 0, before: None, entries: BTreeMap::new() };
        let requests = sent.iter().zip(self.seconds(requests));
        let served = requests.map(|(sent, now)| {
            let view = self.system_chars + sent.view.chars;
            let read = session.request(*sent, now);
            Served { view, read, written: if self.takes(view) { view - read } else { 0 } }
        });
        served.collect()
    }

    /// A place in the request, which begins with the system prompt.
    fn after_system(&self, place: CachePlace) -> CachePlace {
        CachePlace { chars: self.system_chars + place.chars, blocks: self.system_blocks() + place.blocks }
    }

    fn system_blocks(&self) -> usize {
        usize::from(self.system_chars > 0)
    }
}

/// A session between two requests.
struct CachedSession<'a> {
    cache: &'a Cache,
    is_pinned: bool,
    requests: usize,
    /// The previous request, and when it was made.
    before: Option<(Sent, f64)>,
    /// Whole entries that are a prefix of the previous request, by their number of blocks.
    entries: BTreeMap<usize, Entry>,
}

/// A prefix that is served only whole.
#[derive(Clone, Copy)]
struct Entry {
    chars: usize,
    /// When it was last used.
    used: f64,
    /// The last request that ended with it.
    request: usize,
}

impl CachedSession<'_> {
    /// Makes a request. Returns the characters that it reads.
    fn request(&mut self, sent: Sent, now: f64) -> usize {
        let read = match self.cache.rule {
            Rule::Prefix { .. } => self.read_prefix(sent, now),
            Rule::Breakpoints { lookback } => self.read_marked(sent, now, lookback),
            Rule::Entries { lookback, shares_prefixes } => self.read_whole(sent, now, lookback, shares_prefixes),
        };
        self.before = Some((sent, now));
        self.requests += 1;
        read
    }

    fn read_prefix(&self, sent: Sent, now: f64) -> usize {
        let Some((_, used)) = self.before else { return 0 };
        if self.cache.is_cold(used, now) {
            return 0;
        }
        self.cache.serves(self.cache.system_chars + sent.same.chars)
    }

    fn read_marked(&mut self, sent: Sent, now: f64, lookback: usize) -> usize {
        let marks = self.marks(sent);
        self.forget_changed(sent);
        let found = marks.iter().filter_map(|mark| {
            let next = mark.blocks + 1;
            let mut within_reach = self.entries.range(next.saturating_sub(lookback)..next).rev();
            within_reach.find(|(_, entry)| !self.cache.is_cold(entry.used, now))
        });
        let found = found.map(|(blocks, entry)| CachePlace { chars: entry.chars, blocks: *blocks });
        let used = found.max_by_key(|place| (place.chars, place.blocks));
        for place in used.iter().chain(&marks) {
            self.use_entry(*place, now);
        }
        used.map_or(0, |used| used.chars)
    }

    fn read_whole(&mut self, sent: Sent, now: f64, lookback: usize, shares_prefixes: bool) -> usize {
        self.forget_changed(sent);
        let whole = self.cache.after_system(sent.earlier);
        if shares_prefixes && let Some(entry) = self.entries.get(&whole.blocks).copied() {
            let answered = self.cache.after_system(sent.answered);
            self.entries.insert(answered.blocks, Entry { chars: answered.chars, ..entry });
        }
        let is_found =
            |entry: &Entry| entry.request + lookback >= self.requests && !self.cache.is_cold(entry.used, now);
        let used = self.entries.values_mut().rev().find(|entry| is_found(entry)).map_or(0, |entry| {
            entry.used = now;
            entry.chars
        });
        let shared = Some(sent.same).filter(|same| shares_prefixes && *same != sent.earlier && self.requests > 0);
        for place in shared.into_iter().chain([sent.view]).map(|place| self.cache.after_system(place)) {
            if self.cache.takes(place.chars) && place.blocks > 0 {
                self.use_entry(place, now);
            }
        }
        used
    }

    /// Forgets the entries that end after the first change: all others may be many.
    fn forget_changed(&mut self, sent: Sent) {
        let same = self.cache.system_blocks() + sent.same_blocks;
        while self.entries.last_key_value().is_some_and(|(blocks, _)| *blocks > same) {
            self.entries.pop_last();
        }
    }

    fn use_entry(&mut self, place: CachePlace, now: f64) {
        let entry = Entry { chars: place.chars, used: now, request: self.requests };
        self.entries.insert(place.blocks, entry);
    }

    /// The client's marks on the system prompt, on the newest message and on the newest one of the previous request; pinned, also
    /// at the boundary: at a move at the previous one, whose entry is still valid.
    fn marks(&self, sent: Sent) -> Vec<CachePlace> {
        let mut places = vec![CachePlace::default(), sent.earlier, sent.view];
        if self.is_pinned {
            let before = self.before.map(|(before, _)| before).filter(|before| before.summarized == sent.summarized);
            let is_moved = before.is_some_and(|before| before.boundary != sent.boundary);
            places.push(if is_moved { before.unwrap_or_default().boundary } else { sent.boundary });
        }
        let marks = places.into_iter().map(|place| self.cache.after_system(place));
        marks.filter(|mark| mark.blocks > 0 && self.cache.takes(mark.chars)).collect()
    }
}
