//! Studies as data: what is wrong in one is said with its place, before anything runs.

use std::path::PathBuf;

use longhaul_lab::claims::Value;
use longhaul_lab::study::{Files, Plan, Study, Summary, Sweep};

const BASE: &str = r#"
name = "one link"
duration = "20 s"

[link.sky]
ends = ["hub", "terminal"]
channel = { rate = "1 Mbit/s", delay = "50 ms" }
protocol = "plain"

[traffic.download.bulk]
from = "hub"
to = "terminal"
"#;

const HEAD: &str = r#"
name = "small"
title = "A small study"
claims = "claims"

[quick]
seeds = 2
length = 0.5

[[reading]]
name = "window"
default = "large"
reason = "Why not."
[reading.values]
large = {}
small = { tcp.window.receive-buffer = "4 KiB" }

[[experiment]]
name = "loss"
base = "base"
axes.p = [0.0, 0.1, 0.2]
axes.scheme = { "bare" = {}, "repaired" = { link.sky.protocol = "cotmll-thesis" } }
set = { link.sky.channel.errors = { erasure = { probability = "$p" } } }
seeds = 4
exact = "p == 0"
probes = ["throughput", "air"]
quick.axes.p = [0.0, 0.2]

[[figure]]
id = "1"
title = "throughput over loss"
from = "loss"
x = "p"
y = "T"
curve = "scheme"
bound = "1 - p"

[[table]]
id = "table 1"
from = "loss"
rows = ["p", "scheme"]
value = "T"
paper = "table.csv printed"
"#;

const CLAIMS: &str = r#"
[[claim]]
id = "repair-helps"
section = "1"
statement = "Repair below TCP helps."
check = "all(T(p, 'repaired') > T(p, 'bare') for p in P if p > 0)"
told = ["T(0.2, 'bare')"]
kind = "ordering"
"#;

const TABLE: &str = "p,scheme,printed\n0.0,bare,0.9\n0.2,repaired,0.7\n";

/// A folder with a study, removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, head: &str, claims: &str) -> Self {
        let path = std::env::temp_dir().join(format!("longhaul-study-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for (file, text) in
            [("base.toml", BASE), ("study.toml", head), ("claims.toml", claims), ("table.csv", TABLE)]
        {
            std::fs::write(path.join(file), text).unwrap();
        }
        Self(path)
    }

    fn load(&self) -> Result<Study, String> {
        Study::load(Files::Folder(self.0.clone()), "study.toml", &[]).map_err(|error| error.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Goal: axes, readings, exact cases, figures, tables with printed values, and claims, in one run of a study of a few lines.
#[test]
fn a_study_is_data() {
    let folder = Folder::new("data", HEAD, CLAIMS);
    let study = folder.load().unwrap();
    let outcome = Sweep::prepare(&study, Plan::default()).unwrap().run(|_| {}).unwrap();
    assert_eq!(outcome.points, [[0], [1]]);
    let summary = Summary::new(&outcome, None).unwrap();
    let [verdict] = &summary.verdicts[..] else { panic!("one claim") };
    assert_eq!((verdict.id, verdict.verdict.to_string().as_str()), ("repair-helps", "holds"), "{verdict:?}");
    assert_eq!(verdict.tally.total(), 2);
    let cell = |p: &str, scheme: &str| {
        summary.cells.iter().find(|cell| cell.row["p"] == p && cell.row["scheme"] == scheme).unwrap()
    };
    // Without losses one run stands for all, and its number has no interval.
    assert_eq!(
        (cell("0", "bare").paper, cell("0", "bare").n, cell("0", "bare").interval),
        (Some(0.9), 0, None)
    );
    assert_eq!((cell("0.2", "repaired").paper, cell("0.2", "repaired").n), (Some(0.7), 4));
    assert_eq!(cell("0.1", "bare").paper, None);
    let out = folder.0.join("out");
    longhaul_lab::study::write(&outcome, "test", &out, longhaul_lab::report::COLUMN).unwrap();
    let csv = std::fs::read_to_string(out.join("measurements.csv")).unwrap();
    assert!(csv.starts_with("experiment,reading.window,p,scheme,seed,quantity,"), "{csv}");
    assert!(csv.contains("loss,large,0.2,bare,4,T,"), "{csv}");
    for file in
        ["figure-1.svg", "readings.svg", "report.html", "measurements.jsonl", "runs.csv", "summary.json"]
    {
        assert!(out.join(file).exists(), "{file}");
    }
}

/// Goal: readings beside the default run fewer seeds, on the values of a quick run at full length, and only the experiments that
/// a check asks; a check's lists of values are those that ran.
#[test]
fn other_readings_run_only_what_decides() {
    let readings = "[readings]\nseeds = 3\ncoarse = true\n\n[[reading]]";
    let aside = "[[experiment]]\nname = \"aside\"\nbase = \"base\"\nprobes = [\"throughput\"]\nseeds = 2\n\n[[figure]]";
    let head = HEAD.replacen("[[reading]]", readings, 1).replacen("[[figure]]", aside, 1);
    let told = CLAIMS.replace("told = [\"T(0.2, 'bare')\"]", "told = [\"aside.T\", \"P\"]");
    let folder =
        Folder::new("coarse", &head, &told.replace("T(p,", "loss.T(p,").replace("\"P\"", "\"loss.P\""));
    let study = folder.load().unwrap();
    let outcome = Sweep::prepare(&study, Plan::default()).unwrap().run(|_| {}).unwrap();
    let judged = &outcome.judgement.judged[0];
    assert_eq!(judged.tally().holds, 2, "{judged:?}");
    assert_eq!(judged.told[1].1, Value::List([0.0, 0.1, 0.2].map(Value::Number).to_vec()));
    let mut csv = Vec::new();
    outcome.results.write_csv(&study, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let runs = |start: &str| {
        let rows = csv.lines().filter(|row| row.starts_with(start) && row.contains(",T,"));
        rows.count()
    };
    // One run without losses, and four each at two rates; two of the experiment that nothing decides by.
    assert_eq!((runs("loss,large"), runs("aside,large")), (2 * (1 + 4 + 4), 2));
    assert_eq!((runs("loss,small"), runs("aside,small")), (2 * (1 + 3), 0));
}

/// Goal: a study of the repository that no paper holds is whole.
#[test]
fn the_study_of_the_optimum_loads() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/faulkner"));
    let study = Study::load(Files::Folder(folder), "optimum.toml", &[]).unwrap();
    assert!(study.experiments.len() > 3);
}

/// Goal: a trace can be drawn from its least value upwards, with words at moments that are known.
#[test]
fn a_trace_has_words_where_it_is_told() {
    let trace = "[[figure]]\nid = \"2\"\ntitle = \"progress\"\nkind = \"trace\"\nfrom = \"loss\"\n\
                 at = { p = 0.0, scheme = \"bare\" }\ny = \"progress\"\nx-axis = { from = 5, to = 15 }\n\
                 y-axis = { fit = true }\nlabels = { Early = \"10 * T(p, scheme)\", Never = \"1 / p\" }\n";
    let head = HEAD.replace("\"air\"]", "\"air\", \"progress\"]") + trace;
    let folder = Folder::new("trace", &head, CLAIMS);
    let study = folder.load().unwrap();
    let plan = Plan { figure: Some("2".to_owned()), default_reading_only: true, ..Plan::default() };
    let outcome = Sweep::prepare(&study, plan).unwrap().run(|_| {}).unwrap();
    let out = folder.0.join("out");
    longhaul_lab::study::write(&outcome, "test", &out, longhaul_lab::report::COLUMN).unwrap();
    let svg = std::fs::read_to_string(out.join("figure-2.svg")).unwrap();
    assert!(svg.contains(">Early<") && !svg.contains("Never"), "{svg}");
    // By five seconds some 500 kB have come, so an axis that fits does not start at zero.
    assert!(!svg.contains(">0<"), "{svg}");
    let wrong = Folder::new("trace-wrong", &head.replace("1 / p", "1 / q"), CLAIMS);
    assert!(wrong.load().unwrap_err().contains("no such name: q"));
}

/// Goal: what a quick run leaves out leaves lists shorter, and an axis can be restricted from outside.
#[test]
fn axes_can_be_restricted() {
    let folder = Folder::new("axes", HEAD, CLAIMS);
    let study = folder.load().unwrap();
    let rows = |plan: Plan| {
        let outcome = Sweep::prepare(&study, plan).unwrap().run(|_| {}).unwrap();
        let mut rows: Vec<String> =
            Summary::new(&outcome, None).unwrap().cells.iter().map(|cell| cell.row["p"].clone()).collect();
        rows.dedup();
        rows
    };
    let quick = Plan { quick: true, default_reading_only: true, ..Plan::default() };
    assert_eq!(rows(quick.clone()), ["0", "0.2"]);
    let only =
        |value: f64| Plan { axes: vec![("p".to_owned(), vec![Value::Number(value)])], ..quick.clone() };
    assert_eq!(rows(only(0.1)), ["0.1"]);
    let error = Sweep::prepare(&study, only(0.3)).unwrap_err().to_string();
    assert!(error.contains("axis \"p\" has no value 0.3; there are 0, 0.1, 0.2"), "{error}");
}

/// Goal: a typo never means "not measured".
#[test]
fn mistakes_are_found_at_load() {
    for (from, to, want) in [
        (
            "probes = [\"throughput\"",
            "probes = [\"troughput\"",
            "no probe \"troughput\"; there are throughput",
        ),
        ("base = \"base\"", "base = \"bass\"", "bass.toml"),
        ("quick.axes.p = [0.0, 0.2]", "quick.axes.p = [0.3]", "axis \"p\" has no value 0.3"),
        ("quick.axes.p", "quick.axes.q", "quick has an axis \"q\""),
        ("exact = \"p == 0\"", "exact = \"q == 0\"", "no such name: q"),
        ("\"$p\"", "\"$q\"", "no such name: q"),
        ("y = \"T\"", "y = \"U\"", "no such name: U"),
        ("curve = \"scheme\"", "pool = \"p\"", "axis \"scheme\" is neither shown nor fixed"),
        ("bound = \"1 - p\"", "bound = \"1 - q\"", "no such name: q"),
        ("rows = [\"p\", \"scheme\"]", "rows = [\"p\"]", "axis \"scheme\" is neither shown nor fixed"),
        ("table.csv printed", "table.csv prnted", "no column \"prnted\"; there are p, scheme, printed"),
        ("default = \"large\"", "default = \"huge\"", "axis \"window\" has no value 'huge'"),
        ("receive-buffer = \"4 KiB\"", "receive-bufer = \"4 KiB\"", "receive-bufer"),
        ("seeds = 4", "sedes = 4", "unknown key `sedes`"),
        ("name = \"loss\"", "name = \"the loss\"", "allowed are letters, digits and _"),
    ] {
        assert!(HEAD.contains(from), "{from}");
        let folder = Folder::new("mistakes", &HEAD.replacen(from, to, 1), CLAIMS);
        let complaint = match folder.load() {
            Err(complaint) => complaint,
            // What only one reading sets shows when its cases are spelled out.
            Ok(study) => Sweep::prepare(&study, Plan::default()).expect_err(want).to_string(),
        };
        assert!(complaint.contains(want), "{want}: {complaint}");
    }
    for (from, to, want) in [
        ("T(p, 'bare')", "T(p, 'bear')", "axis \"scheme\" has no value 'bear'; there are 'bare', 'repaired'"),
        ("T(p, 'bare')", "T(p)", "T has the coordinates p, scheme"),
        ("T(p, 'bare')", "V(p, 'bare')", "nothing measures V; there are T"),
        ("in P", "in Q", "no such name: Q"),
        ("[\"T(0.2, 'bare')\"]", "[\"T(0.3, 'bare')\"]", "axis \"p\" has no value 0.3"),
        ("\"all(", "\"all((", "the check cannot be read: at byte"),
    ] {
        assert!(CLAIMS.contains(from), "{from}");
        let folder = Folder::new("claims", HEAD, &CLAIMS.replacen(from, to, 1));
        let complaint = folder.load().unwrap_err();
        assert!(complaint.contains("claims.toml:") && complaint.contains(want), "{want}: {complaint}");
    }
}

/// Goal: what the documentation prints runs as it stands.
#[test]
fn the_study_in_the_documentation_runs() {
    const PAGE: &str = include_str!("../../../docs/studies.md");
    let folder = Folder::new("documented", "", "");
    for block in PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let (name, text) = block.split_once('\n').unwrap();
        if let Some(name) = name.strip_prefix("# ").filter(|name| name.ends_with(".toml")) {
            std::fs::write(folder.0.join(name), text).unwrap();
        }
    }
    let study = folder.load().unwrap();
    let axes = vec![("p".to_owned(), vec![Value::Number(0.0), Value::Number(0.2)])];
    let plan = Plan { quick: true, axes, ..Plan::default() };
    let outcome = Sweep::prepare(&study, plan).unwrap().run(|_| {}).unwrap();
    let verdicts: Vec<_> = outcome.judgement.judged.iter().map(|judged| judged.decision.verdict).collect();
    assert_eq!(verdicts, [longhaul_lab::claims::Verdict::Holds]);
    let out = folder.0.join("out");
    longhaul_lab::study::write(&outcome, "test", &out, longhaul_lab::report::COLUMN).unwrap();
    assert!(out.join("figure-1.svg").is_file());
}

/// Goal: any scenario file can be swept over its own keys.
#[test]
fn a_scenario_file_is_a_study_of_its_keys() {
    let folder = Folder::new("scenario", HEAD, CLAIMS);
    let axes = [("link.sky.channel.delay".to_owned(), vec!["10 ms".into(), "200 ms".into()])];
    let study = Study::of_scenario(&folder.0.join("base.toml"), &axes).unwrap();
    let outcome =
        Sweep::prepare(&study, Plan { seeds: Some(2), ..Plan::default() }).unwrap().run(|_| {}).unwrap();
    let mut csv = Vec::new();
    outcome.results.write_csv(&study, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let heading: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let value = heading.iter().position(|column| *column == "value").unwrap();
    let t = |place: &str| {
        csv.lines().find(|line| line.contains(place)).and_then(|line| line.split(',').nth(value))
    };
    let [near, far] = [",0.01,1,T,", ",0.2,1,T,"].map(|place| t(place).unwrap().parse::<f64>().unwrap());
    assert!(near > far && far > 0.1, "{csv}");
}

/// Goal: what did not happen in all seeds is not averaged over those where it did, and what never happened is said.
#[test]
fn times_that_never_came_are_no_numbers() {
    let folder = Folder::new("never", HEAD, CLAIMS);
    let lossy =
        BASE.replace("delay = \"50 ms\"", "delay = \"50 ms\", errors = { erasure = { probability = 0.2 } }");
    std::fs::write(folder.0.join("base.toml"), lossy).unwrap();
    // In 20 s some seeds carry the second one over plain TCP, and none the third.
    let sizes = ["1 kB", "80 kB", "100 MB"];
    let axes = [("traffic.download.bulk.size".to_owned(), sizes.map(Into::into).to_vec())];
    let study = Study::of_scenario(&folder.0.join("base.toml"), &axes).unwrap();
    let plan = Plan { seeds: Some(12), ..Plan::default() };
    let outcome = Sweep::prepare(&study, plan).unwrap().run(|_| {}).unwrap();
    let summary = Summary::new(&outcome, None).unwrap();
    let shown = |size: &str| {
        let is_it = |cell: &&longhaul_lab::study::Cell| {
            cell.table == "time of download, s" && cell.row["size"] == size
        };
        let cell = summary.cells.iter().find(is_it).unwrap();
        (cell.ours.is_some(), cell.ours_text.clone().unwrap_or_default())
    };
    assert_eq!(shown("1 kB"), (true, String::new()));
    assert_eq!(shown("80 kB"), (false, "not in all seeds".to_owned()));
    assert_eq!(shown("100 MB"), (false, "never".to_owned()));
    let out = folder.0.join("out");
    longhaul_lab::study::write(&outcome, "test", &out, longhaul_lab::report::COLUMN).unwrap();
    let drawn = std::fs::read_to_string(out.join("time-download.csv")).unwrap();
    assert_eq!(drawn.lines().count(), 2, "only the first is drawn: {drawn}");
    let runs = std::fs::read_to_string(out.join("runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 1 + 3 * 12, "one row for each run and flow");
}
