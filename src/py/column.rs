//! A column of serialized histories, read over the Arrow C data interface: no copy of a row and no Python object for it, and
//! the GIL released for all of them. docs/decisions/0018 has what this gains.

use super::convert::{PyPolicy, transcript_error};
use super::guard::guarded;
use super::new_bytes;
use crate::error::Error;
use crate::outline::Outline;
use crate::plan::{Given, Plan};
use crate::policy::Policy;
use crate::reduce::{Reduced, reduce_json};
use crate::report::{self, ToolCount};
use crate::splice::Spliced;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use std::ffi::{CStr, c_char, c_void};
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The beginning of an `ArrowSchema`; nothing else of it is read.
#[repr(C)]
struct ArrowSchema {
    format: *const c_char,
}

/// The beginning of an `ArrowArray`.
#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
}

/// The rows of a `large_binary` array, which its capsule keeps alive.
struct Texts<'a> {
    length: usize,
    offset: usize,
    /// Bits; None if all rows are valid.
    validity: Option<&'a [u8]>,
    /// Buffers of eight bytes each, since they need not be aligned.
    offsets: &'a [u8],
    data: &'a [u8],
}

impl<'a> Texts<'a> {
    fn of(schema: &'a Bound<'_, PyCapsule>, array: &'a Bound<'_, PyCapsule>) -> PyResult<Self> {
        let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<ArrowSchema>();
        let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<ArrowArray>();
        // SAFETY: capsules of these names hold these structures, valid as long as the capsules, which are borrowed for 'a; a
        // format is a C string.
        let (array, format) = unsafe { (array.as_ref(), CStr::from_ptr(schema.as_ref().format)) };
        let (length, offset) = (size(array.length), size(array.offset));
        if format != c"Z" || array.n_buffers != 3 {
            return Err(PyValueError::new_err("the Arrow array must be of large_binary"));
        }
        let end = offset + length;
        // SAFETY: an array of this format has three buffers: a bit for each row, or NULL; an offset of eight bytes for each
        // row and one more, or NULL without rows; the data up to the last offset, or NULL without any. `offset` rows come
        // before the first. The buffers are immutable, and belong to the structure.
        unsafe {
            let [validity, offsets, data] = *array.buffers.cast::<[*const u8; 3]>();
            let validity = (!validity.is_null()).then(|| std::slice::from_raw_parts(validity, end.div_ceil(8)));
            let offsets = if length == 0 { &[] } else { std::slice::from_raw_parts(offsets, (end + 1) * 8) };
            let bytes = if length == 0 { 0 } else { place_of(offsets, end) };
            let data = if bytes == 0 { &[] } else { std::slice::from_raw_parts(data, bytes) };
            Ok(Texts { length, offset, validity, offsets, data })
        }
    }

    fn get(&self, row: usize) -> Option<&'a [u8]> {
        let at = self.offset + row;
        let is_valid = self.validity.is_none_or(|bits| bits[at / 8] >> (at % 8) & 1 == 1);
        is_valid.then(|| &self.data[place_of(self.offsets, at)..place_of(self.offsets, at + 1)])
    }
}

fn place_of(offsets: &[u8], number: usize) -> usize {
    let (places, _) = offsets.as_chunks::<8>();
    size(i64::from_ne_bytes(places[number]))
}

fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// The names of the figures of a row.
#[rustfmt::skip]
const NAMES: [&str; 11] = [
    "messages", "observations", "observation_chars", "turns", "chars_before", "chars_after", "masked_count", "dropped_count",
    "within_limit", "reduction_stage", "is_unrecognized",
];
const STAGES: [&str; 3] = ["masking", "summarization", "fallback"];
/// No flag, after false and true.
const FLAGS: usize = 2;

type RowFigures = [usize; NAMES.len()];

/// The view of one row, and its figures. A panic is an error of this row alone.
fn reduced(data: &[u8], PyPolicy { policy, requests }: &PyPolicy) -> PyResult<Result<(Spliced, RowFigures), Error>> {
    guarded(|| {
        Ok(reduce_json(data, false, policy, Given { requests, ..Given::default() }).map(|reduced| {
            let Reduced::View(view, outline, plan) = reduced else { unreachable!("a policy without functions") };
            let figures = figures(&outline, &plan, policy);
            outline.recycle();
            (view.unwrap_or_else(|| Spliced::unchanged(data)), figures)
        }))
    })
}

/// Those of [`NAMES`].
fn figures(outline: &Outline, plan: &Plan, policy: &Policy) -> RowFigures {
    let tools = report::by_tool(outline, plan, policy.text.image_chars);
    let sum = |figure: fn(&ToolCount) -> usize| tools.iter().map(|(_, count)| figure(count)).sum();
    let (stage, _) = report::stage(plan);
    [
        outline.messages.len(),
        sum(|count| count.observations),
        sum(|count| count.chars),
        plan.turns.count(),
        plan.chars.0,
        plan.chars.1,
        sum(|count| count.masked),
        report::dropped(plan).len(),
        plan.within_limit.map_or(FLAGS, usize::from),
        STAGES.iter().position(|known| Some(*known) == stage).unwrap_or(STAGES.len()),
        usize::from(outline.is_unrecognized()),
    ]
}

/// The results of `work` for each row in order, from as many threads.
fn spread<R: Send>(rows: usize, threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    if threads <= 1 {
        return (0..rows).map(work).collect();
    }
    // Rows differ in size, so that each thread takes a few at a time.
    let size = rows.div_ceil(threads * 16).max(1);
    let next = AtomicUsize::new(0);
    let take = || std::iter::from_fn(|| Some(next.fetch_add(size, Ordering::Relaxed)).filter(|start| *start < rows));
    let part = || take().map(|start| (start, (start..rows.min(start + size)).map(&work).collect())).collect();
    let mut parts: Vec<(usize, Vec<R>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| -> Vec<_> { part() })).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
            .collect()
    });
    parts.sort_unstable_by_key(|(start, _)| *start);
    parts.into_iter().flat_map(|(_, results)| results).collect()
}

/// Reduces each row of a `large_binary` array. Returns the validity of the result as bits; the figures by name, of eight bytes
/// each; what is wrong, by row; and the offsets and the data of the views.
#[pyfunction]
pub(super) fn reduce_column<'py>(
    schema: &Bound<'py, PyCapsule>,
    array: &Bound<'py, PyCapsule>,
    policy: &PyPolicy,
    threads: usize,
    with_views: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    guarded(|| {
        let (py, texts) = (schema.py(), Texts::of(schema, array)?);
        let rows =
            py.detach(|| spread(texts.length, threads, |row| texts.get(row).map(|data| (data, reduced(data, policy)))));
        let mut validity = vec![0_u8; rows.len().div_ceil(8)];
        let mut columns = vec![Vec::with_capacity(rows.len() * 8); NAMES.len()];
        let (mut errors, mut views, mut offsets, mut length) = (vec![], vec![], vec![0_usize], 0);
        for (number, row) in rows.into_iter().enumerate() {
            let mut figures = RowFigures::default();
            match row {
                None => {}
                Some((_, Err(panic))) => errors.push((number, panic)),
                Some((_, Ok(Err(error)))) => errors.push((number, transcript_error(py, &error))),
                Some((data, Ok(Ok((view, found))))) => {
                    validity[number / 8] |= 1 << (number % 8);
                    figures = found;
                    length += view.length();
                    views.push((data, view));
                }
            }
            columns.iter_mut().zip(figures).for_each(|(column, figure)| column.extend((figure as u64).to_ne_bytes()));
            offsets.push(length);
        }
        let data = new_bytes::bytes(py, if with_views { length } else { 0 }, |room| {
            let mut written = 0;
            for (data, view) in views.iter().filter(|_| with_views) {
                written += view.write(data, &mut room[written..written + view.length()]);
            }
            written
        })?;
        let of_bytes = |column: &Vec<u8>| PyBytes::new(py, column);
        let offsets: Vec<u8> = offsets.into_iter().flat_map(|place| (place as u64).to_ne_bytes()).collect();
        let figures: Vec<_> = NAMES.into_iter().zip(columns.iter().map(of_bytes)).collect();
        (of_bytes(&validity), figures, errors, of_bytes(&offsets), data).into_pyobject(py)
    })
}
