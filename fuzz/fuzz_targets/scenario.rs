//! Any text as a scenario file.

#![no_main]

use std::path::Path;

use lab::scenario::Suite;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // A file name in the text would be opened.
    if !text.contains("file") {
        drop(Suite::parse("fuzz", text, Path::new("/nonexistent"), &[]));
    }
});
