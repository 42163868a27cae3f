//! TCP segments (RFC 9293) with the options MSS, window scale and timestamps (RFC 7323) and SACK (RFC 2018),
//! and the ECN bits of RFC 3168.

use core::fmt;
use core::net::IpAddr;
use core::ops::BitOr;

pub mod coding;

use super::checksum::{self, Sum};
use super::ip::Protocol;
use super::{Malformed, be16, be32, put16, put32, require};
use crate::seq::SeqNum;
use coding::Coding;

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;
/// Bytes of the longest header.
pub const MAX_HEADER_LEN: usize = 60;
/// SACK blocks that fit the option space without timestamps (RFC 2018, 3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// A segment's control bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether every bit of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[must_use]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let set = names.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 == 1);
        f.write_str(&set.map(|(_, name)| *name).collect::<Vec<_>>().join("|"))
    }
}

/// A run of received sequence space beyond the cumulative acknowledgement: `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlock {
    /// First sequence number of the run.
    pub start: SeqNum,
    /// The one after its last.
    pub end: SeqNum,
}

/// Up to four SACK blocks, most recent first.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    len: u8,
}

impl SackBlocks {
    /// Adds a block; false if there is no room for a fifth.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = block;
        self.len += 1;
        true
    }

    /// Keeps at most the first `count`.
    pub fn truncate(&mut self, count: usize) {
        while usize::from(self.len) > count {
            self.len -= 1;
            self.blocks[usize::from(self.len)] = SackBlock::default();
        }
    }

    /// The blocks.
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice().iter().map(|b| b.start.0..b.end.0)).finish()
    }
}

/// The timestamps option (RFC 7323, 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The peer's clock, echoed.
    pub echo: u32,
}

/// The options that a segment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// Maximum segment size, on SYN segments.
    pub mss: Option<u16>,
    /// Window scale shift, on SYN segments.
    pub window_scale: Option<u8>,
    /// Whether SACK may be used, on SYN segments.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// On SYN segments between two proxies of ours: bytes of the longest segment that the sender takes from one.
    pub proxy_mss: Option<u16>,
    /// Of an erasure code across segments.
    pub coding: Coding,
    /// On a SYN: its connection is authenticated (RFC 2385, RFC 5925), which nobody between the ends can do for them. Never
    /// emitted.
    pub authenticated: bool,
}

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// RFC 2385 and RFC 5925.
const AUTHENTICATION: [u8; 2] = [19, 29];
/// RFC 6994: a kind for experiments, and the identifier that tells ours from others (not registered).
const EXPERIMENT: u8 = 254;
const PROXY: u16 = 0x4c48;

impl Options {
    /// Reads an option list. Like common stacks, it ignores unknown kinds and stops at the first malformed one.
    #[must_use]
    #[inline]
    pub fn parse(mut bytes: &[u8]) -> Self {
        let mut options = Self::default();
        // The layout that nearly every data segment has: NOP NOP TIMESTAMPS and nothing more.
        if bytes.len() == 12 && bytes[..4] == [NOP, NOP, TIMESTAMPS, 10] {
            options.timestamps = Some(Timestamps { value: be32(bytes, 4), echo: be32(bytes, 8) });
            return options;
        }
        while let Some((&kind, rest)) = bytes.split_first() {
            match kind {
                END => break,
                NOP => {
                    bytes = rest;
                    continue;
                }
                _ => {}
            }
            let Some(&len) = rest.first() else { break };
            let len = usize::from(len);
            if len < 2 || len > bytes.len() {
                break;
            }
            options.read(kind, &bytes[2..len]);
            bytes = &bytes[len..];
        }
        options
    }

    fn read(&mut self, kind: u8, body: &[u8]) {
        match (kind, body.len()) {
            (MSS, 2) => self.mss = Some(be16(body, 0)),
            (WINDOW_SCALE, 1) => self.window_scale = Some(body[0]),
            (SACK_PERMITTED, 0) => self.sack_permitted = true,
            (TIMESTAMPS, 8) => {
                self.timestamps = Some(Timestamps { value: be32(body, 0), echo: be32(body, 4) });
            }
            (SACK, len) if len % 8 == 0 => {
                for block in body.chunks_exact(8) {
                    self.sack.push(SackBlock { start: SeqNum(be32(block, 0)), end: SeqNum(be32(block, 4)) });
                }
            }
            (EXPERIMENT, 4) if be16(body, 0) == PROXY => self.proxy_mss = Some(be16(body, 2)),
            (EXPERIMENT, _) => self.coding.read(body),
            (kind, _) if AUTHENTICATION.contains(&kind) => self.authenticated = true,
            _ => {}
        }
    }

    /// Bytes of the emitted list, padding included; at most 40 where SACK blocks were truncated to fit.
    #[must_use]
    pub fn len(&self) -> usize {
        let mut len = 0;
        len += if self.mss.is_some() { 4 } else { 0 };
        len += if self.window_scale.is_some() { 4 } else { 0 };
        len += match (self.sack_permitted, self.timestamps.is_some()) {
            (_, true) => 12,
            (true, false) => 4,
            (false, false) => 0,
        };
        len += if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.as_slice().len() };
        len += if self.proxy_mss.is_some() { 8 } else { 0 };
        len + self.coding.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the list, 32-bit aligned by NOPs as common stacks lay it out, to `buffer` of exactly [`Options::len`] bytes.
    fn emit(&self, buffer: &mut [u8]) {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            buffer[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            put(&[MSS, 4, high, low]);
        }
        match (self.sack_permitted, self.timestamps) {
            (true, Some(_)) => put(&[SACK_PERMITTED, 2]),
            (true, None) => put(&[NOP, NOP, SACK_PERMITTED, 2]),
            (false, Some(_)) => put(&[NOP, NOP]),
            (false, None) => {}
        }
        if let Some(timestamps) = self.timestamps {
            put(&[TIMESTAMPS, 10]);
            put(&timestamps.value.to_be_bytes());
            put(&timestamps.echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            put(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        if let Some(mss) = self.proxy_mss {
            put(&[NOP, NOP, EXPERIMENT, 6]);
            put(&PROXY.to_be_bytes());
            put(&mss.to_be_bytes());
        }
        self.coding.emit(&mut put);
        if !self.sack.is_empty() {
            put(&[NOP, NOP, SACK, 2 + 8 * self.sack.len]);
            for block in self.sack.as_slice() {
                put(&block.start.0.to_be_bytes());
                put(&block.end.0.to_be_bytes());
            }
        }
    }
}

/// Replaces what a proxy says of itself in the options of `segment`, the payload of an IP packet, by NOPs. Any checksum stays as
/// right as it was; bytes that are no TCP segment stay as they are.
pub fn hide_proxy(segment: &mut [u8]) {
    let Ok(view) = View::parse(segment) else { return };
    let mut at = HEADER_LEN;
    let end = view.header_len();
    while at + 1 < end {
        let (kind, len) = (segment[at], usize::from(segment[at + 1]));
        match kind {
            END => return,
            NOP => at += 1,
            _ if len < 2 || at + len > end => return,
            EXPERIMENT if len >= 4 && be16(segment, at + 2) == PROXY => {
                (at..at + len).for_each(|at| replace(segment, at, NOP));
                at += len;
            }
            _ => at += len,
        }
    }
}

/// Changes a byte of a header, and the checksum with it.
fn replace(segment: &mut [u8], at: usize, byte: u8) {
    let word = at & !1;
    let old = be16(segment, word);
    segment[at] = byte;
    let sum = checksum::update(be16(segment, CHECKSUM), old, be16(segment, word));
    put16(segment, CHECKSUM, sum);
}

/// Where a header has its checksum.
const CHECKSUM: usize = 16;

/// A checked TCP segment: the header fits the bytes. The checksum is not verified here.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Checks `bytes`, the payload of an IP packet.
    ///
    /// # Errors
    /// Fewer bytes than the header, or a data offset below 20 bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        require(bytes, HEADER_LEN)?;
        let header_len = usize::from(bytes[12] >> 4) * 4;
        if header_len < HEADER_LEN {
            return Err(Malformed::Length(header_len));
        }
        require(bytes, header_len)?;
        Ok(Self(bytes))
    }

    /// Source port.
    #[must_use]
    #[inline]
    pub fn src_port(&self) -> u16 {
        be16(self.0, 0)
    }

    /// Destination port.
    #[must_use]
    #[inline]
    pub fn dst_port(&self) -> u16 {
        be16(self.0, 2)
    }

    /// Sequence number.
    #[must_use]
    #[inline]
    pub fn seq(&self) -> SeqNum {
        SeqNum(be32(self.0, 4))
    }

    /// Control bits.
    #[must_use]
    #[inline]
    pub fn flags(&self) -> Flags {
        Flags(self.0[13])
    }

    /// Options.
    #[must_use]
    pub fn options(&self) -> Options {
        Options::parse(&self.0[HEADER_LEN..self.header_len()])
    }

    /// Bytes of the header, options included.
    #[must_use]
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.0[12] >> 4) * 4
    }

    /// Whether the checksum holds between these addresses.
    #[must_use]
    #[inline]
    pub fn checksum_ok(&self, src: IpAddr, dst: IpAddr) -> bool {
        Sum::pseudo_header(src, dst, Protocol::TCP.0, self.0.len()).and(Sum::of(self.0)).is_valid()
    }

    /// The segment's data.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.0[self.header_len()..]
    }
}

/// A TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first data byte (or of SYN).
    pub seq: SeqNum,
    /// Acknowledgement number; significant if [`Flags::ACK`] is set.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// The window field as sent, unscaled.
    pub window: u16,
    /// The urgent pointer; significant if [`Flags::URG`] is set.
    pub urgent: u16,
    /// Options.
    pub options: Options,
}

impl Repr {
    /// Reads a header.
    ///
    /// # Errors
    /// A checksum that does not match.
    pub fn parse(view: &View<'_>, src: IpAddr, dst: IpAddr) -> Result<Self, Malformed> {
        if !view.checksum_ok(src, dst) {
            return Err(Malformed::Checksum);
        }
        Ok(Self::parse_verified(view))
    }

    /// Reads a header whose checksum holds.
    #[must_use]
    #[inline]
    pub fn parse_verified(view: &View<'_>) -> Self {
        let bytes = view.0;
        Self {
            src_port: view.src_port(),
            dst_port: view.dst_port(),
            seq: view.seq(),
            ack: SeqNum(be32(bytes, 8)),
            flags: view.flags(),
            window: be16(bytes, 14),
            urgent: be16(bytes, 18),
            options: view.options(),
        }
    }

    /// Bytes of the header, options included.
    #[must_use]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.options.len()
    }

    /// Writes the header to the start of `segment`, whose rest is the payload, checksum included.
    pub fn emit(&self, segment: &mut [u8], src: IpAddr, dst: IpAddr) {
        self.emit_header(segment);
        let checksum =
            Sum::pseudo_header(src, dst, Protocol::TCP.0, segment.len()).and(Sum::of(segment)).finish();
        put16(segment, 16, checksum);
    }

    /// Writes the header to the start of `segment`, whose rest is the payload. The checksum is that of the
    /// pseudo-header alone, not complemented, for a device to complete.
    pub fn emit_partially(&self, segment: &mut [u8], src: IpAddr, dst: IpAddr) {
        self.emit_header(segment);
        put16(segment, 16, !Sum::pseudo_header(src, dst, Protocol::TCP.0, segment.len()).finish());
    }

    fn emit_header(&self, segment: &mut [u8]) {
        let header_len = self.header_len();
        debug_assert!(header_len <= MAX_HEADER_LEN, "options overflow: {:?}", self.options);
        put16(segment, 0, self.src_port);
        put16(segment, 2, self.dst_port);
        put32(segment, 4, self.seq.0);
        put32(segment, 8, self.ack.0);
        segment[12] = (header_len as u8 / 4) << 4;
        segment[13] = self.flags.0;
        put16(segment, 14, self.window);
        put16(segment, 16, 0);
        put16(segment, 18, self.urgent);
        self.options.emit(&mut segment[HEADER_LEN..header_len]);
    }
}
