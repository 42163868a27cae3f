//! Loss-Tolerant TCP beside Reno where nothing marks: neither starves.

mod shared;

use base::{Duration, Rate};
use longhaul_tcp::config::EcnUse;
use longhaul_tcp::{Congestion, TcpConfig};
use shared::{Line, Shared};

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
    let goodputs = shared.goodputs(Duration::from_secs(20), Duration::from_secs(140));
    let mean = |odd: usize| goodputs.iter().skip(odd).step_by(2).sum::<f64>() / each as f64 / 1e6;
    [mean(0), mean(1)]
}

/// Goal: beside Loss-Tolerant TCP, Reno keeps at least half of what it has beside Reno, and does not starve the other.
#[test]
fn reno_keeps_half_where_nothing_marks() {
    let mut failed = Vec::new();
    for (queue, name) in [(PRODUCT, "one product"), (PRODUCT / 4, "a quarter")] {
        for each in [1, 2, 4] {
            let among: f64 =
                (1..=3).map(|seed| halves(queue, &reno(), &reno(), (each, seed))[1]).sum::<f64>() / 3.0;
            for preset in ["lt-tcp", "lt-tcp-plus"] {
                let lt = TcpConfig::preset(preset).unwrap();
                let runs = (1..=3).map(|seed| halves(queue, &lt, &reno(), (each, seed)));
                let [lt, reno] = runs.fold([0.0; 2], |sum, it| [sum[0] + it[0] / 3.0, sum[1] + it[1] / 3.0]);
                println!(
                    "{name}, {each} of each: {preset} {lt:.2}, Reno {reno:.2}, Reno beside Reno {among:.2} Mbit/s"
                );
                if reno < among / 2.0 || lt < among / 10.0 {
                    failed.push((name, each, preset));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
