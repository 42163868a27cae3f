//! A whole script: its options and its events.

use core::fmt;

use base::Duration;

use crate::event::Event;
use crate::lexer::Position;
use crate::parser;

/// A script that was read.
#[derive(Clone, Debug)]
pub struct Script {
    /// What its option lines say.
    pub options: Options,
    /// Its events, in order.
    pub events: Vec<Event>,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// What is not in the language, with its place and what would be allowed there.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parser::parse(text)
    }
}

/// What a script's option lines say.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--tolerance_usecs`: how far times may be from the script's. 4 ms in packetdrill.
    pub tolerance: Duration,
    /// `--ip_version=ipv6`; IPv4 by default.
    pub ipv6: bool,
    /// `--mtu`: bytes of the longest IP packet.
    pub mtu: u16,
    /// `--kernel`: the script holds for the kernel's TCP too.
    pub kernel: bool,
    /// `--offload`: the host's device takes several segments in one piece.
    pub offload: bool,
    /// `--preset` and `--set`, for our TCP: keys and values of a `[tcp]` table in TOML's form.
    pub settings: Vec<Setting>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: Duration::from_micros(4_000),
            ipv6: false,
            mtu: 1500,
            kernel: false,
            offload: false,
            settings: Vec::new(),
        }
    }
}

/// A line of a `[tcp]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `key = value`.
    pub line: String,
    /// Where the script has it.
    pub at: Position,
}

/// Something that is not in the language.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SyntaxError {
    /// Where.
    pub at: Position,
    /// What it is, and what would be allowed.
    pub message: String,
}

impl SyntaxError {
    pub(crate) fn new(at: Position, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}
