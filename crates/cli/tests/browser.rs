//! What people look at, in a real browser: reports fit a phone and a desk, light and dark, and nothing in them
//! complains.
//!
//! `sight/` has how they are looked at.

mod requirements;
mod scratch;
mod sight;

use std::path::{Path, PathBuf};
use std::process::Command;

use requirements::skipped;
use scratch::Scratch;
use sight::{Scheme, Seen, browser, faults, look_with, text};

const DEMO: &str = include_str!("../../../scenarios/demo/download.toml");

/// Looks at every page in every width.
fn look(scratch: &Scratch, pages: &[PathBuf], scheme: Scheme) -> Seen {
    let pages: Vec<String> = pages.iter().map(|page| format!("file://{}", page.display())).collect();
    look_with(Command::new(browser().unwrap()), scratch, &pages, None, scheme)
}

/// Looks at the pages, light and dark, and demands that nothing is wrong.
fn inspect(scratch: &Scratch, pages: &[PathBuf]) {
    for scheme in [Scheme::Light, Scheme::Dark] {
        let faults = faults(&look(scratch, pages, scheme), scheme);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

/// The report that a command writes to `out`, and its figures as files.
fn report(arguments: &[&str], out: &Path) -> Vec<PathBuf> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_longhaul")).args(arguments).arg("--out").arg(out).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut pages = vec![out.join("report.html")];
    let files = std::fs::read_dir(out).unwrap().map(|file| file.unwrap().path());
    // Those for a paper are light whatever the reader prefers.
    pages.extend(
        files.filter(|file| file.extension().is_some_and(|ending| ending == "svg") && !is_for_paper(file)),
    );
    pages
}

fn is_for_paper(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("-paper"))
}

#[test]
fn the_demo_and_its_figures_fit_every_screen() {
    if skipped("the demo in a browser", browser().err()) {
        return;
    }
    let scratch = Scratch::new("demo");
    let scenario = PathBuf::from(scratch.path("download.toml"));
    std::fs::write(&scenario, DEMO).unwrap();
    let scenario = scenario.display().to_string();
    let arguments = ["run", &scenario, "--set", "traffic.download.bulk.size=100 kB", "--seeds", "3"];
    let pages = report(&arguments, Path::new(&scratch.path("out")));
    assert!(pages.len() >= 8, "{pages:?}");
    inspect(&scratch, &pages);
}

#[test]
fn a_study_and_its_figures_fit_every_screen() {
    if skipped("a study in a browser", browser().err()) {
        return;
    }
    let scratch = Scratch::new("study");
    let mut pages = Vec::new();
    // Bars; then points over time, with words and shades, and the tables of a large study.
    for (paper, figure) in [("peng", "4"), ("faulkner", "4-7-tcp"), ("faulkner", "4-4")] {
        let arguments = ["reproduce", paper, "--quick", "--figure", figure, "--seeds", "1"];
        pages.extend(report(&arguments, Path::new(&scratch.path(figure))));
    }
    inspect(&scratch, &pages);
}

/// The check can fail: each fault that it looks for is found where it is planted.
#[test]
fn planted_faults_are_found() {
    if skipped("planted faults in a browser", browser().err()) {
        return;
    }
    let scratch = Scratch::new("faults");
    let style =
        "<style>@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } }</style>";
    let page = |name: &str, body: &str| {
        let file = PathBuf::from(scratch.path(name));
        let main = format!(
            "<!doctype html><meta charset=\"utf-8\">{style}<body style=\"margin: 0\"><main>Words.{body}</main></body>"
        );
        std::fs::write(&file, main).unwrap();
        file
    };
    let good =
        page("good.html", "<div style=\"overflow-x: auto\"><div style=\"width: 800px\">scrolls</div></div>");
    inspect(&scratch, &[good]);
    for (number, (body, found)) in [
        ("<div style=\"width: 500px\">wide</div>", "pixels wide"),
        ("<script>console.error('planted')</script>", "planted"),
        ("<script>undefined.planted()</script>", "Cannot read properties of undefined"),
        ("<p style=\"color: #777\">grey</p><p style=\"color: #888\">grey</p>", "faint"),
        ("<img src=\"nowhere.png\">", "missing"),
        ("<figure><svg viewBox=\"0 0 9 9\" width=\"100\"></svg></figure>", "a figure takes"),
        ("<style>body { background: #ddd !important; color: #000 !important }</style>", "the background is"),
    ]
    .into_iter()
    .enumerate()
    {
        let pages = [page(&format!("{number}.html"), body)];
        let found_in = |scheme| faults(&look(&scratch, &pages, scheme), scheme);
        let faults = [found_in(Scheme::Light), found_in(Scheme::Dark)].concat();
        assert!(faults.iter().any(|fault| fault.contains(found)), "{found}: {faults:?}");
    }
}
