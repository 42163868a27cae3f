//! Segments as whole IP packets.

use core::net::IpAddr;

use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{self, Flags, MAX_SACK_BLOCKS, Options, SackBlocks, Timestamps};
use base::{Instant, Packet, SeqNum};

use super::sender::transmit::Segment;
use super::{Connection, State};

/// A reset that is to be sent, with its sequence number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reset {
    /// This end breaks the connection off.
    Own(SeqNum),
    /// It answers a segment that had this acknowledgement number (RFC 9293, 3.10.7.1).
    Answer(SeqNum),
}

impl Connection {
    /// Writes a segment with an acknowledgement to `out`.
    pub(super) fn emit(&mut self, now: Instant, out: &mut Packet, segment: Segment) {
        let shift = self.receiver.window_shift;
        let coding = self.coding_beside(segment.place);
        let sack = if self.sender.negotiated.sack && !self.receiver.hides_gaps() {
            self.sack_blocks_beside(segment.len, coding.len())
        } else {
            SackBlocks::default()
        };
        self.receiver.note_ack_sent(now, segment.len);
        let window = self.receiver.window_field(shift);
        let repr = tcp::Repr {
            src_port: self.local.port,
            dst_port: self.remote.port,
            seq: self.sender.space.number(segment.start),
            ack: self.receiver.space.number(self.receiver.acknowledged()),
            flags: segment.flags | Flags::ACK | self.echo.flag(),
            window,
            urgent: 0,
            options: Options { timestamps: self.timestamps(now), sack, coding, ..Options::default() },
        };
        let at = segment.start.saturating_sub(self.sender.una) as usize;
        let (buffer, len) = (&self.sender.buffer, segment.len as usize);
        let ends = (self.local.ip, self.remote.ip);
        let header = start_packet(out, &repr, ends, (self.proxied.dscp, segment.ecn), len);
        if len > 0 {
            buffer.copy_to(at, len, out);
        }
        if segment.segments > 1 {
            repr.emit_partially(&mut out[header..], ends.0, ends.1);
        } else {
            repr.emit(&mut out[header..], ends.0, ends.1);
        }
        self.statistics.segments_sent += u64::from(segment.segments);
    }

    /// SACK blocks that fit beside `len` bytes of data and `coding` bytes of the code's options: a full segment has room for none.
    fn sack_blocks_beside(&mut self, len: u32, coding: usize) -> SackBlocks {
        if self.receiver.has_no_blocks() {
            return SackBlocks::default();
        }
        let fixed = coding + if self.sender.negotiated.timestamps { TIMESTAMPS_LEN } else { 0 };
        let room = (tcp::MAX_HEADER_LEN - tcp::HEADER_LEN - fixed)
            .min((self.sender.mss - len.min(self.sender.mss)) as usize);
        // Beside no data, only the option space limits.
        let room = if len == 0 { tcp::MAX_HEADER_LEN - tcp::HEADER_LEN - fixed } else { room };
        self.receiver.sack_blocks((room.saturating_sub(4) / 8).min(MAX_SACK_BLOCKS))
    }

    /// Writes a SYN or SYN-ACK to `out`, with the first `len` bytes of data.
    pub(super) fn emit_syn(&mut self, now: Instant, out: &mut Packet, mut options: Options, len: usize) {
        // Either may be sent again when the connection is established.
        let answers = self.state != State::SynSent;
        // RFC 7323 (2.2): the window of a SYN is not scaled. A peer that is no proxy takes one that is for a smaller one.
        let shift = if options.proxy_mss.is_some() { self.receiver.window_shift } else { 0 };
        let window = self.receiver.window_field(shift);
        if self.sender.negotiated.timestamps {
            let echo = if answers { self.receiver.ts_recent } else { 0 };
            options.timestamps = Some(Timestamps { value: self.sender.timestamp(now), echo });
        }
        let flags = if answers { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let repr = tcp::Repr {
            src_port: self.local.port,
            dst_port: self.remote.port,
            seq: self.sender.space.number(crate::sequence::ORIGIN),
            ack: if answers { self.receiver.space.number(self.receiver.acknowledged()) } else { SeqNum(0) },
            flags: flags | self.syn_ecn_flags(),
            window,
            urgent: 0,
            options,
        };
        let buffer = &self.sender.buffer;
        write_packet(
            out,
            &repr,
            (self.local.ip, self.remote.ip),
            (self.proxied.dscp, Ecn::NotEct),
            len,
            |out| {
                if len > 0 {
                    buffer.copy_to(0, len, out);
                }
            },
        );
        self.statistics.segments_sent += 1;
    }

    /// Writes a reset to `out`.
    pub(super) fn emit_reset(&mut self, now: Instant, out: &mut Packet, reset: Reset) {
        let (Reset::Own(seq) | Reset::Answer(seq)) = reset;
        let knows_peer = self.state != State::SynSent && self.receiver.nxt() > crate::sequence::ORIGIN;
        let acknowledges = knows_peer && matches!(reset, Reset::Own(_));
        let repr = tcp::Repr {
            src_port: self.local.port,
            dst_port: self.remote.port,
            seq,
            ack: if acknowledges { self.receiver.space.number(self.receiver.nxt()) } else { SeqNum(0) },
            flags: if acknowledges { Flags::RST | Flags::ACK } else { Flags::RST },
            window: 0,
            urgent: 0,
            // RFC 7323 (3.2); an answer has none, as in Linux.
            options: Options {
                timestamps: self.timestamps(now).filter(|_| acknowledges),
                ..Options::default()
            },
        };
        write_packet(
            out,
            &repr,
            (self.local.ip, self.remote.ip),
            (self.proxied.dscp, Ecn::NotEct),
            0,
            |_| {},
        );
        self.statistics.segments_sent += 1;
    }

    pub(super) fn timestamps(&self, now: Instant) -> Option<Timestamps> {
        self.sender
            .negotiated
            .timestamps
            .then(|| Timestamps { value: self.sender.timestamp(now), echo: self.receiver.ts_recent })
    }
}

/// Bytes of the timestamps option and its padding.
pub(super) const TIMESTAMPS_LEN: usize = 12;

/// Writes a whole IP packet with a code point and an ECN field to `out`, whose former content goes; `append` adds the `len`
/// bytes of its data.
pub(crate) fn write_packet(
    out: &mut Packet,
    repr: &tcp::Repr,
    (src, dst): (IpAddr, IpAddr),
    marks: (u8, Ecn),
    len: usize,
    append: impl FnOnce(&mut Packet),
) {
    let header = start_packet(out, repr, (src, dst), marks, len);
    append(out);
    repr.emit(&mut out[header..], src, dst);
}

/// Makes `out` a packet of an IP header and room for a TCP header, to which `len` bytes of data are to be appended; where the
/// TCP header is.
fn start_packet(
    out: &mut Packet,
    repr: &tcp::Repr,
    (src, dst): (IpAddr, IpAddr),
    (dscp, ecn): (u8, Ecn),
    len: usize,
) -> usize {
    let tcp_header = repr.header_len();
    let header = ip::Repr::new(src, dst, Protocol::TCP, ecn, tcp_header + len).with_dscp(dscp);
    let ip_header = header.header_len();
    if out.capacity() < ip_header + tcp_header + len {
        *out = Packet::for_len(ip_header + tcp_header + len);
    }
    out.clear();
    out.resize(ip_header + tcp_header);
    header.emit(out);
    ip_header
}
