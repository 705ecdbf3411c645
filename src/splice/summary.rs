//! The message of a summary as bytes, or the message that its text is joined to.

use crate::outline::Span;
use crate::plan::Summary;
use crate::source::Bytes;
use crate::text::encode_text;

/// The message of a summary.
pub(crate) fn summary_message(summary: &Summary, out: &mut Vec<u8>) {
    let (head, word) = summary.shape.head(&summary.role);
    out.extend([b"{\"", head.name().as_bytes(), b"\":\""].concat());
    encode_text(word.as_bytes(), out);
    out.extend([b"\",\"", summary.shape.text().0.name().as_bytes(), b"\":"].concat());
    summary_content(summary, out);
    out.push(b'}');
}

fn summary_content(summary: &Summary, out: &mut Vec<u8>) {
    summary.shape.text().1.write(out, |out| {
        out.push(b'"');
        encode_text(&summary.text, out);
        out.push(b'"');
    });
}

/// A rendered message with the text of a summary as its last block.
pub(crate) fn joined_message(message: &[u8], summary: &Summary, out: &mut Vec<u8>) {
    let field = summary.shape.text().0.name();
    let content = Bytes(message).value_of(Span { start: 0, end: message.len() }, field);
    let mut blocks = vec![];
    summary_content(summary, &mut blocks);
    out.extend([&message[..content.end - 1], b",", &blocks[1..], &message[content.end..]].concat());
}
