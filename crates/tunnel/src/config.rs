//! What a tunnel is told: how it sends, what it splits, and what its carrier takes.

mod complaint;
mod link;
mod super_segment;
mod values;

use ::link::LineLimits;
use base::{Duration, Rate};

pub use crate::line_use::Usage;
use crate::path::{Address, CarrierId};
use crate::session::{OVERHEAD, Timing};
use crate::survey::Survey;
use crate::survey::rate::Aim;

pub use complaint::{Complaint, Place};
pub use link::{Link, LinkPlaces};
pub use values::{LinkRate, Mtu, Overhead};

/// A tunnel's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// How it sends.
    pub link: Link,
    /// The split-connection proxy, if it is enabled.
    pub pep: pep::Config,
    /// Bytes of the largest IP packet from the LAN.
    pub mtu: u32,
    /// Whether the LAN's device takes several TCP segments of the proxy in one, and cuts them up.
    pub cuts_trains: bool,
    /// What carries its datagrams.
    pub carrier: CarrierLimits,
    /// The carriers, if there are several: over each goes a line of its own. Without any, the peer may use several.
    pub ways: Vec<Way>,
    /// Between keep-alives while nothing else passes.
    pub keep_alive: Duration,
}

/// One of several carriers, and what there is to know of the way over it.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// How fast datagrams leave over it.
    pub rate: LinkRate,
    /// What it is used for.
    pub usage: Usage,
    /// What it takes.
    pub carrier: CarrierLimits,
    /// Where the peer is called over it, if elsewhere than over others.
    pub address: Option<Address>,
}

/// What a carrier of datagrams takes. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarrierLimits {
    /// What it adds to each datagram.
    pub header_len: usize,
    /// The longest datagram with what is added to it.
    pub packet_limit: usize,
    /// The longest packet that every path is taken to carry, where the path may carry less than `packet_limit`; `None` where it may not.
    pub shortest_limit: Option<usize>,
}

impl CarrierLimits {
    /// UDP over IPv4, or over IPv6, with IP packets of up to `mtu` bytes.
    #[must_use]
    pub const fn udp(is_ipv4: bool, mtu: usize) -> Self {
        // RFC 8200, 5. IPv4 only promises 68; 576, which every host takes (RFC 1122, 3.3.2), is what narrow links have.
        let (header_len, shortest) = if is_ipv4 { (20 + 8, 576) } else { (40 + 8, 1280) };
        Self { header_len, packet_limit: mtu, shortest_limit: Some(shortest) }
    }

    /// The longest frame of the link that a datagram holds.
    #[must_use]
    pub const fn frame_limit(&self) -> usize {
        self.packet_limit - self.header_len - OVERHEAD
    }
}

impl Config {
    /// The way of the first line over a carrier.
    #[must_use]
    pub fn first_way(&self) -> Way {
        let Self { link, carrier, .. } = self;
        let only = Way { rate: link.rate, usage: Usage::default(), carrier: *carrier, address: None };
        self.ways.first().copied().unwrap_or(only)
    }

    /// The way of a further line over a carrier. Whoever knows of one carrier only has a peer with several: a rate that is configured is that of the
    /// first.
    #[must_use]
    pub fn further_way(&self, via: CarrierId) -> Way {
        let unknown = |first: Way| match first.rate {
            LinkRate::Fixed(_) => Way { rate: LinkRate::Auto, ..first },
            LinkRate::Auto | LinkRate::Max => first,
        };
        self.ways.get(via.at()).copied().unwrap_or_else(|| unknown(self.first_way()))
    }

    /// What a datagram takes on the line besides its own bytes.
    #[must_use]
    pub fn on_line(&self) -> i64 {
        self.first_way().on_line(self.link.overhead)
    }

    /// The line as the endpoint sees it, with frames of up to `limit` bytes.
    #[must_use]
    pub fn line(&self, limit: usize, rate: Option<Rate>) -> LineLimits {
        let around = usize::try_from(self.on_line()).unwrap_or(0) + OVERHEAD;
        LineLimits::new(limit, rate).with_overhead(around)
    }

    /// The line as the endpoint sees it before anything was found out about it.
    #[must_use]
    pub fn first_line(&self) -> LineLimits {
        let way = self.first_way();
        let survey = Survey::over(&way, self.link.overhead);
        self.line(way.carrier.frame_limit(), survey.rate_controller.capacity())
    }

    /// How the session behaves in time: keep-alives leave room on a slow link.
    #[must_use]
    pub fn timing(&self) -> Timing {
        let bits = self.carrier.packet_limit as u64 * 8;
        let frame_time = self.link.rate.fixed().map_or(Duration::ZERO, |rate| rate.time_for(bits));
        Timing::for_frames_of(frame_time, self.keep_alive)
    }
}

impl Way {
    /// What is known of the rate before anything was found out.
    #[must_use]
    pub const fn aim(&self) -> Aim {
        match self.rate {
            LinkRate::Auto => Aim::Find,
            LinkRate::Max => Aim::Unlimited,
            LinkRate::Fixed(rate) => Aim::Known(rate),
        }
    }

    /// What a datagram takes on the line besides its own bytes, with this much around its packet.
    #[must_use]
    pub fn on_line(&self, overhead: Overhead) -> i64 {
        self.carrier.header_len as i64 + i64::from(overhead.get())
    }
}

#[cfg(test)]
mod tests;
