//! What stands in front of each frame of a capture: what a dissector cannot know from the frame's own bytes.
//!
//! ```text
//! | byte | field                                                                    |
//! |------|--------------------------------------------------------------------------|
//! | 0    | version: 1                                                               |
//! | 1    | length of this header: 28                                                |
//! | 2    | protocol: 1 plain, 2 COTMLL, 3 wide COTMLL, 4 SLACP, 5 coded ARQ, 6 HARQ |
//! | 3    | options: 2 EFL, 4 encrypted EFL, 8 a preamble of EFL first               |
//! | 4    | direction: 0 down, 1 up                                                  |
//! | 5    | fate: 0 intact, 1 damaged, 2 lost                                        |
//! | 6    | kind: 0 new, 1 retransmission, 2 filler, 3 repair, 4 control             |
//! | 7    | HARQ: fragments with data in a block; 0 otherwise                        |
//! | 8    | bits on the line (4)                                                     |
//! | 12   | number of the frame in its direction, from 1 (8)                         |
//! | 20   | nanoseconds from its first bit's leaving to its last bit's arrival (8)   |
//! ```
//!
//! Numbers are big-endian.

use channel::Fate;
use link::Protocol;

use super::Sighting;
use crate::observe::events::LinkDirection;
use crate::scenario::{Framing, Link};

/// Bytes of a pseudo-header.
pub(super) const LEN: usize = 28;

/// What all frames of a link have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    protocol: u8,
    options: u8,
    data_fragments: u8,
}

impl Format {
    /// The format of a link's frames; `None` for a wire, which has packets.
    #[must_use]
    pub fn of(link: &Link) -> Option<Self> {
        let (protocol, data_fragments) = match link.protocol.as_ref()? {
            Protocol::Plain(_) => (1, 0),
            Protocol::CotmllThesis(_) => (2, 0),
            Protocol::Cotmll(_) => (3, 0),
            Protocol::Slacp(_) => (4, 0),
            Protocol::Coded(_) => (5, 0),
            Protocol::Harq(config) => (6, config.data.get() as u8),
        };
        let options = match link.framing {
            Framing::Ideal => 0,
            Framing::Efl => EFL,
            Framing::EncryptedEfl => EFL | ENCRYPTED,
        };
        Some(Self { protocol, options, data_fragments })
    }

    /// The pseudo-header of one frame.
    pub(super) fn header(self, direction: LinkDirection, sighting: &Sighting<'_>) -> [u8; LEN] {
        let fate = match sighting.fate {
            Fate::Intact => 0,
            Fate::Damaged(_) => 1,
            Fate::Lost => 2,
        };
        let is_up = u8::from(direction == LinkDirection::Up);
        let options = self.options | if sighting.has_preamble { PREAMBLE } else { 0 };
        let kind = sighting.kind as u8;
        let under_way = sighting.arrives_at.saturating_since(sighting.on_air.start).as_nanos();
        let mut header = [0; LEN];
        header[..8].copy_from_slice(&[
            VERSION,
            LEN as u8,
            self.protocol,
            options,
            is_up,
            fate,
            kind,
            self.data_fragments,
        ]);
        header[8..12].copy_from_slice(&sighting.bits.to_be_bytes());
        header[12..20].copy_from_slice(&sighting.number.to_be_bytes());
        header[20..].copy_from_slice(&under_way.to_be_bytes());
        header
    }
}

const VERSION: u8 = 1;
const EFL: u8 = 2;
const ENCRYPTED: u8 = 4;
const PREAMBLE: u8 = 8;
