//! Quotations alone, without Python: how many bytes of decoded text a second are normalized and read twice, beside a copy of them.
//!
//! `cargo bench --bench misses` measures synthetic sessions; `RECEDE_BENCH_FILE=histories.jsonl` those of a file with a serialized
//! history a line, such as `python benches/misses.py --write OUT` makes of the recorded sessions. What counts is the best of five runs.

#![allow(clippy::print_stdout)] // to print is what it is for

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use recede::misses::{Answers, Context, MOST_GRAMS, Part, Texts};
use recede::scan::scan;
use recede::turns::Turns;

const RUNS: usize = 5;
const SYNTHETIC_SESSIONS: usize = 100;

/// The decoded texts of a context.
struct Decoded {
    texts: Vec<(Part, Vec<u8>)>,
    ranks: Vec<u32>,
}

impl Decoded {
    fn of(history: &[u8]) -> Self {
        let outline = scan(history, false).unwrap_or_else(|error| {
            eprintln!("the history cannot be read: {error:?}");
            std::process::exit(1);
        });
        let turns = Turns::of(&outline);
        let turns = &turns;
        let context =
            Context { data: history, outline: &outline, turns, shown: 0, max_result_chars: None, summaries: &[] };
        let mut texts = vec![];
        context.each(false, &mut |part, text| texts.push((part, text.to_vec())));
        Decoded { texts, ranks: (0..outline.results.len() as u32).collect() }
    }

    fn quotations(&self) -> usize {
        Answers::of(self, MOST_GRAMS).quotations(self, &[&self.ranks])[0].len()
    }
}

impl Texts for Decoded {
    fn each(&self, answers_only: bool, visit: &mut dyn FnMut(Part, &[u8])) {
        let wanted = self.texts.iter().filter(|(part, _)| !answers_only || matches!(part, Part::Answer(_)));
        wanted.for_each(|(part, text)| visit(*part, text));
    }
}

fn main() {
    let data = std::env::var_os("RECEDE_BENCH_FILE").map_or_else(synthetic, |path| {
        std::fs::read(&path).unwrap_or_else(|error| {
            eprintln!("{}: {error}", path.display());
            std::process::exit(1);
        })
    });
    let contexts: Vec<Decoded> =
        data.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(Decoded::of).collect();
    let texts = || contexts.iter().flat_map(|context| &context.texts).map(|(_, text)| text);
    let bytes: usize = texts().map(Vec::len).sum();
    let found: usize = contexts.iter().map(Decoded::quotations).sum();
    println!("{} sessions, {:.1} MB of decoded text, {found} quotations", contexts.len(), megabytes(bytes));
    let both = seconds(|| contexts.iter().map(Decoded::quotations).sum());
    let mut copy = vec![0; bytes];
    let copied = seconds(|| {
        let mut at = 0;
        for text in texts() {
            copy[at..at + text.len()].copy_from_slice(text);
            at += text.len();
        }
        black_box(&mut copy).len()
    });
    println!("normalization and both passes  {both:8.3} s  {:8.1} MB/s", megabytes(bytes) / both);
    println!("copy                           {copied:8.3} s  {:8.1} MB/s", megabytes(bytes) / copied);
    println!("ratio                          {:8.1}", both / copied);
}

fn seconds(mut work: impl FnMut() -> usize) -> f64 {
    let run = |_| {
        let (start, cpu) = (Instant::now(), cpu_seconds());
        black_box(work());
        cpu_seconds().zip(cpu).map_or(start.elapsed().as_secs_f64(), |(after, before)| after - before)
    };
    (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
}

/// Of this process, where Linux says it: other processes do not count.
fn cpu_seconds() -> Option<f64> {
    let said = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(said.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

#[allow(clippy::cast_precision_loss)] // sizes of files
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// Sessions whose agent quotes a line of every third result, of lines that are all different.
fn synthetic() -> Vec<u8> {
    let mut json = String::new();
    for session in 0..SYNTHETIC_SESSIONS {
        json.push_str(r#"[{"role":"user","content":"Fix this one."}"#);
        for turn in 0..100 {
            let line = |number: usize| format!("{session}: the line {number} of {turn}, {}", number * number * turn);
            let lines: Vec<String> = (0..100).map(|number| format!(r"{number}\t{}", line(number))).collect();
            let said = if turn % 3 == 0 { line(50) } else { format!("Now {turn}.") };
            let _ = write!(
                json,
                r#",{{"role":"assistant","content":"{said}","tool_calls":[{{"id":"{turn}","type":"function","function":{{"name":"run","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"{turn}","content":"{}"}}"#,
                lines.join(r"\n")
            );
        }
        json.push_str("]\n");
    }
    json.into_bytes()
}
