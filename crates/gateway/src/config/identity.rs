//! Who this gateway is: the `[identity]` table.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use base::config::ConfigError;
use schemars::JsonSchema;
use serde::Deserialize;
use tunnel::key::{NotAKey, PrivateKey};
use zeroize::Zeroizing;

/// This gateway's private key: either `private-key-file` or `private-key`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct Identity {
    /// File that holds the private key; a relative path starts at the configuration's directory.
    #[serde(default)]
    #[schemars(extend("examples" = ["site.key"]))]
    private_key_file: Option<PathBuf>,
    /// The private key itself, as `longhaul keygen` prints it.
    #[serde(default)]
    private_key: Option<PrivateKey>,
}

impl Identity {
    /// The file that holds the key, `config` being that of the configuration, if others than its owner and group have
    /// any rights to it.
    #[must_use]
    pub fn exposed<'a>(&'a self, config: &'a Path) -> Option<&'a Path> {
        Some(self.private_key_file.as_deref().unwrap_or(config)).filter(|file| is_exposed(file))
    }

    /// The key itself.
    ///
    /// # Errors
    /// Its file cannot be read or holds no key.
    pub fn load(&self) -> Result<PrivateKey, ConfigError> {
        match (&self.private_key, &self.private_key_file) {
            (Some(key), _) => Ok(key.clone()),
            (None, file) => read_key(file.as_deref().unwrap_or(Path::new(""))),
        }
    }

    /// A relative key file lies beside `file`, which names it.
    pub(super) fn beside(&mut self, file: &Path) {
        lie_beside(&mut self.private_key_file, file);
    }

    /// Why it is not exactly one key, if it is not.
    pub(super) const fn complaint(&self) -> Option<&'static str> {
        match (&self.private_key_file, &self.private_key) {
            (Some(_), Some(_)) => {
                Some("[identity] has both private-key-file and private-key; allowed is only one of them")
            }
            (None, None) => Some(
                "[identity] has no key; allowed are private-key-file = \"FILE\" or private-key = \"…\", \
                 as `longhaul keygen` prints",
            ),
            _ => None,
        }
    }
}

/// The key in a file.
pub(super) fn read_key<K: core::str::FromStr<Err = NotAKey>>(path: &Path) -> Result<K, ConfigError> {
    let about = |error: &dyn std::fmt::Display| ConfigError::about(&path.display().to_string(), error);
    let text = Zeroizing::new(std::fs::read_to_string(path).map_err(|error| about(&error))?);
    text.parse().map_err(|error| about(&error))
}

/// Whether others than a file's owner and group have any rights to it.
pub(super) fn is_exposed(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.mode() & 0o007 != 0)
}

/// Has a relative path start at the directory of `file`, which names it.
pub(super) fn lie_beside(path: &mut Option<PathBuf>, file: &Path) {
    if let (Some(path), Some(parent)) = (path, file.parent()) {
        *path = parent.join(&*path);
    }
}
