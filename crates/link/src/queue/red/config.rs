//! The parameters of random early detection.

use core::fmt;
use core::num::NonZeroU32;

use base::units::{Probability, Size, above_zero};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of RED, in packets.
///
/// By themselves they are in proportion as Floyd recommends: of `packets` (500 by default), `min` is three twentieths and `max`
/// three times that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Keys", into = "Keys")]
#[schemars(rename = "Red")]
pub struct Config {
    packets: NonZeroU32,
    min: f64,
    max: f64,
    max_p: f64,
    weight: f64,
    gentle: bool,
    wait: bool,
    ecn: bool,
    mean_packet: Size,
}

/// As they are written.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
struct Keys {
    /// Packets that may wait.
    packets: NonZeroU32,
    /// Average length in packets from which on packets are marked or dropped.
    #[schemars(extend("exclusiveMinimum" = 0))]
    min: Option<f64>,
    /// Average length in packets at which the probability reaches `max-p`.
    #[schemars(extend("exclusiveMinimum" = 0))]
    max: Option<f64>,
    /// Probability of marking or dropping at `max`, above 0.
    #[schemars(extend("exclusiveMinimum" = 0))]
    max_p: Probability,
    /// Weight of a packet's queue length in the average, above 0.
    #[schemars(extend("exclusiveMinimum" = 0))]
    weight: Probability,
    /// Whether from `max` to twice as much the probability rises to 1, instead of at once.
    gentle: bool,
    /// Whether two marks are at least as many packets apart as they are on average.
    wait: bool,
    /// Whether to mark packets instead of dropping them, where the transport supports ECN.
    ecn: bool,
    /// Assumed packet length, from which RED estimates how many packets could have left while the line was idle.
    #[schemars(transform = above_zero, extend("examples" = ["500 B"]))]
    mean_packet: Size,
}

/// A parameter that makes no sense, perhaps in view of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NotRed {
    key: &'static str,
    value: f64,
    above: f64,
    /// The most that is allowed, and what it is.
    most: Option<(f64, &'static str)>,
}

impl fmt::Display for NotRed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, above, most } = self;
        write!(f, "{key} = {value}; allowed are numbers above {above}")?;
        match most {
            Some((most, name)) => write!(f, " and up to {most}, {name}"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for NotRed {}

impl Config {
    /// Packets that may wait.
    #[must_use]
    pub const fn packets(&self) -> NonZeroU32 {
        self.packets
    }

    /// Average length in packets from which on packets are marked or dropped.
    #[must_use]
    pub const fn min(&self) -> f64 {
        self.min
    }

    /// Average length in packets at which the probability reaches `max-p`.
    #[must_use]
    pub const fn max(&self) -> f64 {
        self.max
    }

    /// Weight of a packet's queue length in the average.
    #[must_use]
    pub const fn weight(&self) -> f64 {
        self.weight
    }

    /// Whether two marks are at least as many packets apart as they are on average.
    #[must_use]
    pub const fn wait(&self) -> bool {
        self.wait
    }

    /// Whether to mark packets instead of dropping them, where the transport supports ECN.
    #[must_use]
    pub const fn ecn(&self) -> bool {
        self.ecn
    }

    /// Assumed packet length, from which RED estimates how many packets could have left while the line was idle.
    #[must_use]
    pub const fn mean_packet(&self) -> Size {
        self.mean_packet
    }

    /// The average length from which on every packet is dropped.
    #[must_use]
    pub(super) fn end(&self) -> f64 {
        if self.gentle { 2.0 * self.max } else { self.max }
    }

    /// The probability by the average alone, which is from `min` to [`Config::end`]: up to `max-p` at `max`, and if gentle on to 1.
    #[must_use]
    pub(super) fn base_probability(&self, average: f64) -> f64 {
        if average < self.max {
            self.max_p * (average - self.min) / (self.max - self.min)
        } else {
            self.max_p + (1.0 - self.max_p) * (average - self.max) / self.max
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        let Ok(config) = Keys::default().try_into() else { unreachable!("the defaults are allowed") };
        config
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            packets: DEFAULT_PACKETS,
            min: None,
            max: None,
            max_p: probability(MAX_P),
            weight: probability(WEIGHT),
            gentle: true,
            wait: false,
            ecn: true,
            mean_packet: MEAN_PACKET,
        }
    }
}

fn probability(value: f64) -> Probability {
    Probability::try_from(value).unwrap_or_default()
}

impl TryFrom<Keys> for Config {
    type Error = NotRed;
    fn try_from(keys: Keys) -> Result<Self, NotRed> {
        let Keys { packets, min, max, max_p, weight, gentle, wait, ecn, mean_packet } = keys;
        let limit = f64::from(packets.get());
        let min = min.or(max.map(|max| max / MAX_BY_MIN)).unwrap_or(limit * MIN_BY_PACKETS);
        let max = max.unwrap_or(min * MAX_BY_MIN);
        // Written so that what is no number is no value.
        let check = |key, value: f64, above: f64, most: Option<(f64, &'static str)>| {
            let is_allowed = value > above && most.is_none_or(|(most, _)| value <= most) && value.is_finite();
            if is_allowed { Ok(()) } else { Err(NotRed { key, value, above, most }) }
        };
        check("min", min, 0.0, None)?;
        check("max", max, min, Some((limit, "the limit in packets")))?;
        check("max-p", max_p.get(), 0.0, Some((1.0, "certainty")))?;
        check("weight", weight.get(), 0.0, Some((1.0, "the present length alone")))?;
        check("mean-packet", mean_packet.0 as f64, 0.0, Some((65_536.0, "the longest packet")))?;
        let (max_p, weight) = (max_p.get(), weight.get());
        Ok(Self { packets, min, max, max_p, weight, gentle, wait, ecn, mean_packet })
    }
}

impl From<Config> for Keys {
    fn from(config: Config) -> Self {
        let Config { packets, min, max, max_p, weight, gentle, wait, ecn, mean_packet } = config;
        let (max_p, weight) = (probability(max_p), probability(weight));
        Self { packets, min: Some(min), max: Some(max), max_p, weight, gentle, wait, ecn, mean_packet }
    }
}

/// Packets. Ours.
const DEFAULT_PACKETS: NonZeroU32 = NonZeroU32::new(500).unwrap();
/// Ours: with `max`, which is three times as much, the average stays below half of what the queue holds, so bursts find room.
const MIN_BY_PACKETS: f64 = 3.0 / 20.0;
/// Floyd, "RED: Discussions of Setting Parameters", 1997.
const MAX_BY_MIN: f64 = 3.0;
/// Floyd 1997; 0.02 in Floyd and Jacobson 1993.
const MAX_P: f64 = 0.1;
/// Floyd and Jacobson 1993, section 6.
const WEIGHT: f64 = 0.002;
/// Bytes: the default of ns-2.
const MEAN_PACKET: Size = Size(500);
