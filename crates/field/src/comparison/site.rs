//! Two namespaces and the emulator between them, for one transfer.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use base::{Duration, Instant};
use serde_json::Value;

use super::{Case, Contender, Options};
use crate::testbed::TestbedError;
use crate::testbed::namespaces::{Namespace, this_program};
use crate::testbed::processes::{Process, end_all};
use gateway::clock::{Clock, sleep};

/// The sender's namespace and the receiver's; removed when dropped.
#[derive(Debug)]
pub(super) struct Site {
    directory: PathBuf,
    pub(super) namespaces: [Namespace; 2],
    emulator: Option<Process>,
}

/// The kernel's addresses on the emulator's devices.
pub(super) const KERNEL: [&str; 2] = ["10.81.0.1", "10.81.0.2"];
/// The addresses of our hosts, behind a device each.
pub(super) const OURS: [&str; 2] = ["10.81.1.2", "10.81.2.2"];
/// The kernel's address and prefix on the device of our host.
pub(super) const FORWARDING: [&str; 2] = ["10.81.1.1/24", "10.81.2.1/24"];
/// The port of every receiver.
pub(super) const PORT: u16 = 7_000;
/// MTU of every device, that of an Ethernet.
pub(super) const MTU: u32 = 1500;
/// The emulator's devices.
const DEVICES: [&str; 2] = ["sat0", "sat1"];
/// For the emulator to start.
const PATIENCE: Duration = Duration::from_secs(20);

impl Site {
    pub(super) fn build(options: &Options, case: &Case, number: usize) -> Result<Self, TestbedError> {
        let name = format!("lhcmp{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        DirBuilder::new().mode(0o700).create(&directory)?;
        let namespaces = ["a", "b"].map(|side| Namespace::new(format!("{name}{side}")));
        let mut site = Self { directory, namespaces, emulator: None };
        for namespace in &site.namespaces {
            namespace.add()?;
            // IPv6 would send packets of its own, which take the place of others in the channel's realisation.
            namespace.set_parameters(&[
                ("ipv6/conf/all/disable_ipv6", "1"),
                ("ipv6/conf/default/disable_ipv6", "1"),
                ("ipv4/ip_forward", "1"),
            ])?;
            namespace.set_parameters(&case.configuration.parameters())?;
        }
        site.start_emulator(options, case)?;
        site.connect(case.contender)?;
        Ok(site)
    }

    fn start_emulator(&mut self, options: &Options, case: &Case) -> Result<(), TestbedError> {
        let errors = format!("erasure={{probability={}}}", case.loss / 100.0);
        let (seed, queue) = (case.seed.to_string(), options.queue.to_string());
        let arguments = [
            "emulate",
            "--json",
            "--tun-a",
            DEVICES[0],
            "--tun-b",
            DEVICES[1],
            "--rate",
            &options.rate,
            "--delay",
            &options.delay,
            "--errors",
            &errors,
            "--seed",
            &seed,
            "--line-queue",
            &queue,
        ];
        let [a, _] = &self.namespaces;
        self.emulator = Some(a.spawn(&this_program()?, &arguments, &self.log_file())?);
        let clock = Clock::start();
        while !a.has_device(DEVICES[1]) {
            if clock.now() > Instant::ZERO + PATIENCE {
                let what = "the emulator does not start".to_owned();
                return Err(TestbedError::Process { what, log: self.log() });
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn connect(&self, contender: Contender) -> Result<(), TestbedError> {
        let [a, b] = &self.namespaces;
        a.ip_batch(&format!("link set {} netns {}\n", DEVICES[1], b.name()))?;
        for (side, namespace) in self.namespaces.iter().enumerate() {
            let (device, address) = (DEVICES[side], KERNEL[side]);
            let mut text = format!("link set {device} mtu {MTU} up\naddress add {address}/30 dev {device}\n");
            if contender == Contender::Ours {
                text += &format!("route add {}/32 dev {device}\n", OURS[1 - side]);
            }
            namespace.ip_batch(&text)?;
        }
        Ok(())
    }

    fn log_file(&self) -> PathBuf {
        self.directory.join("emulator.log")
    }

    /// What the emulator said.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default().trim().to_owned()
    }

    /// Ends the emulator; its counters.
    pub(super) fn close(mut self) -> Result<Value, TestbedError> {
        end_all(self.emulator.take().as_slice());
        let log = self.log();
        let report = log.lines().rev().find_map(|line| serde_json::from_str(line).ok());
        report.ok_or_else(|| TestbedError::from(io::Error::other(format!("no counters: {log}"))))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        end_all(self.emulator.as_slice());
        for namespace in &self.namespaces {
            if namespace.exists() {
                // Nothing more can be done about it here.
                let _ = namespace.delete();
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}
