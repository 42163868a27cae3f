//! A hub and several terminals, each in a network namespace of its own, with a wire between the hub and each; removed when dropped.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time;

use field::testbed::namespaces::Namespace;
use gateway::random;
use serde_json::Value;
use tunnel::key::PrivateKey;

use super::bench::{fresh_name, signal, told, wait_until};

/// The hub is end 0, terminal `n` is end `n`.
pub(crate) struct Star {
    directory: PathBuf,
    namespaces: Vec<Namespace>,
    keys: Vec<PrivateKey>,
    /// The gateways, by end.
    gateways: Vec<Option<Child>>,
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_longhaul");

/// For a connection, and for what is to come back.
const PATIENCE: time::Duration = time::Duration::from_secs(60);

/// An end's address in the tunnel.
pub(crate) fn address(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, end as u8 + 1)
}

impl Star {
    /// Without gateways yet.
    pub(crate) fn new(terminals: usize) -> Self {
        let name = fresh_name("star");
        let directory = std::env::temp_dir().join(format!("longhaul-{name}"));
        fs::create_dir(&directory).unwrap();
        let mut random = random::system();
        let star = Self {
            namespaces: (0..=terminals).map(|end| Namespace::new(format!("{name}-{end}"))).collect(),
            keys: (0..=terminals).map(|_| PrivateKey::generate(&mut random)).collect(),
            gateways: (0..=terminals).map(|_| None).collect(),
            directory,
        };
        star.namespaces.iter().for_each(|namespace| namespace.add().unwrap());
        star.namespaces[0].enable_forwarding().unwrap();
        for end in 1..=terminals {
            let far = star.namespaces[end].name();
            let up = |device: &str, host: usize| {
                format!("address add 10.79.{end}.{host}/24 dev {device}\nlink set {device} up\n")
            };
            let add = format!("link add wire{end} type veth peer name wire netns {far}\n");
            star.namespaces[0].ip_batch(&(add + &up(&format!("wire{end}"), 1))).unwrap();
            star.namespaces[end].ip_batch(&up("wire", 2)).unwrap();
        }
        star
    }

    /// The hub's table for a terminal, with these lines besides.
    pub(crate) fn peer(&self, end: usize, lines: &str) -> String {
        let public = self.keys[end].public();
        format!("[[peer]]\nname = \"t{end}\"\npublic-key = \"{public}\"\n{lines}\n")
    }

    /// Writes the hub's file: lines for its top, and its peers.
    pub(crate) fn write_hub(&self, top: &str, peers: &str) {
        let text = format!(
            "{top}\n[tun]\nname = \"sat0\"\naddresses = [\"{}/24\"]\nroutes = [\"10.78.0.0/16\"]\n\
             [carrier.udp]\nlisten = \"0.0.0.0:51900\"\n[identity]\nprivate-key = \"{}\"\n\
             [status]\nfile = {:?}\n{peers}",
            address(0),
            *self.keys[0].to_base64(),
            self.status_file(),
        );
        fs::write(self.directory.join("0.toml"), text).unwrap();
    }

    /// Writes a terminal's file, and starts it: one that calls the hub.
    pub(crate) fn start_terminal(&mut self, end: usize) {
        self.start_terminal_with(end, &format!("endpoint = \"10.79.{end}.1:51900\""));
    }

    /// Writes a terminal's file, with `line` about the hub, and starts it.
    pub(crate) fn start_terminal_with(&mut self, end: usize, line: &str) {
        let text = format!(
            "[tun]\nname = \"sat0\"\naddresses = [\"{}/24\"]\n[carrier.udp]\nlisten = \"0.0.0.0:51900\"\n\
             [identity]\nprivate-key = \"{}\"\n[[peer]]\npublic-key = \"{}\"\n{line}\n",
            address(end),
            *self.keys[end].to_base64(),
            self.keys[0].public(),
        );
        fs::write(self.directory.join(format!("{end}.toml")), text).unwrap();
        self.start(end);
    }

    /// Starts the gateway of an end.
    pub(crate) fn start(&mut self, end: usize) {
        let log = fs::File::create(self.directory.join(format!("{end}.log"))).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.namespaces[end].name(), PROGRAM, "gateway", "--config"]);
        command.arg(self.directory.join(format!("{end}.toml"))).stdin(Stdio::null());
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        self.gateways[end] = Some(child);
    }

    /// An end's namespace.
    pub(crate) fn namespace(&self, end: usize) -> &Namespace {
        &self.namespaces[end]
    }

    /// The process of an end's gateway: `ip netns exec` has become it.
    pub(crate) fn pid(&self, end: usize) -> u32 {
        self.gateways[end].as_ref().expect("it runs").id()
    }

    /// Has an end's gateway end; whether it did so in order.
    pub(crate) fn end(&mut self, end: usize) -> bool {
        signal(self.pid(end), "TERM");
        self.gateways[end].take().expect("it runs").wait().unwrap().success()
    }

    /// What the hub says; nothing while it does not run.
    pub(crate) fn status(&self) -> Value {
        told(&self.namespaces[0]).unwrap_or_default()
    }

    /// Where the hub writes its status while it runs.
    pub(crate) fn status_file(&self) -> PathBuf {
        self.directory.join("hub.status")
    }

    pub(crate) fn log(&self, end: usize) -> String {
        fs::read_to_string(self.directory.join(format!("{end}.log"))).unwrap()
    }

    /// What the hub says of a terminal.
    pub(crate) fn at_hub(&self, end: usize) -> Value {
        let (status, name) = (self.status(), format!("t{end}"));
        let peers = status["peers"].as_array().cloned().unwrap_or_default();
        peers.into_iter().find(|peer| peer["name"] == name.as_str()).unwrap_or_default()
    }

    pub(crate) fn wait_until_heard(&self, ends: &[usize]) {
        for end in ends {
            wait_until(&format!("terminal {end} is heard"), 60, || self.at_hub(*end)["state"] == "connected");
        }
    }

    /// Runs a command at an end: what it says.
    pub(crate) fn run(&self, end: usize, command: &[&str]) -> String {
        let mut ip = Command::new("ip");
        let output = ip.args(["netns", "exec", self.namespaces[end].name()]).args(command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `work` on a thread at an end.
    pub(crate) fn at<T: Send + 'static>(
        &self,
        end: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<std::io::Result<T>> {
        self.namespaces[end].enter(work).unwrap()
    }

    /// Sends `len` bytes over TCP from one end to an address at another and back again.
    pub(crate) fn echo(&self, from: usize, to: usize, at: Ipv4Addr, len: usize) {
        let (tell, listens) = std::sync::mpsc::channel();
        let server = self.at(to, move || {
            let listener = TcpListener::bind((at, 0)).unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = vec![0; len];
            stream.read_exact(&mut bytes).unwrap();
            stream.write_all(&bytes).unwrap();
        });
        let server_address = listens.recv().unwrap();
        let client = self.at(from, move || {
            let mut stream = TcpStream::connect_timeout(&server_address, PATIENCE).expect("nobody answers");
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let sent: Vec<u8> = (0..len).map(|n| (n * 7 + n / 251) as u8).collect();
            stream.write_all(&sent).unwrap();
            let mut got = vec![0; len];
            stream.read_exact(&mut got).unwrap();
            assert!(got == sent, "it comes back changed");
        });
        client.join().expect("the client has panicked").unwrap();
        server.join().expect("the server has panicked").unwrap();
    }
}

impl Drop for Star {
    fn drop(&mut self) {
        for child in self.gateways.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        for namespace in &self.namespaces {
            if namespace.exists() {
                let _ = namespace.delete();
            }
        }
        if std::thread::panicking() {
            (0..self.namespaces.len()).for_each(|end| {
                let log = fs::read_to_string(self.directory.join(format!("{end}.log")));
                eprintln!("log of {end}: {}", log.unwrap_or_default());
            });
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}
