//! Probe.
mod pair;
use base::Duration;
use longhaul_tcp::{Event, TcpConfig};
use pair::{Pair, Path};
#[test]
fn probe() {
    for (cong, more) in [("\"reno\"", ""), ("{ cubic = { variant = \"linux\" } }", "")] {
        let config: TcpConfig = base::config::parse("t.toml", &format!("preset = \"linux\"\ncongestion = {cong}\nmss = 1460\n{more}\n")).unwrap();
        let (mut times, mut touts, mut tlps, mut rec, mut spur) = (vec![], 0, 0, 0, 0);
        for seed in 1..=60 {
            let path = Path { loss: 0.1, ..Path::clean(10) }.through(10_000, 17);
            let mut pair = Pair::new(seed, path, &config);
            pair.connect(&config);
            pair.ends[1].to_send = 3_000_000;
            pair.ends[1].finish = true;
            assert!(pair.run_until(Duration::from_secs(200), |pair| pair.saw(0, Event::PeerFinished)));
            times.push(pair.now.as_nanos() as f64 / 1e9);
            let s = pair.connection(1).statistics();
            touts += s.timeouts; tlps += s.tail_probes; rec += s.recoveries; spur += s.spurious_timeouts;
        }
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        times.sort_by(f64::total_cmp);
        println!("{cong} {more}: mean {mean:.2} median {:.2}; time-outs {touts}, probes {tlps}, recoveries {rec}, spurious {spur}", times[times.len() / 2]);
    }
}
