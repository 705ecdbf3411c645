//! Reading JSON without building values.

mod block;
mod cursor;
mod decode;
mod needle;
mod strings;

pub use crate::text::Counted;
pub use block::Scanner;
pub use cursor::{Cursor, MAX_DEPTH, Read, Stop};
pub use decode::{decode, push_code_point, skip_chars};
pub use needle::Needle;
pub use strings::{Fault, plain};
