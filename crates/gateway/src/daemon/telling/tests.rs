//! Statuses of hubs without devices: in parts, while peers come and go, of several workers.

use std::ops::Range;

use base::Prefix;
use tunnel::key::PrivateKey;
use tunnel::{Hub, Membership, PeerId, WorkerId};

use super::*;
use crate::config::Config;
use crate::daemon::membership;
use crate::random;

const NOW: Instant = Instant::ZERO;

/// Of a worker's account, peers at most.
const PART: usize = 128;

fn key(number: u16) -> PrivateKey {
    let mut bytes = [1; 32];
    bytes[8..10].copy_from_slice(&number.to_le_bytes());
    PrivateKey::from_bytes(bytes)
}

/// Peers with these numbers, for a gateway with the number zero.
fn members(numbers: Range<u16>) -> Vec<Membership> {
    let site = format!(
        "[tun]\nname = \"sat0\"\n[carrier.udp]\nlisten = \"127.0.0.1:0\"\n[link]\nprotocol = \"plain\"\n[identity]\n\
         private-key = \"{}\"\n[[peer]]\npublic-key = \"{}\"\n",
        &*key(0).to_base64(),
        key(1).public()
    );
    let config = Config::parse("site.toml", &site).unwrap();
    let usual = membership(&config, &config.peers[0]).unwrap();
    let of = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let allowed = vec![format!("10.{high}.{low}.0/24").parse::<Prefix>().unwrap()];
        Membership { key: key(number).public(), allowed, ..usual.clone() }
    };
    numbers.map(of).collect()
}

/// Workers' hubs, with peers one by one.
fn hubs(count: u32, members: &[Membership]) -> Vec<Hub> {
    let mut hubs: Vec<_> =
        WorkerId::all(count).map(|worker| Hub::of_worker(worker, key(0), None, random::system)).collect();
    for member in members {
        let id = hubs[0].enrol(member.key, &member.allowed).unwrap();
        hubs[1..].iter_mut().for_each(|hub| hub.enrol_as(id, member.key, &member.allowed).unwrap());
        let worker = hubs[0].worker().of_peer(id.number());
        hubs[worker as usize].settle(id, member.clone());
    }
    hubs
}

/// Parts of a worker's account, and how many peers are in them, until it has ended or there are so many.
fn take(making: &mut Making, hub: &Hub, from: &mut u32, most: usize) -> Vec<usize> {
    let (worker, mut sizes) = (hub.worker().number(), Vec::new());
    while making.is_missing(worker) && sizes.len() < most {
        let part = Part::of(hub, &[], NOW, *from, || json!({ "memory_bytes": 1 + u64::from(worker) }));
        if let Then::From(next) = part.then {
            *from = next;
        }
        sizes.push(part.peers.len());
        making.take(worker, part, &Peers::default());
    }
    sizes
}

fn read(text: &Text) -> Value {
    serde_json::from_str(&text.concat()).unwrap()
}

fn keys(status: &Value) -> Vec<String> {
    let peers = status["peers"].as_array().unwrap();
    peers.iter().map(|peer| peer["public_key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn packets_wait_for_a_part_at_most() {
    let members = members(1..301);
    let hub = &hubs(1, &members)[0];
    let mut making = Making::new(NOW, [].into_iter());
    assert_eq!(take(&mut making, hub, &mut 0, 9), [PART, PART, 44]);
    assert!(making.is_over(NOW));
    let text = making.into_text(json!({ "device": "sat0" }));
    let lines = text.concat();
    assert_eq!(lines.lines().filter(|line| line.contains("public_key")).count(), 300, "a line for each");
    let status = read(&text);
    assert_eq!((&status["device"], &status["memory_bytes"]), (&"sat0".into(), &1.into()));
    let expected: Vec<_> = members.iter().map(|it| it.key.to_string()).collect();
    assert_eq!(keys(&status), expected);
    let of_tunnel = serde_json::to_value(hub.peers().next().unwrap().1.status(NOW)).unwrap();
    let mut first = status["peers"][0].clone();
    for (name, value) in [
        ("name", json!("a former peer")),
        ("public_key", json!(members[0].key)),
        ("worker", json!(0)),
        ("heard_seconds_ago", Value::Null),
        ("state", json!("never")),
        ("state_seconds", Value::Null),
    ] {
        assert_eq!(first.as_object_mut().unwrap().remove(name), Some(value), "{name}");
    }
    assert_eq!(first, of_tunnel);
    let none = Making::new(NOW, [].into_iter()).into_text(json!({ "device": "sat0" }));
    assert_eq!(read(&none)["peers"], json!([]));
}

#[test]
fn peers_come_and_go_between_parts() {
    let members = members(1..401);
    let mut hub = hubs(1, &members).remove(0);
    let ids: Vec<PeerId> = hub.peers().map(|(id, _)| id).collect();
    let (mut making, mut next) = (Making::new(NOW, [].into_iter()), 0);
    assert_eq!(take(&mut making, &hub, &mut next, 1), [PART]);
    // One that was told of, the one that is next, and those behind it.
    [&ids[5..6], &ids[128..140]].concat().into_iter().for_each(|id| hub.remove(id));
    assert_eq!(take(&mut making, &hub, &mut next, 1), [PART]);
    ids[268..].iter().for_each(|id| hub.remove(*id));
    hub.add(members[300].clone()).unwrap();
    take(&mut making, &hub, &mut next, 9);
    assert!(making.is_over(NOW));
    let told = keys(&read(&making.into_text(json!({}))));
    let stayed: Vec<_> = [&members[..128], &members[140..268]].concat();
    let stayed: Vec<_> = stayed.iter().map(|it| it.key.to_string()).collect();
    assert_eq!(told[..256], stayed);
    assert!(told[256..].is_empty() || told[256..] == [members[300].key.to_string()], "{:?}", &told[256..]);
}

#[test]
fn workers_tell_side_by_side_and_none_is_waited_for_long() {
    let hubs = hubs(3, &members(1..601));
    let peers =
        |hub: &Hub| hub.peers().map(|(_, it)| it.session().peer_key().to_string()).collect::<Vec<_>>();
    let mut making = Making::new(NOW, 1..3);
    let mut from = [0; 3];
    for worker in [2, 1, 0, 2, 0] {
        take(&mut making, &hubs[worker], &mut from[worker], 1);
    }
    // Worker 1 has not told all.
    let late = NOW + PATIENCE;
    assert!(!making.is_over(NOW) && making.is_over(late));
    let mut telling = Telling { making: Some(making), number: 7, ..Telling::default() };
    for number in [6, 7] {
        assert!(!telling.making.as_ref().unwrap().is_over(NOW), "a former status is nobody's concern");
        let part = Part::of(&hubs[1], &[], NOW, from[1], || json!({ "memory_bytes": 2 }));
        telling.handle_part(number, 1, part, &Peers::default());
    }
    let making = telling.making.take().unwrap();
    assert!(making.is_over(NOW));
    let status = read(&making.into_text(json!({})));
    assert_eq!(status["memory_bytes"], 1 + 2 + 3);
    assert_eq!(keys(&status), hubs.iter().flat_map(peers).collect::<Vec<_>>());
    // This thread's own account is always whole, and who has ended is not waited for.
    telling.making = Some(Making::new(NOW, 1..2));
    telling.on_ended(1);
    let mut making = telling.making.unwrap();
    assert!(!making.is_over(late));
    take(&mut making, &hubs[0], &mut 0, 9);
    assert!(making.is_over(NOW));
}

/// Sessions of thousands of peers begin all the time: the file is written all the same, and again for what it may lack.
#[test]
fn what_happens_meanwhile_keeps_no_file_from_being_written() {
    let second = Duration::from_secs(1);
    let mut telling = Telling::default();
    telling.begin(NOW, 1, Some(second), [].into_iter());
    assert!(telling.is_for_file && telling.file_at == NOW + second);
    telling.hurry(NOW + PAUSE);
    assert!(telling.is_for_file && telling.file_at == NOW + PAUSE);
    telling.begin(NOW + second, 2, Some(second), [].into_iter());
    assert!(telling.is_for_file);
    // One for a question alone, and one where there is no file.
    telling.begin(NOW + second + PAUSE, 3, Some(second), [].into_iter());
    assert!(!telling.is_for_file && telling.file_at == NOW + second + second);
    telling.begin(NOW + second + second, 4, None, [].into_iter());
    assert!(!telling.is_for_file);
}
