//! The offline optimum: the lower bound of the cost of any boundary with the same window. A dynamic program over the requests,
//! whose states are the number of masked observations.

use super::boundary::cost;
use super::fold::Fold;
use super::outcome::Masked;
use super::planner::Planner;
use super::replay::Sent;

/// The views of a history by the number of masked observations.
struct Views {
    /// Characters before each message of the raw history.
    raw_before: Vec<usize>,
    /// The message of each maskable observation, in order.
    messages: Vec<usize>,
    /// Characters removed by masking the first so many.
    removed: Vec<usize>,
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
        let messages = maskable.iter().map(|one| outline.results[one.result as usize].message as usize).collect();
        Views { raw_before, messages, removed }
    }

    /// Characters of the view of a request.
    fn chars(&self, end: usize, masked: usize) -> usize {
        self.raw_before[end] - self.removed[masked]
    }

    /// Characters of a request's view before the first change, if more is masked at the next one.
    fn chars_before_next(&self, end: usize, masked: usize) -> usize {
        let message = self.messages[masked];
        if message >= end {
            return self.chars(end, masked);
        }
        let of_earlier = self.messages[..masked].partition_point(|other| *other < message);
        self.raw_before[message] - self.removed[of_earlier]
    }
}

impl Planner<'_> {
    /// A replay under the cheapest boundary, without windows by tool.
    pub(super) fn replay_optimum(&self, requests: &[usize], read: f64, write: f64) -> Vec<Sent> {
        let (maskable, older) = Fold::maskable(self.context(), requests);
        let views = Views::of(self, &maskable);
        let masked = cheapest(&views, requests, &older, read, write);
        let mut sent = vec![];
        let mut before: Option<(usize, usize)> = None;
        for (end, masked) in requests.iter().zip(masked) {
            let cached_chars = match before {
                None => 0,
                Some((end, same)) if same == masked => views.chars(end, same),
                Some((end, other)) => views.chars_before_next(end, other),
            };
            sent.push(Sent { chars: views.chars(*end, masked), cached_chars, masked, ..Sent::default() });
            before = Some((*end, masked));
        }
        sent
    }
}

/// How many observations to mask at each request; `older` is how many may be masked.
fn cheapest(views: &Views, requests: &[usize], older: &[usize], read: f64, write: f64) -> Vec<usize> {
    // By number of masked observations: the least cost so far, and for each request the number at the previous one.
    let mut costs: Vec<f64> = vec![];
    let mut came_from: Vec<Vec<u32>> = vec![];
    for (request, (end, most)) in requests.iter().zip(older).enumerate() {
        let before = request.checked_sub(1).map(|before| requests[before]);
        let mut now = Vec::with_capacity(most + 1);
        let mut from = Vec::with_capacity(most + 1);
        // The cheapest predecessor, without the cost of writing.
        let mut best = (f64::INFINITY, 0);
        for masked in 0..=*most {
            let written = cost(views.chars(*end, masked), write);
            let Some(before) = before else {
                now.push(written);
                from.push(0);
                continue;
            };
            if let Some(fewer) = masked.checked_sub(1).filter(|fewer| *fewer < costs.len()) {
                let saved = cost(views.chars_before_next(before, fewer), write - read);
                if costs[fewer] - saved < best.0 {
                    best = (costs[fewer] - saved, fewer);
                }
            }
            let moved = best.0 + written;
            let stayed = costs
                .get(masked)
                .map_or(f64::INFINITY, |least| least - cost(views.chars(before, masked), write - read) + written);
            let (least, origin) = if stayed <= moved { (stayed, masked) } else { (moved, best.1) };
            now.push(least);
            from.push(origin as u32);
        }
        costs = now;
        came_from.push(from);
    }
    let mut masked = (0..costs.len()).min_by(|one, other| costs[*one].total_cmp(&costs[*other])).unwrap_or(0);
    let mut found = vec![0; requests.len()];
    for (request, from) in came_from.iter().enumerate().rev() {
        found[request] = masked;
        masked = from[masked] as usize;
    }
    found
}
