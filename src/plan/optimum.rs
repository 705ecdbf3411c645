//! The offline optimum: the lower bound of the cost of any boundary with the same window. A dynamic program over the requests,
//! whose states are the number of masked observations.
//!
//! With breakpoints, what a move finds in the cache depends on when earlier ones were made: on which entries exist. The program
//! takes each entry that could exist to exist, so it is a lower bound that no boundary may reach.

use super::cache::Sent;
use super::cache::{Cache, CachePlace, Rule};
use super::fold::Fold;
use super::outcome::Masked;
use super::planner::Planner;
use super::replay::{Replayed, sums_before};
use super::units::{blocks_of, cost};

/// The views of a history by the number of masked observations.
struct Views {
    /// Characters and content blocks before each message of the raw history.
    raw_before: Vec<usize>,
    blocks: Vec<usize>,
    /// The message of each maskable observation, in order.
    messages: Vec<usize>,
    /// Characters removed by masking this many of the first.
    removed: Vec<usize>,
    /// The end of the last one, when this many of the first are masked.
    boundaries: Vec<CachePlace>,
}

impl Views {
    fn of(planner: &Planner, maskable: &[Masked]) -> Self {
        let outline = planner.outline;
        let mut raw_before = vec![0];
        for message in 0..outline.messages.len() {
            raw_before.push(raw_before[message] + outline.chars_of(message, planner.policy.image_chars));
        }
        let mut removed = vec![0];
        for one in maskable {
            removed.push(removed[removed.len() - 1] + one.removed);
        }
        let messages: Vec<usize> =
            maskable.iter().map(|one| outline.results[one.result as usize].message as usize).collect();
        let blocks = sums_before((0..outline.messages.len()).map(|message| blocks_of(outline, message)));
        let ends = maskable.iter().zip(&messages).zip(&removed[1..]).map(|((one, message), removed)| {
            planner.end_of(one.result as usize, raw_before[message + 1] - removed, &blocks)
        });
        let boundaries = core::iter::once(CachePlace::default()).chain(ends).collect();
        Views { raw_before, blocks, messages, removed, boundaries }
    }

    /// The view of a request.
    fn view(&self, end: usize, masked: usize) -> CachePlace {
        CachePlace { chars: self.raw_before[end] - self.removed[masked], blocks: self.blocks[end] }
    }

    /// The messages before the first that changes if more than this many observations are masked.
    fn unchanged(&self, end: usize, masked: usize) -> usize {
        self.messages[masked].min(end)
    }

    /// The end of this many messages of a view, of which no more than these observations are masked.
    fn end_of(&self, messages: usize, masked: usize) -> CachePlace {
        let of_earlier = self.messages[..masked].partition_point(|other| *other < messages);
        CachePlace { chars: self.raw_before[messages] - self.removed[of_earlier], blocks: self.blocks[messages] }
    }
}

impl Planner<'_> {
    /// A replay under the cheapest boundary, without windows by tool.
    pub(super) fn replay_optimum(&self, requests: &[usize], cache: &Cache, read: f64, write: f64) -> Replayed {
        let (maskable, older) = Fold::maskable(self.context(), requests);
        let views = Views::of(self, &maskable);
        let times = cache.seconds(requests);
        let session = OptimalSession { views, requests, times, cache, is_pinned: self.policy.pins_boundary };
        let masked = session.cheapest(&older, read, write);
        let mut before = None;
        let mut replayed = Replayed::of(self.outline);
        for (request, end) in requests.iter().enumerate() {
            let (views, masked) = (&session.views, masked[request]);
            let same = before.map_or(0, |before| session.same(request, before, masked));
            let served = before.map_or(0, |before| session.read(request, before, masked > before));
            let earlier = request.checked_sub(1).map_or(0, |before| requests[before]);
            let new = before.replace(masked).unwrap_or(0)..masked;
            let sent = Sent {
                view: views.view(*end, masked),
                same_chars: same,
                earlier: views.end_of(earlier, masked),
                boundary: views.boundaries[masked],
                masked,
                read: Some(served),
                ..Sent::default()
            };
            replayed.push(sent, maskable[new].iter().map(|one| one.result as usize));
        }
        replayed
    }
}

/// A session whose boundary is to be found.
struct OptimalSession<'a> {
    views: Views,
    requests: &'a [usize],
    /// When each request is made.
    times: Vec<f64>,
    cache: &'a Cache,
    is_pinned: bool,
}

impl OptimalSession<'_> {
    /// Characters of the leading messages that a request shares with the previous one.
    fn same(&self, request: usize, before: usize, masked: usize) -> usize {
        let end = self.requests[request - 1];
        if masked == before {
            return self.views.view(end, masked).chars;
        }
        self.views.end_of(self.views.unchanged(end, before), before).chars
    }

    /// Characters that the cache serves of a request, whose previous one had this many masked observations.
    fn read(&self, request: usize, before: usize, is_moved: bool) -> usize {
        let (cache, views, end) = (self.cache, &self.views, self.requests[request - 1]);
        let whole = cache.system_chars + views.view(end, before).chars;
        if cache.is_cold(self.times[request - 1], self.times[request]) || !cache.takes(whole) {
            return 0;
        }
        if !is_moved {
            return cache.serves(whole);
        }
        let unchanged = views.unchanged(end, before);
        let Rule::Breakpoints { lookback } = cache.rule else {
            return cache.serves(cache.system_chars + views.end_of(unchanged, before).chars);
        };
        // The system prompt, the boundary, and an earlier request that ends shortly before what this client marks.
        let pin = if self.is_pinned { views.boundaries[before].chars } else { 0 };
        let known = self.requests[..request].partition_point(|end| *end <= unchanged);
        let earlier = known.checked_sub(1).map(|last| views.end_of(self.requests[last], before));
        let near = earlier.filter(|place| views.blocks[end] < place.blocks + lookback).map_or(0, |place| place.chars);
        cache.serves(cache.system_chars + pin.max(near))
    }

    /// How many observations to mask at each request; `older` is how many may be masked.
    fn cheapest(&self, older: &[usize], read: f64, write: f64) -> Vec<usize> {
        // By number of masked observations: the least cost so far, and for each request the number at the previous one.
        let mut costs: Vec<f64> = vec![];
        let mut came_from: Vec<Vec<u32>> = vec![];
        for (request, (end, most)) in self.requests.iter().zip(older).enumerate() {
            let mut now = Vec::with_capacity(most + 1);
            let mut from = Vec::with_capacity(most + 1);
            // The cheapest predecessors of a move: if the request is cached, and if it is too short for that.
            let (mut cached, mut plain) = ((f64::INFINITY, 0), (f64::INFINITY, 0));
            for masked in 0..=*most {
                let view = self.cache.system_chars + self.views.view(*end, masked).chars;
                let is_cached = self.cache.takes(view);
                let whole = cost(view, if is_cached { write } else { self.cache.input });
                if request == 0 {
                    now.push(whole);
                    from.push(0);
                    continue;
                }
                let saved = |before, is_moved| cost(self.read(request, before, is_moved), write - read);
                if let Some(fewer) = masked.checked_sub(1).filter(|fewer| *fewer < costs.len()) {
                    cached = cheaper(cached, (costs[fewer] - saved(fewer, true), fewer));
                    plain = cheaper(plain, (costs[fewer], fewer));
                }
                let moved = if is_cached { cached } else { plain };
                let stayed = costs
                    .get(masked)
                    .map_or(f64::INFINITY, |least| if is_cached { least - saved(masked, false) } else { *least });
                let (least, origin) = if stayed <= moved.0 { (stayed, masked) } else { moved };
                now.push(least + whole);
                from.push(origin as u32);
            }
            costs = now;
            came_from.push(from);
        }
        let mut masked = (0..costs.len()).min_by(|one, other| costs[*one].total_cmp(&costs[*other])).unwrap_or(0);
        let mut found = vec![0; self.requests.len()];
        for (request, from) in came_from.iter().enumerate().rev() {
            found[request] = masked;
            masked = from[masked] as usize;
        }
        found
    }
}

fn cheaper(one: (f64, usize), other: (f64, usize)) -> (f64, usize) {
    if other.0 < one.0 { other } else { one }
}
