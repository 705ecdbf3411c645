//! Reading JSON without building values.

mod block;
mod cursor;
mod decode;
mod needle;
mod strings;

pub use crate::text::Counted;
pub use block::Scanner;
pub use cursor::{Cursor, MAX_DEPTH};
pub(crate) use cursor::{Read, Reader};
pub(crate) use decode::push_code_point;
pub use decode::{decode, newlines, skip_chars};
pub(crate) use needle::Needle;
pub use strings::{Fault, plain};
