//! A testbed that is removed when a test ends, however it ends.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::requirements::skipped;
use base::{Duration, Instant};
use field::testbed::namespaces::{Namespace, Room, check_namespaces};
use field::testbed::processes::Process;
use field::testbed::{self, Name};
use gateway::clock::{Clock, sleep};
use gateway::daemon::query;
use serde_json::Value;

pub(crate) struct Testbed {
    name: Name,
    /// Where served and fetched files lie.
    files: PathBuf,
}

/// A stock HTTP server inside the testbed.
pub(crate) struct Server {
    child: Child,
    address: String,
    content: Vec<u8>,
}

/// A `curl` that is under way.
pub(crate) struct Transfer {
    child: Child,
    file: PathBuf,
    content: Vec<u8>,
}

/// Whether this test cannot run here; says why, or fails where it must run.
pub(crate) fn missing(test: &str) -> bool {
    let probe = format!("longhaul-probe-{}-{}", std::process::id(), unique());
    let reason = match check_namespaces(&probe) {
        Err(error) => Some(error.to_string()),
        Ok(()) => {
            let found = |tool: &str| {
                let mut command = Command::new(tool);
                command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
            };
            ["curl", "python3", "iperf3", "/usr/sbin/sshd"]
                .iter()
                .find(|tool| !found(tool))
                .map(|tool| format!("a testbed test needs {tool}"))
        }
    };
    skipped(test, reason)
}

/// Whether a test lacks this program; says so, or fails where it must run.
pub(crate) fn needs(program: &str) -> bool {
    let mut command = Command::new(program);
    let is_there = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    skipped(program, (!is_there).then(|| format!("a test needs {program}")))
}

/// A process that ends with this.
pub(crate) struct Ending(pub(crate) Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn unique() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Errors of the main job: a blocked fraction of 0.3 in blockages of a second.
pub(crate) fn blockages() -> Vec<String> {
    let errors = "gilbert-elliott={f=0.3,d=\"1 s\"}";
    ["--rate", "1 Mbit/s", "--delay", "250 ms", "--errors", errors].map(str::to_owned).to_vec()
}

pub(crate) fn longhaul(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul")).args(arguments).output().unwrap()
}

/// Starts `longhaul`, in the background and in silence.
pub(crate) fn start_longhaul(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Sends a signal.
pub(crate) fn signal(pid: u32, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// A name that no other testbed has.
pub(crate) fn fresh_name(label: &str) -> String {
    let name = format!("t{}-{}-{label}", std::process::id(), unique());
    name[..name.len().min(20)].to_owned()
}

/// Waits until `done`.
pub(crate) fn wait_until(what: &str, seconds: u64, done: impl Fn() -> bool) {
    let clock = Clock::start();
    while !done() {
        let limit = Instant::ZERO + Duration::from_secs(seconds);
        assert!(clock.now() < limit, "waited {seconds} s until {what}");
        sleep(Duration::from_millis(20));
    }
}

/// What the one gateway that runs in a namespace says of itself now.
pub(crate) fn told(namespace: &Namespace) -> Option<Value> {
    let ask = || query::ask(&query::running().unwrap_or_default());
    let asked = namespace.enter(ask).ok()?.join().ok()?.ok()?;
    asked.into_iter().find_map(|it| it.status.ok())
}

pub(crate) fn namespaces_of(name: &str) -> usize {
    let name = Name::new(name).unwrap();
    Room::ALL.iter().filter(|room| name.namespace(**room).exists()).count()
}

pub(crate) fn directory_of(name: &str) -> PathBuf {
    Name::new(name).unwrap().directory()
}

pub(crate) fn namespace_of(name: &str, at: &str) -> Namespace {
    Name::new(name).unwrap().namespace(room(at))
}

fn room(name: &str) -> Room {
    *Room::ALL.iter().find(|room| room.name() == name).expect("a room of the testbed")
}

impl Testbed {
    pub(crate) fn up(label: &str, link: &[&str], channel: &[String]) -> Self {
        let name = Name::new(&fresh_name(label)).unwrap();
        let files = std::env::temp_dir().join(format!("longhaul-{}", name.as_str()));
        fs::create_dir(&files).unwrap();
        let testbed = Self { name, files };
        let mut arguments = vec!["testbed", "up", "--name", testbed.name.as_str()];
        // What a test does not say is the simplest: no proxy, and a rate that is known.
        let says = |option: &str| link.iter().any(|given| given.starts_with(option));
        if !says("--no-gateway") {
            arguments.extend((!says("--pep")).then_some("--no-pep"));
            arguments.extend(["--gateway-rate", "line"].into_iter().filter(|_| !says("--gateway-rate")));
        }
        arguments.extend(link.iter().filter(|option| **option != "--pep"));
        arguments.extend(channel.iter().map(String::as_str));
        let output = longhaul(&arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        testbed
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_str()
    }

    pub(crate) fn namespace(&self, at: &str) -> Namespace {
        self.name.namespace(room(at))
    }

    pub(crate) fn command(&self, room: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command.args(["testbed", "exec", "--name", self.name.as_str(), room, "--"]);
        command.stdin(Stdio::null());
        command
    }

    /// Serves a file of `len` bytes on host2.
    pub(crate) fn serve(&self, len: usize) -> Server {
        self.serve_at("10.77.2.2", len)
    }

    pub(crate) fn serve_at(&self, address: &str, len: usize) -> Server {
        // The server closes what it has written, and the kernel resets such a connection after eight time-outs unless told:
        // too few where the line is blocked a third of the time.
        self.namespace("host2").set_parameters(&[("ipv4/tcp_orphan_retries", "100")]).unwrap();
        let content: Vec<u8> =
            (0..len as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        fs::write(self.files.join("file"), &content).unwrap();
        let mut command = self.command("host2");
        command
            .args(["python3", "-m", "http.server", "--bind", address, "--directory"])
            .arg(&self.files)
            .arg("8000");
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Server { child, address: address.to_owned(), content };
        let url = server.url();
        self.wait_until("the HTTP server listens", 90, || {
            let mut probe = self.command("host2");
            probe.args(["curl", "-s", "-g", "-o", "/dev/null", "--max-time", "5", "--head", &url]);
            probe.status().unwrap().success()
        });
        server
    }

    /// Fetches the server's file on host1, checks it, and says how many seconds that took.
    pub(crate) fn download(&self, server: &Server, limit: u32) -> f64 {
        let clock = Clock::start();
        self.start_download(server, limit).finish();
        clock.now().as_secs_f64()
    }

    /// Fetches the server's file on host1, checks it, and says how many seconds that took; `None` if it was not
    /// complete after `limit` seconds.
    pub(crate) fn download_within(&self, server: &Server, limit: u64) -> Option<f64> {
        let clock = Clock::start();
        let transfer = self.start_download(server, 600);
        while !transfer.is_complete() {
            if clock.now() >= Instant::ZERO + Duration::from_secs(limit) {
                return None;
            }
            sleep(Duration::from_millis(20));
        }
        transfer.finish();
        Some(clock.now().as_secs_f64())
    }

    pub(crate) fn start_download(&self, server: &Server, limit: u32) -> Transfer {
        self.start_curl(server, limit, &[])
    }

    /// A download of 100 kB/s, which a link of 1 Mbit/s or more can keep up.
    pub(crate) fn start_slow_download(&self, server: &Server, limit: u32) -> Transfer {
        self.start_curl(server, limit, &["--limit-rate", "100K"])
    }

    /// Starts a command in a room, in the background.
    pub(crate) fn start(&self, room: &str, command: &[&str]) -> Child {
        self.command(room).args(command).stdout(Stdio::null()).spawn().unwrap()
    }

    fn start_curl(&self, server: &Server, limit: u32, options: &[&str]) -> Transfer {
        let file = self.files.join(format!("fetched-{}", unique()));
        let mut command = self.command("host1");
        command.args(["curl", "-s", "-S", "-g", "--fail", "--max-time", &limit.to_string(), "-o"]).arg(&file);
        let child = command.args(options).arg(server.url()).stderr(Stdio::piped()).spawn().unwrap();
        Transfer { child, file, content: server.content.clone() }
    }

    /// What a gateway says when it is asked, or, where none runs, wrote last.
    pub(crate) fn status(&self, name: &str) -> Value {
        told(&self.namespace(name)).unwrap_or_else(|| self.written(name))
    }

    /// The status file. On a busy disk it may be some seconds old.
    pub(crate) fn written(&self, name: &str) -> Value {
        testbed::gateway_status(&self.name, room(name)).unwrap()
    }

    pub(crate) fn processes(&self) -> Vec<Process> {
        let process = |room: &Room| testbed::process(&self.name, *room).unwrap();
        Room::ALL.iter().filter_map(process).collect()
    }

    pub(crate) fn pid(&self, name: &str) -> u32 {
        testbed::process(&self.name, room(name)).unwrap().unwrap().pid
    }

    /// Runs a command in a room.
    pub(crate) fn run(&self, room: &str, command: &[&str]) -> Output {
        self.command(room).args(command).output().unwrap()
    }

    pub(crate) fn is_alive(&self, name: &str) -> bool {
        testbed::process(&self.name, room(name)).unwrap().unwrap().is_alive()
    }

    pub(crate) fn kill_gateway(&self, name: &str) {
        let process = testbed::process(&self.name, room(name)).unwrap().unwrap();
        process.kill().unwrap();
        self.wait_until("the gateway is dead", 10, || !process.is_alive());
    }

    /// As `up` started it, with the same configuration.
    pub(crate) fn restart_gateway(&self, name: &str) {
        testbed::restart_gateway(&self.name, room(name), Path::new(env!("CARGO_BIN_EXE_longhaul"))).unwrap();
    }

    /// A data datagram that passed through the device `device` of a room, towards a gateway.
    pub(crate) fn capture_datagram(&self, room: &str, device: &str) -> Vec<u8> {
        let script = format!(
            "import socket\n\
             s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))\n\
             s.bind(('{device}', 3)); s.settimeout(10)\n\
             while True:\n\
             \x20 packet, address = s.recvfrom(65535)\n\
             \x20 if address[1] == 0x0800 and address[2] == socket.PACKET_OUTGOING and packet[9] == 17 and packet[28] == 4: break\n\
             print(packet[28:].hex())"
        );
        let output = self.command(room).args(["python3", "-c", &script]).output().unwrap();
        let hex = String::from_utf8(output.stdout).unwrap();
        let hex = hex.trim().as_bytes();
        assert!(hex.len() >= 64, "{}", String::from_utf8_lossy(&output.stderr));
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        hex.chunks_exact(2).map(byte).collect()
    }

    /// Runs `work` on a thread inside a room.
    pub(crate) fn inside<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.name.namespace(room(name)).enter(work).unwrap().join().unwrap().unwrap()
    }

    pub(crate) fn wait_until(&self, what: &str, seconds: u64, done: impl Fn() -> bool) {
        wait_until(what, seconds, done);
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let output = longhaul(&["testbed", "down", "--name", self.name.as_str()]);
        let _ = fs::remove_dir_all(&self.files);
        if !std::thread::panicking() {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

impl Server {
    fn url(&self) -> String {
        let host =
            if self.address.contains(':') { format!("[{}]", self.address) } else { self.address.clone() };
        format!("http://{host}:8000/file")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Transfer {
    /// Bytes that have arrived.
    pub(crate) fn bytes(&self) -> u64 {
        fs::metadata(&self.file).map_or(0, |metadata| metadata.len())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.bytes() == self.content.len() as u64
    }

    /// Waits for the end, which `curl` bounds itself, and compares.
    pub(crate) fn finish(mut self) {
        let status = self.child.wait().unwrap();
        let mut complaint = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut complaint).unwrap();
        }
        assert!(status.success(), "curl: {complaint}");
        assert!(fs::read(&self.file).unwrap() == self.content, "the file arrived changed");
    }

    /// Waits until it has failed: what `curl` says, and the bytes that had arrived, which are the first.
    pub(crate) fn fail(mut self) -> (String, usize) {
        let status = self.child.wait().unwrap();
        let mut complaint = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut complaint).unwrap();
        }
        assert!(!status.success(), "the transfer went on");
        let arrived = fs::read(&self.file).unwrap();
        assert!(self.content.starts_with(&arrived), "the file arrived changed");
        (complaint, arrived.len())
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
