//! What was measured before, so that a sweep goes on where it stopped.
//!
//! Each experiment has one file of JSON lines: what a case and seed measured, under a key of all that it was asked (its
//! scenarios, numbers and seed) and a stamp of what would answer (its probes' versions, and the trace hashes of short
//! runs of its own scenarios). A line with another stamp counts for nothing: an older engine's, or another sweep's into the same
//! directory. It stays until its case is measured anew. Lines are written whole, one by one, so that a run that is cut off loses only
//! what was still running.

use fs_err::{self as fs, File, OpenOptions};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::claims::Measurements;

/// One experiment's file, or only a memory where nothing is to be kept.
#[derive(Debug)]
pub(super) struct Store {
    stamp: u64,
    known: HashMap<u64, Measurements>,
    file: Option<Mutex<File>>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line<M> {
    stamp: String,
    key: String,
    measured: M,
}

impl Store {
    /// A store that keeps nothing.
    pub(super) fn memory() -> Self {
        Self { stamp: 0, known: HashMap::new(), file: None }
    }

    /// Reads what `directory` and the directories `beside` it have of an experiment, and goes on with the file in
    /// `directory`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn open(
        directory: &Path,
        beside: &[PathBuf],
        experiment: &str,
        stamp: u64,
    ) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let name = file(experiment);
        let path = directory.join(&name);
        let mut kept = Kept::default();
        kept.read(&path, stamp);
        let own = kept.known.len();
        for other in beside {
            let mut there = Kept::default();
            there.read(&other.join(&name), stamp);
            kept.known.extend(there.known);
        }
        let Kept { known, mut others, has_waste } = kept;
        if has_waste || known.len() > own {
            others.retain(|key, _| !known.contains_key(key));
            let mut all: Vec<_> = known.iter().collect();
            all.sort_by_key(|(key, _)| **key);
            let text = all.into_iter().map(|(key, measured)| line(stamp, *key, measured));
            let text: String = text.chain(others.into_values()).collect();
            let new = directory.join(format!("{experiment}.new"));
            fs::write(&new, text)?;
            fs::rename(new, &path)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(Self { stamp, known, file: Some(Mutex::new(file)) })
    }

    /// What was measured under this key.
    pub(super) fn get(&self, key: u64) -> Option<&Measurements> {
        self.known.get(&key)
    }

    /// Keeps what was measured.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn keep(&self, key: u64, measured: &Measurements) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let line = line(self.stamp, key, measured);
        file.lock().expect("no writer panics").write_all(line.as_bytes())
    }
}

/// What the file of an experiment is called.
pub(super) fn file(experiment: &str) -> String {
    format!("{experiment}.jsonl")
}

/// A line of it.
pub(super) fn line(stamp: u64, key: u64, measured: &Measurements) -> String {
    let line = Line { stamp: format!("{stamp:016x}"), key: format!("{key:016x}"), measured };
    serde_json::to_string(&line).expect("measurements are numbers, texts and lists") + "\n"
}

/// What a file has.
#[derive(Default)]
struct Kept {
    known: HashMap<u64, Measurements>,
    /// Lines with other stamps, by key.
    others: BTreeMap<u64, String>,
    /// Whether some lines are not whole, or a later one took their place.
    has_waste: bool,
}

impl Kept {
    /// Takes in the lines of a file that are whole; a file that is not there has none.
    fn read(&mut self, path: &Path, stamp: u64) {
        let Ok(file) = File::open(path) else { return };
        let stamp = format!("{stamp:016x}");
        for text in BufReader::new(file).lines().map_while(Result::ok) {
            let line = serde_json::from_str::<Line<Measurements>>(&text).ok();
            let line = line.and_then(|line| Some((u64::from_str_radix(&line.key, 16).ok()?, line)));
            let Some((key, line)) = line else {
                self.has_waste = true;
                continue;
            };
            let is_second = self.known.remove(&key).is_some() | self.others.remove(&key).is_some();
            self.has_waste |= is_second;
            match line.stamp == stamp {
                true => _ = self.known.insert(key, line.measured),
                false => _ = self.others.insert(key, text + "\n"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(value: f64) -> Measurements {
        let mut measured = Measurements::new();
        measured.set("T", &[], value);
        measured
    }

    #[test]
    fn what_was_kept_is_there_again_until_its_stamp_is_old() {
        let scratch = std::env::temp_dir().join(format!("longhaul-store-{}", std::process::id()));
        let [here, there] = ["here", "there"].map(|name| scratch.join(name));
        let open =
            |folder: &Path, beside: &[PathBuf], stamp| Store::open(folder, beside, "e", stamp).unwrap();
        open(&here, &[], 1).keep(7, &measured(0.1)).unwrap();
        open(&there, &[], 1).keep(8, &measured(0.2)).unwrap();
        // A run that was cut off in the middle of a line.
        let mut file = OpenOptions::new().append(true).open(here.join("e.jsonl")).unwrap();
        file.write_all(b"{\"stamp\":\"0000").unwrap();
        let merged = open(&here, core::slice::from_ref(&there), 1);
        assert_eq!((merged.get(7), merged.get(8)), (Some(&measured(0.1)), Some(&measured(0.2))));
        drop(merged);
        assert_eq!(fs::read_to_string(here.join("e.jsonl")).unwrap().lines().count(), 2);
        let newer = open(&here, &[], 2);
        assert_eq!((newer.get(7), newer.get(8)), (None, None));
        newer.keep(7, &measured(0.3)).unwrap();
        drop(newer);
        // Another sweep's lines stay, but for those of what was measured anew.
        let older = open(&here, &[], 1);
        assert_eq!((older.get(7), older.get(8)), (None, Some(&measured(0.2))));
        drop(older);
        assert_eq!(open(&here, &[], 2).get(7), Some(&measured(0.3)));
        assert_eq!(fs::read_to_string(here.join("e.jsonl")).unwrap().lines().count(), 2);
        fs::remove_dir_all(scratch).unwrap();
    }
}
