//! Reproducing a paper on a small part of its grid: the same every time, and exact where it must be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use longhaul_lab::claims::{self, Verdict};
use longhaul_lab::papers;
use longhaul_lab::reproduce::{self, Method, Outcome, Plan, ReproduceError, Reproduction, Study, Summary};

fn plan(figure: Option<&str>, cache: Option<PathBuf>) -> Plan {
    Plan { seeds: Some(2), quick: true, figure: figure.map(str::to_owned), cache, build: "test".to_owned() }
}

fn peng(plan: Plan) -> Outcome<'static> {
    let paper = papers::find("peng").unwrap();
    Reproduction::prepare(paper, plan).unwrap().run(|_| {}).unwrap()
}

fn faulkner(plan: Plan) -> Outcome<'static> {
    Reproduction::prepare(papers::find("faulkner").unwrap(), plan).unwrap().run(|_| {}).unwrap()
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

/// Goal: every claim of the file is decided, each once and in its order; what needs no luck holds at every point.
#[test]
fn every_claim_of_peng_is_decided_and_the_exact_ones_hold() {
    let outcome = peng(plan(None, None));
    let (file, text) = papers::find("peng").unwrap().claims();
    let ids: Vec<String> = claims::parse(file, text).unwrap().into_iter().map(|claim| claim.id).collect();
    let decided: Vec<&str> = outcome.judged.iter().map(|judged| judged.claim.id.as_str()).collect();
    assert_eq!(decided, ids);
    let exact = [
        "peng-tcp-learns-nothing",
        "peng-first-transfer-unchanged",
        "peng-fig2-start-from-aggregate",
        "peng-losses-dupack-local-timeout-global",
    ];
    let surveyed = outcome.surveyed().unwrap();
    let all = outcome.judged.iter().zip(&surveyed.decided);
    for (judged, decided) in all.filter(|(judged, _)| exact.contains(&judged.claim.id.as_str())) {
        for (point, decided) in surveyed.points.iter().zip(decided) {
            let measured = decided.decision.measured();
            let verdict = decided.decision.verdict;
            assert_eq!(verdict, Verdict::Holds, "{} at {}: {measured}", judged.claim.id, point.name);
        }
    }
    // With one member the ensemble is standard TCP, to the nanosecond.
    for runs in surveyed.runs.iter().flatten() {
        assert_eq!(runs.get("page('STCP', 1)").unwrap(), runs.get("page('TCP', 1)").unwrap());
        assert_eq!(runs.get("file('STCP', 1, 0.67)").unwrap(), runs.get("file('TCP', 1, 0.67)").unwrap());
    }
}

/// Goal: every claim of the file has a ruling by an experiment, each once and in its order; what is arithmetic holds; every
/// figure of the thesis is drawn, and again without a run.
#[test]
fn every_claim_of_faulkner_has_its_experiment_and_every_figure_its_drawing() {
    let scratch = Scratch::new("faulkner");
    let [cache, first, again] = ["measured", "first", "again"].map(|name| scratch.0.join(name));
    let outcome = faulkner(plan(None, Some(cache.clone())));
    let (file, text) = papers::find("faulkner").unwrap().claims();
    let claims = claims::parse_prose(file, text).unwrap();
    let ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
    let decided: Vec<&str> = outcome.judged.iter().map(|judged| judged.claim.id.as_str()).collect();
    assert_eq!(decided, ids);
    for judged in &outcome.judged {
        assert!(!judged.ruling.criteria.is_empty(), "{} has nothing measured", judged.claim.id);
    }
    for id in [
        "faulkner-loss-threshold",
        "faulkner-frame-overhead",
        "faulkner-symmetry-factor",
        "faulkner-window-units",
    ] {
        let judged = outcome.judged.iter().find(|judged| judged.claim.id == id).unwrap();
        assert_eq!(judged.ruling.verdict, Verdict::Holds, "{id}");
    }
    let page = reproduce::write(&outcome, "longhaul reproduce faulkner", &first).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("ours, mean") && !page.contains("default point") && !page.contains("Likely cause"));
    let drawn = drawings(&first);
    for figure in (1..=17).map(|number| format!("4-{number}")).chain(["3-4".to_owned()]) {
        assert!(drawn.keys().any(|file| draws(file, &figure)), "figure {figure} is missing");
    }
    for figure in figures_of(study()) {
        let is_drawn = drawn.keys().any(|file| draws(file, figure));
        assert_ne!(is_drawn, study().undrawn().contains(&figure), "{figure}");
    }
    // Again from what was kept.
    let kept = Reproduction::prepare(papers::find("faulkner").unwrap(), plan(None, Some(cache))).unwrap();
    assert_eq!(kept.work(), 0);
    let outcome = kept.run(|_| panic!("nothing is left to do")).unwrap();
    reproduce::write(&outcome, "longhaul reproduce faulkner", &again).unwrap();
    let kept = drawings(&again);
    let differ: Vec<&String> = drawn.keys().filter(|file| drawn.get(*file) != kept.get(*file)).collect();
    assert!(differ.is_empty() && drawn.len() == kept.len(), "drawn otherwise from what was kept: {differ:?}");
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

fn study() -> &'static dyn Study {
    match papers::find("faulkner").unwrap().method() {
        Method::Study(study) => study,
        Method::Grid(_) => panic!("the thesis is a study"),
    }
}

fn figures_of(study: &dyn Study) -> BTreeSet<&'static str> {
    study.experiments().into_iter().flat_map(|experiment| experiment.figures).copied().collect()
}

/// Goal: what a figure's experiments help to decide can be decided by a figure alone. An experiment that the figure does not
/// choose would leave the claim out, without a word.
#[test]
fn a_claim_with_a_figure_is_decided_by_one_figure_alone() {
    let experiments = study().experiments();
    let claims: BTreeSet<&str> = experiments
        .iter()
        .filter(|experiment| !experiment.figures.is_empty())
        .flat_map(|experiment| experiment.claims)
        .copied()
        .collect();
    assert!(claims.contains("faulkner-limited-persistence-no-benefit"));
    for claim in claims {
        let needed = || experiments.iter().filter(|experiment| experiment.claims.contains(&claim));
        let mut figures = figures_of(study()).into_iter();
        let is_enough = |figure| needed().all(|experiment| experiment.figures.contains(&figure));
        assert!(figures.any(is_enough), "no figure decides {claim}");
    }
}

/// Goal: the same measurements every time; what was kept is not measured again, unless it is another program's.
#[test]
fn a_reproduction_repeats_itself_from_its_cache_too() {
    let scratch = Scratch::new("cache");
    let paper = papers::find("peng").unwrap();
    let kept = || plan(Some("4"), Some(scratch.0.clone()));
    let json = |outcome: &Outcome<'_>| Summary::new(outcome, None).to_json();
    let first = json(&peng(plan(Some("4"), None)));
    assert_eq!(first, json(&peng(kept())));
    let again = Reproduction::prepare(paper, kept()).unwrap();
    assert_eq!(again.work(), 0);
    assert_eq!(first, json(&again.run(|_| panic!("nothing is left to do")).unwrap()));
    let other = Plan { build: "another".to_owned(), ..kept() };
    assert!(Reproduction::prepare(paper, other).unwrap().work() > 0);
    // A file that was not written to its end is no measurement.
    let file = std::fs::read_dir(&scratch.0).unwrap().next().unwrap().unwrap().path();
    std::fs::write(file, "{\"quantities\":{").unwrap();
    assert!(Reproduction::prepare(paper, kept()).unwrap().work() > 0);
}

/// Goal: one figure runs only what it needs, and decides only what that decides.
#[test]
fn a_figure_alone_decides_its_own_claims() {
    let scratch = Scratch::new("figure");
    let outcome = peng(plan(Some("4"), None));
    let decided: Vec<&str> = outcome.judged.iter().map(|judged| judged.claim.id.as_str()).collect();
    assert_eq!(decided, ["peng-pages-get-faster", "peng-third-page-three-times"]);
    assert!(outcome.cells.iter().all(|cell| cell.table == "figure 4" && cell.n == 2));
    assert!(outcome.cells.iter().filter(|cell| cell.bound.is_some()).all(|cell| cell.ours > cell.bound));
    let page = reproduce::write(&outcome, "longhaul reproduce peng", &scratch.0).unwrap();
    let text = std::fs::read_to_string(page).unwrap();
    assert!(text.matches("<svg").count() == 2 && text.contains("Figure 4") && !text.contains("Figure 3"));
    let paper = papers::find("peng").unwrap();
    let error = Reproduction::prepare(paper, plan(Some("9"), None)).unwrap_err();
    assert!(matches!(error, ReproduceError::NoFigure { .. }));
    assert_eq!(error.to_string(), "peng has no figure or table \"9\"; there are 2, 3, 4, 5, equations");
    let paper = papers::find("faulkner").unwrap();
    let error = Reproduction::prepare(paper, plan(Some("9"), None)).unwrap_err().to_string();
    assert!(error.contains("persistence; and 3-3, connections, ") && !error.contains("mechanism, optimum"));
}
