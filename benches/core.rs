//! The core alone, without Python: how many bytes a second it reads, and how many it reduces.
//!
//! `cargo bench` measures a synthetic history of 20 MB; `RECEDE_BENCH_FILE=history.json cargo bench` another one, such
//! as what `histories.serialized` in benches/histories.py makes. What counts is the best of many runs, for the
//! `RECEDE_BENCH_SECONDS` that each may take. With `RECEDE_BENCH_RUNS=2` it reduces that often, measures nothing, and
//! tells its scanner: for callgrind, which counts the instructions (see `instructions` in benches/measuring.py).

#![allow(clippy::print_stdout)] // to print is what it is for

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use recede::error::Error;
use recede::json::Scanner;
use recede::plan::Given;
use recede::policy::{Goal, Keep, Limit, Policy};
use recede::reduce::{Reduced, reduce_json};
use recede::scan::scan;

const SYNTHETIC_BYTES: usize = 20_000_000;
const SECONDS_FOR_EACH: f64 = 3.0;

/// Reads the history: checks every byte, counts characters, finds calls and results.
fn read(history: &[u8]) {
    black_box(scan(history, false).unwrap_or_else(|error| refuse(&error)));
}

/// Reduces the history; gives the size of the view.
fn reduce(history: &[u8], policy: &Policy) -> usize {
    match reduce_json(history, false, policy, Given::default()) {
        Ok(Reduced::View(view, ..)) => {
            black_box(view).map_or(history.len(), |view| black_box(view.to_vec(history)).len())
        }
        Ok(Reduced::AskSummary(..) | Reduced::AskCosts(_)) => 0, // no policy here asks
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &Error) -> ! {
    eprintln!("the history cannot be read: {error:?}");
    std::process::exit(1)
}

fn main() {
    let history = match std::env::var_os("RECEDE_BENCH_FILE") {
        None => synthetic(SYNTHETIC_BYTES),
        Some(path) => std::fs::read(&path).unwrap_or_else(|error| {
            eprintln!("{}: {error}", path.display());
            std::process::exit(1);
        }),
    };
    let limit = Limit { max: Some(usize::MAX), ..Limit::default() };
    let fits = Policy { limit, ..Policy::default() };
    let keep = Keep { results: 10, ..Keep::default() };
    let masks = Policy { goal: Goal::Mask, keep, ..Policy::default() };
    if let Some(runs) = number_of::<usize>("RECEDE_BENCH_RUNS") {
        for _ in 0..runs {
            reduce(&history, &masks);
        }
        let wanted = std::env::var("RECEDE_SCANNER").ok();
        let fastest = Scanner::available().last().map_or("", |(name, _)| name);
        println!("{}", wanted.as_deref().unwrap_or(fastest));
        return;
    }
    let mut warm = history.clone();

    println!("{:.1} MB in, {:.1} MB out", megabytes(history.len()), megabytes(reduce(&history, &masks)));
    measure("scan", &history, read);
    measure("scan, pairs; nothing to do", &history, |data| {
        black_box(reduce(data, &fits));
    });
    measure("scan, pairs, plan, splice", &history, |data| {
        black_box(reduce(data, &masks));
    });
    measure("copy into a warm buffer", &history, |data| {
        warm.copy_from_slice(data);
        black_box(&mut warm);
    });
}

fn number_of<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}

fn measure(name: &str, data: &[u8], mut work: impl FnMut(&[u8])) {
    let time = Duration::from_secs_f64(number_of("RECEDE_BENCH_SECONDS").unwrap_or(SECONDS_FOR_EACH));
    let begin = Instant::now();
    let mut best = Duration::MAX;
    let mut runs = 0;
    while runs < 5 || begin.elapsed() < time {
        let start = Instant::now();
        work(black_box(data));
        best = best.min(start.elapsed());
        runs += 1;
    }
    let seconds = best.as_secs_f64();
    println!(
        "{name:28} {:9.3} ms  {:6.2} GB/s  (best of {runs})",
        seconds * 1e3,
        megabytes(data.len()) / 1e3 / seconds
    );
}

#[allow(clippy::cast_precision_loss)] // sizes of files
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// About the mix of benches/histories.py, without its variety of texts: enough where no file is given.
fn synthetic(size: usize) -> Vec<u8> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let words = [false, true].map(|mixed| (0..4_000).map(|_| random.word(mixed)).collect());
    let mut json = String::with_capacity(size + 100_000);
    json.push_str(r#"[{"role":"system","content":"You fix tests."},{"role":"user","content":"Fix this one."}"#);
    let mut turn = 0;
    while json.len() < size {
        let calls = 1 + random.below(3);
        json.push_str(r#",{"role":"assistant","content":""#);
        let length = 40 + random.below(760);
        random.text(&words, length, &mut json);
        json.push_str(r#"","tool_calls":["#);
        for call in 0..calls {
            let comma = if call == 0 { "" } else { "," };
            let _ = write!(
                json,
                r#"{comma}{{"id":"call_{turn}_{call}","type":"function","function":{{"name":"bash","arguments":"{{\"command\": \""#
            );
            let length = 20 + random.below(200);
            random.text(&words, length, &mut json);
            json.push_str(r#"\"}"}}"#);
        }
        json.push_str("]}");
        for call in 0..calls {
            let _ = write!(json, r#",{{"role":"tool","tool_call_id":"call_{turn}_{call}","content":""#);
            let length = random.result_size();
            random.text(&words, length, &mut json);
            json.push_str("\"}");
        }
        turn += 1;
    }
    json.push(']');
    json.into_bytes()
}

/// xorshift64*: the standard library has none.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32
    }

    #[allow(clippy::cast_possible_truncation)] // smaller than the bound
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A word as it stands in JSON, with what follows it: more than every fourth brings an escape.
    fn word(&mut self, mixed: bool) -> String {
        const AFTER: [&str; 14] =
            [" ", " ", " ", " ", ". ", "/", "_", "(", ": ", ", ", r"\n", r"\n    ", r#"\" "#, r"\t"];
        let vowels =
            if mixed && self.below(3) == 0 { ["ä", "é", "ø", "λ", "я"] } else { ["a", "e", "i", "o", "u"] };
        let mut word = String::new();
        for _ in 0..=self.below(4) {
            word.push(char::from(b"bcdfghjklmnprstvwz"[self.below(18)]));
            word.push_str(vowels[self.below(5)]);
        }
        word.push_str(AFTER[self.below(AFTER.len())]);
        word
    }

    /// 18 % of the texts are mixed with non-ASCII.
    fn text(&mut self, [plain, mixed]: &[Vec<String>; 2], length: usize, json: &mut String) {
        let words = if self.below(100) < 18 { mixed } else { plain };
        let end = json.len() + length;
        while json.len() < end {
            json.push_str(&words[self.below(words.len())]);
        }
    }

    /// Near a log-normal of median 1,500: the sum of twelve random numbers is near a normal one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn result_size(&mut self) -> usize {
        let normal = (0..12).map(|_| self.below(1_000_000) as f64 / 1e6).sum::<f64>() - 6.0;
        ((1_500.0 * normal.exp()) as usize).min(60_000)
    }
}
