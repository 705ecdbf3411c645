//! (bytes, repairs) -> bytes: a history whose orphans are repaired. Whatever is not repaired is copied unchanged.

use crate::error::Error;
use crate::outline::{Outline, Span};
use crate::pairs::{MissingId, Repair, missing_ids, repairs};
use crate::scan::{self, scan};
use crate::shape::{Key, answering_message, json_string};

/// A step of a repair: an element of the history, or of the blocks of a message, that is dropped or added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepairStep {
    /// The message that is dropped or changed, or before which one is added.
    pub message: usize,
    /// The field of its blocks, and the block that is dropped, or before which one is added.
    pub block: Option<(&'static str, usize)>,
    /// What is added; None if it is dropped.
    pub added: Option<Added>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Added {
    Json(Vec<u8>),
    /// This block of that message.
    Block(usize, usize),
    /// This message.
    Message(usize),
}

/// The id of a call, for a result without it.
pub(crate) struct IdStep {
    /// The message of the result, and its block, if results are blocks.
    pub message: usize,
    pub block: Option<(&'static str, usize)>,
    /// The path from there to the id.
    pub path: Vec<&'static str>,
    /// The id as JSON.
    pub id: Vec<u8>,
}

/// Repairs the orphans of a serialized history, and results without the ids of their calls; None if it has neither.
pub(crate) fn repair_json(data: &[u8], surrogates: bool) -> Result<Option<Vec<u8>>, Error> {
    let mend = |data: &[u8], outline: &Outline| {
        let answer = |call: usize| scan::answer(data, surrogates, outline, call);
        let steps = steps(outline, answer)?;
        Ok((!steps.is_empty()).then(|| repaired(data, outline, &steps)))
    };
    let outline = scan(data, surrogates)?;
    let ids = id_steps(&outline);
    if ids.is_empty() {
        return mend(data, &outline);
    }
    let data = with_ids(data, &outline, &ids);
    let mended = mend(&data, &scan(&data, surrogates)?)?;
    Ok(Some(mended.unwrap_or(data)))
}

/// The ids that results of a history need, in the order of their places.
pub(crate) fn id_steps(outline: &Outline) -> Vec<IdStep> {
    let step = |MissingId { result, call }| {
        let result = &outline.results[result];
        let message = result.message as usize;
        let facts = &outline.messages[message];
        let id = outline.calls[call].id.map(|id| json_string(outline.text(id)));
        IdStep {
            message,
            block: facts.shape.path().blocks.map(|field| (field.name(), result.block as usize)),
            path: facts.shape.id_path(facts.item).iter().map(|key| key.name()).collect(),
            id: id.unwrap_or_default(),
        }
    };
    missing_ids(outline).into_iter().map(step).collect()
}

/// The history with these ids.
fn with_ids(data: &[u8], outline: &Outline, steps: &[IdStep]) -> Vec<u8> {
    let (mut out, mut copied, mut read) = (vec![], 0, (usize::MAX, vec![]));
    for IdStep { message, block, path, id } in steps {
        let mut object = outline.spans[*message];
        if let Some((field, place)) = block {
            if read.0 != *message {
                read = (*message, blocks_of(data, object, field).unwrap_or_default().1);
            }
            object = read.1.get(*place).copied().unwrap_or(object);
        }
        let [outer @ .., field] = &path[..] else { continue };
        for key in outer {
            object = scan::member(data, object, key.as_bytes()).unwrap_or(object);
        }
        let old = scan::member(data, object, field.as_bytes());
        let place = old.unwrap_or(Span { start: object.end - 1, end: object.end - 1 }); // else before its last bracket
        out.extend_from_slice(&data[copied..place.start]);
        if old.is_none() {
            out.extend([b",\"", field.as_bytes(), b"\":"].concat());
        }
        out.extend_from_slice(id);
        copied = place.end;
    }
    out.extend_from_slice(&data[copied..]);
    out
}

/// The steps that repair a history, in the order of their places. `answer` gives the JSON of an answer to a call.
pub(crate) fn steps<E>(outline: &Outline, answer: impl Fn(usize) -> Result<Vec<u8>, E>) -> Result<Vec<RepairStep>, E> {
    let in_blocks = |message: usize, place: usize| {
        let field = outline.messages.get(message).and_then(|facts| facts.shape.path().blocks);
        Some((field.map_or("", Key::name), place))
    };
    let step = |repair| {
        Ok(match repair {
            Repair::DropMessage(message) => RepairStep { message, block: None, added: None },
            Repair::DropBlock(message, block) => RepairStep { message, block: in_blocks(message, block), added: None },
            Repair::MoveBlock(message, block, (from, place)) => {
                RepairStep { message, block: in_blocks(message, block), added: Some(Added::Block(from, place)) }
            }
            Repair::MoveMessage(message, from) => {
                RepairStep { message, block: None, added: Some(Added::Message(from)) }
            }
            Repair::AddBlock(message, block, call) => {
                let added = Some(Added::Json(answer(call)?));
                RepairStep { message, block: in_blocks(message, block), added }
            }
            Repair::AddMessage(message, calls) => {
                let shape = outline.messages[outline.calls[calls[0]].message as usize].shape;
                let mut answers = calls.into_iter().map(&answer).collect::<Result<Vec<_>, E>>()?;
                let added = if shape.has_blocks() { answering_message(shape, &answers) } else { answers.remove(0) };
                RepairStep { message, block: None, added: Some(Added::Json(added)) }
            }
        })
    };
    repairs(outline).into_iter().map(step).collect()
}

/// The history after these steps.
fn repaired(data: &[u8], outline: &Outline, steps: &[RepairStep]) -> Vec<u8> {
    let steps = with_bytes(data, outline, steps);
    let of_messages: Vec<(usize, Option<&[u8]>)> =
        steps.iter().filter(|(step, _)| step.block.is_none()).map(|(step, added)| (step.message, *added)).collect();
    let message = |index: usize| {
        let span = outline.spans[index];
        let first = steps.partition_point(|(step, _)| step.message < index);
        let of_message = steps[first..].iter().take_while(|(step, _)| step.message == index);
        let mut blocks = of_message.filter_map(|(step, added)| {
            let (field, place) = step.block?;
            Some((field, (place, *added)))
        });
        let Some((field, first)) = blocks.next() else { return span.of(data).to_vec() };
        let Some((list, elements)) = blocks_of(data, span, field) else { return span.of(data).to_vec() };
        let changes: Vec<_> = [first].into_iter().chain(blocks.map(|(_, change)| change)).collect();
        let written = edited(data, list.start + 1, &elements, &changes, |place| elements[place].of(data).to_vec());
        let end = elements.last().map_or(list.start + 1, |last| last.end);
        [&data[span.start..=list.start], &written, &data[end..span.end]].concat()
    };
    let end = outline.spans.last().map_or(outline.array_start, |last| last.end);
    let written = edited(data, outline.array_start, &outline.spans, &of_messages, message);
    [&data[..outline.array_start], &written, &data[end..]].concat()
}

/// The list with the blocks of a message, and these.
fn blocks_of(data: &[u8], message: Span, field: &str) -> Option<(Span, Vec<Span>)> {
    let list = scan::member(data, message, field.as_bytes())?;
    Some((list, scan::elements(data, list).unwrap_or_default()))
}

/// The steps, with the bytes of what they add.
fn with_bytes<'a>(
    data: &'a [u8],
    outline: &Outline,
    steps: &'a [RepairStep],
) -> Vec<(&'a RepairStep, Option<&'a [u8]>)> {
    let mut read = (usize::MAX, vec![]); // the message from which blocks were taken last, and its blocks
    let bytes = |step: &'a RepairStep| {
        let added = match step.added.as_ref()? {
            Added::Json(answer) => &answer[..],
            Added::Message(message) => outline.spans[*message].of(data),
            Added::Block(message, block) => {
                if read.0 != *message {
                    let field = step.block.map_or("", |(field, _)| field);
                    read = (*message, blocks_of(data, outline.spans[*message], field).unwrap_or_default().1);
                }
                read.1.get(*block).map_or(&[][..], |block: &Span| block.of(data))
            }
        };
        Some(added)
    };
    steps.iter().zip(steps.iter().map(bytes).collect::<Vec<_>>()).collect()
}

/// The elements of a list after changes, each before or at an element: an addition, or None where that is dropped.
fn edited(
    data: &[u8],
    open: usize,
    elements: &[Span],
    changes: &[(usize, Option<&[u8]>)],
    element: impl Fn(usize) -> Vec<u8>,
) -> Vec<u8> {
    let mut out = vec![];
    let mut changes = changes.iter().peekable();
    for place in 0..=elements.len() {
        let mut is_kept = place < elements.len();
        while let Some((_, change)) = changes.next_if(|(at, _)| *at == place) {
            match change {
                Some(added) => {
                    if !out.is_empty() {
                        out.push(b',');
                    }
                    out.extend_from_slice(added);
                }
                None => is_kept = false,
            }
        }
        if !is_kept {
            continue;
        }
        let before = place.checked_sub(1).map_or(open, |before| elements[before].end);
        let gap = &data[before..elements[place].start];
        let is_first = out.is_empty();
        if !is_first && !gap.contains(&b',') {
            out.push(b',');
        }
        out.extend(gap.iter().filter(|byte| !is_first || **byte != b','));
        out.extend(element(place));
    }
    out
}
