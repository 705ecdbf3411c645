//! Texts that are cut, by every length.

use recede::clip::{Clip, MIN_CLIP_CHARS, is_clipped};
use recede::text::count_chars;

#[test]
fn a_text_is_cut_to_exactly_so_many_characters_and_known_again() {
    for chars in [61, 62, 99, 100, 101, 119, 120, 121, 1_000, 1_082, 1_083, 10_000] {
        let text = "é".repeat(chars / 2) + &"x".repeat(chars - chars / 2);
        for (most, recall) in
            (MIN_CLIP_CHARS..chars.min(300)).flat_map(|most| [(most, None), (most, Some(*b"3f9c2a1b07de"))])
        {
            let clip = Clip::of(chars, 0, most, recall);
            let cut = clip.apply(text.as_bytes());
            assert_eq!((count_chars(&cut), clip.chars()), (most, most));
            assert_eq!(clip.beginning + clip.omitted + clip.end, chars);
            assert!(clip.beginning == clip.end || clip.beginning == clip.end + 1);
            assert!(cut.starts_with("é".as_bytes()) && cut.ends_with(b"x"));
            assert!(is_clipped(&cut) && !is_clipped(&[b"xx", &cut[..]].concat()));
        }
    }
}

#[test]
fn a_marker_counts_images_and_shrinks_what_it_stands_in_by_its_own_digits() {
    let clip = Clip::of(30, 6_400, 100, None);
    assert_eq!((clip.beginning, clip.omitted, clip.end), (30, 6_400, 0));
    assert_eq!(clip.marker(), "[… 6400 chars omitted …]");
    assert_eq!(
        Clip::of(30, 6_400, 100, Some(*b"3f9c2a1b07de")).marker(),
        "[… 6400 chars omitted, recall 3f9c2a1b07de …]"
    );
    // Of one character more two more are left out, since the marker gets longer by one.
    assert_eq!((Clip::of(157, 0, 80, None).omitted, Clip::of(158, 0, 80, None).omitted), (99, 101));
    let huge = Clip::of(usize::MAX, usize::MAX, 60, None);
    assert_eq!((huge.chars(), huge.omitted), (60, usize::MAX));
}

#[test]
fn only_a_marker_in_the_middle_says_that_a_text_was_cut() {
    for text in ["[… 5 chars omitted …]", "ab[… 5 chars omitted …]b", "a[… 12345678901234567890 chars omitted …]b"]
    {
        assert!(is_clipped(text.as_bytes()), "{text}");
    }
    for text in [
        "",
        "[…  chars omitted …]",
        "[… 5 chars omitted]",
        "[… 123456789012345678901 chars omitted …]",
        "a[… 5 chars omitted …]bc",
        "abc[… 5 chars omitted …]b",
        "a[… 5 chars omitted …]bcd",
        "[… 5 chars omitted …] and more of what was read",
    ] {
        assert!(!is_clipped(text.as_bytes()), "{text}");
    }
    // Many that are not in the middle take linear time.
    assert!(!is_clipped("[… 5 chars omitted …]".repeat(100_000).as_bytes()));
}
