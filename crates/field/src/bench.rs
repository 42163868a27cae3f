//! The gateway's own benchmark: one TCP stream through two encrypted gateways, no emulator between them.
//!
//! Two namespaces joined by a pair of virtual Ethernets, a gateway in each, the stream's sender and
//! receiver beside them. Where wireguard-go is installed it takes its turn in the same place. The schemes
//! alternate, so that what else the machine does meets all of them.

mod stream;
mod wireguard;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use base::Duration;
use serde::Serialize;

use crate::testbed::TestbedError;
use crate::testbed::namespaces::{Namespace, check_requirements, ip, this_program};
use crate::testbed::processes::{Process, end_all};
use gateway::clock::{Clock, sleep};
use gateway::daemon::read_status;
use gateway::signals::Signals;
use tunnel::key::PrivateKey;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long each run is measured, after a second of warming up.
    pub duration: Duration,
    /// Runs of each scheme.
    pub repetitions: u32,
    /// The schemes; without any, all that this machine has.
    pub schemes: Vec<Scheme>,
}

/// What carries the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Our gateways with `plain`, super-segments whole.
    Plain,
    /// Our gateways with `cotmll`.
    Cotmll,
    /// Our gateways with `coded`.
    Coded,
    /// Our gateways with `plain` and the split-connection proxy.
    PlainPep,
    /// Our gateways with `cotmll` and the split-connection proxy.
    CotmllPep,
    /// Our gateways with `coded` and the split-connection proxy.
    CodedPep,
    /// Our gateways as they are where nothing is configured: `coded`, the proxy, and a rate that is found out.
    Default,
    /// wireguard-go.
    WireguardGo,
}

impl Scheme {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Cotmll => "cotmll",
            Self::PlainPep => "plain-pep",
            Self::Coded => "coded",
            Self::CotmllPep => "cotmll-pep",
            Self::CodedPep => "coded-pep",
            Self::Default => "default",
            Self::WireguardGo => "wireguard-go",
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Run {
    /// What carried the stream.
    pub scheme: Scheme,
    /// Payload received, in Gbit/s.
    pub gbps: f64,
}

/// A scheme's runs together.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Summary {
    /// What carried the stream.
    pub scheme: Scheme,
    /// Median of its runs, in Gbit/s.
    pub median_gbps: f64,
    /// The slowest.
    pub min_gbps: f64,
    /// The fastest.
    pub max_gbps: f64,
    /// How often it was run.
    pub runs: usize,
    /// Median relative to wireguard-go's, where that ran.
    pub to_wireguard_go: Option<f64>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Cores that all of it shared: sender, receiver, both gateways and the kernel.
    pub cores: usize,
    /// In the order in which they were made.
    pub runs: Vec<Run>,
    /// By scheme.
    pub summaries: Vec<Summary>,
}

/// Before a run is measured.
const WARM_UP: Duration = Duration::from_secs(1);
/// For a tunnel to come up.
const PATIENCE: Duration = Duration::from_secs(15);
/// Addresses on the wire and in the tunnel.
const WIRE: [&str; 2] = ["10.78.0.1", "10.78.0.2"];
const TUNNEL: [&str; 2] = ["10.78.1.1", "10.78.1.2"];
/// The tunnel device.
const TUNNEL_MTU: u32 = 1400;

/// Runs the benchmark; `progress` hears each run. Needs root.
///
/// # Errors
/// No right, a tunnel that does not come up, a stream that breaks.
pub fn run(
    options: &Options,
    signals: &mut Signals,
    mut progress: impl FnMut(&Run),
) -> Result<Report, TestbedError> {
    check_requirements()?;
    let mut schemes = options.schemes.clone();
    if schemes.is_empty() {
        schemes = vec![
            Scheme::Plain,
            Scheme::Cotmll,
            Scheme::Coded,
            Scheme::PlainPep,
            Scheme::CotmllPep,
            Scheme::CodedPep,
            Scheme::Default,
        ];
        if wireguard::program().is_some() {
            schemes.push(Scheme::WireguardGo);
        }
    }
    let mut runs = Vec::new();
    for _ in 0..options.repetitions {
        for &scheme in &schemes {
            let gbps = measure(scheme, options.duration, signals)?;
            let run = Run { scheme, gbps };
            progress(&run);
            runs.push(run);
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Report { cores, summaries: summarize(&runs), runs })
}

/// The gateways' tables for a link that is as fast as what carries it.
fn tables(protocol: &str, splits: bool) -> String {
    format!("[link]\nprotocol = \"{protocol}\"\nrate = \"max\"\nclean = true\n[pep]\nenabled = {splits}\n")
}

fn summarize(runs: &[Run]) -> Vec<Summary> {
    let mut by_scheme: BTreeMap<Scheme, Vec<f64>> = BTreeMap::new();
    for run in runs {
        by_scheme.entry(run.scheme).or_default().push(run.gbps);
    }
    let sorted = by_scheme.into_iter().map(|(scheme, mut gbps)| {
        gbps.sort_by(f64::total_cmp);
        (scheme, gbps)
    });
    let sorted: Vec<(Scheme, Vec<f64>)> = sorted.collect();
    let median = |gbps: &[f64]| f64::midpoint(gbps[(gbps.len() - 1) / 2], gbps[gbps.len() / 2]);
    let reference =
        sorted.iter().find(|(scheme, _)| *scheme == Scheme::WireguardGo).map(|(_, gbps)| median(gbps));
    let summary = |(scheme, gbps): &(Scheme, Vec<f64>)| Summary {
        scheme: *scheme,
        median_gbps: median(gbps),
        min_gbps: gbps[0],
        max_gbps: gbps[gbps.len() - 1],
        runs: gbps.len(),
        to_wireguard_go: reference.map(|reference| median(gbps) / reference),
    };
    sorted.iter().map(summary).collect()
}

fn measure(scheme: Scheme, duration: Duration, signals: &mut Signals) -> Result<f64, TestbedError> {
    let site = Site::build()?;
    let mut site = site.with_tunnel(scheme)?;
    let result = stream::throughput(&site.namespaces, TUNNEL[1], [WARM_UP, duration], signals);
    if matches!(&result, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
        return Err(TestbedError::Interrupted);
    }
    site.check_alive()?;
    Ok(result?)
}

/// Two namespaces and what runs in them; removed when dropped.
struct Site {
    directory: PathBuf,
    namespaces: [Namespace; 2],
    processes: Vec<Process>,
}

impl Site {
    fn build() -> Result<Self, TestbedError> {
        let name = format!("lhbench{}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        DirBuilder::new().mode(0o700).create(&directory)?;
        let namespaces = ["a", "b"].map(|side| Namespace::new(format!("{name}{side}")));
        let site = Self { directory, namespaces, processes: Vec::new() };
        for namespace in &site.namespaces {
            namespace.add()?;
        }
        let [a, b] = &site.namespaces;
        ip([
            "-n",
            a.name(),
            "link",
            "add",
            "wire",
            "type",
            "veth",
            "peer",
            "name",
            "wire",
            "netns",
            b.name(),
        ])?;
        for (namespace, address) in site.namespaces.iter().zip(WIRE) {
            namespace.ip_batch(&format!("address add {address}/24 dev wire\nlink set wire up\n"))?;
        }
        Ok(site)
    }

    fn with_tunnel(mut self, scheme: Scheme) -> Result<Self, TestbedError> {
        match scheme {
            Scheme::WireguardGo => {
                wireguard::start(&self.namespaces, &self.directory, &mut self.processes)?;
            }
            Scheme::Default => self.start_gateways("")?,
            Scheme::Plain => self.start_gateways(&tables("plain", false))?,
            Scheme::PlainPep => self.start_gateways(&tables("plain", true))?,
            Scheme::Cotmll => self.start_gateways(&tables("cotmll", false))?,
            Scheme::CotmllPep => self.start_gateways(&tables("cotmll", true))?,
            Scheme::Coded => self.start_gateways(&tables("coded", false))?,
            Scheme::CodedPep => self.start_gateways(&tables("coded", true))?,
        }
        Ok(self)
    }

    fn start_gateways(&mut self, tables: &str) -> Result<(), TestbedError> {
        let (program, mut random) = (this_program()?, gateway::random::system());
        let keys = [(); 2].map(|()| PrivateKey::generate(&mut random));
        let mut statuses = Vec::new();
        for side in 0..2 {
            let config = self.directory.join(format!("{side}.toml"));
            let status = self.directory.join(format!("{side}.status"));
            let endpoint =
                if side == 0 { format!("endpoint = \"{}:51900\"\n", WIRE[1]) } else { String::new() };
            let text = format!(
                "[tun]\nname = \"sat0\"\naddresses = [\"{}/30\"]\nmtu = {TUNNEL_MTU}\n\
                 [carrier.udp]\nlisten = \"{}:51900\"\n\
                 {tables}[identity]\nprivate-key = \"{key}\"\n\
                 [[peer]]\npublic-key = \"{public_key}\"\n{endpoint}\
                 [status]\nfile = {status:?}\ninterval = \"200 ms\"\n",
                TUNNEL[side],
                WIRE[side],
                key = *keys[side].to_base64(),
                public_key = keys[1 - side].public(),
            );
            fs::write(&config, text)?;
            let arguments = ["gateway", "--config", &config.display().to_string()].map(str::to_owned);
            let log = self.directory.join(format!("{side}.log"));
            self.processes.push(self.namespaces[side].spawn(&program, &arguments, &log)?);
            statuses.push(status);
        }
        let established = |status: &PathBuf| {
            read_status(status).is_ok_and(|status| status["peers"][0]["state"] == "connected")
        };
        wait_for("no session between the gateways", || statuses.iter().all(established), || self.log())?;
        Ok(())
    }

    fn check_alive(&mut self) -> Result<(), TestbedError> {
        if self.processes.iter().all(Process::is_alive) {
            return Ok(());
        }
        Err(TestbedError::Process { what: "a tunnel's process has ended".to_owned(), log: self.log() })
    }

    fn log(&self) -> String {
        let read =
            |side: usize| fs::read_to_string(self.directory.join(format!("{side}.log"))).unwrap_or_default();
        format!("{} / {}", read(0).trim(), read(1).trim())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        end_all(&self.processes);
        for namespace in &self.namespaces {
            if namespace.exists() {
                // Nothing more can be done about it here.
                let _ = namespace.delete();
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Waits until `done`, as long as patience lasts.
fn wait_for(what: &str, done: impl Fn() -> bool, log: impl Fn() -> String) -> Result<(), TestbedError> {
    let clock = Clock::start();
    while !done() {
        if clock.now().saturating_since(base::Instant::ZERO) > PATIENCE {
            return Err(TestbedError::Process { what: what.to_owned(), log: log() });
        }
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Whether a file or socket is there.
fn exists(path: &Path) -> bool {
    path.exists()
}

/// An error of the system's kind with a text of ours.
fn broken(message: &str) -> io::Error {
    io::Error::other(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios() {
        let run = |scheme, gbps| Run { scheme, gbps };
        let runs = [
            run(Scheme::Plain, 8.0),
            run(Scheme::WireguardGo, 2.0),
            run(Scheme::Plain, 4.0),
            run(Scheme::WireguardGo, 3.0),
            run(Scheme::Plain, 5.0),
        ];
        let summaries = summarize(&runs);
        assert_eq!(summaries[0].median_gbps.to_bits(), 5.0_f64.to_bits());
        assert_eq!((summaries[0].runs, summaries[1].runs), (3, 2));
        assert!((summaries[0].to_wireguard_go.unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(summarize(&[]).len(), 0);
    }
}
