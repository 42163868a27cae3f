//! A host whose only link is a default route, in both families: beyond a router are the hub, and a server that says who asks it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use field::testbed::namespaces::Namespace;
use gateway::random;
use tunnel::key::PrivateKey;

use super::bench::{fresh_name, signal, told, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_longhaul");
pub(crate) const FULL: &str = "\"0.0.0.0/0\", \"::/0\"";
/// The server, and the host itself as the server sees it through the tunnel and in clear.
pub(crate) const WEB: [&str; 2] = ["10.3.0.2", "fd03::2"];
pub(crate) const TUNNELLED: [&str; 2] = ["10.77.0.2", "fd77::2"];
pub(crate) const IN_CLEAR: [&str; 2] = ["10.1.0.2", "fd01::2"];

/// Network 1 is the host's, 2 the hub's, 3 the server's; the router is host 1 in each.
pub(crate) struct Road {
    pub(crate) directory: PathBuf,
    /// The host, the hub, the server, and the router.
    pub(crate) namespaces: [Namespace; 4],
    pub(crate) keys: [PrivateKey; 2],
    pub(crate) gateways: [Option<Child>; 2],
}

impl Road {
    pub(crate) fn new() -> Self {
        let name = fresh_name("full");
        let directory = std::env::temp_dir().join(format!("longhaul-{name}"));
        fs::create_dir(&directory).unwrap();
        let mut random = random::system();
        let road = Self {
            namespaces: ["host", "hub", "web", "net"].map(|end| Namespace::new(format!("{name}-{end}"))),
            keys: [(); 2].map(|()| PrivateKey::generate(&mut random)),
            gateways: [None, None],
            directory,
        };
        road.namespaces.iter().for_each(|namespace| namespace.add().unwrap());
        let net = &road.namespaces[3];
        net.enable_forwarding().unwrap();
        road.namespaces[1].enable_forwarding().unwrap();
        for (end, number) in road.namespaces[..3].iter().zip(1..) {
            net.ip_batch(&format!(
                "link add n{number} type veth peer name eth0 netns {}\naddress add 10.{number}.0.1/24 dev n{number}\n\
                 address add fd0{number}::1/64 dev n{number} nodad\nlink set n{number} up\n",
                end.name()
            ))
            .unwrap();
            end.ip_batch(&format!(
                "address add 10.{number}.0.2/24 dev eth0\naddress add fd0{number}::2/64 dev eth0 nodad\nlink set eth0 up\n\
                 route add default via 10.{number}.0.1\nroute add ::/0 via fd0{number}::1\n"
            ))
            .unwrap();
        }
        net.ip_batch("route add 10.77.0.0/24 via 10.2.0.2\nroute add fd77::/64 via fd02::2\n").unwrap();
        // What comes back is believed only where it would be sent to: the strictest that there is.
        let strict = ["all", "default", "eth0"].map(|device| format!("ipv4/conf/{device}/rp_filter"));
        road.namespaces[0].set_parameters(&strict.each_ref().map(|path| (path.as_str(), "1"))).unwrap();
        road.serve();
        road
    }

    /// At the server, says to whoever connects from where that was; and at port 53 that every name is the server's.
    pub(crate) fn serve(&self) {
        for address in WEB.map(|address| address.parse::<IpAddr>().unwrap()) {
            let listener = self.namespaces[2].enter(move || TcpListener::bind((address, 80)).unwrap());
            let listener = listener.unwrap().join().unwrap().unwrap();
            std::thread::spawn(move || {
                for stream in listener.incoming().take(1000) {
                    let Ok(mut stream) = stream else { continue };
                    let from = stream.peer_addr().map(|address| address.ip().to_string()).unwrap_or_default();
                    // What it asks for is read before the end, or the end would be a reset.
                    let _ = stream.read(&mut [0; 2000]);
                    let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", from.len());
                    let _ = stream.write_all((head + &from).as_bytes());
                }
            });
        }
        let names =
            self.namespaces[2].enter(|| UdpSocket::bind((WEB[0].parse::<IpAddr>().unwrap(), 53)).unwrap());
        let names = names.unwrap().join().unwrap().unwrap();
        std::thread::spawn(move || {
            let mut question = [0; 512];
            for _ in 0..1000 {
                let Ok((len, from)) = names.recv_from(&mut question) else { continue };
                let _ = names.send_to(&answer(&question[..len]), from);
            }
        });
    }

    /// Starts the gateway at the hub.
    pub(crate) fn start_hub(&mut self) {
        let text = format!(
            "[tun]\nname = \"sat0\"\naddresses = [\"10.77.0.1/24\", \"fd77::1/64\"]\n[carrier.udp]\nlisten = \"10.2.0.2:51900\"\n\
             [identity]\nprivate-key = \"{}\"\n[[peer]]\npublic-key = \"{}\"\nallowed = [\"10.77.0.2/32\", \"fd77::2/128\"]\n",
            *self.keys[1].to_base64(),
            self.keys[0].public(),
        );
        self.start(1, &text);
    }

    /// Starts the gateway at the host, with these routes and lines of `[tun]`, and the hub at `endpoint`.
    pub(crate) fn start_host(&mut self, routes: &str, lines: &str, endpoint: &str) {
        let text = self.host_file(routes, lines, endpoint);
        self.start(0, &text);
    }

    pub(crate) fn host_file(&self, routes: &str, lines: &str, endpoint: &str) -> String {
        format!(
            "[tun]\nname = \"sat0\"\naddresses = [\"10.77.0.2/24\", \"fd77::2/64\"]\nroutes = [{routes}]\n{lines}\n[carrier.udp]\n\
             listen = \"0.0.0.0:0\"\n[identity]\nprivate-key = \"{}\"\n[[peer]]\nname = \"hub\"\npublic-key = \"{}\"\n\
             endpoint = \"{endpoint}\"\n",
            *self.keys[0].to_base64(),
            self.keys[1].public(),
        )
    }

    pub(crate) fn file(&self, end: usize, kind: &str) -> PathBuf {
        self.directory.join(format!("{end}.{kind}"))
    }

    pub(crate) fn start(&mut self, end: usize, text: &str) {
        fs::write(self.file(end, "toml"), text).unwrap();
        let log = fs::File::create(self.file(end, "log")).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.namespaces[end].name(), PROGRAM, "gateway", "--config"]);
        command.arg(self.file(end, "toml")).stdin(Stdio::null());
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        self.gateways[end] = Some(child);
    }

    pub(crate) fn log(&self, end: usize) -> String {
        fs::read_to_string(self.file(end, "log")).unwrap()
    }

    /// Ends a gateway by this signal, and waits until it is gone.
    pub(crate) fn end(&mut self, end: usize, by: &str) {
        let mut child = self.gateways[end].take().expect("it runs");
        signal(child.id(), by);
        child.wait().unwrap();
    }

    pub(crate) fn wait_for_session(&self) {
        wait_until("there is a session", 20, || {
            told(&self.namespaces[0]).is_some_and(|status| status["peers"][0]["state"] == "connected")
        });
    }

    pub(crate) fn run(&self, command: &[&str]) -> Output {
        let mut all = Command::new("ip");
        all.args(["netns", "exec", self.namespaces[0].name()]).args(command).output().unwrap()
    }

    pub(crate) fn says(&self, command: &[&str]) -> String {
        String::from_utf8(self.run(command).stdout).unwrap()
    }

    /// From where the server has heard a `curl` of the host, in each family; or what `curl` says.
    pub(crate) fn seen(&self) -> [String; 2] {
        WEB.map(|address| {
            let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
            self.fetch(&format!("http://{host}/"))
        })
    }

    pub(crate) fn fetch(&self, url: &str) -> String {
        let output = self.run(&["curl", "-s", "-S", "-g", "--max-time", "10", url]);
        let text = if output.status.success() { output.stdout } else { output.stderr };
        String::from_utf8(text).unwrap()
    }

    /// All routes and rules of the host but those that come with link-local addresses, a while after a device is up.
    pub(crate) fn routes(&self) -> String {
        let mut all = String::new();
        for family in ["-4", "-6"] {
            for what in [&["rule", "show"][..], &["route", "show", "table", "all"]] {
                all += &self.says(&[&["ip", family], what].concat());
            }
        }
        all.lines()
            .filter(|line| !line.contains("fe80:") && !line.contains("ff00:"))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Drop for Road {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for end in 0..2 {
                eprintln!("{}", fs::read_to_string(self.file(end, "log")).unwrap_or_default());
            }
            eprintln!("{}", self.routes());
        }
        for gateway in self.gateways.iter_mut().flatten() {
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
        self.namespaces.iter().for_each(|namespace| drop(namespace.delete()));
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The answer to a question for a name's address: the server's in IPv4, and none in IPv6.
fn answer(question: &[u8]) -> Vec<u8> {
    let end = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
    let asks_for_v4 = question[end - 3] == 1;
    let mut answer = question[..end].to_vec();
    // A response without error, one question, and this many answers.
    answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(asks_for_v4), 0, 0, 0, 0]);
    if asks_for_v4 {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 3, 0, 2]);
    }
    answer
}
