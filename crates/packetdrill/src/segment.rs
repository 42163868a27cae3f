//! Segments: as packetdrill writes them, and as they are on the wire.

use core::fmt;
use core::net::IpAddr;

use base::wire::checksum::Sum;
use base::wire::ip::{self, Ecn, Protocol};
use base::wire::tcp::{Flags, HEADER_LEN};

use crate::option::TcpOption;

/// A segment; its numbers are the script's, or the wire's before they are translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Control bits.
    pub flags: Flags,
    /// Its first sequence number.
    pub seq: u32,
    /// Bytes of data.
    pub len: u32,
    /// What it acknowledges; significant if the flag says so.
    pub ack: u32,
    /// The window field, unscaled.
    pub window: u16,
    /// Options, padding included.
    pub options: Vec<TcpOption>,
}

/// What is expected of a segment; `None` is whatever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// ECN field of the IP header: any of these.
    pub ecn: Option<Vec<Ecn>>,
    /// Control bits.
    pub flags: Flags,
    /// Its first sequence number.
    pub seq: u32,
    /// Bytes of data. More than a full segment has stand for several in a row, of which the last has PSH and FIN.
    pub len: u32,
    /// What it acknowledges, if it does.
    pub ack: u32,
    /// The window field, unscaled.
    pub window: Option<u16>,
    /// Options in their order.
    pub options: Option<Vec<TcpOption>>,
}

/// A packet and the ports that it goes from and to.
pub(crate) struct Addressed {
    pub(crate) segment: Segment,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
}

/// Longest option list in bytes.
pub(crate) const OPTIONS_LIMIT: usize = 40;

impl Segment {
    /// Reads an IP packet; `None` if it carries no TCP from `host`.
    pub(crate) fn parse(packet: &[u8], host: IpAddr) -> Option<Addressed> {
        let view = ip::View::parse(packet).ok()?;
        if view.protocol() != Protocol::TCP || view.src() != host {
            return None;
        }
        let bytes = view.payload();
        let header_len = usize::from(bytes.get(12)? >> 4) * 4;
        let options = TcpOption::parse(bytes.get(HEADER_LEN..header_len)?);
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let segment = Self {
            ecn: view.ecn(),
            flags: Flags(bytes[13]),
            seq: word(4),
            len: (bytes.len() - header_len) as u32,
            ack: word(8),
            window: half(14),
            options,
        };
        Some(Addressed { segment, src_port: half(0), dst_port: half(2) })
    }

    /// The IP packet from one address and port to another.
    pub(crate) fn emit(&self, from: (IpAddr, u16), to: (IpAddr, u16)) -> Vec<u8> {
        let mut options = Vec::new();
        self.options.iter().for_each(|option| option.emit(&mut options));
        options.resize(options.len().next_multiple_of(4), 0);
        let header_len = HEADER_LEN + options.len();
        let mut tcp = Vec::with_capacity(header_len + self.len as usize);
        tcp.extend(from.1.to_be_bytes());
        tcp.extend(to.1.to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([(header_len as u8 / 4) << 4, self.flags.0]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.resize(header_len + self.len as usize, 0);
        let sum = Sum::pseudo_header(from.0, to.0, Protocol::TCP.0, tcp.len()).and(Sum::of(&tcp)).finish();
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let header = ip::Repr::new(from.0, to.0, Protocol::TCP, self.ecn, tcp.len());
        let mut packet = vec![0; header.header_len()];
        header.emit(&mut packet);
        packet.extend(tcp);
        packet
    }
}

impl Expectation {
    /// Whether `got` may be one of several segments that this stands for, the first of which begins at `seq`, with others to
    /// follow.
    pub(crate) fn is_begun_by(&self, got: &Segment, done: u32) -> bool {
        let last_only = Flags::PSH.0 | Flags::FIN.0;
        got.len > 0 && done + got.len < self.len && got.flags.0 == self.flags.0 & !last_only
    }

    /// What `got` differs in; it begins `done` bytes into what is expected.
    pub(crate) fn differences(&self, got: &Segment, done: u32, last: bool) -> Vec<&'static str> {
        let mut differences = Vec::new();
        let mut check = |holds: bool, name| {
            if !holds {
                differences.push(name);
            }
        };
        let flags = if last { self.flags.0 } else { self.flags.0 & !(Flags::PSH.0 | Flags::FIN.0) };
        check(got.flags.0 == flags, "flags");
        check(got.seq == self.seq.wrapping_add(done), "sequence number");
        check(!last || done + got.len == self.len, "length");
        check(!self.flags.has(Flags::ACK) || got.ack == self.ack, "acknowledgement");
        check(self.window.is_none_or(|window| window == got.window), "window");
        check(self.options.as_ref().is_none_or(|options| *options == got.options), "options");
        check(self.ecn.as_ref().is_none_or(|ecn| ecn.contains(&got.ecn)), "ECN");
        differences
    }
}

/// The letters of control bits, in packetdrill's order.
pub(crate) const FLAGS: [(char, Flags); 8] = [
    ('F', Flags::FIN),
    ('S', Flags::SYN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('.', Flags::ACK),
    ('U', Flags::URG),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
];

fn write_numbers(
    f: &mut fmt::Formatter<'_>,
    (flags, seq, len, ack): (Flags, u32, u32, u32),
    window: Option<u16>,
) -> fmt::Result {
    if flags.0 == 0 {
        f.write_str("-")?;
    }
    FLAGS.iter().filter(|(_, flag)| flags.has(*flag)).try_for_each(|(letter, _)| write!(f, "{letter}"))?;
    write!(f, " {seq}:{}({len})", seq.wrapping_add(len))?;
    if flags.has(Flags::ACK) {
        write!(f, " ack {ack}")?;
    }
    window.map_or(Ok(()), |window| write!(f, " win {window}"))
}

fn write_options(f: &mut fmt::Formatter<'_>, options: &[TcpOption]) -> fmt::Result {
    if options.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = options.iter().map(ToString::to_string).collect();
    write!(f, " <{}>", list.join(","))
}

/// How packetdrill writes an ECN field.
pub(crate) const ECN: [(&str, &[Ecn]); 5] = [
    ("noecn", &[Ecn::NotEct]),
    ("ect0", &[Ecn::Ect0]),
    ("ect1", &[Ecn::Ect1]),
    ("ce", &[Ecn::Ce]),
    ("ect01", &[Ecn::Ect0, Ecn::Ect1]),
];

fn write_ecn(f: &mut fmt::Formatter<'_>, ecn: &[Ecn]) -> fmt::Result {
    let name = ECN.iter().find(|(_, known)| *known == ecn).map_or("", |(name, _)| name);
    write!(f, "[{name}] ")
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ecn != Ecn::NotEct {
            write_ecn(f, &[self.ecn])?;
        }
        write_numbers(f, (self.flags, self.seq, self.len, self.ack), Some(self.window))?;
        write_options(f, &self.options)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ecn) = &self.ecn {
            write_ecn(f, ecn)?;
        }
        write_numbers(f, (self.flags, self.seq, self.len, self.ack), self.window)?;
        match &self.options {
            Some(options) => write_options(f, options),
            None => f.write_str(" <...>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Ends;

    #[test]
    fn what_is_emitted_reads_back() {
        for ipv6 in [false, true] {
            let ends = Ends::of(ipv6);
            let options = vec![
                TcpOption::Nop,
                TcpOption::Nop,
                TcpOption::Timestamps { value: 7, echo: 9 },
                TcpOption::Nop,
                TcpOption::Nop,
                TcpOption::Sack(vec![(1, 1001)]),
            ];
            let flags = Flags::ACK | Flags::PSH;
            let segment = Segment { ecn: Ecn::Ce, flags, seq: 5, len: 100, ack: 6, window: 7, options };
            let packet = segment.emit((ends.host, 1), (ends.peer, 2));
            let read = Segment::parse(&packet, ends.host).unwrap();
            assert_eq!((read.src_port, read.dst_port, &read.segment), (1, 2, &segment));
            let shown = "[ce] P. 5:105(100) ack 6 win 7 <nop,nop,TS val 7 ecr 9,nop,nop,sack 1:1001>";
            assert_eq!(read.segment.to_string(), shown);
        }
    }
}
