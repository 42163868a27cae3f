//! A full tunnel from a host whose only link is a default route, in both families: beyond a router are the hub, and a server that
//! says who asks it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use base::{Duration, Instant};
use field::testbed::namespaces::Namespace;
use gateway::clock::Clock;
use gateway::random;
use tunnel::key::PrivateKey;

use super::bench::{fresh_name, missing, signal, told, wait_until};
use super::name::HostFiles;

const PROGRAM: &str = env!("CARGO_BIN_EXE_longhaul");
const FULL: &str = "\"0.0.0.0/0\", \"::/0\"";
/// The server, and the host itself as the server sees it through the tunnel and in clear.
const WEB: [&str; 2] = ["10.3.0.2", "fd03::2"];
const TUNNELLED: [&str; 2] = ["10.77.0.2", "fd77::2"];
const IN_CLEAR: [&str; 2] = ["10.1.0.2", "fd01::2"];

/// Network 1 is the host's, 2 the hub's, 3 the server's; the router is host 1 in each.
struct Road {
    directory: PathBuf,
    /// The host, the hub, the server, and the router.
    namespaces: [Namespace; 4],
    keys: [PrivateKey; 2],
    gateways: [Option<Child>; 2],
}

impl Road {
    fn new() -> Self {
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
    fn serve(&self) {
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
    fn start_hub(&mut self) {
        let text = format!(
            "[tun]\nname = \"sat0\"\naddresses = [\"10.77.0.1/24\", \"fd77::1/64\"]\n[carrier.udp]\nlisten = \"10.2.0.2:51900\"\n\
             [identity]\nprivate-key = \"{}\"\n[[peer]]\npublic-key = \"{}\"\nallowed = [\"10.77.0.2/32\", \"fd77::2/128\"]\n",
            *self.keys[1].to_base64(),
            self.keys[0].public(),
        );
        self.start(1, &text);
    }

    /// Starts the gateway at the host, with these routes and lines of `[tun]`, and the hub at `endpoint`.
    fn start_host(&mut self, routes: &str, lines: &str, endpoint: &str) {
        let text = self.host_file(routes, lines, endpoint);
        self.start(0, &text);
    }

    fn host_file(&self, routes: &str, lines: &str, endpoint: &str) -> String {
        format!(
            "[tun]\nname = \"sat0\"\naddresses = [\"10.77.0.2/24\", \"fd77::2/64\"]\nroutes = [{routes}]\n{lines}\n[carrier.udp]\n\
             listen = \"0.0.0.0:0\"\n[identity]\nprivate-key = \"{}\"\n[[peer]]\nname = \"hub\"\npublic-key = \"{}\"\n\
             endpoint = \"{endpoint}\"\n",
            *self.keys[0].to_base64(),
            self.keys[1].public(),
        )
    }

    fn file(&self, end: usize, kind: &str) -> PathBuf {
        self.directory.join(format!("{end}.{kind}"))
    }

    fn start(&mut self, end: usize, text: &str) {
        fs::write(self.file(end, "toml"), text).unwrap();
        let log = fs::File::create(self.file(end, "log")).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.namespaces[end].name(), PROGRAM, "gateway", "--config"]);
        command.arg(self.file(end, "toml")).stdin(Stdio::null());
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        self.gateways[end] = Some(child);
    }

    fn log(&self, end: usize) -> String {
        fs::read_to_string(self.file(end, "log")).unwrap()
    }

    /// Ends a gateway by this signal, and waits until it is gone.
    fn end(&mut self, end: usize, by: &str) {
        let mut child = self.gateways[end].take().expect("it runs");
        signal(child.id(), by);
        child.wait().unwrap();
    }

    fn wait_for_session(&self) {
        wait_until("there is a session", 20, || {
            told(&self.namespaces[0]).is_some_and(|status| status["peers"][0]["state"] == "connected")
        });
    }

    fn run(&self, command: &[&str]) -> Output {
        let mut all = Command::new("ip");
        all.args(["netns", "exec", self.namespaces[0].name()]).args(command).output().unwrap()
    }

    fn says(&self, command: &[&str]) -> String {
        String::from_utf8(self.run(command).stdout).unwrap()
    }

    /// From where the server has heard a `curl` of the host, in each family; or what `curl` says.
    fn seen(&self) -> [String; 2] {
        WEB.map(|address| {
            let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
            self.fetch(&format!("http://{host}/"))
        })
    }

    fn fetch(&self, url: &str) -> String {
        let output = self.run(&["curl", "-s", "-S", "-g", "--max-time", "10", url]);
        let text = if output.status.success() { output.stdout } else { output.stderr };
        String::from_utf8(text).unwrap()
    }

    /// All routes and rules of the host but those that come with link-local addresses, a while after a device is up.
    fn routes(&self) -> String {
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

#[test]
fn a_full_tunnel_takes_everything_and_gives_it_back() {
    if missing("a_full_tunnel_takes_everything_and_gives_it_back") {
        return;
    }
    let mut road = Road::new();
    let system = HostFiles::new(road.namespaces[0].name());
    system.write("resolv.conf", "nameserver 10.3.0.2\n");
    system.write("nsswitch.conf", "hosts: files dns\n");
    let before = road.routes();
    assert_eq!(road.seen(), IN_CLEAR);
    road.start_hub();
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    assert_eq!(road.seen(), TUNNELLED);
    assert_eq!(
        road.fetch("http://any.test/"),
        TUNNELLED[0],
        "the server of names is asked through the tunnel"
    );
    let rules = road.routes();
    assert!(
        rules.starts_with(before.lines().next().unwrap()) && rules.contains("default via 10.1.0.1"),
        "{rules}"
    );
    let neighbour = road.says(&["ip", "route", "get", "10.1.0.1"]);
    assert!(neighbour.contains("dev eth0"), "{neighbour}");
    // Somebody removes all rules, as managers of networks do.
    for family in ["-4", "-6"] {
        assert!(road.run(&["ip", family, "rule", "flush", "protocol", "76"]).status.success());
    }
    wait_until("the rules are back", 10, || road.seen() == TUNNELLED);
    road.end(0, "TERM");
    assert_eq!(road.routes(), before);
    assert_eq!(road.seen(), IN_CLEAR);
}

#[test]
fn a_killed_gateway_leaves_no_way_in_clear_unless_asked() {
    if missing("a_killed_gateway_leaves_no_way_in_clear_unless_asked") {
        return;
    }
    let mut road = Road::new();
    let before = road.routes();
    road.start_hub();
    for (lines, after) in
        [("", None), ("when-down = \"drop\"", None), ("when-down = \"pass\"", Some(IN_CLEAR))]
    {
        road.start_host(FULL, lines, "10.2.0.2:51900");
        road.wait_for_session();
        assert_eq!(road.seen(), TUNNELLED);
        road.end(0, "KILL");
        let seen = road.seen();
        match after {
            None => assert!(seen.iter().all(|said| said.contains("connect")), "{seen:?}"),
            Some(clear) => assert_eq!(seen, clear),
        }
    }
    // Another start, from another port, and an end that is asked for: nothing is left.
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    assert_eq!(road.seen(), TUNNELLED);
    road.end(0, "TERM");
    assert_eq!(road.routes(), before);
}

#[test]
fn nothing_that_was_there_is_replaced() {
    if missing("nothing_that_was_there_is_replaced") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    road.namespaces[0]
        .ip_batch("route add 10.3.0.0/24 via 10.1.0.1\nroute add fd03::/64 via fd01::1 metric 1\n")
        .unwrap();
    let before = road.routes();
    for taken in ["10.3.0.0/24", "fd03::/64"] {
        road.start_host(&format!("\"10.9.0.0/16\", \"{taken}\""), "", "10.2.0.2:51900");
        assert_eq!(road.gateways[0].take().unwrap().wait().unwrap().code(), Some(1));
        assert!(road.log(0).contains(&format!("there is a route to {taken} already")), "{}", road.log(0));
        assert_eq!(road.routes(), before);
    }
    // What has a route of its own keeps it beside a full tunnel.
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    assert_eq!(road.seen(), IN_CLEAR);
}

/// A route that covers the peer would carry the tunnel through itself.
#[test]
fn a_tunnel_does_not_go_through_itself() {
    if missing("a_tunnel_does_not_go_through_itself") {
        return;
    }
    let mut road = Road::new();
    let before = road.routes();
    road.start_hub();
    road.start_host("\"10.2.0.0/16\"", "", "10.2.0.2:51900");
    assert_eq!(road.gateways[0].take().unwrap().wait().unwrap().code(), Some(1));
    assert!(road.log(0).contains("hub: its address 10.2.0.2 lies in one of [tun] routes"), "{}", road.log(0));
    assert_eq!(road.routes(), before);
    // It does where the way to the peer is more specific.
    road.namespaces[0].ip_batch("route add 10.2.0.2/32 via 10.1.0.1\n").unwrap();
    road.start_host("\"10.2.0.0/16\", \"10.3.0.0/16\"", "", "10.2.0.2:51900");
    road.wait_for_session();
    assert_eq!(road.seen()[0], TUNNELLED[0]);
}

/// The server of names is beyond the default route: packets take that until the peer's address is known.
#[test]
fn a_full_tunnel_to_a_name_waits_for_its_address() {
    if missing("a_full_tunnel_to_a_name_waits_for_its_address") {
        return;
    }
    let mut road = Road::new();
    let system = HostFiles::new(road.namespaces[0].name());
    system.write("nsswitch.conf", "hosts: files\n");
    system.write("hosts", "127.0.0.1 localhost\n");
    road.start_hub();
    road.start_host(FULL, "", "hub.test:51900");
    wait_until("it runs", 20, || told(&road.namespaces[0]).is_some());
    assert_eq!(road.seen(), IN_CLEAR);
    system.write("hosts", "10.2.0.2 hub.test\n");
    wait_until("the name is known", 60, || road.seen() == TUNNELLED);
    let address: SocketAddr = "10.2.0.2:51900".parse().unwrap();
    assert!(road.log(0).contains(&address.to_string()), "{}", road.log(0));
}

/// Hosts need not wait for a peer that is gone, and the status and the log say that it is.
#[test]
fn hosts_hear_that_the_peer_is_gone() {
    if missing("hosts_hear_that_the_peer_is_gone") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    assert_eq!(road.seen(), TUNNELLED);
    road.end(1, "KILL");
    wait_until("the peer is silent", 60, || {
        told(&road.namespaces[0]).is_some_and(|status| status["peers"][0]["state"] == "silent")
    });
    let is_refused = || {
        WEB.iter().zip(road.seen()).all(|(_, said)| said.contains("onnect") && !said.contains("timed out"))
    };
    wait_until("hosts are told", 30, is_refused);
    let log = road.log(0);
    let line = log.lines().find(|line| line.contains("hub: silent at 10.2.0.2:51900")).expect("it is told");
    assert!(line.starts_with("20") && line.contains("Z warning: hub: "), "{line}");
    road.start_hub();
    wait_until("the peer is back", 30, || road.seen() == TUNNELLED);
}

/// Who ends a gateway breaks the connections that it had split: both hosts hear that at once, and new ones pass when it is back.
#[test]
fn hosts_hear_that_a_gateway_was_restarted() {
    if missing("hosts_hear_that_a_gateway_was_restarted") {
        return;
    }
    let mut road = Road::new();
    let server =
        road.namespaces[2].enter(|| TcpListener::bind((WEB[0].parse::<IpAddr>().unwrap(), 81)).unwrap());
    let server = server.unwrap().join().unwrap().unwrap();
    road.start_hub();
    road.start_host(FULL, "", "10.2.0.2:51900");
    road.wait_for_session();
    for end in [1, 0] {
        let client = road.namespaces[0].enter(|| TcpStream::connect((WEB[0].parse::<IpAddr>().unwrap(), 81)));
        let mut client = client.unwrap().join().unwrap().unwrap().unwrap();
        let (mut served, _) = server.accept().unwrap();
        client.write_all(b"x").unwrap();
        served.read_exact(&mut [0]).unwrap();
        for stream in [&client, &served] {
            stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        }
        let clock = Clock::start();
        road.end(end, "TERM");
        let log = road.log(end);
        assert!(
            log.contains("ended; 1 connections that were split are broken, and their hosts were told"),
            "{log}"
        );
        for stream in [&mut client, &mut served] {
            let heard = stream.read(&mut [0]).unwrap_err().kind();
            assert_eq!(heard, std::io::ErrorKind::ConnectionReset, "end {end}");
        }
        assert!(clock.now() < Instant::ZERO + Duration::from_secs(10), "{:?}", clock.now());
        match end {
            1 => road.start_hub(),
            _ => road.start_host(FULL, "", "10.2.0.2:51900"),
        }
        wait_until("it is back", 20, || road.seen() == TUNNELLED);
        if end == 1 {
            let log = road.log(0);
            assert!(log.contains("hub: has ended at 10.2.0.2:51900"), "{log}");
            assert_eq!(log.matches("hub: connected to 10.2.0.2:51900").count(), 2, "{log}");
        }
    }
}

/// A gateway may start before the network does: without an address, or without a way anywhere.
#[test]
fn a_gateway_waits_for_its_network() {
    if missing("a_gateway_waits_for_its_network") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    let text = road.host_file("", "", "10.2.0.2:51900").replace("0.0.0.0:0", "10.1.0.9:0");
    road.start(0, &text);
    wait_until("it runs", 20, || told(&road.namespaces[0]).is_some());
    assert!(road.log(0).contains("no device has the address 10.1.0.9 yet"), "{}", road.log(0));
    road.namespaces[0].ip_batch("address add 10.1.0.9/24 dev eth0\n").unwrap();
    road.wait_for_session();
    road.end(0, "TERM");
    road.namespaces[0].ip_batch("link set eth0 down\n").unwrap();
    road.start_host(FULL, "", "10.2.0.2:51900");
    wait_until("it runs", 20, || told(&road.namespaces[0]).is_some());
    let up = "link set eth0 up\naddress replace fd01::2/64 dev eth0 nodad\nroute add default via 10.1.0.1\nroute add ::/0 via fd01::1\n";
    road.namespaces[0].ip_batch(up).unwrap();
    road.wait_for_session();
    assert_eq!(road.seen(), TUNNELLED);
}

/// Routes follow the file; another key is named, since the session has the one that it began with.
#[test]
fn routes_and_keys_are_looked_at_again() {
    if missing("routes_and_keys_are_looked_at_again") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    let key = road.directory.join("host.key");
    fs::write(&key, road.keys[0].to_base64().as_str()).unwrap();
    let inline = format!("private-key = \"{}\"", *road.keys[0].to_base64());
    let file = |road: &Road, routes: &str| {
        road.host_file(routes, "", "10.2.0.2:51900").replace(&inline, "private-key-file = \"host.key\"")
    };
    let (none, some, taken) =
        (file(&road, ""), file(&road, "\"10.3.0.0/24\""), file(&road, "\"10.1.0.0/24\", \"10.3.0.0/24\""));
    road.start(0, &none);
    road.wait_for_session();
    assert_eq!(road.seen(), IN_CLEAR);
    let pid = road.gateways[0].as_ref().unwrap().id();
    let reload = |road: &Road, text: &str, seen: &str, said: &str| {
        fs::write(road.file(0, "toml"), text).unwrap();
        signal(pid, "HUP");
        wait_until(said, 20, || road.log(0).contains(said));
        assert_eq!(road.seen()[0], seen, "{said}");
    };
    reload(&road, &some, TUNNELLED[0], "configuration reloaded");
    fs::write(&key, road.keys[1].to_base64().as_str()).unwrap();
    reload(&road, &some, TUNNELLED[0], "configuration reloaded; these changes need a restart: [identity]");
    fs::write(&key, road.keys[0].to_base64().as_str()).unwrap();
    road.namespaces[0].ip_batch("route add 10.9.0.0/24 via 10.1.0.1\n").unwrap();
    let taken = taken.replace("10.1.0.0/24", "10.9.0.0/24");
    reload(&road, &taken, TUNNELLED[0], "there is a route to 10.9.0.0/24 already");
    fs::remove_file(road.file(0, "log")).unwrap();
    fs::write(road.file(0, "toml"), &none).unwrap();
    signal(pid, "HUP");
    wait_until("its route is gone", 20, || road.seen() == IN_CLEAR);
}

/// What Prometheus would fetch: the peer is there, and is gone once it has ended.
#[test]
fn metrics_tell_of_the_peer() {
    if missing("metrics_tell_of_the_peer") {
        return;
    }
    let mut road = Road::new();
    road.start_hub();
    let text = road.host_file(FULL, "", "10.2.0.2:51900") + "[metrics]\nlisten = \"127.0.0.1:9469\"\n";
    road.start(0, &text);
    road.wait_for_session();
    let scrape = |road: &Road| road.fetch("http://127.0.0.1:9469/metrics");
    let told = scrape(&road);
    assert!(
        told.contains("longhaul_peer_connected{peer=\"hub\"} 1.0") && told.ends_with("# EOF\n"),
        "{told}"
    );
    let sent = |told: &str| {
        let line = told.lines().find(|line| line.starts_with("longhaul_peer_sent_bytes_total")).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let before = sent(&told);
    assert_eq!(road.seen(), TUNNELLED);
    assert!(sent(&scrape(&road)) > before);
    assert_eq!(road.fetch("http://127.0.0.1:9469/other"), "there is /metrics\n");
    road.end(1, "TERM");
    wait_until("it is told", 10, || scrape(&road).contains("longhaul_peer_connected{peer=\"hub\"} 0.0"));
}
