//! What a gateway says about itself, and a small JSON file with it that is replaced whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::telling::Text;
use super::{Gateway, GatewayError};
use crate::config;

/// What a gateway says about itself, as JSON.
pub type Status = Value;

impl Gateway {
    /// Makes the status file, if one is wanted, and the directory that it lies in.
    pub(super) fn begin_status(&mut self) -> Result<(), GatewayError> {
        let Some(file) = self.status_file() else { return Ok(()) };
        let made = self.status_directory().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| replace_with(&file, &self.status_text()))
            .map_err(|error| GatewayError::Status { file, error })
    }

    /// Where the status file lies: the only directory that the daemon may write in once it runs.
    pub(super) fn status_directory(&self) -> Option<&Path> {
        self.config.status.as_ref().map(config::Status::directory)
    }

    /// A gateway that has ended has no status. One that was killed leaves its last.
    pub(super) fn remove_status(&self) {
        if let Some(status) = &self.config.status {
            let _ = fs::remove_file(&status.file);
        }
    }

    fn status_file(&self) -> Option<PathBuf> {
        self.config.status.as_ref().map(|status| status.file.clone())
    }

    /// Writes the status file, if one is wanted. A failure is no reason to stop carrying packets.
    pub(super) fn write_status(&self, text: &Text) {
        if let Some(file) = self.status_file() {
            let _ = replace_with(&file, text);
        }
    }
}

/// Adds the members of one object to another.
pub(super) fn add(to: &mut Value, from: Value) {
    if let (Value::Object(to), Value::Object(from)) = (to, from) {
        to.extend(from);
    }
}

/// Adds the numbers of one object to those of another that have the same names, in all that it holds.
pub(super) fn sum(to: &mut Value, from: Value) {
    match (to, from) {
        (Value::Object(to), Value::Object(from)) => {
            for (name, value) in from {
                match to.get_mut(&name) {
                    Some(known) => sum(known, value),
                    None => _ = to.insert(name, value),
                }
            }
        }
        (to, from) => {
            if let (Some(one), Some(other)) = (to.as_u64(), from.as_u64()) {
                *to = (one + other).into();
            }
        }
    }
}

pub(super) fn named(counters: Vec<(&'static str, u64)>) -> Map<String, Value> {
    counters.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect()
}

/// Gives `file` a new content, so that a reader sees all of the old or all of the new. What is written is a new file beside it, whose
/// name ends in `.new`: no link that somebody put there is followed.
///
/// # Errors
/// What the kernel says.
pub fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(file, &[content])
}

/// Gives `file` a new content, the pieces one after the other, so that a reader sees all of the old or all of the
/// new.
fn replace_with(file: &Path, content: &[impl AsRef<[u8]>]) -> io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let create = || File::create_new(&name);
    let mut new = create().or_else(|error| {
        if error.kind() != io::ErrorKind::AlreadyExists {
            return Err(error);
        }
        // That of a daemon that was killed, or a link.
        fs::remove_file(&name)?;
        create()
    })?;
    content.iter().try_for_each(|piece| new.write_all(piece.as_ref()))?;
    fs::rename(&name, file)
}

/// Reads a status file.
///
/// # Errors
/// There is none yet, or it is no JSON.
pub fn read_status(file: &Path) -> io::Result<Status> {
    serde_json::from_slice(&fs::read(file)?).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    #[test]
    fn workers_accounts_are_added_up() {
        let mut one = json!({ "public_key": "k", "memory_bytes": 5, "refused": { "a": 1 }, "traffic": { "x": 1, "y": 2 } });
        sum(
            &mut one,
            json!({ "public_key": "k", "memory_bytes": 6, "refused": { "b": 3 }, "traffic": { "x": 10, "y": 20 } }),
        );
        let both = json!({ "public_key": "k", "memory_bytes": 11, "refused": { "a": 1, "b": 3 }, "traffic": { "x": 11, "y": 22 } });
        assert_eq!(one, both);
    }

    /// Who may make files in the directory could have root write to any other file by a link.
    #[test]
    fn no_link_is_followed() {
        let root = std::env::temp_dir().join(format!("longhaul-status-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        let [file, new, other] = ["status", "status.new", "other"].map(|name| root.join(name));
        fs::write(&other, "before").unwrap();
        symlink(&other, &new).unwrap();
        let first = replace(&file, b"first").map(|()| fs::read(&file).unwrap());
        fs::hard_link(&other, &new).unwrap();
        let second = replace(&file, b"second").map(|()| fs::read(&file).unwrap());
        symlink(&other, &new).unwrap();
        fs::remove_file(&file).unwrap();
        symlink(&other, &file).unwrap();
        let third = replace(&file, b"third").map(|()| fs::read(&file).unwrap());
        let (untouched, link) =
            (fs::read(&other).unwrap(), fs::symlink_metadata(&file).unwrap().is_symlink());
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((first.unwrap(), second.unwrap()), (b"first".to_vec(), b"second".to_vec()));
        assert_eq!((third.unwrap(), untouched, link), (b"third".to_vec(), b"before".to_vec(), false));
    }
}
