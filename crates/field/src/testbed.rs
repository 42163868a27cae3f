//! Two hosts, two gateways and an emulated satellite, in network namespaces of this machine.
//!
//! ```text
//!  host1 ──── gw1 ──── sat ──── gw2 ──── host2
//!  .1.2     .1.1 .10.1    .20.1 .2.1     .2.2      10.77.x.x, and fd77:x:: likewise
//!                └─ TUN sat0 ─┘  .30.1 and .30.2
//! ```
//!
//! Further paths between the gateways ([`FurtherPath`]) have an emulator each, and networks .11.1 and .21.1, and so on.
//!
//! host1 is at the terminal, host2 at the hub. With gateways, `gw1` and `gw2` run the daemon and `sat` the
//! emulator between their UDP carriers. Without, the emulator bridges the two TUN devices itself.
//!
//! Namespaces are named after the testbed, so several live side by side. What was started is recorded in
//! a directory of its own; [`down`] ends those processes, by pid and start time, and whatever else runs in the
//! testbed's namespaces, and removes the rest.

pub mod namespaces;
pub mod null_modem;
pub mod processes;
mod sites;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use base::Duration;
use serde::{Deserialize, Serialize};

use gateway::clock::{Clock, sleep};
use gateway::daemon::{Status, read_status, replace};
use namespaces::{Namespace, Room};
use processes::Process;
use tunnel::config::LinkRate;

pub use sites::{ETHERNET_MTU, GATEWAY_PORT, Link};
pub(crate) use sites::{ends, hub, tuns};

/// What to build.
#[derive(Clone, Debug)]
pub struct Options {
    /// The testbed's name.
    pub name: Name,
    /// The link of the gateways; without it the emulator bridges the TUN devices itself.
    pub link: Option<Link>,
    /// The gateways' split-connection proxy, if they are to have one.
    pub pep: Option<pep::Config>,
    /// Arguments of `emulate` that describe the channel.
    pub channel: Vec<String>,
    /// Further paths between the gateways, or TUN devices that emulators bridge.
    pub paths: Paths,
    /// MTU of the TUN devices.
    pub mtu: u32,
    /// MTU of the gateways' carrier: an Ethernet's is [`ETHERNET_MTU`].
    pub carrier_mtu: u32,
    /// How long the gateways may take to find each other.
    pub patience: Duration,
}

/// Paths between the gateways, where there are several.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// What the first is used for.
    pub usage: PathUsage,
    /// The others.
    pub further: Vec<FurtherPath>,
}

/// A path between the gateways beside the first.
#[derive(Clone, Debug)]
pub struct FurtherPath {
    /// Arguments of `emulate` that describe its channel.
    pub channel: Vec<String>,
    /// Rates of the terminal's gateway; the hub's measures.
    pub rate: LinkRate,
    /// What it is used for.
    pub usage: PathUsage,
}

/// What a path is used for: keys of the terminal's `[[path]]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PathUsage {
    /// Only while others are too little.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub metered: bool,
    /// Only while others are silent.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub backup: bool,
    /// What may go over it; everything if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
}

/// A testbed's name: 1 to 20 lower-case letters, digits and hyphens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

/// Why a testbed cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A text that is no name.
    #[error("\"{0}\" is not a testbed name; allowed are 1 to 20 of a-z, 0-9 and -")]
    Name(String),
    /// Not root, or `ip` is missing.
    #[error("a testbed needs {0}")]
    Needs(&'static str),
    /// One with this name is up.
    #[error("testbed {0} is up already; `longhaul testbed down --name {0}` removes it")]
    Exists(String),
    /// A namespace with the name of one of its own, made by somebody else.
    #[error("network namespace {0} exists already, and no testbed made it; choose another --name")]
    Taken(String),
    /// None with this name is up.
    #[error("testbed {0} is not up; `longhaul testbed up --name {0}` builds it")]
    Missing(String),
    /// A signal asked to end; what there was is removed.
    #[error("interrupted")]
    Interrupted,
    /// A command failed.
    #[error("{command}: {message}")]
    Command {
        /// What was run.
        command: String,
        /// What it said.
        message: String,
    },
    /// A process ended early, or did not do what it was started for in time.
    #[error("{what}; its log says: {log}")]
    Process {
        /// Which, and what is wrong.
        what: String,
        /// The end of its log.
        log: String,
    },
    /// What the system refuses.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// What is recorded of a testbed that is up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Record {
    processes: Vec<(String, Process)>,
}

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// [`TestbedError::Name`].
    pub fn new(name: &str) -> Result<Self, TestbedError> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if (1..=20).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with('-') {
            return Ok(Self(name.to_owned()));
        }
        Err(TestbedError::Name(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The testbed's directory.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        let run = Path::new("/run");
        let parent = if run.is_dir() { run.to_owned() } else { std::env::temp_dir() };
        parent.join("longhaul").join(format!("testbed-{}", self.0))
    }

    /// The namespace of one of its rooms.
    #[must_use]
    pub fn namespace(&self, room: Room) -> Namespace {
        Namespace::new(format!("{}-{}", self.0, room.name()))
    }

    fn record_file(&self) -> PathBuf {
        self.directory().join("record.json")
    }

    fn record(&self) -> Result<Record, TestbedError> {
        match fs::read(self.record_file()) {
            Ok(text) => Ok(serde_json::from_slice(&text).map_err(io::Error::from)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(TestbedError::Missing(self.0.clone()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Builds a testbed and waits until its gateways have a session; half of one is removed again, also when it is
/// `interrupted`.
///
/// # Errors
/// It is up already, a right or a tool is missing, or a part of it did not come up.
pub fn up(options: &Options, interrupted: impl FnMut() -> bool) -> Result<(), TestbedError> {
    namespaces::check_requirements()?;
    let directory = options.name.directory();
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(&directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(TestbedError::Exists(options.name.0.clone()));
        }
        Err(error) => return Err(error.into()),
    }
    // A namespace that is there by now is not ours: neither to build in nor to remove.
    let mut namespaces = Room::ALL.iter().map(|room| options.name.namespace(*room));
    if let Some(taken) = namespaces.find(Namespace::exists) {
        fs::remove_dir(&directory)?;
        return Err(TestbedError::Taken(taken.name().to_owned()));
    }
    let mut record = Record::default();
    build(options, &directory, &mut record, interrupted).inspect_err(|_| {
        // The first error is the one to report.
        let _ = remove(&options.name, &record);
    })
}

/// Ends what [`up`] started and removes what it made.
///
/// # Errors
/// There is no such testbed, or a part of it cannot be removed.
pub fn down(name: &Name) -> Result<(), TestbedError> {
    namespaces::check_requirements()?;
    if !name.directory().is_dir() {
        return Err(TestbedError::Missing(name.0.clone()));
    }
    // A record that cannot be read must not keep the rest from being removed.
    remove(name, &name.record().unwrap_or_default())
}

/// Becomes `command`, run in `room`; returns only if that fails.
///
/// # Errors
/// There is no such testbed or command.
pub fn exec(name: &Name, room: Room, command: &[String]) -> TestbedError {
    match name.record() {
        Ok(_) => name.namespace(room).exec(command).into(),
        Err(error) => error,
    }
}

/// The status of the gateway in `room`, which is [`Room::Gateway1`] or [`Room::Gateway2`].
///
/// # Errors
/// There is none (yet).
pub fn gateway_status(name: &Name, room: Room) -> io::Result<Status> {
    read_status(&name.directory().join(format!("{}.status", room.name())))
}

/// The process of the gateway or the emulator in `room`.
///
/// # Errors
/// There is no such testbed.
pub fn process(name: &Name, room: Room) -> Result<Option<Process>, TestbedError> {
    process_of(name, room.name())
}

/// The emulator of a further path, from 1 on.
///
/// # Errors
/// There is no such testbed.
pub fn path_process(name: &Name, number: usize) -> Result<Option<Process>, TestbedError> {
    process_of(name, &path_owner(number))
}

fn process_of(name: &Name, whose: &str) -> Result<Option<Process>, TestbedError> {
    let record = name.record()?;
    Ok(record.processes.into_iter().find(|(owner, _)| owner == whose).map(|(_, process)| process))
}

/// Starts the gateway of `room` again, after its process has ended; `program` is `longhaul`.
///
/// # Errors
/// There is no such testbed, or the process cannot be started.
pub fn restart_gateway(name: &Name, room: Room, program: &Path) -> Result<(), TestbedError> {
    let mut record = name.record()?;
    record.processes.retain(|(owner, _)| owner != room.name());
    start(name, &mut record, (room, room.name()), program, &sites::gateway_arguments(&name.directory(), room))
}

/// Ends the emulator between two gateways and starts another one with the channel of these `options`: the same
/// session, over a channel whose realisation begins now.
///
/// # Errors
/// There is no such testbed, or the process cannot be started.
pub fn change_channel(options: &Options) -> Result<(), TestbedError> {
    let mut record = options.name.record()?;
    let satellite = Room::Satellite.name();
    let (former, others) = record.processes.into_iter().partition(|(owner, _)| owner == satellite);
    record.processes = others;
    let former: Vec<(String, Process)> = former;
    processes::end_all(&former.into_iter().map(|(_, process)| process).collect::<Vec<_>>());
    let program = namespaces::this_program()?;
    let owner = (Room::Satellite, satellite);
    start(&options.name, &mut record, owner, &program, &sites::emulator_arguments(options))
}

/// What the emulator has said so far.
///
/// # Errors
/// There is no such testbed (yet).
pub fn emulator_log(name: &Name) -> io::Result<String> {
    fs::read_to_string(name.directory().join(format!("{}.log", Room::Satellite.name())))
}

fn build(
    options: &Options,
    directory: &Path,
    record: &mut Record,
    mut interrupted: impl FnMut() -> bool,
) -> Result<(), TestbedError> {
    let name = &options.name;
    let program = namespaces::this_program()?;
    save(name, record)?;
    for room in Room::ALL {
        name.namespace(room).add()?;
    }
    sites::connect(options)?;
    let satellite = (Room::Satellite, Room::Satellite.name());
    start(name, record, satellite, &program, &sites::emulator_arguments(options))?;
    for number in 1..=options.paths.further.len() {
        let owner = path_owner(number);
        start(name, record, (Room::Satellite, &owner), &program, &sites::path_arguments(options, number))?;
    }
    match &options.link {
        Some(link) => {
            sites::write_configurations(options, link, directory)?;
            for room in [Room::Gateway1, Room::Gateway2] {
                let arguments = sites::gateway_arguments(directory, room);
                start(name, record, (room, room.name()), &program, &arguments)?;
            }
            wait_until(options, record, &mut interrupted, "no session between the gateways", || {
                let established = |room| {
                    gateway_status(name, room).is_ok_and(|status| status["peers"][0]["state"] == "connected")
                };
                established(Room::Gateway1) && established(Room::Gateway2)
            })?;
        }
        None => {
            let satellite = name.namespace(Room::Satellite);
            let tuns: Vec<String> = (0..=options.paths.further.len()).flat_map(sites::tuns).collect();
            wait_until(options, record, &mut interrupted, "no TUN devices from the emulator", || {
                tuns.iter().all(|tun| satellite.has_device(tun))
            })?;
            sites::adopt_devices(options)?;
        }
    }
    sites::route(options)
}

/// Waits until `done`, as long as all processes live and patience lasts.
fn wait_until(
    options: &Options,
    record: &Record,
    interrupted: &mut impl FnMut() -> bool,
    complaint: &str,
    done: impl Fn() -> bool,
) -> Result<(), TestbedError> {
    let clock = Clock::start();
    loop {
        if interrupted() {
            return Err(TestbedError::Interrupted);
        }
        if done() {
            return Ok(());
        }
        for (owner, process) in &record.processes {
            if !process.is_alive() {
                let log = end_of_log(&options.name.directory(), owner);
                return Err(TestbedError::Process { what: format!("the process in {owner} has ended"), log });
            }
        }
        if clock.now().saturating_since(base::Instant::ZERO) > options.patience {
            let log = end_of_log(&options.name.directory(), Room::Gateway1.name());
            return Err(TestbedError::Process {
                what: format!("{complaint} within {}", options.patience),
                log,
            });
        }
        sleep(Duration::from_millis(20));
    }
}

fn start(
    name: &Name,
    record: &mut Record,
    (room, owner): (Room, &str),
    program: &Path,
    arguments: &[String],
) -> Result<(), TestbedError> {
    let log = name.directory().join(format!("{owner}.log"));
    let process = name.namespace(room).spawn(program, arguments, &log)?;
    record.processes.push((owner.to_owned(), process));
    save(name, record)
}

/// Whose log and process those of a further path are.
fn path_owner(number: usize) -> String {
    format!("{}-{number}", Room::Satellite.name())
}

fn save(name: &Name, record: &Record) -> Result<(), TestbedError> {
    Ok(replace(&name.record_file(), &serde_json::to_vec_pretty(record).map_err(io::Error::from)?)?)
}

fn end_of_log(directory: &Path, owner: &str) -> String {
    let log = fs::read_to_string(directory.join(format!("{owner}.log"))).unwrap_or_default();
    let tail: Vec<&str> = log.lines().rev().take(3).collect();
    if tail.is_empty() {
        "nothing".to_owned()
    } else {
        tail.into_iter().rev().collect::<Vec<_>>().join(" / ")
    }
}

fn remove(name: &Name, record: &Record) -> Result<(), TestbedError> {
    let processes: Vec<Process> = record.processes.iter().map(|(_, process)| *process).collect();
    processes::end_all(&processes);
    let mut result = Ok(());
    for room in Room::ALL {
        let namespace = name.namespace(room);
        if namespace.exists() {
            // Without this, what was started in it would keep it alive without a name.
            let ended = namespace.end_processes();
            let deleted = namespace.delete();
            result = result.and(ended).and(deleted);
        }
    }
    result.and(fs::remove_dir_all(name.directory()).map_err(TestbedError::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_their_directory() {
        for name in ["t1", "a-b", "0123456789abcdefghij"] {
            assert!(Name::new(name).is_ok(), "{name}");
        }
        for name in ["", "..", "a/b", "A", "-x", "a b", "0123456789abcdefghijk"] {
            assert!(matches!(Name::new(name), Err(TestbedError::Name(_))), "{name}");
        }
    }
}
