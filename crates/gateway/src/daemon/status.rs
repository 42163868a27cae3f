//! What a gateway says about itself, and a small JSON file with it that is replaced whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use base::Instant;
use serde_json::{Map, Value, json};
use tunnel::PeerId;

use super::{Gateway, GatewayError};
use crate::config;

/// What a gateway says about itself, as JSON.
pub type Status = Value;

impl Gateway {
    /// The status as of now.
    #[must_use]
    pub fn status(&self) -> Status {
        let now = self.clock.now();
        let mut status = self.hub.status();
        let peers: Vec<Value> =
            self.peers.iter().filter_map(|(id, name)| self.peer_status(now, id, name)).collect();
        let devices = json!({
            "device": self.config.tun.name.as_str(),
            "pid": std::process::id(),
            "uptime_seconds": now.as_secs_f64(),
            "super_segments": self.tun.has_offloads(),
            "tun_unusable": self.tun.unusable,
            "carrier": named(self.carrier.counters()),
            "peers": peers,
        });
        add(&mut status, devices);
        add(&mut status["traffic"], json!(self.traffic));
        status
    }

    fn peer_status(&self, now: Instant, id: PeerId, name: &str) -> Option<Value> {
        let tunnel = self.hub.tunnel(id)?;
        let mut status = tunnel.status();
        let heard = tunnel.session().last_heard();
        let peer = json!({
            "name": name,
            "public_key": tunnel.session().peer_key(),
            "heard_seconds_ago": heard.map(|at| now.saturating_since(at).as_secs_f64()),
            "is_heard": tunnel.session().is_heard(now),
        });
        add(&mut status, peer);
        Some(status)
    }

    /// Makes the status file, if one is wanted, and the directory that it lies in.
    pub(super) fn begin_status(&self) -> Result<(), GatewayError> {
        let Some(config::Status { file, .. }) = &self.config.status else { return Ok(()) };
        let made = self.status_directory().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| replace(file, self.status_text().as_bytes()))
            .map_err(|error| GatewayError::Status { file: file.clone(), error })
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

    fn status_text(&self) -> String {
        format!("{:#}\n", self.status())
    }

    /// Writes the status file, if one is wanted. A failure is no reason to stop carrying packets.
    pub(super) fn write_status(&self) {
        if let Some(status) = &self.config.status {
            let _ = replace(&status.file, self.status_text().as_bytes());
        }
    }
}

/// Adds the members of one object to another.
fn add(to: &mut Value, from: Value) {
    if let (Value::Object(to), Value::Object(from)) = (to, from) {
        to.extend(from);
    }
}

fn named(counters: Vec<(&'static str, u64)>) -> Map<String, Value> {
    counters.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect()
}

/// Gives `file` a new content, so that a reader sees all of the old or all of the new. What is written is a new file beside it, whose
/// name ends in `.new`: no link that somebody put there is followed.
///
/// # Errors
/// What the kernel says.
pub fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
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
    new.write_all(content)?;
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

    use super::*;

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
