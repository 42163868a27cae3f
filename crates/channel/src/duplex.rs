//! The two lines between a hub and a terminal.
//!
//! Blockage is at the terminal: the obstacle that hides the satellite hits what arrives there and what departs
//! there at the same time. "Errors are perfectly correlated between directions, because blockage will apply to
//! both" (Faulkner 2004, 3.2); `correlated = false` gives each direction blockages of its own. Bit errors
//! and erasures are independent either way.

mod check;

use core::fmt::Display;

use base::config::ConfigError;
use base::units::above_zero;
use base::{Duration, Instant, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

pub use check::Complaint;

use crate::line::{self, End, Line, RateChange};
use crate::model::{ErrorModel, Streams};
use crate::path::{self, DelayChange, DelaySlots, Jitter, LargestPacket, Policer};

/// A channel as a scenario describes it.
///
/// ```toml
/// rate = "262144 bit/s"   # towards the terminal
/// up-rate = "64 kbit/s"   # from it; default: the same as rate
/// rate-changes = [{ at = "30 s", rate = "64 kbit/s" }]    # default: none; each may have an up-rate too
/// delay = "250 ms"        # one way
/// errors = { gilbert-elliott = { f = 0.3, d = "1 s" } }
/// up-errors = "none"      # default: the same as errors
/// correlated = true       # one obstacle: blocked at the same times, if both directions have the same errors
/// delay-changes = [{ at = "30 s", delay = "200 ms", over = "10 s" }]  # default: none; over is "0 s" unless told
/// delay-slots = { every = "15 s", more = ["0 ms", "8 ms"], gap = "60 ms" }    # default: none
/// jitter = { in-order = { up-to = "20 ms" } }     # default: none; up-jitter from the terminal
/// largest-packet = { bytes = 1280, says = true }  # default: any; up-largest-packet from the terminal
/// policer = { rate = "5 Mbit/s", burst = "15 kB" }    # default: none; up-policer from the terminal
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Channel")]
pub struct Config {
    /// Bits per second towards the terminal; above 0.
    #[serde(deserialize_with = "positive")]
    #[schemars(transform = above_zero)]
    pub rate: Rate,
    /// Bits per second from the terminal, above 0. Default: the same as towards it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "none_or_positive")]
    #[schemars(transform = above_zero)]
    pub up_rate: Option<Rate>,
    /// Changes of the rate during a run, in the order of their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_changes: Vec<Change>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Error model towards the terminal.
    #[serde(default)]
    pub errors: ErrorModel,
    /// Error model from the terminal. Default: the same as towards it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_errors: Option<ErrorModel>,
    /// Whether one obstacle blocks both directions.
    #[serde(default = "correlated")]
    pub correlated: bool,
    /// Changes of the propagation delay during a run, in the order of their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delay_changes: Vec<DelayChange>,
    /// Time that is added to the delay slot by slot. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_slots: Option<DelaySlots>,
    /// Whether packets overtake those sent before them when the delay falls. Default: these arrive first.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub overtaking: bool,
    /// Random additions to the delay towards the terminal.
    #[serde(default, skip_serializing_if = "Jitter::is_none")]
    pub jitter: Jitter,
    /// Random additions to the delay from the terminal. Default: the same as towards it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_jitter: Option<Jitter>,
    /// The longest packet that is carried towards the terminal. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_packet: Option<LargestPacket>,
    /// The longest packet that is carried from the terminal. Default: the same as towards it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_largest_packet: Option<LargestPacket>,
    /// Drops what exceeds a rate and a burst, in front of the queue towards the terminal. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policer: Option<Policer>,
    /// The policer from the terminal. Default: the same as towards it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_policer: Option<Policer>,
}

/// A line that carries nothing at all is a slip; for a time, `rate-changes` may set 0.
fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
    let rate = Rate::deserialize(deserializer)?;
    if rate.as_bps() == 0 {
        return Err(de::Error::custom(
            "a rate of zero; allowed are rates above 0 (rate-changes may set 0 for a time)",
        ));
    }
    Ok(rate)
}

fn none_or_positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rate>, D::Error> {
    positive(deserializer).map(Some)
}

/// From a time on the lines have other rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "RateChange")]
pub struct Change {
    /// Time since the start of the run; the rate changes at once, even within a frame.
    pub at: Duration,
    /// Bits per second towards the terminal.
    pub rate: Rate,
    /// Bits per second from the terminal. Default: unchanged where the channel has an `up-rate`, otherwise the same as
    /// towards it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_rate: Option<Rate>,
}

/// The two directions between a hub and a terminal.
#[derive(Debug)]
pub struct Channel {
    /// Towards the terminal.
    pub down: Line,
    /// From the terminal.
    pub up: Line,
}

impl Config {
    /// Whether chance has a part in what happens on it, in either direction: errors of any model, or jitter.
    #[must_use]
    pub fn is_random(&self) -> bool {
        let errs = |errors: &ErrorModel| *errors != ErrorModel::None;
        let jitters = |jitter: &Jitter| !jitter.is_none();
        errs(&self.errors)
            || self.up_errors.as_ref().is_some_and(errs)
            || jitters(&self.jitter)
            || self.up_jitter.as_ref().is_some_and(jitters)
    }

    /// Reads the files that the errors of either direction name, through `read`.
    ///
    /// # Errors
    /// As [`ErrorModel::load`]: names the file, the line and what is allowed.
    pub fn load<E: Display>(
        &mut self,
        mut read: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<(), ConfigError> {
        self.errors.load(&mut read)?;
        self.up_errors.as_mut().map_or(Ok(()), |errors| errors.load(&mut read))
    }

    /// Both lines, idle. The channel's `name` and the run's `seed` fix every error.
    ///
    /// # Panics
    /// If the errors name a recording that was not [loaded](ErrorModel::load).
    #[must_use]
    pub fn build(&self, seed: u64, name: &str) -> Channel {
        Channel {
            down: self.down().build(&self.streams(seed, name, "down")),
            up: self.up().build(&self.streams(seed, name, "up")),
        }
    }

    /// The line towards the terminal: errors at arrival.
    #[must_use]
    pub fn down(&self) -> line::Config {
        line::Config {
            rate: self.rate,
            rate_changes: self.rate_changes(|change| Some(change.rate)),
            delay: self.delay,
            errors: self.errors.clone(),
            errors_at: End::Arrival,
            path: self.path(self.jitter, self.largest_packet, self.policer),
        }
    }

    /// The line from the terminal: errors at departure.
    #[must_use]
    pub fn up(&self) -> line::Config {
        line::Config {
            rate: self.up_rate.unwrap_or(self.rate),
            rate_changes: self.rate_changes(|change| {
                change.up_rate.or(if self.up_rate.is_none() { Some(change.rate) } else { None })
            }),
            delay: self.delay,
            errors: self.up_errors.as_ref().unwrap_or(&self.errors).clone(),
            errors_at: End::Departure,
            path: self.path(
                self.up_jitter.unwrap_or(self.jitter),
                self.up_largest_packet.or(self.largest_packet),
                self.up_policer.or(self.policer),
            ),
        }
    }

    fn path(
        &self,
        jitter: Jitter,
        largest_packet: Option<LargestPacket>,
        policer: Option<Policer>,
    ) -> path::Config {
        path::Config {
            delay_changes: self.delay_changes.clone(),
            delay_slots: self.delay_slots.clone(),
            overtaking: self.overtaking,
            jitter,
            largest_packet,
            policer,
        }
    }

    /// The shortest time from departure to arrival, whatever the delay changes to.
    #[must_use]
    pub fn least_delay(&self) -> Duration {
        let delay = self.delay_changes.iter().map(|change| change.delay).fold(self.delay, Duration::min);
        delay.saturating_add(self.slots().min().unwrap_or_default())
    }

    /// The longest time from departure to arrival, jitter of either direction included.
    #[must_use]
    pub fn greatest_delay(&self) -> Duration {
        let delay = self.delay_changes.iter().map(|change| change.delay).fold(self.delay, Duration::max);
        let jitter = self.up_jitter.map_or(Duration::ZERO, |jitter| jitter.longest());
        let slot = self.slots().max().unwrap_or_default();
        delay.saturating_add(slot).saturating_add(self.jitter.longest().max(jitter))
    }

    fn slots(&self) -> impl Iterator<Item = Duration> {
        self.delay_slots.iter().flat_map(|slots| slots.more.iter().copied())
    }

    fn rate_changes(&self, rate: impl Fn(&Change) -> Option<Rate>) -> Vec<RateChange> {
        let change = |change: &Change| {
            let at = Instant::ZERO.saturating_add(change.at);
            rate(change).map(|rate| RateChange { at, rate })
        };
        self.rate_changes.iter().filter_map(change).collect()
    }

    /// Where the random numbers of a `direction`, `"down"` or `"up"`, come from.
    #[must_use]
    pub fn streams(&self, seed: u64, name: &str, direction: &str) -> Streams {
        let line = format!("{name}/{direction}");
        let timeline = if self.correlated { name.to_owned() } else { line.clone() };
        Streams { seed, timeline, later: Duration::ZERO, line }
    }
}

const fn correlated() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ops::Range;

    fn channel(extra: &str, seed: u64) -> Channel {
        let text = format!(
            "rate = \"262144 bit/s\"\ndelay = \"250 ms\"\n\
             errors = {{ gilbert-elliott = {{ f = 0.3, d = \"1 s\" }} }}\n{extra}"
        );
        base::config::parse::<Config>("channel.toml", &text).unwrap().build(seed, "sat")
    }

    fn config(extra: &str) -> Config {
        let text = format!("rate = \"1 Mbit/s\"\ndelay = \"100 ms\"\n{extra}");
        base::config::parse("channel.toml", &text).unwrap()
    }

    #[test]
    fn errors_or_jitter_of_either_direction_are_random() {
        let erasure = "errors = { erasure = { probability = 0.1 } }";
        let jitter = "jitter = { in-order = { up-to = \"1 ms\" } }";
        for (extra, is_random) in [
            (String::new(), false),
            ("up-errors = \"none\"\nup-jitter = \"none\"".to_owned(), false),
            (erasure.to_owned(), true),
            (format!("up-{erasure}"), true),
            (jitter.to_owned(), true),
            (format!("up-{jitter}"), true),
        ] {
            assert_eq!(config(&extra).is_random(), is_random, "{extra}");
        }
    }

    #[test]
    fn delays_are_within_the_least_and_the_greatest() {
        let changes =
            "delay-changes = [{ at = \"1 s\", delay = \"40 ms\" }, { at = \"2 s\", delay = \"300 ms\" }]\n";
        let slots = "delay-slots = { every = \"15 s\", more = [\"5 ms\", \"20 ms\", \"3 ms\"] }\n";
        let jitter = "jitter = { in-order = { up-to = \"7 ms\" } }\n";
        let more = "up-jitter = { overtaking = { probability = 0.1, from = \"1 ms\", to = \"50 ms\" } }\n";
        for (extra, least, greatest) in [
            (String::new(), 100, 100),
            (changes.to_owned(), 40, 300),
            (slots.to_owned(), 103, 120),
            (jitter.to_owned(), 100, 107),
            (format!("{changes}{slots}{jitter}{more}"), 43, 370),
        ] {
            let config = config(&extra);
            assert_eq!(
                (config.least_delay().as_millis(), config.greatest_delay().as_millis()),
                (least, greatest),
                "{extra}"
            );
        }
    }

    #[test]
    fn the_keys_of_a_path_are_found_one_by_one() {
        for (extra, key, overtakes, says) in [
            ("delay-changes = [{ at = \"1 s\", delay = \"40 ms\" }]", "delay-changes", false, false),
            ("delay-slots = { every = \"15 s\", more = [\"5 ms\"] }", "delay-slots", false, false),
            ("overtaking = true", "overtaking", true, false),
            ("jitter = { in-order = { up-to = \"7 ms\" } }", "jitter", false, false),
            (
                "jitter = { overtaking = { probability = 1, from = \"1 ms\", to = \"2 ms\" } }",
                "jitter",
                true,
                false,
            ),
            (
                "up-jitter = { overtaking = { probability = 1, from = \"1 ms\", to = \"2 ms\" } }",
                "up-jitter",
                true,
                false,
            ),
            ("largest-packet = { bytes = 1280 }", "largest-packet", false, false),
            ("largest-packet = { bytes = 1280, says = true }", "largest-packet", false, true),
            ("up-largest-packet = { bytes = 1280, says = true }", "up-largest-packet", false, true),
            ("policer = { rate = \"1 Mbit/s\", burst = \"3 kB\" }", "policer", false, false),
            ("up-policer = { rate = \"1 Mbit/s\", burst = \"3 kB\" }", "up-policer", false, false),
        ] {
            let config = config(extra);
            assert_eq!(config.path_key_besides(&[]), Some(key), "{extra}");
            assert_eq!(config.path_key_besides(&[key]), None, "{extra}");
            assert_eq!(config.overtaking_key(), overtakes.then_some(key), "{extra}");
            assert_eq!(config.saying_key(), says.then_some(key), "{extra}");
        }
        let none = config("up-jitter = \"none\"");
        assert_eq!(
            (none.path_key_besides(&[]), none.overtaking_key(), none.saying_key()),
            (None, None, None)
        );
    }

    #[test]
    fn a_largest_packet_ends_after_it_starts() {
        for (until, is_right) in [("10001 ms", true), ("10 s", false), ("9 s", false)] {
            let extra = format!("largest-packet = {{ bytes = 1280, from = \"10 s\", until = \"{until}\" }}");
            assert_eq!(config(&extra).check_path().is_ok(), is_right, "{until}");
        }
        assert!(config("largest-packet = { bytes = 1280, from = \"10 s\" }").check_path().is_ok());
        for (delay, is_right) in [("1 h", true), ("3601 s", false)] {
            let extra = format!("delay-changes = [{{ at = \"1 s\", delay = \"{delay}\" }}]");
            assert_eq!(config(&extra).check_path().is_ok(), is_right, "{delay}");
        }
    }

    fn minute(line: &Line) -> Vec<Range<Instant>> {
        let minute = Instant::ZERO + Duration::from_secs(60);
        line.timeline().blocked_in(Instant::ZERO..minute).collect()
    }

    #[test]
    fn one_obstacle_blocks_both_directions() {
        let both = channel("", 1);
        assert!(minute(&both.down).len() > 3);
        assert_eq!(minute(&both.down), minute(&both.up));
        // Another rate is no other realisation, and neither is another run with the seed.
        assert_eq!(minute(&both.up), minute(&channel("up-rate = \"2400 bit/s\"", 1).up));
        assert_ne!(minute(&both.down), minute(&channel("", 2).down));
    }

    #[test]
    fn directions_may_be_blocked_apart() {
        let apart = channel("correlated = false", 1);
        assert_ne!(minute(&apart.down), minute(&apart.up));
        let one_way = channel("up-errors = \"none\"", 1);
        assert_eq!(minute(&one_way.up), []);
        assert_eq!(minute(&one_way.down), minute(&channel("", 1).down));
    }

    #[test]
    fn the_way_back_changes_its_rate_with_the_other_or_by_itself() {
        let rates = |extra: &str| {
            let text = format!("rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{extra}");
            let config: Config = base::config::parse("channel.toml", &text).unwrap();
            [config.down(), config.up()].map(|line| {
                let changes = line.rate_changes.iter();
                changes.map(|c| (c.at.as_nanos() / 1_000_000_000, c.rate.as_bps())).collect::<Vec<_>>()
            })
        };
        let alone =
            "rate-changes = [{ at = \"1 s\", rate = \"5 bit/s\" }, { at = \"2 s\", rate = \"9 bit/s\" }]";
        assert_eq!(rates(alone), [vec![(1, 5), (2, 9)], vec![(1, 5), (2, 9)]]);
        assert_eq!(rates(&format!("up-rate = \"3 bit/s\"\n{alone}")), [vec![(1, 5), (2, 9)], vec![]]);
        let both = "rate-changes = [{ at = \"1 s\", rate = \"5 bit/s\", up-rate = \"2 bit/s\" }]";
        assert_eq!(rates(both), [[(1, 5)], [(1, 2)]]);
        assert_eq!(rates("").concat(), []);
    }

    #[test]
    fn recordings_of_both_directions_are_loaded() {
        let text = "rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nerrors = { trace = { file = \"a\" } }\n\
                    up-errors = { trace = { file = \"b\" } }";
        let mut config: Config = base::config::parse("channel.toml", text).unwrap();
        let content = |name: &str| match name {
            "a" => Ok("1,2"),
            "b" => Ok("1,2\n4,5"),
            _ => Err("unknown"),
        };
        config.load(|name| content(name).map(str::to_owned)).unwrap();
        let both = config.build(1, "sat");
        assert_eq!((minute(&both.down).len(), minute(&both.up).len()), (1, 2));
        assert_eq!(config.load(|_| Err::<String, _>("gone")).unwrap_err().to_string(), "a: gone");
    }

    /// What departs from the terminal while it is blocked is damaged, and so is what arrives there then.
    #[test]
    fn blockage_is_at_the_terminal() {
        let mut both = channel("", 1);
        let blocked: Vec<_> = minute(&both.down);
        let hits = |from: Instant, to: Instant| blocked.iter().any(|b| b.start < to && from < b.end);
        for n in 0..500 {
            let now = Instant::ZERO + Duration::from_millis(n * 100);
            let (down, up) = (both.down.send(now, 3968), both.up.send(now, 3968));
            let delay = both.down.delay();
            let arrival = hits(down.on_air.start + delay, down.arrives_at);
            assert_eq!(down.fate.is_intact(), !arrival, "{n}");
            assert_eq!(up.fate.is_intact(), !hits(up.on_air.start, up.on_air.end), "{n}");
        }
    }
}
