//! What people look at, in a real browser: reports fit a phone and a desk, light and dark, and nothing in them
//! complains.
//!
//! Chromium renders each page without a screen, in frames of both widths, and `browser/look.js` writes what it sees into the page
//! around them. A console message comes on standard error.

mod requirements;
mod scratch;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use requirements::skipped;
use scratch::Scratch;
use serde_json::Value;

const LOOK: &str = include_str!("browser/look.js");
const DEMO: &str = include_str!("../../../scenarios/demo/download.toml");
/// A phone and a desk, in CSS pixels.
const WIDTHS: [u32; 2] = [390, 1280];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Dark,
    Light,
}

/// The browser, or why there is none.
fn browser() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut places = std::env::split_paths(&path).flat_map(|place| names.map(|name| place.join(name)));
    places.find(|place| place.is_file()).ok_or_else(|| format!("no {} in PATH", names.join(" or ")))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a browser showed, and what pages wrote to its console.
struct Seen {
    frames: Vec<Value>,
    console: Vec<String>,
}

/// Looks at every page in every width.
fn look(scratch: &Scratch, pages: &[PathBuf], scheme: Scheme) -> Seen {
    let frame = |page: &PathBuf, width: u32| {
        let page = page.display();
        format!(
            "<iframe src=\"file://{page}\" data-page=\"{page}\" style=\"width: {width}px; height: 800px; border: 0\"></iframe>\n"
        )
    };
    let frames: String = pages.iter().flat_map(|page| WIDTHS.map(|width| frame(page, width))).collect();
    let around = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\n\
         <pre id=\"seen\"></pre>\n<script>{LOOK}</script>\n{frames}"
    );
    let file = PathBuf::from(scratch.path("around.html"));
    std::fs::write(&file, around).unwrap();
    // Chromium's own order: 0 is dark.
    let preferred = format!("--blink-settings=preferredColorScheme={}", u8::from(scheme == Scheme::Light));
    let profile = format!("--user-data-dir={}", scratch.path("profile"));
    let Output { status, stdout, stderr } = Command::new(browser().unwrap())
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args([
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            "--dump-dom",
            &preferred,
            &profile,
        ])
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let (page, said) = (text(&stdout), text(&stderr));
    let seen = page.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (seen, _) = seen.unwrap_or_else(|| panic!("the browser showed nothing, {status}: {said}"));
    let frames: Vec<Value> =
        serde_json::from_str(seen).unwrap_or_else(|error| panic!("{error} in {seen:?}: {said}"));
    assert_eq!(frames.len(), pages.len() * WIDTHS.len());
    let console = said.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
    Seen { frames, console }
}

/// What is wrong with what a browser showed.
fn faults(seen: &Seen, scheme: Scheme) -> Vec<String> {
    let mut faults = seen.console.clone();
    for frame in &seen.frames {
        let place = format!("{} at {}", frame["page"].as_str().unwrap(), frame["room"]);
        let mut complain = |what: String| faults.push(format!("{place}, {scheme:?}: {what}"));
        if frame["dark"].as_bool() != Some(scheme == Scheme::Dark) {
            complain("not asked for the right colours".to_owned());
        }
        if frame["needed"].as_u64() > frame["room"].as_u64() {
            complain(format!("{} pixels wide: {}", frame["needed"], frame["wide"]));
        }
        for what in ["faint", "missing"] {
            if frame[what].as_array().is_none_or(|all| !all.is_empty()) {
                complain(format!("{what}: {}", frame[what]));
            }
        }
        for part in frame["figures"].as_array().unwrap() {
            if !(0.7..=1.0).contains(&part.as_f64().unwrap()) {
                complain(format!("a figure takes {part} of its place"));
            }
        }
        let is_dark = frame["sheet"].as_array().unwrap().iter().all(|part| part.as_f64().unwrap() < 80.0);
        if is_dark != (scheme == Scheme::Dark) {
            complain(format!("the background is {}", frame["sheet"]));
        }
    }
    faults
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
