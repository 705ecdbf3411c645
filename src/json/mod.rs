//! Reading JSON without building values.

mod block;
mod cursor;
mod decode;
mod escapes;
mod needle;
mod strings;
mod weight;

pub use crate::text::Counted;
pub use block::Scanner;
pub use cursor::{Cursor, MAX_DEPTH};
pub(crate) use cursor::{Read, Reader};
pub(crate) use decode::push_code_point;
pub use decode::{decode, newlines, skip_chars};
pub(crate) use needle::Needle;
pub use strings::{Fault, plain};
pub(crate) use weight::{FALSE, MARK, NUMBER, WORD, json_weight, string_weight, weight};
