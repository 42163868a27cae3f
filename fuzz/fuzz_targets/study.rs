//! Any text as a study's head file.

#![no_main]

use std::path::PathBuf;

use lab::study::{Files, Study};
use libfuzzer_sys::fuzz_target;

const HEAD: &str = "experiments.toml";

fuzz_target!(|text: &str| {
    // Files that the text names are looked up in a folder that does not exist.
    let files = Files::Laid(PathBuf::from("/nonexistent"), HEAD.to_owned(), text.to_owned());
    if let Ok(study) = Study::load(files, HEAD, &[]) {
        assert!(!study.name.is_empty());
    }
});
