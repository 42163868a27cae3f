//! The split-connection proxy on real packets: the kernel's TCP, stock programs, dying gateways.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time;

use super::bench::{self, Testbed, missing};
use base::{Duration, Instant};
use gateway::clock::{Clock, sleep};

/// A satellite at 20 Mbit/s.
fn satellite() -> Vec<String> {
    ["--rate", "20 Mbit/s", "--delay", "100 ms"].map(str::to_owned).to_vec()
}

const SERVER: &str = "10.77.2.2:7070";

fn split(testbed: &Testbed, room: &str) -> u64 {
    testbed.status(room)["peers"][0]["pep"]["split"].as_u64().unwrap()
}

/// Milliseconds that `work` takes, and what it gives.
fn timed<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let clock = Clock::start();
    let result = work();
    (clock.now().saturating_since(Instant::ZERO).as_millis(), result)
}

#[test]
fn hosts_see_each_other_and_stock_programs_work() {
    if missing("hosts_see_each_other_and_stock_programs_work") {
        return;
    }
    let testbed = Testbed::up("split", &["--pep"], &satellite());
    // Each end sees the other's address, through both proxies.
    testbed.inside("host2", || {
        let listener = TcpListener::bind(SERVER).unwrap();
        std::thread::spawn(move || {
            let (mut stream, from) = listener.accept().unwrap();
            stream.write_all(from.ip().to_string().as_bytes()).unwrap();
        });
    });
    let seen = testbed.inside("host1", || {
        let mut stream = TcpStream::connect(SERVER).unwrap();
        let mut seen = String::new();
        stream.read_to_string(&mut seen).unwrap();
        (seen, stream.peer_addr().unwrap())
    });
    assert_eq!(seen, ("10.77.1.2".to_owned(), SERVER.parse().unwrap()));
    assert!(split(&testbed, "gw1") > 0 && split(&testbed, "gw2") > 0);
    for address in ["10.77.2.2", "fd77:2::2"] {
        let server = testbed.serve_at(address, 3 << 20);
        testbed.download(&server, 60);
    }
    // What is no TCP passes.
    let datagram = testbed.inside("host2", || std::net::UdpSocket::bind("10.77.2.2:7000").unwrap());
    testbed.inside("host1", || {
        std::net::UdpSocket::bind("10.77.1.2:0").unwrap().send_to(b"datagram", "10.77.2.2:7000").unwrap();
    });
    datagram.set_read_timeout(Some(time::Duration::from_secs(5))).unwrap();
    let mut buffer = [0; 16];
    assert_eq!(datagram.recv(&mut buffer).unwrap(), 8);

    iperf(&testbed);
    ssh(&testbed);
}

/// Both directions, of the kernel's TCP.
fn iperf(testbed: &Testbed) {
    let mut server = testbed.start("host2", &["iperf3", "--server", "--bind", "10.77.2.2"]);
    sleep(Duration::from_millis(500));
    for direction in [&[][..], &["--reverse"]] {
        let client = ["iperf3", "--client", "10.77.2.2", "--time", "4", "--json"];
        let output = testbed.run("host1", &[&client, direction].concat());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let bps = report["end"]["sum_received"]["bits_per_second"].as_f64();
        assert!(bps > Some(8e6), "{direction:?}: {bps:?} {}", String::from_utf8_lossy(&output.stderr));
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

/// A command on the far host, whose output comes back.
fn ssh(testbed: &Testbed) {
    let folder = std::env::temp_dir().join(format!("longhaul-ssh-{}", testbed.name()));
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    for key in ["host", "user"] {
        let status =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &file(key)]).status();
        assert!(status.unwrap().success());
    }
    fs::copy(file("user.pub"), file("authorized")).unwrap();
    fs::create_dir_all("/run/sshd").unwrap();
    let (key, allowed) =
        (format!("HostKey={}", file("host")), format!("AuthorizedKeysFile={}", file("authorized")));
    let mut options =
        vec!["/usr/sbin/sshd", "-D", "-f", "/dev/null", "-p", "2222", "-o", &key, "-o", &allowed];
    options.extend(["-o", "StrictModes=no", "-o", "PidFile=none", "-o", "UsePAM=no"]);
    let mut server = testbed.start("host2", &options);
    sleep(Duration::from_millis(500));
    let identity = file("user");
    let mut client = vec!["ssh", "-i", &identity, "-p", "2222", "-o", "StrictHostKeyChecking=no"];
    client.extend(["-o", "UserKnownHostsFile=/dev/null", "root@10.77.2.2", "seq 1 50000 | cksum"]);
    let output = testbed.run("host1", &client);
    server.kill().unwrap();
    server.wait().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let want = Command::new("sh").args(["-c", "seq 1 50000 | cksum"]).output().unwrap();
    assert_eq!(output.stdout, want.stdout, "{}", String::from_utf8_lossy(&output.stderr));
}

/// What a caller hears is what it would hear without a proxy, and when.
#[test]
fn callers_hear_of_refusals_and_dead_ends() {
    if missing("callers_hear_of_refusals_and_dead_ends") {
        return;
    }
    let testbed = Testbed::up("refuse", &["--pep"], &satellite());
    let call = |to: &str| {
        let to: SocketAddr = to.parse().unwrap();
        testbed
            .inside("host1", move || timed(|| TcpStream::connect_timeout(&to, time::Duration::from_secs(20))))
    };
    let (ms, refused) = call("10.77.2.2:9");
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert!((190..2000).contains(&ms), "{ms} ms");
    let (_, nowhere) = call("10.77.2.99:80");
    assert_eq!(nowhere.unwrap_err().kind(), ErrorKind::HostUnreachable);
    let (_, nowhere) = call("[fd77:2::99]:80");
    assert_eq!(nowhere.unwrap_err().kind(), ErrorKind::HostUnreachable);
    assert_eq!(testbed.status("gw1")["peers"][0]["pep"]["refused"], 1);
}

/// A gateway dies in the middle of a transfer and comes back. What was acknowledged end to end goes on and arrives whole; what
/// a gateway had acknowledged is lost with it, and the receiver does not take the part for the whole.
#[test]
fn gateways_die_and_connections_survive_or_say_so() {
    if missing("gateways_die_and_connections_survive_or_say_so") {
        return;
    }
    let end_to_end = std::env::temp_dir().join(format!("longhaul-{}-end-to-end.toml", std::process::id()));
    fs::write(&end_to_end, "ack = \"end-to-end\"\n").unwrap();
    let path = end_to_end.display().to_string();
    for room in ["gw1", "gw2"] {
        for (options, survives) in [(&["--pep-config", path.as_str()][..], true), (&["--pep"], false)] {
            let channel = ["--rate", "2 Mbit/s", "--delay", "50 ms"].map(str::to_owned);
            let testbed = Testbed::up(&format!("die-{room}"), options, &channel);
            let server = testbed.serve(1 << 20);
            let transfer = testbed.start_slow_download(&server, 120);
            testbed.wait_until("a third has arrived", 60, || transfer.bytes() > 350_000);
            testbed.kill_gateway(room);
            testbed.restart_gateway(room);
            if survives {
                transfer.finish();
            } else {
                let (complaint, bytes) = transfer.fail();
                assert!(bytes < 1 << 20, "{bytes} bytes of a transfer that was cut off");
                assert!(!complaint.is_empty(), "curl noticed nothing");
            }
        }
    }
    fs::remove_file(&end_to_end).unwrap();
}

/// 2,000 connections at once, each with a stream of its own both ways, byte-exact; what an idle one takes.
#[test]
fn two_thousand_connections_at_once() {
    if missing("two_thousand_connections_at_once") {
        return;
    }
    const COUNT: usize = 2000;
    const LEN: usize = 4000;
    let testbed =
        Testbed::up("many", &["--pep"], &["--rate", "50 Mbit/s", "--delay", "50 ms"].map(str::to_owned));
    for room in ["host1", "host2"] {
        testbed
            .namespace(room)
            .set_parameters(&[("core/somaxconn", "4096"), ("ipv4/tcp_max_syn_backlog", "4096")])
            .unwrap();
    }
    let byte = |number: usize, at: usize| (number * 31 + at * 7 + (at >> 8)) as u8;
    testbed.inside("host2", || {
        // The backlog of std is 4096 already.
        let listener = TcpListener::bind(SERVER).unwrap();
        std::thread::spawn(move || {
            let mut streams: Vec<TcpStream> = (0..COUNT).map(|_| listener.accept().unwrap().0).collect();
            let mut buffer = [0; LEN];
            for stream in &mut streams {
                stream.read_exact(&mut buffer).unwrap();
                stream.write_all(&buffer).unwrap();
            }
            // Until the client has seen all of them idle.
            for stream in &mut streams {
                let _ = stream.read(&mut buffer);
            }
        });
    });
    let ready = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&ready);
    let client = testbed.namespace("host1").enter(move || {
        let mut streams: Vec<TcpStream> = (0..COUNT).map(|_| TcpStream::connect(SERVER).unwrap()).collect();
        for (number, stream) in streams.iter_mut().enumerate() {
            let content: Vec<u8> = (0..LEN).map(|at| byte(number, at)).collect();
            stream.write_all(&content).unwrap();
        }
        let mut buffer = [0; LEN];
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.set_read_timeout(Some(time::Duration::from_secs(60))).unwrap();
            stream.read_exact(&mut buffer).unwrap();
            assert!(
                buffer.iter().enumerate().all(|(at, got)| *got == byte(number, at)),
                "connection {number}"
            );
        }
        told.store(1, Ordering::Release);
        while told.load(Ordering::Acquire) == 1 {
            sleep(Duration::from_millis(20));
        }
    });
    let client = client.unwrap();
    bench::wait_until("all have their bytes", 120, || {
        ready.load(Ordering::Acquire) == 1 || client.is_finished()
    });
    assert!(!client.is_finished(), "a connection failed");
    sleep(Duration::from_millis(1500));
    for room in ["gw1", "gw2"] {
        let pep = &testbed.status(room)["peers"][0]["pep"];
        assert_eq!((&pep["split"], &pep["connections"]["lan"]), (&COUNT.into(), &COUNT.into()), "{pep}");
        assert_eq!(pep["peer"], true, "the gateways have told each other of their proxies");
        let each = pep["memory"].as_u64().unwrap() / COUNT as u64;
        assert!(each < 16 * 1024, "{each} bytes for an idle connection");
    }
    ready.store(2, Ordering::Release);
    client.join().unwrap().unwrap();
}

/// One proxy alone, on a router between a LAN and somebody else's satellite.
#[test]
fn a_proxy_needs_no_gateway() {
    if missing("a_proxy_needs_no_gateway") {
        return;
    }
    let testbed = Testbed::up("box", &["--no-gateway"], &satellite());
    let file = std::env::temp_dir().join(format!("{}.toml", testbed.name()));
    fs::write(&file, "lan = \"lh-lan\"\nwan = \"lh-wan\"\nmtu = 1400\npep.link.congestion = \"bbr\"\n")
        .unwrap();
    let path = file.display().to_string();
    let mut proxy = testbed.start("gw1", &[env!("CARGO_BIN_EXE_longhaul"), "proxy", "--config", &path]);
    testbed.wait_until("the devices are there", 10, || testbed.namespace("gw1").has_device("lh-wan"));
    for (from, device, table) in [("lan0", "lh-lan", "5101"), ("sat0", "lh-wan", "5102")] {
        for family in ["-4", "-6"] {
            let rule = ["ip", family, "rule", "add", "iif", from, "ipproto", "tcp", "lookup", table];
            assert!(testbed.run("gw1", &rule).status.success());
            let route = ["ip", family, "route", "add", "default", "dev", device, "table", table];
            assert!(testbed.run("gw1", &route).status.success());
        }
        let filter = format!("ipv4/conf/{device}/rp_filter");
        testbed.namespace("gw1").set_parameters(&[(filter.as_str(), "0")]).unwrap();
    }
    for address in ["10.77.2.2", "fd77:2::2"] {
        let server = testbed.serve_at(address, 2 << 20);
        testbed.download(&server, 60);
        // The server is known by now: a call is answered by the proxy.
        let to: SocketAddr = (address.parse::<std::net::IpAddr>().unwrap(), 8000).into();
        let (ms, stream) = testbed.inside("host1", move || timed(|| TcpStream::connect(to)));
        stream.unwrap();
        assert!(ms < 100, "{address}: {ms} ms for a round trip of 200");
    }
    bench::signal(proxy.id(), "TERM");
    proxy.wait().unwrap();
    fs::remove_file(&file).unwrap();
}

/// A fifth of all packets is lost each way and nothing below repairs them: the proxies' coded TCP brings a download whole, at a rate
/// that the hosts' Reno is far from.
#[test]
fn a_coded_pair_crosses_a_lossy_line() {
    if missing("a_coded_pair_crosses_a_lossy_line") {
        return;
    }
    let files = [
        ("pep", "link = { preset = \"proxy-link-lossy\" }\n"),
        ("link", "protocol = \"plain\"\nqueue = { fq-codel = {} }\n"),
    ]
    .map(|(table, text)| {
        let path = std::env::temp_dir().join(format!("longhaul-{}-lossy-{table}.toml", std::process::id()));
        fs::write(&path, text).unwrap();
        path.display().to_string()
    });
    let channel = ["--rate", "5 Mbit/s", "--delay", "150 ms", "--errors", "erasure={probability=0.2}"]
        .map(str::to_owned);
    let link = ["--link-config", &files[1]];
    for (label, pep, limit) in [("coded", &["--pep-config", files[0].as_str()][..], 100), ("plain", &[], 30)]
    {
        let testbed = Testbed::up(label, &[&link, pep].concat(), &channel);
        for host in ["host1", "host2"] {
            // The default may be BBR, which would bear these losses too; a namespace may always have Reno.
            testbed.namespace(host).set_parameters(&[("ipv4/tcp_congestion_control", "reno")]).unwrap();
        }
        let server = testbed.serve(3 << 20);
        if pep.is_empty() {
            assert_eq!(testbed.download_within(&server, limit), None);
            continue;
        }
        testbed.wait_until("the proxies know each other", 60, || {
            ["gw1", "gw2"].iter().all(|room| testbed.status(room)["peers"][0]["pep"]["peer"] == true)
        });
        testbed.download_within(&server, limit).expect("3 MB arrive in time");
        assert!(split(&testbed, "gw1") > 0 && split(&testbed, "gw2") > 0);
    }
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
}
