//! A host with an open connection against packets made of random bytes, with mended checksums.

#![no_main]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::wire::checksum::Sum;
use base::wire::ip::{Ecn, Protocol, Repr as IpRepr};
use base::{Duration, Instant, Rng};
use libfuzzer_sys::fuzz_target;
use tcp::{Host, TcpConfig};

fuzz_target!(|bytes: &[u8]| {
    let (here, there) = (IpAddr::from(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::from(Ipv4Addr::new(10, 0, 0, 2)));
    // Cookies and want of memory are within reach.
    let config = TcpConfig::default().with(|it| it.limits.backlog = 1);
    let mut host = Host::new(here, Rng::named(1, "fuzz"));
    host.listen(7, &config).expect("a free port");
    host.limit_memory(1 << 16);
    let mut now = Instant::ZERO;
    let opened = host.connect(now, SocketAddr::new(there, 80), &config);
    let local = host.poll_transmit(now).map_or([0, 0], |syn| [syn[20], syn[21]]);
    for chunk in bytes.chunks(48) {
        let Some((&control, rest)) = chunk.split_first() else { return };
        now += Duration::from_millis(u64::from(control));
        let mut segment = vec![0; 20];
        segment.extend_from_slice(rest.get(20..).unwrap_or(&[]));
        let head = rest.len().min(20);
        segment[..head].copy_from_slice(&rest[..head]);
        // Mostly hit the connection or the listener.
        segment[..2].copy_from_slice(&(80 + u16::from(control >> 1 & 3)).to_be_bytes());
        segment[2..4].copy_from_slice(&if control & 1 == 0 { local } else { [0, 7] });
        segment[16..18].fill(0);
        let sum = Sum::pseudo_header(there, here, 6, segment.len()).and(Sum::of(&segment)).finish();
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        let ip = IpRepr::new(there, here, Protocol::TCP, Ecn::NotEct, segment.len());
        let mut packet = vec![0; ip.header_len()];
        ip.emit(&mut packet);
        packet.extend_from_slice(&segment);
        let _ = host.handle_packet(now, &packet);
        if host.poll_timeout().is_some_and(|due| due <= now) {
            host.handle_timeout(now);
        }
        if let Ok(id) = opened {
            let mut buffer = [0; 64];
            let _ = host.write(now, id, &buffer[..usize::from(control % 64)]);
            let _ = host.read(now, id, &mut buffer);
            if control == 255 {
                let _ = host.close(now, id);
            }
        }
        while host.poll_event().is_some() {}
        // Bounded by the window; a host that never falls silent is a bug that the fuzzer's time limit finds.
        while host.poll_transmit(now).is_some() {}
    }
});
