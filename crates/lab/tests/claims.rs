//! The claims files that ship with the project.

use std::path::Path;

use longhaul_lab::claims;

#[test]
fn every_claims_file_reads() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut read = 0;
    for folder in std::fs::read_dir(scenarios).unwrap() {
        let file = folder.unwrap().path().join("claims.toml");
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let name = file.display().to_string();
        // The checks of a study are prose, which code decides.
        let claims = match file.parent().and_then(Path::file_name).and_then(|paper| paper.to_str()) {
            Some("faulkner") => claims::parse_prose(&name, &text).unwrap(),
            _ => claims::parse(&name, &text).unwrap(),
        };
        assert!(!claims.is_empty(), "{}", file.display());
        read += 1;
    }
    assert!(read > 0, "no claims file found");
}
