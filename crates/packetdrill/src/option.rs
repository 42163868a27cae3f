//! TCP options in the order in which a segment has them, which the notation keeps.

use core::fmt;

/// One option of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// `mss 1000`.
    Mss(u16),
    /// `wscale 7`.
    WindowScale(u8),
    /// `sackOK`.
    SackPermitted,
    /// `sack 1:1001 2001:3001`.
    Sack(Vec<(u32, u32)>),
    /// `TS val 100 ecr 0`.
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The peer's, echoed.
        echo: u32,
    },
    /// `nop`.
    Nop,
    /// `eol`.
    End,
    /// A kind that the notation has no name for, and its bytes; never in a script.
    Other(u8, Vec<u8>),
}

impl TcpOption {
    /// Reads an option list, as far as it makes sense.
    pub(crate) fn parse(mut bytes: &[u8]) -> Vec<Self> {
        let mut options = Vec::new();
        while let Some((&kind, rest)) = bytes.split_first() {
            if kind < 2 {
                options.push(if kind == 0 { Self::End } else { Self::Nop });
                bytes = rest;
                continue;
            }
            let len = rest.first().map_or(0, |&len| usize::from(len));
            let Some(body) = bytes.get(2..len) else {
                options.push(Self::Other(kind, rest.to_vec()));
                break;
            };
            options.push(Self::read(kind, body));
            bytes = &bytes[len..];
        }
        options
    }

    fn read(kind: u8, body: &[u8]) -> Self {
        let word = |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        match (kind, body.len()) {
            (2, 2) => Self::Mss(u16::from_be_bytes([body[0], body[1]])),
            (3, 1) => Self::WindowScale(body[0]),
            (4, 0) => Self::SackPermitted,
            (5, len) if len % 8 == 0 => {
                Self::Sack((0..len / 8).map(|i| (word(8 * i), word(8 * i + 4))).collect())
            }
            (8, 8) => Self::Timestamps { value: word(0), echo: word(4) },
            _ => Self::Other(kind, body.to_vec()),
        }
    }

    /// Its bytes on the wire.
    pub(crate) fn emit(&self, to: &mut Vec<u8>) {
        match self {
            Self::End => to.push(0),
            Self::Nop => to.push(1),
            Self::Mss(mss) => {
                to.extend([2, 4]);
                to.extend(mss.to_be_bytes());
            }
            Self::WindowScale(shift) => to.extend([3, 3, *shift]),
            Self::SackPermitted => to.extend([4, 2]),
            Self::Sack(blocks) => {
                to.extend([5, 2 + 8 * blocks.len() as u8]);
                blocks.iter().for_each(|(start, end)| {
                    to.extend(start.to_be_bytes());
                    to.extend(end.to_be_bytes());
                });
            }
            Self::Timestamps { value, echo } => {
                to.extend([8, 10]);
                to.extend(value.to_be_bytes());
                to.extend(echo.to_be_bytes());
            }
            Self::Other(kind, body) => {
                to.extend([*kind, 2 + body.len() as u8]);
                to.extend(body);
            }
        }
    }
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mss(mss) => write!(f, "mss {mss}"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::SackPermitted => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(start, end)| write!(f, " {start}:{end}"))
            }
            Self::Timestamps { value, echo } => write!(f, "TS val {value} ecr {echo}"),
            Self::Nop => f.write_str("nop"),
            Self::End => f.write_str("eol"),
            Self::Other(kind, body) => write!(f, "kind {kind} of {} bytes", body.len()),
        }
    }
}
