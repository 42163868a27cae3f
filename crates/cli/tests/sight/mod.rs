//! What people look at, in a real browser: whether it fits a phone and a desk, light and dark, and whether anything in it complains.
//!
//! Chromium renders each page without a screen, in frames of both widths, and `look.js` writes what it sees into the page around them. A
//! console message comes on standard error.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::scratch::Scratch;

const LOOK: &str = include_str!("look.js");
/// A phone and a desk, in CSS pixels.
const WIDTHS: [u32; 2] = [390, 1280];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Dark,
    Light,
}

/// The browser, or why there is none.
pub(crate) fn browser() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut places = std::env::split_paths(&path).flat_map(|place| names.map(|name| place.join(name)));
    places.find(|place| place.is_file()).ok_or_else(|| format!("no {} in PATH", names.join(" or ")))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a browser showed, and what pages wrote to its console.
pub(crate) struct Seen {
    pub(crate) frames: Vec<Value>,
    pub(crate) console: Vec<String>,
}

/// Pages that change while they are looked at.
pub(crate) struct Live<'a> {
    /// Where somebody serves `around.html`, the page around them: from where they come themselves, or it would not see what they show.
    pub(crate) around: &'a str,
    /// A picture that comes when there is something to see.
    pub(crate) until: &'a str,
}

/// Looks at every page in every width, with a browser that is started like this.
pub(crate) fn look_with(
    mut browser: Command,
    scratch: &Scratch,
    pages: &[String],
    live: Option<&Live<'_>>,
    scheme: Scheme,
) -> Seen {
    let words = if live.is_some() { "data-words" } else { "" };
    let frame = |page: &String, width: u32| {
        format!(
            "<iframe src=\"{page}\" data-page=\"{page}\" {words} style=\"width: {width}px; height: 800px; border: 0\"></iframe>\n"
        )
    };
    let mut frames: String = pages.iter().flat_map(|page| WIDTHS.map(|width| frame(page, width))).collect();
    frames.extend(live.map(|live| format!("<img src=\"{}\">", live.until)));
    let around = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\n\
         <pre id=\"seen\"></pre>\n<script>{LOOK}</script>\n{frames}"
    );
    let file = PathBuf::from(scratch.path("around.html"));
    std::fs::write(&file, around).unwrap();
    // Chromium's own order: 0 is dark.
    let preferred = format!("--blink-settings=preferredColorScheme={}", u8::from(scheme == Scheme::Light));
    let profile = format!("--user-data-dir={}", scratch.path("profile"));
    let around = live.map_or_else(|| format!("file://{}", file.display()), |live| live.around.to_owned());
    let Output { status, stdout, stderr } = browser
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args([
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            "--dump-dom",
            &preferred,
            &profile,
        ])
        .arg(around)
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
pub(crate) fn faults(seen: &Seen, scheme: Scheme) -> Vec<String> {
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
