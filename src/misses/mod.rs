//! Misses: texts that an agent wrote again and that nothing in its context had but tool results, so that masking these would
//! have hidden them.
//!
//! Texts are compared as grams: 16 code points at each offset of normalized text, as 64-bit fingerprints. The first pass puts
//! the grams of all answers into a table. The second reads the context in order and notes for each of them where it was shown:
//! in visible text, or in which result, the one to be hidden last. So memory grows with what agents wrote, not with what tools returned, and any
//! number of windows takes one pass.

mod context;
mod grams;
mod normal;
mod table;

pub use context::Context;

use crate::json::push_code_point;
use crate::stop::check;
use crate::text::{clip, count_chars};
use grams::each_gram;
use normal::Normalizer;
use table::Table;

/// Code points of a gram.
pub(crate) const GRAM_CHARS: usize = 16;
/// Grams in a row that a quotation has at least.
pub(crate) const STRETCH_GRAMS: usize = 16;
/// Code points that are read at each end of a long text.
pub(crate) const END_CHARS: usize = 131_072;
/// Grams of answers that are held at most: 50 MB. A context has rarely as many, since it fits the window of a model.
pub const MOST_GRAMS: usize = 1 << 21;
const END_BYTES: usize = 4 * END_CHARS;
/// The rank of text that every request shows.
pub(crate) const ALWAYS: u32 = u32::MAX;
/// A quotation has at least this many different characters; dividers have fewer.
const FEWEST_CHARS: usize = 12;

/// The role of a text in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Text that the agent saw.
    Shown,
    /// Text that the agent wrote in its answer to this request.
    Answer(u32),
    /// Text that the agent wrote before its first request.
    Written,
    /// The observation of this result.
    Result(u32),
}

/// The texts of a context, in order.
pub trait Texts {
    /// Visits each text: all of them, or the answers alone.
    fn each(&self, answers_only: bool, visit: &mut dyn FnMut(Part, &[u8]));
}

/// A text that an answer quotes from results alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotation {
    pub request: u32,
    /// The least rank that hides a stretch: of all stretches of 16 grams, the least of the largest rank in each.
    pub rank: u32,
    pub text: Vec<u8>,
}

/// The grams of the answers of a context.
pub struct Answers {
    table: Table,
    /// The numbers of the grams of each end of each answer, one after the other, and how many each end has.
    grams: Vec<u32>,
    counts: Vec<usize>,
    /// Requests are examined whose number is divisible by this.
    pub every: usize,
}

impl Answers {
    /// Reads the answers. If they have more than `most_grams` grams, only those of every s-th request are examined.
    pub fn of(texts: &impl Texts, most_grams: usize) -> Self {
        let mut bytes = 0;
        texts.each(true, &mut |_, text| bytes += text.len().min(2 * END_BYTES));
        let every = bytes.div_ceil(most_grams.max(1)).max(1);
        // Agents repeat themselves: about half of the grams are different ones.
        let mut answers = Answers { table: Table::with_room(bytes / every / 2), grams: vec![], counts: vec![], every };
        let mut normal = Normalizer::default();
        texts.each(true, &mut |part, text| {
            check();
            let Answers { table, grams, counts, .. } = &mut answers;
            for end in ends(text).filter(|_| is_examined(part, every)) {
                let before = grams.len();
                normal.read(end, false, each_gram(|gram| grams.push(table.number(gram))));
                counts.push(grams.len() - before);
            }
        });
        answers
    }

    /// Quotations of the answers, in order, for each list of ranks. Each result has a rank: the order in which results are hidden,
    /// [`ALWAYS`] for what never is.
    pub fn quotations(&self, texts: &impl Texts, ranks: &[&[u32]]) -> Vec<Vec<Quotation>> {
        let mut shown: Vec<Ranks> = ranks.iter().map(|_| Ranks(vec![0; self.table.len()])).collect();
        let mut found: Vec<Vec<Quotation>> = ranks.iter().map(|_| vec![]).collect();
        let (mut normal, mut counts, mut grams) = (Normalizer::default(), self.counts.iter(), &self.grams[..]);
        texts.each(false, &mut |part, text| {
            check();
            if let Part::Answer(request) = part
                && is_examined(part, self.every)
            {
                let mut examined = vec![];
                for end in ends(text) {
                    let (of_end, later) = grams.split_at(counts.next().copied().unwrap_or(0));
                    let mut chars = vec![];
                    for (shown, found) in shown.iter().zip(&mut found) {
                        let runs = shown.runs(of_end);
                        if !runs.is_empty() && chars.is_empty() {
                            normal.read(end, false, |char| chars.push(char));
                        }
                        found.extend(runs.into_iter().filter_map(|run| run.quotation(request, &chars)));
                    }
                    examined.extend_from_slice(of_end);
                    grams = later;
                }
                for shown in &mut shown {
                    for gram in &examined {
                        shown.show(*gram, ALWAYS);
                    }
                }
                return;
            }
            let rank = |ranks: &&[u32]| match part {
                Part::Result(result) => ranks.get(result as usize).copied().unwrap_or(ALWAYS),
                _ => ALWAYS,
            };
            let ranks: Vec<u32> = ranks.iter().map(rank).collect();
            let is_written = matches!(part, Part::Answer(_) | Part::Written);
            for end in ends(text) {
                let mut show = |is_numbered, least: u32| {
                    let show_gram = |gram| {
                        let Some(gram) = self.table.find(gram) else { return };
                        let of_lists = shown.iter_mut().zip(&ranks).filter(|(_, rank)| **rank >= least);
                        of_lists.for_each(|(shown, rank)| shown.show(gram, *rank));
                    };
                    normal.read(end, is_numbered, each_gram(show_gram))
                };
                // Agents repeat lines without their numbers.
                let has_numbers = show(!is_written, 0);
                if has_numbers && ranks.contains(&ALWAYS) {
                    show(false, ALWAYS);
                }
            }
        });
        found
    }
}

fn is_examined(part: Part, every: usize) -> bool {
    matches!(part, Part::Answer(request) if (request as usize).is_multiple_of(every))
}

/// The largest rank of the texts so far that have a gram, plus one, by gram; 0 if none has.
struct Ranks(Vec<u32>);

impl Ranks {
    fn show(&mut self, gram: u32, rank: u32) {
        let shown = &mut self.0[gram as usize];
        *shown = rank.saturating_add(1).max(*shown);
    }

    /// The runs of enough grams that only results have.
    fn runs(&self, grams: &[u32]) -> Vec<Run> {
        let rank = |gram: &u32| self.0[*gram as usize];
        let (mut end, mut runs) = (0, vec![]);
        for run in grams.chunk_by(|one, other| is_hidden(rank(one)) == is_hidden(rank(other))) {
            end += run.len();
            if run.len() >= STRETCH_GRAMS && is_hidden(rank(&run[0])) {
                let stretches = run.windows(STRETCH_GRAMS).filter_map(|stretch| stretch.iter().map(rank).max());
                let rank = stretches.min().unwrap_or(ALWAYS) - 1;
                runs.push(Run { start: end - run.len(), end: end + GRAM_CHARS - 1, rank });
            }
        }
        runs
    }
}

/// A run of grams: where its code points are in a normalized text, and its rank.
struct Run {
    start: usize,
    end: usize,
    rank: u32,
}

impl Run {
    fn quotation(&self, request: u32, chars: &[u32]) -> Option<Quotation> {
        let chars = &chars[self.start..self.end];
        let quotation = || Quotation { request, rank: self.rank, text: encoded(chars) };
        has_enough_chars(chars).then(quotation)
    }
}

/// Whether results alone have a gram of this rank; 0 is that of what nothing has.
fn is_hidden(rank: u32) -> bool {
    rank != 0 && rank != ALWAYS
}

fn has_enough_chars(chars: &[u32]) -> bool {
    let mut different = vec![];
    chars.iter().any(|char| {
        if !different.contains(char) {
            different.push(*char);
        }
        different.len() == FEWEST_CHARS
    })
}

fn encoded(chars: &[u32]) -> Vec<u8> {
    let mut text = Vec::with_capacity(chars.len());
    for char in chars {
        push_code_point(*char, &mut text);
    }
    text
}

/// The text, or its first and last code points if it is long.
fn ends(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let chars = if text.len() > 2 * END_CHARS { count_chars(text) } else { 0 };
    let is_long = chars > 2 * END_CHARS;
    let first = if is_long { clip(text, END_CHARS) } else { text.len() };
    let last = if is_long { clip(text, chars - END_CHARS) } else { text.len() };
    [&text[..first], &text[last..]].into_iter()
}
