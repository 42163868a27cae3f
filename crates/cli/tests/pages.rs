//! The pages for people: every link leads somewhere, on a code host and in the site that mdBook makes of `docs`, and every message that
//! the troubleshooting page explains is one that the programs print.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

mod pages {
    pub(crate) mod browser;
    pub(crate) mod markdown;
    pub(crate) mod site;
}

mod requirements;

use lab::study::published::check;
use lab::study::{Files, Study};
use pages::markdown::Page;
use pages::{browser, site};
use requirements::skipped;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The files of a directory whose names have this ending, in order.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|it| it == ending));
    found.sort();
    found
}

/// All pages: those at the root and those of `docs`.
fn pages() -> BTreeMap<PathBuf, Page> {
    let root = root();
    let all = [files(&root, "md"), files(&root.join("docs"), "md")].concat();
    all.into_iter().map(|path| (path.clone(), Page::read(&path))).collect()
}

/// What is wrong with a link of the page at `from`, if something is.
fn fault(pages: &BTreeMap<PathBuf, Page>, from: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { from.to_owned() } else { from.parent().unwrap().join(file) };
    let Ok(path) = path.canonicalize() else { return Some("no such file".to_owned()) };
    let docs = root().join("docs");
    if from.starts_with(&docs) && !path.starts_with(&docs) {
        return Some("leaves docs, so the site does not have it".to_owned());
    }
    let anchor = anchor?;
    let Some(page) = pages.get(&path) else { return Some("an anchor in what is no page".to_owned()) };
    (!page.anchors().contains(anchor)).then(|| format!("no such heading; there are {:?}", page.anchors()))
}

#[test]
fn every_link_of_every_page_leads_somewhere() {
    let pages = pages();
    assert!(pages.len() > 25, "only {} pages", pages.len());
    let (mut links, mut faults) = (0, Vec::new());
    for (path, page) in &pages {
        for target in page.links() {
            links += 1;
            if let Some(fault) = fault(&pages, path, &target) {
                faults.push(format!("{}: {target}: {fault}", path.display()));
            }
        }
        for name in page.undefined() {
            faults.push(format!("{}: [{name}] is not defined", path.display()));
        }
    }
    assert!(links > 100, "only {links} links");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Modules that ARCHITECTURE lists, each with its crate: of an item what stands in front of a colon, or all outside parentheses.
fn listed_modules(text: &str) -> Vec<(&str, &str)> {
    let (mut of, mut listed) = ("", Vec::new());
    for line in text.lines() {
        match line.strip_prefix("- **`").and_then(|rest| rest.split_once("`**")) {
            Some((name, _)) => of = name,
            None if line.starts_with('#') || line.starts_with("- ") => of = "",
            None => {}
        }
        let Some(item) = line.strip_prefix("  - ").filter(|_| !of.is_empty()) else { continue };
        let outside = item.split('(').map(|part| part.split_once(')').map_or(part, |(_, after)| after));
        for part in outside.flat_map(|part| part.split("; ")) {
            let names = part.split(':').next().unwrap_or(part);
            let names = names.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches('/'));
            listed.extend(names.filter(|name| !name.contains("::")).map(|name| (of, name)));
        }
    }
    listed
}

/// Whether a folder, or one in it, has a module of this name.
fn has_module(folder: &Path, name: &str) -> bool {
    let own = folder.join(name).is_dir() || folder.join(name).with_extension("rs").is_file();
    let mut inner = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    own || inner.any(|path| path.is_dir() && has_module(&path, name))
}

#[test]
fn every_module_that_the_architecture_lists_is_there() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let crates = root().join("crates");
    let listed: Vec<_> =
        listed_modules(&text).into_iter().filter(|(of, _)| crates.join(of).is_dir()).collect();
    assert!(listed.len() > 100, "{}", listed.len());
    let missing: Vec<_> =
        listed.iter().filter(|(of, name)| !has_module(&crates.join(of).join("src"), name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_site_has_every_page() {
    let docs = root().join("docs");
    let summary = Page::read(&docs.join("SUMMARY.md")).links();
    for path in files(&docs, "md") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let times = summary.iter().filter(|it| *it == name).count();
        assert_eq!(times, usize::from(name != "SUMMARY.md"), "{name} in docs/SUMMARY.md");
    }
}

#[test]
fn the_introduction_leads_where_the_readme_does() {
    let definitions = |file: &str| {
        let path = root().join(file);
        let absolute = |(name, target): (String, String)| {
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let there = path.parent().unwrap().join(file).canonicalize();
            (name, there.unwrap_or_else(|_| panic!("{}: {target}", path.display())), anchor.to_owned())
        };
        Page::read(&path).definitions().into_iter().map(absolute).collect::<Vec<_>>()
    };
    let readme = definitions("README.md");
    assert!(!readme.is_empty());
    assert_eq!(definitions("docs/introduction.md"), readme);
}

#[test]
fn the_readme_has_its_two_commands_and_the_rust_version() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let (readme, manifest) = (read("README.md"), read("Cargo.toml"));
    let version =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    for part in [
        "\n    cargo run --release -- demo\n",
        "\n    cargo test --workspace\n",
        &format!(" {version} or later"),
    ] {
        assert!(readme.contains(part), "README.md has no {part:?}");
    }
}

/// Every study that a page is about.
fn studies() -> Vec<Study> {
    let probes: Vec<_> = lab::papers::ALL.iter().flat_map(|paper| paper.probes).copied().collect();
    let folder = Files::Folder(root().join("scenarios/faulkner"));
    let papers = lab::papers::ALL.iter().map(|paper| paper.study().unwrap());
    papers.chain([Study::load(folder, "optimum.toml", &probes).unwrap()]).collect()
}

#[test]
fn what_runs_wrote_still_stands_in_the_pages() {
    let studies = studies();
    let mut shown = BTreeMap::new();
    for path in pages().keys() {
        let text = fs::read_to_string(path).unwrap();
        let marks =
            check(&studies, &path.display().to_string(), &text).unwrap_or_else(|fault| panic!("{fault}"));
        let is_old = text.contains("> The figures on this page are from before");
        shown.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), (marks, is_old));
    }
    for study in studies {
        let (marks, is_old) = shown[&study.name];
        assert!(
            marks > 2 || is_old,
            "docs/{}.md has {marks} marks, and does not say that it is old",
            study.name
        );
    }
}

/// README has no marks, which would be the first that a reader of its text meets.
#[test]
fn the_readme_says_of_long_downloads_what_choosing_does() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let (readme, choosing) = (read("README.md"), read("docs/choosing.md"));
    for of in ["Casoni", "Faulkner .1"] {
        let mark = format!("bulk.goodput('TCP', '{of}') / bulk.goodput('gateway', '{of}') as 0.00 -->");
        let (_, after) = choosing.split_once(&mark).unwrap_or_else(|| panic!("no mark of {of}"));
        let times = format!("{} times", after.split_once("<!--").unwrap().0);
        assert!(readme.contains(&times), "README.md: {of}: {times}");
    }
}

#[test]
fn a_wrong_number_in_any_page_is_found() {
    let (studies, mut planted) = (studies(), 0);
    for path in pages().keys() {
        let (name, text) = (path.display().to_string(), fs::read_to_string(path).unwrap());
        // The first digit at each mark of a full run, and none of its opening comment.
        for (at, _) in text.match_indices("<!-- /") {
            let opened = text[..at].rfind("-->").map_or(0, |end| end + 3);
            let opening = &text[..opened];
            let opening = &opening[opening.rfind("<!--").unwrap_or(0)..];
            let digit = text[opened..at].find(|c: char| c.is_ascii_digit());
            if let Some(digit) =
                digit.filter(|_| !opening.contains(" quick: ") && !opening.contains(": made"))
            {
                let mut wrong = text.clone();
                let other = if text.as_bytes()[opened + digit] == b'7' { "8" } else { "7" };
                wrong.replace_range(opened + digit..=opened + digit, other);
                assert!(check(&studies, &name, &wrong).is_err(), "{name}: {:?}", &text[opened..at]);
                planted += 1;
            }
        }
    }
    assert!(planted > 20, "only {planted} numbers");
}

/// What the demo has measured: a list of its schemes or runs.
fn demo(list: &str) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(root().join("out/demo/runs.json")).unwrap();
    let demo: serde_json::Value = serde_json::from_str(&text).unwrap();
    demo[list].as_array().unwrap().clone()
}

/// A quantity of the demo's runs with one scheme, by seed.
fn demo_runs(scheme: &str, quantity: &str) -> BTreeMap<u64, f64> {
    let runs = demo("runs").into_iter().filter(|run| run["scheme"] == scheme);
    runs.map(|run| (run["seed"].as_u64().unwrap(), run[quantity].as_f64().unwrap())).collect()
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(values: &[f64]) -> f64 {
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// How many times as fast as the first of the demo's schemes each other one is, seed by seed: median, least and most, as the pages have them.
fn demo_ratios() -> Vec<[String; 2]> {
    let schemes: Vec<String> =
        demo("schemes").iter().map(|it| it["scheme"].as_str().unwrap().to_owned()).collect();
    let first = demo_runs(&schemes[0], "goodput_bps");
    let ratio = |scheme: &String| {
        let ratios = sorted(demo_runs(scheme, "goodput_bps").iter().map(|(seed, it)| it / first[seed]));
        let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
        [format!("{:.1} times", median(&ratios)), format!("({least:.1} to {most:.1})")]
    };
    schemes[1..].iter().map(ratio).collect()
}

/// Median time, goodput and bound of each of the demo's schemes, as the pages have them.
fn demo_rows() -> Vec<[String; 3]> {
    let of_scheme = |scheme: &str, quantity: &str| median(&sorted(demo_runs(scheme, quantity).into_values()));
    let rate = |bps: f64| match bps / 1000.0 {
        large if large >= 100.0 => format!("{large:.0} kbit/s"),
        small => format!("{small:.1} kbit/s"),
    };
    let row = |scheme: &serde_json::Value| {
        let median = |quantity| of_scheme(scheme["scheme"].as_str().unwrap(), quantity);
        [format!("{:.1} s", median("seconds")), rate(median("goodput_bps")), rate(median("bound_bps"))]
    };
    demo("schemes").iter().map(row).collect()
}

#[test]
#[ignore = "needs out/demo, which `longhaul demo` makes"]
fn the_readme_and_the_measurements_show_what_the_demo_prints() {
    let rows = demo_rows();
    assert!(rows.len() > 3, "{rows:?}");
    for page in ["README.md", "docs/measurements.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap().replace("**", "");
        for row in &rows {
            let has_all = |line: &&str| row.iter().all(|cell| line.contains(&format!("| {cell} |")));
            assert_eq!(text.lines().filter(has_all).count(), 1, "{page}: the row of {row:?}");
        }
    }
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let measurements = read("docs/measurements.md");
    let (question, answer) =
        (measurements.lines().find(|it| it.contains("blocked 30 % of the time?")).unwrap(), "as fast as TCP");
    let sentence = measurements.split("\n\n").find(|it| it.contains(answer)).unwrap();
    for [times, spread] in demo_ratios() {
        assert!(sentence.contains(&times) && sentence.contains(&spread), "{times} {spread}: {sentence}");
    }
    let [cotmll, _, own, gateways] = &demo_ratios()[..] else { panic!("five schemes") };
    let answer = format!(
        "a gateway's defaults {}, the same protocols as the link's own {}, COTMLL {} ",
        gateways[0], own[0], cotmll[0]
    );
    assert!(question.contains(&answer), "{answer}: {question}");
    assert!(
        read("docs/images/demo-progress.svg") == read("out/demo/progress.svg"),
        "docs/images/demo-progress.svg is another run's"
    );
}

/// All sources below a directory in one text, with string literals that go on over several lines joined.
fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let mut rest = fs::read_to_string(path).unwrap();
            while let Some(at) = rest.find("\\\n") {
                text.push_str(&rest[..at]);
                rest = rest[at + 2..].trim_start().to_owned();
            }
            text.push_str(&rest);
        }
    }
}

#[test]
fn every_message_in_troubleshooting_is_one_that_is_printed() {
    // What the system and a library say.
    const FOREIGN: [&str; 6] = [
        "Permission denied",
        "No such file or directory",
        "Device or resource busy",
        "Address already in use",
        "Cannot assign requested address",
        "expected one of",
    ];
    let root = root();
    let mut text = String::new();
    for part in ["base", "tunnel", "gateway", "lab", "link", "field", "cli"] {
        sources(&root.join("crates").join(part).join("src"), &mut text);
    }
    let text = text.replace("\\\"", "\"");
    let page = fs::read_to_string(root.join("docs/troubleshooting.md")).unwrap();
    // The first cell of rows begins with the message, in code; … stands for what differs.
    let messages: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|it| it.contains(' '))
        .collect();
    assert!(messages.len() > 20, "only {} messages", messages.len());
    for message in messages {
        let parts = message.split(['…', ':', ';']).map(|part| part.trim_matches([' ', '.', ',']));
        for part in parts.filter(|it| it.len() > 3) {
            let is_known = text.contains(part) || FOREIGN.contains(&part);
            assert!(is_known, "{message:?}: nothing prints {part:?}");
        }
    }
}

/// The pages of the site, which `mdbook build` has made.
fn site_pages() -> Vec<PathBuf> {
    let site = root().join("out/site");
    let mut pages = files(&site, "html");
    // Servers show 404.html in place of any missing page, so its links count from where the site will be; toc.html is part of others.
    pages.retain(|page| !page.ends_with("404.html") && !page.ends_with("toc.html"));
    assert!(pages.len() > 25, "only {} pages in {}", pages.len(), site.display());
    pages
}

#[test]
#[ignore = "needs out/site, which `mdbook build` makes"]
fn every_link_of_the_site_leads_somewhere() {
    let site = root().join("out/site");
    let faults: Vec<String> = site_pages().iter().flat_map(|page| site::faults(&site, page)).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
#[ignore = "needs out/site, which `mdbook build` makes"]
fn every_page_of_the_site_fits_a_phone_light_and_dark() {
    let missing = || browser::chromium().is_none().then(|| "there is no Chromium".to_owned());
    if skipped("every_page_of_the_site_fits_a_phone_light_and_dark", missing()) {
        return;
    }
    let scratch = std::env::temp_dir().join(format!("longhaul-phone-{}", std::process::id()));
    fs::create_dir_all(&scratch).unwrap();
    let faults = browser::faults(browser::chromium().unwrap(), &scratch, &site_pages());
    fs::remove_dir_all(&scratch).unwrap();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
