//! With the system's resolver and the kernel's sockets.

use base::Duration;
use base::wire::ip::Ecn;
use tunnel::Hub;
use tunnel::key::PrivateKey;

use super::*;
use crate::carrier;
use crate::clock::Clock;
use crate::config::Config;
use crate::daemon::membership;
use crate::daemon::workers::Workers;
use crate::random;
use crate::readiness::{Interest, wait};

/// A gateway on a loopback address.
struct End {
    hub: Hub,
    id: PeerId,
    carrier: carrier::Carrier,
    names: Names,
    told: Vec<String>,
}

impl End {
    /// One that calls the other at `endpoint`, if that is given.
    fn new(own: u8, other: u8, endpoint: &str) -> Self {
        let [own, other] = [own, other].map(|byte| PrivateKey::from_bytes([byte; 32]));
        let site = format!(
            "[tun]\nname = \"sat0\"\n[carrier.udp]\nlisten = \"127.0.0.1:0\"\n[link]\nprotocol = \"plain\"\n\
             [identity]\nprivate-key = \"{}\"\n[[peer]]\npublic-key = \"{}\"\n{endpoint}",
            &*own.to_base64(),
            other.public()
        );
        let config = Config::parse("site.toml", &site).unwrap();
        let mut hub = Hub::new(own, None, random::system);
        let peer = &config.peers[0];
        let id = hub.add(membership(&config, peer).unwrap()).unwrap();
        let mut names = Names::new().unwrap();
        names.add(id, peer, &config.carrier);
        Self { hub, id, carrier: carrier::Carrier::open(&config.carrier).unwrap(), names, told: Vec::new() }
    }

    fn step(&mut self, now: Instant) {
        let Self { hub, carrier, names, told, .. } = self;
        hub.handle_timeout(now);
        let answered = wait([Interest::read_if_any(names.fd())], Some(Duration::ZERO)).unwrap()[0].read;
        let mut hubs = Hubs { first: hub, others: &mut Workers::default() };
        names.follow(now, answered, &mut hubs, &mut |notice| told.push(notice.to_string()));
        carrier
            .receive(now, tunnel::path::CarrierId::FIRST, |from, _, datagram| {
                _ = hub.handle_datagram(now, from, Ecn::NotEct, datagram);
            })
            .unwrap();
        while let Some(transmit) = hub.poll_transmit(now, 1, false) {
            let sent = carrier.send(&transmit);
            hub.on_sent(now, sent);
        }
    }

    fn is_heard(&self, now: Instant) -> bool {
        self.hub.tunnel(self.id).unwrap().session().is_heard(now)
    }
}

#[test]
fn two_ends_meet_by_name() {
    let mut called = End::new(1, 2, "");
    let carrier::Carrier::Udp(socket) = &called.carrier else { panic!("UDP") };
    let port = socket.local_addr().unwrap().port();
    let mut caller = End::new(2, 1, &format!("endpoint = \"localhost:{port}\"\npin-endpoint = true\n"));
    assert_eq!(caller.hub.tunnel(caller.id).unwrap().session().called(), None);
    assert!(called.names.fd().is_none());
    let clock = Clock::start();
    while !(caller.is_heard(clock.now()) && called.is_heard(clock.now())) {
        caller.step(clock.now());
        called.step(clock.now());
        wait([Interest::read(called.carrier.as_fd())], Some(Duration::from_millis(1))).unwrap();
        assert!(clock.now() < Instant::ZERO + Duration::from_secs(60), "{:?}", caller.told);
    }
    assert_eq!(caller.told, [format!("peer localhost is now at 127.0.0.1:{port}")]);
}
