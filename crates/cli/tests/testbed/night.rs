//! A night of mixed load between two networks, with what happens in a night: losses, outages, reloads, other addresses, restarts.
//!
//! Two minutes long, with everything closer together, unless `LONGHAUL_NIGHT` says how many seconds; 7200 has an outage each
//! 5 minutes, a reload each 3, another address each 10 and a restart each 30.

mod load;

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use base::{Duration, Instant};
use field::testbed::namespaces::Namespace;
use gateway::clock::{Clock, sleep};
use gateway::random;
use serde_json::Value;
use tunnel::key::PrivateKey;

use super::bench::{fresh_name, missing, signal, told, wait_until};
use load::{Kind, Load, Request, serve};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 12, 0, 2);

/// Two sites with a gateway each, and between the gateways an emulator that carries packets as a router does:
///
/// ```text
/// client ── gateway 0 ── net ── gateway 1 ── server
///   10.11.0.0/24   10.1.0.0/24  10.2.0.0/24   10.12.0.0/24
/// ```
struct Sites {
    directory: PathBuf,
    /// Those of the client, both gateways, the server, and what is between the gateways.
    namespaces: [Namespace; 5],
    gateways: [Option<Child>; 2],
    emulator: Option<Child>,
    /// Of gateway 0 in network 1.
    host: u8,
}

const NET: usize = 4;

/// An end that was asked for, until there is a session again.
#[derive(Debug)]
struct Restart {
    gateway: usize,
    begun: Instant,
    over: Instant,
    /// Connections that its log says were broken.
    broken: u64,
}

/// A process at a time.
#[derive(Clone, Copy, Debug)]
struct Life {
    gateway: usize,
    pid: u32,
    at: Instant,
    resident: u64,
    descriptors: usize,
}

impl Sites {
    fn new() -> Self {
        let name = fresh_name("night");
        let directory = std::env::temp_dir().join(format!("longhaul-{name}"));
        fs::create_dir(&directory).unwrap();
        // The program may be built anew before the night is over.
        fs::copy(env!("CARGO_BIN_EXE_longhaul"), directory.join("longhaul")).unwrap();
        let rooms = ["client", "gw0", "gw1", "server", "net"];
        let sites = Self {
            namespaces: rooms.map(|room| Namespace::new(format!("{name}-{room}"))),
            gateways: [None, None],
            emulator: None,
            host: 2,
            directory,
        };
        sites.namespaces.iter().for_each(|namespace| namespace.add().unwrap());
        for (near, far, network, device) in
            [(1, 0, 11, "lan"), (NET, 1, 1, "n1"), (NET, 2, 2, "n2"), (2, 3, 12, "lan")]
        {
            let far = &sites.namespaces[far];
            sites.namespaces[near]
                .ip_batch(&format!(
                    "link add {device} type veth peer name eth0 netns {}\naddress add 10.{network}.0.1/24 dev {device}\n\
                     link set {device} up\n",
                    far.name()
                ))
                .unwrap();
            far.ip_batch(&format!(
                "address add 10.{network}.0.2/24 dev eth0\nlink set eth0 up\nroute add default via 10.{network}.0.1\n"
            ))
            .unwrap();
        }
        for at in [1, 2, NET] {
            sites.namespaces[at].enable_forwarding().unwrap();
        }
        sites
    }

    fn program(&self, room: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.namespaces[room].name()]);
        command.arg(self.directory.join("longhaul")).stdin(Stdio::null());
        command
    }

    /// What comes from one side's gateway crosses the emulator and is routed on at the other side.
    fn start_emulator(&mut self, outages: Duration) {
        let (every, blocked) = (outages.as_millis(), outage(outages * 24).as_millis());
        let errors = format!(
            "any=[{{erasure={{probability=0.02}}}},{{periodic={{open=\"{} ms\",blocked=\"{blocked} ms\"}}}}]",
            every - blocked
        );
        let mut command = self.program(NET);
        command.args(["emulate", "--tun-a", "hub", "--tun-b", "terminal", "--rate", "10 Mbit/s"]);
        command.args(["--up-rate", "3 Mbit/s", "--delay", "150 ms", "--errors", &errors]);
        let log = fs::File::create(self.directory.join("emulator.log")).unwrap();
        self.emulator = Some(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
        let net = &self.namespaces[NET];
        wait_until("the emulator has its devices", 10, || {
            net.has_device("terminal") && net.has_device("hub")
        });
        net.ip_batch(
            "link set hub up\nlink set terminal up\nroute add default dev terminal table 101\n\
             route add default dev hub table 102\nrule add iif n1 lookup 101\nrule add iif n2 lookup 102\n",
        )
        .unwrap();
    }

    fn write_configurations(&self) {
        let mut random = random::system();
        let keys = [(); 2].map(|()| PrivateKey::generate(&mut random));
        for (end, far, listen, peer) in
            [(0, 1, "0.0.0.0:51900", "endpoint = \"10.2.0.2:51900\""), (1, 0, "10.2.0.2:51900", "")]
        {
            let text = format!(
                "[tun]\nname = \"sat0\"\naddresses = [\"10.77.0.{end}/24\"]\nroutes = [\"10.1{}.0.0/24\"]\n\
                 [carrier.udp]\nlisten = \"{listen}\"\n[identity]\nprivate-key = \"{}\"\n\
                 [[peer]]\nname = \"far\"\npublic-key = \"{}\"\n{peer}\n",
                far + 1,
                *keys[end].to_base64(),
                keys[far].public(),
            );
            fs::write(self.directory.join(format!("{end}.toml")), text).unwrap();
        }
    }

    fn start(&mut self, end: usize) {
        let log = self.directory.join(format!("{end}.log"));
        let log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = self.program(end + 1);
        command.args(["gateway", "--json", "--config"]).arg(self.directory.join(format!("{end}.toml")));
        self.gateways[end] = Some(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }

    fn log(&self, end: usize) -> String {
        fs::read_to_string(self.directory.join(format!("{end}.log"))).unwrap()
    }

    fn pid(&self, end: usize) -> u32 {
        self.gateways[end].as_ref().expect("it runs").id()
    }

    fn wait_for_session(&self) {
        for room in [1, 2] {
            wait_until("there is a session", 60, || {
                told(&self.namespaces[room]).is_some_and(|status| status["peers"][0]["state"] == "connected")
            });
        }
    }

    /// As `systemctl restart` does it.
    fn restart(&mut self, end: usize, clock: Clock) -> Restart {
        let begun = clock.now();
        signal(self.pid(end), "TERM");
        let status = self.gateways[end].take().expect("it runs").wait().unwrap();
        assert!(status.success(), "gateway {end}: {status}");
        let log = self.log(end);
        let mut ends = log.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let broken = ends.find(|line| line["notice"] == "ended").expect("it says that it ended");
        self.start(end);
        self.wait_for_session();
        Restart { gateway: end, begun, over: clock.now(), broken: broken["split"].as_u64().unwrap() }
    }

    /// As a lease of another address does it.
    fn change_address(&mut self) {
        let next = self.host % 200 + 1;
        let next = next.max(2);
        self.namespaces[1]
            .ip_batch(&format!(
                "address del 10.1.0.{}/24 dev eth0\naddress add 10.1.0.{next}/24 dev eth0\nroute add default via 10.1.0.1\n",
                self.host
            ))
            .unwrap();
        self.host = next;
    }

    fn lives(&self, at: Instant) -> [Life; 2] {
        [0, 1].map(|gateway| {
            let pid = self.pid(gateway);
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let resident =
                status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has a size");
            let resident = resident.trim().trim_end_matches(" kB").parse().unwrap();
            let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
            Life { gateway, pid, at, resident, descriptors }
        })
    }
}

impl Drop for Sites {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for end in 0..2 {
                let log = fs::read_to_string(self.directory.join(format!("{end}.log"))).unwrap_or_default();
                let tail: Vec<_> = log.lines().rev().take(40).collect();
                tail.iter().rev().for_each(|line| eprintln!("{end}: {line}"));
            }
        }
        for child in self.gateways.iter_mut().flatten().chain(&mut self.emulator) {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.namespaces.iter().for_each(|namespace| drop(namespace.delete()));
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// How long nothing passes, 24 times in a night.
fn outage(night: Duration) -> Duration {
    Duration::from_millis((night.as_millis() / 24 / 30).max(1000))
}

/// How often a thing is due, and whether it is now.
struct Due {
    every: Duration,
    next: Instant,
}

impl Due {
    fn each(night: Duration, times: u64) -> Self {
        let every = Duration::from_nanos(night.as_nanos() / times);
        // Not all at once: each begins in the middle of its first stretch.
        Self { every, next: Instant::ZERO + Duration::from_nanos(every.as_nanos() / 2) }
    }

    fn is_now(&mut self, now: Instant) -> bool {
        let due = now >= self.next;
        while now >= self.next {
            self.next += self.every;
        }
        due
    }
}

#[test]
fn nothing_fails_in_a_night_that_its_restarts_do_not_name() {
    if missing("nothing_fails_in_a_night_that_its_restarts_do_not_name") {
        return;
    }
    let seconds =
        std::env::var("LONGHAUL_NIGHT").map_or(120, |text| text.parse().expect("LONGHAUL_NIGHT in seconds"));
    let night = Duration::from_secs(seconds);
    let mut sites = Sites::new();
    sites.write_configurations();
    sites.start_emulator(Duration::from_nanos(night.as_nanos() / 24));
    serve(&sites.namespaces[3], SERVER);
    (0..2).for_each(|end| sites.start(end));
    sites.wait_for_session();
    let clock = Clock::start();
    // The threads of the load keep it until the process ends.
    let load: &'static Load = Box::leak(Box::new(Load::new(clock, SERVER)));
    let threads = load.start(&sites.namespaces[0]);
    let [mut reload, mut address, mut restart, mut look] =
        [40, 12, 4, 240].map(|times| Due::each(night, times));
    let (mut restarts, mut lives) = (Vec::new(), Vec::new());
    while clock.now() < Instant::ZERO + night {
        let now = clock.now();
        if reload.is_now(now) {
            (0..2).for_each(|end| signal(sites.pid(end), "HUP"));
        }
        if address.is_now(now) {
            sites.change_address();
        }
        if restart.is_now(now) {
            restarts.push(sites.restart(restarts.len() % 2, clock));
        }
        if look.is_now(now) {
            lives.extend(sites.lives(now));
        }
        sleep(Duration::from_millis(100));
    }
    load.end();
    threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    let logs = [0, 1].map(|end| sites.log(end).len());
    println!("log: {logs:?} bytes");
    check_requests(&load.requests(), &restarts, outage(night) + Duration::from_secs(1));
    check_lives(&lives, night);
    assert!(logs.iter().all(|len| *len < 1_000_000), "{logs:?} bytes of log");
}

/// Each failure falls into a restart, and no more of them than the restart names, were begun while it lasted, or just before: what an outage
/// holds up on the way has one gateway's connection, and the one that ends has not heard of it.
fn check_requests(requests: &[Request], restarts: &[Restart], outage: Duration) {
    for kind in [Kind::Page, Kind::Download, Kind::Upload, Kind::Terminal, Kind::Name] {
        let of: Vec<_> = requests.iter().filter(|request| request.kind == kind).collect();
        let mut took: Vec<_> =
            of.iter().map(|request| request.ended.saturating_since(request.begun)).collect();
        took.sort_unstable();
        let failed = of.iter().filter(|request| request.failed.is_some()).count();
        let at = |part: usize| took.get(took.len() * part / 100).map_or(0.0, |span| span.as_secs_f64());
        println!(
            "{kind:?}: {} requests, {failed} failed; half took {:.2} s, the slowest of a hundred {:.2} s, the slowest {:.2} s",
            of.len(),
            at(50),
            at(99),
            took.last().map_or(0.0, |span| span.as_secs_f64())
        );
        assert!(of.len() > 10, "there was little load");
    }
    let mut failed: Vec<_> = requests.iter().filter(|request| request.failed.is_some()).collect();
    for restart in restarts {
        let (within, beyond): (Vec<_>, Vec<_>) = failed
            .into_iter()
            .partition(|failed| failed.since < restart.over && failed.ended >= restart.begun);
        let (meanwhile, before) = within.iter().fold((0, 0), |(meanwhile, before), request| {
            if request.since + outage >= restart.begun {
                (meanwhile + 1, before)
            } else {
                (meanwhile, before + 1)
            }
        });
        println!(
            "restart of {} at {:.1} s: back after {:.2} s; it names {}, and {before} requests broke; {meanwhile} of those begun meanwhile failed",
            restart.gateway,
            restart.begun.as_secs_f64(),
            restart.over.saturating_since(restart.begun).as_secs_f64(),
            restart.broken
        );
        assert!(before <= restart.broken, "{within:?}");
        failed = beyond;
    }
    assert!(failed.is_empty(), "no restart has to do with {failed:?}");
}

/// Memory and descriptors of each process are in the last quarter of its life no more than they were in one before.
fn check_lives(lives: &[Life], night: Duration) {
    let mut pids: Vec<u32> = lives.iter().map(|life| life.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    for pid in pids {
        let of: Vec<_> = lives.iter().filter(|life| life.pid == pid).collect();
        let medians = |value: fn(&Life) -> u64| {
            [0, 1, 2, 3].map(|part| {
                let mut values: Vec<_> = of[of.len() * part / 4..of.len() * (part + 1) / 4]
                    .iter()
                    .map(|life| value(life))
                    .collect();
                values.sort_unstable();
                values.get(values.len() / 2).copied().unwrap_or_default()
            })
        };
        let (resident, descriptors) =
            (medians(|life| life.resident), medians(|life| life.descriptors as u64));
        println!(
            "process {pid} of gateway {}, {:.0} to {:.0} s: {resident:?} kB in each quarter, {descriptors:?} descriptors",
            of[0].gateway,
            of[0].at.as_secs_f64(),
            of[of.len() - 1].at.as_secs_f64()
        );
        let most = |values: [u64; 4]| values[0].max(values[1]).max(values[2]);
        assert!(descriptors[3] <= most(descriptors) + 2, "descriptors grow");
        // Buffers are still taken for the first time in a short night.
        let slack = if night >= Duration::from_secs(3600) { 1_000 } else { 10_000 };
        assert!(resident[3] <= most(resident) * 103 / 100 + slack, "memory grows");
    }
}
