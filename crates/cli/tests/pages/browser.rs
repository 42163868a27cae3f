//! Pages in a real browser, as wide as a phone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Chromium of this machine.
pub(crate) fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|it| it.status.success()))
}

/// What does not fit a screen of 390 pixels, in the light theme or the dark one, and what scripts complain about. `scratch` is a directory
/// that may be written to.
///
/// # Panics
/// If the browser did not look at all pages.
pub(crate) fn faults(chromium: &str, scratch: &Path, pages: &[PathBuf]) -> Vec<String> {
    let urls: Vec<String> = pages.iter().map(|page| format!("\"file://{}\"", page.display())).collect();
    let probe = include_str!("phone.html")
        .replace("const pages = PAGES", &format!("const pages = [{}]", urls.join(",")));
    let file = scratch.join("phone.html");
    fs::write(&file, probe).unwrap();
    let output = Command::new(chromium)
        // Frames of other files may be measured; waiting takes no time. A container has no sandbox to offer.
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"])
        .args(["--virtual-time-budget=120000", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", scratch.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let (page, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let report = page.split_once("<pre id=\"faults\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let report = report.unwrap_or_else(|| panic!("no report in {page}\n{log}")).0;
    let mut lines: Vec<String> = report.lines().map(str::to_owned).collect();
    assert_eq!(lines.pop(), Some(format!("looked at {}", 2 * pages.len())), "{log}");
    lines.extend(log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned));
    lines
}
