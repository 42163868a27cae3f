//! Loss-Tolerant TCP beside Reno where nothing marks: neither starves.

use crate::shared::{Line, Shared};
use base::{Duration, Rate};
use longhaul_tcp::config::EcnUse;
use longhaul_tcp::{Congestion, TcpConfig};

fn reno() -> TcpConfig {
    TcpConfig::preset("rfc").unwrap().with(|it| {
        it.congestion = Congestion::Reno;
        it.timestamps = false;
        it.ecn = EcnUse::Off;
    })
}

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Packets of 1500 bytes that a line of 20 Mbit/s holds in a round trip.
const PRODUCT: usize = 167;

/// Mean goodputs of the two halves of the flows, in Mbit/s.
fn halves(queue: usize, first: &TcpConfig, second: &TcpConfig, (each, seed): (usize, u64)) -> [f64; 2] {
    let line = Line { rate: Rate::from_bps(20_000_000), latency: ROUND_TRIP / 2, queue, erasures: 0.0 };
    let configs: Vec<&TcpConfig> = (0..2 * each).map(|at| if at % 2 == 0 { first } else { second }).collect();
    let mut shared = Shared::new(line, &configs, seed);
    let goodputs = shared.goodputs(Duration::from_secs(10), Duration::from_secs(70));
    let mean = |odd: usize| goodputs.iter().skip(odd).step_by(2).sum::<f64>() / each as f64 / 1e6;
    [mean(0), mean(1)]
}

/// Beside each other, and each preset beside Reno, in a queue of so many packets.
fn compare(queue: usize) {
    for each in [1, 4] {
        let mean = |first: &TcpConfig| {
            let runs = (1..=2).map(|seed| halves(queue, first, &reno(), (each, seed)));
            runs.fold([0.0; 2], |sum, it| [sum[0] + it[0] / 2.0, sum[1] + it[1] / 2.0])
        };
        let among = mean(&reno())[1];
        for preset in ["lt-tcp", "lt-tcp-plus"] {
            let [lt, reno] = mean(&TcpConfig::preset(preset).unwrap());
            let told = format!(
                "{queue} packets, {each} of each: {preset} {lt:.2}, Reno {reno:.2}, beside Reno {among:.2} Mbit/s"
            );
            println!("{told}");
            assert!(reno > among / 2.0 && lt > among / 10.0, "{told}");
        }
    }
}

/// Goal: beside Loss-Tolerant TCP, Reno keeps at least half of what it has beside Reno, and does not starve the other, in a queue of one
/// bandwidth-delay product.
#[test]
fn reno_keeps_half_in_a_long_queue() {
    compare(PRODUCT);
}

/// Goal: the same in a quarter of that.
#[test]
fn reno_keeps_half_in_a_short_queue() {
    compare(PRODUCT / 4);
}

/// Goal: erasures on an idle line are no congestion, though nothing marks and there is room for a queue.
#[test]
fn erasures_alone_are_no_congestion() {
    let alone = |config: &TcpConfig| {
        let rate = Rate::from_bps(20_000_000);
        let line = Line { rate, latency: ROUND_TRIP / 2, queue: PRODUCT, erasures: 0.05 };
        Shared::new(line, &[config], 1).goodputs(Duration::from_secs(20), Duration::from_secs(60))[0] / 1e6
    };
    let plain = alone(&reno());
    for preset in ["lt-tcp", "lt-tcp-plus"] {
        let coded = alone(&TcpConfig::preset(preset).unwrap());
        println!("{preset} {coded:.2}, Reno {plain:.2} Mbit/s");
        assert!(coded > 5.0 * plain, "{preset} {coded:.2}, Reno {plain:.2} Mbit/s");
    }
}
