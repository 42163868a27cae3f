//! The studies that ship with the project.

use longhaul_lab::papers;

/// Goal: every claim, figure and table asks only for what its experiments measure, at coordinates that they have.
#[test]
fn every_study_reads() {
    for paper in papers::ALL {
        let study = paper.study().unwrap_or_else(|error| panic!("{error}"));
        assert!(!study.claims.is_empty() && !study.experiments.is_empty(), "{}", paper.name);
    }
}
