//! Network namespaces, through iproute2.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::TestbedError;
use super::processes::{Process, end_all};

/// One of a testbed's five places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The host at the terminal.
    Host1,
    /// The gateway at the terminal.
    Gateway1,
    /// The emulated satellite.
    Satellite,
    /// The gateway at the hub.
    Gateway2,
    /// The host at the hub.
    Host2,
}

impl Room {
    /// All of them, from the terminal to the hub.
    pub const ALL: [Self; 5] = [Self::Host1, Self::Gateway1, Self::Satellite, Self::Gateway2, Self::Host2];

    /// Its short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host1 => "host1",
            Self::Gateway1 => "gw1",
            Self::Satellite => "sat",
            Self::Gateway2 => "gw2",
            Self::Host2 => "host2",
        }
    }
}

/// A named network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(String);

/// Whether a testbed can be built at all.
///
/// # Errors
/// Not root, or no `ip` command.
pub fn check_requirements() -> Result<(), TestbedError> {
    // SAFETY: the call takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Err(TestbedError::Needs("root"));
    }
    match Command::new("ip").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(TestbedError::Needs("the ip command (package iproute2)")),
    }
}

/// Whether namespaces and TUN devices can be made here: makes and removes a namespace called `probe`.
///
/// # Errors
/// What [`check_requirements`] misses, no TUN driver, or what the kernel says to a namespace.
pub fn check_namespaces(probe: &str) -> Result<(), TestbedError> {
    check_requirements()?;
    if !Path::new("/dev/net/tun").exists() {
        return Err(TestbedError::Needs("a TUN driver"));
    }
    let probe = Namespace::new(probe.to_owned());
    ip(["netns", "add", probe.name()])?;
    probe.delete()
}

/// The file of the program that runs, even if its name has another content by now.
///
/// # Errors
/// The system does not tell.
pub fn this_program() -> io::Result<PathBuf> {
    fs::read_link("/proc/self/exe").or_else(|_| std::env::current_exe())
}

impl Namespace {
    /// The namespace called `name`, which need not exist.
    #[must_use]
    pub const fn new(name: String) -> Self {
        Self(name)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Whether it exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        Path::new("/run/netns").join(&self.0).exists() || Path::new("/var/run/netns").join(&self.0).exists()
    }

    /// Creates it, with its loopback up.
    ///
    /// # Errors
    /// It exists, or no right.
    pub fn add(&self) -> Result<(), TestbedError> {
        ip(["netns", "add", &self.0])?;
        self.ip_batch("link set lo up\n")
    }

    /// Deletes it and the devices in it.
    ///
    /// # Errors
    /// It does not exist, or no right.
    pub fn delete(&self) -> Result<(), TestbedError> {
        ip(["netns", "delete", &self.0]).map(drop)
    }

    /// The processes in it, but not this one.
    ///
    /// # Errors
    /// It does not exist, or no right.
    pub fn processes(&self) -> Result<Vec<Process>, TestbedError> {
        let pids = ip(["netns", "pids", &self.0])?;
        let others = pids.lines().filter_map(|pid| pid.trim().parse().ok());
        Ok(others.filter(|pid| *pid != std::process::id()).filter_map(Process::of_pid).collect())
    }

    /// Ends the processes in it, and those that they start meanwhile.
    ///
    /// # Errors
    /// It does not exist, or no right.
    pub fn end_processes(&self) -> Result<(), TestbedError> {
        for _ in 0..ROUNDS {
            let processes = self.processes()?;
            if processes.is_empty() {
                break;
            }
            end_all(&processes);
        }
        Ok(())
    }

    /// Runs `ip` commands in it, one a line.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn ip_batch(&self, commands: &str) -> Result<(), TestbedError> {
        let wrong =
            |message: String| TestbedError::Command { command: format!("ip -n {} -batch", self.0), message };
        let mut child = Command::new("ip")
            .args(["-n", &self.0, "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(stdin) = &mut child.stdin {
            stdin.write_all(commands.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(wrong(format!("{} in: {commands}", String::from_utf8_lossy(&output.stderr).trim())))
    }

    /// Whether it has a device of this name.
    #[must_use]
    pub fn has_device(&self, device: &str) -> bool {
        ip(["-n", &self.0, "link", "show", device]).is_ok()
    }

    /// Sets parameters of its own: a path below `/proc/sys/net` and a value each.
    ///
    /// # Errors
    /// It does not exist, no right, or the kernel knows no such parameter or value.
    pub fn set_parameters(&self, parameters: &[(&str, &str)]) -> io::Result<()> {
        let owned = |(path, value): &(&str, &str)| (format!("/proc/sys/net/{path}"), (*value).to_owned());
        let parameters: Vec<(String, String)> = parameters.iter().map(owned).collect();
        let write = move || {
            parameters.iter().try_for_each(|(path, value)| {
                let complain = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
                fs::write(path, value).map_err(complain)
            })
        };
        self.enter(write)?.join().map_err(|_| io::Error::other("the thread in the namespace panicked"))??
    }

    /// Lets packets pass between its devices.
    ///
    /// # Errors
    /// No right.
    pub fn enable_forwarding(&self) -> Result<(), TestbedError> {
        let script = "echo 1 > /proc/sys/net/ipv4/ip_forward && \
                      if [ -e /proc/sys/net/ipv6 ]; then echo 1 > /proc/sys/net/ipv6/conf/all/forwarding; fi";
        ip(["netns", "exec", &self.0, "sh", "-c", script]).map(drop)
    }

    /// Starts `program` in it, with `arguments` and its output in `log`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn<A: AsRef<OsStr>>(&self, program: &Path, arguments: &[A], log: &Path) -> io::Result<Process> {
        let log = File::options().create(true).append(true).open(log)?;
        let mut command = Command::new("ip");
        // SAFETY: between fork and exec the closure makes two calls that are safe there, and allocates nothing.
        unsafe { command.pre_exec(accept_signals) };
        let child = command
            .args(["netns", "exec", &self.0])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Not in the terminal's foreground group, whose Ctrl-C is not meant for it.
            .process_group(0)
            .spawn()?;
        // `ip netns exec` becomes the program: the pid stays.
        Process::of_child(&child)
    }

    /// Runs `work` on a thread of its own in it: sockets that the thread opens belong there.
    ///
    /// # Errors
    /// There is no such namespace, or no right; then `work` is not run.
    pub fn enter<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<std::thread::JoinHandle<io::Result<T>>> {
        let file = File::open(Path::new("/run/netns").join(&self.0))?;
        std::thread::Builder::new().name(self.0.clone()).spawn(move || {
            // SAFETY: the descriptor is open; only the calling thread changes its namespace.
            let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
            if entered < 0 { Err(io::Error::last_os_error()) } else { Ok(work()) }
        })
    }

    /// Becomes `command` in it; returns only if that fails.
    pub fn exec(&self, command: &[String]) -> io::Error {
        Command::new("ip").args(["netns", "exec", &self.0]).args(command).exec()
    }
}

/// How often to look for processes that others started while those were ended.
const ROUNDS: u32 = 5;

/// Undoes for a new process what [`gateway::signals::Signals`] did to its parent.
fn accept_signals() -> io::Result<()> {
    // SAFETY: a signal set is plain old data; each call gets a pointer to it that is valid for the call.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
    Ok(())
}

/// Runs `ip`; what it printed.
pub(crate) fn ip<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<String, TestbedError> {
    let mut command = Command::new("ip");
    command.args(arguments).stdin(Stdio::null());
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    Err(TestbedError::Command { command: format!("ip {}", arguments.join(" ")), message })
}
