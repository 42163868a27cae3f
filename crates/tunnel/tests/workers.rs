//! A hub of several workers in virtual time: each has a `Hub` of its own, and they share nothing but what is passed between them here.
//!
//! Datagrams come to the worker that their bytes name, as the kernel does it; packets from the LAN come to any.

#[allow(dead_code, reason = "the star has more to it than its parts that these tests use")]
use std::collections::VecDeque;

use crate::star::{Star, host, key, network, packet, path};
use base::wire::ip::Ecn;
use base::{Duration, Instant, Prefix};
use longhaul_tunnel::hub::{Taken, Unfit};
use longhaul_tunnel::path::{Address, Path};
use longhaul_tunnel::random::Random;
use longhaul_tunnel::{Hub, Membership, PeerId, Sent, WorkerId};

const LINK: &str = "rate = \"2 Mbit/s\"";
const DELAY: Duration = Duration::from_millis(20);
const STEP: Duration = Duration::from_millis(5);
/// First bytes of datagrams.
const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;
const SEALED: u8 = 4;

/// Somebody at the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Hub,
    Terminal(usize),
}

struct World {
    workers: Vec<Hub>,
    /// Terminal `n` is at `n - 1`.
    terminals: Vec<Hub>,
    now: Instant,
    on_way: VecDeque<(Instant, End, Path, Vec<u8>)>,
    /// What came out of each worker's hub: from which terminal, and how long.
    delivered: Vec<Vec<(usize, usize)>>,
    /// What came out at each terminal: how long.
    received: Vec<Vec<usize>>,
    /// Sealed datagrams that came to each worker.
    sealed: Vec<usize>,
    /// Responses that left the hub.
    responses: usize,
    /// Initiations of this terminal do not arrive, and are kept.
    held: Option<(usize, Vec<Vec<u8>>)>,
}

fn gateway(worker: WorkerId, end: usize) -> Hub {
    let mut seed = u64::from(worker.number()) << 40 | (end as u64) << 20;
    Hub::of_worker(worker, key(end), None, move || {
        seed += 1;
        Random::seeded(seed)
    })
}

fn membership(end: usize, address: Option<Address>) -> Membership {
    Star::new(0, LINK, None).member(key(end).public(), network(end), 1, address)
}

impl World {
    fn new(workers: u32, terminals: usize) -> Self {
        let mut world = Self {
            workers: WorkerId::all(workers).map(|worker| gateway(worker, 0)).collect(),
            terminals: Vec::new(),
            now: Instant::ZERO,
            on_way: VecDeque::new(),
            delivered: vec![Vec::new(); workers as usize],
            received: vec![Vec::new(); terminals],
            sealed: vec![0; workers as usize],
            responses: 0,
            held: None,
        };
        for end in 1..=terminals {
            world.admit(end).unwrap();
            let mut terminal = gateway(WorkerId::ONLY, end);
            let to_hub = membership(0, Some(path(0).peer));
            terminal.add(Membership { allowed: Prefix::EVERYTHING.to_vec(), ..to_hub }).unwrap();
            world.terminals.push(terminal);
        }
        world
    }

    /// Takes a terminal in at all workers.
    fn admit(&mut self, end: usize) -> Result<PeerId, Unfit> {
        let wanted = membership(end, None);
        let id = self.workers[0].enrol(wanted.key, &wanted.allowed)?;
        self.workers[1..]
            .iter_mut()
            .for_each(|hub| hub.enrol_as(id, wanted.key, &wanted.allowed).expect("it fits at the first"));
        let worker = self.workers[0].worker().of_peer(id.number());
        self.workers[worker as usize].settle(id, wanted);
        Ok(id)
    }

    fn peer(&self, end: usize) -> PeerId {
        self.workers[0].find(&key(end).public()).expect("it is a peer")
    }

    /// The number of the worker that has a terminal.
    fn worker_of(&self, end: usize) -> usize {
        self.workers[0].worker().of_peer(self.peer(end).number()) as usize
    }

    fn established(&self, end: usize) -> u64 {
        let tunnel = self.workers[self.worker_of(end)].tunnel(self.peer(end)).expect("it has a tunnel");
        if tunnel.session().is_heard(self.now) { tunnel.session().established.get() } else { 0 }
    }

    fn challenges(&self) -> u64 {
        self.workers[0].status()["traffic"]["challenges_sent"].as_u64().unwrap()
    }

    /// A packet from the hub's LAN comes to a worker, which passes it on if need be: to which.
    fn offer(&mut self, worker: usize, to: usize, len: usize) -> usize {
        match self.workers[worker].handle_packet(self.now, packet(0, to, len)) {
            Taken::Elsewhere(other, packet) => {
                let taken = self.workers[other as usize].handle_packet(self.now, packet);
                assert!(matches!(taken, Taken::Here | Taken::ToLeave));
                other as usize
            }
            Taken::Here | Taken::ToLeave => worker,
        }
    }

    fn arrive(&mut self, to: End, from: Path, mut bytes: Vec<u8>) {
        // What is refused is counted.
        let _ = match to {
            End::Terminal(end) => {
                self.terminals[end - 1].handle_datagram(self.now, from, Ecn::NotEct, &mut bytes)
            }
            End::Hub => {
                let worker = self.workers[0].worker().of_datagram(&bytes) as usize;
                assert!(bytes[0] != INITIATION || worker == 0);
                self.sealed[worker] += usize::from(bytes[0] == SEALED);
                self.workers[worker].handle_datagram(self.now, from, Ecn::NotEct, &mut bytes)
            }
        };
        while let Some(handover) = self.workers[0].poll_handover() {
            let worker = self.workers[0].worker().of_peer(handover.peer().number());
            assert_ne!(worker, 0, "its own it answers itself");
            let _ = self.workers[worker as usize].take_over(self.now, handover);
        }
    }

    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.now += STEP;
            while let Some((_, to, from, bytes)) = self.on_way.pop_front_if(|(at, ..)| *at <= self.now) {
                self.arrive(to, from, bytes);
            }
            for worker in 0..self.workers.len() {
                self.serve_worker(worker);
            }
            for end in 1..=self.terminals.len() {
                self.serve_terminal(end);
            }
        }
    }

    fn serve_worker(&mut self, at: usize) {
        let (now, hub) = (self.now, &mut self.workers[at]);
        hub.handle_timeout(now);
        while let Some(delivery) = hub.poll_packet(now) {
            self.delivered[at].push((usize::from(delivery.packet[14]), delivery.packet.len()));
        }
        while let Some(transmit) = hub.poll_transmit(now, 1, false) {
            let Address::Udp(to) = transmit.to.peer else { panic!("UDP") };
            let core::net::IpAddr::V4(to) = to.ip() else { panic!("IPv4") };
            let to = End::Terminal(usize::from(to.octets()[2]));
            self.responses += usize::from(transmit.bytes[0] == RESPONSE);
            self.on_way.push_back((now + DELAY, to, path(0), transmit.bytes.to_vec()));
            hub.on_sent(now, Sent::Yes);
        }
        while hub.poll_event().is_some() {}
    }

    fn serve_terminal(&mut self, end: usize) {
        let (now, hub) = (self.now, &mut self.terminals[end - 1]);
        hub.handle_timeout(now);
        while let Some(delivery) = hub.poll_packet(now) {
            self.received[end - 1].push(delivery.packet.len());
        }
        while let Some(transmit) = hub.poll_transmit(now, 1, false) {
            let bytes = transmit.bytes.to_vec();
            hub.on_sent(now, Sent::Yes);
            match &mut self.held {
                Some((of, held)) if *of == end && bytes[0] == INITIATION => held.push(bytes),
                _ => self.on_way.push_back((now + DELAY, End::Hub, path(end), bytes)),
            }
        }
        while hub.poll_event().is_some() {}
    }
}

fn second(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Each worker has its share of the terminals, with sessions and packets in both directions, whichever worker packets come to.
#[test]
fn each_worker_has_its_terminals() {
    for workers in [2, 3] {
        let mut world = World::new(workers, 7);
        world.pass(second(3));
        for end in 1..=7 {
            assert_eq!(world.worker_of(end), (end - 1) % workers as usize);
            assert_eq!(world.established(end), 1, "terminal {end} of {workers} workers");
            let others = world.workers.iter().filter(|hub| hub.tunnel(world.peer(end)).is_some());
            assert_eq!(others.count(), 1, "a tunnel lives on one worker");
            for worker in 0..workers as usize {
                assert_eq!(world.offer(worker, end, 100 + worker), world.worker_of(end));
            }
            world.terminals[end - 1].handle_packet(world.now, packet(end, 0, 200));
        }
        world.pass(second(2));
        for end in 1..=7 {
            let mut got = world.received[end - 1].clone();
            got.sort_unstable();
            assert_eq!(got, (100..100 + workers as usize).collect::<Vec<_>>());
            assert_eq!(
                world.delivered[world.worker_of(end)].iter().filter(|it| **it == (end, 200)).count(),
                1
            );
        }
        assert!(world.sealed.iter().all(|count| *count > 0), "{:?}", world.sealed);
        // Whoever says to be a terminal of another worker is not believed.
        let (liar, victim) = (1, 2);
        let before: usize = world.delivered.iter().map(Vec::len).sum();
        world.terminals[liar - 1].handle_packet(world.now, packet(victim, 0, 300));
        world.pass(second(1));
        assert_eq!(world.delivered.iter().map(Vec::len).sum::<usize>(), before);
        assert_eq!(world.workers[0].status()["traffic"]["packets_from_elsewhere"], 1);
    }
}

/// A worker whose only tunnel has no room takes packets all the same, since they may be for others; the only worker leaves them in the
/// kernel.
#[test]
fn packets_of_other_workers_do_not_wait_for_room() {
    for workers in [1, 2] {
        let mut hub = gateway(WorkerId::all(workers).next().unwrap(), 0);
        let wanted = Star::new(0, "rate = \"max\"", None).member(key(1).public(), network(1), 1, None);
        hub.add(wanted).unwrap();
        assert!(hub.wants_packets());
        assert!(matches!(hub.handle_packet(Instant::ZERO, packet(0, 1, 100)), Taken::ToLeave));
        assert_eq!(hub.wants_packets(), workers > 1, "{workers} workers");
    }
}

/// Keys are renewed in one round trip: the cookie that came with an answer by another worker is the first worker's.
#[test]
fn sessions_of_all_workers_are_renewed() {
    let mut world = World::new(2, 4);
    world.pass(second(3));
    let first = world.challenges();
    assert_eq!(first, 4, "one for each terminal");
    // Renewals keep their times only while something passes.
    for _ in 0..300 {
        (1..=4).for_each(|end| {
            world.offer(0, end, 100);
        });
        world.pass(second(1));
    }
    for end in 1..=4 {
        assert!(world.established(end) >= 3, "terminal {end}: {}", world.established(end));
    }
    assert_eq!(world.challenges(), first);
    let refused = world.workers[1].status()["refused"].clone();
    assert_eq!(refused, serde_json::json!({}), "nothing came to a worker that is not for it");
}

/// A gateway that was restarted denies sessions at whichever worker had them.
#[test]
fn each_worker_denies_sessions_of_its_former_life() {
    let mut world = World::new(3, 7);
    world.pass(second(3));
    world.workers = WorkerId::all(3).map(|worker| gateway(worker, 0)).collect();
    (1..=7).for_each(|end| _ = world.admit(end).unwrap());
    (1..=7).for_each(|end| _ = world.terminals[end - 1].handle_packet(world.now, packet(end, 0, 200)));
    world.pass(Duration::from_millis(500));
    for end in 1..=7 {
        assert_eq!(world.established(end), 1, "terminal {end}");
    }
    let denials = world.workers.iter().map(|hub| hub.status()["traffic"]["denials_sent"].as_u64().unwrap());
    let denials: Vec<_> = denials.collect();
    assert!(denials.iter().all(|count| (2..=12).contains(count)), "{denials:?}");
}

/// A call of another worker's terminal that was held back ranks below the one that was answered: it is challenged, not answered.
#[test]
fn calls_that_were_held_back_are_challenged() {
    let mut world = World::new(2, 2);
    world.pass(second(3));
    assert_eq!((world.worker_of(2), world.established(2)), (1, 1));
    // The terminal hears nothing, so it calls again and again with the cookie that it has.
    world.held = Some((2, Vec::new()));
    let id = world.peer(2);
    world.workers.iter_mut().for_each(|hub| hub.remove(id));
    assert_eq!(world.admit(2), Ok(id), "the number is used again, at the same worker");
    world.pass(second(10));
    let (_, held) = world.held.take().unwrap();
    assert!(held.len() >= 2, "{} calls", held.len());
    // The last is answered; then the first, which is as genuine, comes.
    let before = (world.responses, world.challenges());
    world.arrive(End::Hub, path(2), held.last().unwrap().clone());
    world.serve_worker(1);
    assert_eq!((world.responses, world.challenges()), (before.0 + 1, before.1));
    world.arrive(End::Hub, path(2), held[0].clone());
    (0..2).for_each(|worker| world.serve_worker(worker));
    assert_eq!((world.responses, world.challenges()), (before.0 + 1, before.1 + 1));
    // A copy of what was answered is nothing new at all.
    world.arrive(End::Hub, path(2), held.last().unwrap().clone());
    (0..2).for_each(|worker| world.serve_worker(worker));
    assert_eq!((world.responses, world.challenges()), (before.0 + 1, before.1 + 1));
    world.pass(second(5));
    assert_eq!(world.established(2), 1);
}

/// Whoever is removed is a peer of no worker, and a network of its is free for others.
#[test]
fn terminals_come_and_go_at_all_workers() {
    let mut world = World::new(2, 4);
    world.pass(second(3));
    assert_eq!(world.admit(2).unwrap_err(), Unfit::Known(world.peer(2)));
    let id = world.peer(2);
    let handover = {
        // A call that is on its way to the other worker when its peer goes.
        world.terminals[1] = gateway(WorkerId::ONLY, 2);
        let to_hub = membership(0, Some(path(0).peer));
        world.terminals[1].add(to_hub).unwrap();
        let mut handover = None;
        while handover.is_none() {
            world.now += STEP;
            world.serve_terminal(2);
            while let Some((_, to, from, mut bytes)) = world.on_way.pop_front() {
                match to {
                    End::Hub if bytes[0] == INITIATION => {
                        let _ = world.workers[0].handle_datagram(world.now, from, Ecn::NotEct, &mut bytes);
                        handover = world.workers[0].poll_handover().or(handover);
                        world.serve_worker(0);
                    }
                    to => world.arrive(to, from, bytes),
                }
            }
        }
        handover.unwrap()
    };
    assert_eq!(handover.peer(), id);
    world.workers.iter_mut().for_each(|hub| hub.remove(id));
    for hub in &mut world.workers {
        assert!(hub.find(&key(2).public()).is_none() && hub.len() == 3);
        assert!(matches!(hub.handle_packet(world.now, packet(0, 2, 100)), Taken::Here));
        assert_eq!(hub.status()["traffic"]["packets_without_peer"], 1);
    }
    // Another one takes its number and its place.
    assert_eq!(world.admit(9), Ok(id));
    assert_eq!(world.worker_of(9), 1);
    assert!(world.workers[1].take_over(world.now, handover).is_err(), "whoever it is for has gone");
    assert_eq!(host(9), [10, 0, 9, 1]);
}
