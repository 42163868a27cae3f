//! The split-connection proxy of a tunnel: what it is told of the link and of the other end.

use base::{Duration, Instant, Packet, Rate, Rng};
use pep::{Peer, Proxy, Side};
use serde::Serialize;

use crate::config::Config;
use crate::counters::Named;
use crate::pairing::Pairing;
use crate::super_segment::Metadata;

/// A packet for the LAN.
#[derive(Debug)]
pub struct Delivery {
    /// The packet, or a super-segment behind its metadata.
    pub packet: Packet,
    /// What has `packet`, an IP packet of several TCP segments, cut up; `None` if it is to stay as it is.
    pub train: Option<Metadata>,
}

/// What there is to know about the proxy besides itself.
#[derive(Debug)]
pub(crate) struct ProxySide {
    pairing: Pairing,
    /// Bytes of the longest segment between two proxies: a packet that the link carries whole.
    longest_segment: u16,
    /// Connections were broken because the other end has been silent for too long.
    has_given_up: bool,
}

/// Bytes of a segment between two proxies: a packet that the link carries whole.
fn longest_segment(config: &Config, rate: Option<Rate>) -> u16 {
    let packet = config.super_segment(rate).unwrap_or(config.mtu);
    (packet as usize - MOST_HEADERS).min(MOST_PAYLOAD as usize) as u16
}

/// The proxy that `config` asks for, if it asks for one.
pub(crate) fn proxy(config: &Config, rng: &mut Rng) -> Option<Box<Proxy>> {
    config.pep.enabled.then(|| {
        let link_repairs = config.link.protocol.capabilities().recovers_losses;
        let mut proxy = Proxy::new(pep::Config { link_repairs, ..config.pep.clone() }, rng);
        proxy.set_mtu(config.mtu.min(u32::from(u16::MAX)) as u16);
        Box::new(proxy)
    })
}

/// The next packet that a proxy has for one side: as many segments in one as it has for a connection, if whoever takes it `cuts` them up.
pub fn poll_super_segment(proxy: &mut Proxy, now: Instant, to: Side, cuts: bool) -> Option<Delivery> {
    if !proxy.may_transmit(to) {
        return None;
    }
    if !cuts {
        return proxy.poll_transmit(now, to).map(|packet| Delivery { packet, train: None });
    }
    let (packet, segment) = proxy.poll_transmit_train(now, to, MOST_PAYLOAD)?;
    let train = segment.and_then(|size| Metadata::of_train(&packet, size));
    Some(Delivery { packet, train })
}

impl ProxySide {
    /// For a link of this rate; `proxy` is told.
    pub(crate) fn new(config: &Config, rate: Option<Rate>, proxy: Option<&mut Proxy>) -> Self {
        let longest_segment = longest_segment(config, rate);
        let mut proxy_side = Self { pairing: Pairing::new(), longest_segment, has_given_up: false };
        proxy_side.tell(proxy);
        proxy_side
    }

    /// The link has another rate: connections that open from now on have segments that fit it.
    pub(crate) fn fit_segments(&mut self, config: &Config, rate: Option<Rate>, proxy: Option<&mut Proxy>) {
        self.longest_segment = longest_segment(config, rate);
        if let Some(proxy) = proxy {
            proxy.set_peer(self.pairing.peer(), self.longest_segment);
        }
    }

    /// Tells the proxy who is at the other end of the link.
    fn tell(&mut self, proxy: Option<&mut Proxy>) {
        let peer = self.pairing.peer();
        if let Some(proxy) = proxy
            && peer != proxy.peer()
        {
            proxy.set_peer(peer, self.longest_segment);
        }
    }

    /// Takes what the other end says of its proxy.
    pub(crate) fn handle_pairing(&mut self, now: Instant, body: &[u8], proxy: Option<&mut Proxy>) {
        self.pairing.handle(now, body);
        self.tell(proxy);
    }

    /// What there is to say to the other end of `proxy`.
    pub(crate) fn poll_pairing(&mut self, now: Instant, proxy: Option<&mut Proxy>) -> Option<[u8; 1]> {
        let says = self.pairing.poll(now);
        self.tell(proxy);
        says
    }

    /// When [`ProxySide::poll_pairing`] wants to be called, if the other end is there.
    pub(crate) const fn pairing_timeout(&self) -> Option<Instant> {
        self.pairing.poll_timeout()
    }

    /// The other end has started afresh, and its proxy knows of no connection.
    pub(crate) fn on_peer_restarted(&mut self, now: Instant, proxy: &mut Proxy) {
        self.pairing = Pairing::new();
        self.tell(Some(proxy));
        proxy.on_peer_lost(now);
    }

    /// The other end has been silent for so long. Nobody waits for ever for a link that is dark.
    pub(crate) fn note_silence(&mut self, now: Instant, silence: Duration, proxy: &mut Proxy) {
        let gives_up = silence >= PATIENCE;
        if gives_up && !self.has_given_up {
            proxy.on_peer_lost(now);
        }
        self.has_given_up = gives_up;
    }
}

/// What the status says of a proxy.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    connections: Connections,
    /// Whether the other end is known to have one too.
    peer: bool,
    /// Bytes that its connections hold.
    memory: usize,
    #[serde(flatten)]
    counted: Named,
}

/// Connections of each side.
#[derive(Debug, Serialize)]
struct Connections {
    lan: usize,
    link: usize,
}

impl Status {
    pub(crate) fn of(proxy: &Proxy) -> Self {
        let connections = |side| proxy.host(side).len();
        Self {
            connections: Connections { lan: connections(Side::Lan), link: connections(Side::Link) },
            peer: proxy.peer() == Peer::Known,
            memory: proxy.memory(),
            counted: Named(proxy.counters().named().to_vec()),
        }
    }
}

/// Bytes of data in the longest packet of IPv4, with timestamps.
const MOST_PAYLOAD: u32 = 65_535 - 72;
/// About what it takes Linux to give a silent peer up (`tcp_retries2`).
pub(crate) const PATIENCE: Duration = Duration::from_secs(900);
/// Bytes of the headers of IPv6 and TCP.
const MOST_HEADERS: usize = 60;

#[cfg(test)]
mod tests {
    use base::wire::ip::{self, Ecn, Protocol};
    use base::wire::tcp::{Flags, Options, Repr};
    use base::{SeqNum, wire};

    use super::*;
    use crate::config::{CarrierLimits, Link};
    use crate::ingress::is_taken;

    const NOW: Instant = Instant::ZERO;

    fn proxy_side() -> (ProxySide, Box<Proxy>) {
        let link = Link::parse("site.toml", "protocol = \"plain\"").unwrap();
        let carrier = CarrierLimits::udp(true, 1500);
        let keep_alive = crate::session::KEEP_ALIVE;
        let config = Config {
            link,
            pep: pep::Config::default(),
            mtu: 1400,
            cuts_trains: true,
            carrier,
            ways: vec![],
            keep_alive,
        };
        let mut proxy = proxy(&config, &mut Rng::named(1, "proxy")).unwrap();
        (ProxySide::new(&config, None, Some(&mut proxy)), proxy)
    }

    /// A host on the LAN calls.
    fn call(proxy: &mut Proxy) -> bool {
        let (src, dst) = ([10, 0, 0, 2].into(), [192, 0, 2, 7].into());
        let repr = Repr {
            src_port: 4000,
            dst_port: 80,
            seq: SeqNum(1),
            ack: SeqNum(0),
            flags: Flags::SYN,
            window: 65_535,
            urgent: 0,
            options: Options { mss: Some(1360), ..Options::default() },
        };
        let header = ip::Repr::new(src, dst, Protocol::TCP, Ecn::NotEct, repr.header_len());
        let mut packet = vec![0; header.header_len() + repr.header_len()];
        header.emit(&mut packet);
        repr.emit(&mut packet[header.header_len()..], src, dst);
        is_taken(proxy, NOW, Side::Lan, &mut packet)
    }

    fn says_to_be_a_proxy(proxy: &mut Proxy) -> bool {
        let packet = proxy.poll_turn(NOW, false).unwrap();
        let view = ip::View::parse(&packet).unwrap();
        wire::tcp::View::parse(view.payload()).unwrap().options().proxy_mss.is_some()
    }

    #[test]
    fn connections_outlast_a_silence_of_a_quarter_of_an_hour() {
        let (mut proxy_side, mut proxy) = proxy_side();
        assert!(call(&mut proxy));
        let halves = |proxy: &Proxy| Side::ALL.map(|side| proxy.host(side).live());
        proxy_side.note_silence(NOW, Duration::from_secs(899), &mut proxy);
        assert_eq!(halves(&proxy), [1, 1]);
        proxy_side.note_silence(NOW, Duration::from_secs(900), &mut proxy);
        assert_eq!(halves(&proxy), [0, 0]);
        // Who calls during the silence is not broken off again and again; TCP gives him up.
        assert!(call(&mut proxy));
        proxy_side.note_silence(NOW, Duration::from_secs(901), &mut proxy);
        assert_eq!(halves(&proxy), [1, 1]);
        proxy_side.note_silence(NOW, Duration::ZERO, &mut proxy);
        proxy_side.note_silence(NOW, Duration::from_secs(900), &mut proxy);
        assert_eq!(halves(&proxy), [0, 0]);
    }

    #[test]
    fn the_proxy_knows_its_peer_by_what_the_gateway_says() {
        let (mut proxy_side, mut proxy) = proxy_side();
        assert!(!Status::of(&proxy).peer);
        assert!(call(&mut proxy) && says_to_be_a_proxy(&mut proxy), "there may be one");
        proxy_side.handle_pairing(NOW, &[0], Some(&mut proxy));
        assert!(Status::of(&proxy).peer);
        proxy_side.on_peer_restarted(NOW, &mut proxy);
        assert!(!Status::of(&proxy).peer);
        for second in 0..8 {
            proxy_side.poll_pairing(NOW + Duration::from_secs(second), Some(&mut proxy));
        }
        assert!(call(&mut proxy) && !says_to_be_a_proxy(&mut proxy), "there is none");
    }
}
