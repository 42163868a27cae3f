//! Two TCP hosts and a perfect wire of 250 ms: who drives the machines, and in which order. `cargo run -p longhaul-tcp --example two_hosts`

use std::collections::VecDeque;

use base::{Duration, Instant, Packet, Rng};
use longhaul_tcp::{Event, Host, TcpConfig};

/// One way.
const DELAY: Duration = Duration::from_millis(250);
const SIZE: usize = 1_000_000;

/// A host, and what is on its way to it.
struct End {
    host: Host,
    coming: VecDeque<(Instant, Packet)>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = TcpConfig::preset("linux").ok_or("no such preset")?;
    let mut ends = [1_u8, 2].map(|last| {
        let host = Host::new([10, 0, 0, last].into(), Rng::named(1, &format!("host {last}")));
        End { host, coming: VecDeque::new() }
    });
    let mut now = Instant::ZERO;
    ends[1].host.listen(80, &config)?;
    let call = ends[0].host.connect(now, ([10, 0, 0, 2], 80).into(), &config)?;

    let (data, mut written, mut received) = (vec![7; SIZE], 0, 0);
    while received < SIZE {
        // What a host has to say goes onto the wire, until neither has anything more.
        for from in [0, 1] {
            while let Some((id, event)) = ends[from].host.poll_event() {
                match event {
                    Event::Connected | Event::Writable => {
                        written += ends[0].host.write(now, id, &data[written..])?;
                    }
                    Event::Readable => {
                        let mut piece = [0; 65_536];
                        while let Ok(count @ 1..) = ends[from].host.read(now, id, &mut piece) {
                            received += count;
                        }
                    }
                    _ => {}
                }
            }
            while let Some(packet) = ends[from].host.poll_transmit(now) {
                ends[1 - from].coming.push_back((now + DELAY, packet));
            }
        }
        // Time goes to what happens next: a packet arrives, or a timer expires.
        let arrivals = ends.iter().filter_map(|end| Some(end.coming.front()?.0));
        let timers = ends.iter().filter_map(|end| end.host.poll_timeout());
        now = arrivals.chain(timers).min().ok_or("nothing left to happen")?;
        for end in &mut ends {
            while end.coming.front().is_some_and(|(at, _)| *at <= now) {
                let Some((_, packet)) = end.coming.pop_front() else { break };
                // Err says why a packet was of no use.
                let _ = end.host.handle_packet(now, &packet);
            }
            if end.host.poll_timeout().is_some_and(|due| due <= now) {
                end.host.handle_timeout(now);
            }
        }
    }
    let connection = ends[0].host.connection(call).ok_or("the connection has gone")?;
    let rtt = connection.srtt().unwrap_or_default();
    println!(
        "{received} bytes in {now}: round trips of {rtt}, a window of {} bytes at the end",
        connection.cwnd()
    );
    Ok(())
}
