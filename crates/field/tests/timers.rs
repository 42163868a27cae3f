//! A link-layer protocol with timers in the daemon's event loop: two gateways in network namespaces, on a serial line that
//! loses bytes. Needs root; see `skipped`.

#[path = "../../lab/tests/repeater/mod.rs"]
mod repeater;
#[path = "../../cli/tests/requirements/mod.rs"]
mod requirements;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use base::{Duration, Rng};
use field::testbed::namespaces::{Namespace, check_namespaces};
use field::testbed::null_modem::NullModem;
use gateway::clock::sleep;
use gateway::config::Config;
use gateway::daemon::{Gateway, GatewayError};
use gateway::signals::Signals;
use link::LineLimits;
use longhaul_field as field;
use repeater::Repeater;
use tunnel::key::PrivateKey;

/// Datagrams that cross.
const COUNT: u8 = 30;

/// A namespace that goes away with its value.
struct Site(Namespace);

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.0.delete();
    }
}

/// Who the gateway at an end is.
fn key(end: usize) -> PrivateKey {
    PrivateKey::from_bytes([end as u8 + 1; 32])
}

/// Runs a gateway at one end of the line, until that is gone.
fn start(site: &Site, modem: &NullModem, end: usize) -> JoinHandle<std::io::Result<GatewayError>> {
    let text = format!(
        "[tun]\nname = \"sat0\"\naddresses = [\"10.77.31.{}/30\"]\nmtu = 600\n\
         [carrier.serial]\ndevice = {:?}\nbaud = 1000000\n[link]\nprotocol = \"plain\"\ndatagram-age = \"none\"\n\
         [identity]\nprivate-key = \"{}\"\n[[peer]]\npublic-key = \"{}\"\n",
        end + 1,
        modem.device(end),
        *key(end).to_base64(),
        key(1 - end).public(),
    );
    let config = Config::parse("site.toml", &text).unwrap();
    let run = move || {
        let rate = config.link.rate.fixed();
        let line = LineLimits::new(config.carrier.limits().frame_limit(), rate);
        let (round_trip, hold) = (Duration::from_millis(100), Duration::from_millis(5));
        let endpoint = Box::new(Repeater::new(line, round_trip, hold));
        let mut gateway = Gateway::with_endpoint(config, endpoint).unwrap();
        let mut signals = Signals::new().unwrap();
        gateway.run(&mut signals, |_| ()).unwrap_err()
    };
    site.0.enter(run).unwrap()
}

/// Carries bytes between the ends and loses a tenth of what is read at once, until told.
fn carry(mut modem: NullModem, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut rng = Rng::named(1, "losses");
        while !stop.load(Ordering::Relaxed) {
            let lose = |_, bytes: &mut Vec<u8>| {
                if rng.chance(0.1) {
                    bytes.clear();
                }
            };
            modem.carry(Duration::from_millis(20), lose).unwrap();
        }
    })
}

/// Each datagram arrives, in order: what is lost only a time-out sends again, and what arrives only a time-out releases.
#[test]
fn the_daemon_serves_a_protocol_with_timers() {
    let name = format!("t{}-timers", std::process::id());
    let reason = check_namespaces(&format!("{name}-probe")).err().map(|error| error.to_string());
    if requirements::skipped("the_daemon_serves_a_protocol_with_timers", reason) {
        return;
    }
    let modem = NullModem::open().unwrap();
    let sites = ["a", "b"].map(|side| Site(Namespace::new(format!("{name}{side}"))));
    for site in &sites {
        site.0.add().unwrap();
    }
    let gateways = [0, 1].map(|end| start(&sites[end], &modem, end));
    let stop = Arc::new(AtomicBool::new(false));
    let line = carry(modem, Arc::clone(&stop));
    // The devices come up with the gateways.
    for site in &sites {
        (0..500)
            .find(|_| {
                site.0.has_device("sat0") || {
                    sleep(Duration::from_millis(20));
                    false
                }
            })
            .unwrap();
    }
    let bound = |end: usize| {
        let address = format!("10.77.31.{}:7001", end + 1);
        let bind = move || {
            (0..500).find_map(|_| {
                let socket = UdpSocket::bind(&address).ok();
                if socket.is_none() {
                    sleep(Duration::from_millis(20));
                }
                socket
            })
        };
        sites[end].0.enter(bind).unwrap().join().unwrap().unwrap().expect("the device has its address")
    };
    let (from, to) = (bound(0), bound(1));
    to.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    for number in 0..COUNT {
        from.send_to(&[number; 300], "10.77.31.2:7001").unwrap();
    }
    let mut received = Vec::new();
    let mut bytes = [0; 400];
    while received.len() < usize::from(COUNT) {
        let (len, _) = to.recv_from(&mut bytes).expect("the next datagram");
        assert!(bytes[..len] == [bytes[0]; 300]);
        received.push(bytes[0]);
    }
    assert_eq!(received, (0..COUNT).collect::<Vec<_>>());
    // Without its line a gateway ends.
    stop.store(true, Ordering::Relaxed);
    line.join().unwrap();
    for gateway in gateways {
        gateway.join().unwrap().unwrap();
    }
}
