//! Where a protocol's edge lies: the rate and round trip beyond which its window, not the line, limits throughput.
//!
//! A sender with a window has at most [`Protocol::in_flight_limit`] bytes of packets under way, and hears of them one round trip
//! later. So it carries at most that much in a round trip, whatever the line's rate.

use core::fmt;

use base::{Duration, Rate};

use crate::USUAL_PACKET;
use crate::coded;
use crate::cotmll::{self, TRAILER_LEN, wide};
use crate::harq;
use crate::line::LineLimits;
use crate::plain;
use crate::protocol::Protocol;
use crate::slacp;

/// A protocol that cannot fill its line, and what would. Its `Display` is a sentence for whoever configures the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    protocol: Protocol,
    /// Bytes of packets that may be under way.
    in_flight: u64,
    rate: Rate,
    round_trip: Duration,
    remedy: Option<Remedy>,
}

/// What to set so that the line is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// The thesis's widest window.
    Window(u32),
    /// The thesis's widest window and frames with this many bytes of a packet.
    Payload(u32),
    /// The wide format.
    Wide,
    /// The window that the protocol chooses.
    NoWindow,
}

impl Protocol {
    /// Bytes of packets that may be under way on a line, unacknowledged; `None` if nothing limits them.
    #[must_use]
    pub fn in_flight_limit(&self, line: &LineLimits) -> Option<u64> {
        match self {
            Self::Plain(_) => None,
            Self::CotmllThesis(config) => Some(u64::from(config.window.get()) * self.frame_payload(line)),
            Self::Cotmll(config) => Some(u64::from(config.window(line)) * self.frame_payload(line)),
            Self::Slacp(config) => Some(u64::from(config.window(line)) * self.frame_payload(line)),
            Self::Coded(config) => Some(u64::from(config.window(line)) * self.frame_payload(line)),
            Self::Harq(config) if config.transmissions.get() == 1 => None,
            Self::Harq(config) => {
                // A packet has blocks of its own, which are seldom full.
                let block = config.block_payload(line).min(USUAL_PACKET) as u64;
                Some(u64::from(config.window(line)) * block)
            }
        }
    }

    /// Bytes of a packet in a full frame on a line.
    #[must_use]
    pub fn frame_payload(&self, line: &LineLimits) -> u64 {
        match self {
            Self::Plain(_) => (line.frame_limit() - plain::FRAGMENT_HEADER_LEN) as u64,
            Self::CotmllThesis(config) => u64::from(config.frame_payload.get()).min(payload_limit(line)),
            Self::Cotmll(config) => config.frame_payload(line) as u64,
            Self::Slacp(config) => config.frame_payload(line) as u64,
            Self::Coded(config) => config.frame_payload(line) as u64,
            Self::Harq(config) => config.frame_payload(line) as u64,
        }
    }

    /// What keeps the protocol from filling a line of this rate and round trip; `None` if it can, or nothing is known of the rate.
    #[must_use]
    pub fn edge(&self, line: &LineLimits, round_trip: Duration) -> Option<Edge> {
        let (rate, in_flight) = (line.rate()?, self.in_flight_limit(line)?);
        let enough = |protocol: &Self| {
            protocol.in_flight_limit(line).is_none_or(|limit| limit >= rate.bits_in(round_trip) / 8)
        };
        if enough(self) {
            return None;
        }
        let remedy = remedies(self, line).into_iter().find(|(protocol, _)| enough(protocol));
        let remedy = remedy.map(|(_, remedy)| remedy);
        Some(Edge { protocol: *self, in_flight, rate, round_trip, remedy })
    }
}

impl Edge {
    /// The most that the protocol carries, in bits of packets per second.
    #[must_use]
    pub fn limit(&self) -> Rate {
        let bits = u128::from(self.in_flight) * 8 * 1_000_000_000;
        let limit = bits / u128::from(self.round_trip.as_nanos().max(1));
        Rate::from_bps(u64::try_from(limit).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, in_flight, rate, round_trip, remedy } = self;
        let (name, limit, needed) = (protocol.name(), self.limit().rounded(), rate.bits_in(*round_trip) / 8);
        write!(
            f,
            "{name} carries at most {limit} of {rate}: its window holds {in_flight} bytes, and a round trip of {round_trip} \
             needs {needed}; "
        )?;
        match remedy {
            Some(Remedy::Window(frames)) => write!(f, "set window = {frames}"),
            Some(Remedy::Payload(bytes)) => {
                write!(f, "set window = {}, frame-payload = {bytes}", cotmll::Config::default().window.get())
            }
            Some(Remedy::Wide) => f.write_str("set protocol = \"cotmll\""),
            Some(Remedy::NoWindow) => f.write_str("remove window"),
            None => write!(f, "no setting of {name} fills the link, but protocol = \"plain\" does"),
        }
    }
}

/// What to try, the least change first.
fn remedies(protocol: &Protocol, line: &LineLimits) -> Vec<(Protocol, Remedy)> {
    let wide = (Protocol::Cotmll(wide::Config::default()), Remedy::Wide);
    let config = match protocol {
        Protocol::CotmllThesis(config) => config,
        Protocol::Cotmll(config) => {
            return vec![(Protocol::Cotmll(wide::Config { window: None, ..*config }), Remedy::NoWindow)];
        }
        Protocol::Slacp(config) => {
            return vec![(Protocol::Slacp(slacp::Config { window: None, ..*config }), Remedy::NoWindow)];
        }
        Protocol::Coded(config) => {
            return vec![(Protocol::Coded(coded::Config { window: None, ..*config }), Remedy::NoWindow)];
        }
        Protocol::Harq(config) => {
            return vec![(Protocol::Harq(harq::Config { window: None, ..*config }), Remedy::NoWindow)];
        }
        Protocol::Plain(_) => return vec![],
    };
    let window = cotmll::Config { window: cotmll::Config::default().window, ..*config };
    let mut remedies = vec![(Protocol::CotmllThesis(window), Remedy::Window(window.window.get()))];
    if let Some(payload) = u32::try_from(payload_limit(line)).ok().and_then(|bytes| bytes.try_into().ok()) {
        let long = cotmll::Config { frame_payload: payload, ..window };
        remedies.push((Protocol::CotmllThesis(long), Remedy::Payload(payload.get())));
    }
    remedies.push(wide);
    remedies
}

/// Bytes of a packet in the longest frame that is advised on a line: one less than fit, as in docs/edges.md.
fn payload_limit(line: &LineLimits) -> u64 {
    (line.frame_limit() - TRAILER_LEN - 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mbits: u64) -> LineLimits {
        LineLimits::new(1440, Some(Rate::from_bps(mbits * 1_000_000)))
    }

    fn thesis() -> Protocol {
        Protocol::CotmllThesis(cotmll::Config::default())
    }

    #[test]
    fn a_window_that_is_too_small_for_the_line_is_said_with_what_to_set() {
        let round_trip = Duration::from_millis(600);
        assert_eq!(thesis().in_flight_limit(&line(1)), Some(512 * 487));
        assert_eq!(thesis().edge(&line(3), round_trip), None);
        let edge = thesis().edge(&line(8), round_trip).unwrap();
        assert_eq!(
            edge.to_string(),
            "cotmll-thesis carries at most 3320 kbit/s of 8 Mbit/s: its window holds 249344 bytes, and a round trip of 600 ms \
             needs 600000; set window = 512, frame-payload = 1435"
        );
        let edge = thesis().edge(&line(20), round_trip).unwrap().to_string();
        assert!(edge.ends_with("needs 1500000; set protocol = \"cotmll\""), "{edge}");
        let edge = thesis().edge(&line(100_000), round_trip).unwrap().to_string();
        assert!(
            edge.ends_with("no setting of cotmll-thesis fills the link, but protocol = \"plain\" does"),
            "{edge}"
        );
    }

    #[test]
    fn what_is_to_be_set_is_enough() {
        for mbits in 1..100 {
            let Some(edge) = thesis().edge(&line(mbits), Duration::from_millis(300)) else { continue };
            assert!(edge.limit() < Rate::from_bps(mbits * 1_000_000));
            assert!(edge.remedy.is_some());
        }
    }

    #[test]
    fn the_wide_format_fills_a_gigabit_unless_told_otherwise() {
        let round_trip = Duration::from_millis(600);
        for mbits in [1, 20, 1000] {
            assert_eq!(Protocol::Cotmll(wide::Config::default()).edge(&line(mbits), round_trip), None);
        }
        let told = wide::Config { window: 100.try_into().ok(), ..wide::Config::default() };
        let edge = Protocol::Cotmll(told).edge(&line(20), round_trip).unwrap().to_string();
        assert!(edge.ends_with("remove window"), "{edge}");
        assert_eq!(Protocol::Slacp(slacp::Config::default()).edge(&line(100), round_trip), None);
        let told = slacp::Config { window: 100.try_into().ok(), ..slacp::Config::default() };
        let edge = Protocol::Slacp(told).edge(&line(20), round_trip).unwrap().to_string();
        assert!(edge.ends_with("remove window"), "{edge}");
        assert_eq!(Protocol::Harq(harq::Config::default()).edge(&line(1000), round_trip), None);
        let told = harq::Config { window: 100.try_into().ok(), ..harq::Config::default() };
        let edge = Protocol::Harq(told).edge(&line(20), round_trip).unwrap().to_string();
        assert!(edge.contains("its window holds 150000 bytes") && edge.ends_with("remove window"), "{edge}");
        let once = harq::Config { transmissions: 1.try_into().unwrap(), ..told };
        assert_eq!(Protocol::Harq(once).edge(&line(1000), round_trip), None);
    }

    #[test]
    fn without_a_window_or_a_rate_there_is_no_edge() {
        let round_trip = Duration::from_secs(10);
        assert_eq!(Protocol::default().edge(&line(1000), round_trip), None);
        assert_eq!(thesis().edge(&LineLimits::new(1440, None), round_trip), None);
    }
}
