//! Reproducing papers on a small part of what they ask for: the same every time, and exact where it must be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use longhaul_lab::claims::Verdict;
use longhaul_lab::papers;
use longhaul_lab::study::{self, Judged, Outcome, Plan, Study, StudyError, Summary, Sweep};

fn study(paper: &str) -> Study {
    papers::find(paper).unwrap().study().unwrap()
}

fn plan(figure: Option<&str>, store: Option<PathBuf>) -> Plan {
    Plan { seeds: Some(2), quick: true, figure: figure.map(str::to_owned), store, ..Plan::default() }
}

fn run(study: &Study, plan: Plan) -> Outcome<'_> {
    Sweep::prepare(study, plan).unwrap().run(|_| {}).unwrap()
}

/// Whether a claim holds, or would if the few seeds that agree were enough of them.
fn holds(judged: &Judged) -> bool {
    let decision = &judged.decision;
    let agree = |reason: &String| reason.contains("seeds agree, which may be chance");
    decision.verdict == Verdict::Holds
        || decision.reason.as_ref().is_some_and(agree)
            && decision.comparisons.iter().all(|made| made.holds != Some(false))
}

/// A directory of this test's own, removed when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("longhaul-lab-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Goal: every claim of the file is decided, each once and in its order; what needs no luck fails under no reading.
#[test]
fn every_claim_of_peng_is_decided_and_no_exact_one_fails() {
    let study = study("peng");
    let outcome = run(&study, plan(None, None));
    let decided: Vec<usize> = outcome.judgement.judged.iter().map(|judged| judged.claim).collect();
    assert_eq!(decided, (0..study.claims.len()).collect::<Vec<_>>());
    let exact = [
        "peng-first-transfer-unchanged",
        "peng-fig2-start-from-aggregate",
        "peng-losses-dupack-local-timeout-global",
    ];
    for judged in &outcome.judgement.judged {
        let id = study.claims[judged.claim].id.as_str();
        if exact.contains(&id) {
            assert!(holds(judged), "{id}: {:?}", judged.decision.reason);
            for (point, verdict) in outcome.points.iter().zip(&judged.verdicts) {
                assert_ne!(*verdict, Verdict::Fails, "{id} under {}", study.reading_name(point));
            }
        }
    }
}

/// Goal: every claim of the thesis that is data is decided; what is arithmetic holds; every figure is drawn, and again without
/// a run.
#[test]
fn every_claim_of_faulkner_is_decided_and_every_figure_drawn() {
    let scratch = Scratch::new("faulkner");
    let [store, first, again] = ["measured", "first", "again"].map(|name| scratch.0.join(name));
    let study = study("faulkner");
    let outcome = run(&study, plan(None, Some(store.clone())));
    let ids = |outcome: &Outcome<'_>| -> Vec<String> {
        outcome.judgement.judged.iter().map(|judged| study.claims[judged.claim].id.clone()).collect()
    };
    let all: Vec<String> = study.claims.iter().map(|claim| claim.id.clone()).collect();
    assert_eq!(ids(&outcome), all);
    for judged in &outcome.judgement.judged {
        let id = &study.claims[judged.claim].id;
        assert!(!judged.decision.comparisons.is_empty(), "{id} compares nothing");
        let is_arithmetic = ["loss-threshold", "frame-overhead", "symmetry-factor", "window-units"]
            .iter()
            .any(|k| id.ends_with(k));
        if is_arithmetic {
            assert_eq!(judged.decision.verdict, Verdict::Holds, "{id}");
        }
    }
    study::write(&outcome, "longhaul reproduce faulkner", &first, longhaul_lab::report::COLUMN).unwrap();
    let drawn = drawings(&first);
    for figure in (1..=17).map(|number| format!("4-{number}")).chain(["3-4".to_owned()]) {
        assert!(drawn.keys().any(|file| draws(file, &figure)), "figure {figure} is missing");
    }
    // Again from what was kept.
    let kept = Sweep::prepare(&study, plan(None, Some(store))).unwrap();
    assert_eq!(kept.work(), 0);
    let outcome = kept.run(|_| panic!("nothing is left to do")).unwrap();
    study::write(&outcome, "longhaul reproduce faulkner", &again, longhaul_lab::report::COLUMN).unwrap();
    let kept = drawings(&again);
    let differ: Vec<&String> = drawn.keys().filter(|file| drawn.get(*file) != kept.get(*file)).collect();
    assert!(differ.is_empty() && drawn.len() == kept.len(), "drawn otherwise from what was kept: {differ:?}");
}

/// Goal: every claim of Kojo et al. is decided; what depends on no luck holds; tables 2 to 4 are whole, beside what the paper prints.
#[test]
fn every_claim_of_kojo_is_decided_and_every_cell_filled() {
    let study = study("kojo");
    let outcome = run(&study, Plan { default_reading_only: true, ..plan(None, None) });
    let ids: Vec<_> = outcome.judgement.judged.iter().map(|judged| judged.claim).collect();
    assert_eq!(ids, (0..52).collect::<Vec<_>>());
    let exact = ["kojo-fig3-overshoot-timeline", "kojo-vbdc-rtt", "kojo-burst-footprint"];
    for judged in &outcome.judgement.judged {
        let id = study.claims[judged.claim].id.as_str();
        assert!(!judged.decision.comparisons.is_empty(), "{id} compares nothing");
        if exact.contains(&id) {
            assert!(holds(judged), "{id}: {:?}", judged.decision.reason);
        }
    }
    let summary = Summary::new(&outcome, None).unwrap();
    let of = |table: &str| summary.cells.iter().filter(|cell| cell.table == table).collect::<Vec<_>>();
    let printed = |table: &str| of(table).iter().filter(|cell| cell.paper.is_some()).count();
    assert_eq!(
        ["2", "3", "4"].map(|table| (of(table).len(), printed(table))),
        [(144, 140), (16, 16), (24, 24)]
    );
    // What the paper prints for the error-free row alone decided the calibration.
    let fitted: Vec<_> = of("2").into_iter().filter(|cell| cell.calibrated).collect();
    assert_eq!(fitted.len(), 8);
    for cell in fitted {
        let off = (cell.ours.unwrap() / cell.paper.unwrap() - 1.0).abs();
        assert!(off < 0.04 && cell.paper_quartiles.is_some(), "{cell:?}");
    }
    let whole =
        summary.agreements.iter().find(|agreement| agreement.table == "2" && agreement.group.is_none());
    assert_eq!(whole.unwrap().cells, 140);
}

/// Goal: every claim of Casoni and Luppi is decided; what a window alone decides holds; tables I to IV are whole, beside what the paper
/// prints.
#[test]
fn every_claim_of_casoni_is_decided_and_every_cell_filled() {
    let study = study("casoni");
    let outcome = run(&study, Plan { default_reading_only: true, ..plan(None, None) });
    let ids: Vec<_> = outcome.judgement.judged.iter().map(|judged| judged.claim).collect();
    assert_eq!(ids, (0..30).collect::<Vec<_>>());
    for judged in &outcome.judgement.judged {
        let id = study.claims[judged.claim].id.as_str();
        assert!(!judged.decision.comparisons.is_empty(), "{id} compares nothing");
        if ["casoni-64k-ceiling", "casoni-spoofing-hides-the-delay"].contains(&id) {
            assert!(holds(judged), "{id}: {:?}", judged.decision.reason);
        }
    }
    let summary = Summary::new(&outcome, None).unwrap();
    let printed = summary.cells.iter().filter(|cell| cell.paper.is_some()).count();
    assert_eq!(printed, 48, "four tables of twelve");
    assert!(summary.cells.iter().all(|cell| cell.ours.is_some()));
}

/// Goal: every claim of Tickoo et al. is decided; what the code of link and transport decides by itself holds; tables II to V are whole,
/// beside what the paper prints.
#[test]
fn every_claim_of_lt_tcp_is_decided_and_every_cell_filled() {
    let study = study("lt-tcp");
    let outcome = run(&study, Plan { default_reading_only: true, ..plan(None, None) });
    let ids: Vec<_> = outcome.judgement.judged.iter().map(|judged| judged.claim).collect();
    assert_eq!(ids, (0..46).collect::<Vec<_>>());
    for judged in &outcome.judgement.judged {
        let id = study.claims[judged.claim].id.as_str();
        assert!(!judged.decision.comparisons.is_empty(), "{id} compares nothing");
        if id == "lttcp-harq-good-at-its-design-rate" {
            assert!(holds(judged), "{id}: {:?}", judged.decision.reason);
        }
    }
    // With two seeds it is luck how soon the estimate recovers where losses go on.
    let seeds = Plan { default_reading_only: true, seeds: Some(5), ..plan(Some("bursts"), None) };
    let bursts = run(&study, seeds);
    let stuck = |claim: usize| study.claims[claim].id == "lttcp-estimator-stuck-after-burst";
    let judged = bursts.judgement.judged.iter().find(|judged| stuck(judged.claim)).unwrap();
    assert_eq!(judged.decision.verdict, Verdict::Holds, "{:?}", judged.decision.reason);
    let summary = Summary::new(&outcome, None).unwrap();
    let printed = summary.cells.iter().filter(|cell| cell.paper.is_some()).count();
    assert_eq!(printed, 4 * 16 + 2 * 4, "of tables II to V at four rates, the second by scheme too");
    assert!(summary.cells.iter().all(|cell| cell.ours.is_some()));
}

/// The SVG files of a directory. Clipping paths have numbers that count all drawings of a process: they are left out.
fn drawings(directory: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "svg"));
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("<svg") && text.contains("</svg>"), "{}", file.display());
        let clipped =
            text.split("kuva-clip-").map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
        (file.file_stem().unwrap().to_str().unwrap().to_owned(), clipped.collect())
    };
    files.map(read).collect()
}

/// Whether a file of this name is a figure or one of its panels.
fn draws(file: &str, figure: &str) -> bool {
    let rest = file.strip_prefix("figure-").unwrap_or(file).strip_prefix(figure);
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// Goal: the same measurements every time, whatever was kept, and however the work was shared.
#[test]
fn a_study_repeats_itself_from_its_store_and_from_shards() {
    let scratch = Scratch::new("store");
    let folder = |name: &str| scratch.0.join(name);
    let study = study("peng");
    let json = |outcome: &Outcome<'_>| Summary::new(outcome, None).unwrap().to_json();
    let first = json(&run(&study, plan(Some("4"), None)));
    assert_eq!(first, json(&run(&study, plan(Some("4"), Some(folder("one"))))));
    let again = Sweep::prepare(&study, plan(Some("4"), Some(folder("one")))).unwrap();
    assert_eq!(again.work(), 0);
    assert_eq!(first, json(&again.run(|_| panic!("nothing is left to do")).unwrap()));
    // Two machines do half of it each; a third one merges.
    for (part, name) in [(1, "two"), (2, "three")] {
        let half = Plan { shard: Some((part, 2)), ..plan(Some("4"), Some(folder(name))) };
        run(&study, half);
    }
    let merge = vec![folder("two"), folder("three")];
    let merged = Sweep::prepare(&study, Plan { merge, ..plan(Some("4"), Some(folder("all"))) }).unwrap();
    assert_eq!(merged.work(), 0);
    assert_eq!(first, json(&merged.run(|_| panic!("nothing is left to do")).unwrap()));
    // A line that was not written to its end is no measurement.
    let file = folder("one").join("pages.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 20]).unwrap();
    assert!(Sweep::prepare(&study, plan(Some("4"), Some(folder("one")))).unwrap().work() > 0);
}

/// Goal: one figure runs only what it needs, and decides only what that decides.
#[test]
fn a_figure_alone_decides_its_own_claims() {
    let scratch = Scratch::new("figure");
    let study = study("peng");
    let outcome = run(&study, plan(Some("4"), None));
    let decided: Vec<&str> =
        outcome.judgement.judged.iter().map(|judged| study.claims[judged.claim].id.as_str()).collect();
    assert_eq!(decided, ["peng-pages-get-faster", "peng-third-page-three-times"]);
    let page =
        study::write(&outcome, "longhaul reproduce peng", &scratch.0, longhaul_lab::report::COLUMN).unwrap();
    let text = std::fs::read_to_string(page).unwrap();
    assert!(text.matches("<svg").count() == 2 && text.contains("Figure 4") && !text.contains("Figure 5"));
    let csv = std::fs::read_to_string(scratch.0.join("measurements.csv")).unwrap();
    let (heading, rows) = csv.split_once('\n').unwrap();
    assert!(heading.starts_with("experiment,reading.") && heading.ends_with(",value,unit"), "{heading}");
    let scheme = heading.split(',').position(|column| column == "scheme").unwrap();
    let schemes: std::collections::BTreeSet<&str> =
        rows.lines().filter_map(|line| line.split(',').nth(scheme)).collect();
    assert!(schemes.len() > 1 && !schemes.contains(""), "{schemes:?}");
    assert!(rows.lines().all(|line| line.starts_with("pages,")), "{csv}");
    let error = Sweep::prepare(&study, plan(Some("9"), None)).unwrap_err();
    assert!(matches!(error, StudyError::Unknown { .. }));
    assert!(error.to_string().starts_with(
        "peng has no figure, table or experiment \"9\"; there are \"2a\", \"2b\", \"2c\", \"3\", \"4\""
    ));
}
