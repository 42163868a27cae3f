//! Our TCP and the kernel's side by side: the same transfer, in turn, over the same realisation of an emulated channel.
//!
//! Each transfer has two network namespaces of its own and an emulator between them, `longhaul emulate` with two TUN
//! devices. The kernel's transfer runs between sockets in the two; ours between a [`crate::stack`] in each, from
//! which the kernel only forwards. Nothing but the transfer crosses the emulator, so the erasures, which belong to a
//! packet's number in its direction, are the same for both while they send the same packets.
//!
//! A transfer's time counts from before the SYN until the last byte was read.

pub mod configuration;
mod site;
pub(crate) mod transfer;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base::Rng;
use serde::Serialize;

use crate::testbed::TestbedError;
use crate::testbed::namespaces::check_namespaces;
use crate::workers;
use configuration::Configuration;
use gateway::signals::Signals;
use site::Site;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a transfer.
    pub size: usize,
    /// Rate of the channel in both directions, as `longhaul emulate` takes it.
    pub rate: String,
    /// Propagation delay of the channel, one way, as `longhaul emulate` takes it.
    pub delay: String,
    /// Packets that may wait for each line.
    pub queue: u32,
    /// Of both TCPs.
    pub configurations: Vec<Configuration>,
    /// Further settings of ours, a line of TOML each.
    pub changes: Vec<String>,
    /// Erasure of packets in both directions, in percent.
    pub losses: Vec<f64>,
    /// Of the channel's realisations.
    pub seeds: Vec<u64>,
    /// Transfers at a time.
    pub jobs: usize,
}

/// Whose TCP, at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    /// The kernel's.
    Kernel,
    /// Ours.
    Ours,
}

/// One transfer.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// How both ends were set.
    pub configuration: Configuration,
    /// Erasure in percent.
    pub loss: f64,
    /// Of the realisation.
    pub seed: u64,
    /// Whose TCP.
    pub contender: Contender,
    /// From before the SYN to the last byte.
    pub seconds: f64,
    /// Segments that the sender sent again.
    pub retransmissions: u64,
    /// Data packets that found the emulator's queue full.
    pub dropped: u64,
    /// Data packets that were erased.
    pub erased: u64,
    /// How late the emulator was at worst, in milliseconds.
    pub emulator_late_ms: f64,
}

/// Makes all transfers; `progress` hears of each. Needs root.
///
/// # Errors
/// No right; a transfer that breaks, or changes the content.
pub fn run(
    options: &Options,
    signals: &mut Signals,
    progress: impl FnMut(&Run),
) -> Result<Vec<Run>, TestbedError> {
    check_namespaces(&format!("lhcmp{}-probe", std::process::id()))?;
    let content = content(options.size);
    let work = |case: &Case, number, stop: &AtomicBool| measure(options, case, number, &content, stop);
    workers::carry_out(&cases(options), options.jobs, signals, work, progress)
}

/// One transfer to make.
struct Case {
    configuration: Configuration,
    loss: f64,
    seed: u64,
    contender: Contender,
}

/// All of them; the two of a pair follow each other, so that they meet the same load of the machine.
fn cases(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for &loss in &options.losses {
        for &seed in &options.seeds {
            for &configuration in &options.configurations {
                let case = |contender| Case { configuration, loss, seed, contender };
                cases.extend([Contender::Kernel, Contender::Ours].map(case));
            }
        }
    }
    cases
}

/// Bytes that do not repeat.
pub(crate) fn content(len: usize) -> Arc<[u8]> {
    let mut rng = Rng::named(1, "comparison");
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| rng.bits().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes.into()
}

fn measure(
    options: &Options,
    case: &Case,
    number: usize,
    content: &Arc<[u8]>,
    stop: &AtomicBool,
) -> Result<Run, TestbedError> {
    let site = Site::build(options, case, number)?;
    let outcome = match case.contender {
        Contender::Kernel => transfer::kernel(&site, &case.configuration, content, stop),
        Contender::Ours => {
            let config = case.configuration.tcp(&options.changes).map_err(std::io::Error::other)?;
            transfer::ours(&site, config, content, stop)
        }
    };
    let outcome = outcome.map_err(|error| match error.kind() {
        std::io::ErrorKind::Interrupted => TestbedError::Interrupted,
        _ => TestbedError::Process {
            what: format!(
                "{:?}, {}, {} %, seed {}: {error}",
                case.contender,
                case.configuration.name(),
                case.loss,
                case.seed
            ),
            log: site.log(),
        },
    })?;
    let report = site.close()?;
    let down = |key: &str| report["down"][key].as_u64().unwrap_or(0);
    let late = ["down", "up"].map(|line| report[line]["greatest_lateness_us"].as_u64().unwrap_or(0));
    Ok(Run {
        configuration: case.configuration,
        loss: case.loss,
        seed: case.seed,
        contender: case.contender,
        seconds: outcome.span.as_secs_f64(),
        retransmissions: outcome.retransmissions,
        dropped: down("dropped_queue"),
        erased: down("damaged"),
        emulator_late_ms: late[0].max(late[1]) as f64 / 1000.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_its_pairs_side_by_side() {
        let options = Options {
            size: 1,
            rate: "1 Mbit/s".to_owned(),
            delay: "1 ms".to_owned(),
            queue: 100,
            configurations: Configuration::ALL.to_vec(),
            changes: Vec::new(),
            losses: vec![0.0, 1.0],
            seeds: vec![1, 2, 3],
            jobs: 1,
        };
        let cases = cases(&options);
        assert_eq!(cases.len(), 8 * 2 * 3 * 2);
        for pair in cases.chunks(2) {
            assert_eq!([pair[0].contender, pair[1].contender], [Contender::Kernel, Contender::Ours]);
            assert_eq!((pair[0].configuration, pair[0].seed), (pair[1].configuration, pair[1].seed));
        }
    }

    #[test]
    fn the_content_has_its_length_and_no_short_period() {
        let bytes = content(100_003);
        assert_eq!(bytes.len(), 100_003);
        for period in [1, 8, 1448, 1460, 65_536] {
            assert_ne!(bytes[..1000], bytes[period..period + 1000]);
        }
    }
}
