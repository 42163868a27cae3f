//! What a gateway says about itself, and a small JSON file with it that is replaced whole.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Gateway, GatewayError};
use crate::config;

/// What a gateway says about itself, as JSON.
pub type Status = Value;

impl Gateway {
    /// The status as of now.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut status = self.tunnel.status();
        let devices = json!({
            "device": self.config.tun.name.as_str(),
            "pid": std::process::id(),
            "uptime_seconds": self.clock.now().as_secs_f64(),
            "super_segments": self.tun.has_offloads(),
            "tun_unusable": self.tun.unusable,
            "carrier": named(self.carrier.counters()),
        });
        add(&mut status, devices);
        add(&mut status["traffic"], json!(self.traffic));
        status
    }

    /// Makes the status file, if one is wanted, and the directory that it lies in.
    pub(super) fn begin_status(&self) -> Result<(), GatewayError> {
        let Some(config::Status { file, .. }) = &self.config.status else { return Ok(()) };
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let made = directory.map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| replace(file, self.status_text().as_bytes()))
            .map_err(|error| GatewayError::Status { file: file.clone(), error })
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

/// Gives `file` a new content, so that a reader sees all of the old or all of the new.
///
/// # Errors
/// What the kernel says.
pub fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, content)?;
    fs::rename(&new, file)
}

/// Reads a status file.
///
/// # Errors
/// There is none yet, or it is no JSON.
pub fn read_status(file: &Path) -> io::Result<Status> {
    serde_json::from_slice(&fs::read(file)?).map_err(io::Error::from)
}
