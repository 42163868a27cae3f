//! What was measured before, by the hash of everything that it depends on.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::claims::Measurements;
use crate::scenario::Scenario;

/// A directory with a file for every job, or none.
#[derive(Debug)]
pub(super) struct Cache {
    directory: Option<PathBuf>,
}

/// The hash of a job: of the program, the experiment, its parameters, the scenarios of all schemes as they resolve, and the
/// seed.
pub(super) fn hash(
    build: &str,
    experiment: &str,
    parameters: &str,
    scenarios: &[(String, Scenario)],
    seed: u64,
) -> io::Result<u64> {
    let mut text = format!("{build}\n{experiment}\n{parameters}\n{seed}\n");
    for (name, scenario) in scenarios {
        text += name;
        text += &toml::to_string(scenario).map_err(io::Error::other)?;
    }
    Ok(base::random::fnv1a(text.as_bytes()))
}

impl Cache {
    pub(super) const fn new(directory: Option<PathBuf>) -> Self {
        Self { directory }
    }

    fn file(&self, hash: u64) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.join(format!("{hash:016x}.json")))
    }

    /// What was kept; a file that cannot be read, or was not written to its end, is measured again.
    pub(super) fn load(&self, hash: u64) -> Option<Measurements> {
        let text = fs::read_to_string(self.file(hash)?).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps `measurements`.
    pub(super) fn store(&self, hash: u64, measurements: &Measurements) -> io::Result<()> {
        let Some(file) = self.file(hash) else { return Ok(()) };
        if let Some(directory) = &self.directory {
            fs::create_dir_all(directory)?;
        }
        fs::write(file, serde_json::to_string(measurements)?)
    }
}
