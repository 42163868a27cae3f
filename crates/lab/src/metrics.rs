//! The measures that make channels comparable (Faulkner 2004, section 3.4).

use std::collections::BTreeSet;

use base::{Duration, Rate};
use channel::line;

use crate::scenario::Scenario;
use crate::scenario::topology::{Stage, Topology};

/// Channel periods, each the mean time of a blockage and of the open time before it, after which a mean over time is taken
/// for steady (Faulkner 2004, section 3.4.2).
pub const STEADY_PERIODS: u32 = 150;

/// Normalised throughput T: application bits per second over the channel's rate; `None` at rate zero.
#[must_use]
pub fn normalised_throughput(throughput_bps: f64, rate: Rate) -> Option<f64> {
    let rate = rate.as_bps() as f64;
    (rate > 0.0).then(|| throughput_bps / rate)
}

/// T/C: application bits per second over what errors leave of the channel's rate, which is the fraction `capacity` of
/// it; `None` if they leave nothing.
#[must_use]
pub fn throughput_per_capacity(throughput_bps: f64, rate: Rate, capacity: f64) -> Option<f64> {
    let left = rate.as_bps() as f64 * capacity;
    (left > 0.0).then(|| throughput_bps / left)
}

/// The direction of a link that limits all that a scenario sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    /// `link/down` towards the link's second end, `link/up` from it.
    pub direction: String,
    /// Bits per second, over all paths of the link together.
    pub rate: Rate,
    /// The channel's capacity in the long run as a fraction of the rate, its state known; `None` for a recording, which has no
    /// long run.
    pub capacity: Option<f64>,
}

/// The bottleneck of `scenario`: of all directions that its data crosses, the one with the least capacity, the first by name
/// among equals. `None` if some traffic passes it by, so that the goodput of all together says nothing about it, and if any
/// of those rates changes or a tunnel has several paths, so that there is no one rate to compare with.
#[must_use]
pub fn bottleneck(scenario: &Scenario) -> Option<Bottleneck> {
    let topology = Topology::new(scenario);
    let paths: Option<Vec<BTreeSet<(&str, bool)>>> = scenario
        .traffic
        .values()
        .map(|traffic| {
            let [from, to] = traffic.hosts();
            let path = topology.path(from, to).unwrap_or_default();
            path.iter().map(|stage| stage.only().map(|link| (link.name, !link.forward))).collect()
        })
        .collect();
    let paths = paths?;
    // At most what the rate is, where no capacity is known.
    let least = |&(name, backward): &(&str, bool)| {
        let carried = |line: line::Config| line.rate.as_bps() as f64 * line.errors.capacity().unwrap_or(1.0);
        lines(scenario, name, backward).map(carried).sum::<f64>()
    };
    let all: BTreeSet<_> = paths.iter().flatten().copied().collect();
    let changes = |line: line::Config| !line.rate_changes.is_empty();
    if all.iter().any(|&(name, backward)| lines(scenario, name, backward).any(changes)) {
        return None;
    }
    let (name, backward) = all.into_iter().min_by(|a, b| least(a).total_cmp(&least(b)))?;
    if !paths.iter().all(|path| path.contains(&(name, backward))) {
        return None;
    }
    let direction = format!("{name}/{}", if backward { "up" } else { "down" });
    let rate =
        lines(scenario, name, backward).fold(0, |sum: u64, line| sum.saturating_add(line.rate.as_bps()));
    let share = |line: line::Config| Some((line.rate.as_bps() as f64, line.errors.capacity()?));
    let shares: Option<Vec<_>> = lines(scenario, name, backward).map(share).collect();
    let capacity = shares.map(|shares| match shares[..] {
        [(_, capacity)] => capacity,
        _ => shares.iter().map(|(rate, capacity)| rate * capacity).sum::<f64>() / rate as f64,
    });
    Some(Bottleneck { direction, rate: Rate::from_bps(rate), capacity })
}

/// The longest mean period of blockages on the paths of the scenario's traffic, in either direction; `None` if none is ever
/// blocked, or only as recorded.
#[must_use]
pub fn longest_period(scenario: &Scenario) -> Option<Duration> {
    let topology = Topology::new(scenario);
    let paths = scenario.traffic.values().filter_map(|traffic| {
        let [from, to] = traffic.hosts();
        topology.path(from, to)
    });
    let stages: Vec<Stage<'_>> = paths.flatten().collect();
    let links: BTreeSet<&str> = stages.iter().flat_map(Stage::links).map(|crossing| crossing.name).collect();
    let directions = links.into_iter().flat_map(|name| [(name, false), (name, true)]);
    let lines = directions.flat_map(|(name, backward)| lines(scenario, name, backward));
    lines.filter_map(|line| line.errors.period()).max()
}

/// How many such periods `seconds` cover; `None` without one.
#[must_use]
pub fn channel_periods(scenario: &Scenario, seconds: f64) -> Option<f64> {
    Some(seconds / longest_period(scenario)?.as_secs_f64())
}

fn lines(scenario: &Scenario, name: &str, backward: bool) -> impl Iterator<Item = line::Config> {
    scenario.lines(&scenario.link[name], !backward)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::Suite;

    /// The thesis's own two examples.
    #[test]
    fn half_the_rate_is_half_the_throughput_and_all_of_a_half_open_channel() {
        let rate = Rate::from_bps(256_000);
        assert_eq!(normalised_throughput(128e3, rate), Some(0.5));
        assert_eq!(throughput_per_capacity(128e3, rate, 1.0), Some(0.5));
        assert_eq!(throughput_per_capacity(128e3, rate, 0.5), Some(1.0));
    }

    #[test]
    fn a_channel_that_carries_nothing_has_no_measure() {
        assert_eq!(normalised_throughput(0.0, Rate::from_bps(0)), None);
        assert_eq!(throughput_per_capacity(1.0, Rate::from_bps(256_000), 0.0), None);
    }

    /// A fast wire, and a slow link that is blocked.
    const LINKS: &str = "name = \"t\"\nduration = \"40 s\"\n\
         link.feeder = { ends = [\"a\", \"r\"], channel = { rate = \"10 Mbit/s\", delay = \"1 ms\" } }\n\
         link.sky = { ends = [\"r\", \"b\"], channel = { rate = \"1 Mbit/s\", up-rate = \"100 kbit/s\", delay = \"1 ms\", \
         errors = { gilbert-elliott = { f = 0.2, d = \"1 s\" } } } }\n";
    const DOWN: &str = "traffic.down.bulk = { from = \"a\", to = \"b\" }\n";
    const UP: &str = "traffic.up.bulk = { from = \"b\", to = \"a\" }\n";

    fn scenario(traffic: &str, set: &str) -> Scenario {
        let overrides = [set.parse().unwrap()];
        Suite::parse("t.toml", &format!("{LINKS}{traffic}"), Path::new(""), &overrides).unwrap().scenario
    }

    #[test]
    fn the_bottleneck_has_the_least_capacity_on_the_way() {
        let found = bottleneck(&scenario(DOWN, "seed=1")).unwrap();
        assert_eq!((found.direction.as_str(), found.rate), ("sky/down", Rate::from_bps(1_000_000)));
        assert!((found.capacity.unwrap() - 0.8).abs() < 1e-12);
        assert_eq!(bottleneck(&scenario(UP, "seed=1")).unwrap().direction, "sky/up");
        let slow = scenario(DOWN, "link.feeder.channel.rate=700 kbit/s");
        assert_eq!(bottleneck(&slow).unwrap().direction, "feeder/down");
        // 0.9 Mbit/s are less than 1, and more than what blockage leaves of it.
        let faster = scenario(DOWN, "link.feeder.channel.rate=900 kbit/s");
        assert_eq!(bottleneck(&faster).unwrap().direction, "sky/down");
    }

    #[test]
    fn traffic_in_both_directions_has_no_common_bottleneck() {
        assert_eq!(bottleneck(&scenario(&format!("{DOWN}{UP}"), "seed=1")), None);
    }

    #[test]
    fn the_slowest_blockages_decide_what_a_run_covers() {
        let covered = |set| channel_periods(&scenario(DOWN, set), 40.0);
        assert_eq!(covered("seed=1"), Some(8.0));
        // The acknowledgements' direction counts as well.
        assert_eq!(
            covered("link.sky.channel.up-errors={ gilbert-elliott = { f = 0.2, d = \"2 s\" } }"),
            Some(4.0)
        );
        assert_eq!(covered("link.sky.channel.errors=none"), None);
    }
}
