//! Two sessions in virtual time, and somebody between them who records, repeats, reorders, forges and holds back. A
//! property test and a fuzz target drive him.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use base::{Duration, Instant};
use longhaul_tunnel::control::Kind;
use longhaul_tunnel::key::{PresharedKey, PrivateKey};
use longhaul_tunnel::path::{Address, Path};
use longhaul_tunnel::random::Random;
use longhaul_tunnel::session::{
    Ends, HEADER_LEN, Indices, Peer, Received, Reception, Rejection, Session, Timing,
};

/// The two ends, and everybody on the path.
#[derive(Debug)]
pub(crate) struct World {
    sides: [Side; 2],
    now: Instant,
    /// What the sides have sent to each other and the attacker has not yet let pass.
    wire: VecDeque<Flight>,
    /// All that was ever sent.
    recorded: Vec<Flight>,
    /// Whether the second end has the first one's address too.
    both: bool,
    /// Lives so far.
    lives: u64,
}

/// One end. Its clock begins when it does.
#[derive(Debug)]
struct Side {
    reception: Reception,
    session: Session,
    /// Challenges that it has to send.
    challenges: VecDeque<(Path, Vec<u8>)>,
    started: Instant,
    /// What this life took, and where from.
    taken: HashSet<(Vec<u8>, u16)>,
}

/// A datagram for a side.
#[derive(Clone, Debug)]
struct Flight {
    to: usize,
    bytes: Vec<u8>,
}

/// The first byte of an initiation, and of what one without a cookie brings.
const INITIATION: u8 = 1;
const CHALLENGE: u8 = 3;
/// Of the one peer.
const NUMBER: u32 = 3;
/// Neither end's port: those are 0 and 1.
const ELSEWHERE: u16 = 9;
/// Time between two looks at an undisturbed wire.
const TICK: Duration = Duration::from_millis(50);

fn path(port: u16) -> Path {
    Address::Udp(SocketAddr::from(([127, 0, 0, 1], 1000 + port))).into()
}

impl Side {
    fn new(at: usize, both: bool, seed: u64, started: Instant) -> Self {
        let address = (at == 0 || both).then(|| path(1 - at as u16).peer);
        let [own, peer] = [at, 1 - at].map(|at| PrivateKey::from_bytes([at as u8 + 1; 32]));
        let own = Arc::new(own);
        let mut random = Random::seeded(seed);
        let reception = Reception::new(Arc::clone(&own), Random::seeded(seed + (1 << 32)));
        let indices = (Indices::new(&mut random), NUMBER);
        let ends = Ends { own, peer: peer.public(), preshared: PresharedKey::from_bytes([7; 32]) };
        let place = Peer { address, pinned: false };
        let session = Session::new(ends, place, "link", Timing::default(), indices, random);
        Self { reception, session, challenges: VecDeque::new(), started, taken: HashSet::new() }
    }

    fn handle_datagram(&mut self, now: Instant, from: Path, bytes: &mut [u8]) -> Result<(), Rejection> {
        let Self { reception, session, challenges, .. } = self;
        if bytes.first() != Some(&INITIATION) {
            return session.handle_datagram(now, from, bytes).map(|_| ());
        }
        let allows = |number| (number == NUMBER).then(|| session.allows_answer(now));
        let challenge = match reception.handle_initiation(now, from, bytes, allows)? {
            Received::Challenged(challenge) => challenge,
            Received::Call(call) if call.key() != session.peer_key() => {
                return Err(Rejection::UnknownPeer(call.key()));
            }
            Received::Call(call) if !session.is_newest(&call) => reception.challenge_again(now, &call)?,
            Received::Call(call) => {
                let reply = reception.reply(now, from, NUMBER);
                return session.answer(now, call, reply);
            }
        };
        challenges.push_back((from, challenge));
        Ok(())
    }

    fn poll_transmit(&mut self) -> Option<(Path, Vec<u8>)> {
        self.challenges.pop_front().or_else(|| self.session.poll_transmit())
    }
}

impl World {
    /// Both ends at their start; the first has the other's address, and with `both` the other way round too.
    pub(crate) fn new(both: bool) -> Self {
        let sides = [0, 1].map(|at| Side::new(at, both, at as u64, Instant::ZERO));
        Self { sides, now: Instant::ZERO, wire: VecDeque::new(), recorded: Vec::new(), both, lives: 2 }
    }

    /// One thing that the attacker, or the world, does.
    pub(crate) fn step(&mut self, [action, a, b, c]: [u8; 4]) {
        let recording = usize::from(a) << 8 | usize::from(b);
        match action % 12 {
            0..=2 => self.advance(Duration::from_millis(u64::from(a) * 20)),
            3 | 4 => self.pass(),
            5 => drop(self.wire.pop_front()),
            6 => self.race(),
            7 => self.replay(recording, if c & 1 == 0 { None } else { Some(ELSEWHERE) }),
            8 => self.forge(recording, c),
            9 => self.wire.rotate_left(usize::from(a).min(self.wire.len())),
            10 => self.send(usize::from(a & 1), &[b; 8]),
            // A side restarts seldom, lest nothing else happens.
            _ if c < 40 => self.restart(usize::from(a & 1), b & 1 == 1),
            _ => (0..32).for_each(|n| self.replay(recording + n, None)),
        }
    }

    /// The attacker has gone: a session forms, and carries.
    pub(crate) fn recovers(&mut self) {
        self.wire.clear();
        // An idle end notices after 23 s that the other has restarted, and a call that went astray is repeated some seconds later.
        for _ in 0..900 {
            self.advance(TICK);
            while !self.wire.is_empty() {
                self.pass();
            }
        }
        self.carries();
    }

    /// He replays a thousand recordings a second, races and forges, and lets half of what is genuine pass: a session forms
    /// all the same.
    pub(crate) fn recovers_under_fire(&mut self, luck: &mut impl FnMut() -> u16) {
        let established = |world: &Self| world.sides.iter().all(|side| side.session.is_established());
        self.restart(0, false);
        self.restart(1, false);
        for _ in 0..1200 {
            self.advance(TICK);
            for _ in 0..50 {
                self.replay(luck().into(), None);
            }
            self.forge(luck().into(), luck() as u8);
            while !self.wire.is_empty() {
                self.race();
                if luck() & 1 == 0 { self.pass() } else { drop(self.wire.pop_front()) }
            }
            if established(self) {
                return;
            }
        }
        panic!("no session within a minute: {self:#?}");
    }

    fn advance(&mut self, span: Duration) {
        self.now += span;
        for at in 0..2 {
            let now = self.clock(at);
            self.sides[at].session.handle_timeout(now);
            self.collect(at);
        }
    }

    fn clock(&self, at: usize) -> Instant {
        Instant::ZERO + self.now.saturating_since(self.sides[at].started)
    }

    /// Takes what a side has to send; their first bytes. The attacker sees all; what is for the other end waits for him to
    /// let it pass.
    fn collect(&mut self, at: usize) -> Vec<u8> {
        let mut kinds = Vec::new();
        while self.sides[at].session.poll_event().is_some() {}
        while let Some((to, bytes)) = self.sides[at].poll_transmit() {
            let flight = Flight { to: 1 - at, bytes };
            if to.peer == path(1 - at as u16).peer {
                self.wire.push_back(flight.clone());
            }
            kinds.push(flight.bytes[0]);
            if self.recorded.len() < 5000 {
                self.recorded.push(flight);
            }
        }
        kinds
    }

    /// Hands `flight` over as if it came from `port`. What is refused, or was taken before, moves nothing: all that it
    /// may bring is a challenge.
    fn deliver(&mut self, flight: &Flight, port: u16) -> Result<(), Rejection> {
        let now = self.clock(flight.to);
        let side = &mut self.sides[flight.to];
        let state = |session: &Session| (session.path(), session.established.get(), session.late.get());
        let before = state(&side.session);
        let result = side.handle_datagram(now, path(port), &mut flight.bytes.clone());
        let sent = self.collect(flight.to);
        let side = &mut self.sides[flight.to];
        if result.is_err() || !side.taken.insert((flight.bytes.clone(), port)) {
            let after = state(&side.session);
            // A copy tells where the peer is, if data went elsewhere meanwhile.
            let path = if result == Err(Rejection::Replayed) { after.0 } else { before.0 };
            assert_eq!(after, (path, before.1, before.2), "{flight:?}");
            let challenges = flight.bytes[0] == INITIATION && sent.iter().all(|kind| *kind == CHALLENGE);
            assert!(sent.is_empty() || result.is_ok() && challenges, "{flight:?} brought {sent:?}");
        }
        result
    }

    fn pass(&mut self) {
        if let Some(flight) = self.wire.pop_front() {
            let _ = self.deliver(&flight, 1 - flight.to as u16);
        }
    }

    /// Delivers the next datagram from elsewhere before it passes.
    fn race(&mut self) {
        if let Some(flight) = self.wire.front().cloned() {
            let _ = self.deliver(&flight, ELSEWHERE);
        }
    }

    /// Delivers a recording again, from where it came or from `port`.
    fn replay(&mut self, recording: usize, port: Option<u16>) {
        if let Some(flight) = self.recorded.get(recording % self.recorded.len().max(1)).cloned() {
            let _ = self.deliver(&flight, port.unwrap_or(1 - flight.to as u16));
        }
    }

    /// Delivers a recording with a bit changed: nobody takes it.
    fn forge(&mut self, recording: usize, change: u8) {
        let Some(mut flight) = self.recorded.get(recording % self.recorded.len().max(1)).cloned() else {
            return;
        };
        let at = usize::from(change) % flight.bytes.len();
        flight.bytes[at] ^= 1 << (change % 8);
        assert!(self.deliver(&flight, 1 - flight.to as u16).is_err());
        // Reflected, as it was. Its sender may have restarted and take it for its peer's, but no more than that.
        flight.bytes[at] ^= 1 << (change % 8);
        flight.to = 1 - flight.to;
        let _ = self.deliver(&flight, 1 - flight.to as u16);
    }

    fn send(&mut self, at: usize, payload: &[u8]) {
        let now = self.clock(at);
        if !self.sides[at].session.is_established() {
            return;
        }
        let mut bytes = [&[0; HEADER_LEN], payload].concat();
        self.sides[at].session.seal(now, link::LineId::FIRST, Kind::Frame, &mut bytes, 0);
        self.wire.push_back(Flight { to: 1 - at, bytes });
    }

    /// A side begins a new life, with its clock at zero; `jumped` puts it far ahead instead.
    fn restart(&mut self, at: usize, jumped: bool) {
        let started = if jumped { Instant::ZERO } else { self.now };
        self.sides[at] = Side::new(at, self.both, self.lives, started);
        self.lives += 1;
    }

    /// What each side seals, the other opens.
    fn carries(&mut self) {
        for at in 0..2 {
            assert!(self.sides[at].session.is_established(), "{self:#?}");
            self.send(at, b"carried");
            let flight = self.wire.pop_back().expect("it was just sent");
            assert_eq!(self.deliver(&flight, at as u16), Ok(()), "{self:#?}");
        }
    }
}
