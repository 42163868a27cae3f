//! The figures of a report, from the data beside them: they show all that was received, and no more than the line carries.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use longhaul_lab::report;
use longhaul_lab::run::{self, Recordings, Run, Typical};
use longhaul_lab::scenario::{Override, Suite};

const DEMO: &str = include_str!("../../../scenarios/demo/download.toml");

/// The demo with some keys set, run and reported: the typical runs, and the directory.
fn reported(name: &str, changes: &[&str]) -> (Vec<Run>, PathBuf) {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let suite = Suite::parse("download.toml", DEMO, Path::new(""), &changes).unwrap();
    let runs = run::run_all(&suite, &Recordings { plots: true, ..Recordings::default() }, |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    report::write(&suite, &runs, "longhaul demo", &directory, report::COLUMN).unwrap();
    let seed = Typical::of(&suite, &runs).unwrap().seed;
    (runs.into_iter().filter(|run| run.seed == seed).collect(), directory)
}

fn read(directory: &Path, file: &str) -> String {
    std::fs::read_to_string(directory.join(file)).unwrap()
}

/// The points of a curve in a figure's data.
fn curve(directory: &Path, figure: &str, name: &str) -> Vec<(f64, f64)> {
    let text = read(directory, &format!("{figure}.csv"));
    assert!(text.starts_with("figure,panel,curve,x,y,low,high,x_axis,y_axis,row,row_axis\n"), "{text}");
    let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>()).filter(|row| row[2] == name);
    let points: Vec<_> = rows.map(|row| (row[3].parse().unwrap(), row[4].parse().unwrap())).collect();
    assert!(!points.is_empty(), "no {name} in {figure}");
    points
}

/// Goal: a curve ends where its run does, with every byte that the application received.
#[test]
fn a_curve_of_progress_ends_with_all_that_was_received() {
    // Runs that end, and runs that are cut off.
    for (name, changes) in [
        ("progress", &["seeds=3", "traffic.download.bulk.size=1 MB"][..]),
        ("progress-cut", &["seeds=2", "duration=20 s", "traffic.download.bulk.size=5 MB"]),
    ] {
        let (runs, directory) = reported(name, changes);
        assert_eq!(runs.len(), 5);
        for run in &runs {
            let (at, kilobytes) = *curve(&directory, "progress", &run.scheme).last().unwrap();
            assert!(
                (kilobytes * 1e3 - run.bytes as f64).abs() < 0.5,
                "{}: {kilobytes} kB of {}",
                run.scheme,
                run.bytes
            );
            assert!(
                !run.complete || (at - run.started - run.seconds).abs() < 1e-9,
                "{}: at {at} s",
                run.scheme
            );
        }
    }
}

/// Goal: goodput over time is never above the line, on one where a receiver hands over bursts, and loses no byte.
#[test]
fn goodput_over_time_stays_below_the_line_and_adds_up() {
    let changes = ["seeds=3", "link.satellite.channel.rate=10 Mbit/s", "traffic.download.bulk.size=8 MB"];
    let (runs, directory) = reported("goodput", &changes);
    let line = curve(&directory, "goodput-over-time", "rate of the line");
    assert!(line.iter().all(|(_, kbit)| (kbit - 10_000.0).abs() < 1e-9), "{line:?}");
    for run in &runs {
        let points = curve(&directory, "goodput-over-time", &run.scheme);
        assert!(points.iter().all(|(_, kbit)| *kbit <= 10_000.0 + 1e-6), "{}: {points:?}", run.scheme);
        let bits: f64 = points.windows(2).map(|bin| bin[0].1 * 1e3 * (bin[1].0 - bin[0].0)).sum();
        assert!((bits / (run.bytes as f64 * 8.0) - 1.0).abs() < 1e-6, "{}: {bits} bits", run.scheme);
    }
}

/// The colour of the sample before a name in a figure's legend.
fn colour(svg: &str, name: &str) -> String {
    let before = &svg[..svg.find(&format!(">{name}</text>")).unwrap_or_else(|| panic!("no {name}"))];
    let start = before.rfind("fill=\"#").unwrap() + 6;
    before[start..start + 7].to_owned()
}

#[test]
fn a_scheme_has_one_colour_in_all_figures_and_every_figure_scales() {
    let (runs, directory) = reported("colours", &["seeds=2", "traffic.download.bulk.size=50 kB"]);
    let (progress, goodput) = (read(&directory, "progress.svg"), read(&directory, "goodput-over-time.svg"));
    let mut colours = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let own = colour(&progress, &run.scheme);
        assert_eq!(colour(&goodput, &run.scheme), own);
        assert_eq!(colour(&read(&directory, &format!("segments-{}.svg", number + 1)), "sent"), own);
        assert!(!colours.contains(&own), "{own} twice");
        colours.push(own);
    }
    for name in ["goodput", "progress", "goodput-over-time", "segments-1"] {
        let (screen, paper) =
            (read(&directory, &format!("{name}.svg")), read(&directory, &format!("{name}-paper.svg")));
        assert!(screen.contains(" viewBox=\"0 0 760 ") && screen.contains(" width=\"100%\""), "{name}");
        // A column wide, with letters of 13 units: 8 pt.
        assert!(paper.contains(" viewBox=\"0 0 409.5 ") && paper.contains(" width=\"252.00pt\""), "{name}");
        assert!(
            screen.contains("prefers-color-scheme: dark") && !paper.contains("prefers-color-scheme"),
            "{name}"
        );
    }
}

/// Goal: what takes single latencies, which only the run that is drawn keeps, is told of no run.
#[test]
fn runs_tell_only_what_all_of_them_keep() {
    let web = "traffic.web.transactions={ from = \"terminal\", to = \"server\", count = 3, interval = \"1 s\", request = \"1 kB\", reply = \"1 kB\" }";
    let (_, directory) = reported("told", &["seeds=2", "traffic.download.bulk.size=5 kB", web]);
    let text = read(&directory, "runs.csv");
    let (heading, rows) = text.split_once('\n').unwrap();
    assert!(heading.starts_with("scheme,seed,flow,") && !heading.contains("transaction_median"), "{heading}");
    // Five schemes, two seeds, a download and the transactions.
    assert_eq!(rows.lines().count(), 5 * 2 * 2, "{text}");
}
