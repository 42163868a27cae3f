//! Where it happens: two namespaces and the wire between them, the hub in one and the fleet in the other.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use base::{Duration, Instant, Rate};
use gateway::clock::{Clock, sleep};
use gateway::readiness::{Interest, wait};
use gateway::signals::Signals;
use tunnel::config::Link;
use tunnel::key::PrivateKey;

use super::Options;
use super::terminals::{Fleet, Order, Places, Told};
use super::traffic::Traffic;
use crate::testbed::TestbedError;
use crate::testbed::namespaces::{Namespace, ip, this_program};
use crate::testbed::processes::{Process, end_all};

pub(super) struct Site<'a> {
    directory: PathBuf,
    hub: Namespace,
    terminals: Namespace,
    process: Option<Process>,
    /// The hub's private key, and those of the terminals.
    hub_key: PrivateKey,
    keys: Vec<PrivateKey>,
    /// How often the hub was started.
    lives: u32,
    orders: Sender<Order>,
    told: Receiver<Told>,
    thread: Option<JoinHandle<io::Result<io::Result<()>>>>,
    options: Options,
    signals: &'a mut Signals,
}

/// Addresses on the wire.
const WIRE: [&str; 2] = ["10.79.0.1", "10.79.0.2"];
pub(super) const PORT: u16 = 51_900;
/// Where terminals are: shared address space (RFC 6598), and where the hosts behind them are.
const TERMINALS: &str = "100.64.0.0/10";
pub(super) const HOSTS: &str = "10.128.0.0/9";
pub(super) const FAR: Ipv4Addr = Ipv4Addr::new(10, 127, 0, 1);

/// For a configuration to be read again.
const RELOAD_PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn terminal(number: u32) -> Ipv4Addr {
    (u32::from(Ipv4Addr::new(100, 64, 0, 0)) + number).into()
}

pub(super) fn number(address: Ipv4Addr) -> u32 {
    u32::from(address).wrapping_sub(u32::from(Ipv4Addr::new(100, 64, 0, 0)))
}

pub(super) fn host(number: u32) -> Ipv4Addr {
    (u32::from(Ipv4Addr::new(10, 128, 0, 0)) + number).into()
}

/// A wire between the two namespaces, at whose far end all terminals are.
pub(super) fn lay_wire(hub: &Namespace, terminals: &Namespace) -> Result<(), TestbedError> {
    hub.add()?;
    terminals.add()?;
    ip([
        "-n",
        hub.name(),
        "link",
        "add",
        "wire",
        "type",
        "veth",
        "peer",
        "name",
        "wire",
        "netns",
        terminals.name(),
    ])?;
    let up = |address| format!("address add {address}/24 dev wire\nlink set wire up\n");
    hub.ip_batch(&format!("{}route add {TERMINALS} via {}\n", up(WIRE[0]), WIRE[1]))?;
    terminals.ip_batch(&format!("{}route add local {TERMINALS} dev lo\n", up(WIRE[1])))
}

impl<'a> Site<'a> {
    /// A hub with so many terminals, all of which call.
    pub(super) fn up(peers: u32, options: &Options, signals: &'a mut Signals) -> Result<Self, TestbedError> {
        let id = std::process::id();
        let [hub, terminals] = ["hub", "fleet"].map(|end| Namespace::new(format!("lhf{id}-{end}")));
        let directory = std::env::temp_dir().join(format!("longhaul-fleet-{id}"));
        DirBuilder::new().mode(0o700).create(&directory)?;
        let (orders, ordered) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let mut random = gateway::random::system();
        let hub_key = PrivateKey::generate(&mut random);
        let keys: Vec<_> = (0..peers).map(|_| PrivateKey::generate(&mut random)).collect();
        let mut site = Self {
            directory,
            hub,
            terminals,
            process: None,
            hub_key,
            keys,
            lives: 0,
            orders,
            told,
            thread: None,
            options: options.clone(),
            signals,
        };
        lay_wire(&site.hub, &site.terminals)?;
        site.configure(|_| Some(1))?;
        site.start_hub()?;
        let (public, keys) = (site.hub_key.public(), site.keys.clone());
        let link = Link::parse("link", &options.link).map_err(|error| io::Error::other(error.to_string()))?;
        let hub = WIRE[0].parse::<Ipv4Addr>().expect("an address");
        let places = Places { hub: SocketAddr::from((hub, PORT)), terminal, number, host, far: FAR };
        let run = move || Fleet::new(places, keys, public, link)?.run(&ordered, &tell);
        site.thread = Some(site.terminals.enter(run)?);
        Ok(site)
    }

    /// Writes the hub's configuration. Peers have the weight that `weight` says, by number; without one, they are none.
    pub(super) fn configure(&self, weight: impl Fn(u32) -> Option<u32>) -> Result<(), TestbedError> {
        let Options { link, workers, .. } = &self.options;
        let workers = workers.map_or_else(String::new, |count| format!("workers = {count}\n"));
        let mut text = format!(
            "{workers}[tun]\nname = \"sat0\"\naddresses = [\"{FAR}/32\"]\nroutes = [\"{HOSTS}\"]\n\
             [carrier.udp]\nlisten = \"{}:{PORT}\"\n\
             [link]\n{link}\n[pep]\nenabled = false\n\
             [identity]\nprivate-key = \"{}\"\n",
            WIRE[0],
            &*self.hub_key.to_base64(),
        );
        for (number, key) in (0..).zip(&self.keys) {
            let Some(weight) = weight(number) else { continue };
            let (public, network) = (key.public(), host(number));
            let _ = write!(
                text,
                "[[peer]]\nname = \"t{number}\"\npublic-key = \"{public}\"\nallowed = [\"{network}/32\"]\nweight = {weight}\n"
            );
        }
        Ok(fs::write(self.directory.join("hub.toml"), text)?)
    }

    /// Has the hub read its configuration again, and waits until it has.
    pub(super) fn reload(&mut self) -> Result<(), TestbedError> {
        let reloaded = |log: &str| log.matches("configuration reloaded").count();
        let before = reloaded(&self.log());
        if let Some(process) = &self.process {
            process.reload()?;
        }
        let clock = Clock::start();
        while reloaded(&self.log()) == before {
            if clock.now() > Instant::ZERO + RELOAD_PATIENCE {
                return Err(self.broken("the configuration was not read again"));
            }
            self.pass(Duration::from_millis(10))?;
        }
        Ok(())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("hub.log")).unwrap_or_default()
    }

    fn start_hub(&mut self) -> Result<(), TestbedError> {
        let config = self.directory.join("hub.toml").display().to_string();
        let arguments = ["gateway", "--config", &config].map(str::to_owned);
        self.lives += 1;
        self.process = Some(self.hub.spawn(&this_program()?, &arguments, &self.directory.join("hub.log"))?);
        Ok(())
    }

    /// Kills the hub, and starts it again.
    pub(super) fn restart_hub(&mut self) -> Result<(), TestbedError> {
        if let Some(process) = self.process.take() {
            process.kill()?;
            while process.is_alive() {
                sleep(Duration::from_millis(1));
            }
        }
        self.start_hub()?;
        // Those who were connected do not know yet.
        self.pass(Duration::from_secs(1))
    }

    /// Waits until the hub hears all terminals and they hear it; the seconds that it took.
    pub(super) fn wait_for_all(&mut self, patience: Duration) -> Result<f64, TestbedError> {
        let clock = Clock::start();
        loop {
            let taken = clock.now().saturating_since(Instant::ZERO);
            let peers = self.keys.len() as u32;
            if self.tell()?.connected == peers && self.established() >= peers {
                return Ok(taken.as_secs_f64());
            }
            if taken > patience {
                let what = format!("{} of {} terminals have a session", self.tell()?.connected, peers);
                return Err(self.broken(&what));
            }
            self.pass(Duration::from_millis(50))?;
        }
    }

    /// Sessions that the hub has told of since it was started last.
    fn established(&self) -> u32 {
        let log = self.log();
        let life =
            log.match_indices("sat0 over ").nth(self.lives as usize - 1).map_or("", |(at, _)| &log[at..]);
        life.matches(": connected to ").count() as u32
    }

    /// Lets time pass, unless a signal asks to end.
    pub(super) fn pass(&mut self, span: Duration) -> Result<(), TestbedError> {
        wait([Interest::read(self.signals.as_fd())], Some(span))?;
        if self.signals.received() {
            return Err(TestbedError::Interrupted);
        }
        let is_alive = self.process.as_ref().is_some_and(Process::is_alive);
        let runs = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        if is_alive && runs {
            return Ok(());
        }
        Err(self.broken(if is_alive { "the fleet has ended" } else { "the hub has ended" }))
    }

    pub(super) fn order(&self, order: Order) -> Result<(), TestbedError> {
        self.orders.send(order).map_err(|_| self.broken("the fleet has ended"))
    }

    fn tell(&self) -> Result<Told, TestbedError> {
        self.order(Order::Tell)?;
        self.told.recv().map_err(|_| self.broken("the fleet has ended"))
    }

    /// Bytes of packets that came out at terminals, and the longest pause.
    pub(super) fn received(&self) -> Result<(u64, Duration), TestbedError> {
        self.tell().map(|told| (told.bytes, told.longest_pause))
    }

    /// Sends packets to the hosts behind these terminals, `burst` to each in its turn.
    pub(super) fn send_to(
        &self,
        terminals: Range<u32>,
        rate: Rate,
        burst: u32,
    ) -> Result<Traffic, TestbedError> {
        Ok(Traffic::start(&self.hub, terminals, host, rate, burst)?)
    }

    /// Seconds of a core that the hub has taken so far (proc(5), `stat`).
    pub(super) fn hub_seconds(&self) -> Result<f64, TestbedError> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let ticks: u64 =
            fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        // SAFETY: the call takes an integer.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Ok(ticks as f64 / per_second as f64)
    }

    /// The hub's resident memory.
    pub(super) fn hub_bytes(&self) -> Result<u64, TestbedError> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        Ok(kib.unwrap_or(0) * 1024)
    }

    fn pid(&self) -> u32 {
        self.process.as_ref().map_or(0, |process| process.pid)
    }

    fn broken(&self, what: &str) -> TestbedError {
        let log = self.log();
        let last = log.lines().rev().take(3).collect::<Vec<_>>().join(" / ");
        TestbedError::Process { what: what.to_owned(), log: last }
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        end_all(self.process.as_slice());
        for namespace in [&self.hub, &self.terminals] {
            if namespace.exists() {
                // Nothing more can be done about it here.
                let _ = namespace.delete();
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}
