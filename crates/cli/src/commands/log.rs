//! The daemon's log: a line for each notice, with what whoever reads it needs. A journal has times of its own, and takes the importance
//! from the line; anybody else gets the time; programs get JSON.

use std::os::unix::fs::MetadataExt as _;
use std::{env, fs};

use gateway::clock;
use gateway::daemon::Notice;

use super::outcome::{say, show_error};

/// How notices are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// For people: complaints to standard error, the rest to standard output.
    Text,
    /// For the journal (`sd-daemon(3)`).
    Journal,
    /// An object each, to standard output.
    Json,
}

impl Log {
    /// For whoever reads standard error, or for programs.
    pub(crate) fn new(json: bool) -> Self {
        match json {
            true => Self::Json,
            false if is_journal() => Self::Journal,
            false => Self::Text,
        }
    }

    /// Writes a notice.
    pub(crate) fn write(self, notice: &Notice) {
        let line = self.line(notice, &clock::time_of_day());
        if self != Self::Json && notice.is_complaint() {
            show_error(format_args!("{line}\n"));
        } else {
            say!("{line}");
        }
    }

    fn line(self, notice: &Notice, time: &str) -> String {
        let is_complaint = notice.is_complaint();
        match self {
            Self::Text if is_complaint => format!("{time} warning: {notice}"),
            Self::Text => format!("{time} {notice}"),
            // `SD_WARNING` and `SD_INFO`.
            Self::Journal => format!("<{}>{notice}", if is_complaint { 4 } else { 6 }),
            Self::Json => {
                let mut json = notice.to_json();
                json["time"] = time.into();
                json["level"] = if is_complaint { "warning" } else { "info" }.into();
                json["message"] = notice.to_string().into();
                json.to_string()
            }
        }
    }
}

/// Whether standard error is the journal's: systemd names its device and inode.
fn is_journal() -> bool {
    let Ok(named) = env::var("JOURNAL_STREAM") else { return false };
    let stream = fs::metadata("/proc/self/fd/2");
    stream.is_ok_and(|stream| format!("{}:{}", stream.dev(), stream.ino()) == named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_its_reader_lacks() {
        let (good, bad) = (Notice::DeviceRestored("sat0".to_owned()), Notice::NotAsked("sat0".to_owned()));
        let lines = |log: Log| [&good, &bad].map(|notice| log.line(notice, "2026-11-27T15:00:00Z"));
        let [info, warning] = lines(Log::Text);
        assert_eq!(info, "2026-11-27T15:00:00Z sat0 was removed, and has been created again");
        assert!(
            warning.starts_with("2026-11-27T15:00:00Z warning: `longhaul gateway status` cannot"),
            "{warning}"
        );
        let [info, warning] = lines(Log::Journal);
        assert!(
            info.starts_with("<6>sat0 was removed") && warning.starts_with("<4>`longhaul"),
            "{info} {warning}"
        );
        for (line, level) in lines(Log::Json).iter().zip(["info", "warning"]) {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!((&json["time"], &json["level"]), (&"2026-11-27T15:00:00Z".into(), &level.into()));
            assert!(json["notice"].is_string() && json["message"].is_string(), "{line}");
        }
    }
}
