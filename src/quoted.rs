//! The requests of a session that quote what a policy had hidden by then.

use crate::misses::{ALWAYS, Answers, Context, Quotation};
use crate::outline::Outline;
use crate::pairs::Pairs;
use crate::plan::{self, NEVER, Period, Replayed};
use crate::source::Bytes;
use crate::turns::Turns;

const MOST_AT_ONCE: usize = 16;

/// The policies of a door, each with what is known of its requests.
pub(crate) type Door<'a> = [Period<'a>];

/// A quotation of a result that an earlier request has shown: under a window that is no larger than its distance, it is a miss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FromResult {
    pub request: usize,
    pub result: usize,
    pub tool: Option<Vec<u8>>,
    /// How many results before the request are newer.
    pub distance: usize,
    pub text: Vec<u8>,
}

/// The quotations of a session.
#[derive(Debug, Default)]
pub(crate) struct Quoted {
    /// The session's own requests, after those shared with an earlier context; numbers count from the first.
    pub requests: usize,
    /// The session's own results, likewise.
    pub results: usize,
    /// How many of its own requests were examined.
    pub examined: usize,
    /// Quotations of results that an earlier request has shown.
    pub quotations: Vec<FromResult>,
    /// The requests that quote what a policy hides from them, by policy.
    pub by_policy: Vec<Vec<usize>>,
}

pub(crate) struct Examined<'a> {
    pub data: &'a [u8],
    pub outline: &'a Outline,
    /// How many of the first messages belong to an earlier context: they are visible, and their requests do not count.
    pub shown: usize,
    /// The most grams of answers that are held.
    pub most_grams: usize,
}

impl Examined<'_> {
    /// Finds what the requests quote. Results that `all`, a policy without a window, leaves raw are visible.
    pub(crate) fn quoted(&self, all: &Door<'_>, doors: &[Vec<Period<'_>>]) -> Quoted {
        let Examined { data, outline, shown, most_grams } = *self;
        let replay = |door: &Door<'_>| plan::replay(outline, &Bytes(data), door);
        let turns = Turns::of(outline);
        let context = Context { data, outline, turns: &turns, shown, max_result_chars: None, summaries: &[] };
        let is_kept: Vec<bool> = replay(all).hidden_from().into_iter().map(|from| from == NEVER).collect();
        let ranks: Vec<u32> =
            is_kept.iter().zip(0..).map(|(is_kept, result)| if *is_kept { ALWAYS } else { result }).collect();
        let answers = Answers::of(&context, most_grams);
        let by_age = answers.quotations(&context, &[&ranks]).remove(0);
        let mut by_policy: Vec<Vec<u32>> = vec![vec![]; doors.len()];
        let mut others: Vec<(usize, Order)> = vec![];
        for (place, door) in doors.iter().enumerate() {
            let replayed = replay(door);
            let (hidden_from, Replayed { summaries, .. }) = (replayed.hidden_from(), replayed);
            let max_result_chars = door.first().and_then(|(policy, ..)| policy.text.max_result_chars);
            let maskable = hidden_from.iter().zip(&is_kept).filter(|(_, is_kept)| !**is_kept).map(|(from, _)| *from);
            if !summaries.is_empty() || max_result_chars.is_some() {
                let context = Context { max_result_chars, summaries: &summaries, turns: &turns, ..context };
                let hidden = Order::of(hidden_from, &is_kept);
                by_policy[place] = hidden.missed(&answers.quotations(&context, &[&hidden.ranks])[0]);
            } else if maskable.is_sorted() {
                by_policy[place] = missed(&by_age, |result| hidden_from[result]);
            } else {
                others.push((place, Order::of(hidden_from, &is_kept)));
            }
        }
        // Texts are read once for several policies; what is held of each is four bytes for a gram.
        for some in others.chunks(MOST_AT_ONCE) {
            let ranks: Vec<&[u32]> = some.iter().map(|(_, hidden)| &hidden.ranks[..]).collect();
            for ((place, hidden), found) in some.iter().zip(answers.quotations(&context, &ranks)) {
                by_policy[*place] = hidden.missed(&found);
            }
        }
        let first = turns.starts.partition_point(|start| (*start as usize) < shown);
        let first_result = outline.results_before(shown);
        let pairs = Pairs::of(outline);
        let seen = |quotation: &Quotation| {
            let start = |request: usize| turns.starts[request] as usize;
            let (request, result) = (quotation.request as usize, quotation.rank as usize);
            let is_seen = request > 0 && (outline.results[result].message as usize) < start(request - 1);
            is_seen.then(|| FromResult {
                request: request - first,
                result: result - first_result,
                tool: pairs.name_of(outline, result).map(|name| outline.name(name).to_vec()),
                distance: outline.results_before(start(request)) - 1 - result,
                text: quotation.text.clone(),
            })
        };
        Quoted {
            requests: turns.count() - first,
            results: outline.results.len() - first_result,
            examined: (first..turns.count()).filter(|request| request.is_multiple_of(answers.every)).count(),
            quotations: by_age.iter().filter_map(seen).collect(),
            by_policy: by_policy
                .into_iter()
                .map(|requests| requests.into_iter().map(|one| one as usize - first).collect())
                .collect(),
        }
    }
}

/// The requests that quote a rank which is hidden at that request.
fn missed(quotations: &[Quotation], hidden_from: impl Fn(usize) -> u32) -> Vec<u32> {
    let missed = quotations.iter().filter(|quotation| hidden_from(quotation.rank as usize) <= quotation.request);
    let mut requests: Vec<u32> = missed.map(|quotation| quotation.request).collect();
    requests.dedup();
    requests
}

/// The results that are not kept in the order in which they are hidden, and the place of each in it. A result that this policy never
/// hides is the last, not visible text: a quotation is the same under every policy.
struct Order {
    hidden_from: Vec<u32>,
    results: Vec<usize>,
    ranks: Vec<u32>,
}

impl Order {
    fn of(hidden_from: Vec<u32>, is_kept: &[bool]) -> Self {
        let mut results: Vec<usize> = (0..hidden_from.len()).filter(|result| !is_kept[*result]).collect();
        results.sort_by_key(|result| hidden_from[*result]);
        let mut ranks = vec![ALWAYS; hidden_from.len()];
        results.iter().zip(0..).for_each(|(result, place)| ranks[*result] = place);
        Order { hidden_from, results, ranks }
    }

    fn missed(&self, quotations: &[Quotation]) -> Vec<u32> {
        missed(quotations, |rank| self.hidden_from[self.results[rank]])
    }
}
