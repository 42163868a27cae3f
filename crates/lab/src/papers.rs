//! The papers that are reproduced: each is a study under `scenarios/`, and has here only the probes that the instrument
//! does not have. `frontier` puts what comes of all five side by side.

mod casoni;
mod faulkner;
mod kojo;
mod lt_tcp;
mod peng;

use std::path::{Path, PathBuf};

use base::config::ConfigError;

use crate::study::probe::Probe;
use crate::study::{Files, Study};

/// A paper.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Its short name.
    pub name: &'static str,
    folder: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Its own probes.
    pub probes: &'static [&'static Probe],
}

impl Paper {
    /// The head file of its study, as it lies in the project.
    #[must_use]
    pub fn head(&self) -> PathBuf {
        Path::new(self.folder).join(HEAD)
    }

    /// Whether this is that file.
    #[must_use]
    pub fn holds(&self, file: &Path) -> bool {
        file == self.head()
    }

    /// A file of its study that lies below the working directory, as in the project, and says something else than the one in the program.
    #[must_use]
    pub fn edited(&self) -> Option<PathBuf> {
        let differs = |(name, text): &(&str, &str)| {
            let path = Path::new(self.folder).join(name);
            let own = std::fs::read_to_string(&path).ok()?;
            (own != *text).then_some(path)
        };
        self.files.iter().find_map(differs)
    }

    /// Its study, read from the files in the program.
    ///
    /// # Errors
    /// A file is wrong, which a test rules out.
    pub fn study(&self) -> Result<Study, ConfigError> {
        Study::load(Files::Embedded(self.folder, self.files), HEAD, self.probes)
    }
}

/// The paper of that short name, or of the head file of its study where that is not below the working directory: whoever has the program
/// alone has its study too.
#[must_use]
pub fn of(path: &Path) -> Option<&'static Paper> {
    let is_it = |paper: &&Paper| Path::new(paper.name) == path || paper.holds(&head_of(path));
    ALL.iter().find(is_it).filter(|_| !head_of(path).exists())
}

/// The study at `path`: its head file, its folder, or a paper's. Papers' probes are there for everybody.
///
/// # Errors
/// There is none, or it is wrong.
pub fn study_at(path: &Path) -> Result<Study, ConfigError> {
    if let Some(paper) = of(path) {
        return paper.study();
    }
    let file = head_of(path);
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    let head = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let probes: Vec<_> = ALL.iter().flat_map(|paper| paper.probes).copied().collect();
    Study::load(Files::Folder(folder), head, &probes)
}

fn head_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(HEAD) } else { path.to_owned() }
}

/// Where a study begins.
const HEAD: &str = "experiments.toml";

/// The files of a study, as names and texts.
macro_rules! files {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $folder, "/", $name)))),+]
    };
}

/// Every paper.
pub const ALL: &[Paper] = &[
    Paper {
        name: "peng",
        folder: "scenarios/peng",
        files: files!("peng": "experiments.toml", "claims.toml", "ftp.toml", "pages.toml", "delays.toml", "figure-2.toml",
                  "losses.toml"),
        probes: peng::PROBES,
    },
    Paper {
        name: "faulkner",
        folder: "scenarios/faulkner",
        files: files!("faulkner": "experiments.toml", "claims.toml", "baseline.toml", "saturated.toml", "blockage.toml",
        "analysis.toml", "bit_errors.toml", "framing.toml", "steady_state.toml",
        "recovery.toml", "short_blockages.toml", "sharing.toml",
        "source.toml", "latency.toml", "asymmetry.toml", "ordering.toml", "persistence.toml",
        "mechanism.toml", "window.toml",
        ),
        probes: faulkner::PROBES,
    },
    Paper {
        name: "kojo",
        folder: "scenarios/kojo",
        files: files!("kojo": "experiments.toml", "claims.toml", "base.toml", "table2.csv", "table3.csv", "table4.csv",
                  "beyond.toml"),
        probes: kojo::PROBES,
    },
    Paper {
        name: "casoni",
        folder: "scenarios/casoni",
        files: files!("casoni": "experiments.toml", "claims.toml", "base.toml", "beyond.toml", "tables.csv"),
        probes: casoni::PROBES,
    },
    Paper {
        name: "lt-tcp",
        folder: "scenarios/lt-tcp",
        files: files!("lt-tcp": "experiments.toml", "claims.toml", "base.toml", "beyond.toml", "tables.csv"),
        probes: lt_tcp::PROBES,
    },
    // No paper's: what gateways make of their paths.
    Paper {
        name: "rate",
        folder: "scenarios/rate",
        files: files!("rate": "experiments.toml", "claims.toml", "base.toml", "shared.toml", "many.toml"),
        probes: &[],
    },
    // No paper's: what several paths bring.
    Paper {
        name: "paths",
        folder: "scenarios/paths",
        files: files!("paths": "experiments.toml", "claims.toml", "pair.toml", "requests.toml", "stream.toml", "convoy.toml"),
        probes: &[],
    },
    // No paper's: all of them together.
    Paper {
        name: "frontier",
        folder: "scenarios/frontier",
        files: files!("frontier": "experiments.toml", "limits.toml", "claims.toml", "bulk.toml", "stream.toml",
                  "../faulkner/baseline.toml", "../faulkner/saturated.toml", "../lt-tcp/base.toml"),
        probes: &[],
    },
];

/// The paper with this short name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Paper> {
    ALL.iter().find(|paper| paper.name == name)
}
