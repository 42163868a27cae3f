//! A hub with two workers, on real devices and sockets.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};

use serde_json::Value;

use super::bench::{missing, signal, wait_until};
use super::name::HostFiles;
use super::star::{Star, address};

/// What lies behind a terminal besides its own address.
fn behind(end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, end as u8, 1)
}

fn allowed(star: &Star, end: usize, further: &str) -> String {
    star.peer(end, &format!("allowed = [\"{}/32\"{further}]", address(end)))
}

/// Which worker a terminal is on.
fn worker(star: &Star, end: usize) -> u64 {
    star.at_hub(end)["worker"].as_u64().expect("it is a peer")
}

fn hub(terminals: usize, top: &str) -> Star {
    let mut star = Star::new(terminals);
    star.write_hub(top, &(1..=terminals).map(|end| allowed(&star, end, "")).collect::<String>());
    star.start(0);
    (1..=terminals).for_each(|end| star.start_terminal(end));
    star.wait_until_heard(&(1..=terminals).collect::<Vec<_>>());
    star
}

/// Each terminal reaches the hub and is reached, whichever worker it is on, and so do terminals of one worker and of two.
#[test]
fn terminals_of_two_workers_reach_all() {
    if missing("terminals_of_two_workers_reach_all") {
        return;
    }
    let mut star = hub(4, "workers = 2");
    assert_eq!(star.status()["workers"], 2);
    assert_eq!([1, 2, 3, 4].map(|end| worker(&star, end)), [0, 1, 0, 1]);
    assert!(star.log(0).contains("4 peers on 2 workers"), "{}", star.log(0));
    for end in 1..=4 {
        star.echo(end, 0, address(0), 100_000);
        star.echo(0, end, address(end), 100_000);
    }
    // Between terminals: out of one queue of the device, by the kernel's routes, and into one of them again.
    for (from, to) in [(1, 2), (2, 1), (1, 3), (4, 2), (3, 4)] {
        star.echo(from, to, address(to), 100_000);
    }
    wait_until("packets are counted that the kernel gave to the wrong worker", 10, || {
        star.status()["passed"]["packets"].as_u64() > Some(0)
    });
    let passed = star.status()["passed"].clone();
    assert!(passed["calls"].as_u64() >= Some(2), "the first worker admits: {passed}");
    assert_eq!(
        (&passed["calls_without_room"], &passed["packets_astray"]),
        (&0.into(), &0.into()),
        "{passed}"
    );
    // One that says to be another worker's is not believed.
    let lie = format!("{}/32", address(2));
    star.run(1, &["ip", "address", "add", &lie, "dev", "lo"]);
    let lies = star.at(1, || {
        let socket = UdpSocket::bind((address(2), 0)).unwrap();
        (0..3).for_each(|_| _ = socket.send_to(&[0; 100], (address(0), 9)).unwrap());
    });
    lies.join().unwrap().unwrap();
    wait_until("what is not from there is dropped", 10, || {
        star.status()["traffic"]["packets_from_elsewhere"].as_u64() >= Some(3)
    });
    // What is asked for is what is written.
    let program = env!("CARGO_BIN_EXE_longhaul");
    let asked = star.run(0, &[program, "gateway", "status", "--json"]);
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!((&asked[0]["workers"], asked[0]["peers"].as_array().map(Vec::len)), (&2.into(), Some(4)));
    let table = star.run(0, &[program, "gateway", "status"]);
    assert!(table.contains(", 2 workers, public key "), "{table}");
    assert_eq!(table.lines().filter(|line| line.ends_with("  1")).count(), 2, "{table}");
    assert!(star.end(0), "it ends in order: {}", star.log(0));
    assert!(!star.status_file().exists(), "a gateway that has ended has no status");
}

/// Peers come, change and go at both workers, and sessions of the others go on.
#[test]
fn peers_of_two_workers_come_and_go() {
    if missing("peers_of_two_workers_come_and_go") {
        return;
    }
    let mut star = Star::new(5);
    let first: String = (1..=4).map(|end| allowed(&star, end, "")).collect();
    star.write_hub("workers = 2", &first);
    star.start(0);
    (1..=5).for_each(|end| star.start_terminal(end));
    star.wait_until_heard(&[1, 2, 3, 4]);
    wait_until("who is no peer is refused", 60, || star.log(0).contains("no peer has the public key "));
    let handshakes = |star: &Star, end: usize| star.at_hub(end)["handshakes"].as_u64();
    let before = [1, 3, 4].map(|end| handshakes(&star, end));

    // One of the second worker goes, one of each gets another network, and one comes in the place that is free.
    let net = |end: usize| format!(", \"10.78.{end}.0/24\"");
    let changed = [(1, ""), (3, &*net(3)), (4, &*net(4)), (5, "")];
    let changed: String = changed.map(|(end, further)| allowed(&star, end, further)).concat();
    star.write_hub("workers = 2", &changed);
    signal(star.pid(0), "HUP");
    star.wait_until_heard(&[5]);
    assert_eq!(star.at_hub(2), Value::Null);
    assert_eq!([1, 3, 4, 5].map(|end| worker(&star, end)), [0, 0, 1, 1]);
    for end in [3, 4] {
        star.run(end, &["ip", "address", "add", &format!("{}/32", behind(end)), "dev", "lo"]);
        star.echo(0, end, behind(end), 10_000);
    }
    star.echo(5, 4, address(4), 10_000);
    assert_eq!([1, 3, 4].map(|end| handshakes(&star, end)), before, "nobody else starts anew");

    // What only a restart can change, and what is wrong.
    star.write_hub("workers = 3", &changed);
    signal(star.pid(0), "HUP");
    wait_until("it is told", 10, || star.log(0).contains("these changes need a restart: workers"));
    star.write_hub("workers = 2\nshare.rate = \"1 Mbit/s\"", &changed);
    signal(star.pid(0), "HUP");
    wait_until("it is told", 10, || star.log(0).contains("2 workers cannot share a rate"));
    assert_eq!(star.status()["workers"], 2);
    assert!(star.end(0), "it ends in order: {}", star.log(0));
}

/// Names are asked for by the first worker, and called by whichever has the peer.
#[test]
fn peers_of_two_workers_are_called_by_name() {
    if missing("peers_of_two_workers_are_called_by_name") {
        return;
    }
    let mut star = Star::new(2);
    let named = |end: usize| {
        star.peer(end, &format!("allowed = [\"{}/32\"]\nendpoint = \"t{end}.test:51900\"", address(end)))
    };
    star.write_hub("workers = 2", &[1, 2].map(named).concat());
    let system = HostFiles::new(star.namespace(0).name());
    system.write("nsswitch.conf", "hosts: files\n");
    system.write("hosts", "127.0.0.1 localhost\n");
    [1, 2].into_iter().for_each(|end| star.start_terminal_with(end, ""));
    star.start(0);
    for end in [1, 2] {
        wait_until("it is told that the name is not known", 30, || {
            star.log(0).contains(&format!("the address of t{end}.test is not known yet"))
        });
    }
    system.write("hosts", "10.79.1.2 t1.test\n10.79.2.2 t2.test\n");
    star.wait_until_heard(&[1, 2]);
    assert_eq!([1, 2].map(|end| worker(&star, end)), [0, 1]);
    for end in [1, 2] {
        assert!(star.log(0).contains(&format!("peer t{end}.test is now at 10.79.{end}.2:51900")));
        star.echo(0, end, address(end), 10_000);
    }
    assert!(star.end(0), "it ends in order: {}", star.log(0));
}

/// A device that somebody removes comes back with a queue for each worker, though only the first may make it.
#[test]
fn both_queues_come_back_with_the_device() {
    if missing("both_queues_come_back_with_the_device") {
        return;
    }
    let mut star = hub(2, "workers = 2");
    let rights = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", star.pid(0))).unwrap().flatten();
        let of = |task: fs::DirEntry| {
            let name = fs::read_to_string(task.path().join("comm")).unwrap();
            let status = fs::read_to_string(task.path().join("status")).unwrap();
            let sets =
                status.lines().filter(|line| line.starts_with("Cap") || line.starts_with("NoNewPrivs"));
            (name.trim().to_owned(), sets.collect::<Vec<_>>().join("\n"))
        };
        let mut all: Vec<_> = tasks.map(of).collect();
        all.sort();
        all
    };
    let sets = |kept: u64| {
        format!(
            "CapInh:\t{0:016x}\nCapPrm:\t{kept:016x}\nCapEff:\t{kept:016x}\nCapBnd:\t{0:016x}\nCapAmb:\t{0:016x}\n\
             NoNewPrivs:\t1",
            0
        )
    };
    let expected = [("longhaul".to_owned(), sets(1 << 12)), ("worker 1".to_owned(), sets(0))];
    assert_eq!(rights(), expected);
    for _ in 0..3 {
        star.run(0, &["ip", "link", "delete", "sat0"]);
        wait_until("the device is back", 10, || {
            star.run(0, &["ip", "route"]).contains("10.78.0.0/16 dev sat0")
        });
        for end in [1, 2] {
            star.echo(0, end, address(end), 10_000);
            star.echo(end, 0, address(0), 10_000);
        }
        star.echo(1, 2, address(2), 10_000);
    }
    assert_eq!(rights(), expected);
    assert_eq!(star.log(0).matches("sat0 was removed, and has been created again").count(), 3);
    assert!(star.end(0), "it ends in order: {}", star.log(0));
}
