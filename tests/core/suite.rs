//! The public JSON test suite, where it lies beside the repository.

use crate::reading::is_json_fault;
use recede::error::{Error, Kind};
use recede::json::Scanner;
use recede::scan::scan_with;
use std::path::Path;

fn json_fault(data: &[u8], scanner: Scanner) -> Option<Error> {
    scan_with(data, false, scanner).err().filter(|error| is_json_fault(error.kind))
}

#[test]
fn public_test_suite() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/json-test-suite/test_parsing");
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("no test suite at {}", folder.display());
        return;
    };
    let mut count = 0;
    for file in files {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        let data = std::fs::read(file.path()).unwrap();
        for (_, scanner) in Scanner::available() {
            let fault = json_fault(&data, scanner);
            let inside = [&b"[{\"role\":\"user\",\"x\":"[..], &data, b"}]"].concat();
            let fault_inside = json_fault(&inside, scanner);
            match &name[..2] {
                "y_" => assert_eq!((fault, fault_inside), (None, None), "{name}"),
                "n_" => assert!(fault.is_some_and(|fault| fault.offset.is_some()), "{name}"),
                // Numbers of any size and lone surrogates in escapes are carried; other encodings are not.
                _ => {
                    let kind = fault.map(|fault| fault.kind);
                    let wanted = match name.as_str() {
                        "i_string_UTF-16LE_with_BOM.json" | "i_structure_UTF-8_BOM_empty_object.json" => {
                            Some(Kind::Syntax)
                        }
                        "i_string_utf16BE_no_BOM.json" | "i_string_utf16LE_no_BOM.json" => Some(Kind::Syntax),
                        "i_string_UTF-8_invalid_sequence.json"
                        | "i_string_UTF8_surrogate_U+D800.json"
                        | "i_string_invalid_utf-8.json"
                        | "i_string_iso_latin_1.json"
                        | "i_string_lone_utf8_continuation_byte.json"
                        | "i_string_not_in_unicode_range.json"
                        | "i_string_overlong_sequence_2_bytes.json"
                        | "i_string_overlong_sequence_6_bytes.json"
                        | "i_string_overlong_sequence_6_bytes_null.json"
                        | "i_string_truncated-utf-8.json" => Some(Kind::Utf8),
                        _ => None,
                    };
                    assert_eq!(kind, wanted, "{name}");
                }
            }
        }
        count += 1;
    }
    assert!(count >= 300, "only {count} files at {}", folder.display());
}
