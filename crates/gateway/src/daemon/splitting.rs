//! The split-connection proxy between the TUN device and the link.

use base::{Duration, Instant, Packet, Rate, Rng};
use link::{Endpoint, Entry, Treatment};
use pep::{Peer, Proxy, Side};
use serde_json::{Value, json};

use super::Traffic;
use super::outbound::counted;
use super::pairing::Pairing;
use crate::config::Config;
use crate::random::Random;
use crate::splitting;
use crate::tun::{Tun, Written};

/// The proxy.
#[derive(Debug)]
pub(super) struct Splitting {
    proxy: Proxy,
    pairing: Pairing,
    /// Bytes of the longest segment between two proxies: a packet that the link carries whole.
    longest_segment: u16,
    /// Connections were broken because the other gateway has been silent for too long.
    has_given_up: bool,
}

/// Bytes of a segment between two proxies: a packet that the link carries whole.
fn longest_segment(config: &Config, rate: Option<Rate>) -> u16 {
    let packet = config.super_segment(rate).unwrap_or(config.tun.mtu.0);
    (packet as usize - MOST_HEADERS).min(splitting::MOST_PAYLOAD as usize) as u16
}

impl Splitting {
    /// The proxy that `config` asks for, if it asks for one.
    pub(super) fn of(config: &Config, rate: Option<Rate>) -> Option<Box<Self>> {
        let mut rng = Rng::named(u64::from_ne_bytes(Random::system().draw()), "proxy");
        if !config.pep.enabled {
            return None;
        }
        let mut proxy = Proxy::new(config.pep.clone(), &mut rng);
        proxy.set_mtu(config.tun.mtu.0 as u16);
        let longest_segment = longest_segment(config, rate);
        let mut splitting = Self { proxy, pairing: Pairing::new(), longest_segment, has_given_up: false };
        splitting.tell_proxy();
        Some(Box::new(splitting))
    }

    /// The link has another rate: connections that open from now on have segments that fit it.
    pub(super) fn set_rate(&mut self, config: &Config, rate: Option<Rate>) {
        self.longest_segment = longest_segment(config, rate);
        self.proxy.set_peer(self.pairing.peer(), self.longest_segment);
    }

    /// Tells the proxy who is at the other end of the link.
    fn tell_proxy(&mut self) {
        let peer = self.pairing.peer();
        if peer != self.proxy.peer() {
            self.proxy.set_peer(peer, self.longest_segment);
        }
    }

    /// Takes what the other gateway says of its proxy.
    pub(super) fn handle_pairing(&mut self, now: Instant, body: &[u8]) {
        self.pairing.handle(now, body);
        self.tell_proxy();
    }

    /// What there is to say to the other gateway of this proxy.
    pub(super) fn poll_pairing(&mut self, now: Instant) -> Option<[u8; 1]> {
        let says = self.pairing.poll(now);
        self.tell_proxy();
        says
    }

    /// When [`Splitting::poll_pairing`] wants to be called, if the other gateway is there.
    pub(super) const fn pairing_timeout(&self) -> Option<Instant> {
        self.pairing.poll_timeout()
    }

    /// Whether a packet from one side, perhaps behind a super-segment's metadata, was the proxy's.
    pub(super) fn takes(&mut self, now: Instant, from: Side, packet: &mut [u8]) -> bool {
        splitting::takes(&mut self.proxy, now, from, packet)
    }

    /// Hands what the proxy has for the LAN to the device.
    pub(super) fn flush(&mut self, now: Instant, tun: &mut Tun, traffic: &mut Traffic) {
        if !self.proxy.may_transmit(Side::Lan) {
            return;
        }
        splitting::write_trains(&mut self.proxy, now, Side::Lan, tun, |written| {
            count(written, traffic);
        });
    }

    /// The next packet that `endpoint` has room for, from the proxy or from `entry`.
    pub(super) fn next(
        &mut self,
        now: Instant,
        entry: &mut Entry,
        endpoint: &dyn Endpoint,
    ) -> Option<(Packet, Treatment)> {
        while let Some(packet) = self.proxy.poll_queued(now) {
            entry.push(now, packet, endpoint, &mut counted);
        }
        while endpoint.has_room(Treatment::Reliable)
            && entry.bytes_for(Treatment::Interactive) == 0
            && let Some(packet) = self.proxy.poll_turn(now, !entry.is_empty())
        {
            let treatment = entry.stream_treatment(now, &packet, endpoint);
            if endpoint.has_room(treatment) {
                return Some((packet, treatment));
            }
            entry.push_as(now, packet, treatment, &mut counted);
        }
        let (packet, treatment) = entry.pop_for(now, endpoint, &mut counted)?;
        self.proxy.note_passed(packet.len());
        Some((packet, treatment))
    }

    /// Bytes that wait in the proxy for the link: nobody counts them where there are some, so it is taken to be many.
    pub(super) fn waiting(&self) -> u64 {
        if self.proxy.is_clocked() && self.proxy.may_transmit(Side::Link) { u64::from(u32::MAX) } else { 0 }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.proxy.handle_timeout(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.proxy.poll_timeout()
    }

    /// The other gateway has started afresh, and its proxy knows of no connection.
    pub(super) fn on_peer_restarted(&mut self, now: Instant) {
        self.pairing = Pairing::new();
        self.tell_proxy();
        self.proxy.on_peer_lost(now);
    }

    /// The other gateway has been silent for so long. Nobody waits for ever for a link that is dark.
    pub(super) fn note_silence(&mut self, now: Instant, silence: Duration) {
        let gives_up = silence >= PATIENCE;
        if gives_up && !self.has_given_up {
            self.proxy.on_peer_lost(now);
        }
        self.has_given_up = gives_up;
    }

    /// What the status says of it.
    pub(super) fn status(&self) -> Value {
        let connections = |side| self.proxy.host(side).len();
        let mut status = json!({
            "connections": { "lan": connections(Side::Lan), "link": connections(Side::Link) },
            "peer": self.proxy.peer() == Peer::Known,
            "memory": Side::ALL.map(|side| self.proxy.host(side).held()).iter().sum::<usize>(),
        });
        for (name, count) in self.proxy.counters().named() {
            status[name] = count.into();
        }
        status
    }
}

/// Writes a packet to the device; whether the kernel took it.
pub(super) fn write(tun: &mut Tun, traffic: &mut Traffic, packet: &[u8]) -> bool {
    count(tun.write(packet), traffic)
}

fn count(written: Written, traffic: &mut Traffic) -> bool {
    match written {
        Written::Yes => {
            traffic.tun_packets_written.increment();
            return true;
        }
        Written::Full => traffic.tun_dropped_full.increment(),
        Written::Refused => traffic.tun_dropped_refused.increment(),
    }
    false
}

/// About what it takes Linux to give a silent peer up (`tcp_retries2`).
const PATIENCE: Duration = Duration::from_secs(900);
/// Bytes of the headers of IPv6 and TCP.
const MOST_HEADERS: usize = 60;

#[cfg(test)]
mod tests {
    use base::wire::ip::{self, Ecn, Protocol};
    use base::wire::tcp::{Flags, Options, Repr};
    use base::{SeqNum, wire};

    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn splitting() -> Box<Splitting> {
        let site = "[tun]\nname = \"sat0\"\n[carrier.udp]\nlisten = \"192.0.2.1:1\"\n[link]\nprotocol = \"plain\"\n\
                    [session]\nkey = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[pep]\n";
        Splitting::of(&Config::parse("site.toml", site).unwrap(), None).unwrap()
    }

    /// A host on the LAN calls.
    fn call(splitting: &mut Splitting) -> bool {
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
        splitting.takes(NOW, Side::Lan, &mut packet)
    }

    fn says_to_be_a_proxy(splitting: &mut Splitting) -> bool {
        let packet = splitting.proxy.poll_turn(NOW, false).unwrap();
        let view = ip::View::parse(&packet).unwrap();
        wire::tcp::View::parse(view.payload()).unwrap().options().proxy_mss.is_some()
    }

    #[test]
    fn connections_outlast_a_silence_of_a_quarter_of_an_hour() {
        let mut splitting = splitting();
        assert!(call(&mut splitting));
        let halves = |splitting: &Splitting| Side::ALL.map(|side| splitting.proxy.host(side).live());
        splitting.note_silence(NOW, Duration::from_secs(899));
        assert_eq!(halves(&splitting), [1, 1]);
        splitting.note_silence(NOW, Duration::from_secs(900));
        assert_eq!(halves(&splitting), [0, 0]);
        // Who calls during the silence is not broken off again and again; TCP gives him up.
        assert!(call(&mut splitting));
        splitting.note_silence(NOW, Duration::from_secs(901));
        assert_eq!(halves(&splitting), [1, 1]);
        splitting.note_silence(NOW, Duration::ZERO);
        splitting.note_silence(NOW, Duration::from_secs(900));
        assert_eq!(halves(&splitting), [0, 0]);
    }

    #[test]
    fn the_proxy_knows_its_peer_by_what_the_gateway_says() {
        let mut splitting = splitting();
        assert_eq!(splitting.status()["peer"], false);
        assert!(call(&mut splitting) && says_to_be_a_proxy(&mut splitting), "there may be one");
        splitting.handle_pairing(NOW, &[0]);
        assert_eq!(splitting.status()["peer"], true);
        splitting.on_peer_restarted(NOW);
        assert_eq!(splitting.status()["peer"], false);
        for second in 0..8 {
            splitting.poll_pairing(NOW + Duration::from_secs(second));
        }
        assert!(call(&mut splitting) && !says_to_be_a_proxy(&mut splitting), "there is none");
    }
}
