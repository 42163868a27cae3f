//! A gateway's status, while an unprivileged user of the machine does what it can against that.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::bench::{Testbed, fresh_name, missing, wait_until};

/// Runs as another user, in the network namespace of a gateway.
struct Stranger(Child);

impl Stranger {
    /// Starts a script of Python's as `nobody` in the namespace `name`, and waits until it says that it is ready.
    fn start(name: &str, script: &str) -> Self {
        // It changes its user itself: root's interpreter and its modules may lie where nobody else can read them.
        let script = format!(
            "import os, resource, signal, socket\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n{script}"
        );
        let mut command = inside(name, &["python3", "-c", &script]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn inside(name: &str, command: &[&str]) -> Command {
    let mut ip = Command::new("ip");
    ip.args(["netns", "exec", name]).args(command).stdin(Stdio::null());
    ip
}

/// What `longhaul gateway status` says in the namespace, within a time that no honest answer takes.
fn ask(name: &str, words: &[&str]) -> Output {
    let mut command = inside(name, &[env!("CARGO_BIN_EXE_longhaul"), "gateway", "status"]);
    let child = command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the status is told", 60, || child_has_ended(child.id()));
    child.wait_with_output().unwrap()
}

/// Whether a child has ended and waits to be looked at.
fn child_has_ended(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    status.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z'))
}

fn array(output: &Output) -> Vec<Value> {
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Connects as often as the gateway's queue takes it, holds what it can, and goes on; it says nothing.
const CROWD: &str = "
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
name = [l.split()[7] for l in open('/proc/net/unix') if '@longhaul-gateway/' in l][0]
held, tries = [], 0
while True:
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect('\\0' + name[1:])
        held.append(s)
    except BlockingIOError:
        pass
    held = held[-10000:]
    tries += 1
    if tries == 20000: print('ready', flush=True)
";

/// Listens as gateways do and never answers: under the name that one had once, and for devices of other names.
const FAKES: &str = "
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
held = []
devices = ['sat0', 'lo'] + ['fake%d' % n for n in range(300)]
for device in devices + [device + '/0000000000000000' for device in devices]:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.bind('\\0longhaul-gateway/' + device)
        s.listen(1)
        held.append(s)
    except OSError:
        pass
print('ready', flush=True)
signal.pause()
";

/// Nobody who connects keeps root from an answer, however often.
#[test]
fn a_crowd_that_says_nothing_keeps_nobody_from_the_status() {
    if missing("a_crowd_that_says_nothing_keeps_nobody_from_the_status") {
        return;
    }
    let testbed = Testbed::up("crowd", &["--protocol", "plain"], &["--delay", "5 ms"].map(str::to_owned));
    let name = testbed.namespace("gw1").name().to_owned();
    let crowd = Stranger::start(&name, CROWD);
    for words in [&["--json"][..], &["sat0", "--json"]] {
        let told = ask(&name, words);
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        assert_eq!((array(&told).len(), &array(&told)[0]["answered_by_user"]), (1, &0.into()));
    }
    drop(crowd);
}

/// Whoever listens under a gateway's name first, or under many, keeps root from no answer, and is told apart from gateways.
#[test]
fn fakes_keep_nobody_from_the_status() {
    if missing("fakes_keep_nobody_from_the_status") {
        return;
    }
    let testbed = Testbed::up("fakes", &["--protocol", "plain"], &["--delay", "5 ms"].map(str::to_owned));
    let name = testbed.namespace("gw1").name().to_owned();
    testbed.kill_gateway("gw1");
    let fakes = Stranger::start(&name, FAKES);
    testbed.restart_gateway("gw1");
    let pid = testbed.pid("gw1");
    testbed.wait_until("it is back", 10, || testbed.written("gw1")["pid"] == pid);
    let told = ask(&name, &["sat0", "--json"]);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert_eq!((array(&told).len(), &array(&told)[0]["pid"]), (1, &pid.into()));
    // Of all of them the true one's is had; that there is one whose status is not is an error, in JSON too.
    let told = ask(&name, &["--json"]);
    assert_eq!((array(&told).len(), &array(&told)[0]["pid"]), (1, &pid.into()));
    let complaint = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(1), "{complaint}");
    assert_eq!(complaint, "longhaul: gateway of lo: user 65534, who listens for it, did not answer\n");
    // Where nothing is had, nothing is said that could be taken for an answer.
    let told = ask(&name, &["lo", "--json"]);
    assert_eq!((told.status.code(), told.stdout.as_slice()), (Some(1), &b""[..]));
    assert_eq!(String::from_utf8_lossy(&told.stderr), complaint);
    drop(fakes);
}

/// Where nobody may ask, that is said, with a code that is not 0.
#[test]
fn a_stranger_is_told_that_he_is_not_answered() {
    if missing("a_stranger_is_told_that_he_is_not_answered") {
        return;
    }
    let testbed = Testbed::up("asks", &["--protocol", "plain"], &["--delay", "5 ms"].map(str::to_owned));
    let room = testbed.namespace("gw1");
    let program = std::env::temp_dir().join(fresh_name("asks"));
    std::fs::copy(env!("CARGO_BIN_EXE_longhaul"), &program).unwrap();
    let mut command = inside(room.name(), &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    let told = command.arg(&program).args(["gateway", "status", "--json"]).output();
    std::fs::remove_file(&program).unwrap();
    let told = told.unwrap();
    assert_eq!((told.status.code(), told.stdout.as_slice()), (Some(1), &b""[..]));
    let complaint = String::from_utf8_lossy(&told.stderr);
    assert_eq!(complaint, "longhaul: gateway of sat0: it answers root and its own user only\n");
}
