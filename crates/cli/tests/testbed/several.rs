//! Gateways with several paths between them, over interfaces that come and go.

use std::process::{Child, Stdio};

use base::Duration;
use field::testbed::{Name, path_process};
use gateway::clock::sleep;
use serde_json::Value;

use super::bench::{Testbed, missing, signal};

/// A satellite's channel, and a nearer path of which only the terminal's gateway knows.
fn up(label: &str, path: &str) -> Testbed {
    let channel = ["--rate", "8 Mbit/s", "--delay", "300 ms", "--path", path].map(str::to_owned);
    let testbed = Testbed::up(label, &["--gateway-rate", "auto", "--pep"], &channel);
    testbed.wait_until("both paths are open", 30, || {
        ["gw1", "gw2"].iter().all(|room| {
            let status = testbed.status(room);
            let paths = status["peers"][0]["paths"].as_array().cloned().unwrap_or_default();
            paths.len() == 2 && paths.iter().all(|path| path["is_open"] == true)
        })
    });
    testbed
}

const NEAR: &str = "rate=\"4 Mbit/s\",delay=\"25 ms\"";

/// Bytes that a gateway has sent over each path.
fn sent(testbed: &Testbed, room: &str) -> [u64; 2] {
    let status = testbed.status(room);
    [0, 1].map(|at: usize| status["peers"][0]["paths"][at]["bytes_sent"].as_u64().expect("a path"))
}

/// The emulator of the nearer path.
fn emulator(testbed: &Testbed) -> u32 {
    path_process(&Name::new(testbed.name()).unwrap(), 1).unwrap().expect("there is a second path").pid
}

/// What host2 hears of 50 datagrams a second from host1.
struct Stream(Child);

impl Stream {
    fn start(testbed: &Testbed) -> Self {
        let hears = "import socket, time, sys\n\
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('10.77.2.2', 9000)); s.settimeout(10)\n\
            numbers, last, longest = set(), None, 0\n\
            print('ready', flush=True)\n\
            while True:\n\
            \x20 number = int.from_bytes(s.recv(2000)[:4], 'big')\n\
            \x20 if number == 0xffffffff: break\n\
            \x20 now = time.monotonic(); numbers.add(number)\n\
            \x20 longest = max(longest, now - last) if last else 0; last = now\n\
            missing = sorted(set(range(max(numbers) + 1)) - numbers)\n\
            print(len(numbers), max(numbers) + 1, longest, *missing, flush=True)";
        let child = testbed.command("host2").args(["python3", "-c", hears]).stdout(Stdio::piped()).spawn();
        let mut heard = Self(child.unwrap());
        assert_eq!(heard.line(), "ready");
        heard
    }

    fn line(&mut self) -> String {
        use std::io::Read as _;
        let (mut line, mut byte) = (String::new(), [0]);
        while self.0.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0].into());
        }
        line
    }

    /// How many datagrams left, the longest time between two that came in seconds, and which did not come.
    fn finish(mut self) -> (u32, f64, Vec<String>) {
        let told = self.line();
        assert!(self.0.wait().unwrap().success());
        let words: Vec<&str> = told.split(' ').collect();
        let missing = words[3..].iter().map(|word| (*word).to_owned()).collect();
        (words[1].parse().unwrap(), words[2].parse().unwrap(), missing)
    }
}

/// Sends for so many seconds, and then says that this was all.
fn send(testbed: &Testbed, seconds: u32) -> Child {
    let sends = format!(
        "import socket, time\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); to = ('10.77.2.2', 9000)\n\
         start = time.monotonic()\n\
         for number in range({seconds} * 50):\n\
         \x20 time.sleep(max(0, start + number / 50 - time.monotonic()))\n\
         \x20 s.sendto(number.to_bytes(4, 'big') + bytes(196), to)\n\
         time.sleep(3)\n\
         for again in range(20): s.sendto(b'\\xff' * 4, to); time.sleep(0.05)"
    );
    testbed.command("host1").args(["python3", "-c", &sends]).spawn().unwrap()
}

/// The hub knows of one carrier, and sends over both paths what it has for the terminal.
#[test]
fn a_download_takes_both_paths() {
    if missing("a_download_takes_both_paths") {
        return;
    }
    let testbed = up("both", NEAR);
    let server = testbed.serve(6 << 20);
    let before = sent(&testbed, "gw2");
    testbed.download(&server, 60);
    let after = sent(&testbed, "gw2");
    let over = [0, 1].map(|at| after[at] - before[at]);
    assert!(over.iter().all(|bytes| *bytes > 1 << 20), "{over:?} bytes of 6 MiB");
    let status = testbed.status("gw1");
    assert_eq!(status["peers"][0]["paths"][1]["carrier"], 1, "{status:#}");
    // Whoever has the paths calls them by name, and the hub by number.
    for (room, name) in [("gw1", "wan1"), ("gw2", "path-2")] {
        let asked =
            testbed.command(room).args([env!("CARGO_BIN_EXE_longhaul"), "gateway", "status"]).output();
        let told = String::from_utf8(asked.unwrap().stdout).unwrap();
        let line = told.lines().find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no line of {name}:\n{told}"));
        assert!(line.contains("always") && line.contains("Mbit/s") && line.contains(" ms"), "{told}");
    }
}

/// A path that dies without a word, an interface that is removed and plugged in again, an address that changes: not a datagram of a stream is missing.
#[test]
fn a_stream_outlives_its_path() {
    if missing("a_stream_outlives_its_path") {
        return;
    }
    let testbed = up("outlives", NEAR);
    let (gateway, satellite) = (testbed.namespace("gw1"), testbed.namespace("sat"));
    let stream = Stream::start(&testbed);
    let mut sender = send(&testbed, 32);
    let is_used = |room: &str| {
        let before = sent(&testbed, room)[1];
        sleep(Duration::from_millis(500));
        sent(&testbed, room)[1] - before > 5 * 200
    };
    testbed.wait_until("it goes the nearer way", 8, || is_used("gw1"));
    signal(emulator(&testbed), "STOP");
    sleep(Duration::from_secs(4));
    signal(emulator(&testbed), "CONT");
    testbed.wait_until("it goes there again", 8, || is_used("gw1"));
    gateway.ip_batch("link del wan1\n").unwrap();
    sleep(Duration::from_secs(4));
    let (one, other) = (gateway.name(), satellite.name());
    let again = ["-n", one, "link", "add", "wan1", "type", "veth", "peer", "name", "gw1-1", "netns", other];
    assert!(std::process::Command::new("ip").args(again).status().unwrap().success());
    satellite.ip_batch("address add 10.77.11.2/24 dev gw1-1\nlink set gw1-1 up\n").unwrap();
    gateway.ip_batch("address add 10.77.11.1/24 dev wan1\nlink set wan1 up\n").unwrap();
    testbed.wait_until("it goes over the new interface", 10, || is_used("gw1"));
    assert!(sender.wait().unwrap().success());
    let (left, longest, missing) = stream.finish();
    assert!(missing.is_empty(), "{missing:?} of {left}, and the longest gap was {longest} s");
    assert!(left == 1600 && longest < 5.0, "{left} left, and the longest gap was {longest} s");
    let status: Value = testbed.status("gw1");
    assert_eq!(status["peers"][0]["handshakes"], 1, "it is one session: {status:#}");
}

/// A metered path is spared, at both ends, and is there in need.
#[test]
fn a_metered_path_is_spared() {
    if missing("a_metered_path_is_spared") {
        return;
    }
    let testbed = up("metered", &format!("{NEAR},metered=true"));
    let server = testbed.serve(2 << 20);
    let before = sent(&testbed, "gw2");
    let transfer = testbed.start_slow_download(&server, 120);
    testbed.wait_until("half has arrived", 60, || transfer.bytes() > 1 << 20);
    let after = sent(&testbed, "gw2");
    let over = [0, 1].map(|at| after[at] - before[at]);
    assert!(over[1] * 50 < over[0], "{over:?} bytes");
    assert_eq!(testbed.status("gw2")["peers"][0]["paths"][1]["used"], "metered", "it was told");
    transfer.finish();
    signal(testbed.pid("sat"), "STOP");
    testbed.download(&server, 60);
    signal(testbed.pid("sat"), "CONT");
}

/// What cannot be is refused with a sentence.
#[test]
fn paths_that_cannot_be_are_refused() {
    if missing("paths_that_cannot_be_are_refused") {
        return;
    }
    for (path, want) in [
        ("rate=3", "--rate"),
        ("speed=\"20 Mbit/s\"", "--speed"),
        ("rate=\"20 Mbit/s\",metered=1", "metered"),
        ("rate=\"0 bit/s\"", "0 bit/s"),
    ] {
        let output = super::bench::longhaul(&["testbed", "up", "--name", "never", "--path", path]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{path}: {said}");
        assert!(said.contains(want), "{path}: {said}");
    }
}
