//! Observations that are read a second time, for their text.

use super::parts::texts;
use super::value::{Place, Sink, Value};
use super::{CONTENT_DEPTH, Frame, Key, PART_KEYS, converse, responses};

/// Reads the value of an observation again.
pub(crate) fn read_observation<V: Value>(value: &V, frame: Frame, sink: &mut impl Sink<V>) -> Result<(), V::Stop> {
    let place = Place::of(Key::Content);
    match frame {
        Frame::TextBlocks => converse::read_parts(value, &place, sink).map(drop),
        Frame::Streams => responses::read_streams(value, sink).map(drop),
        Frame::Text | Frame::Only | Frame::Beside if value.text().is_some() || value.items().is_some() => {
            texts(Some(value), PART_KEYS, &place, CONTENT_DEPTH, sink).map(drop)
        }
        _ => Ok(()),
    }
}
