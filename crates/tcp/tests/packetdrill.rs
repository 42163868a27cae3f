//! Scripts in packetdrill's language, run on a host in virtual time. `docs/tcp.md` tells how to write one.
//!
//! `scripts/` has those that hold. `scripts/known-differences/` has those of which the kernel or an RFC says otherwise than a
//! host of ours does: each must fail, so that a difference that is gone is noticed.

mod packetdrill {
    pub(crate) mod host;
    pub(crate) mod info;
    mod reader;
}

use std::fs;
use std::path::{Path, PathBuf};

use ::packetdrill::Script;
use base::Duration;
use packetdrill::host::VirtualHost;

/// The scripts in a folder below `scripts/`, by name.
fn scripts(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(folder);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pkt"));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Runs a script on a host of ours.
fn run(text: &str) -> Result<(), String> {
    let script = Script::parse(text).map_err(|error| error.to_string())?;
    let mut host = VirtualHost::new(&script)?;
    ::packetdrill::run(&script, &mut host, Duration::ZERO).map_err(|failure| failure.to_string())
}

/// Where a script is and what is wrong in it.
fn complaint(path: &Path, message: &str) -> String {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"));
    format!("{}:{message}", path.strip_prefix(from).unwrap_or(path).display())
}

#[test]
fn every_script_holds() {
    let only = std::env::var("LONGHAUL_SCRIPT").ok();
    let all = scripts("");
    assert!(all.len() >= 3, "{} scripts", all.len());
    let wanted = |path: &Path| only.as_deref().is_none_or(|name| path.to_string_lossy().contains(name));
    let failures: Vec<String> = all
        .iter()
        .filter(|(path, _)| wanted(path))
        .filter_map(|(path, text)| run(text).err().map(|message| complaint(path, &message)))
        .collect();
    assert!(failures.is_empty(), "{} of {} fail\n{}", failures.len(), all.len(), failures.join("\n\n"));
}

#[test]
fn every_known_difference_is_one() {
    let all = scripts("known-differences");
    let mut gone = Vec::new();
    for (path, text) in all {
        match run(&text) {
            Ok(()) => gone.push(complaint(&path, "1:1: holds now; move it to scripts/")),
            Err(message) => println!("{}\n", complaint(&path, &message)),
        }
    }
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}

/// A script opens with what it shows, and the RFC, the paper or the kernel that says so.
#[test]
fn every_script_names_its_source() {
    for (path, text) in scripts("").into_iter().chain(scripts("known-differences")) {
        let opening: Vec<&str> = text.lines().take_while(|line| line.starts_with("//")).collect();
        let opening = opening.join(" ");
        let sourced = ["RFC ", "Linux", "draft-", " 19", " 20"].iter().any(|source| opening.contains(source));
        assert!(sourced, "{}", complaint(&path, "1:1: names no source"));
    }
}

/// What `docs/tcp.md` shows is a script that holds.
#[test]
fn the_example_in_the_documentation_holds() {
    let document = include_str!("../../../docs/tcp.md");
    let (_, after) = document.split_once("```\n//").expect("a script");
    let (script, _) = after.split_once("```").expect("its end");
    assert_eq!(run(&format!("//{script}")), Ok(()));
}
