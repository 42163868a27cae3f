//! Scenarios: a network, its traffic and the schemes to compare, as plain data.
//!
//! A scenario file is TOML. Its `[[scheme]]` entries are the same scenario with some keys set differently,
//! run on the same channel realisations; `--set key=value` does the same from the command line.

pub mod built_in;
mod check;
mod dama;
mod edges;
mod link;
pub(crate) mod overrides;
mod schema;
pub mod topology;
mod traffic;
mod tunnel;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base::Duration;
use base::config::{self, ConfigError};
use base::units::above_zero;
use channel::dama::NetworkConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tcp::TcpConfig;

pub use self::link::{Encapsulations, Framing, Link, Path as LinkPath, ProxiesAt};
pub use self::tunnel::{Gateway, Share, Tunnel};
pub(crate) use dama::Networks;
pub use overrides::{Ineffective, Override};
pub use schema::schema;
pub(crate) use schema::{Part, add_templates};
pub use traffic::{Bulk, Dscp, Opener, RateSource, Traffic, Transactions, Transport};

/// Ports that a host waits at, at most: from [`FIRST_PORT`] upwards, as many as there are.
pub const PORTS: u32 = 60_000;
/// The first port that applications wait at.
pub const FIRST_PORT: u16 = 5001;

/// A network, what runs on it, and for how long.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// The scenario's name, as it appears in tables and reports.
    pub name: String,
    /// What the scenario shows, in a sentence or two.
    #[serde(default)]
    pub description: String,
    /// The root seed; every random stream derives from it and its owner's name.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Number of seeds to run each scheme with: run k has seed `seed + k`, from k = 0.
    #[serde(default = "default_seeds")]
    #[schemars(range(min = 1, max = check::MAX_SEEDS))]
    pub seeds: u32,
    /// Longest duration of a run, in simulated time.
    #[schemars(transform = above_zero)]
    pub duration: Duration,
    /// Version of IP that the hosts use.
    #[serde(default)]
    pub network: Network,
    /// TCP settings of all hosts.
    #[serde(default)]
    pub tcp: TcpConfig,
    /// Hosts that differ from the others, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub host: BTreeMap<String, HostConfig>,
    /// The links, by name.
    #[schemars(extend("propertyNames" = { "pattern": schema::NAME }))]
    pub link: BTreeMap<String, Link>,
    /// Tunnels between gateways, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunnel: BTreeMap<String, Tunnel>,
    /// What all tunnels that end at a node share, by node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("propertyNames" = { "pattern": schema::NAME }))]
    pub share: BTreeMap<String, Share>,
    /// What happens to gateways, by node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("propertyNames" = { "pattern": schema::NAME }))]
    pub gateway: BTreeMap<String, Gateway>,
    /// Networks whose capacity terminals with bandwidth on demand (DAMA) share, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dama: BTreeMap<String, NetworkConfig>,
    /// The traffic between hosts, by name.
    #[schemars(extend("propertyNames" = { "pattern": schema::NAME }, "minProperties" = 1))]
    pub traffic: BTreeMap<String, Traffic>,
    /// The schemes to compare. Without any, the scenario runs as it stands.
    #[serde(default, skip_serializing)]
    pub scheme: Vec<Scheme>,
}

const fn default_seed() -> u64 {
    1
}

const fn default_seeds() -> u32 {
    1
}

/// What is special about a host.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Host")]
pub struct HostConfig {
    /// TCP settings of this host, instead of those of all hosts.
    pub tcp: TcpConfig,
}

impl Scenario {
    /// The TCP of a host.
    #[must_use]
    pub fn tcp_of(&self, host: &str) -> &TcpConfig {
        self.host.get(host).map_or(&self.tcp, |host| &host.tcp)
    }
}

/// The version of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// IPv4.
    #[default]
    IPv4,
    /// IPv6.
    IPv6,
}

impl Network {
    /// The address of the host with this number: from 10.0.0.1 or `fd00::1` upwards.
    #[must_use]
    pub fn address(self, host: usize) -> IpAddr {
        match self {
            Self::IPv4 => Ipv4Addr::from(0x0a00_0001 + host as u32).into(),
            Self::IPv6 => Ipv6Addr::from((0xfd00 << 112) + 1 + host as u128).into(),
        }
    }
}

/// One of the schemes that a scenario compares.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// The scheme's name, as it appears in tables and reports.
    pub name: String,
    /// What is different: a part of the scenario, laid over it.
    #[serde(default)]
    #[schemars(with = "Part")]
    pub set: toml::Table,
}

/// A scenario file, read and checked, with its schemes spelled out.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The scenario as written, before schemes.
    pub scenario: Scenario,
    /// Each scheme's name and the whole scenario that it stands for.
    pub schemes: Vec<(String, Scenario)>,
    /// Overrides that change nothing in some schemes, because these set the same key themselves.
    pub ineffective: Vec<Ineffective>,
    /// The file as a table, with the overrides laid over it.
    pub table: toml::Table,
}

impl Suite {
    /// Reads the scenario file at `path`, or the one that is built in under this name, with `overrides` laid over it.
    ///
    /// # Errors
    /// The file cannot be read, or says something that is not allowed.
    pub fn load(path: &Path, overrides: &[Override]) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = built_in::read(path)?;
        Self::parse(&file, &text, path.parent().unwrap_or(Path::new("")), overrides)
    }

    /// Reads `text`, the content of `file`; files that it names are looked up in `directory`.
    ///
    /// # Errors
    /// As [`Suite::load`].
    pub fn parse(
        file: &str,
        text: &str,
        directory: &Path,
        overrides: &[Override],
    ) -> Result<Self, ConfigError> {
        // First as written, so that a complaint has its line; what is laid over it is checked after.
        let written: Scenario = config::parse(file, text)?;
        let table: toml::Table = config::parse(file, text)?;
        check_schemes(file, text, &written.scheme)?;
        let resolve = |table| resolve(file, text, directory, table);
        let mut scenario = resolve(table.clone())?;
        let mut laid = table.clone();
        if !overrides.is_empty() {
            laid = overrides::with(&table, overrides);
            scenario = resolve(laid.clone()).map_err(|error| {
                let works = |some: &[Override]| resolve(overrides::with(&table, some)).is_ok();
                let message = overrides::explain(&table, overrides, works, error.message);
                ConfigError::about(file, message)
            })?;
        }
        check_schemes(file, text, &scenario.scheme)?;
        let of_scheme = |scheme: &Scheme| {
            let mut whole = laid.clone();
            overrides::lay_over(&mut whole, &scheme.set);
            let scenario = resolve(whole).map_err(|error| {
                let message = overrides::unknown_name(&laid, &scheme.set, &error.message);
                let message = message.unwrap_or_else(|| without_shared_keys(&error.message));
                place(file, text, &scheme.name, format!("scheme \"{}\": {message}", scheme.name))
            })?;
            Ok((scheme.name.clone(), scenario))
        };
        let schemes = match &scenario.scheme[..] {
            [] => vec![(written.name, scenario.clone())],
            schemes => schemes.iter().map(of_scheme).collect::<Result<_, ConfigError>>()?,
        };
        let ineffective = overrides::ineffective(&table, overrides, &scenario.scheme);
        Ok(Self { scenario, schemes, ineffective, table: laid })
    }

    /// This suite with `seeds` replications of each scheme.
    #[must_use]
    pub fn with_seeds(&self, seeds: u32) -> Self {
        let mut suite = self.clone();
        let scenarios = suite.schemes.iter_mut().map(|(_, scenario)| scenario);
        scenarios.chain([&mut suite.scenario]).for_each(|scenario| scenario.seeds = seeds);
        suite
    }

    /// Whether every scheme meets the same channels, so that runs of one seed can be compared one by one. A scheme may have links of its
    /// own, such as those between hosts and gateways, on which nothing is left to chance.
    #[must_use]
    pub fn same_channels(&self) -> bool {
        let first = &self.scenario.link;
        self.schemes.iter().all(|(_, scenario)| {
            let has = |name: &String, link: &Link| {
                scenario
                    .link
                    .get(name)
                    .is_some_and(|other| other.channel == link.channel && other.path == link.path)
            };
            let mut own = scenario.link.iter().filter(|(name, _)| !first.contains_key(*name));
            first.iter().all(|(name, link)| has(name, link))
                && own.all(|(_, link)| !link.channels().any(channel::duplex::Config::is_random))
        })
    }
}

/// A scenario file as written, to lay sets of keys over.
#[derive(Clone, Debug)]
pub struct Base {
    file: String,
    text: String,
    directory: PathBuf,
    table: toml::Table,
    schemes: Vec<Scheme>,
}

impl Base {
    /// The seed that it names.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.table.get("seed")?.as_integer().map(i64::cast_unsigned)
    }

    /// Reads `text`, the content of `file`; files that it names are looked up in `directory`.
    ///
    /// # Errors
    /// It is no scenario: with its line.
    pub fn parse(file: &str, text: &str, directory: &Path) -> Result<Self, ConfigError> {
        let Scenario { scheme: schemes, .. } = config::parse(file, text)?;
        check_schemes(file, text, &schemes)?;
        let table = config::parse(file, text)?;
        let (file, text, directory) = (file.to_owned(), text.to_owned(), directory.to_owned());
        Ok(Self { file, text, directory, table, schemes })
    }

    /// The schemes that it compares.
    #[must_use]
    pub fn schemes(&self) -> &[Scheme] {
        &self.schemes
    }

    /// The scenario with `sets` laid over it one after the other, under another name.
    ///
    /// # Errors
    /// What comes out is no scenario.
    pub fn with<'a>(
        &self,
        name: &str,
        sets: impl IntoIterator<Item = &'a toml::Table>,
    ) -> Result<Scenario, ConfigError> {
        let mut table = self.table.clone();
        table.remove("scheme");
        let mut all = toml::Table::new();
        for set in sets {
            overrides::lay_over(&mut all, set);
            overrides::lay_over(&mut table, set);
        }
        let scenario = resolve(&self.file, &self.text, &self.directory, table).map_err(|error| {
            let unknown = overrides::unknown_name(&self.table, &all, &error.message);
            let message = unknown.unwrap_or(error.message);
            place(&self.file, &self.text, name, format!("\"{name}\": {message}"))
        })?;
        Ok(Scenario { name: name.to_owned(), ..scenario })
    }
}

/// Schemes need names of their own, and the same seeds.
fn check_schemes(file: &str, text: &str, schemes: &[Scheme]) -> Result<(), ConfigError> {
    for (number, scheme) in schemes.iter().enumerate() {
        let complain = |message: String| Err(place(file, text, &scheme.name, message));
        if schemes[..number].iter().any(|other| other.name == scheme.name) {
            return complain(format!("two schemes are called \"{}\"; their names must differ", scheme.name));
        }
        if let Some(key) = SHARED.iter().find(|key| scheme.set.contains_key(**key)) {
            return complain(format!("scheme \"{}\" sets \"{key}\", which all schemes share", scheme.name));
        }
    }
    Ok(())
}

/// Keys that a scheme may not set.
const SHARED: [&str; 5] = ["name", "description", "seed", "seeds", "scheme"];

/// A complaint that suggests keys, without those that a scheme may not set.
fn without_shared_keys(message: &str) -> String {
    SHARED.iter().fold(message.to_owned(), |message, key| {
        message.replace(&format!("`{key}`, "), "").replace(&format!(", `{key}`"), "")
    })
}

/// The scenario that `table` says, checked.
fn resolve(file: &str, text: &str, directory: &Path, table: toml::Table) -> Result<Scenario, ConfigError> {
    let mut scenario: Scenario =
        config::from_table(table).map_err(|error| ConfigError::about(file, error))?;
    scenario.load_files(file, text, directory)?;
    scenario.check().map_err(|nonsense| place(file, text, &nonsense.value, nonsense.message))?;
    Ok(scenario)
}

impl Scenario {
    /// Reads the recordings that links name, relative to `directory`, and makes their names absolute, so that the
    /// scenario can be stored elsewhere and run again.
    fn load_files(&mut self, file: &str, text: &str, directory: &Path) -> Result<(), ConfigError> {
        let links = self.link.values_mut();
        let channels = links.flat_map(|link| {
            core::iter::once(&mut link.channel).chain(link.path.values_mut().map(|path| &mut path.channel))
        });
        for channel in channels {
            let both = [Some(&mut channel.errors), channel.up_errors.as_mut()];
            for errors in both.into_iter().flatten().flat_map(channel::ErrorModel::each_mut) {
                let channel::ErrorModel::Trace { file: recording, .. } = errors else { continue };
                let written = recording.clone();
                let path = directory.join(&written);
                *recording = std::path::absolute(&path).unwrap_or(path).display().to_string();
                errors.load(|path| std::fs::read_to_string(path)).map_err(|error| match error.line {
                    // A line of the recording itself.
                    Some(_) => error,
                    None => {
                        place(file, text, &written, format!("recording \"{written}\": {}", error.message))
                    }
                })?;
            }
        }
        Ok(())
    }
}

/// A complaint about the first line of `text` that has the quoted `value`, or about the file as a whole.
fn place(file: &str, text: &str, value: &str, message: String) -> ConfigError {
    match text.find(&format!("\"{value}\"")) {
        Some(at) if !value.is_empty() => ConfigError::at(file, text, at..at, message),
        _ => ConfigError::about(file, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
name = "two hosts"
duration = "60 s"

[link.satellite]
ends = ["hub", "terminal"]
channel = { rate = "1 Mbit/s", delay = "250 ms", errors = { erasure = { probability = 0.01 } } }
protocol = "cotmll-thesis"

[traffic.download.bulk]
from = "hub"
to = "terminal"
size = "1 MB"

[[scheme]]
name = "TCP"
set = { link.satellite.protocol = "plain" }

[[scheme]]
name = "TCP over COTMLL"
"#;

    fn load(text: &str, overrides: &[&str]) -> Result<Suite, String> {
        let overrides: Vec<Override> = overrides.iter().map(|o| o.parse().unwrap()).collect();
        Suite::parse("s.toml", text, Path::new(""), &overrides).map_err(|error| error.to_string())
    }

    #[test]
    fn schemes_meet_the_same_channels_if_links_of_their_own_leave_nothing_to_chance() {
        let same = |set: &str| {
            let scheme = format!("\n[[scheme]]\nname = \"gateways\"\n[scheme.set]\n{set}\n");
            load(&format!("{SCENARIO}{scheme}"), &[]).unwrap().same_channels()
        };
        let gateway = |channel: &str| {
            format!(
                "link.satellite.ends = [\"west\", \"terminal\"]\n\
                 link.lan = {{ ends = [\"hub\", \"west\"], channel = {{ rate = \"1 Gbit/s\", delay = \"1 ms\"{channel} }} }}"
            )
        };
        assert!(same("link.satellite.pep = {}") && same(&gateway("")));
        assert!(!same("link.satellite.channel.rate = \"2 Mbit/s\""));
        for chance in [
            "errors = { erasure = { probability = 0.01 } }",
            "up-errors = { erasure = { probability = 0.01 } }",
            "jitter = { in-order = { up-to = \"1 ms\" } }",
            "up-jitter = { in-order = { up-to = \"1 ms\" } }",
        ] {
            assert!(!same(&gateway(&format!(", {chance}"))), "{chance}");
        }
    }

    #[test]
    fn schemes_are_the_scenario_with_some_keys_set() {
        let suite = load(SCENARIO, &["seed=9"]).unwrap();
        let names: Vec<_> = suite.schemes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["TCP", "TCP over COTMLL"]);
        let protocol = |index: usize| format!("{:?}", suite.schemes[index].1.link["satellite"].protocol);
        assert_ne!(protocol(0), protocol(1));
        assert!(suite.schemes.iter().all(|(_, scenario)| scenario.seed == 9));
    }

    #[test]
    fn a_scenario_without_schemes_is_its_own() {
        let only = SCENARIO.split("[[scheme]]").next().unwrap();
        assert_eq!(load(only, &[]).unwrap().schemes[0].0, "two hosts");
    }

    #[test]
    fn a_wrong_scenario_names_its_line_and_what_is_allowed() {
        let complaint = |from: &str, to: &str| load(&SCENARIO.replace(from, to), &[]).unwrap_err();
        let unit = complaint("1 Mbit/s", "1 Mbps");
        assert!(
            unit.starts_with("s.toml:7: channel = ") && unit.contains("write a number and one of bit/s"),
            "{unit}"
        );
        let host = complaint(r#"from = "hub""#, r#"from = "hup""#);
        assert_eq!(
            host,
            r#"s.toml:11: from = "hup": traffic "download" names a node that no link has; allowed are hub, terminal"#
        );
        let key = complaint("duration", "durration");
        assert!(key.contains("s.toml:3") && key.contains("expected one of"), "{key}");
        let scheme = complaint(r#""plain""#, r#""plane""#);
        assert!(scheme.contains(r#"s.toml:16: name = "TCP""#) && scheme.contains("plane"), "{scheme}");
        let file = complaint("erasure = { probability = 0.01 }", r#"trace = { file = "none.csv" }"#);
        assert!(file.starts_with("s.toml:7: ") && file.contains("recording \"none.csv\": "), "{file}");
    }

    #[test]
    fn what_is_set_from_outside_is_named_when_it_is_wrong() {
        let wrong = load(SCENARIO, &["link.satellite.channel.rate=foo"]).unwrap_err();
        assert!(wrong.starts_with("s.toml: with --set 'link.satellite.channel.rate=\"foo\"': "), "{wrong}");
        assert!(load(SCENARIO, &["link.satellite.channel.up-errors={bit-errors={ber=1e-5}}"]).is_ok());
    }

    #[test]
    fn each_host_has_ports_of_its_own_to_wait_at() {
        let other_way = "traffic.upload.bulk={from=\"hub\", to=\"terminal\", opened-by=\"sender\", \
                         connections=60000, start=\"1 s\"}";
        assert!(load(SCENARIO, &["traffic.download.bulk.connections=60000", other_way]).is_ok());
        let same_way = other_way.replace("sender", "receiver");
        let refused = load(SCENARIO, &["traffic.download.bulk.connections=1000", &same_way]).unwrap_err();
        assert!(refused.contains("connection 61000 from the first that \"hub\" waits for"), "{refused}");
    }

    #[test]
    fn values_that_make_no_sense_together_are_refused() {
        let complaint = |changes: &[&str]| load(SCENARIO, changes).unwrap_err();
        for (change, want) in [
            ("traffic.download.bulk.connections=0", "0 connections; allowed are 1 to 10000000 in all"),
            (
                "traffic.download.bulk.connections=60001",
                "connection 60001 from the first that \"hub\" waits for; allowed are 60000",
            ),
            ("traffic.download.bulk.size=0 B", "allowed are 1 B or more"),
            ("traffic.download.bulk.start=61 s", "starts after the end of the run"),
            ("seeds=0", "0 seeds; allowed are 1 to 100000"),
            ("duration=0 s", "allowed are durations above 0 s and up to 87600 h"),
            ("link.satellite.channel.delay=2 h", "allowed are delays up to 1 h"),
        ] {
            let complaint = complaint(&[change]);
            assert!(complaint.contains(want), "{complaint}");
        }
        let odd = load(&SCENARIO.replace("\"terminal\"", "\"../terminal\""), &[]).unwrap_err();
        assert!(odd.contains("allowed are letters, digits, - and _"), "{odd}");
        let twice = load(&SCENARIO.replace("TCP over COTMLL", "TCP"), &[]).unwrap_err();
        assert!(twice.contains("their names must differ"), "{twice}");
        let seed = load(&SCENARIO.replace("{ link.satellite.protocol = \"plain\" }", "{ seed = 3 }"), &[])
            .unwrap_err();
        assert!(seed.contains("which all schemes share"), "{seed}");
    }
}
