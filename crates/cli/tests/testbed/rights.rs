//! What a daemon may do once its devices are open, and that this is enough.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::Child;

use crate::requirements::skipped;
use gateway::privileges::files::restrict;

use super::bench::{Testbed, directory_of, fresh_name, missing, signal};

/// `CAP_NET_ADMIN`, and nothing, as the kernel shows sets of capabilities.
const NET_ADMIN: &str = "0000000000001000";
const NOTHING: &str = "0000000000000000";

/// A directory that `user` owns; removed when dropped.
struct Owned(std::path::PathBuf);

impl Owned {
    fn new(user: u32) -> Self {
        let directory = std::env::temp_dir().join(fresh_name("rights"));
        fs::create_dir(&directory).unwrap();
        chown(&directory, Some(user), Some(user)).unwrap();
        Self(directory)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the kernel says of the sets of every thread of a process that is `user`, once it says so.
fn expect_rights(testbed: &Testbed, process: &Child, user: u32, kept: &str) {
    let tasks = format!("/proc/{}/task", process.id());
    let sets = || -> Vec<String> {
        let threads = fs::read_dir(&tasks).unwrap().flatten();
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok()).collect()
    };
    let wanted = [
        format!("Uid:\t{user}\t{user}\t{user}\t{user}\n"),
        format!(
            "CapInh:\t{NOTHING}\nCapPrm:\t{kept}\nCapEff:\t{kept}\nCapBnd:\t{NOTHING}\nCapAmb:\t{NOTHING}\n"
        ),
        "NoNewPrivs:\t1\n".to_owned(),
    ];
    let has_all = |status: &String| wanted.iter().all(|line| status.contains(line));
    let what = format!("only {kept} is left of user {user}'s rights");
    testbed.wait_until(&what, 10, || !sets().is_empty() && sets().iter().all(has_all));
}

/// With or without `user`, a gateway has one right left. With it the link works, a configuration is read again, a device comes back, and
/// its status is told.
#[test]
fn a_gateway_keeps_one_right_and_needs_no_other() {
    if missing("a_gateway_keeps_one_right_and_needs_no_other") {
        return;
    }
    for (user, key) in [(0, ""), (65_534, "user = \"nobody\"\n")] {
        let testbed =
            Testbed::up("rights", &["--protocol", "plain"], &["--delay", "5 ms"].map(str::to_owned));
        testbed.kill_gateway("gw2");
        let site = fs::read_to_string(directory_of(testbed.name()).join("gw2.toml")).unwrap();
        let (site, _) = site.split_once("[status]").unwrap();
        let own = Owned::new(user);
        let file = own.0.join("site.toml");
        let write = |status: &Path| {
            let status = format!("[status]\nfile = {status:?}\ninterval = \"50 ms\"\n");
            fs::write(&file, format!("{key}{site}{status}")).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            chown(&file, Some(user), Some(user)).unwrap();
        };
        let [first, second] = ["first", "second"].map(|name| own.0.join(name));
        write(&first);
        let program = env!("CARGO_BIN_EXE_longhaul");
        let mut gateway = testbed.start("gw2", &[program, "gateway", "--config", file.to_str().unwrap()]);
        expect_rights(&testbed, &gateway, user, NET_ADMIN);
        testbed.wait_until("its status is written", 10, || first.exists());
        write(&second);
        signal(gateway.id(), "HUP");
        testbed.wait_until("its configuration is read again", 10, || second.exists() && !first.exists());
        assert!(testbed.run("gw2", &["ip", "link", "delete", "sat0"]).status.success());
        let routes = || testbed.run("gw2", &["ip", "route", "show", "dev", "sat0"]).stdout;
        testbed.wait_until("the device is back", 10, || !routes().is_empty());
        let server = testbed.serve(10_000);
        testbed.download(&server, 30);
        let asked = testbed.run("gw2", &[program, "gateway", "status", "sat0", "--json"]);
        let told: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap();
        assert_eq!(told[0]["pid"], gateway.id());
        expect_rights(&testbed, &gateway, user, NET_ADMIN);
        signal(gateway.id(), "TERM");
        assert!(gateway.wait().unwrap().success());
        assert!(!second.exists(), "a gateway that has ended has no status");
    }
}

/// Root owns most files, but a gateway of root's writes its status and nothing else: whoever leads its path elsewhere leads it nowhere.
#[test]
fn a_gateway_writes_in_one_directory() {
    let test = "a_gateway_writes_in_one_directory";
    // On a thread of its own, which the restriction ends with.
    let restricts = std::thread::spawn(|| restrict(None).unwrap()).join().unwrap();
    if missing(test) || skipped(test, (!restricts).then(|| "the kernel has no Landlock".to_owned())) {
        return;
    }
    let testbed = Testbed::up("writes", &["--protocol", "plain"], &["--delay", "5 ms"].map(str::to_owned));
    testbed.kill_gateway("gw2");
    let site = fs::read_to_string(directory_of(testbed.name()).join("gw2.toml")).unwrap();
    let (site, _) = site.split_once("[status]").unwrap();
    let own = Owned::new(0);
    let [file, status, moved, other] = ["site.toml", "status", "moved", "other"].map(|name| own.0.join(name));
    let text = format!("{site}[status]\nfile = {:?}\ninterval = \"50 ms\"\n", status.join("file"));
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(&other).unwrap();
    let program = env!("CARGO_BIN_EXE_longhaul");
    let mut gateway = testbed.start("gw2", &[program, "gateway", "--config", file.to_str().unwrap()]);
    testbed.wait_until("its status is written", 10, || status.join("file").exists());
    fs::rename(&status, &moved).unwrap();
    symlink(&other, &status).unwrap();
    let uptime = || {
        let asked = testbed.run("gw2", &[program, "gateway", "status", "sat0", "--json"]);
        let told: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap_or_default();
        told[0]["uptime_seconds"].as_f64().unwrap_or(0.0)
    };
    let led = uptime();
    testbed.wait_until("it has tried again", 20, || uptime() > led + 0.5);
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    signal(gateway.id(), "TERM");
    assert!(gateway.wait().unwrap().success());
}

/// The proxy by itself needs no right at all once it has its devices.
#[test]
fn a_proxy_keeps_no_right() {
    if missing("a_proxy_keeps_no_right") {
        return;
    }
    let testbed = Testbed::up("noright", &["--no-gateway"], &["--delay", "5 ms"].map(str::to_owned));
    for (user, key) in [(0, ""), (65_534, "user = \"nobody\"\n")] {
        let own = Owned::new(user);
        let file = own.0.join("proxy.toml");
        fs::write(&file, format!("{key}lan = \"lh-lan\"\nwan = \"lh-wan\"\n")).unwrap();
        let program = env!("CARGO_BIN_EXE_longhaul");
        let mut proxy = testbed.start("host1", &[program, "proxy", "--config", file.to_str().unwrap()]);
        expect_rights(&testbed, &proxy, user, NOTHING);
        signal(proxy.id(), "TERM");
        assert!(proxy.wait().unwrap().success());
    }
}
