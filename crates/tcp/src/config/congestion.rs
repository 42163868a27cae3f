//! Which congestion controller a connection has, and what a user may set about it.

use std::borrow::Cow;

use base::Duration;
use base::config::choice;
use base::units::above_zero;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::congestion::Factory;

/// A congestion controller, and what may be set about it. In TOML its name, or a table of its name and parameters:
/// `congestion = "vegas"`, `congestion = { vegas = { alpha = 1 } }`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// RFC 5681.
    Reno,
    /// CUBIC (RFC 9438), or what Linux makes of it.
    Cubic(CubicConfig),
    /// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00). It paces whatever `pacing` says.
    Bbr,
    /// Westwood with the Eligible Rate Estimate (Wang, Valla, Sanadidi, Ng and Gerla, 2002).
    WestwoodEre,
    /// Westwood+ (Grieco and Mascolo, 2004).
    WestwoodPlus,
    /// Vegas (Brakmo and Peterson, 1995).
    Vegas(VegasConfig),
    /// FAST (Wei, Jin, Low and Hegde, 2006).
    Fast(FastConfig),
    /// Hybla (Caini and Firrincieli, 2004).
    Hybla(HyblaConfig),
    /// None between two proxies, where the link below says when to send; CUBIC to anybody else.
    Link,
    /// One that the program around brings along, such as a class of a Python script.
    External(Factory),
}

/// A controller's name and parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Table {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic(CubicConfig),
    /// BBR version 1.
    Bbr,
    /// Westwood with the Eligible Rate Estimate.
    WestwoodEre,
    /// Westwood+.
    WestwoodPlus,
    /// Vegas.
    Vegas(VegasConfig),
    /// FAST.
    Fast(FastConfig),
    /// Hybla.
    Hybla(HyblaConfig),
    /// None between two proxies, where the link below says when to send; CUBIC to anybody else.
    Link,
    /// One that the program around brings along, by its name there; no file of a user's can.
    #[schemars(skip)]
    External(Factory),
}

impl From<Table> for Congestion {
    fn from(table: Table) -> Self {
        match table {
            Table::Reno => Self::Reno,
            Table::Cubic(config) => Self::Cubic(config),
            Table::Bbr => Self::Bbr,
            Table::WestwoodEre => Self::WestwoodEre,
            Table::WestwoodPlus => Self::WestwoodPlus,
            Table::Vegas(config) => Self::Vegas(config),
            Table::Fast(config) => Self::Fast(config),
            Table::Hybla(config) => Self::Hybla(config),
            Table::Link => Self::Link,
            Table::External(factory) => Self::External(factory),
        }
    }
}

impl<'de> Deserialize<'de> for Congestion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        choice::read::<Table, D>(deserializer, "a controller").map(Into::into)
    }
}

impl JsonSchema for Congestion {
    fn schema_name() -> Cow<'static, str> {
        "Congestion".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        choice::schema(
            Table::json_schema(generator),
            "A congestion controller: its name, or a table of its name and parameters.",
        )
    }
}

/// Which CUBIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct CubicConfig {
    /// Whose rules it follows.
    pub variant: CubicVariant,
}

/// Whose rules CUBIC follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CubicVariant {
    /// RFC 9438.
    #[default]
    Rfc9438,
    /// Linux 6.x: windows of whole segments, and in small ones a fifth less than the RFC's.
    Linux,
}

/// How slow start ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStart {
    /// At the threshold or with a loss (RFC 5681, 3.1).
    Standard,
    /// Also when round trips lengthen, after a while of slower growth (RFC 9406).
    #[serde(rename = "hystart++")]
    HyStartPlusPlus,
    /// Also when round trips lengthen or acknowledgements come in a train as long as the path (Ha and Rhee, 2011).
    #[serde(rename = "hystart")]
    HyStart,
}

/// Vegas's thresholds: segments that a connection keeps in queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct VegasConfig {
    /// With fewer, the window grows. 1 to 10000; 2 in ns-2 and Linux.
    #[serde(deserialize_with = "segments")]
    #[schemars(range(min = 1, max = 10_000))]
    pub alpha: u32,
    /// With more, the window shrinks. 1 to 10000, and counts as `alpha` if it is less; 4 in ns-2 and Linux.
    #[serde(deserialize_with = "segments")]
    #[schemars(range(min = 1, max = 10_000))]
    pub beta: u32,
    /// With more, slow start ends. 1 to 10000; 1 in ns-2 and Linux.
    #[serde(deserialize_with = "segments")]
    #[schemars(range(min = 1, max = 10_000))]
    pub gamma: u32,
}

impl Default for VegasConfig {
    fn default() -> Self {
        Self { alpha: 2, beta: 4, gamma: 1 }
    }
}

/// FAST's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct FastConfig {
    /// Segments that a connection keeps in queues. 1 to 10000; 100 in Casoni and Luppi 2005.
    #[serde(deserialize_with = "segments")]
    #[schemars(range(min = 1, max = 10_000))]
    pub alpha: u32,
    /// The part of the way to its target that the window goes at an update; above 0, at most 1.
    #[serde(deserialize_with = "step")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub gamma: f64,
}

impl Default for FastConfig {
    fn default() -> Self {
        Self { alpha: 100, gamma: 0.5 }
    }
}

/// Hybla's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct HyblaConfig {
    /// Round trip of the connection whose growth is imitated; 1 ms to 10 s.
    #[serde(deserialize_with = "reference")]
    #[schemars(transform = above_zero)]
    pub rtt0: Duration,
}

impl Default for HyblaConfig {
    fn default() -> Self {
        Self { rtt0: Duration::from_millis(25) }
    }
}

fn segments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        count @ 1..=10_000 => Ok(count),
        count => Err(de::Error::custom(format!("{count} segments; allowed are 1 to 10000"))),
    }
}

fn step<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let gamma = f64::deserialize(deserializer)?;
    if gamma > 0.0 && gamma <= 1.0 {
        return Ok(gamma);
    }
    Err(de::Error::custom(format!("a step of {gamma}; allowed are above 0 and at most 1")))
}

fn reference<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let rtt0 = Duration::deserialize(deserializer)?;
    if (Duration::from_millis(1)..=Duration::from_secs(10)).contains(&rtt0) {
        return Ok(rtt0);
    }
    Err(de::Error::custom(format!("a round trip of {rtt0}; allowed are 1 ms to 10 s")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TcpConfig;
    use base::config;

    #[test]
    fn controllers_and_their_parameters_read_as_written() {
        let of = |text: &str| config::parse::<TcpConfig>("t", text).unwrap().congestion;
        assert_eq!(of("congestion = \"westwood-ere\""), Congestion::WestwoodEre);
        assert_eq!(of("congestion = \"vegas\""), Congestion::Vegas(VegasConfig::default()));
        let vegas = Congestion::Vegas(VegasConfig { alpha: 1, beta: 3, gamma: 1 });
        assert_eq!(of("[congestion.vegas]\nalpha = 1\nbeta = 3"), vegas);
        let fast = Congestion::Fast(FastConfig { alpha: 20, gamma: 0.8 });
        assert_eq!(of("congestion = { fast = { alpha = 20, gamma = 0.8 } }"), fast);
        let hybla = Congestion::Hybla(HyblaConfig { rtt0: Duration::from_millis(50) });
        assert_eq!(of("congestion.hybla.rtt0 = \"50 ms\""), hybla);
        // One beside a preset replaces that one's whole.
        assert_eq!(of("preset = \"linux\"\n[congestion.vegas]\nalpha = 1\nbeta = 3"), vegas);
    }

    #[test]
    fn a_parameter_out_of_range_is_refused() {
        for (text, complaint) in [
            ("[congestion.vegas]\nalpha = 0", "t:2: alpha = 0: 0 segments; allowed are 1 to 10000"),
            (
                "[congestion.fast]\ngamma = 1.5",
                "t:2: gamma = 1.5: a step of 1.5; allowed are above 0 and at most 1",
            ),
            (
                "[congestion.fast]\ngamma = 0.0",
                "t:2: gamma = 0.0: a step of 0; allowed are above 0 and at most 1",
            ),
            (
                "[congestion.hybla]\nrtt0 = \"0 s\"",
                "t:2: rtt0 = \"0 s\": a round trip of 0 s; allowed are 1 ms to 10 s",
            ),
            (
                "congestion = 3",
                "t:1: congestion = 3: invalid type: integer `3`, expected a controller's name, or a table of one \
                 name and its parameters",
            ),
        ] {
            assert_eq!(config::parse::<TcpConfig>("t", text).unwrap_err().to_string(), complaint);
        }
        let unknown = config::parse::<TcpConfig>("t", "congestion = \"tahoe\"").unwrap_err().to_string();
        assert!(unknown.contains("`westwood-plus`"), "{unknown}");
    }
}
