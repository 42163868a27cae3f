//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng), in little-endian order on any machine.

use base::Instant;
use channel::Fate;

/// What an enhanced packet block says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    /// The interface that it belongs to, by its number.
    pub(super) interface: u32,
    pub(super) is_inbound: bool,
    pub(super) fate: Fate,
    /// In front of the bytes.
    pub(super) header: &'a [u8],
    pub(super) bytes: &'a [u8],
}

/// The block that a file starts with.
pub(super) fn section() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&BYTE_ORDER.to_le_bytes());
    body.extend_from_slice(&1_u16.to_le_bytes());
    body.extend_from_slice(&0_u16.to_le_bytes());
    // The section's length: not given.
    body.extend_from_slice(&u64::MAX.to_le_bytes());
    option(APPLICATION, b"longhaul", &mut body);
    option(END, &[], &mut body);
    block(SECTION, &body)
}

/// The description of an interface, whose times are nanoseconds.
pub(super) fn interface(link_type: u16, name: &str) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&link_type.to_le_bytes());
    body.extend_from_slice(&0_u16.to_le_bytes());
    // No limit to a packet's length.
    body.extend_from_slice(&0_u32.to_le_bytes());
    option(NAME, name.as_bytes(), &mut body);
    option(TIME_RESOLUTION, &[9], &mut body);
    option(END, &[], &mut body);
    block(INTERFACE, &body)
}

impl Packet<'_> {
    /// The block.
    pub(super) fn block(&self, at: Instant) -> Vec<u8> {
        let len = (self.header.len() + self.bytes.len()) as u32;
        let at = at.as_nanos();
        let mut body = Vec::with_capacity(len as usize + 64);
        for field in [self.interface, (at >> 32) as u32, at as u32, len, len] {
            body.extend_from_slice(&field.to_le_bytes());
        }
        body.extend_from_slice(self.header);
        body.extend_from_slice(self.bytes);
        pad(&mut body);
        let (comment, error) = match self.fate {
            Fate::Intact => (None, 0),
            Fate::Damaged(_) => (Some("damaged"), CHECK_ERROR),
            Fate::Lost => (Some("lost"), 0),
        };
        let direction = if self.is_inbound { INBOUND } else { OUTBOUND };
        option(FLAGS, &(direction | error).to_le_bytes(), &mut body);
        if let Some(comment) = comment {
            option(COMMENT, comment.as_bytes(), &mut body);
        }
        option(END, &[], &mut body);
        block(PACKET, &body)
    }
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes(), &len[..], body, &len].concat()
}

fn option(code: u16, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out);
}

/// Fills up to a multiple of 32 bits.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Block types.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Tells readers the byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Option codes: of all blocks, of the section, of an interface and of a packet.
const END: u16 = 0;
const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;
/// Of a packet's flags: direction, as the node or the link's first end sees it, and a failed checksum.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
const CHECK_ERROR: u32 = 1 << 24;
