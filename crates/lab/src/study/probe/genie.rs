//! The least delay that a channel allows: what a sender would do that a genie told at once which packets are lost.

use std::io;

use base::wire::{ip, udp};
use base::{Duration, Instant, Rate};

use super::{Method, Probe, Trial};
use crate::claims::Measurements;
use crate::scenario::topology::{Crossing, Topology};
use crate::scenario::{RateSource, Scenario, Traffic, Transport};
use crate::statistics::quantile;

/// `genie_L(name)` and `genie_L_99(name)`: mean and 99th percentile of what `L(name)` and `L_99(name)` of the probe `latency` measure, in seconds,
/// for a source of datagrams across one link, if each datagram went out alone, without framing, as often as this very realisation of the channel
/// takes, and the sender knew at once. No protocol can be faster in order on average that sends each datagram as a whole.
pub(super) const GENIE: Probe = Probe {
    name: "genie",
    version: 1,
    quantities: &["genie_L", "genie_L_99"],
    series: &[],
    method: Method::Trial(measure),
};

fn measure(trial: &Trial<'_>, measured: &mut Measurements) -> io::Result<()> {
    let scenario = trial.scenario();
    for (name, traffic) in &scenario.traffic {
        let Traffic::Rate(source @ RateSource { transport: Transport::Udp, .. }) = traffic else { continue };
        let mut seconds = latencies(scenario, source, trial.seed).unwrap_or_default();
        seconds.sort_by(f64::total_cmp);
        let mean = (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64);
        let late = (!seconds.is_empty()).then(|| quantile(&seconds, 0.99));
        let reason = "it crosses other than one link with one path, or nothing came";
        measured.set_or("genie_L", &[name.as_str().into()], mean, reason);
        measured.set_or("genie_L_99", &[name.as_str().into()], late, reason);
    }
    Ok(())
}

/// How long each record takes that comes within the run; `None` where the way is not one link with one path.
fn latencies(scenario: &Scenario, source: &RateSource, seed: u64) -> Option<Vec<f64>> {
    let path = Topology::new(scenario).path(&source.from, &source.to)?;
    let [only] = &path[..] else { return None };
    let Crossing { name, link, forward, tunnel: None } = only.only()? else { return None };
    let direction = if forward { "down" } else { "up" };
    let streams = link.channel.streams(seed, name, direction);
    if !link.path.is_empty() {
        return None;
    }
    let mut line = scenario.line(link, &link.channel, forward).build(&streams);
    let headers = ip::header_len_for(scenario.network.address(0)) + udp::HEADER_LEN;
    let bits = (headers as u64 + source.record.0) as u32 * 8;
    let end = Instant::ZERO + scenario.duration;
    let start = Instant::ZERO + source.start;
    let mut seconds = Vec::new();
    for number in 0.. {
        let generated = start + due(source.rate, source.record.0, number);
        let arrives_at = loop {
            let transit = line.send(generated, bits);
            if transit.arrives_at > end {
                return Some(seconds);
            }
            if transit.fate.is_intact() {
                break transit.arrives_at;
            }
        };
        seconds.push((arrives_at - generated).as_secs_f64());
    }
    Some(seconds)
}

/// When the record with this number is generated.
fn due(rate: Rate, record: u64, number: u64) -> Duration {
    rate.time_for(record.saturating_mul(8).saturating_mul(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Suite;
    use std::path::Path;

    fn seconds(errors: &str) -> Vec<f64> {
        let text = format!(
            "name = \"t\"\nduration = \"100 s\"\n\
             [link.l]\nends = [\"a\", \"b\"]\nchannel = {{ rate = \"100 kbit/s\", delay = \"250 ms\", errors = {errors} }}\n\
             [traffic.t.rate]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nrate = \"50 kbit/s\"\nrecord = \"472 B\"\n"
        );
        let suite = Suite::parse("t.toml", &text, Path::new(""), &[]).unwrap();
        let Traffic::Rate(source) = &suite.scenario.traffic["t"] else { panic!("a source") };
        latencies(&suite.scenario, source, 1).unwrap()
    }

    /// 500 bytes at 100 kbit/s take 40 ms; a record every 75.52 ms.
    #[test]
    fn without_errors_it_is_propagation_and_the_line() {
        let all = seconds("\"none\"");
        assert_eq!(all.len(), 1321);
        assert!(all.iter().all(|seconds| (seconds - 0.29).abs() < 1e-9));
    }

    /// The first blocked second holds up what was generated in it, and the queue that it leaves is worked off.
    #[test]
    fn what_is_lost_goes_again_at_once() {
        let all = seconds("{ periodic = { first = \"10 s\", open = \"1 h\", blocked = \"1 s\" } }");
        let longest = all.iter().copied().fold(0.0, f64::max);
        assert!((1.2..1.4).contains(&longest), "{longest}");
        let late = all.iter().filter(|seconds| **seconds > 0.2901).count();
        // A backlog of 13 records goes down by 35.5 ms with each: 28 or so.
        assert!((25..=32).contains(&late), "{late}");
    }
}
