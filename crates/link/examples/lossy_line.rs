//! Two ends of coded ARQ over a line that loses a tenth of all frames: the line clocks the ends. `cargo run -p longhaul-link --example lossy_line`

use std::collections::VecDeque;

use base::{Duration, Instant, Packet, Rate, Rng};
use longhaul_link::{Demand, Endpoint, LineLimits, Protocol, Treatment};

/// One way.
const DELAY: Duration = Duration::from_millis(250);
const RATE: Rate = Rate::from_bps(1_000_000);
const LOSS: f64 = 0.1;
const PACKETS: usize = 1000;
/// Bytes of each.
const LEN: usize = 1000;

/// One end, when its line is free, and the frames on their way to it.
struct End {
    endpoint: Box<dyn Endpoint>,
    free_at: Instant,
    coming: VecDeque<(Instant, Vec<u8>)>,
}

fn main() {
    let line = LineLimits::new(1500, Some(RATE));
    let protocol = Protocol::Coded(Default::default());
    let mut ends = [(); 2].map(|()| End {
        endpoint: protocol.build(&line),
        free_at: Instant::ZERO,
        coming: VecDeque::new(),
    });
    let mut rng = Rng::named(1, "losses");
    let (mut now, mut offered, mut delivered) = (Instant::ZERO, 0, 0);
    while delivered < PACKETS {
        let [first, _] = &mut ends;
        while offered < PACKETS && first.endpoint.has_room(Treatment::Reliable) {
            // IPv4's first byte: the protocol looks for the flow that a packet belongs to.
            let mut packet = vec![0; LEN];
            packet[0] = 0x45;
            let taken = first.endpoint.offer(now, Packet::from_slice(&packet), Treatment::Reliable);
            assert!(taken.is_ok(), "there was room");
            offered += 1;
        }
        for from in [0, 1] {
            let end = &mut ends[from];
            // A free line asks its end for a frame, at the last moment.
            if end.free_at <= now && end.endpoint.demand(now) != Demand::Nothing {
                let mut frame = Vec::new();
                if end.endpoint.poll_frame(now, &mut frame).is_some() {
                    end.endpoint.seal_frame(now, &mut frame);
                    end.free_at = now + RATE.time_for(8 * frame.len() as u64);
                    let arrives_at = end.free_at + DELAY;
                    if !rng.chance(LOSS) {
                        ends[1 - from].coming.push_back((arrives_at, frame));
                    }
                }
            }
        }
        let wanting = ends.iter().filter(|end| end.endpoint.demand(now) != Demand::Nothing);
        let free = wanting.map(|end| end.free_at).filter(|at| *at > now);
        let arrivals = ends.iter().filter_map(|end| Some(end.coming.front()?.0));
        let timers = ends.iter().filter_map(|end| end.endpoint.poll_timeout()).filter(|at| *at > now);
        now = free.chain(arrivals).chain(timers).min().expect("something is left to happen");
        for end in &mut ends {
            end.endpoint.handle_timeout(now);
            while end.coming.front().is_some_and(|(at, _)| *at <= now) {
                let Some((_, frame)) = end.coming.pop_front() else { break };
                // Err says why a frame was of no use.
                let _ = end.endpoint.handle_frame(now, &frame);
            }
            while end.endpoint.poll_packet().is_some() {
                delivered += 1;
            }
        }
    }
    let seconds = now.as_secs_f64();
    let goodput = (PACKETS * LEN * 8) as f64 / seconds / RATE.as_bps() as f64;
    println!(
        "{delivered} packets in {seconds:.1} s: {:.0} % of the line, which loses {:.0} %",
        100.0 * goodput,
        100.0 * LOSS
    );
    for (name, count) in ends[0].endpoint.counters().iter().filter(|(_, count)| *count > 0) {
        println!("{name:>24} {count}");
    }
}
