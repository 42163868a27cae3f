//! Numbers and times of a channel's errors, checked while a scenario is read.

use base::Duration;
use base::units::above_zero;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorModel;
use crate::timeline::UniformSpan;

/// A number of links that share a line: 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32", into = "u32")]
#[schemars(extend("minimum" = 1, "maximum" = 64))]
pub struct Links(u32);

impl Links {
    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A number of links that cannot share a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} links cannot share a line; allowed are 1 to 64")]
pub struct NotANumberOfLinks(u32);

impl TryFrom<u32> for Links {
    type Error = NotANumberOfLinks;
    fn try_from(links: u32) -> Result<Self, NotANumberOfLinks> {
        if (1..=64).contains(&links) { Ok(Self(links)) } else { Err(NotANumberOfLinks(links)) }
    }
}

impl From<Links> for u32 {
    fn from(links: Links) -> Self {
        links.0
    }
}

/// Several error models of one line, 2 to 16, none of which is itself a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<ErrorModel>", into = "Vec<ErrorModel>")]
#[schemars(extend("minItems" = 2, "maxItems" = 16))]
pub struct Models(Vec<ErrorModel>);

impl Models {
    /// The models, in their order.
    #[must_use]
    pub fn get(&self) -> &[ErrorModel] {
        &self.0
    }

    pub(super) fn get_mut(&mut self) -> &mut [ErrorModel] {
        &mut self.0
    }
}

/// Models that cannot be on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotModels {
    /// Too few or too many.
    #[error("{0} error models on a line; allowed are 2 to 16")]
    Number(usize),
    /// One of them is a list too.
    #[error("a list of error models in another one; allowed is one list")]
    Nested,
}

impl TryFrom<Vec<ErrorModel>> for Models {
    type Error = NotModels;
    fn try_from(models: Vec<ErrorModel>) -> Result<Self, NotModels> {
        match models.len() {
            2..=16 if models.iter().any(|model| matches!(model, ErrorModel::Any(_))) => {
                Err(NotModels::Nested)
            }
            2..=16 => Ok(Self(models)),
            number => Err(NotModels::Number(number)),
        }
    }
}

impl From<Models> for Vec<ErrorModel> {
    fn from(models: Models) -> Self {
        models.0
    }
}

/// A fraction of time, from 0 to below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(extend("minimum" = 0, "exclusiveMaximum" = 1))]
pub struct BlockedFraction(f64);

impl BlockedFraction {
    /// The value.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A number that is no fraction of time below 1.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not a blocked fraction; allowed are values from 0 to below 1")]
pub struct NotABlockedFraction(f64);

impl TryFrom<f64> for BlockedFraction {
    type Error = NotABlockedFraction;
    fn try_from(value: f64) -> Result<Self, NotABlockedFraction> {
        if (0.0..1.0).contains(&value) { Ok(Self(value)) } else { Err(NotABlockedFraction(value)) }
    }
}

impl From<BlockedFraction> for f64 {
    fn from(fraction: BlockedFraction) -> Self {
        fraction.0
    }
}

/// The shortest and the longest of spans of time: `["5 s", "15 s"]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "[Duration; 2]", into = "[Duration; 2]")]
pub struct Limits(UniformSpan);

/// The shortest and the longest of bursts, 1 us at least: `["100 ms", "300 ms"]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "[Duration; 2]", into = "[Duration; 2]")]
#[schemars(try_from = "[PositiveTime; 2]")]
pub struct BurstLength(UniformSpan);

impl Limits {
    /// The value.
    #[must_use]
    pub const fn get(self) -> UniformSpan {
        self.0
    }
}

impl BurstLength {
    /// The value.
    #[must_use]
    pub const fn get(self) -> UniformSpan {
        self.0
    }
}

/// Two times that are no limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "[\"{0}\", \"{1}\"] are not limits; allowed are the shortest time first, then the longest, up to 24 h"
)]
pub struct NotLimits(Duration, Duration);

/// Limits that are no lengths of bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotABurstLength {
    /// They are not even limits.
    #[error(transparent)]
    Limits(#[from] NotLimits),
    /// A burst of hardly any time.
    #[error(transparent)]
    Time(#[from] NotAPositiveTime),
}

/// Longer ones would be another channel, and sums of them must not overflow.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl TryFrom<[Duration; 2]> for Limits {
    type Error = NotLimits;
    fn try_from([least, most]: [Duration; 2]) -> Result<Self, NotLimits> {
        let allowed = least <= most && most <= LONGEST;
        if allowed { Ok(Self(UniformSpan { least, most })) } else { Err(NotLimits(least, most)) }
    }
}

impl TryFrom<[Duration; 2]> for BurstLength {
    type Error = NotABurstLength;
    fn try_from(limits: [Duration; 2]) -> Result<Self, NotABurstLength> {
        PositiveTime::try_from(limits[0])?;
        Ok(Self(Limits::try_from(limits)?.get()))
    }
}

impl From<Limits> for [Duration; 2] {
    fn from(limits: Limits) -> Self {
        [limits.0.least, limits.0.most]
    }
}

impl From<BurstLength> for [Duration; 2] {
    fn from(length: BurstLength) -> Self {
        [length.0.least, length.0.most]
    }
}

/// A span of time of at least a microsecond: shorter blockages are bit errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Duration", into = "Duration")]
#[schemars(transform = above_zero)]
pub struct PositiveTime(Duration);

impl PositiveTime {
    /// The value.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// A span of hardly any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time must be 1 us or longer")]
pub struct NotAPositiveTime;

impl TryFrom<Duration> for PositiveTime {
    type Error = NotAPositiveTime;
    fn try_from(value: Duration) -> Result<Self, NotAPositiveTime> {
        if value < Duration::from_micros(1) { Err(NotAPositiveTime) } else { Ok(Self(value)) }
    }
}

impl From<PositiveTime> for Duration {
    fn from(time: PositiveTime) -> Self {
        time.0
    }
}
