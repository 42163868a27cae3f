//! Packets for terminals, sent into the hub's TUN device at a rate.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use base::{Duration, Instant, Rate, Serializer};
use gateway::clock::{Clock, sleep};

use crate::testbed::namespaces::Namespace;

/// Traffic that goes on until it is ended.
pub(super) struct Traffic {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<io::Result<f64>>>>,
}

/// Bytes of a packet, and of its payload.
const PACKET_LEN: usize = 1400;
const PAYLOAD_LEN: usize = PACKET_LEN - 28;
/// Packets to one host before the next has its turn: a window of TCP's first rounds (RFC 6928).
pub(super) const BURST: u32 = 10;
/// Between two looks at the clock.
const TICK: Duration = Duration::from_millis(1);

impl Traffic {
    /// Sends to the hosts with these numbers in turn, `burst` packets to each, from `namespace`.
    pub(super) fn start(
        namespace: &Namespace,
        hosts: Range<u32>,
        address: fn(u32) -> Ipv4Addr,
        rate: Rate,
        burst: u32,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = namespace.enter(move || send(hosts, address, (rate, burst), &asked))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends it; bytes of packets that were sent each second.
    pub(super) fn end(mut self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.thread.take().and_then(|thread| thread.join().ok());
        sent.and_then(Result::ok).and_then(Result::ok).unwrap_or(0.0)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn send(
    hosts: Range<u32>,
    address: fn(u32) -> Ipv4Addr,
    (rate, burst): (Rate, u32),
    stop: &AtomicBool,
) -> io::Result<f64> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_nonblocking(true)?;
    let (clock, mut line, payload) = (Clock::start(), Serializer::new(rate), [0; PAYLOAD_LEN]);
    let (mut host, mut in_burst, mut sent) = (hosts.start, 0, 0_u64);
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        while line.free_at() <= now {
            line.send(now.saturating_sub(TICK * 4), PACKET_LEN as u64 * 8);
            // What the device has no room for is lost, as any router's packets would be.
            if socket.send_to(&payload, SocketAddr::from((address(host), PORT))).is_ok() {
                sent += PACKET_LEN as u64;
            }
            in_burst += 1;
            if in_burst == burst {
                in_burst = 0;
                host = if host + 1 < hosts.end { host + 1 } else { hosts.start };
            }
        }
        sleep(TICK);
    }
    Ok(sent as f64 / clock.now().saturating_since(Instant::ZERO).as_secs_f64())
}

/// Discard (RFC 863).
const PORT: u16 = 9;
